/*
 * The document that POLICY answers with: each tenant's policy in the form of
 * the configuration, and what it means in time. rlctl(1) names the fields.
 */
#include "daemon/status.h"

#include <jansson.h>

static json_t *
growing_json(const struct schedule *s, const char *kind, const char *growth)
{
	return json_pack("{s:{s:I, s:I, s:I}}", kind, "initial",
	    (json_int_t)s->initial, growth, (json_int_t)s->growth, "max",
	    (json_int_t)s->max);
}

static json_t *
schedule_json(const struct schedule *s)
{
	switch (s->kind) {
	case SCHEDULE_FIXED:
		return json_pack("{s:I}", "fixed", (json_int_t)s->initial);
	case SCHEDULE_LINEAR:
		return growing_json(s, "linear", "step");
	case SCHEDULE_EXPONENTIAL:
		return growing_json(s, "exponential", "factor");
	}
	return NULL;
}

static json_t *
policy_json(const struct policy *p)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:I, s:I, s:b, s:I}", "unit_ms",
	    (json_int_t)p->unit_ms, "replay_count", (json_int_t)p->replay_count,
	    "replay_gap", schedule_json(&p->gap), "preference",
	    p->first_round ? json_string("first-round")
			   : schedule_json(&p->preference),
	    "final_receive_units", (json_int_t)p->final_units,
	    "final_preference_units", (json_int_t)p->final_preference_units,
	    "completion_delivery", p->completion_delivery, "suspect_after",
	    (json_int_t)p->suspect_after);
}

/* Every deadline of a plan is a whole number of units, and so of ms. */
static json_int_t
ms(int64_t us)
{
	return us / 1000;
}

static json_t *
rounds_json(const struct policy_plan *plan)
{
	json_t *out = json_array();
	int64_t start = 0;

	for (uint32_t k = 0; k < plan->rounds; k++) {
		json_array_append_new(
		    out, json_pack("{s:I, s:I, s:I, s:I}", "round",
			     (json_int_t)k, "start_ms", ms(start),
			     "prefer_until_ms", ms(plan->prefer_end_us[k]),
			     "end_ms", ms(plan->round_end_us[k])));
		start = plan->round_end_us[k];
	}
	return out;
}

static json_t *
final_json(const struct policy_plan *plan)
{
	const int64_t start = plan->round_end_us[plan->rounds - 1];

	if (plan->horizon_us == start)
		return json_null();
	return json_pack("{s:I, s:I, s:I}", "start_ms", ms(start),
	    "prefer_until_ms", ms(plan->final_prefer_end_us), "end_ms",
	    ms(plan->horizon_us));
}

/* Null where the key sets none. */
static json_t *
limit_json(const struct credential *cred)
{
	if (cred->format == KEY_UNVERSIONED && cred->quotas.dedup_ttl_ms == 0)
		return json_null();
	return json_integer(cred->quotas.dedup_ttl_ms);
}

/* Null until they are known, or known not to be. */
static json_t *
servers_json(const struct tenant *t)
{
	const uint32_t count = tenant_members(t)->count;

	if (count == 0 &&
	    discovery_state(tenant_discovery(t)) == DISCOVERY_RUNNING)
		return json_null();
	return json_integer(count);
}

static json_t *
tenant_json(const struct tenant *t)
{
	const struct config_tenant *c = tenant_config(t);

	return json_pack("{s:s, s:o, s:o, s:I, s:o, s:s, s:o, s:o}", "name",
	    c->name, "servers", servers_json(t), "policy",
	    policy_json(&c->policy), "horizon_ms", ms(c->plan.horizon_us),
	    "dedup_limit_ms", limit_json(&c->cred), "key_format",
	    c->cred.format == KEY_FORMAT_1 ? "1" : "unversioned", "rounds",
	    rounds_json(&c->plan), "final", final_json(&c->plan));
}

char *
status_policy(const struct agent *a)
{
	json_t *tenants = json_array();
	json_t *root;
	char *text;

	for (size_t i = 0; i < a->config->tenant_count; i++)
		json_array_append_new(tenants, tenant_json(a->tenants[i]));
	root = json_pack("{s:o}", "tenants", tenants);
	text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}
