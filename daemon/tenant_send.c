/*
 * Datagrams of operations on their way out: which address of a server, what to
 * do when the kernel refuses one, and when a transmission is complete. Results
 * only record: judging is for tenant_judge().
 */
#include "daemon/tenant_private.h"

#include <errno.h>

static int64_t
op_horizon(const struct tenant_op *op)
{
	return op->policy.start + op->policy.plan->horizon_us;
}

/* One target of the current transmission has its final result. */
static void
op_result(struct tenant_op *op, uint32_t server, bool taken)
{
	if (taken)
		op->taken |= (uint64_t)1 << server;
	if (--op->awaiting > 0)
		return;
	/* What waited for so long was not refused: it is out of time. */
	if (op->taken == 0 && loop_now() >= op_horizon(op))
		return;
	policy_op_sent(&op->policy, op->taken);
	if (op->taken == 0)
		tenant_op_defer(op);
}

/* A server, how many of its addresses were tried, and which now. */
struct attempt {
	uint64_t serial; /* the round, or SEND_DELIVERY */
	uint32_t server;
	uint32_t count;
	uint32_t addr;
};

static struct udp_token
attempt_token(struct tenant_op *op, const struct attempt *attempt)
{
	return (struct udp_token){
	    .owner = op,
	    .serial = attempt->serial,
	    .index =
		attempt->server | attempt->count << 8 | attempt->addr << 16,
	};
}

static struct attempt
attempt_of(struct udp_token token)
{
	return (struct attempt){
	    .serial = token.serial,
	    .server = token.index & 0xff,
	    .count = token.index >> 8 & 0xff,
	    .addr = token.index >> 16,
	};
}

/* Does it say anything of the address, and not of our own queue or sizes? */
static bool
address_fault(int error)
{
	return error != ENOBUFS && error != ENOMEM && error != EMSGSIZE;
}

/* An address has a number in its own snapshot; others do not know it. */
static void
note_fault(struct tenant *t, const struct member *m, uint32_t addr, int error)
{
	int at = members_find(t->members, m->server_id);

	t->counters.send_errors++;
	if (at < 0)
		return;
	peer_send_error(&t->peers.list[at], error, loop_now());
	if (address_fault(error) && m == &t->members->list[at])
		tenant_address_refused(t, (uint32_t)at, addr);
}

static void
op_fault(struct tenant_op *op, const struct attempt *attempt, int error)
{
	note_fault(op->tenant, &op->members->list[attempt->server],
	    attempt->addr, error);
}

/* Sends, going on to the next address at once. False when none is left. */
static bool
op_try(struct tenant_op *op, struct attempt attempt)
{
	const struct member *m = &op->members->list[attempt.server];
	int64_t expires = op_horizon(op);

	while (attempt.count < m->addr_count) {
		op->sending++;
		if (transport_send(op->tenant->transport,
			&m->addrs[attempt.addr], tenant_op_datagram(op),
			op->datagram_len, expires,
			attempt_token(op, &attempt)) == 0)
			return true;
		op->sending--;
		op_fault(op, &attempt, EAFNOSUPPORT);
		attempt.count++;
		attempt.addr = (attempt.addr + 1) % m->addr_count;
	}
	return false;
}

/* The first try of a server: each replay starts with the next address. */
static bool
op_send(struct tenant_op *op, uint64_t serial, uint32_t server)
{
	/* A delivery goes where the request of its round went. */
	const uint32_t round =
	    serial != SEND_DELIVERY ? (uint32_t)serial : op->round;

	return op_try(op, (struct attempt){
			      .serial = serial,
			      .server = server,
			      .addr = tenant_address(op, server, round),
			  });
}

static void
miss_round(struct tenant_op *op, uint32_t server)
{
	struct peer *peer = tenant_op_peer(op, server);

	if (peer != NULL && (op->asked >> server & 1) != 0)
		peer_missed_round(peer);
}

void
tenant_op_transmit(
    struct tenant_op *op, uint64_t targets, uint32_t round, int64_t now)
{
	uint32_t server;

	if (op->port == NULL) {
		op->sent_at = now;
		tenant_address_begin(op);
		op->port = transport_hold(op->tenant->transport);
	}
	op->round = (uint8_t)round;
	op->taken = 0;
	op->awaiting = (uint8_t)__builtin_popcountll(targets);
	for (server = 0; targets != 0; server++, targets >>= 1) {
		if ((targets & 1) == 0)
			continue;
		miss_round(op, server);
		if (!op_send(op, round, server))
			op_result(op, server, false);
	}
}

void
tenant_op_deliver(struct tenant_op *op, uint64_t targets)
{
	uint32_t server;

	for (server = 0; targets != 0; server++, targets >>= 1) {
		if ((targets & 1) != 0)
			op_send(op, SEND_DELIVERY, server);
	}
}

