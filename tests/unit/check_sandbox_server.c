/*
 * Servers on real loopback sockets: answering, stopping and starting, their
 * addresses and ids.
 */
#include "sandbox/server.h"

#include <errno.h>

#include "proto/err.h"
#include "tests/unit/sandbox_fixture.h"

START_TEST(a_server_answers)
{
	struct server *s = start();
	uint8_t bytes[2048];
	size_t count;
	int fd = dial(server_addrs(s, &count)), i;

	ck_assert_uint_eq(count, 1);
	for (i = 0; i < 100; i++)
		send_request(fd);
	run_until(s, COUNT_ANSWERED, 100);
	for (i = 0; i < 100; i++)
		ck_assert_int_gt(recv(fd, bytes, sizeof bytes, 0), 0);
	ck_assert_int_lt(recv(fd, bytes, sizeof bytes, 0), 0);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_ALLOWED], 100);
	close(fd);
}
END_TEST

START_TEST(stop_refuses_and_start_takes_the_same_port)
{
	struct server *s = start();
	size_t count;
	struct addr before = *server_addrs(s, &count);
	int fd = dial(&before);
	uint8_t byte;

	server_stop(s);
	ck_assert(!server_running(s));
	server_stop(s); /* again is fine */
	send_request(fd);
	ck_assert_int_lt(recv(fd, &byte, 1, 0), 0);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(server_start(s, NULL), 0);
	ck_assert_int_eq(server_start(s, NULL), 0);
	ck_assert(server_running(s));
	ck_assert_uint_eq(
	    addr_port(server_addrs(s, &count)), addr_port(&before));
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 1);
	close(fd);
}
END_TEST

START_TEST(what_a_server_remembers_survives_a_stop)
{
	struct server *s = start();
	size_t count;
	int fd = dial(server_addrs(s, &count));

	send_request(fd);
	run_until(s, COUNT_ANSWERED, 1);
	server_stop(s);
	ck_assert_int_eq(server_start(s, NULL), 0);
	unique = 0; /* the same operation again, within its ttl or not */
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 2);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_DUPLICATE] +
			      server_counters(s)->values[COUNT_REQUEST],
	    2);
	close(fd);
}
END_TEST

START_TEST(a_taken_port_is_an_error_that_names_it)
{
	struct server *s = start();
	struct addr failed;
	char taken[ADDR_TEXT_MAX], text[ADDR_TEXT_MAX];
	size_t count;

	sup.addrs[0] = *server_addrs(s, &count);
	addr_format(&sup.addrs[0], taken);
	ck_assert_int_eq(cluster_add(&cluster, &sup, &failed), RLA_ESYS);
	ck_assert_int_eq(errno, EADDRINUSE);
	addr_format(&failed, text);
	ck_assert_str_eq(text, taken);
}
END_TEST

START_TEST(all_addresses_have_one_port)
{
	const struct addr *addrs;
	struct server *s;
	size_t count, i;
	int fd;

	ck_assert_int_eq(addr_parse("[::1]:0", &sup.addrs[1]), 0);
	ck_assert_int_eq(addr_parse("127.0.0.2:0", &sup.addrs[2]), 0);
	sup.addr_count = 3;
	s = start();
	addrs = server_addrs(s, &count);
	ck_assert_uint_eq(count, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_ne(addr_port(&addrs[i]), 0);
		ck_assert_uint_eq(addr_port(&addrs[i]), addr_port(&addrs[0]));
		fd = dial(&addrs[i]);
		send_request(fd);
		run_until(s, COUNT_ANSWERED, i + 1);
		ck_assert(readable(fd));
		close(fd);
	}
}
END_TEST

START_TEST(a_stop_forgets_answers_under_way)
{
	struct server *s;
	size_t count;
	int fd;

	sup.faults.values[FAULT_DELAY] = 20;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_REQUEST, 1);
	server_stop(s);
	ck_assert_int_eq(server_start(s, NULL), 0);
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 1); /* the second one's */
	ck_assert_uint_eq(server_counters(s)->values[COUNT_REQUEST], 2);
	close(fd);
}
END_TEST

START_TEST(ids_rise_and_repeat_with_the_seed)
{
	uint64_t ids[CLUSTER_MAX], again[CLUSTER_MAX], other[CLUSTER_MAX];
	const int64_t newest = INT64_C(1767225600);
	size_t i;

	cluster_ids(1, newest, CLUSTER_MAX, ids);
	cluster_ids(1, newest, CLUSTER_MAX, again);
	cluster_ids(2, newest, CLUSTER_MAX, other);
	ck_assert_mem_eq(ids, again, sizeof ids);
	ck_assert_mem_ne(ids, other, sizeof ids);
	for (i = 1; i < CLUSTER_MAX; i++)
		ck_assert_uint_gt(ids[i] >> 23, ids[i - 1] >> 23);
	ck_assert_int_eq(
	    INT64_C(1735689600) + (int64_t)(ids[CLUSTER_MAX - 1] >> 23),
	    newest);
	cluster_ids(1, 0, 3, ids); /* a clock before 2025 */
	ck_assert_uint_lt(ids[2] >> 23, 1000);
	ck_assert_uint_lt(ids[0], ids[1]);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_server");
	TCase *tc = tcase_create("server");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_server_answers);
	tcase_add_test(tc, stop_refuses_and_start_takes_the_same_port);
	tcase_add_test(tc, what_a_server_remembers_survives_a_stop);
	tcase_add_test(tc, a_taken_port_is_an_error_that_names_it);
	tcase_add_test(tc, all_addresses_have_one_port);
	tcase_add_test(tc, a_stop_forgets_answers_under_way);
	tcase_add_test(tc, ids_rise_and_repeat_with_the_seed);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
