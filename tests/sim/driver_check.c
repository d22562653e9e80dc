/*
 * The properties that hold for whatever the world does to an operation. They
 * are judged by what the driver fed and took, not by the oracle.
 */
#include "tests/sim/driver_private.h"

#include <inttypes.h>
#include <string.h>

void
driver_broken(struct driver *d, const struct driver_op *op, const char *what)
{
	if (d->broken[0] != '\0')
		return;
	snprintf(d->broken, sizeof(d->broken),
	    "at %" PRId64 " operation %u: %s", d->now, op->index, what);
	d->broken_op = op->index;
}

static void
hold(struct driver *d, const struct driver_op *op, bool holds, const char *what)
{
	if (!holds)
		driver_broken(d, op, what);
}

static uint32_t
lowest(uint64_t set)
{
	return (uint32_t)__builtin_ctzll(set);
}

static int64_t
prefer_end(const struct driver *d, const struct driver_op *op)
{
	const struct policy_plan *plan = &d->true_plan;

	return op->start + (op->op.round < plan->rounds
				   ? plan->prefer_end_us[op->op.round]
				   : plan->final_prefer_end_us);
}

static int64_t
round_end(const struct driver *d, const struct driver_op *op)
{
	const struct policy_plan *plan = &d->true_plan;

	return op->start + (op->op.round < plan->rounds
				   ? plan->round_end_us[op->op.round]
				   : plan->horizon_us);
}

static int64_t
horizon(const struct driver *d, const struct driver_op *op)
{
	return op->start + d->true_plan.horizon_us;
}

/* An order-dependent sum of who is in it and where. */
uint64_t
driver_check_seal(const struct members *m)
{
	uint64_t sum = m->count;

	for (uint32_t i = 0; i < m->count; i++)
		sum = scenario_mix(sum ^ m->list[i].server_id) +
		      m->list[i].addrs[0].port;
	return sum;
}

void
driver_check_snapshot(struct driver *d, const struct driver_op *op)
{
	hold(d, op, op->seal == driver_check_seal(op->members),
	    "its snapshot has changed");
}

void
driver_check_begun(struct driver *d, struct driver_op *op, uint64_t suspected)
{
	const struct members *m = op->members;
	const uint64_t trusted = op->op.members & ~suspected;

	for (uint32_t i = 1; i < m->count; i++)
		hold(d, op, m->list[i - 1].server_id < m->list[i].server_id,
		    "its snapshot is not oldest first");
	op->preferred = trusted != 0 ? lowest(trusted) : 0;
	op->state = op->op.state;
	hold(d, op, op->op.preferred == op->preferred,
	    "it does not prefer the oldest that is trusted");
	hold(d, op, __builtin_popcountll(op->op.members) == (int)m->count,
	    "it has not the members of its snapshot");
}

void
driver_check_same(struct driver *d, const struct driver_op *op,
    const struct policy_op *before, const char *what)
{
	hold(d, op, memcmp(before, &op->op, sizeof(*before)) == 0, what);
	hold(d, op, policy_op_timeout(before) == policy_op_timeout(&op->op),
	    what);
}

void
driver_check_answer(struct driver *d, struct driver_op *op, uint32_t place,
    bool kept, const struct policy_op *before)
{
	const uint64_t bit = UINT64_C(1) << place;
	const bool again = (op->fed & bit) != 0;
	const bool oldest = op->fed == 0 || place < lowest(op->fed);

	hold(d, op, kept == (!op->over && !again && oldest),
	    "the candidate is not the oldest answer");
	if (op->over)
		driver_check_same(
		    d, op, before, "an answer after the end changes it");
	if (again)
		driver_check_same(d, op, before, "a duplicate changes it");
}

