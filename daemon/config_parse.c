/*
 * The root of the configuration. Sections are collected first and read in the
 * order of their references, whatever their order in the file: tenants,
 * trackers, rules, metrics, limiters, error controls, listeners, the control
 * socket, gateways.
 */
#include "daemon/config_parse.h"

#include "daemon/core/sample.h"
#include "proto/err.h"

struct root {
	json_t *tenants; /* all borrowed; NULL when absent */
	json_t *trackers;
	json_t *rules;
	json_t *limiters;
	json_t *error_controls;
	json_t *listeners;
	json_t *control;
	json_t *gateway;
	json_t *metrics;
};

static const char *const failure_words[] = {"open", "closed", NULL};
static const char *const level_words[] = {
    "error", "warning", "info", "debug", NULL};

/* WALK_WORD stores an index where the configuration holds the enum. */
_Static_assert(sizeof(enum config_level) == sizeof(int), "WALK_WORD");
_Static_assert(sizeof(enum config_failure) == sizeof(int), "WALK_WORD");
_Static_assert(FAILURE_OPEN == 0 && FAILURE_CLOSED == 1, "failure_words");
_Static_assert(LEVEL_ERROR == 0 && LEVEL_DEBUG == 3, "level_words");

static int
refuse_local(struct walk *w, json_t *json, void *where)
{
	(void)json;
	(void)where;
	return walk_fail(w, "only a rule can have a local limiter");
}

int
config_parse_failure(struct walk *w, json_t *json, void *where)
{
	static const struct walk_key keys[] = {
	    {.name = "local", .kind = WALK_FUNC, .func = refuse_local},
	    {.name = NULL},
	};
	static const struct walk_key word = {
	    .kind = WALK_WORD, .words = failure_words};
	int rc = 0;

	if (json_is_object(json))
		rc = walk_object(w, json, keys, where);
	return rc == 0 ? walk_value(w, json, &word, where) : rc;
}

int
config_parse_rule_failure(struct walk *w, json_t *json, void *where)
{
	static const struct walk_key keys[] = {
	    {.name = "local",
		.kind = WALK_FUNC,
		.offset = offsetof(struct config_rule, local),
		.required = true,
		.func = config_parse_rate},
	    {.name = NULL},
	};
	struct config_rule *rule = where;
	int rc;

	if (!json_is_object(json)) {
		rc = config_parse_failure(w, json, &rule->on_failure);
		return rc == 0 ? 0
			       : walk_fail(w, "must be \"open\", \"closed\" or "
					      "{\"local\": {}}");
	}
	rc = walk_object(w, json, keys, rule);
	if (rc == 0)
		rule->on_failure = FAILURE_LOCAL;
	return rc;
}

static const struct walk_key limits_keys[] = {
    {.name = "max_inflight",
	.kind = WALK_U32,
	.offset = offsetof(struct config_limits, max_inflight),
	.min = 1,
	.max = CONFIG_MAX_INFLIGHT},
    {.name = "max_inflight_per_uid",
	.kind = WALK_U32,
	.offset = offsetof(struct config_limits, max_inflight_per_uid),
	.min = 1,
	.max = CONFIG_MAX_INFLIGHT},
    {.name = "max_connections_per_uid",
	.kind = WALK_U32,
	.offset = offsetof(struct config_limits, max_connections_per_uid),
	.min = 1,
	.max = CONFIG_MAX_CONNS},
    {.name = NULL},
};

/* where is the struct root, which has no room for these: w->config has. */
static int
parse_limits(struct walk *w, json_t *json, void *where)
{
	(void)where;
	return walk_object(w, json, limits_keys, &w->config->limits);
}

struct log_section {
	enum config_level level;
	double decisions;
};

static const struct walk_key log_keys[] = {
    {.name = "level",
	.kind = WALK_WORD,
	.offset = offsetof(struct log_section, level),
	.words = level_words},
    {.name = "decisions",
	.kind = WALK_REAL,
	.offset = offsetof(struct log_section, decisions),
	.low = 0,
	.high = 1},
    {.name = NULL},
};

