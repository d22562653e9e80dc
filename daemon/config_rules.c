/*
 * Rules. What a rule refers to must exist; what the tenant's key
 * or the datagram's size will refuse is only warned of, since another key may
 * allow it tomorrow: rules_build() answers that check by check.
 */
#include "daemon/config_parse.h"

#include <stdlib.h>
#include <string.h>

#include "proto/packet.h"
#include "proto/pdu.h"

/* The index of shadow is 1. */
static const char *const mode_words[] = {"enforce", "shadow", NULL};

/* where is the char * of a bucket. */
static int
parse_bucket(struct walk *w, json_t *json, void *where)
{
	char **bucket = where;
	int rc = walk_text(w, json, 1, CONFIG_NAME_MAX, bucket);

	return rc == 0 ? config_check_template(w, *bucket) : rc;
}

static const struct walk_key resource_keys[] = {
    {.name = "bucket",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_resource, bucket),
	.required = true,
	.func = parse_bucket},
    WALK_POSITIVE("window_ms", struct config_resource, window_ms),
    WALK_POSITIVE("limit", struct config_resource, limit),
    {.name = "tokens",
	.kind = WALK_U16,
	.offset = offsetof(struct config_resource, tokens),
	.min = 1,
	.max = UINT16_MAX},
    {.name = NULL},
};

static int
parse_resource(struct walk *w, json_t *json, void *row)
{
	struct config_resource *r = row;

	r->window_ms = 1000;
	r->limit = 100;
	r->tokens = 1;
	return walk_object(w, json, resource_keys, r);
}

/* where is the struct config_rule. */
static int
parse_resources(struct walk *w, json_t *json, void *where)
{
	struct config_rule *rule = where;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, PDU_MAX_RESOURCES, &count);
	if (rc != 0 || count == 0)
		return rc;
	rule->resources = calloc(count, sizeof(*rule->resources));
	if (rule->resources == NULL)
		return walk_nomem(w);
	return walk_items(w, json, rule->resources, sizeof(*rule->resources),
	    &rule->resource_count, parse_resource);
}

/* where is the index of a tracker. */
static int
parse_tracker_name(struct walk *w, json_t *json, void *where)
{
	const struct config_tracker *t;
	const char *name = json_string_value(json);

	if (name == NULL)
		return walk_fail(w, "must be a string");
	t = config_tracker(w->config, name, json_string_length(json));
	if (t == NULL)
		return walk_fail(w, "no tracker has this name");
	*(size_t *)where = (size_t)(t - w->config->trackers);
	return 0;
}

static const struct walk_key guard_keys[] = {
    {.name = "tracker",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_guard, tracker),
	.required = true,
	.func = parse_tracker_name},
    WALK_POSITIVE("below_ms", struct config_guard, below_ms),
    {.name = NULL},
};

static int
parse_guard(struct walk *w, json_t *json, void *row)
{
	struct config_guard *g = row;

	g->below_ms = 100;
	return walk_object(w, json, guard_keys, g);
}

/* where is the struct config_rule. */
static int
parse_guards(struct walk *w, json_t *json, void *where)
{
	struct config_rule *rule = where;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, PDU_MAX_GUARDS, &count);
	if (rc != 0 || count == 0)
		return rc;
	rule->guards = calloc(count, sizeof(*rule->guards));
	if (rule->guards == NULL)
		return walk_nomem(w);
	return walk_items(w, json, rule->guards, sizeof(*rule->guards),
	    &rule->guard_count, parse_guard);
}

/* where is the index of a tenant. */
static int
parse_tenant_name(struct walk *w, json_t *json, void *where)
{
	const struct config_tenant *t;
	const char *name = json_string_value(json);

	if (name == NULL)
		return walk_fail(w, "must be a string");
	t = config_tenant(w->config, name, json_string_length(json));
	if (t == NULL)
		return walk_fail(w, "no tenant has this name");
	*(size_t *)where = (size_t)(t - w->config->tenants);
	return 0;
}

/* A rule and what is read of it but not kept as it is. */
struct draft {
	struct config_rule rule;
	int mode;
	bool coalesce;
};

static const struct walk_key rule_keys[] = {
    {.name = "tenant",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, rule.tenant),
	.func = parse_tenant_name},
    {.name = "label",
	.kind = WALK_TEXT,
	.offset = offsetof(struct draft, rule.label),
	.min = 0,
	.max = PDU_LABEL_MAX},
    {.name = "resources",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, rule),
	.func = parse_resources},
    {.name = "guards",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, rule),
	.func = parse_guards},
    {.name = "on_failure",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, rule),
	.func = config_parse_rule_failure},
    {.name = "mode",
	.kind = WALK_WORD,
	.offset = offsetof(struct draft, mode),
	.words = mode_words},
    {.name = "coalesce",
	.kind = WALK_BOOL,
	.offset = offsetof(struct draft, coalesce)},
    {.name = NULL},
};