void
driver_check_send(
    struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	const bool delivery = a->act == POLICY_DELIVER;

	hold(d, op, !op->over, "it sends after its completion");
	hold(d, op, d->now < horizon(d, op),
	    "it sends at or after the deduplication deadline");
	hold(d, op, a->targets != 0, "it sends to nobody");
	hold(d, op, (a->targets & ~op->op.members) == 0,
	    "it sends to who is not in its snapshot");
	hold(d, op, (a->targets & op->fed) == 0,
	    "it sends to a server that has answered");
	if (delivery) {
		hold(d, op, d->true_plan.completion_delivery && op->fed != 0,
		    "it delivers without a cause");
		return;
	}
	hold(d, op, op->fed == 0, "it replays though it has a candidate");
	hold(d, op, d->now < op->deadline,
	    "it sends when its caller has given up");
	hold(d, op, a->round < d->true_plan.rounds,
	    "it sends in the final interval");
	hold(d, op, op->sends == 0 || a->round > op->last_round,
	    "it sends twice in a round");
	hold(d, op,
	    a->round == 0 ||
		d->now >= op->start + d->true_plan.round_end_us[a->round - 1],
	    "it replays before the replay deadline");
}

void
driver_check_missed(
    struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	hold(d, op, d->true_plan.suspect_after > 0,
	    "it misses without suspect_after");
	hold(d, op, !op->missed && !op->over, "it misses twice or too late");
	hold(d, op, a->server == op->preferred,
	    "it misses another server than the preferred");
	hold(d, op, (op->fed >> a->server & 1) == 0,
	    "it misses a server that has answered");
	hold(d, op, d->now >= op->start + d->true_plan.prefer_end_us[0],
	    "it misses before the preference deadline");
}

static bool
may_decide(const struct driver *d, const struct driver_op *op)
{
	return op->fed != 0 &&
	       (lowest(op->fed) <= op->preferred ||
		   d->now >= prefer_end(d, op) || d->now >= op->deadline);
}

void
driver_check_end(
    struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	hold(d, op, !op->over, "it completes twice");
	switch (a->end) {
	case POLICY_SELECTED:
		hold(d, op, may_decide(d, op), "it decides too early");
		hold(d, op, op->fed != 0 && a->server == lowest(op->fed),
		    "not the oldest answer decides");
		return;
	case POLICY_TIMEOUT:
		hold(d, op, op->fed == 0, "it fails though it has an answer");
		hold(d, op, d->now >= horizon(d, op) || d->now >= op->deadline,
		    "it times out too early");
		return;
	case POLICY_NO_SERVER:
		hold(d, op, op->members->count == 0, "it had servers");
		return;
	case POLICY_NOT_SENT:
		hold(d, op, op->sends == 1 && op->fed == 0,
		    "it gives up though something was sent");
		return;
	case POLICY_STOPPED:
		hold(d, op, op->called, "it was not cancelled");
		return;
	}
}

/* Which states may come after which; section 6.2. */
static bool
may_follow(enum policy_state from, enum policy_state to)
{
	switch (from) {
	case POLICY_PREPARED:
		return true;
	case POLICY_ROUND:
		return to != POLICY_PREPARED;
	case POLICY_FINAL:
		return to != POLICY_PREPARED && to != POLICY_ROUND;
	case POLICY_TERMINAL:
	case POLICY_CANCELLED:
		return to == from;
	}
	return false;
}

static void
check_over(struct driver *d, struct driver_op *op)
{
	struct policy_op before;

	memcpy(&before, &op->op, sizeof(before));
	hold(d, op, policy_op_timeout(&op->op) == POLICY_NEVER,
	    "it has a timeout after its end");
	hold(d, op, policy_op_next(&op->op, d->now).act == POLICY_NOTHING,
	    "it acts after its end");
	driver_check_same(d, op, &before, "it changes after its end");
}

void
driver_check_rest(struct driver *d, struct driver_op *op)
{
	const struct policy_op *p = &op->op;

	hold(d, op, may_follow(op->state, p->state), "its state goes back");
	op->state = p->state;
	hold(d, op,
	    p->plan == &d->plan && p->start == op->start &&
		p->preferred == op->preferred &&
		(p->deadline == op->deadline || d->flaw == FLAW_PATIENT),
	    "what it froze has changed");
	hold(d, op, op->over || p->answered == op->fed,
	    "it has other answers than were fed");
	hold(d, op,
	    op->over ==
		(p->state == POLICY_TERMINAL || p->state == POLICY_CANCELLED),
	    "it is over without a completion");
	if (op->over) {
		check_over(d, op);
		return;
	}
	hold(d, op, policy_op_timeout(p) > d->now, "a timeout in the past");
	hold(d, op, d->now < op->deadline && d->now < round_end(d, op),
	    "it outlives a deadline");
	hold(d, op, !may_decide(d, op), "it does not decide though it may");
}