static int
parse_log(struct walk *w, json_t *json, void *where)
{
	struct log_section s = {.level = w->config->level, .decisions = 0};
	int rc = walk_object(w, json, log_keys, &s);

	(void)where;
	if (rc != 0)
		return rc;
	w->config->level = s.level;
	w->config->decisions = sample_share(s.decisions);
	return 0;
}

static const struct walk_key metrics_keys[] = {
    {.name = "top_denied_keys",
	.kind = WALK_U32,
	.offset = offsetof(struct config, top_denied_keys),
	.min = 0,
	.max = CONFIG_MAX_TOP_KEYS},
    {.name = NULL},
};

/* After the rules: keys are kept of each. */
static int
parse_metrics(struct walk *w, json_t *json)
{
	const struct config *c = w->config;
	int rc = walk_object(w, json, metrics_keys, w->config);

	if (rc != 0 ||
	    c->top_denied_keys * c->rule_count <= CONFIG_MAX_ALL_TOP_KEYS)
		return rc;
	walk_enter(w, "top_denied_keys");
	return walk_fail(w,
	    "%u keys of each of %zu rules are more than %d keys",
	    c->top_denied_keys, c->rule_count, CONFIG_MAX_ALL_TOP_KEYS);
}

static const struct walk_key root_keys[] = {
    {.name = "tenants",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, tenants),
	.required = true},
    {.name = "trackers",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, trackers)},
    {.name = "rules", .kind = WALK_RAW, .offset = offsetof(struct root, rules)},
    {.name = "limiters",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, limiters)},
    {.name = "error_controls",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, error_controls)},
    {.name = "listeners",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, listeners)},
    {.name = "control",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, control)},
    {.name = "gateway",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, gateway)},
    {.name = "limits", .kind = WALK_FUNC, .func = parse_limits},
    {.name = "log", .kind = WALK_FUNC, .func = parse_log},
    {.name = "metrics",
	.kind = WALK_RAW,
	.offset = offsetof(struct root, metrics)},
    {.name = NULL},
};

/* An absent section has nothing to say; listeners have a default. */
static int
section(struct walk *w, const char *name, json_t *json,
    int (*parse)(struct walk *w, json_t *json))
{
	size_t mark;
	int rc;

	if (json == NULL)
		return 0;
	mark = walk_enter(w, name);
	rc = parse(w, json);
	walk_leave(w, mark);
	return rc;
}

static int
default_listeners(struct walk *w)
{
	json_t *json = json_pack("{s:{}}", "main");
	int rc;

	if (json == NULL)
		return walk_nomem(w);
	rc = section(w, "listeners", json, config_parse_listeners);
	json_decref(json);
	return rc;
}

int
config_parse_root(struct walk *w, json_t *root)
{
	struct root r = {.tenants = NULL};
	struct config *c = w->config;
	int rc;

	c->level = LEVEL_INFO;
	c->limits = (struct config_limits){
	    .max_inflight = 65536,
	    .max_inflight_per_uid = 16384,
	    .max_connections_per_uid = 512,
	};
	rc = walk_object(w, root, root_keys, &r);
	if (rc == 0)
		rc = section(w, "tenants", r.tenants, config_parse_tenants);
	if (rc == 0)
		rc = section(w, "trackers", r.trackers, config_parse_trackers);
	if (rc == 0)
		rc = section(w, "rules", r.rules, config_parse_rules);
	if (rc == 0)
		rc = section(w, "metrics", r.metrics, parse_metrics);
	if (rc == 0)
		rc = section(w, "limiters", r.limiters, config_parse_limiters);
	if (rc == 0)
		rc = section(w, "error_controls", r.error_controls,
		    config_parse_error_controls);
	if (rc == 0)
		rc = r.listeners == NULL ? default_listeners(w)
					 : section(w, "listeners", r.listeners,
					       config_parse_listeners);
	if (rc == 0)
		rc = config_parse_control(w, r.control);
	if (rc == 0)
		rc = section(w, "gateway", r.gateway, config_parse_gateways);
	return rc;
}
