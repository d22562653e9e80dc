/*
 * daemon/io/udp over loopback: its life, and what comes in, datagrams and
 * errors. What goes out is check_udp_send.c.
 */
#include "daemon/io/udp.h"

#include "tests/unit/udp_fixture.h"

static void
round_trip(int family)
{
	struct udp *a = udp_new(loop, family, &hooks, &a_seen);
	struct udp *b = udp_new(loop, family, &hooks, &b_seen);
	struct endpoint to, back;

	if (a == NULL && family == 6 && errno == EAFNOSUPPORT) {
		printf("# no IPv6 here\n");
		return;
	}
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_ne(udp_port(a), 0);
	to = local(b, family);
	back = local(a, family);
	send_to(a, &a_seen, &to, "hello", 5, 1);
	ck_assert_uint_eq(send_calls, 0); /* at the end of the turn */
	TURN_UNTIL(b_seen.datagrams == 1);
	ck_assert_int_eq(a_seen.errors[1], 0);
	ck_assert_uint_eq(b_seen.last_len, 5);
	ck_assert_mem_eq(b_seen.last, "hello", 5);
	ck_assert_mem_eq(b_seen.from.addr, back.addr, 16);
	ck_assert_uint_eq(b_seen.from.family, (uint8_t)family);
	ck_assert_uint_eq(b_seen.from.port, udp_port(a));
	ck_assert_uint_eq(b_seen.batches, 1);
	ck_assert_uint_eq(udp_counters(a)->sent, 1);
	ck_assert_uint_eq(udp_counters(a)->sent_bytes, 5);
	ck_assert_uint_eq(udp_counters(b)->received, 1);
	ck_assert_uint_eq(udp_counters(b)->received_bytes, 5);
	send_to(b, &b_seen, &b_seen.from, NULL, 0, 2); /* empty, and back */
	TURN_UNTIL(a_seen.datagrams == 1);
	ck_assert_uint_eq(a_seen.last_len, 0);
	udp_free(a);
	udp_free(b);
}

START_TEST(ipv4_there_and_back)
{
	round_trip(4);
}
END_TEST

START_TEST(ipv6_there_and_back)
{
	round_trip(6);
}
END_TEST

START_TEST(other_families_are_refused)
{
	struct udp *a;
	struct endpoint to;

	errno = 0;
	ck_assert_ptr_null(udp_new(loop, 5, &hooks, NULL));
	ck_assert_int_eq(errno, EAFNOSUPPORT);
	a = udp_new(loop, 4, &hooks, &a_seen);
	to = local(a, 6);
	send_to(a, &a_seen, &to, "x", 1, 1);
	ck_assert_int_eq(a_seen.errors[1], EAFNOSUPPORT);
	udp_free(a);
	udp_free(NULL);
}
END_TEST

START_TEST(a_failed_socket_gives_errno)
{
	int most = dup(0);

	/* With no descriptor left: errno survives the clean-up. */
	while (dup(0) >= 0)
		continue;
	errno = 0;
	ck_assert_ptr_null(udp_new(loop, 4, &hooks, NULL));
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_ge(most, 0);
	for (int fd = most; fd < 1024; fd++)
		close(fd);
}
END_TEST

START_TEST(too_long_is_refused_and_the_longest_is_not)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	uint8_t bytes[1201];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	send_to(a, &a_seen, &to, bytes, 1201, 1);
	ck_assert_int_eq(a_seen.errors[1], EMSGSIZE);
	send_to(a, &a_seen, &to, bytes, 1200, 2);
	TURN_UNTIL(b_seen.datagrams == 1);
	ck_assert_uint_eq(b_seen.last_len, 1200);
	ck_assert_mem_eq(b_seen.last, bytes, 1200);
	ck_assert_uint_eq(b_seen.truncated, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(truncation_is_told)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);
	static uint8_t bytes[2049];

	ck_assert_int_eq(send(fd, bytes, 2048, 0), 2048);
	TURN_UNTIL(a_seen.datagrams == 1);
	ck_assert_uint_eq(a_seen.truncated, 0);
	ck_assert_int_eq(send(fd, bytes, 2049, 0), 2049);
	TURN_UNTIL(a_seen.datagrams == 2);
	ck_assert_uint_eq(a_seen.truncated, 1);
	ck_assert_uint_eq(udp_counters(a)->truncated, 1);
	close(fd);
	udp_free(a);
}
END_TEST

