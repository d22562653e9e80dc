/*
 * What daemon/io/udp sends, over loopback, with failures of the kernel that
 * are scripted: the only way to see a full buffer there.
 */
#include "daemon/io/udp.h"

#include <netinet/udp.h>

#include "tests/unit/udp_fixture.h"

/* Datagrams that grow leave each alone: check_udp_group.c tells why. */
static const uint8_t longer[100];

START_TEST(a_turn_leaves_in_batches_and_in_order)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 100; i++)
		send_to(a, &a_seen, &to, longer, i + 1, i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 100);
	ck_assert_uint_eq(send_calls, 2);
	for (unsigned int i = 0; i < 100; i++)
		ck_assert_uint_eq(a_seen.order[i], i);
	TURN_UNTIL(b_seen.datagrams == 100);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(partial_results_go_on)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_most = 7;
	for (unsigned int i = 0; i < 100; i++)
		send_to(a, &a_seen, &to, longer, i + 1, i);
	TURN_UNTIL(b_seen.datagrams == 100);
	ck_assert_uint_eq(a_seen.sent, 100);
	ck_assert_uint_eq(send_calls, 15);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* Of the 90: 3 is of broadcast, 4 of nowhere, the others of b. */
static unsigned int
place(uint64_t serial)
{
	return serial % 10 == 3 ? 1 : serial % 10 == 4 ? 2 : 0;
}

/* 255.255.255.255 without SO_BROADCAST, and port 0: the kernel's own no. */
START_TEST(an_error_concerns_its_datagram_only)
{
	static const int errors[] = {0, EACCES, EINVAL};
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to[3] = {local(b, 4), local(b, 4), local(b, 4)};
	uint64_t next[3] = {0}; /* each in the order of its destination */

	memset(to[1].addr, 255, 4);
	to[2].port = 0;
	for (unsigned int i = 0; i < 90; i++)
		send_to(a, &a_seen, &to[place(i)], &i, sizeof(i), i);
	TURN_UNTIL(b_seen.datagrams == 72);
	ck_assert_uint_eq(a_seen.sent, 90);
	for (unsigned int i = 0; i < 90; i++) {
		uint64_t serial = a_seen.order[i];

		ck_assert_int_eq(a_seen.errors[i], errors[place(i)]);
		ck_assert_uint_ge(serial, next[place(serial)]);
		next[place(serial)] = serial;
	}
	ck_assert_uint_eq(udp_counters(a)->send_errors, 18);
	ck_assert_uint_eq(udp_counters(a)->sent, 72);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* Its own is an error that persists, with nothing in the error queue. */
START_TEST(unreachable_is_told_to_one_token)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	static const int script[] = {
	    ENETUNREACH, ENETUNREACH, EINTR, EPERM, EINTR, EHOSTUNREACH};

	memcpy(send_errors, script, sizeof(script));
	for (unsigned int i = 0; i < 5; i++)
		send_to(a, &a_seen, &to, longer, i + 1, i);
	TURN_UNTIL(b_seen.datagrams == 3);
	ck_assert_int_eq(a_seen.errors[0], ENETUNREACH);
	ck_assert_int_eq(a_seen.errors[1], EHOSTUNREACH);
	for (unsigned int i = 2; i < 5; i++)
		ck_assert_int_eq(a_seen.errors[i], 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* As an earlier datagram's, which the kernel could not queue, would be. */
START_TEST(an_error_that_passes_is_nobodys)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 5; i++) { /* in one slot of the queue */
		send_errors[0] = ECONNREFUSED;
		send_error_at = 0;
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
		TURN_UNTIL(b_seen.datagrams == i + 1);
		ck_assert_int_eq(a_seen.errors[i], 0);
	}
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	ck_assert_uint_eq(udp_counters(a)->refused, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* As often as something else was refused, right before it. */
START_TEST(it_is_tried_until_no_echo_is_left)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), nobody;
	int fd = closed_port(4, &nobody);
	union address at;

	address_to_sockaddr(&nobody, &at);
	refuses = at.in4;
	send_echoes = 5;
	send_to(a, &a_seen, &to, "x", 1, 1);
	TURN_UNTIL(b_seen.datagrams == 1);
	ck_assert_int_eq(a_seen.errors[1], 0);
	ck_assert_uint_eq(send_calls, 6);
	ck_assert_uint_eq(a_seen.refused, 5);
	ck_assert(endpoint_equal(&a_seen.refused_to, &nobody));
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
	close(fd);
}
END_TEST

