/*
 * Operations of a tenant: the clock and the answers become events of the core
 * policy, its actions are carried out, its completion is reported once.
 *
 * An operation's slot outlives its completion while the kernel still has sends
 * of it to answer for, and, until the horizon, while servers are missing: what
 * they say late decides nothing, but shows that they are alive.
 */
#include "daemon/tenant_private.h"

#include <string.h>

#include "daemon/core/container.h"
#include "proto/err.h"

struct tenant_op *
tenant_op_find(struct tenant *t, const uint8_t unique_id[16])
{
	struct table_entry *e = table_find(&t->in_flight, unique_id);

	return e != NULL ? container_of(e, struct tenant_op, entry) : NULL;
}

void
tenant_op_mark(struct tenant_op *op)
{
	if (op->dirty)
		return;
	op->dirty = true;
	op->next_dirty = op->tenant->dirty;
	op->tenant->dirty = op;
}

void
tenant_op_release(struct tenant_op *op)
{
	struct tenant *t = op->tenant;

	if (!op->over || op->late || op->dirty || op->sending > 0)
		return;
	transport_release(op->port);
	members_unref(op->members);
	slab_put(op->large ? &t->large : &t->small, op);
}

void
tenant_op_defer(struct tenant_op *op)
{
	tenant_op_mark(op);
	loop_defer(op->tenant->loop, &op->tenant->judge);
}

uint8_t *
tenant_op_datagram(struct tenant_op *op)
{
	return (uint8_t *)(op->blocks + op->guard_count + op->resource_count);
}

/* Out of the tables: nothing that comes finds it any more. */
static void
op_leave(struct tenant_op *op)
{
	table_remove(&op->tenant->in_flight, &op->entry);
	heap_remove(&op->tenant->timers, &op->timer);
}

void
tenant_op_bury(struct tenant_op *op)
{
	op->late = false;
	op_leave(op);
	tenant_op_release(op);
}

struct peer *
tenant_op_peer(struct tenant_op *op, uint32_t server)
{
	struct tenant *t = op->tenant;

	if (op->members == t->members)
		return &t->peers.list[server];
	return peers_find(&t->peers, op->members->list[server].server_id);
}

void
tenant_op_conclude(struct tenant_op *op, int64_t now)
{
	uint64_t silent = op->asked & ~op->timely;
	struct peer *peer;

	if (op->asked == 0)
		return;
	peers_operation(
	    &op->tenant->peers, op->guard_count > 0, op->heard != 0, now);
	for (uint32_t i = 0; silent != 0; i++, silent >>= 1) {
		peer = (silent & 1) != 0 ? tenant_op_peer(op, i) : NULL;
		if (peer == NULL)
			continue;
		peer_unanswered(peer, op->policy.start);
		if (op->timely != 0)
			tenant_say_unanswered(op->tenant, peer);
		tenant_address_silent(op, i);
	}
}

static void
count_end(struct tenant *t, enum policy_end end)
{
	switch (end) {
	case POLICY_SELECTED:
		t->counters.selected++;
		return;
	case POLICY_TIMEOUT:
		t->counters.timeouts++;
		return;
	case POLICY_NO_SERVER:
		t->counters.no_server++;
		return;
	case POLICY_NOT_SENT:
		t->counters.not_sent++;
		return;
	case POLICY_STOPPED:
		t->counters.cancelled++;
		return;
	}
}

/*
 * Nobody answered, or could be sent to: perhaps the servers have moved. Wrong
 * keys and clocks look the same, since servers are silent on them.
 */
static void
note_silence(struct tenant_op *op)
{
	struct tenant *t = op->tenant;

	if (op->told)
		return;
	op->told = true;
	discovery_force(t->discovery);
	tenant_say_silence(t);
	tenant_silent_more(t, tenant_now(t));
}

static void
result_fill(struct tenant_op *op, const struct policy_action *act, int64_t now,
    struct tenant_result *res)
{
	size_t i;

	memset(res, 0, sizeof(*res));
	res->end = act->end;
	res->round = act->round;
	res->now = now;
	if (act->end != POLICY_SELECTED)
		return;
	res->server_id = op->members->list[act->server].server_id;
	res->guard_count = op->guard_count;
	res->resource_count = op->resource_count;
	res->guards = op->blocks;
	res->resources = op->blocks + op->guard_count;
	res->guards_pass = res->resources_pass = true;
	for (i = 0; i < res->guard_count; i++) {
		if (res->guards[i].second >= res->guards[i].first)
			res->guards_pass = false;
	}
	for (i = 0; i < res->resource_count; i++) {
		if (res->resources[i].second != 0)
			res->resources_pass = false;
	}
}

bool
tenant_op_owed(const struct tenant_op *op)
{
	return op->owed + op->sending > 0 || (op->asked & ~op->heard) != 0;
}

bool
tenant_op_settle(struct tenant_op *op)
{
	if (!op->late || tenant_op_owed(op))
		return false;
	tenant_op_conclude(op, tenant_now(op->tenant));
	tenant_op_bury(op);
	return true;
}

/* Is there anything left to hear, and room to wait for it? */
static bool
worth_listening(const struct tenant_op *op)
{
	const struct tenant *t = op->tenant;

	return tenant_op_owed(op) &&
	       t->in_flight.count - t->live < TENANT_MAX_LATE;
}