START_TEST(one_wake_up_is_bounded)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);

	for (unsigned int i = 0; i < 1200; i++)
		ck_assert_int_eq(send(fd, &i, sizeof(i), 0), sizeof(i));
	ck_assert(udp_drain(a));
	ck_assert_uint_eq(a_seen.datagrams, 16 * 32);
	ck_assert_uint_eq(a_seen.batches, 16);
	ck_assert_uint_eq(a_seen.most_in_batch, 32);
	ck_assert(!loop_behind(loop));
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.datagrams, 2 * 16 * 32);
	ck_assert(loop_behind(loop)); /* new work may wait for the rest */
	ck_assert(!loop_behind(loop));
	TURN_UNTIL(a_seen.datagrams == 1200);
	ck_assert(!loop_behind(loop));
	udp_drain(a); /* nothing there: no batch */
	ck_assert_uint_eq(a_seen.batches, 16 + 16 + 6);
	close(fd);
	udp_free(a);
}
END_TEST

static int flooder;

static void
flood(void *arg)
{
	struct loop_task *again = arg;

	for (int i = 0; i < 300; i++)
		(void)send(flooder, "f", 1, MSG_DONTWAIT);
	loop_defer(loop, again);
}
/* More comes in each turn than a turn reads. */
START_TEST(a_flood_stops_no_timer)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int left = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &left);
	struct loop_task task;

	flooder = stranger(a);
	loop_task_init(&task, flood, &task);
	flood(&task);
	loop_timer_set(t, loop_now() + 20000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(left, 0);
	ck_assert_uint_gt(a_seen.datagrams, 256);
	loop_cancel(loop, &task);
	loop_timer_free(t);
	close(flooder);
	udp_free(a);
}
END_TEST

START_TEST(receive_errors_are_counted_and_skipped)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);

	receive_errors[0] = ECONNREFUSED;
	receive_errors[1] = EINTR;
	receive_errors[2] = EHOSTUNREACH;
	ck_assert_int_eq(send(fd, "x", 1, 0), 1);
	udp_drain(a);
	ck_assert_uint_eq(a_seen.datagrams, 1);
	ck_assert_uint_eq(udp_counters(a)->receive_errors, 2);
	ck_assert_uint_eq(receive_calls, 4); /* the batch was short: no more */
	/* An error that never ends costs the bounded rounds, no more. */
	for (unsigned int i = 0; i < 8; i++)
		receive_errors[i] = EIO;
	receive_error_at = 0;
	receive_calls = 0;
	udp_drain(a);
	ck_assert_uint_eq(receive_calls, 9);
	close(fd);
	udp_free(a);
}
END_TEST

static void
closed(int family)
{
	struct endpoint nobody;
	int fd = closed_port(family, &nobody);
	struct udp *a;

	if (fd < 0 && family == 6) {
		printf("# no IPv6 here\n");
		return;
	}
	a = udp_new(loop, family, &hooks, &a_seen);
	send_to(a, &a_seen, &nobody, "anyone?", 7, 1);
	TURN_UNTIL(a_seen.refused == 1);
	ck_assert_int_eq(a_seen.errors[1], 0); /* the kernel did take it */
	ck_assert_int_eq(a_seen.refused_error, ECONNREFUSED);
	ck_assert(endpoint_equal(&a_seen.refused_to, &nobody));
	ck_assert_uint_eq(udp_counters(a)->refused, 1);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	ck_assert_uint_eq(udp_counters(a)->receive_errors, 0);
	udp_free(a);
	close(fd);
}

START_TEST(a_closed_port_is_told)
{
	closed(4);
}
END_TEST

START_TEST(a_closed_port_is_told_over_ipv6)
{
	closed(6);
}
END_TEST

/*
 * What goes to a closed port in these tests is empty: such datagrams leave each
 * alone, while a group is refused on this host as one.
 */

/* Every second one is refused, while the next is on its way already. */
START_TEST(a_refusal_is_not_blamed_on_the_next)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), nobody;
	int fd = closed_port(4, &nobody);

	for (unsigned int i = 0; i < 1000; i++) {
		send_to(a, &a_seen, i % 2 == 0 ? &nobody : &to, &i,
		    i % 2 == 0 ? 0 : sizeof(i), i);
	}
	TURN_UNTIL(b_seen.datagrams == 500 && a_seen.refused == 500);
	for (unsigned int i = 0; i < 1000; i++)
		ck_assert_int_eq(a_seen.errors[i], 0);
	ck_assert(endpoint_equal(&a_seen.refused_to, &nobody));
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
	close(fd);
}
END_TEST

/* The echo of one and an error of its own, in one batch. */
START_TEST(an_own_error_is_still_seen)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), nobody;
	int fd = closed_port(4, &nobody);
	struct endpoint broadcast = to;

	memset(broadcast.addr, 255, 4); /* without SO_BROADCAST: EACCES */
	for (unsigned int i = 0; i < 90; i++) {
		send_to(a, &a_seen,
		    i % 3 == 0   ? &nobody
		    : i % 3 == 1 ? &broadcast
				 : &to,
		    &i, i % 3 == 0 ? 0 : sizeof(i), i);
	}
	TURN_UNTIL(b_seen.datagrams == 30 && a_seen.refused == 30);
	for (unsigned int i = 0; i < 90; i++)
		ck_assert_int_eq(a_seen.errors[i], i % 3 == 1 ? EACCES : 0);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 30);
	udp_free(a);
	udp_free(b);
	close(fd);
}
END_TEST

