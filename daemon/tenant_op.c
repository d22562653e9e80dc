/*
 * Operations of a tenant: the core policy's actions become datagrams, results
 * of sends and the clock become its events. An operation's slot outlives its
 * completion while the kernel still has sends of it to answer for.
 */
#include "daemon/tenant_private.h"

#include <errno.h>
#include <string.h>

#include "proto/err.h"

#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

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

/* Gives the slot back once nothing refers to it any more. */
static void
op_release(struct tenant_op *op)
{
	struct tenant *t = op->tenant;

	if (!op->over || op->dirty || op->sending > 0)
		return;
	members_unref(op->members);
	slab_put(op->large ? &t->large : &t->small, op);
}

static void
judge_outside(struct tenant_op *op)
{
	tenant_op_mark(op);
	loop_defer(op->tenant->loop, &op->tenant->judge);
}

/* One target of the current transmission has its final result. */
static void
op_result(struct tenant_op *op, uint32_t server, bool taken)
{
	if (taken)
		op->taken |= (uint64_t)1 << server;
	if (--op->awaiting > 0)
		return;
	policy_op_sent(&op->policy, op->taken);
	if (op->taken == 0)
		judge_outside(op);
}

/* token.index: the server, and how many of its addresses were tried. */
static struct udp_token
op_token(
    struct tenant_op *op, uint64_t serial, uint32_t server, uint32_t attempt)
{
	return (struct udp_token){
	    .owner = op, .serial = serial, .index = server | attempt << 8};
}

/*
 * Sends to a server, from its attempt-th choice of address on. Each replay
 * starts with the next address. False when no address is left.
 */
static bool
op_send(
    struct tenant_op *op, uint64_t serial, uint32_t server, uint32_t attempt)
{
	const struct member *m = &op->members->list[server];
	uint32_t first = serial == SEND_DELIVERY ? 0 : (uint32_t)serial;
	int64_t expires = op->policy.start + op->policy.plan->horizon_us;

	for (; attempt < m->addr_count; attempt++) {
		const struct endpoint *to =
		    &m->addrs[(first + attempt) % m->addr_count];

		op->sending++;
		if (tenant_send(op->tenant, to, op->datagram, op->datagram_len,
			expires, op_token(op, serial, server, attempt)) == 0)
			return true;
		op->sending--;
		op->tenant->counters.send_errors++;
	}
	return false;
}

static void
count_sent(struct tenant_op *op, uint64_t serial, uint32_t server)
{
	struct tenant *t = op->tenant;
	struct tenant_server *s;

	if (serial == SEND_DELIVERY)
		t->counters.deliveries_sent++;
	else if (serial > 0)
		t->counters.replays_sent++;
	t->counters.requests_sent++;
	s = tenant_stat(t, op->members->list[server].server_id);
	if (s != NULL)
		s->sent++;
}

/*
 * Is the next address worth a try? A send of an earlier round is not, the
 * later round has sent to that server; nor is a server that has answered.
 */
static bool
may_retry(const struct tenant_op *op, uint64_t serial, uint32_t server,
    bool current, int error)
{
	if (error == 0 || error == ETIME || error == ECANCELED)
		return false;
	if ((op->policy.answered >> server & 1) != 0)
		return false;
	return current || serial == SEND_DELIVERY;
}

void
tenant_op_sent(void *arg, struct udp_token token, int error)
{
	struct tenant *t = arg;
	struct tenant_op *op = token.owner;
	uint32_t server = token.index & 0xff, attempt = token.index >> 8;
	bool current;

	if (op == NULL) { /* a report */
		if (error == 0)
			t->counters.reports_sent++;
		else
			t->counters.send_errors++;
		return;
	}
	op->sending--;
	if (error == 0)
		count_sent(op, token.serial, server);
	else
		t->counters.send_errors++;
	current = !op->over && token.serial == op->round && op->awaiting > 0;
	if (may_retry(op, token.serial, server, current, error) &&
	    op_send(op, token.serial, server, attempt + 1))
		return;
	if (current)
		op_result(op, server, error == 0);
	else if (error == 0 && !op->over)
		policy_op_sent(&op->policy, (uint64_t)1 << server);
	op_release(op);
}