static int64_t
horizon(const struct tenant_op *op)
{
	return op->policy.start + op->policy.plan->horizon_us;
}

/*
 * Until the horizon, and a while after a decision that came as late. Most are
 * heard of long before either: the timer is left where it is if it rings in
 * time for hear_on().
 */
static void
listen(struct tenant_op *op, int64_t now)
{
	const int64_t least = now + TENANT_LISTEN_US;

	if (least > horizon(op))
		heap_set(&op->tenant->timers, &op->timer, least);
	else if (op->timer.slot == HEAP_OUT)
		heap_set(&op->tenant->timers, &op->timer, horizon(op));
}

/*
 * What the preferred server decided in the first round took as long as its
 * queues were. When it was late with this one, but is alive, as it has answered
 * others since this one began, they are too long by far. All else tells of what
 * is dead or lost, or of a caller in a hurry.
 */
static enum pace
pace_of(struct tenant_op *op, const struct policy_action *act, int64_t now)
{
	const struct policy_op *p = &op->policy;
	struct tenant *t = op->tenant;
	const struct peer *peer;

	if (op->stamp == 0) /* it began elsewhere */
		return PACE_UNKNOWN;
	if (act->end == POLICY_SELECTED && act->round == 0 &&
	    act->server <= p->preferred)
		return pace_path_judge(
		    &t->path, now - p->start, t->live <= PACE_LEAST, now);
	if ((act->end != POLICY_SELECTED && act->end != POLICY_TIMEOUT) ||
	    now < p->start + p->plan->prefer_end_us[0])
		return PACE_UNKNOWN;
	peer = tenant_op_peer(op, p->preferred);
	return peer != NULL && peer->last_answer >= p->start ? PACE_LATE
							     : PACE_UNKNOWN;
}

static void
op_complete(struct tenant_op *op, const struct policy_action *act, int64_t now)
{
	struct tenant *t = op->tenant;
	struct tenant_result res;
	struct peer *peer;

	count_end(t, act->end);
	if (act->end == POLICY_NOT_SENT ||
	    (act->end == POLICY_TIMEOUT && now >= horizon(op)))
		note_silence(op);
	result_fill(op, act, now, &res);
	res.pace = pace_of(op, act, now);
	if (act->end == POLICY_SELECTED) {
		peer = tenant_op_peer(op, act->server);
		if (peer != NULL)
			peer_selected(peer);
	}
	t->live--;
	op->over = true;
	op->late = worth_listening(op);
	if (op->late) {
		listen(op, now);
	} else {
		if (!tenant_op_owed(op))
			tenant_op_conclude(op, now);
		op_leave(op);
	}
	op->done(op->arg, &res);
}

/* The preferred server left an operation unanswered past P(0). */
static void
op_missed(struct tenant_op *op, uint32_t server)
{
	const struct policy_op *p = &op->policy;
	struct peer *peer = tenant_op_peer(op, server);

	if (peer != NULL &&
	    suspect_missed(&peer->suspect, p->plan->suspect_after, p->start))
		tenant_say_suspect(op->tenant, peer, true);
}

void
tenant_op_act(struct tenant_op *op, int64_t now)
{
	struct policy_action act;

	for (;;) {
		act = policy_op_next(&op->policy, now);
		switch (act.act) {
		case POLICY_NOTHING:
			heap_set(&op->tenant->timers, &op->timer,
			    policy_op_timeout(&op->policy));
			return;
		case POLICY_SEND:
			tenant_op_transmit(op, act.targets, act.round, now);
			break;
		case POLICY_DELIVER:
			tenant_op_deliver(op, act.targets);
			break;
		case POLICY_MISSED:
			op_missed(op, act.server);
			break;
		case POLICY_COMPLETE:
			op_complete(op, &act, now);
			return;
		}
	}
}

void
tenant_op_pump(struct tenant_op *op, int64_t now)
{
	if (op->over)
		return;
	policy_op_advance(&op->policy, now);
	tenant_op_act(op, now);
}

void
tenant_op_hear_on(struct tenant_op *op, int64_t now)
{
	if (now < horizon(op)) {
		heap_set(&op->tenant->timers, &op->timer, horizon(op));
		return;
	}
	if (op->heard == 0) /* given up before the horizon */
		note_silence(op);
	tenant_op_conclude(op, now);
	tenant_op_bury(op);
}

void *
tenant_find(struct tenant *t, const uint8_t unique_id[16])
{
	struct tenant_op *op = tenant_op_find(t, unique_id);

	return op != NULL && !op->late ? op->arg : NULL;
}

void
tenant_cancel(struct tenant_op *op)
{
	if (op->over)
		return;
	policy_op_cancel(&op->policy);
	tenant_op_pump(op, loop_now());
	tenant_op_release(op);
}

static void
op_drop(struct tenant_op *op)
{
	transport_release(op->port);
	op->port = NULL;
	members_unref(op->members);
	op->members = NULL;
}

void
tenant_op_drop_all(struct tenant *t)
{
	struct heap_entry *e;
	struct tenant_op *op;

	for (op = t->dirty; op != NULL; op = op->next_dirty) {
		if (op->over && !op->late)
			op_drop(op);
	}
	while ((e = heap_first(&t->timers)) != NULL) {
		op = container_of(e, struct tenant_op, timer);
		heap_remove(&t->timers, e);
		op_drop(op);
	}
}
