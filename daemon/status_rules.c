/* See status_rules.h; rlctl(1) names the fields. */
#include "daemon/status_rules.h"

#include <string.h>

#include "daemon/status_json.h"
#include "proto/err.h"
#include "proto/packet.h"

static bool
offers(const struct config_listener *by, const struct config_rule *rule)
{
	return config_allows(&by->rules, rule->name, strlen(rule->name));
}

/* Null on the control socket, which takes no checks at all. */
static json_t *
offered_json(const struct config_listener *by, const struct config_rule *rule)
{
	return by != NULL ? json_boolean(offers(by, rule)) : json_null();
}

static const char *
mode_name(const struct config_rule *rule)
{
	return rule->shadow ? "shadow" : "enforce";
}

/* In the form of the configuration. */
static json_t *
failure_json(const struct config_rule *rule)
{
	switch (rule->on_failure) {
	case FAILURE_OPEN:
		return json_string("open");
	case FAILURE_CLOSED:
		return json_string("closed");
	case FAILURE_LOCAL:
		return json_pack("{s:{s:o, s:o, s:I}}", "local",
		    "permits_per_second", status_json_rate(rule->local.rate),
		    "max_burst_seconds",
		    status_json_seconds(rule->local.burst_us), "max_keys",
		    (json_int_t)rule->local.max_keys);
	}
	return NULL;
}

static json_t *
resources_json(const struct config_rule *rule)
{
	json_t *out = json_array();

	for (size_t i = 0; i < rule->resource_count; i++) {
		const struct config_resource *r = &rule->resources[i];

		json_array_append_new(out,
		    json_pack("{s:s, s:I, s:I, s:I}", "bucket", r->bucket,
			"window_ms", (json_int_t)r->window_ms, "limit",
			(json_int_t)r->limit, "tokens", (json_int_t)r->tokens));
	}
	return out;
}

static json_t *
guards_json(const struct config *c, const struct config_rule *rule)
{
	json_t *out = json_array();

	for (size_t i = 0; i < rule->guard_count; i++) {
		const struct config_guard *g = &rule->guards[i];

		json_array_append_new(
		    out, json_pack("{s:s, s:I}", "tracker",
			     c->trackers[g->tracker].name, "below_ms",
			     (json_int_t)g->below_ms));
	}
	return out;
}

static json_t *
rule_json(const struct setup *setup, const struct config_listener *by, size_t i)
{
	const struct config *c = setup->config;
	const struct config_rule *rule = &c->rules[i];

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}",
	    "name", rule->name, "tenant", c->tenants[rule->tenant].name,
	    "label", rule->label, "mode", mode_name(rule), "on_failure",
	    failure_json(rule), "offered", offered_json(by, rule), "resources",
	    resources_json(rule), "guards", guards_json(c, rule), "counters",
	    status_json_counters(rule_counter_rows, &setup->counters[i]));
}

char *
status_rules(const struct setup *setup, const struct config_listener *by)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < setup->config->rule_count; i++)
		json_array_append_new(rules, rule_json(setup, by, i));
	return status_json_dump(json_pack("{s:I, s:o, s:o}", "generation",
	    (json_int_t)setup->generation, "config_hash",
	    status_json_bytes(setup->config->hash, CONFIG_HASH_LEN), "rules",
	    rules));
}

/* One rule for one caller. */
struct question {
	const struct setup *setup;
	const struct config_listener *by;
	const struct config_rule *rule;
	const struct rules_caller *caller;
	uint32_t tokens;
};

/* What a check would fail by, as the dispatcher decides it; null: nothing. */
static json_t *
error_json(const struct question *q)
{
	enum ipc_reason reason = IPC_REASON_UNAUTHORISED;
	char text[RULES_TEXT_MAX] = "this listener does not offer the rule";
	struct rules_request request;
	int rc;

	if (q->by == NULL || offers(q->by, q->rule)) {
		rc = rules_build(q->setup->rules, q->rule, q->caller, q->tokens,
		    &request, text);
		if (rc == 0)
			return json_null();
		reason = rc == RLA_ECRYPTO ? IPC_REASON_TRANSPORT
					   : IPC_REASON_VALIDATION;
	}
	return json_pack(
	    "{s:s, s:s}", "reason", ipc_reason_name(reason), "text", text);
}