START_TEST(what_expired_is_not_sent)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 10; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i % 3 == 0 ? loop_now() : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	TURN_UNTIL(b_seen.datagrams == 6 && a_seen.sent == 10);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_int_eq(a_seen.errors[i], i % 3 == 0 ? ETIME : 0);
	ck_assert_uint_eq(udp_counters(a)->send_expired, 4);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

static void
blocked_by(int error)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	int64_t soon;

	send_error_always = error;
	for (unsigned int i = 0; i < 40; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 0);
	ck_assert_uint_eq(udp_counters(a)->send_blocked, 1);
	/* One in the middle expires while all wait, and is told in time. */
	soon = loop_now() + 5000;
	udp_send(a, &to, "soon", 4, soon, token_of(&a_seen, 40));
	send_to(a, &a_seen, &to, "late", 4, 41);
	TURN_UNTIL(a_seen.sent == 1);
	ck_assert_int_ge(loop_now(), soon);
	ck_assert_int_eq(a_seen.errors[40], ETIME);
	ck_assert_uint_eq(udp_counters(a)->send_blocked, 1);
	send_error_always = 0;
	TURN_UNTIL(b_seen.datagrams == 41);
	ck_assert_uint_eq(a_seen.sent, 42);
	ck_assert_uint_eq(b_seen.last_len, 4);
	ck_assert_mem_eq(b_seen.last, "late", 4);
	/* And the socket works as before. */
	send_to(a, &a_seen, &to, "next", 4, 42);
	loop_turn(loop);
	ck_assert_int_eq(a_seen.errors[42], 0);
	udp_free(a);
	udp_free(b);
}

START_TEST(a_full_buffer_waits_for_writability)
{
	blocked_by(EAGAIN);
}
END_TEST

START_TEST(a_full_device_waits_for_the_timer)
{
	blocked_by(ENOBUFS);
}
END_TEST

/*
 * A corked datagram fills the real buffer, so that writability, too, is real:
 * nothing but the expiry wakes the loop, until the cork is out.
 */
START_TEST(a_full_buffer_costs_no_busy_loop)
{
	static const uint8_t plug[4000];
	const int small = 1, on = 1, off = 0;
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = next_fd();
	struct udp *a, *b;
	struct endpoint to;
	int64_t soon;

	a = udp_new(loop, 4, &hooks, &a_seen);
	b = udp_new(loop, 4, &hooks, &b_seen);
	to = local(b, 4);
	in.sin_port = htons(udp_port(b));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	ck_assert_int_eq(
	    setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)), 0);
	ck_assert_int_eq(sendto(fd, plug, sizeof(plug), 0,
			     (const struct sockaddr *)&in, sizeof(in)),
	    sizeof(plug));
	send_error_always = EAGAIN; /* a corked socket would append */
	udp_send(a, &to, "1", 1, loop_now() + 300000, token_of(&a_seen, 1));
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 1);
	/* Comes later and expires earlier. */
	soon = loop_now() + 5000;
	udp_send(a, &to, "2", 1, soon, token_of(&a_seen, 2));
	send_to(a, &a_seen, &to, "3", 1, 3);
	TURN_UNTIL(a_seen.errors[2] == ETIME);
	ck_assert_int_ge(loop_now(), soon);
	ck_assert_int_eq(a_seen.errors[1], -1);
	TURN_UNTIL(a_seen.errors[1] == ETIME);
	ck_assert_uint_le(send_calls, 4);
	ck_assert_int_eq(a_seen.errors[3], -1);
	send_error_always = 0;
	ck_assert_int_eq(
	    setsockopt(fd, IPPROTO_UDP, UDP_CORK, &off, sizeof(off)), 0);
	TURN_UNTIL(b_seen.datagrams == 2);
	ck_assert_int_eq(a_seen.errors[3], 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* What goes another way goes on, and in order; the rest waits its turn. */
START_TEST(a_full_device_holds_up_its_own_alone)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), far = to;
	unsigned int taken = 0;

	far.addr[3] = 2;
	send_full = htonl(INADDR_LOOPBACK + 1);
	for (unsigned int i = 0; i < 200; i++)
		send_to(a, &a_seen, i % 2 == 0 ? &far : &to, &i, sizeof(i), i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 100);
	for (unsigned int i = 0; i < 200; i++)
		ck_assert_int_eq(a_seen.errors[i], i % 2 == 0 ? -1 : 0);
	ck_assert_uint_eq(udp_counters(a)->send_blocked, 1);
	send_to(a, &a_seen, &to, "x", 1, 201);
	TURN_UNTIL(a_seen.errors[201] == 0);
	ck_assert_uint_eq(udp_waiting(a), 100);
	send_calls = 0;
	send_full = 0;
	TURN_UNTIL(udp_waiting(a) == 0);
	for (unsigned int i = 0; i < 200; i++) {
		ck_assert_int_eq(a_seen.errors[i], 0);
		taken += a_seen.order[i] % 2;
	}
	ck_assert_uint_eq(taken, 101);
	for (unsigned int i = 102; i < 201; i++)
		ck_assert_uint_eq(a_seen.order[i], a_seen.order[i - 1] + 2);
	TURN_UNTIL(b_seen.datagrams == 201);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* Nor when the queue is full of what waits for it: the oldest gives way. */
