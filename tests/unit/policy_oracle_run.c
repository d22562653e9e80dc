/*
 * Random operations for the oracle. All chance comes from the pick callback,
 * so a seed or a fuzzer's input replays a run exactly.
 */
#include "tests/unit/policy_oracle.h"

struct run {
	oracle_pick *pick;
	void *arg;
	struct oracle o;
	uint64_t suspected;
	bool watched; /* P(0) was ahead when it began */
};

static uint32_t
pick(struct run *r, uint32_t bound)
{
	return r->pick(r->arg, bound);
}

static bool
one_in(struct run *r, uint32_t n)
{
	return pick(r, n) == n - 1;
}

static struct schedule
pick_schedule(struct run *r, uint32_t least, uint32_t most)
{
	struct schedule s = {
	    .kind = (enum schedule_kind)pick(r, 3),
	    .initial = least + pick(r, most - least + 1),
	    .growth = pick(r, 4),
	};

	s.max = s.initial + pick(r, 12);
	if (one_in(r, 50)) /* extremes, refused or saturated */
		s.growth = UINT32_MAX;
	if (one_in(r, 50))
		s.max = pick(r, 2) != 0 ? UINT32_MAX : pick(r, 3);
	return s;
}

static struct policy
pick_policy(struct run *r)
{
	static const uint32_t unit_ms[] = {20, 1, 7, 1000, 0, UINT32_MAX};
	struct policy p = {
	    .unit_ms = unit_ms[one_in(r, 20) ? pick(r, 6) : pick(r, 4)],
	    .replay_count = one_in(r, 20) ? pick(r, 34) : pick(r, 5),
	    .gap = pick_schedule(r, one_in(r, 50) ? 0 : 1, 4),
	    .first_round = one_in(r, 5),
	    .final_units = pick(r, 4),
	    .completion_delivery = pick(r, 4) != 0,
	};

	p.preference = pick_schedule(r, 0, p.gap.initial);
	if (pick(r, 3) != 0) {
		p.preference.kind = SCHEDULE_FIXED;
		if (p.preference.initial > p.gap.initial)
			p.preference.initial = p.gap.initial;
	}
	if (!p.first_round || one_in(r, 10))
		p.final_preference_units = pick(r, p.final_units + 1);
	if (one_in(r, 50))
		p.final_preference_units++;
	if (pick(r, 2) != 0)
		p.suspect_after = 1 + pick(r, 3);
	return p;
}

/* Anywhere in [0, 1.25 H], sometimes exactly on an edge of the schedule. */
static int64_t
pick_offset(struct run *r)
{
	const struct policy_plan *plan = &r->o.plan;
	uint32_t k = pick(r, plan->rounds);

	switch (pick(r, 6)) {
	case 0:
		return plan->round_end_us[k];
	case 1:
		return plan->prefer_end_us[k];
	case 2:
		return plan->final_prefer_end_us;
	case 3:
		return plan->horizon_us;
	default:
		return plan->horizon_us / 1000 * pick(r, 1250);
	}
}

/* Mostly nobody or some of the oldest, at times everybody. */
static uint64_t
pick_suspected(struct run *r)
{
	switch (pick(r, 4)) {
	case 0:
		return one_in(r, 3) ? UINT64_MAX : 1;
	case 1:
		return pick(r, 32);
	default:
		return 0;
	}
}

static void
start(struct run *r)
{
	static const uint32_t few[] = {2, 3, 1, 5, 0, 63, 64, 4};
	const int64_t start_at = 1000000 + pick(r, 1000);
	uint32_t servers = few[one_in(r, 10) ? pick(r, 8) : pick(r, 4)];
	int64_t deadline = POLICY_NEVER;
	int64_t now = start_at;

	if (one_in(r, 4))
		deadline = start_at + pick_offset(r) - pick(r, 2);
	if (one_in(r, 6))
		now += pick_offset(r);
	r->suspected = pick_suspected(r);
	oracle_start(&r->o, servers, r->suspected, start_at, deadline, now);
	r->watched = r->o.may_miss;
}

