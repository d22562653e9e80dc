/*
 * One operation as its owner handles it. The journal is written here, and here
 * most flaws come in.
 */
#include "tests/sim/driver_private.h"

#include <string.h>

uint64_t
driver_op_servers(const struct driver_op *op, uint64_t places)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < op->j->ranked; i++) {
		if ((places >> i & 1) != 0)
			set |= UINT64_C(1) << op->j->rank[i];
	}
	return set;
}

/* The scenario's number of a server. */
static uint32_t
find_server(const struct driver *d, uint64_t id)
{
	uint32_t i = 0;

	while (i < d->sc->servers - 1 && d->sc->server[i].id != id)
		i++;
	return i;
}

static void
put_answers(struct driver *d, const struct driver_op *op, uint32_t server,
    uint32_t copy, int64_t at)
{
	struct network_datagram back[NETWORK_ANSWERS_MAX];
	const size_t count =
	    network_carry(d->sc, op->index, server, copy, at, back);

	for (size_t i = 0; i < count; i++) {
		if (back[i].at > d->now)
			driver_queue_put(&d->queue, &back[i]);
	}
}

/* Returns the places that the kernel took. */
static uint64_t
transmit(struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	struct journal_send send = {
	    .at = d->now,
	    .to = driver_op_servers(op, a->targets),
	    .round = a->round,
	    .delivery = a->act == POLICY_DELIVER,
	};
	uint64_t places = 0;
	uint32_t server;

	for (uint32_t i = 0; i < op->j->ranked; i++) {
		if ((a->targets >> i & 1) == 0)
			continue;
		server = op->j->rank[i];
		if (network_refuses(d->sc, op->index, server,
			op->copies[server]++, op->j->sends == 0))
			continue;
		places |= UINT64_C(1) << i;
		send.taken |= UINT64_C(1) << server;
		put_answers(d, op, server, op->copies[server] - 1, d->now);
	}
	if (d->flaw == FLAW_LATE_DELIVERY && send.delivery)
		send.at += 1000;
	if (!journal_add_send(op->j, &send))
		driver_broken(d, op, "more sends than rounds");
	d->reach->count[REACH_PARTIAL] +=
	    send.taken != 0 && send.taken != send.to;
	d->reach->count[REACH_REFUSED_SENDS] +=
	    send.taken == 0 && op->j->sends > 1;
	return places;
}

static void
do_send(struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	driver_check_send(d, op, a);
	d->reach->count[REACH_SENDS]++;
	d->reach->count[REACH_REPLAYS] += op->sends > 0;
	op->sends++;
	op->last_round = a->round;
	policy_op_sent(&op->op, transmit(d, op, a));
}

static void
do_deliver(
    struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	struct policy_action wide = *a;

	driver_check_send(d, op, a);
	d->reach->count[REACH_DELIVERIES]++;
	if (d->flaw == FLAW_DELIVERS_TO_ALL)
		wide.targets = op->op.members;
	transmit(d, op, &wide);
}

static void
do_missed(struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	const uint32_t server = op->j->rank[a->server];

	driver_check_missed(d, op, a);
	op->missed = true;
	op->j->missed_at = d->now;
	op->j->missed = server;
	d->reach->count[REACH_MISSES]++;
	if (d->flaw != FLAW_FORGIVING &&
	    suspect_missed(
		&d->suspect[server], d->plan.suspect_after, op->op.start))
		d->reach->count[REACH_RAISED]++;
}

static void
count_selected(
    struct driver *d, const struct driver_op *op, const struct policy_action *a)
{
	const struct policy_plan *plan = &d->true_plan;
	const int64_t prefer = a->round < plan->rounds
				   ? plan->prefer_end_us[a->round]
				   : plan->final_prefer_end_us;
	uint64_t *count = d->reach->count;

	if (a->server < op->preferred)
		count[REACH_BY_OLDER]++;
	else if (a->server == op->preferred)
		count[a->server == 0 ? REACH_BY_OLDEST : REACH_BY_PREFERRED]++;
	else if (d->now < op->start + prefer)
		count[REACH_IMPATIENT]++;
	else
		count[op->fed_before != 0 ? REACH_KEPT : REACH_AT_ONCE]++;
	count[op->kept_denied ? REACH_DENIED : REACH_ALLOWED]++;
	count[REACH_IN_FINAL] += a->round == plan->rounds;
	count[REACH_UNDELIVERED] += plan->completion_delivery &&
				    d->now >= op->start + plan->horizon_us &&
				    op->fed != op->op.members;
}

static enum journal_end
end_of(struct driver *d, const struct driver_op *op, enum policy_end end)
{
	switch (end) {
	case POLICY_SELECTED:
		return END_SELECTED;
	case POLICY_TIMEOUT:
		d->reach->count[d->now >= op->deadline ? REACH_DEADLINE
						       : REACH_TIMEOUT]++;
		return END_TIMEOUT;
	case POLICY_NO_SERVER:
		d->reach->count[REACH_NO_SERVER]++;
		return END_NO_SERVER;
	case POLICY_NOT_SENT:
		d->reach->count[REACH_NOT_SENT]++;
		return END_NOT_SENT;
	case POLICY_STOPPED:
		d->reach->count[REACH_CANCELLED]++;
		return END_CANCELLED;
	}
	return END_NONE;
}

static void
do_end(struct driver *d, struct driver_op *op, const struct policy_action *a)
{
	uint32_t place = a->server;

	driver_check_end(d, op, a);
	op->over = true;
	op->j->end = end_of(d, op, a->end);
	op->j->ended_at = d->now;
	op->j->round = a->round;
	if (a->end != POLICY_SELECTED)
		return;
	count_selected(d, op, a);
	if (d->flaw == FLAW_YOUNGEST)
		place = 63 - (uint32_t)__builtin_clzll(op->fed);
	op->j->selected = op->j->rank[place];
	op->j->denied = op->kept_denied;
}

