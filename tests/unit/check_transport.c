/*
 * daemon/transport over loopback: ports that change, and those that fail to.
 * The same under constant load is check_transport_load.c.
 */
#include "daemon/transport.h"

#include <sys/resource.h>

#include "tests/unit/transport_fixture.h"

START_TEST(there_and_back)
{
	struct udp_counters n;

	say();
	ck_assert_uint_eq(peer_hears(), local_port());
	peer_tells(local_port(), "hello");
	TURN_UNTIL(seen.datagrams == 1);
	ck_assert(seen.current);
	ck_assert_uint_eq(seen.len, 5);
	ck_assert_mem_eq(seen.bytes, "hello", 5);
	ck_assert_uint_eq(seen.batches, 1);
	ck_assert_uint_eq(seen.sent, 1);
	ck_assert_int_eq(seen.error, 0);
	ck_assert(transport_udp(transport, 4, &n));
	ck_assert_uint_eq(n.sent, 1);
	ck_assert_uint_eq(n.received, 1);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_READY);
	ck_assert_uint_eq(transport_old_ports(transport), 0);
}
END_TEST

START_TEST(a_family_that_is_missing)
{
	const struct endpoint to = loopback(6, 9);
	const struct udp_token token = {.serial = 7};
	struct udp_counters n;

	transport_free(transport);
	socket_error_v6 = EAFNOSUPPORT;
	transport = transport_new(loop, &transport_hooks, &seen);
	ck_assert_ptr_nonnull(transport);
	ck_assert_int_eq(
	    transport_send(transport, &to, "?", 1, loop_now() + FAR, token),
	    EAFNOSUPPORT);
	ck_assert(!transport_udp(transport, 6, &n));
	ck_assert_uint_eq(transport_local_port(transport, 6), 0);
	/* It is not asked of the next port either. */
	sockets = 0;
	rebind_now();
	ck_assert_uint_eq(sockets, 1);
	say();
	ck_assert_uint_eq(peer_hears(), local_port());
	ck_assert_uint_eq(seen.sent, 1);
}
END_TEST

START_TEST(no_family_at_all)
{
	socket_error = EMFILE;
	errno = 0;
	ck_assert_ptr_null(transport_new(loop, &transport_hooks, &seen));
	ck_assert_int_eq(errno, EMFILE);
}
END_TEST

/* Rebinding */

static uint16_t port_in_hook;

static void
ask_three_times(void)
{
	for (int i = 0; i < 3; i++)
		transport_rebind(transport, 7);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_REBIND_PENDING);
	port_in_hook = local_port();
}

/* Nothing changes inside the hook; one new port is there after the turn. */
START_TEST(a_new_port_from_the_next_turn_on)
{
	const uint16_t before = local_port();
	const uint16_t before6 = transport_local_port(transport, 6);
	struct transport_port *held = transport_hold(transport);

	sockets = 0;
	seen.act = ask_three_times;
	peer_tells(before, "move");
	peer_tells(before, "move");
	TURN_UNTIL(seen.datagrams == 2);
	ck_assert_uint_eq(port_in_hook, before);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_READY);
	ck_assert_uint_ne(local_port(), before);
	ck_assert_uint_ne(local_port(), 0);
	if (before6 != 0)
		ck_assert_uint_ne(transport_local_port(transport, 6), before6);
	ck_assert_uint_eq(sockets, before6 != 0 ? 2 : 1);
	ck_assert_uint_eq(transport_counters(transport)->rebinds, 1);
	ck_assert_uint_eq(transport_old_ports(transport), 1);
	say();
	ck_assert_uint_eq(peer_hears(), local_port());
	transport_release(held);
}
END_TEST

/* Is there a socket behind the port? */
static bool
open_still(uint16_t port)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);
	bool open;

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	ck_assert_int_eq(send(fd, "!", 1, 0), 1);
	open = send(fd, "!", 1, 0) == 1;
	close(fd);
	return open;
}

