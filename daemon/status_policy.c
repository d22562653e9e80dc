/*
 * The document that POLICY answers with: each tenant's policy in the form of
 * the configuration, and what it means in time. rlctl(1) names the fields.
 */
#include "daemon/status.h"

#include "daemon/status_json.h"

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
	    status_json_policy(&c->policy), "horizon_ms",
	    ms(c->plan.horizon_us), "dedup_limit_ms", limit_json(&c->cred),
	    "key_format", c->cred.format == KEY_FORMAT_1 ? "1" : "unversioned",
	    "rounds", rounds_json(&c->plan), "final", final_json(&c->plan));
}

char *
status_policy(const struct agent *a)
{
	json_t *tenants = json_array();

	for (size_t i = 0; i < a->setup->config->tenant_count; i++)
		json_array_append_new(
		    tenants, tenant_json(a->setup->tenants[i]));
	return status_json_dump(json_pack("{s:o}", "tenants", tenants));
}
