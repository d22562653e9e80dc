/* Section 9.3.1 of the r-client specification, term by term. */
#include "tests/sim/timetable.h"

/* B(k) or P(k): b, min(b + k * step, max) or min(b * factor^k, max). */
static uint64_t
units(const struct scenario_growth *g, uint32_t k)
{
	uint64_t value = g->first;

	if (g->kind == GROWTH_FIXED)
		return value;
	for (uint32_t i = 0; i < k; i++) {
		if (g->kind == GROWTH_LINEAR)
			value += g->by;
		else
			value *= g->by;
		if (value > g->most)
			value = g->most;
	}
	return value;
}

/* Its bounds cross, or it would shrink: rl-agent.json(5), "policy". */
static bool
is_unusable(const struct scenario_growth *g)
{
	return g->kind != GROWTH_FIXED &&
	       (g->most < g->first ||
		   (g->kind == GROWTH_EXPONENTIAL && g->by == 0));
}

static uint64_t
preference(const struct scenario_policy *p, uint32_t k)
{
	if (!p->first_round)
		return units(&p->preference, k);
	return k == 0 ? units(&p->gap, 0) : 0;
}

const char *
timetable_make(const struct scenario_policy *p, struct timetable *t)
{
	const int64_t unit = (int64_t)p->unit_ms * 1000;
	const uint32_t final = p->replays + 1;
	uint64_t begin, sum = 0;

	if (p->unit_ms == 0)
		return "unit_ms";
	if (p->replays >= TIMETABLE_ROUNDS_MAX)
		return "replay_count";
	if (p->final_preference > p->final_units ||
	    (p->first_round && p->final_preference != 0))
		return "final_preference_units";
	if (is_unusable(&p->gap))
		return "replay_gap";
	if (!p->first_round && is_unusable(&p->preference))
		return "preference";
	for (uint32_t k = 0; k <= p->replays; k++) {
		if (units(&p->gap, k) == 0)
			return "replay_gap";
		if (preference(p, k) > units(&p->gap, k))
			return "preference";
		begin = sum;
		sum += units(&p->gap, k);
		if (sum * p->unit_ms > UINT32_MAX)
			return "horizon";
		t->prefer[k] = (int64_t)(begin + preference(p, k)) * unit;
		t->end[k] = (int64_t)sum * unit;
	}
	begin = sum;
	sum += p->final_units;
	if (sum * p->unit_ms > UINT32_MAX)
		return "horizon";
	t->prefer[final] = (int64_t)(begin + p->final_preference) * unit;
	t->end[final] = t->horizon = (int64_t)sum * unit;
	t->rounds = p->replays + 1;
	t->intervals = t->rounds + (p->final_units > 0);
	return NULL;
}