START_TEST(an_old_port_hears_until_it_is_released)
{
	const uint16_t first = local_port();
	struct transport_port *a = transport_hold(transport);
	struct transport_port *again = transport_hold(transport);

	rebind_now();
	for (unsigned int i = 1; i <= 3; i++) {
		peer_tells(first, "late");
		TURN_UNTIL(seen.datagrams == i);
		ck_assert(!seen.current);
	}
	peer_tells(local_port(), "new");
	TURN_UNTIL(seen.datagrams == 4);
	ck_assert(seen.current);
	transport_release(a);
	loop_turn(loop);
	ck_assert_uint_eq(transport_old_ports(transport), 1);
	transport_release(again);
	ck_assert_uint_eq(transport_old_ports(transport), 1); /* not here */
	TURN_UNTIL(transport_old_ports(transport) == 0);
	ck_assert(!open_still(first));
	ck_assert(open_still(local_port()));
}
END_TEST

START_TEST(a_port_that_nobody_holds_goes_at_once)
{
	const uint16_t first = local_port();

	rebind_now();
	TURN_UNTIL(transport_old_ports(transport) == 0);
	ck_assert(!open_still(first));
}
END_TEST

/* An operation that holds the first port has sent over the second as well. */
START_TEST(a_held_port_keeps_the_later_ones)
{
	struct transport_port *a = transport_hold(transport), *b;
	uint16_t second;

	rebind_now();
	second = local_port();
	say(); /* a replay */
	ck_assert_uint_eq(peer_hears(), second);
	b = transport_hold(transport);
	rebind_now();
	transport_release(b);
	loop_turn(loop);
	ck_assert_uint_eq(transport_old_ports(transport), 2);
	peer_tells(second, "its answer");
	TURN_UNTIL(seen.datagrams == 1);
	ck_assert(!seen.current);
	transport_release(a);
	TURN_UNTIL(transport_old_ports(transport) == 0);
	ck_assert(!open_still(second));
}
END_TEST

/* What is queued leaves by the port that it was queued for. */
START_TEST(an_old_port_sends_its_queue)
{
	const uint16_t first = local_port();

	send_error = ENOBUFS;
	say();
	loop_turn(loop);
	rebind_now();
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_uint_eq(seen.sent, 0);
	ck_assert_uint_eq(transport_old_ports(transport), 1);
	send_error = 0;
	ck_assert_uint_eq(peer_hears(), first);
	TURN_UNTIL(transport_old_ports(transport) == 0);
	ck_assert_uint_eq(seen.sent, 1);
	ck_assert_int_eq(seen.error, 0);
}
END_TEST

START_TEST(too_many_old_ports_put_it_off)
{
	struct transport_port *held[TRANSPORT_MAX_OLD + 1];
	uint16_t last;

	for (unsigned int i = 0; i <= TRANSPORT_MAX_OLD; i++) {
		held[i] = transport_hold(transport);
		if (i < TRANSPORT_MAX_OLD)
			rebind_now();
	}
	last = local_port();
	transport_rebind(transport, 7);
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_REBIND_PENDING);
	ck_assert_uint_eq(transport_old_ports(transport), TRANSPORT_MAX_OLD);
	ck_assert_uint_eq(local_port(), last);
	ck_assert_uint_eq(transport_counters(transport)->rebind_failures, 0);
	say(); /* nothing waits for it */
	ck_assert_uint_eq(peer_hears(), last);
	transport_release(held[3]); /* not the oldest */
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	ck_assert_uint_eq(local_port(), last);
	transport_release(held[0]);
	TURN_UNTIL(transport_state(transport) == TRANSPORT_READY);
	ck_assert_uint_ne(local_port(), last);
	ck_assert_uint_eq(
	    transport_counters(transport)->rebinds, TRANSPORT_MAX_OLD + 1);
	for (unsigned int i = 1; i <= TRANSPORT_MAX_OLD; i++) {
		if (i != 3)
			transport_release(held[i]);
	}
	TURN_UNTIL(transport_old_ports(transport) == 0);
}
END_TEST

/* Failures */

