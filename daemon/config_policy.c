/*
 * The HA policy of a tenant (r-client specification, section 9.3.1), as
 * written: what its values mean together is policy_plan_init()'s to judge,
 * and told here by the path of the value.
 */
#include "daemon/config_parse.h"

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
	int rc;

	rc = walk_object(w, json, keys, out);
	if (rc != 0 || out->max >= out->initial)
		return rc;
	walk_enter(w, "max");
	return walk_fail(w,
	    "must be at least initial: it is %u, but initial is %u", out->max,
	    out->initial);
}

static int
parse_form(struct walk *w, enum schedule_kind kind, json_t *json, uint32_t min,
    struct schedule *out)
{
	*out = (struct schedule){.kind = kind};
	switch (kind) {
	case SCHEDULE_FIXED:
		if (walk_u32(w, json, min, UINT32_MAX, &out->initial) != 0)
			return RLA_EINVAL;
		out->max = out->initial;
		return 0;
	case SCHEDULE_LINEAR:
		return parse_growing(w, json, out, "step", 0, min);
	case SCHEDULE_EXPONENTIAL:
		return parse_growing(w, json, out, "factor", 1, min);
	}
	return RLA_EINVAL;
}

/* Borrowed; NULL when absent. */
struct forms {
	json_t *of[SCHEDULE_EXPONENTIAL + 1];
};

#define FORM(key, kind_)          \
	[kind_] = {.name = (key), \
	    .kind = WALK_RAW,     \
	    .offset = offsetof(struct forms, of[kind_])}

static const struct walk_key form_keys[] = {
    FORM("fixed", SCHEDULE_FIXED),
    FORM("linear", SCHEDULE_LINEAR),
    FORM("exponential", SCHEDULE_EXPONENTIAL),
    {.name = NULL},
};

static int
parse_schedule(struct walk *w, json_t *json, uint32_t min, struct schedule *out)
{
	struct forms forms = {{NULL, NULL, NULL}};
	int rc = walk_object(w, json, form_keys, &forms), kind = -1;
	size_t mark;

	if (rc != 0)
		return rc;
	for (int i = SCHEDULE_FIXED; i <= SCHEDULE_EXPONENTIAL; i++) {
		if (forms.of[i] != NULL)
			kind = kind == -1 ? i : -2;
	}
	if (kind < 0)
		return walk_fail(w,
		    "must hold exactly one of fixed, linear and exponential");
	mark = walk_enter(w, form_keys[kind].name);
	rc = parse_form(w, (enum schedule_kind)kind, forms.of[kind], min, out);
	walk_leave(w, mark);
	return rc;
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

/* The first round whose preference is longer than its gap. */
static void
say_round(const struct policy *p, char *out, size_t cap)
{
	uint32_t gap, prefer;

	for (uint32_t k = 0; k <= p->replay_count; k++) {
		gap = schedule_units(&p->gap, k);
		prefer = schedule_units(&p->preference, k);
		if (prefer > gap) {
			snprintf(out, cap,
			    ": in round %u it is %u units, but the gap is %u",
			    k, prefer, gap);
			return;
		}
	}
}

/* The values behind what policy_plan_init() says of a key. */
static void
say_values(const struct policy *p, const char *key, char *out, size_t cap)
{
	out[0] = '\0';
	if (strcmp(key, "preference") == 0)
		say_round(p, out, cap);
	else if (strcmp(key, "final_preference_units") != 0)
		return;
	else if (p->first_round && p->final_preference_units <= p->final_units)
		snprintf(out, cap, ": it is %u", p->final_preference_units);
	else
		snprintf(out, cap, ": it is %u, but final_receive_units is %u",
		    p->final_preference_units, p->final_units);
}

static int
fail_horizon(struct walk *w, const char *more, uint32_t horizon_ms,
    const struct credential *cred)
{
	const bool limited = !credential_allows_ttl(cred, UINT32_MAX);

	return walk_fail(w, "its horizon of %s%u ms is over %s limit of %u ms",
	    more, horizon_ms,
	    limited ? "the key's deduplication" : "the protocol's",
	    limited ? cred->quotas.dedup_ttl_ms : UINT32_MAX);
}

static int
fail(struct walk *w, const struct policy *policy,
    const struct policy_refusal *why, const struct credential *cred)
{
	char values[128];
	size_t mark;
	int rc;

	if (why->key == NULL)
		return fail_horizon(w, "more than ", UINT32_MAX, cred);
	say_values(policy, why->key, values, sizeof(values));
	mark = walk_enter(w, why->key);
	rc = walk_fail(w, "%s%s", why->reason, values);
	walk_leave(w, mark);
	return rc;
}

/* The specification, section 9.3.1: never another replay contract than asked
 * for, so a horizon over the key's limit is refused, not shortened. */
int
config_plan_policy(struct walk *w, const struct policy *policy,
    const struct credential *cred, struct policy_plan *out)
{
	struct policy_refusal why;

	if (policy_plan_init(out, policy, &why) != 0)
		return fail(w, policy, &why, cred);
	if (!credential_allows_ttl(cred, out->ttl_ms))
		return fail_horizon(w, "", out->ttl_ms, cred);
	return 0;
}