START_TEST(a_full_device_does_not_fill_the_queue)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), far = to;

	far.addr[3] = 2;
	send_full = htonl(INADDR_LOOPBACK + 1);
	for (unsigned int i = 0; i < 256; i++)
		send_to(a, &a_seen, &far, &i, sizeof(i), i);
	loop_turn(loop);
	ck_assert_uint_eq(udp_waiting(a), 256);
	for (unsigned int i = 256; i < 356; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	TURN_UNTIL(b_seen.datagrams == 100);
	/* Each flush makes room for the next one: a single one had to go. */
	ck_assert_int_eq(a_seen.errors[0], ENOBUFS);
	for (unsigned int i = 1; i < 356; i++)
		ck_assert_int_eq(a_seen.errors[i], i < 256 ? -1 : 0);
	/* What goes to the full device pushes out nobody. */
	send_to(a, &a_seen, &far, "x", 1, 356);
	send_to(a, &a_seen, &far, "x", 1, 357);
	ck_assert_int_eq(a_seen.errors[356], -1);
	ck_assert_int_eq(a_seen.errors[357], ENOBUFS);
	send_full = 0;
	TURN_UNTIL(udp_waiting(a) == 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* More full ways than a flush tries: it ends, and comes back to them. */
START_TEST(many_full_devices_cost_a_few_calls)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_error_always = ENOBUFS;
	for (unsigned int i = 0; i < 40; i++) {
		to.addr[3] = (uint8_t)(1 + i % 20);
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	}
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 9);
	ck_assert_uint_eq(a_seen.sent, 0);
	send_error_always = 0;
	TURN_UNTIL(b_seen.datagrams == 40);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(a_full_device_costs_no_busy_loop)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct endpoint to = local(a, 4);
	int one = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &one);

	send_error_always = ENOBUFS;
	send_to(a, &a_seen, &to, "x", 1, 1);
	loop_timer_set(t, loop_now() + 20000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_ge(send_calls, 2);
	ck_assert_uint_le(send_calls, 25); /* one a millisecond */
	loop_timer_free(t);
	ck_assert_uint_eq(a_seen.sent, 0);
	udp_free(a);
	ck_assert_int_eq(a_seen.errors[1], ECANCELED);
}
END_TEST

/* What is queued is answered, in order, and so is what the hook sends then. */
START_TEST(freeing_answers_what_is_queued)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct endpoint to = local(a, 4);

	for (unsigned int i = 0; i < 256; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	a_seen.resend = a;
	resend_to = to;
	udp_free(a);
	ck_assert_uint_eq(send_calls, 0);
	ck_assert_uint_eq(a_seen.sent, 512);
	for (unsigned int i = 0; i < 256; i++) {
		ck_assert_int_eq(a_seen.errors[i], ECANCELED);
		ck_assert_int_eq(a_seen.errors[2000 + i], ECANCELED);
		ck_assert_uint_eq(a_seen.order[2 * i], i);
	}
	loop_turn(loop); /* nothing of it is left there */
}
END_TEST