/* Lets this many more descriptors be opened. */
static void
allow_files(unsigned int more)
{
	struct rlimit limit;
	int fds[2], highest = -1;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* The lowest free number is the first to be taken. */
	fds[0] = dup(0);
	highest = fds[0];
	for (unsigned int i = 1; i < more; i++) {
		fds[1] = dup(0);
		highest = fds[1];
	}
	for (int fd = fds[0]; fd <= highest; fd++)
		close(fd);
	limit.rlim_cur = (rlim_t)(more == 0 ? fds[0] : highest + 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

START_TEST(a_failed_rebind_keeps_the_port)
{
	const uint16_t first = local_port();
	int64_t begin;

	allow_files(0);
	begin = loop_now();
	transport_rebind(transport, 7);
	/* Three attempts at once, the fourth after the pause. */
	TURN_UNTIL(transport_counters(transport)->rebind_failures == 3);
	ck_assert_int_eq(transport_rebind_error(transport), EMFILE);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_REBIND_PENDING);
	ck_assert_uint_eq(local_port(), first);
	transport_rebind(transport, 7); /* changes nothing */
	say();
	ck_assert_uint_eq(peer_hears(), first);
	peer_tells(first, "here");
	TURN_UNTIL(seen.datagrams == 1);
	ck_assert(seen.current);
	TURN_UNTIL(transport_counters(transport)->rebind_failures == 4);
	ck_assert_int_ge(loop_now() - begin, 100000);
	/* It goes on by itself, not before the longer pause. */
	allow_files(100);
	TURN_UNTIL(transport_state(transport) == TRANSPORT_READY);
	ck_assert_int_ge(loop_now() - begin, 300000);
	ck_assert_int_eq(transport_rebind_error(transport), 0);
	ck_assert_uint_ne(local_port(), first);
	ck_assert_uint_eq(transport_counters(transport)->rebinds, 1);
	ck_assert_uint_eq(transport_counters(transport)->rebind_failures, 4);
	say();
	ck_assert_uint_eq(peer_hears(), local_port());
}
END_TEST

/* With room for one socket of two: the one is given back. */
START_TEST(both_families_or_none)
{
	const uint16_t first = local_port();
	const uint16_t first6 = transport_local_port(transport, 6);

	if (first6 == 0) {
		printf("# no IPv6 here\n");
		return;
	}
	allow_files(1);
	transport_rebind(transport, 7);
	TURN_UNTIL(transport_counters(transport)->rebind_failures == 3);
	ck_assert_uint_eq(sockets, 2 + 3 * 2);
	ck_assert_uint_eq(local_port(), first);
	ck_assert_uint_eq(transport_local_port(transport, 6), first6);
	ck_assert_int_ge(dup(0), 0); /* the room is there still */
}
END_TEST

/* After a success the pause shrinks and the burst comes back. */
START_TEST(success_is_told_to_the_pace)
{
	for (unsigned int i = 0; i < 6; i++) {
		int64_t begin = loop_now();

		socket_error = EMFILE;
		transport_rebind(transport, 7);
		TURN_UNTIL(
		    transport_counters(transport)->rebind_failures == i + 1);
		socket_error = 0;
		TURN_UNTIL(transport_state(transport) == TRANSPORT_READY);
		/* A failure and its retry take two of the burst, and one comes
		 * back: the third time has none left. */
		if (i == 2)
			ck_assert_int_ge(loop_now() - begin, 100000);
		if (i < 2)
			continue;
		rebind_now();
		rebind_now();
	}
	ck_assert_uint_eq(transport_counters(transport)->rebinds, 6 + 8);
}
END_TEST

/* The same with all its pauses in virtual time: tests/world/port-change-*. */
START_TEST(a_server_that_is_never_content_waits)
{
	int64_t begin;

	for (int i = 0; i < 16; i++)
		rebind_now();
	begin = loop_now();
	transport_kept(transport, 7); /* too early to tell */
	rebind_now();
	ck_assert_int_ge(loop_now() - begin, 100000);
	begin = loop_now();
	TURN_UNTIL(loop_now() >= begin + 100000);
	transport_kept(transport, 8);
	begin = loop_now();
	rebind_now();
	ck_assert_int_ge(loop_now() - begin, 200000);
	begin = loop_now();
	TURN_UNTIL(loop_now() >= begin + 100000);
	transport_kept(transport, 7);
	transport_rebind(transport, 7);
	loop_turn(loop);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_READY);
	ck_assert_uint_eq(transport_counters(transport)->rebinds, 19);
	ck_assert_uint_eq(transport_counters(transport)->rebind_failures, 0);
}
END_TEST