static int
warn_of_guards(struct walk *w, const struct config_rule *rule,
    const struct config_tenant *tenant)
{
	size_t list = walk_enter(w, "guards"), mark;
	const struct config_tracker *t;
	int rc = 0;

	for (size_t i = 0; i < rule->guard_count && rc == 0; i++) {
		t = &w->config->trackers[rule->guards[i].tracker];
		if (config_allows_buffer(tenant, t->buffer_size))
			continue;
		mark = walk_enter_item(w, i);
		rc = walk_warn(w,
		    "its tracker's buffer_size of %u is over the key's limit "
		    "of %u: every check will fail",
		    t->buffer_size, tenant->cred.quotas.latency_buffer);
		walk_leave(w, mark);
	}
	walk_leave(w, list);
	return rc;
}

static int
warn_of_resources(struct walk *w, const struct config_rule *rule,
    const struct config_tenant *tenant)
{
	size_t list = walk_enter(w, "resources"), mark;
	const struct config_resource *r;
	int rc = 0;

	for (size_t i = 0; i < rule->resource_count && rc == 0; i++) {
		r = &rule->resources[i];
		mark = walk_enter_item(w, i);
		if (!config_allows_window(tenant, r->window_ms)) {
			walk_enter(w, "window_ms");
			rc = walk_warn(w,
			    "%u ms is over the key's limit of %u ms: every "
			    "check will fail",
			    r->window_ms, tenant->cred.quotas.rate_window_ms);
		} else if (r->tokens > r->limit) {
			walk_enter(w, "tokens");
			rc = walk_warn(w,
			    "%u is over the limit of %u: every check will be "
			    "denied",
			    r->tokens, r->limit);
		}
		walk_leave(w, mark);
	}
	walk_leave(w, list);
	return rc;
}

static int
warn_of_rule(struct walk *w, const struct config_rule *rule)
{
	const struct config_tenant *tenant = &w->config->tenants[rule->tenant];
	size_t size = config_request_size(tenant, rule->guard_count,
	    rule->resource_count, strlen(rule->label));
	int rc = 0;

	if (size == SIZE_MAX)
		rc = walk_warn(w,
		    "its request has more than a datagram of %d bytes holds: "
		    "every check will fail",
		    PACKET_MAX);
	else if (size > PACKET_MAX)
		rc = walk_warn(w,
		    "its request of %zu bytes does not fit a datagram of %d: "
		    "every check will fail",
		    size, PACKET_MAX);
	if (rc == 0)
		rc = warn_of_guards(w, rule, tenant);
	if (rc == 0)
		rc = warn_of_resources(w, rule, tenant);
	return rc;
}

static int
resolve_rule(struct walk *w, struct draft *d)
{
	struct config_rule *rule = &d->rule;

	if (rule->tenant == SIZE_MAX && w->config->tenant_count > 1) {
		walk_enter(w, "tenant");
		return walk_fail(w, "is missing, and there are %zu tenants",
		    w->config->tenant_count);
	}
	if (rule->tenant == SIZE_MAX)
		rule->tenant = 0;
	rule->shadow = d->mode == 1;
	if (d->coalesce) {
		walk_enter(w, "coalesce");
		return walk_fail(w, "not yet supported");
	}
	if (rule->label == NULL)
		rule->label = strdup("");
	return rule->label == NULL ? walk_nomem(w) : warn_of_rule(w, rule);
}

static int
parse_rule(struct walk *w, json_t *json, void *row)
{
	struct config_rule *rule = row;
	struct draft d = {.rule = *rule};
	int rc;

	d.rule.tenant = SIZE_MAX;
	d.rule.on_failure = FAILURE_OPEN;
	rc = walk_object(w, json, rule_keys, &d);
	if (rc == 0)
		rc = resolve_rule(w, &d);
	*rule = d.rule;
	return rc;
}

int
config_parse_rules(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 0, CONFIG_MAX_RULES, &count);
	if (rc != 0 || count == 0)
		return rc;
	c->rules = calloc(count, sizeof(*c->rules));
	if (c->rules == NULL)
		return walk_nomem(w);
	return walk_table(
	    w, json, c->rules, sizeof(*c->rules), &c->rule_count, parse_rule);
}
