/*
 * Ports that change under constant load. Operations send twice, to a peer that
 * answers each datagram late and to where it came from; answers ask for new
 * ports, and at times none can be opened. Properties: every answer arrives,
 * once; a send leaves in the turn that asked for it, whatever the ports do;
 * and what came in on the current port is known as such. This is done with
 * several transports, since each may change its port only so often at once.
 */
#include "daemon/transport.h"

#include "tests/unit/transport_fixture.h"

#define OPS     200  /* in flight */
#define TOTAL   1500 /* at least, and PORTS */
#define PORTS   16
#define TIMES   10
#define MOVES   10   /* one answer in so many asks for a new port */
#define LATE_US 3000 /* an answer's delay at most */

struct op {
	bool used;
	uint32_t serial;
	struct transport_port *port;
	int64_t replay_at; /* 0: sent */
	unsigned int owed; /* answers */
	bool answered[2];
};

/* On the wire, both ways. */
struct message {
	uint32_t slot;
	uint32_t serial;
	uint32_t round;
	uint16_t port; /* in an answer: whence the peer had it */
	bool move;
};

struct late {
	int64_t due;
	struct sockaddr_in to;
	struct message message;
};

static struct op ops[OPS];
static struct late late[2 * OPS];
static unsigned int late_count;
static uint64_t seed, rng;
static unsigned int started, finished, unsent;
static unsigned int on_old, ports, longest_row;
static uint16_t last_port;

static void
op_send(struct op *op, uint32_t round)
{
	const struct udp_token token = {
	    .owner = op, .serial = op->serial, .index = round};
	struct message m = {
	    .slot = (uint32_t)(op - ops),
	    .serial = op->serial,
	    .round = round,
	};

	ck_assert_int_eq(transport_send(transport, &peer_at, &m, sizeof(m),
			     loop_now() + FAR, token),
	    0);
	op->owed++;
	unsent++;
}

static void
op_start(struct op *op)
{
	memset(op, 0, sizeof(*op));
	op->used = true;
	op->serial = started++;
	op->port = transport_hold(transport);
	op->replay_at = loop_now() + harness_below(&rng, 2 * LATE_US) + 1;
	op_send(op, 0);
}

static void
op_finish(struct op *op)
{
	op->used = false;
	finished++;
	transport_release(op->port);
}

static void
hear(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from, bool current)
{
	struct message m;
	struct op *op;

	(void)arg;
	(void)from;
	(void)truncated;
	ck_assert_uint_eq(len, sizeof(m));
	memcpy(&m, bytes, sizeof(m));
	op = &ops[m.slot];
	ck_assert_uint_eq(op->serial, m.serial);
	ck_assert(op->used);
	ck_assert(!op->answered[m.round]);
	op->answered[m.round] = true;
	op->owed--;
	ck_assert(current == (m.port == local_port()));
	on_old += !current;
	if (m.move && current)
		transport_rebind(transport, 7);
	if (op->owed == 0 && op->replay_at == 0)
		op_finish(op);
}

static void
judge(void *arg)
{
	(void)arg;
}

static void
was_sent(void *arg, struct udp_token token, int error)
{
	const struct op *op = token.owner;

	(void)arg;
	ck_assert_int_eq(error, 0);
	ck_assert_uint_eq(op->serial, token.serial);
	unsent--;
}

static bool
is_wanted(void *arg, struct udp_token token)
{
	(void)arg;
	(void)token;
	return true;
}

/* The peer's port is open. */
static void
was_refused(void *arg, const struct endpoint *to, int error)
{
	(void)arg;
	(void)to;
	ck_abort_msg("refused: %s", strerror(error));
}

static const struct transport_hooks load_hooks = {
    .datagram = hear,
    .batch = judge,
    .wanted = is_wanted,
    .sent = was_sent,
    .refused = was_refused,
};