/* Asks for a new port; with an error, until that is paced. */
static void
rebind_pending(struct transport *t)
{
	transport_rebind(t, 7);
	if (socket_error != 0)
		TURN_UNTIL(transport_counters(t)->rebind_failures == 4);
	ck_assert_int_eq(transport_state(t), TRANSPORT_REBIND_PENDING);
}

/*
 * 0 before the turn, 1 while it is paced, 2 while there are too many old ports:
 * what was asked for is not done, also when it could be. Another one, which
 * waits for the same and longer, tells when.
 */
START_TEST(staying_forgets_a_rebind)
{
	struct transport *other = transport_new(loop, &transport_hooks, &seen);
	struct transport_port *held = transport_hold(transport);
	uint64_t rebinds;
	uint16_t port;

	ck_assert_ptr_nonnull(other);
	for (int i = 0; _i == 2 && i < TRANSPORT_MAX_OLD; i++)
		rebind_now();
	rebinds = transport_counters(transport)->rebinds;
	port = local_port();
	socket_error = _i == 1 ? EMFILE : 0;
	rebind_pending(transport);
	rebind_pending(other);
	transport_stay(transport);
	ck_assert_int_eq(transport_state(transport), TRANSPORT_READY);
	if (_i == 1) { /* the pause is not over for that */
		transport_rebind(transport, 7);
		loop_turn(loop);
		ck_assert_uint_eq(
		    transport_counters(transport)->rebind_failures, 4);
		transport_stay(transport);
	}
	socket_error = 0;
	transport_release(held);
	TURN_UNTIL(transport_old_ports(transport) == 0 &&
		   transport_counters(other)->rebinds == 1);
	loop_turn(loop);
	ck_assert_uint_eq(transport_counters(transport)->rebinds, rebinds);
	ck_assert_uint_eq(local_port(), port);
	rebind_now(); /* it can be asked for again */
	transport_free(other);
}
END_TEST

START_TEST(idle_with_nothing_held_and_nothing_queued)
{
	struct transport_port *held;

	ck_assert(transport_idle(transport));
	held = transport_hold(transport);
	ck_assert(!transport_idle(transport));
	rebind_now();
	ck_assert(!transport_idle(transport)); /* the old one is held */
	transport_release(held);
	ck_assert(transport_idle(transport));
	send_error = ENOBUFS;
	say();
	ck_assert(!transport_idle(transport));
	loop_turn(loop);
	ck_assert(!transport_idle(transport));
	send_error = 0;
	TURN_UNTIL(seen.sent == 1);
	ck_assert(transport_idle(transport));
}
END_TEST

/* What comes back */

START_TEST(icmp_is_told)
{
	const struct udp_token token = {.serial = 7};
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in in = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(in);
	struct endpoint nobody;
	struct udp_counters n;

	/* Nobody else's, and closed to us: it is connected to itself. */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	nobody = loopback(4, ntohs(in.sin_port));
	ck_assert_int_eq(
	    transport_send(transport, &nobody, "?", 1, loop_now() + FAR, token),
	    0);
	TURN_UNTIL(seen.refused == 1);
	ck_assert(endpoint_equal(&seen.refused_to, &nobody));
	ck_assert_int_eq(seen.refused_error, ECONNREFUSED);
	ck_assert_int_eq(seen.error, 0);
	/* Counts of a port that is gone are kept. */
	rebind_now();
	TURN_UNTIL(transport_old_ports(transport) == 0);
	say();
	peer_hears();
	ck_assert(transport_udp(transport, 4, &n));
	ck_assert_uint_eq(n.sent, 2);
	ck_assert_uint_eq(n.refused, 1);
	close(fd);
}
END_TEST

