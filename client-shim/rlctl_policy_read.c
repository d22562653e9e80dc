/*
 * From a tenant of the policy document to a plan, which is derived from the
 * policy here, by the agent's own core: what is printed and what is simulated
 * are one and the same.
 */
#include "client-shim/rlctl_policy.h"

#include <jansson.h>
#include <string.h>

static bool
read_u32(const json_t *from, const char *name, uint32_t *out)
{
	const json_t *value = json_object_get(from, name);
	const json_int_t n = json_integer_value(value);

	*out = (uint32_t)n;
	return json_is_integer(value) && n >= 0 && n <= UINT32_MAX;
}

static bool
read_bool(const json_t *from, const char *name, bool *out)
{
	const json_t *value = json_object_get(from, name);

	*out = json_is_true(value);
	return json_is_boolean(value);
}

static bool
read_growing(const json_t *form, const char *growth, enum schedule_kind kind,
    struct schedule *out)
{
	out->kind = kind;
	return read_u32(form, "initial", &out->initial) &&
	       read_u32(form, growth, &out->growth) &&
	       read_u32(form, "max", &out->max);
}

static bool
read_schedule(const json_t *value, struct schedule *out)
{
	const json_t *form;

	*out = (struct schedule){.kind = SCHEDULE_FIXED};
	if (json_object_size(value) != 1)
		return false;
	if ((form = json_object_get(value, "linear")) != NULL)
		return read_growing(form, "step", SCHEDULE_LINEAR, out);
	if ((form = json_object_get(value, "exponential")) != NULL)
		return read_growing(form, "factor", SCHEDULE_EXPONENTIAL, out);
	return read_u32(value, "fixed", &out->initial);
}

static bool
read_preference(const json_t *value, struct policy *out)
{
	const char *preset = json_string_value(value);

	if (preset == NULL)
		return read_schedule(value, &out->preference);
	out->first_round = true;
	return strcmp(preset, "first-round") == 0;
}

static bool
read_policy(const json_t *from, struct policy *out)
{
	*out = (struct policy){.unit_ms = 0};
	return read_u32(from, "unit_ms", &out->unit_ms) &&
	       read_u32(from, "replay_count", &out->replay_count) &&
	       read_schedule(json_object_get(from, "replay_gap"), &out->gap) &&
	       read_preference(json_object_get(from, "preference"), out) &&
	       read_u32(from, "final_receive_units", &out->final_units) &&
	       read_u32(from, "final_preference_units",
		   &out->final_preference_units) &&
	       read_bool(
		   from, "completion_delivery", &out->completion_delivery) &&
	       read_u32(from, "suspect_after", &out->suspect_after);
}

/* What is printed as it is, and so only has to be there. */
static bool
readable(const json_t *tenant)
{
	const json_t *servers = json_object_get(tenant, "servers");
	const json_t *limit = json_object_get(tenant, "dedup_limit_ms");

	return json_is_string(json_object_get(tenant, "name")) &&
	       json_is_string(json_object_get(tenant, "key_format")) &&
	       (json_is_null(limit) || json_is_integer(limit)) &&
	       (json_is_null(servers) ||
		   (json_is_integer(servers) &&
		       json_integer_value(servers) >= 0 &&
		       json_integer_value(servers) <= POLICY_MAX_SERVERS));
}

bool
rlctl_policy_read(const json_t *tenant, struct policy_plan *plan)
{
	struct policy policy;

	return readable(tenant) &&
	       read_policy(json_object_get(tenant, "policy"), &policy) &&
	       policy_plan_init(plan, &policy, NULL) == 0;
}