/*
 * Will the first answer to come tell the round trip? To the first transmission
 * it does, and when a delivery follows it before the preference deadline; else
 * it is not known what is answered. A delivery may have waited for the kernel
 * since it was decided on, so the clock is read.
 */
static bool
measurable(const struct tenant_op *op, const struct attempt *attempt)
{
	const int64_t prefer = op->policy.plan->prefer_end_us[0];

	if (attempt->serial == 0)
		return true;
	return attempt->serial == SEND_DELIVERY &&
	       (op->asked >> attempt->server & 1) != 0 &&
	       loop_now() < op->sent_at + prefer;
}

static void
count_sent(struct tenant_op *op, const struct attempt *attempt)
{
	struct tenant *t = op->tenant;
	const uint64_t bit = (uint64_t)1 << attempt->server;
	struct peer *peer = tenant_op_peer(op, attempt->server);

	if (attempt->serial == SEND_DELIVERY)
		t->counters.deliveries_sent++;
	else if (attempt->serial > 0)
		t->counters.replays_sent++;
	t->counters.requests_sent++;
	op->owed++;
	if (!measurable(op, attempt))
		op->repeated |= bit;
	op->asked |= bit;
	if (peer == NULL)
		return;
	peer->deliveries += attempt->serial == SEND_DELIVERY;
	peer->replays +=
	    attempt->serial > 0 && attempt->serial != SEND_DELIVERY;
	/* Reading the clock costs more than all of this. */
	peer_sent(peer, peer->asked_since == 0 ? tenant_now(t) : 0);
}

/* The operation's time, or the tenant's, was up: nobody's fault. */
static bool
given_up(int error)
{
	return error == ETIME || error == ECANCELED;
}

/*
 * The kernel refused an address; true when the next one is under way. Not for
 * a send of an earlier round: the later round has sent to that server.
 */
static bool
op_refused(
    struct tenant_op *op, struct attempt attempt, bool current, int error)
{
	const struct member *m = &op->members->list[attempt.server];

	op_fault(op, &attempt, error);
	if (!current && attempt.serial != SEND_DELIVERY)
		return false;
	attempt.count++;
	attempt.addr = (attempt.addr + 1) % m->addr_count;
	return op_try(op, attempt);
}

static void
op_sent(struct tenant_op *op, struct attempt attempt, int error)
{
	bool current =
	    !op->over && attempt.serial == op->round && op->awaiting > 0;

	op->sending--;
	if (error == 0)
		count_sent(op, &attempt);
	else if (!given_up(error) && op_refused(op, attempt, current, error))
		return;
	if (current)
		op_result(op, attempt.server, error == 0);
	else if (error == 0 && !op->over)
		policy_op_sent(&op->policy, (uint64_t)1 << attempt.server);
	if (!tenant_op_settle(op))
		tenant_op_release(op);
}

/* A report's token: no owner, the server's id, the address. */
static void
report_sent(struct tenant *t, struct udp_token token, int error)
{
	int at = members_find(t->members, token.serial);

	if (error == 0)
		t->counters.reports_sent++;
	else if (given_up(error))
		return;
	else if (at >= 0)
		note_fault(t, &t->members->list[at], token.index, error);
	else
		t->counters.send_errors++;
}

/* Which server is it? The newest snapshot must do; ICMP is but a hint. */
void
tenant_refused(void *arg, const struct endpoint *to, int error)
{
	struct tenant *t = arg;
	const struct member *m;

	for (uint32_t i = 0; i < t->members->count; i++) {
		m = &t->members->list[i];
		for (uint32_t k = 0; k < m->addr_count; k++) {
			if (!endpoint_equal(&m->addrs[k], to))
				continue;
			peer_refused(&t->peers.list[i], error, loop_now());
			if (address_fault(error))
				tenant_address_refused(t, i, k);
			return;
		}
	}
}

/*
 * What waited for the kernel may be out of date: a server that has answered
 * gets no more, a round that is over sends no more, and nothing but its
 * delivery follows a decision.
 */
bool
tenant_wanted(void *arg, struct udp_token token)
{
	const struct tenant_op *op = token.owner;
	const struct attempt attempt = attempt_of(token);

	(void)arg;
	if (op == NULL)
		return true;
	if ((op->heard >> attempt.server & 1) != 0)
		return false;
	return attempt.serial == SEND_DELIVERY ||
	       (!op->over && attempt.serial == op->round);
}

void
tenant_sent(void *arg, struct udp_token token, int error)
{
	if (token.owner == NULL)
		report_sent(arg, token, error);
	else
		op_sent(token.owner, attempt_of(token), error);
}
