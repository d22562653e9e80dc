/*
 * The naive model keeps no plan: it adds the units up again for every
 * question, which is slow, obvious and unlike the code under test.
 */
#include "tests/unit/policy_oracle.h"

#include <string.h>

static void
check(struct oracle *o, bool holds, const char *what)
{
	if (!holds && o->broken == NULL)
		o->broken = what;
}

/* Steps up to k one at a time; real schedules use closed forms or 64 bits. */
static uint64_t
units(const struct schedule *s, uint32_t k)
{
	uint64_t v = s->initial;

	if (s->kind == SCHEDULE_FIXED)
		return v;
	for (uint32_t i = 0; i < k && v < s->max; i++)
		v = s->kind == SCHEDULE_LINEAR ? v + s->growth : v * s->growth;
	return v < s->max ? v : s->max;
}

static uint64_t
prefer_units(const struct policy *p, uint32_t k)
{
	if (!p->first_round)
		return units(&p->preference, k);
	return k == 0 ? units(&p->gap, 0) : 0;
}

static bool
good_schedule(const struct schedule *s, uint32_t least)
{
	if (s->initial < least)
		return false;
	if (s->kind == SCHEDULE_EXPONENTIAL && s->growth == 0)
		return false;
	return s->kind == SCHEDULE_FIXED || s->max >= s->initial;
}

static bool
good_policy(const struct policy *p)
{
	long double total = p->final_units;

	if (p->unit_ms == 0 || p->replay_count > POLICY_MAX_REPLAYS)
		return false;
	if (!good_schedule(&p->gap, 1))
		return false;
	if (p->final_preference_units > (p->first_round ? 0 : p->final_units))
		return false;
	if (!p->first_round && !good_schedule(&p->preference, 0))
		return false;
	for (uint32_t k = 0; k <= p->replay_count; k++) {
		if (prefer_units(p, k) > units(&p->gap, k))
			return false;
		total += units(&p->gap, k);
	}
	return total * p->unit_ms <= UINT32_MAX;
}

bool
oracle_policy(struct oracle *o, const struct policy *p)
{
	struct policy_plan untouched;
	bool accepted;

	memset(o, 0, sizeof(*o));
	memset(&untouched, 0xA5, sizeof(untouched));
	o->plan = untouched;
	o->policy = *p;
	accepted = policy_plan_init(&o->plan, p, &o->why) == 0;
	check(o, accepted == good_policy(p), "accepts exactly valid policies");
	check(o, accepted == (o->why.reason == NULL),
	    "says why exactly on refusal");
	if (!accepted)
		check(o, memcmp(&o->plan, &untouched, sizeof(untouched)) == 0,
		    "a refusal leaves the plan alone");
	return accepted;
}

static int64_t
unit_us(const struct oracle *o)
{
	return (int64_t)o->policy.unit_ms * 1000;
}

/* When round k begins; N + 1 is the final interval, N + 2 the horizon. */
static int64_t
begins(const struct oracle *o, uint32_t k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < k && i <= o->policy.replay_count; i++)
		sum += units(&o->policy.gap, i);
	if (k == o->policy.replay_count + 2)
		sum += o->policy.final_units;
	return o->start + (int64_t)sum * unit_us(o);
}

static int64_t
preferred_until(const struct oracle *o, uint32_t round)
{
	uint64_t p = round <= o->policy.replay_count
			 ? prefer_units(&o->policy, round)
			 : o->policy.final_preference_units;

	return begins(o, round) + (int64_t)p * unit_us(o);
}

/* Asks one server after the other, oldest first. */
static uint32_t
whom_to_prefer(uint32_t servers, uint64_t suspected)
{
	for (uint32_t i = 0; i < servers; i++) {
		if ((suspected >> i & 1) == 0)
			return i;
	}
	return 0;
}

static uint32_t
lowest(uint64_t bits)
{
	return (uint32_t)__builtin_ctzll(bits);
}

static void
decide(struct oracle *o, enum policy_end end)
{
	o->over = true;
	o->end = end;
	o->send_due = false;
	o->may_miss = false;
	if (end == POLICY_SELECTED) {
		o->server = lowest(o->answered);
		o->at_once = o->now < preferred_until(o, o->round) &&
			     o->now < o->deadline;
		o->deliver_due = o->policy.completion_delivery;
	}
}