/* Where the clock may jump next: mostly just before, at or after an edge. */
static int64_t
pick_now(struct run *r)
{
	const struct oracle *o = &r->o;
	int64_t at = policy_op_timeout(&o->op);

	switch (pick(r, 5)) {
	case 0:
		at = o->start + pick_offset(r);
		break;
	case 1:
		at = o->now + pick(r, 500);
		break;
	default:
		break;
	}
	if (at == POLICY_NEVER)
		at = o->now;
	at += (int64_t)pick(r, 3) - 1;
	return at > o->now ? at : o->now;
}

/* The kernel's answer to a send: mostly all, else some or none. */
static uint64_t
pick_taken(struct run *r, uint64_t targets)
{
	uint32_t how = pick(r, 8);

	if (how == 0)
		return 0;
	return how == 1 ? targets & pick(r, 256) : targets;
}

static void
drain(struct run *r)
{
	struct policy_action a;

	for (int i = 0; i < 4; i++) {
		a = oracle_next(&r->o);
		if (a.act == POLICY_NOTHING)
			return;
		if (a.act == POLICY_SEND)
			oracle_sent(&r->o, pick_taken(r, a.targets));
	}
	if (r->o.broken == NULL)
		r->o.broken = "actions come to an end";
}

static void
step(struct run *r)
{
	struct oracle *o = &r->o;
	uint32_t batch;

	switch (pick(r, 8)) {
	case 0:
	case 1: /* a batch, judged later or with the clock of the past */
		for (batch = 1 + pick(r, 3); batch > 0; batch--)
			oracle_answer(o, pick(r, one_in(r, 8) ? 70 : 5));
		break;
	case 2:
		drain(r); /* takes without a judgement */
		return;
	case 3:
		if (one_in(r, 12))
			oracle_cancel(o);
		break;
	case 4: /* the clock moves and the owner stalls */
		o->now = pick_now(r);
		return;
	default:
		o->now = pick_now(r);
		break;
	}
	oracle_advance(o, o->now);
	if (pick(r, 4) != 0)
		drain(r);
}

/* An owner that only sleeps until the next timeout must reach the end. */
static void
run_out(struct run *r)
{
	struct oracle *o = &r->o;
	int64_t at;

	for (uint32_t i = 0; i < o->plan.rounds + 3; i++) {
		at = policy_op_timeout(&o->op);
		if (at == POLICY_NEVER)
			break;
		oracle_advance(o, at > o->now ? at : o->now);
		drain(r);
	}
	drain(r);
	if (o->broken == NULL && (!o->over || o->completions != 1))
		o->broken = "the timeouts alone lead to the completion";
	oracle_answer(o, 0);
	oracle_cancel(o);
	oracle_advance(o, o->now + 1);
	drain(r);
}

static void
tally_adaptive(const struct run *r, struct oracle_reach *reach)
{
	const struct oracle *o = &r->o;
	const bool at_once = o->at_once && o->preferred > 0;

	reach->missed += o->misses;
	reach->spared += r->watched && o->misses == 0;
	reach->by_preferred += at_once && o->server == o->preferred;
	reach->by_suspect += at_once && o->server < o->preferred;
	reach->all_suspect +=
	    o->members != 0 && (o->members & ~r->suspected) == 0;
}

static void
tally(const struct run *r, struct oracle_reach *reach)
{
	const struct oracle *o = &r->o;

	tally_adaptive(r, reach);

	reach->ends[o->end]++;
	reach->finals += o->round > o->policy.replay_count;
	reach->deliveries += o->deliveries;
	reach->skipped += o->sends < o->round && o->sends > 0 &&
			  o->round <= o->policy.replay_count;
}

const char *
oracle_run(
    oracle_pick *source, void *arg, unsigned steps, struct oracle_reach *reach)
{
	struct run r = {.pick = source, .arg = arg};
	struct policy p = pick_policy(&r);

	if (!oracle_policy(&r.o, &p)) {
		if (reach != NULL)
			reach->refused++;
		return r.o.broken;
	}
	start(&r);
	while (steps-- > 0 && r.o.broken == NULL)
		step(&r);
	run_out(&r);
	if (reach != NULL)
		tally(&r, reach);
	return r.o.broken;
}
