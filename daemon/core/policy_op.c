/*
 * The operation half of policy.h: one rate request from its first send to its
 * one completion. The owner feeds what happened, lets policy_op_advance()
 * judge it against the clock, and takes actions until there are none.
 *
 * Invariant: a round is left only without a candidate, so op->round is the
 * round of every recorded answer and its preference deadline is the one that
 * counts, however late the owner comes to look.
 */
#include "daemon/core/policy.h"

#include <assert.h>

static bool
over(const struct policy_op *op)
{
	return op->state == POLICY_TERMINAL || op->state == POLICY_CANCELLED;
}

static uint64_t
all_servers(uint32_t servers)
{
	return servers < 64 ? (UINT64_C(1) << servers) - 1 : UINT64_MAX;
}

/* The oldest server that answered; there must be one. */
static uint32_t
candidate(const struct policy_op *op)
{
	uint32_t i = 0;

	while ((op->answered >> i & 1) == 0)
		i++;
	return i;
}

/* The oldest server that is not suspected; the oldest when all are. */
static uint32_t
preferred(uint64_t members, uint64_t suspected)
{
	const uint64_t trusted = members & ~suspected;

	return trusted != 0 ? (uint32_t)__builtin_ctzll(trusted) : 0;
}

/* Has the preferred server answered, or an older one? */
static bool
decisive(const struct policy_op *op)
{
	return op->answered != 0 && candidate(op) <= op->preferred;
}

/* The deduplication deadline: nothing is ever sent from here on. */
static int64_t
horizon(const struct policy_op *op)
{
	return op->start + op->plan->horizon_us;
}

/* When the preferred server has missed its chance in round 0. */
static int64_t
watch_end(const struct policy_op *op)
{
	return op->start + op->plan->prefer_end_us[0];
}

static int64_t
prefer_end(const struct policy_op *op)
{
	const struct policy_plan *plan = op->plan;

	return op->start + (op->round < plan->rounds
				   ? plan->prefer_end_us[op->round]
				   : plan->final_prefer_end_us);
}

static int64_t
round_end(const struct policy_op *op)
{
	const struct policy_plan *plan = op->plan;

	return op->start + (op->round < plan->rounds
				   ? plan->round_end_us[op->round]
				   : plan->horizon_us);
}

/* The only way to be over. What was still to be sent is dropped. */
static void
finish(struct policy_op *op, enum policy_state state, enum policy_end end)
{
	op->state = state;
	op->end = end;
	op->pending_send = 0;
	op->complete_due = true;
}

static void
select_candidate(struct policy_op *op)
{
	finish(op, POLICY_TERMINAL, POLICY_SELECTED);
	if (op->plan->completion_delivery)
		op->pending_send = op->members & ~op->answered;
}

static void
watch(struct policy_op *op, int64_t now)
{
	if (!op->watching || now < watch_end(op))
		return;
	op->watching = false;
	op->missed_due = (op->answered >> op->preferred & 1) == 0;
}

/* Enters the round of the clock; those that a stall passed over stay unsent. */
static void
enter_round(struct policy_op *op, int64_t now)
{
	const struct policy_plan *plan = op->plan;
	const bool has_final =
	    plan->horizon_us > plan->round_end_us[plan->rounds - 1];
	const uint32_t last = has_final ? plan->rounds : plan->rounds - 1;
	const uint32_t from = op->round;

	while (op->round < last && now >= round_end(op))
		op->round++;
	if (now >= horizon(op)) {
		finish(op, POLICY_TERMINAL, POLICY_TIMEOUT);
	} else if (op->round == plan->rounds) {
		op->state = POLICY_FINAL;
		op->pending_send = 0;
	} else if (op->round != from) {
		op->pending_send = op->members & ~op->answered;
	}
}