START_TEST(drain_reads_every_port)
{
	const uint16_t first = local_port();
	struct transport_port *held = transport_hold(transport);

	rebind_now();
	peer_tells(first, "old");
	peer_tells(local_port(), "new");
	ck_assert(!transport_drain(transport));
	ck_assert_uint_eq(seen.datagrams, 2);
	ck_assert_uint_eq(seen.old, 1);
	ck_assert(seen.current); /* the old one came first */
	/* Bounded, and it says so. */
	for (unsigned int i = 0; i < 600; i++)
		peer_tells(first, "flood");
	peer_tells(local_port(), "new");
	ck_assert(transport_drain(transport));
	ck_assert_uint_eq(seen.datagrams, 2 + 512 + 1);
	TURN_UNTIL(seen.datagrams == 2 + 601);
	transport_release(held);
}
END_TEST

/* The end */

static struct transport_port *held_in_hook;
static unsigned int again;

static void
send_again(void)
{
	const struct udp_token token = {.serial = 7};

	ck_assert_int_eq(seen.error, ECANCELED);
	transport_release(held_in_hook);
	held_in_hook = NULL;
	transport_rebind(transport, 7);
	if (transport_send(
		transport, &peer_at, "!", 1, loop_now() + FAR, token) == 0)
		again++;
}

START_TEST(freeing_answers_on_every_port)
{
	struct transport_port *after;
	unsigned int sent;

	held_in_hook = transport_hold(transport);
	send_error = ENOBUFS;
	say();
	say();
	loop_turn(loop);
	rebind_now();
	after = transport_hold(transport);
	say();
	seen.act_sent = send_again;
	transport_free(transport);
	transport = NULL;
	sent = seen.sent;
	ck_assert_uint_eq(sent, 3 + again);
	ck_assert_uint_eq(seen.sent_errors, sent);
	transport_release(after);
	loop_turn(loop); /* nothing of it is left there */
	ck_assert_uint_eq(seen.sent, sent);
}
END_TEST

START_TEST(freeing_ends_what_is_pending)
{
	struct transport_port *held = transport_hold(transport);

	rebind_now();
	transport_release(held); /* a task */
	transport_rebind(transport, 7);
	transport_free(transport);
	loop_turn(loop);
	transport = transport_new(loop, &transport_hooks, &seen);
	socket_error = EMFILE;
	transport_rebind(transport, 7);
	TURN_UNTIL(transport_counters(transport)->rebind_failures == 3);
	transport_free(transport); /* a timer */
	transport = NULL;
	loop_turn(loop);
	transport_free(NULL);
	transport_release(NULL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("transport");
	TCase *tc = tcase_create("transport");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, there_and_back);
	tcase_add_test(tc, a_family_that_is_missing);
	tcase_add_test(tc, no_family_at_all);
	tcase_add_test(tc, a_new_port_from_the_next_turn_on);
	tcase_add_test(tc, an_old_port_hears_until_it_is_released);
	tcase_add_test(tc, a_port_that_nobody_holds_goes_at_once);
	tcase_add_test(tc, a_held_port_keeps_the_later_ones);
	tcase_add_test(tc, an_old_port_sends_its_queue);
	tcase_add_test(tc, too_many_old_ports_put_it_off);
	tcase_add_test(tc, a_failed_rebind_keeps_the_port);
	tcase_add_test(tc, both_families_or_none);
	tcase_add_test(tc, success_is_told_to_the_pace);
	tcase_add_test(tc, a_server_that_is_never_content_waits);
	tcase_add_loop_test(tc, staying_forgets_a_rebind, 0, 3);
	tcase_add_test(tc, idle_with_nothing_held_and_nothing_queued);
	tcase_add_test(tc, icmp_is_told);
	tcase_add_test(tc, drain_reads_every_port);
	tcase_add_test(tc, freeing_answers_on_every_port);
	tcase_add_test(tc, freeing_ends_what_is_pending);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
