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

static const char *
check_gap(const struct schedule *s)
{
	if (!kind_known(s))
		return "replay_gap: must be fixed, linear or exponential";
	if (s->initial < 1)
		return "replay_gap: must be at least 1 unit";
	if (max_low(s))
		return "replay_gap: max must be at least initial";
	if (factor_low(s))
		return "replay_gap: factor must be at least 1";
	return NULL;
}

static const char *
check_preference(const struct schedule *s)
{
	if (!kind_known(s))
		return "preference: must be fixed, linear or exponential";
	if (max_low(s))
		return "preference: max must be at least initial";
	if (factor_low(s))
		return "preference: factor must be at least 1";
	return NULL;
}

static const char *
check_policy(const struct policy *p)
{
	const char *bad;

	if (p->unit_ms < 1)
		return "unit_ms: must be at least 1";
	if (p->replay_count > POLICY_MAX_REPLAYS)
		return "replay_count: must be 0 to 31";
	bad = check_gap(&p->gap);
	if (bad == NULL && !p->first_round)
		bad = check_preference(&p->preference);
	if (bad != NULL)
		return bad;
	if (p->final_preference_units > p->final_units)
		return "final_preference_units: must be 0 to "
		       "final_receive_units";
	if (p->first_round && p->final_preference_units > 0)
		return "final_preference_units: must be 0 with the "
		       "first-round preference";
	return NULL;
}

/* P(k), not yet compared with the gap. */
static uint32_t
preference_units(const struct policy *p, uint32_t k, uint32_t gap)
{
	if (p->first_round)
		return k == 0 ? gap : 0;
	return schedule_units(&p->preference, k);
}

static const char *
derive(struct policy_plan *plan, const struct policy *p)
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
			return "preference: must not be longer than the "
			       "replay_gap of the same round";
		if (at + gap > most)
			return "horizon: must not be over 4294967295 ms";
		plan->prefer_end_us[k] = (int64_t)(at + prefer) * unit_us;
		at += gap;
		plan->round_end_us[k] = (int64_t)at * unit_us;
	}
	if (at + p->final_units > most)
		return "horizon: must not be over 4294967295 ms";
	plan->rounds = p->replay_count + 1;
	plan->final_prefer_end_us =
	    (int64_t)(at + p->final_preference_units) * unit_us;
	at += p->final_units;
	plan->horizon_us = (int64_t)at * unit_us;
	plan->ttl_ms = (uint32_t)at * p->unit_ms;
	plan->completion_delivery = p->completion_delivery;
	plan->suspect_after = p->suspect_after;
	return NULL;
}

int
policy_plan_init(
    struct policy_plan *plan, const struct policy *p, const char **why)
{
	struct policy_plan derived = {0};
	const char *bad = check_policy(p);

	if (bad == NULL)
		bad = derive(&derived, p);
	if (why != NULL)
		*why = bad;
	if (bad != NULL)
		return -1;
	*plan = derived;
	return 0;
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