void
policy_op_init(struct policy_op *op, const struct policy_plan *plan,
    uint32_t servers, uint64_t suspected, int64_t start, int64_t deadline,
    int64_t now)
{
	assert(servers <= POLICY_MAX_SERVERS);
	*op = (struct policy_op){
	    .plan = plan,
	    .start = start,
	    .deadline = deadline,
	    .members = all_servers(servers),
	    .pending_send = all_servers(servers),
	    .preferred = preferred(all_servers(servers), suspected),
	    .state = POLICY_PREPARED,
	    .watching =
		plan->suspect_after > 0 && now < start + plan->prefer_end_us[0],
	};
	if (servers == 0)
		finish(op, POLICY_TERMINAL, POLICY_NO_SERVER);
	else
		policy_op_advance(op, now);
}

bool
policy_op_answer(struct policy_op *op, uint32_t server)
{
	uint64_t bit;

	if (server >= POLICY_MAX_SERVERS)
		return false;
	bit = UINT64_C(1) << server;
	/* It needs no further copy, completion delivery included. */
	op->pending_send &= ~bit;
	if (over(op) || (op->members & bit) == 0 || (op->answered & bit) != 0)
		return false;
	op->answered |= bit;
	return candidate(op) == server;
}

void
policy_op_sent(struct policy_op *op, uint64_t taken)
{
	assert(op->state != POLICY_PREPARED);
	assert((taken & ~op->members) == 0);
	if (over(op))
		return;
	if (taken != 0)
		op->sent_any = true;
	else if (!op->sent_any && op->answered == 0)
		finish(op, POLICY_TERMINAL, POLICY_NOT_SENT);
}

void
policy_op_cancel(struct policy_op *op)
{
	if (!over(op))
		finish(op, POLICY_CANCELLED, POLICY_STOPPED);
}

void
policy_op_advance(struct policy_op *op, int64_t now)
{
	if (over(op))
		return;
	watch(op, now);
	if (decisive(op))
		select_candidate(op);
	else if (op->answered != 0) {
		if (now >= prefer_end(op) || now >= op->deadline)
			select_candidate(op);
	} else if (now >= op->deadline)
		finish(op, POLICY_TERMINAL, POLICY_TIMEOUT);
	else
		enter_round(op, now);
}

/* Takes the targets of the due send, if the clock still allows one. */
static bool
take_targets(struct policy_op *op, int64_t now, int64_t until,
    struct policy_action *action)
{
	action->targets = op->pending_send;
	op->pending_send = 0;
	if (action->targets != 0 && now < until)
		return true;
	action->targets = 0;
	return false;
}

struct policy_action
policy_op_next(struct policy_op *op, int64_t now)
{
	struct policy_action action = {
	    .act = POLICY_NOTHING, .round = op->round};
	const int64_t last =
	    op->deadline < horizon(op) ? op->deadline : horizon(op);

	if (op->missed_due) {
		op->missed_due = false;
		action.act = POLICY_MISSED;
		action.server = op->preferred;
		return action;
	}
	if (!over(op)) {
		if (take_targets(op, now, last, &action)) {
			op->state = POLICY_ROUND;
			action.act = POLICY_SEND;
		}
		return action;
	}
	/* Only a selection leaves something to be sent: its delivery. */
	if (take_targets(op, now, horizon(op), &action)) {
		action.act = POLICY_DELIVER;
		return action;
	}
	if (op->complete_due) {
		op->complete_due = false;
		action.act = POLICY_COMPLETE;
		action.end = op->end;
		if (op->end == POLICY_SELECTED)
			action.server = candidate(op);
	}
	return action;
}

int64_t
policy_op_timeout(const struct policy_op *op)
{
	int64_t at;

	if (over(op))
		return POLICY_NEVER;
	if (decisive(op))
		return op->start; /* recorded, not judged: due at once */
	at = op->answered != 0 ? prefer_end(op) : round_end(op);
	if (op->watching && watch_end(op) < at)
		at = watch_end(op);
	return at < op->deadline ? at : op->deadline;
}
