/*
 * Datagrams of operations on their way out: which address of a server, what to
 * do when the kernel refuses one, and when a transmission is complete. Results
 * only record: judging is for tenant_judge().
 */
#include "daemon/tenant_private.h"

#include <errno.h>

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

/* Sends, going on to the next address at once. False when none is left. */
static bool
op_try(struct tenant_op *op, struct attempt attempt)
{
	const struct member *m = &op->members->list[attempt.server];
	int64_t expires = op->policy.start + op->policy.plan->horizon_us;

	while (attempt.count < m->addr_count) {
		op->sending++;
		if (tenant_send(op->tenant, &m->addrs[attempt.addr],
			op->datagram, op->datagram_len, expires,
			attempt_token(op, &attempt)) == 0)
			return true;
		op->sending--;
		op->tenant->counters.send_errors++;
		tenant_avoid(op->tenant, m, attempt.addr);
		attempt.count++;
		attempt.addr = (attempt.addr + 1) % m->addr_count;
	}
	return false;
}

/* The first try of a server: each replay starts with the next address. */
static bool
op_send(struct tenant_op *op, uint64_t serial, uint32_t server)
{
	const struct member *m = &op->members->list[server];
	const struct tenant_server *s = tenant_stat(op->tenant, m->server_id);
	uint32_t first = s != NULL ? s->first_addr : 0;

	if (serial != SEND_DELIVERY)
		first += (uint32_t)serial;
	return op_try(op, (struct attempt){.serial = serial,
			      .server = server,
			      .addr = first % m->addr_count});
}

void
tenant_op_transmit(struct tenant_op *op, uint64_t targets, uint32_t round)
{
	uint32_t server;

	if (op->sent_at == 0)
		op->sent_at = loop_now();
	op->round = round;
	op->taken = 0;
	op->awaiting = (uint32_t)__builtin_popcountll(targets);
	for (server = 0; targets != 0; server++, targets >>= 1) {
		if ((targets & 1) != 0 && !op_send(op, round, server))
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

static void
count_sent(struct tenant_op *op, const struct attempt *attempt)
{
	struct tenant *t = op->tenant;
	struct tenant_server *s;

	if (attempt->serial == SEND_DELIVERY)
		t->counters.deliveries_sent++;
	else if (attempt->serial > 0)
		t->counters.replays_sent++;
	t->counters.requests_sent++;
	op->owed++;
	s = tenant_stat(t, op->members->list[attempt->server].server_id);
	if (s != NULL)
		s->sent++;
}

/* Does it say anything of the address, and not of our own queue or sizes? */
static bool
address_fault(int error)
{
	return error != ENOBUFS && error != ENOMEM && error != EMSGSIZE;
}

/* The operation's time, or the tenant's, was up: nobody's fault. */
static bool
given_up(int error)
{
	return error == ETIME || error == ECANCELED;
}

/*
 * Is the next address worth a try? A send of an earlier round is not, the
 * later round has sent to that server; nor is a server that has answered.
 */
static bool
may_retry(
    const struct tenant_op *op, const struct attempt *attempt, bool current)
{
	if ((op->heard >> attempt->server & 1) != 0)
		return false;
	return current || attempt->serial == SEND_DELIVERY;
}

/* The kernel refused an address; true when the next one is under way. */
static bool
op_refused(
    struct tenant_op *op, struct attempt attempt, bool current, int error)
{
	const struct member *m = &op->members->list[attempt.server];

	op->tenant->counters.send_errors++;
	if (address_fault(error))
		tenant_avoid(op->tenant, m, attempt.addr);
	if (!may_retry(op, &attempt, current))
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
	tenant_op_release(op);
}

/* A report's token: no owner, the server's id, the address. */
static void
report_sent(struct tenant *t, struct udp_token token, int error)
{
	int at = members_find(t->members, token.serial);

	if (error == 0)
		t->counters.reports_sent++;
	else if (!given_up(error))
		t->counters.send_errors++;
	if (error != 0 && !given_up(error) && address_fault(error) && at >= 0)
		tenant_avoid(t, &t->members->list[at], token.index);
}

void
tenant_sent(void *arg, struct udp_token token, int error)
{
	if (token.owner == NULL)
		report_sent(arg, token, error);
	else
		op_sent(token.owner, attempt_of(token), error);
}