static void
op_transmit(struct tenant_op *op, uint64_t targets, uint32_t round)
{
	uint32_t server;

	if (op->sent_at == 0)
		op->sent_at = loop_now();
	op->round = round;
	op->taken = 0;
	op->awaiting = (uint32_t)__builtin_popcountll(targets);
	for (server = 0; targets != 0; server++, targets >>= 1) {
		if ((targets & 1) != 0 && !op_send(op, round, server, 0))
			op_result(op, server, false);
	}
}

static void
op_deliver(struct tenant_op *op, uint64_t targets)
{
	uint32_t server;

	for (server = 0; targets != 0; server++, targets >>= 1) {
		if ((targets & 1) != 0)
			op_send(op, SEND_DELIVERY, server, 0);
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

static void
result_fill(struct tenant_op *op, const struct policy_action *act,
    struct tenant_result *res)
{
	size_t i;

	memset(res, 0, sizeof(*res));
	res->end = act->end;
	res->round = act->round;
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

static void
op_complete(struct tenant_op *op, const struct policy_action *act)
{
	struct tenant *t = op->tenant;
	struct tenant_result res;
	struct tenant_server *s;

	table_remove(&t->in_flight, &op->entry);
	heap_remove(&t->timers, &op->timer);
	count_end(t, act->end);
	result_fill(op, act, &res);
	if (act->end == POLICY_SELECTED) {
		s = tenant_stat(t, res.server_id);
		if (s != NULL)
			s->selected++;
	}
	op->over = true;
	op->done(op->arg, &res);
}

/* Judges one operation and carries out what the policy wants. */
static void
op_pump(struct tenant_op *op, int64_t now)
{
	struct policy_action act;

	if (op->over)
		return;
	policy_op_advance(&op->policy, now);
	for (;;) {
		act = policy_op_next(&op->policy, now);
		switch (act.act) {
		case POLICY_NOTHING:
			heap_set(&op->tenant->timers, &op->timer,
			    policy_op_timeout(&op->policy));
			return;
		case POLICY_SEND:
			op_transmit(op, act.targets, act.round);
			break;
		case POLICY_DELIVER:
			op_deliver(op, act.targets);
			break;
		case POLICY_COMPLETE:
			op_complete(op, &act);
			return;
		}
	}
}

/*
 * The timer may be early, never late: arming it again for each operation that
 * ends would cost more than a rare spare wake-up.
 */
static void
rearm(struct tenant *t)
{
	struct heap_entry *first = heap_first(&t->timers);

	if (first == NULL || t->armed <= first->when)
		return;
	t->armed = first->when;
	loop_timer_set(t->timer, t->armed);
}

void
tenant_judge(void *arg)
{
	struct tenant *t = arg;
	struct tenant_op *op;
	int64_t now = loop_now();

	while ((op = t->dirty) != NULL) {
		t->dirty = op->next_dirty;
		op->dirty = false;
		op_pump(op, now);
		op_release(op);
	}
	rearm(t);
}

void
tenant_expire(void *arg)
{
	struct tenant *t = arg;
	struct heap_entry *e;
	struct tenant_op *op;
	int64_t now;

	t->armed = POLICY_NEVER;
	/* What is readable goes before a deadline that is due as well. */
	if (t->udp4 != NULL)
		udp_drain(t->udp4);
	if (t->udp6 != NULL)
		udp_drain(t->udp6);
	now = loop_now();
	while ((e = heap_first(&t->timers)) != NULL && e->when <= now) {
		op = container_of(e, struct tenant_op, timer);
		op_pump(op, now);
		op_release(op);
	}
	rearm(t);
}

static struct tenant_op *
op_new(struct tenant *t, const struct pdu_rate *rate, size_t datagram_len)
{
	size_t blocks = rate->guard_count + rate->resource_count;
	bool large =
	    blocks > OP_SMALL_BLOCKS || datagram_len > OP_SMALL_DATAGRAM;
	struct tenant_op *op;
	size_t i, n = 0;

	op = slab_get(large ? &t->large : &t->small);
	if (op == NULL)
		return NULL;
	memset(op, 0, sizeof(*op));
	heap_entry_init(&op->timer);
	op->tenant = t;
	op->large = large;
	op->guard_count = (uint8_t)rate->guard_count;
	op->resource_count = (uint8_t)rate->resource_count;
	for (i = 0; i < rate->guard_count; i++)
		memcpy(op->blocks[n++].id, rate->guards[i].id, ID_LEN);
	for (i = 0; i < rate->resource_count; i++)
		memcpy(op->blocks[n++].id, rate->resources[i].id, ID_LEN);
	op->datagram = (uint8_t *)(op->blocks + n);
	return op;
}

static int
op_encode(struct tenant *t, const struct tenant_check *check,
    uint8_t datagram[PACKET_MAX], size_t *len)
{
	uint8_t pdu[PACKET_MAX];
	size_t pdu_len;
	int err;

	check->rate->dedup_ttl_ms = t->config->plan.ttl_ms;
	err = pdu_encode_request(
	    t->config->profile, check->rate, pdu, sizeof(pdu), &pdu_len);
	if (err != 0)
		return err;
	return tenant_seal(
	    t, check->unique_id, pdu, pdu_len, datagram, PACKET_MAX, len);
}

int
tenant_check(struct tenant *t, const struct tenant_check *check,
    tenant_done_fn *done, void *arg, struct tenant_op **out)
{
	uint8_t datagram[PACKET_MAX];
	struct tenant_op *op;
	size_t len;
	int64_t now = loop_now();
	int err;

	if (t->in_flight.count >= t->max_ops)
		return RLA_EBUSY;
	if (tenant_op_find(t, check->unique_id) != NULL)
		return RLA_EINVAL;
	err = op_encode(t, check, datagram, &len);
	if (err != 0)
		return err;
	op = op_new(t, check->rate, len);
	if (op == NULL)
		return RLA_EBUSY;
	memcpy(op->datagram, datagram, len);
	op->datagram_len = (uint16_t)len;
	memcpy(op->entry.key, check->unique_id, TABLE_KEY_LEN);
	if (heap_reserve(&t->timers, t->in_flight.count + 1) != 0 ||
	    table_insert(&t->in_flight, &op->entry) != 0) {
		slab_put(op->large ? &t->large : &t->small, op);
		return RLA_EBUSY;
	}
	op->members = members_ref(t->members);
	op->done = done;
	op->arg = arg;
	t->counters.operations++;
	if (op->members->count == 0)
		discovery_force(t->discovery);
	policy_op_init(&op->policy, &t->config->plan, op->members->count,
	    check->start, check->deadline, now);
	*out = op;
	op_pump(op, now);
	op_release(op);
	rearm(t);
	return 0;
}

void *
tenant_find(struct tenant *t, const uint8_t unique_id[16])
{
	struct tenant_op *op = tenant_op_find(t, unique_id);

	return op != NULL ? op->arg : NULL;
}

void
tenant_cancel(struct tenant_op *op)
{
	if (op->over)
		return;
	policy_op_cancel(&op->policy);
	op_pump(op, loop_now());
	op_release(op);
}

static void
op_drop(struct tenant_op *op)
{
	members_unref(op->members);
	op->members = NULL;
}

void
tenant_op_drop_all(struct tenant *t)
{
	struct heap_entry *e;
	struct tenant_op *op;

	for (op = t->dirty; op != NULL; op = op->next_dirty) {
		if (op->over)
			op_drop(op);
	}
	while ((e = heap_first(&t->timers)) != NULL) {
		op = container_of(e, struct tenant_op, timer);
		heap_remove(&t->timers, e);
		op_drop(op);
	}
}