static enum policy_state
expected_state(const struct oracle *o)
{
	if (o->over)
		return o->end == POLICY_STOPPED ? POLICY_CANCELLED
						: POLICY_TERMINAL;
	if (o->round > o->policy.replay_count)
		return POLICY_FINAL;
	return o->prepared ? POLICY_PREPARED : POLICY_ROUND;
}

static int64_t
expected_timeout(const struct oracle *o)
{
	int64_t at;

	if (o->over)
		return POLICY_NEVER;
	if ((o->answered & o->decisive) != 0)
		return o->start;
	at = o->answered != 0 ? preferred_until(o, o->round)
			      : begins(o, o->round + 1);
	if (o->may_miss && preferred_until(o, 0) < at)
		at = preferred_until(o, 0);
	return at < o->deadline ? at : o->deadline;
}

static void
compare(struct oracle *o)
{
	check(o, o->op.state == expected_state(o), "the state");
	check(o, o->op.round == o->round, "the round");
	check(o, policy_op_timeout(&o->op) == expected_timeout(o),
	    "the next timeout");
}

/* Every round begins with a send to whoever is missing; no round is redone. */
static void
move_round(struct oracle *o)
{
	const uint32_t last =
	    o->policy.replay_count + (o->policy.final_units > 0 ? 1 : 0);
	uint32_t round = last;

	while (round > o->round && o->now < begins(o, round))
		round--;
	if (round != o->round)
		o->send_due = round <= o->policy.replay_count;
	o->round = round;
	if (o->now >= o->horizon)
		decide(o, POLICY_TIMEOUT);
}

/* The first look at or after P(0) tells, whatever is decided then. */
static void
look_for_miss(struct oracle *o)
{
	if (o->may_miss && o->now >= preferred_until(o, 0)) {
		o->may_miss = false;
		o->missed_due = (o->answered >> o->preferred & 1) == 0;
	}
}

static void
judge(struct oracle *o)
{
	const bool out_of_time = o->now >= o->deadline;

	if (o->over)
		return;
	look_for_miss(o);
	if (o->answered != 0) {
		if ((o->answered & o->decisive) != 0 || out_of_time ||
		    o->now >= preferred_until(o, o->round))
			decide(o, POLICY_SELECTED);
	} else if (out_of_time)
		decide(o, POLICY_TIMEOUT);
	else
		move_round(o);
}

/* What must hold of any policy, said without the model. */
static void
check_progress(struct oracle *o)
{
	const bool late = o->now >= o->horizon || o->now >= o->deadline;

	check(o, !late || o->over, "over by the horizon and the deadline");
	check(o, policy_op_timeout(&o->op) > o->now,
	    "no timeout is left in the past");
	check(o, (o->answered & 1) == 0 || o->over,
	    "the oldest server decides at once");
	check(o, (o->answered & o->decisive) == 0 || o->over,
	    "the preferred server, or an older one, decides at once");
}

void
oracle_start(struct oracle *o, uint32_t servers, uint64_t suspected,
    int64_t start, int64_t deadline, int64_t now)
{
	o->start = start;
	o->deadline = deadline;
	o->now = now;
	o->horizon = begins(o, o->policy.replay_count + 2);
	o->members = servers == 64 ? UINT64_MAX : (UINT64_C(1) << servers) - 1;
	o->preferred = whom_to_prefer(servers, suspected);
	o->decisive = UINT64_MAX >> (63 - o->preferred);
	o->may_miss =
	    o->policy.suspect_after > 0 && now < preferred_until(o, 0);
	o->prepared = true;
	o->send_due = servers > 0;
	if (servers == 0)
		decide(o, POLICY_NO_SERVER);
	else
		judge(o);
	policy_op_init(
	    &o->op, &o->plan, servers, suspected, start, deadline, now);
	check(o, o->op.preferred == o->preferred, "the preferred server");
	compare(o);
	check_progress(o);
	check(o, o->plan.horizon_us == o->horizon - start, "the horizon");
	check(o, (int64_t)o->plan.ttl_ms * 1000 == o->plan.horizon_us,
	    "the TTL is the horizon");
}

