/*
 * From a policy's units to a plan in microseconds. Everything that could make
 * an operation misbehave is refused here, once, when the configuration is
 * loaded; the operation machine (policy_op.c) trusts its plan blindly.
 */
#include "daemon/core/policy.h"

void
policy_defaults(struct policy *p)
{
	*p = (struct policy){
	    .unit_ms = 20,
	    .replay_count = 1,
	    .gap = {.kind = SCHEDULE_FIXED, .initial = 1},
	    .preference = {.kind = SCHEDULE_FIXED, .initial = 1},
	    .first_round = false,
	    .final_units = 1,
	    .final_preference_units = 0,
	    .completion_delivery = true,
	    .suspect_after = 0,
	};
}

static bool
kind_known(const struct schedule *s)
{
	switch (s->kind) {
	case SCHEDULE_FIXED:
	case SCHEDULE_LINEAR:
	case SCHEDULE_EXPONENTIAL:
		return true;
	}
	return false;
}

static bool
max_low(const struct schedule *s)
{
	return s->kind != SCHEDULE_FIXED && s->max < s->initial;
}

/* A factor of zero would make rounds shrink. */
static bool
factor_low(const struct schedule *s)
{
	return s->kind == SCHEDULE_EXPONENTIAL && s->growth < 1;
}

static int
refuse(struct policy_refusal *why, const char *key, const char *reason)
{
	*why = (struct policy_refusal){key, reason};
	return -1;
}

static int
check_growth(
    const struct schedule *s, const char *key, struct policy_refusal *why)
{
	if (!kind_known(s))
		return refuse(why, key, "must be fixed, linear or exponential");
	if (max_low(s))
		return refuse(why, key, "max must be at least initial");
	if (factor_low(s))
		return refuse(why, key, "factor must be at least 1");
	return 0;
}

static int
check_schedules(const struct policy *p, struct policy_refusal *why)
{
	if (p->gap.initial < 1)
		return refuse(why, "replay_gap", "must be at least 1 unit");
	if (check_growth(&p->gap, "replay_gap", why) != 0)
		return -1;
	/* The preset stands for the schedule, which is not used then. */
	if (p->first_round)
		return 0;
	return check_growth(&p->preference, "preference", why);
}

static int
check_policy(const struct policy *p, struct policy_refusal *why)
{
	if (p->unit_ms < 1)
		return refuse(why, "unit_ms", "must be at least 1");
	if (p->replay_count > POLICY_MAX_REPLAYS)
		return refuse(why, "replay_count", "must be 0 to 31");
	if (check_schedules(p, why) != 0)
		return -1;
	if (p->final_preference_units > p->final_units)
		return refuse(why, "final_preference_units",
		    "must be 0 to final_receive_units");
	if (p->first_round && p->final_preference_units > 0)
		return refuse(why, "final_preference_units",
		    "must be 0 with the first-round preference");
	return 0;
}

static int
refuse_horizon(struct policy_refusal *why)
{
	return refuse(why, NULL, "its horizon must not be over 4294967295 ms");
}

/* P(k), not yet compared with the gap. */
static uint32_t
preference_units(const struct policy *p, uint32_t k, uint32_t gap)
{
	if (p->first_round)
		return k == 0 ? gap : 0;
	return schedule_units(&p->preference, k);
}

static int
derive(struct policy_plan *plan, const struct policy *p,
    struct policy_refusal *why)
{
	const int64_t unit_us = (int64_t)p->unit_ms * 1000;
	/* More units than this and the TTL does not fit the wire's u32. */
	const uint64_t most = UINT32_MAX / p->unit_ms;
	uint64_t at = 0; /* units since the start */
	uint32_t gap, prefer;

	for (uint32_t k = 0; k <= p->replay_count; k++) {
		gap = schedule_units(&p->gap, k);
		prefer = preference_units(p, k, gap);
		if (prefer > gap)
			return refuse(why, "preference",
			    "must not be longer than the replay_gap of the "
			    "same round");
		if (at + gap > most)
			return refuse_horizon(why);
		plan->prefer_end_us[k] = (int64_t)(at + prefer) * unit_us;
		at += gap;
		plan->round_end_us[k] = (int64_t)at * unit_us;
	}
	if (at + p->final_units > most)
		return refuse_horizon(why);
	plan->rounds = p->replay_count + 1;
	plan->final_prefer_end_us =
	    (int64_t)(at + p->final_preference_units) * unit_us;
	at += p->final_units;
	plan->horizon_us = (int64_t)at * unit_us;
	plan->ttl_ms = (uint32_t)at * p->unit_ms;
	plan->completion_delivery = p->completion_delivery;
	plan->suspect_after = p->suspect_after;
	return 0;
}

int
policy_plan_init(struct policy_plan *plan, const struct policy *p,
    struct policy_refusal *why)
{
	struct policy_plan derived = {0};
	struct policy_refusal refusal = {0};
	int rc = check_policy(p, &refusal);

	if (rc == 0)
		rc = derive(&derived, p, &refusal);
	if (rc == 0)
		*plan = derived;
	if (why != NULL)
		*why = refusal;
	return rc;
}

const char *
policy_state_name(enum policy_state state)
{
	switch (state) {
	case POLICY_PREPARED:
		return "Prepared";
	case POLICY_ROUND:
		return "TransmissionRound";
	case POLICY_FINAL:
		return "FinalReceive";
	case POLICY_TERMINAL:
		return "Terminal";
	case POLICY_CANCELLED:
		return "Cancelled";
	}
	return "unknown";
}

const char *
policy_end_name(enum policy_end end)
{
	switch (end) {
	case POLICY_SELECTED:
		return "selected";
	case POLICY_TIMEOUT:
		return "timeout";
	case POLICY_NO_SERVER:
		return "no-server";
	case POLICY_NOT_SENT:
		return "not-sent";
	case POLICY_STOPPED:
		return "stopped";
	}
	return "unknown";
}
