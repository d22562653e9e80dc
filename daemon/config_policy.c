/*
 * The HA policy of a tenant (r-client specification, section 9.3.1), as
 * written: what its values mean together is policy_plan_init()'s to judge,
 * and told here by the path of the value.
 */
#include "daemon/config_parse.h"

#include <stdio.h>
#include <string.h>

#include "proto/err.h"

/* {"initial", "step" or "factor", "max"}; units are at least min. */
static int
parse_growing(struct walk *w, json_t *json, struct schedule *out,
    const char *growth, uint32_t growth_min, uint32_t min)
{
	const struct walk_key keys[] = {
	    {.name = "initial",
		.kind = WALK_U32,
		.offset = offsetof(struct schedule, initial),
		.required = true,
		.min = min,
		.max = UINT32_MAX},
	    {.name = growth,
		.kind = WALK_U32,
		.offset = offsetof(struct schedule, growth),
		.required = true,
		.min = growth_min,
		.max = UINT32_MAX},
	    {.name = "max",
		.kind = WALK_U32,
		.offset = offsetof(struct schedule, max),
		.required = true,
		.min = min,
		.max = UINT32_MAX},
	    {.name = NULL},
	};

	return walk_object(w, json, keys, out);
}

static int
parse_form(struct walk *w, const char *form, json_t *json, uint32_t min,
    struct schedule *out)
{
	*out = (struct schedule){.kind = SCHEDULE_FIXED};
	if (strcmp(form, "fixed") == 0) {
		if (walk_u32(w, json, min, UINT32_MAX, &out->initial) != 0)
			return RLA_EINVAL;
		out->max = out->initial;
		return 0;
	}
	if (strcmp(form, "linear") == 0) {
		out->kind = SCHEDULE_LINEAR;
		return parse_growing(w, json, out, "step", 0, min);
	}
	if (strcmp(form, "exponential") == 0) {
		out->kind = SCHEDULE_EXPONENTIAL;
		return parse_growing(w, json, out, "factor", 1, min);
	}
	return walk_fail(w, "unknown key");
}

static int
parse_schedule(struct walk *w, json_t *json, uint32_t min, struct schedule *out)
{
	bool found = false;
	const char *form;
	json_t *value;
	size_t mark;
	int rc;

	if (!json_is_object(json))
		return walk_fail(w, "must be an object");
	json_object_foreach(json, form, value)
	{
		if (walk_is_comment(form))
			continue;
		if (found)
			return walk_fail(w,
			    "must hold exactly one of fixed, linear and "
			    "exponential");
		found = true;
		mark = walk_enter(w, form);
		rc = parse_form(w, form, value, min, out);
		if (rc != 0)
			return rc;
		walk_leave(w, mark);
	}
	if (!found)
		return walk_fail(w,
		    "must hold exactly one of fixed, linear and exponential");
	return 0;
}

static int
parse_gap(struct walk *w, json_t *json, void *where)
{
	return parse_schedule(w, json, 1, where);
}

/* where is the struct policy. */
static int
parse_preference(struct walk *w, json_t *json, void *where)
{
	struct policy *policy = where;
	const char *text = json_string_value(json);

	if (text == NULL && json_is_object(json))
		return parse_schedule(w, json, 0, &policy->preference);
	if (text == NULL || strcmp(text, "first-round") != 0)
		return walk_fail(
		    w, "must be \"first-round\" or a schedule object");
	policy->first_round = true;
	return 0;
}

static const struct walk_key policy_keys[] = {
    {.name = "unit_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct policy, unit_ms),
	.min = 1,
	.max = UINT32_MAX},
    {.name = "replay_count",
	.kind = WALK_U32,
	.offset = offsetof(struct policy, replay_count),
	.min = 0,
	.max = POLICY_MAX_REPLAYS},
    {.name = "replay_gap",
	.kind = WALK_FUNC,
	.offset = offsetof(struct policy, gap),
	.func = parse_gap},
    {.name = "preference",
	.kind = WALK_FUNC,
	.offset = 0,
	.func = parse_preference},
    {.name = "final_receive_units",
	.kind = WALK_U32,
	.offset = offsetof(struct policy, final_units),
	.min = 0,
	.max = UINT32_MAX},
    {.name = "final_preference_units",
	.kind = WALK_U32,
	.offset = offsetof(struct policy, final_preference_units),
	.min = 0,
	.max = UINT32_MAX},
    {.name = "completion_delivery",
	.kind = WALK_BOOL,
	.offset = offsetof(struct policy, completion_delivery)},
    {.name = "suspect_after",
	.kind = WALK_U32,
	.offset = offsetof(struct policy, suspect_after),
	.min = 0,
	.max = UINT32_MAX},
    {.name = NULL},
};

int
config_parse_policy(struct walk *w, json_t *json, void *where)
{
	return walk_object(w, json, policy_keys, where);
}

/* why is "KEY: reason", or of the horizon, which is no key but of them all. */
static int
fail(struct walk *w, const char *why)
{
	const char *reason = strstr(why, ": ");
	char key[32];
	size_t mark;
	int rc;

	if (reason == NULL || strncmp(why, "horizon", 7) == 0)
		return walk_fail(w, "%s", why);
	snprintf(key, sizeof(key), "%.*s", (int)(reason - why), why);
	mark = walk_enter(w, key);
	rc = walk_fail(w, "%s", reason + 2);
	walk_leave(w, mark);
	return rc;
}

int
config_plan_policy(
    struct walk *w, const struct policy *policy, struct policy_plan *out)
{
	const char *why = NULL;

	if (policy_plan_init(out, policy, &why) != 0)
		return fail(w, why);
	return 0;
}