/* Takes every action. Returns how many there were. */
static unsigned
take_actions(struct driver *d, struct driver_op *op)
{
	struct policy_action a;

	for (unsigned taken = 0;; taken++) {
		a = policy_op_next(&op->op, d->now);
		switch (a.act) {
		case POLICY_NOTHING:
			return taken;
		case POLICY_SEND:
			do_send(d, op, &a);
			break;
		case POLICY_DELIVER:
			do_deliver(d, op, &a);
			break;
		case POLICY_MISSED:
			do_missed(d, op, &a);
			break;
		case POLICY_COMPLETE:
			do_end(d, op, &a);
			break;
		}
		if (taken > 2 * JOURNAL_SENDS_MAX) {
			driver_broken(d, op, "there is no end to its actions");
			op->over = true;
			return taken;
		}
	}
}

static void
rest(struct driver *d, struct driver_op *op)
{
	driver_check_rest(d, op);
	if (op->op.state == POLICY_FINAL && op->j->final_at == SCENARIO_NEVER)
		op->j->final_at = d->now;
	op->fresh = false;
	op->fed_before = op->fed;
	op->due = policy_op_timeout(&op->op);
}

/* Judged although nothing was fed and nothing is due: nothing may come of it,
 * whatever woke the owner. */
void
driver_op_judge_idle(struct driver *d, struct driver_op *op)
{
	struct policy_op before;

	memcpy(&before, &op->op, sizeof(before));
	policy_op_advance(&op->op, d->now);
	if (take_actions(d, op) > 0)
		driver_broken(d, op, "it acts without a cause");
	driver_check_same(d, op, &before, "it changes without a cause");
}

void
driver_op_judge(struct driver *d, struct driver_op *op)
{
	const uint32_t round = op->op.round;

	if (!op->fresh && (op->over || op->due > d->now)) {
		driver_op_judge_idle(d, op);
		return;
	}
	policy_op_advance(&op->op, d->now);
	if (op->op.round > round + 1)
		d->reach->count[REACH_SKIPPED] += op->op.round - round - 1;
	take_actions(d, op);
	rest(d, op);
}

/* Fills the ranking; returns the places that are suspected. */
static uint64_t
take_snapshot(struct driver *d, struct driver_op *op)
{
	const struct members *m = op->members;
	uint64_t suspected = 0;
	bool tie = false;
	uint32_t server;

	op->j->ranked = m->count;
	for (uint32_t i = 0; i < m->count; i++) {
		server = find_server(d, m->list[i].server_id);
		op->j->rank[i] = (uint8_t)server;
		if (suspect_is(&d->suspect[server], d->plan.suspect_after))
			suspected |= UINT64_C(1) << i;
		tie = tie || (i > 0 && m->list[i].server_id >> 23 ==
					   m->list[i - 1].server_id >> 23);
	}
	d->reach->count[REACH_AGE_TIES] += tie;
	d->reach->count[REACH_CROWDS] += m->count > 32;
	d->reach->count[REACH_ALL_SUSPECTED] +=
	    m->count > 0 && suspected == UINT64_MAX >> (64 - m->count);
	op->j->suspected = driver_op_servers(op, suspected);
	return suspected;
}

static void
count_begin(struct driver *d, const struct driver_op *op)
{
	const int64_t age = d->now - op->start;
	uint64_t *count = d->reach->count;
	bool others = false;

	count[REACH_OPS]++;
	for (uint32_t i = 0; i < op->index; i++)
		others = others || !d->op[i].over;
	count[REACH_OVERLAPS] += others;
	if (!d->sc->op[op->index].again)
		return;
	count[REACH_RESUMED]++;
	if (age >= d->true_plan.horizon_us)
		count[REACH_RESUMED_OVER]++;
	else if (age >= d->true_plan.round_end_us[d->true_plan.rounds - 1])
		count[REACH_RESUMED_FINAL]++;
}

void
driver_op_begin(struct driver *d, uint32_t index)
{
	const struct scenario_op *asked = &d->sc->op[index];
	struct driver_op *op = &d->op[index];
	uint64_t suspected;

	op->index = index;
	op->j = &d->out->op[index];
	op->j->began = d->now;
	op->members = members_ref(d->members);
	op->seal = driver_check_seal(op->members);
	op->begun = true;
	op->start = d->now - asked->age;
	op->deadline = scenario_after(asked->at, asked->patience);
	suspected = take_snapshot(d, op);
	count_begin(d, op);
	policy_op_init(&op->op, &d->plan, op->members->count,
	    d->flaw == FLAW_TRUSTING ? 0 : suspected, op->start,
	    d->flaw == FLAW_PATIENT ? POLICY_NEVER : op->deadline, d->now);
	driver_check_begun(d, op, suspected);
	for (uint32_t i = 0; i < op->j->ranked && asked->again; i++)
		put_answers(
		    d, op, op->j->rank[i], NETWORK_FORMER_COPY, op->start);
	take_actions(d, op);
	rest(d, op);
}

void
driver_op_cancel(struct driver *d, struct driver_op *op)
{
	struct policy_op before;

	op->called = true;
	memcpy(&before, &op->op, sizeof(before));
	policy_op_cancel(&op->op);
	if (op->over) {
		d->reach->count[REACH_CANCELLED_LATE]++;
		driver_check_same(d, op, &before, "a late cancel changes it");
		return;
	}
	take_actions(d, op);
	rest(d, op);
}