/* An error that is read once wakes nobody again. */
START_TEST(errors_cost_no_busy_loop)
{
	struct endpoint nobody;
	int fd = closed_port(4, &nobody);
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int one = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &one);

	for (unsigned int i = 0; i < 200; i++) /* over what one call reads */
		send_to(a, &a_seen, &nobody, NULL, 0, i);
	TURN_UNTIL(udp_counters(a)->refused == 200);
	receive_calls = 0;
	loop_timer_set(t, loop_now() + 20000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_le(receive_calls, 2);
	ck_assert_uint_eq(a_seen.refused, 200);
	loop_timer_free(t);
	udp_free(a);
	close(fd);
}
END_TEST

/* What the kernel drops is counted at once, before anything is read. */
START_TEST(a_full_receive_buffer_is_counted)
{
	const int small = 1;
	int fd = next_fd();
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int out = stranger(a);
	uint64_t dropped;

	ck_assert_int_eq(
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	ck_assert_uint_eq(udp_counters(a)->receive_dropped, 0);
	for (unsigned int i = 0; i < 1000; i++)
		ck_assert_int_eq(send(out, &i, sizeof(i), 0), sizeof(i));
	dropped = udp_counters(a)->receive_dropped;
	ck_assert_uint_gt(dropped, 0);
	ck_assert_uint_lt(dropped, 1000);
	TURN_UNTIL(a_seen.datagrams + dropped == 1000);
	ck_assert_uint_eq(udp_counters(a)->received, a_seen.datagrams);
	ck_assert_uint_eq(udp_counters(a)->receive_dropped, dropped);
	/* And it hears what comes now. */
	ck_assert_int_eq(send(out, "next", 4, 0), 4);
	TURN_UNTIL(a_seen.last_len == 4 && memcmp(a_seen.last, "next", 4) == 0);
	close(out);
	udp_free(a);
}
END_TEST

/* What an unprivileged socket gets, or all that is asked for. */
START_TEST(the_receive_buffer_is_what_may_be_had)
{
	const int asked = 16 * 1024 * 1024, other = 1024 * 1024;
	int fd = next_fd(), got = 0, plain = 0, most;
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int mine = stranger(a);
	socklen_t len = sizeof(got);

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len), 0);
	setsockopt(mine, SOL_SOCKET, SO_RCVBUF, &asked, sizeof(asked));
	ck_assert_int_eq(
	    getsockopt(mine, SOL_SOCKET, SO_RCVBUF, &plain, &len), 0);
	most = setsockopt(
		   mine, SOL_SOCKET, SO_RCVBUFFORCE, &other, sizeof(other)) == 0
		   ? 2 * asked
		   : plain;
	ck_assert_int_eq(got, most);
	close(mine);
	udp_free(a);
}
END_TEST

/* Every field, by its place: none is forgotten in a sum. */
START_TEST(counters_add_up)
{
	enum { N = sizeof(struct udp_counters) / sizeof(uint64_t) };
	struct udp_counters sum, one;
	uint64_t v[N];

	for (unsigned int i = 0; i < N; i++)
		v[i] = i + 1;
	memcpy(&sum, v, sizeof(v));
	for (unsigned int i = 0; i < N; i++)
		v[i] = 100 * (i + 1);
	memcpy(&one, v, sizeof(v));
	udp_counters_add(&sum, &one);
	memcpy(v, &sum, sizeof(v));
	for (unsigned int i = 0; i < N; i++)
		ck_assert_uint_eq(v[i], 101 * (i + 1));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("udp");
	TCase *tc = tcase_create("udp");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ipv4_there_and_back);
	tcase_add_test(tc, ipv6_there_and_back);
	tcase_add_test(tc, other_families_are_refused);
	tcase_add_test(tc, a_failed_socket_gives_errno);
	tcase_add_test(tc, too_long_is_refused_and_the_longest_is_not);
	tcase_add_test(tc, truncation_is_told);
	tcase_add_test(tc, one_wake_up_is_bounded);
	tcase_add_test(tc, a_flood_stops_no_timer);
	tcase_add_test(tc, receive_errors_are_counted_and_skipped);
	tcase_add_test(tc, a_closed_port_is_told);
	tcase_add_test(tc, a_closed_port_is_told_over_ipv6);
	tcase_add_test(tc, a_refusal_is_not_blamed_on_the_next);
	tcase_add_test(tc, an_own_error_is_still_seen);
	tcase_add_test(tc, errors_cost_no_busy_loop);
	tcase_add_test(tc, a_full_receive_buffer_is_counted);
	tcase_add_test(tc, the_receive_buffer_is_what_may_be_had);
	tcase_add_test(tc, counters_add_up);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