bool
oracle_answer(struct oracle *o, uint32_t server)
{
	uint64_t bit = server < 64 ? UINT64_C(1) << server & o->members : 0;
	bool fresh = !o->over && bit != 0 && (o->answered & bit) == 0;
	bool candidate = fresh && (o->answered & (bit - 1)) == 0;

	if (fresh)
		o->answered |= bit;
	else if (o->over)
		o->late |= bit;
	check(o, policy_op_answer(&o->op, server) == candidate,
	    "only a new oldest answer is kept");
	compare(o);
	return candidate;
}

void
oracle_sent(struct oracle *o, uint64_t taken)
{
	o->taken_any = o->taken_any || (taken != 0 && !o->over);
	if (!o->over && !o->taken_any && o->answered == 0)
		decide(o, POLICY_NOT_SENT);
	policy_op_sent(&o->op, taken);
	compare(o);
}

void
oracle_cancel(struct oracle *o)
{
	if (!o->over)
		decide(o, POLICY_STOPPED);
	policy_op_cancel(&o->op);
	compare(o);
}

void
oracle_advance(struct oracle *o, int64_t now)
{
	o->now = now;
	judge(o);
	policy_op_advance(&o->op, now);
	compare(o);
	check_progress(o);
}

static struct policy_action
expected_action(struct oracle *o)
{
	struct policy_action a = {.act = POLICY_NOTHING, .round = o->round};
	const uint64_t missing = o->members & ~o->answered & ~o->late;
	const bool open = missing != 0 && o->now < o->horizon;

	if (o->missed_due) { /* before all else, and nothing else is taken */
		o->missed_due = false;
		a.act = POLICY_MISSED;
		a.server = o->preferred;
		return a;
	}
	if (o->send_due && open && o->now < o->deadline)
		a.act = POLICY_SEND;
	else if (o->deliver_due && open)
		a.act = POLICY_DELIVER;
	else if (o->over && o->completions == 0)
		a.act = POLICY_COMPLETE;
	if (a.act == POLICY_SEND || a.act == POLICY_DELIVER)
		a.targets = missing;
	if (a.act == POLICY_COMPLETE) {
		a.end = o->end;
		a.server = o->end == POLICY_SELECTED ? o->server : 0;
	}
	o->send_due = o->deliver_due = false;
	return a;
}

/* What must hold of any action, said without the model. */
static void
check_action(struct oracle *o, const struct policy_action *got)
{
	if (got->act == POLICY_SEND || got->act == POLICY_DELIVER) {
		check(o, got->targets != 0, "a send has targets");
		check(o, (got->targets & (o->answered | o->late)) == 0,
		    "no send to a server that answered");
		check(o, o->now < o->horizon, "no send after the horizon");
		check(o, o->completions == 0, "no send after completion");
	}
	if (got->act == POLICY_MISSED)
		check(o, o->now >= preferred_until(o, 0),
		    "no miss before P(0) is over");
	check(o, o->misses <= (o->policy.suspect_after > 0 ? 1 : 0),
	    "at most one miss, and none without suspect_after");
	check(o, o->deliveries <= 1, "one completion delivery");
	check(o, o->completions <= 1, "one completion");
	check(o, o->sends <= o->policy.replay_count + 1, "one send a round");
}

struct policy_action
oracle_next(struct oracle *o)
{
	const struct policy_action want = expected_action(o);
	const struct policy_action got = policy_op_next(&o->op, o->now);

	check(o, got.act == want.act, "the kind of the next action");
	check(o, got.targets == want.targets, "the targets of a send");
	check(o, got.round == want.round, "the round of an action");
	check(
	    o, got.end == want.end && got.server == want.server, "the result");
	if (got.act == POLICY_SEND) {
		o->prepared = false;
		o->sends++;
	}
	o->misses += got.act == POLICY_MISSED;
	o->deliveries += got.act == POLICY_DELIVER;
	o->completions += got.act == POLICY_COMPLETE;
	check_action(o, &got);
	compare(o);
	return got;
}