/* The peer takes what has come, and answers what is due. */
static void
peer_works(void)
{
	struct late *l;
	socklen_t len;
	unsigned int i;

	for (;;) {
		ck_assert_uint_lt(late_count, 2 * OPS);
		l = &late[late_count];
		len = sizeof(l->to);
		if (recvfrom(peer, &l->message, sizeof(l->message), 0,
			(struct sockaddr *)&l->to, &len) < 0)
			break;
		l->message.port = ntohs(l->to.sin_port);
		l->message.move = harness_below(&rng, MOVES) == 0;
		l->due = loop_now() + harness_below(&rng, LATE_US);
		late_count++;
		if (late_count == 2 * OPS)
			break;
	}
	for (i = 0; i < late_count;) {
		l = &late[i];
		if (l->due > loop_now()) {
			i++;
			continue;
		}
		ck_assert_int_eq(
		    sendto(peer, &l->message, sizeof(l->message), 0,
			(struct sockaddr *)&l->to, sizeof(l->to)),
		    sizeof(l->message));
		*l = late[--late_count];
	}
}

static bool
enough(void)
{
	return started >= TOTAL &&
	       transport_counters(transport)->rebinds >= PORTS;
}

static void
operations_work(void)
{
	for (struct op *op = ops; op < ops + OPS; op++) {
		if (!op->used && !enough())
			op_start(op);
		if (op->used && op->replay_at > 0 &&
		    op->replay_at <= loop_now()) {
			op->replay_at = 0;
			op_send(op, 1);
		}
	}
}

/* Every fourth port cannot be had at first: one family or both fail once. */
static void
descriptors_come_and_go(void)
{
	const struct transport_counters *n = transport_counters(transport);

	socket_error = socket_error_v6 = 0;
	if (n->rebinds / 4 <= n->rebind_failures)
		return;
	if (n->rebind_failures % 2 == 0)
		socket_error = EMFILE;
	else
		socket_error_v6 = ENFILE;
}

static void
watch_ports(void)
{
	const uint32_t old = transport_old_ports(transport);

	ck_assert_uint_le(old, TRANSPORT_MAX_OLD);
	if (old > longest_row)
		longest_row = old;
	if (local_port() != last_port)
		ports++;
	last_port = local_port();
}

START_TEST(no_answer_is_lost)
{
	const struct transport_counters *n;
	struct udp_counters udp;
	int64_t limit = loop_now() + 300 * SEC;

	transport_free(transport);
	transport = transport_new(loop, &load_hooks, NULL);
	n = transport_counters(transport);
	rng = seed + (uint64_t)_i;
	last_port = local_port();
	while (!enough() || finished < started) {
		ck_assert_msg(loop_now() < limit, "%u of %u after %u ports",
		    finished, started, ports);
		operations_work();
		peer_works();
		loop_turn(loop);
		ck_assert_uint_eq(unsent, 0); /* nothing waits */
		watch_ports();
		descriptors_come_and_go();
	}
	socket_error = socket_error_v6 = 0;
	TURN_UNTIL(transport_state(transport) == TRANSPORT_READY &&
		   transport_old_ports(transport) == 0);
	printf("# %u operations, %llu ports, %llu failures\n", started,
	    (unsigned long long)n->rebinds,
	    (unsigned long long)n->rebind_failures);
	printf("# %u answers on old ports, %u of them at once\n", on_old,
	    longest_row);
	/* It has tried what it is about. */
	ck_assert_uint_ge(ports, PORTS);
	ck_assert_uint_ge(n->rebind_failures, PORTS / 4 - 1);
	ck_assert_uint_gt(on_old, 100);
	ck_assert_uint_gt(longest_row, 1);
	ck_assert(transport_udp(transport, 4, &udp));
	ck_assert_uint_eq(udp.sent, 2 * started);
	ck_assert_uint_eq(udp.received, 2 * started);
	ck_assert_uint_eq(udp.receive_dropped, 0);
	ck_assert_uint_eq(udp.send_errors, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("transport_load");
	TCase *tc = tcase_create("transport_load");

	seed = harness_seed();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 400);
	tcase_add_loop_test(tc, no_answer_is_lost, 0, TIMES);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