/* Null when it cannot be filled in. */
static void
shown_json(json_t *out, int rc, const struct rules_shown *shown)
{
	json_object_set_new(out, "name",
	    rc == 0 ? status_json_name(shown->name.bytes, shown->name.len)
		    : json_null());
	json_object_set_new(out, "id",
	    rc == 0 ? status_json_bytes(shown->id, ID_LEN) : json_null());
}

static void
number(json_t *out, const char *name, uint64_t n)
{
	json_object_set_new(out, name, json_integer((json_int_t)n));
}

static json_t *
asked_resources_json(const struct question *q)
{
	json_t *out = resources_json(q->rule), *block;
	struct rules_shown shown;
	size_t i;
	int rc;

	json_array_foreach(out, i, block)
	{
		rc = rules_show_resource(
		    q->setup->rules, q->rule, i, q->caller, &shown);
		shown_json(block, rc, &shown);
		number(block, "tokens",
		    (uint64_t)q->tokens * q->rule->resources[i].tokens);
	}
	return out;
}

static json_t *
asked_guards_json(const struct question *q)
{
	const struct config *c = q->setup->config;
	json_t *out = guards_json(c, q->rule), *block;
	struct rules_shown shown;
	size_t i;
	int rc;

	json_array_foreach(out, i, block)
	{
		const struct config_tracker *t =
		    &c->trackers[q->rule->guards[i].tracker];

		rc = rules_show_guard(
		    q->setup->rules, q->rule, i, q->caller, &shown);
		shown_json(block, rc, &shown);
		number(block, "ttl_ms", t->ttl_ms);
		number(block, "max_samples", t->max_samples);
		number(block, "buffer_size", t->buffer_size);
		number(block, "min_samples", t->min_samples);
	}
	return out;
}

/* Null for more blocks than any datagram holds; 0: nothing is sent. */
static json_t *
datagram_json(const struct config_tenant *t, const struct config_rule *rule)
{
	const size_t size = config_request_size(
	    t, rule->guard_count, rule->resource_count, strlen(rule->label));

	if (rule->guard_count + rule->resource_count == 0)
		return json_integer(0);
	return size == SIZE_MAX ? json_null() : json_integer((json_int_t)size);
}

/* What WELCOME announces. */
static json_int_t
default_deadline_ms(const struct config *c)
{
	const uint32_t longest = config_max_horizon_ms(c);

	return longest < UINT32_MAX - 1000 ? longest + 1000 : UINT32_MAX;
}

char *
status_explain(const struct setup *setup, const struct config_listener *by,
    const struct config_rule *rule, const struct rules_caller *caller,
    uint32_t tokens)
{
	const struct question q = {setup, by, rule, caller, tokens};
	const struct config_tenant *t = &setup->config->tenants[rule->tenant];

	return status_json_dump(json_pack(
	    "{s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, "
	    "s:I, s:I, s:I, s:o}",
	    "rule", rule->name, "tenant", t->name, "key_id",
	    status_json_u64(t->cred.key_id), "profile",
	    t->profile == PROFILE_V1 ? "v1" : "v2", "label", rule->label,
	    "mode", mode_name(rule), "on_failure", failure_json(rule),
	    "offered", offered_json(by, rule), "error", error_json(&q),
	    "resources", asked_resources_json(&q), "guards",
	    asked_guards_json(&q), "datagram_bytes", datagram_json(t, rule),
	    "datagram_max", PACKET_MAX, "servers",
	    (json_int_t)tenant_members(setup->tenants[rule->tenant])->count,
	    "dedup_ttl_ms", (json_int_t)t->plan.ttl_ms, "default_deadline_ms",
	    default_deadline_ms(setup->config), "policy",
	    status_json_policy(&t->policy)));
}