START_TEST(a_full_queue_is_flushed_at_once)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 257; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	ck_assert_uint_eq(a_seen.sent, 256); /* inside the last udp_send() */
	TURN_UNTIL(a_seen.sent == 257);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(a_full_queue_that_is_blocked_answers)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_error_always = EAGAIN;
	for (unsigned int i = 0; i < 256; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i < 3 ? loop_now() + 1000 : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	ck_assert_uint_eq(a_seen.sent, 0);
	send_to(a, &a_seen, &to, "x", 1, 256);
	if (a_seen.errors[0] != ETIME) /* not on a very slow machine */
		ck_assert_int_eq(a_seen.errors[256], ENOBUFS);
	/* Those that expire make room. */
	TURN_UNTIL(a_seen.errors[2] == ETIME);
	send_to(a, &a_seen, &to, "x", 1, 257);
	ck_assert_int_eq(a_seen.errors[257], -1);
	send_error_always = 0;
	TURN_UNTIL(a_seen.errors[257] == 0);
	TURN_UNTIL(b_seen.datagrams >= 254);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(the_hook_may_send)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	unsigned int taken = 0;

	a_seen.resend = a;
	resend_to = to;
	/* Over the queue, so that some answers come from udp_send() itself. */
	for (unsigned int i = 0; i < 600; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i % 7 == 2 ? loop_now() : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	TURN_UNTIL(a_seen.sent == 1200);
	for (unsigned int i = 0; i < SENT_MAX; i++) {
		if (i < 600 || (i >= 2000 && i < 2600))
			ck_assert_int_ne(a_seen.errors[i], -1);
		taken += a_seen.errors[i] == 0;
	}
	ck_assert_uint_eq(udp_counters(a)->sent, taken);
	ck_assert_uint_eq(udp_counters(a)->sent + udp_counters(a)->send_errors +
			      udp_counters(a)->send_expired,
	    1200);
	TURN_UNTIL(b_seen.datagrams == taken);
	udp_free(a);
	udp_free(b);
}
END_TEST

static uint64_t unwanted;

static bool
is_wanted(void *arg, struct udp_token token)
{
	(void)arg;
	return token.serial != unwanted;
}

/* What it was queued for has happened: it is not sent, and that is no error. */
START_TEST(what_nobody_wants_is_not_sent)
{
	const struct udp_hooks asking = {.datagram = hooks.datagram,
	    .batch = hooks.batch,
	    .wanted = is_wanted,
	    .sent = hooks.sent,
	    .refused = hooks.refused};
	struct udp *a = udp_new(loop, 4, &asking, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	unwanted = 2;
	for (unsigned int i = 0; i < 5; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	TURN_UNTIL(b_seen.datagrams == 4);
	ck_assert_uint_eq(a_seen.sent, 5);
	for (unsigned int i = 0; i < 5; i++)
		ck_assert_int_eq(a_seen.errors[i], i == 2 ? ECANCELED : 0);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	ck_assert_uint_eq(udp_counters(a)->sent, 4);
	udp_free(a);
	udp_free(b);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("udp_send");
	TCase *tc = tcase_create("udp");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_turn_leaves_in_batches_and_in_order);
	tcase_add_test(tc, partial_results_go_on);
	tcase_add_test(tc, what_nobody_wants_is_not_sent);
	tcase_add_test(tc, an_error_concerns_its_datagram_only);
	tcase_add_test(tc, unreachable_is_told_to_one_token);
	tcase_add_test(tc, an_error_that_passes_is_nobodys);
	tcase_add_test(tc, it_is_tried_until_no_echo_is_left);
	tcase_add_test(tc, what_expired_is_not_sent);
	tcase_add_test(tc, a_full_buffer_waits_for_writability);
	tcase_add_test(tc, a_full_device_waits_for_the_timer);
	tcase_add_test(tc, a_full_buffer_costs_no_busy_loop);
	tcase_add_test(tc, a_full_device_holds_up_its_own_alone);
	tcase_add_test(tc, a_full_device_does_not_fill_the_queue);
	tcase_add_test(tc, many_full_devices_cost_a_few_calls);
	tcase_add_test(tc, a_full_device_costs_no_busy_loop);
	tcase_add_test(tc, freeing_answers_what_is_queued);
	tcase_add_test(tc, a_full_queue_is_flushed_at_once);
	tcase_add_test(tc, a_full_queue_that_is_blocked_answers);
	tcase_add_test(tc, the_hook_may_send);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
