/*
 * Each fault of a server as its client sees it, and as its counters and its
 * ledger tell it.
 */
#include "sandbox/server.h"

#include <jansson.h>
#include <stdlib.h>

#include "tests/unit/sandbox_fixture.h"

START_TEST(dropped_datagrams_get_no_answer)
{
	struct server *s;
	size_t count;
	int fd;

	sup.faults.values[FAULT_DROP] = 1;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_DROPPED, 1);
	ck_assert(!readable(fd));
	server_set_fault(s, FAULT_DROP, 0);
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 1);
	close(fd);
}
END_TEST

static int64_t
monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

START_TEST(delays_hold_answers_back)
{
	struct server *s;
	int64_t sent = monotonic_ms();
	size_t count;
	int slow, fast;

	sup.faults.values[FAULT_DELAY] = 200;
	s = start();
	slow = dial(server_addrs(s, &count));
	fast = dial(server_addrs(s, &count));
	send_request(slow);
	run_until(s, COUNT_REQUEST, 1);
	/* A shorter delay overtakes. */
	server_set_fault(s, FAULT_DELAY, 1);
	send_request(fast);
	run_until(s, COUNT_ANSWERED, 1);
	ck_assert(readable(fast));
	ck_assert(!readable(slow));
	run_until(s, COUNT_ANSWERED, 2);
	ck_assert(readable(slow));
	ck_assert_int_ge(monotonic_ms() - sent, 199);
	close(slow);
	close(fast);
}
END_TEST

/* The next answer at the socket, and its tenant TLV and authentication. */
static size_t
receive(int fd, uint8_t bytes[PACKET_MAX], struct packet_view *view)
{
	ssize_t n = recv(fd, bytes, PACKET_MAX, 0);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(packet_peek(bytes, (size_t)n, view), 0);
	return (size_t)n;
}

START_TEST(duplicated_answers_come_twice)
{
	uint8_t first[PACKET_MAX], second[PACKET_MAX];
	struct packet_view view;
	struct server *s;
	size_t count, len;
	int fd;

	sup.faults.values[FAULT_DUPLICATE] = 1;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 2);
	len = receive(fd, first, &view);
	ck_assert_uint_eq(receive(fd, second, &view), len);
	ck_assert_mem_eq(first, second, len);
	ck_assert(!readable(fd));
	ck_assert_uint_eq(server_counters(s)->values[COUNT_SENT_TWICE], 1);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_REQUEST], 1);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_DUPLICATE], 0);
	close(fd);
}
END_TEST

START_TEST(wrong_ids_and_rebinds_are_in_the_answer)
{
	uint8_t bytes[PACKET_MAX];
	struct packet_view view;
	struct server *s;
	size_t count;
	int fd;

	sup.faults.values[FAULT_WRONG_ID] = 1;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_WRONG_ID, 1);
	receive(fd, bytes, &view);
	ck_assert_uint_ne(view.head.key_id, 77);
	ck_assert(view.head.keep_port);
	server_set_fault(s, FAULT_WRONG_ID, 0);
	server_set_fault(s, FAULT_REBIND, 1);
	send_request(fd);
	run_until(s, COUNT_REBIND_ASKED, 1);
	receive(fd, bytes, &view);
	ck_assert_uint_eq(view.head.key_id, 77);
	ck_assert(!view.head.keep_port);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_ALLOWED], 2);
	close(fd);
}
END_TEST

static int64_t
wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Its own time stamps, and what it takes for stale. */
START_TEST(a_clock_that_is_off)
{
	const int64_t offset = _i == 0 ? 20000 : -20000, before = wall_ms();
	uint8_t bytes[PACKET_MAX];
	struct packet_view view;
	struct server *s;
	size_t count;
	int fd;

	sup.faults.values[FAULT_CLOCK_OFFSET] = (double)offset;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_ANSWERED, 1);
	receive(fd, bytes, &view);
	ck_assert_int_ge((int64_t)view.head.time_stamp, before + offset);
	ck_assert_int_le((int64_t)view.head.time_stamp, wall_ms() + offset);
	server_set_fault(s, FAULT_CLOCK_OFFSET, 2.0 * (double)offset);
	send_request(fd);
	run_until(s, COUNT_STALE, 1);
	ck_assert(!readable(fd));
	close(fd);
}
END_TEST

/* Answers overtake each other; none is lost. */
START_TEST(a_jitter_reorders)
{
	const uint64_t all = 50;
	uint8_t bytes[PACKET_MAX];
	bool seen[50] = {false}, ordered = true;
	struct packet_view view;
	struct server *s;
	size_t count, i;
	int fd, last = -1;

	sup.faults.values[FAULT_JITTER] = 100;
	s = start();
	fd = dial(server_addrs(s, &count));
	for (i = 0; i < all; i++)
		send_request(fd);
	run_until(s, COUNT_ANSWERED, all);
	for (i = 0; i < all; i++) {
		receive(fd, bytes, &view);
		ordered = ordered && view.head.unique_id[0] > last;
		last = view.head.unique_id[0];
		ck_assert(!seen[last]);
		seen[last] = true;
	}
	ck_assert(!ordered);
	close(fd);
}
END_TEST

/* Runs one request of a server with a ledger; its line. */
static json_t *
ledger_line(const struct faults *faults)
{
	char path[] = "/tmp/rla-ledger-XXXXXX";
	struct events *none = events;
	struct server *s;
	json_error_t error;
	json_t *line;
	size_t count;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	close(fd);
	events = sup.events = events_new(path);
	ck_assert_ptr_nonnull(events);
	sup.faults = *faults;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_RECEIVED, 1);
	line = json_load_file(path, 0, &error);
	ck_assert_msg(line != NULL, "%s", error.text);
	close(fd);
	unlink(path);
	events_free(none);
	return line;
}

START_TEST(the_ledger_tells_faults)
{
	struct faults faults = {{0}};
	json_t *line, *told;

	faults.values[FAULT_DELAY] = 7;
	faults.values[FAULT_DUPLICATE] = 1;
	faults.values[FAULT_CORRUPT] = 1;
	faults.values[FAULT_WRONG_ID] = 1;
	faults.values[FAULT_REBIND] = 1;
	line = ledger_line(&faults);
	told = json_object_get(line, "faults");
	ck_assert_uint_eq(json_object_size(told), 5);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(told, "delay_ms")), 7);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(told, "copy_ms")), 7);
	ck_assert(json_is_string(json_object_get(told, "corrupt")));
	ck_assert_str_ne(
	    json_string_value(json_object_get(told, "wrong_id")), "77");
	ck_assert(json_is_true(json_object_get(told, "rebind")));
	ck_assert_str_eq(
	    json_string_value(json_object_get(line, "server_id")), "77");
	json_decref(line);
}
END_TEST

START_TEST(the_ledger_tells_no_faults_of_silence)
{
	struct faults faults = {{0}};
	json_t *line;

	faults.values[FAULT_CORRUPT] = 1;
	faults.values[FAULT_DROP] = _i;
	if (_i == 0)
		faults.values[FAULT_CORRUPT] = 0;
	line = ledger_line(&faults);
	ck_assert_str_eq(json_string_value(json_object_get(line, "event")),
	    _i == 0 ? "request" : "ignored");
	ck_assert_ptr_null(json_object_get(line, "faults"));
	json_decref(line);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_server_fault");
	TCase *tc = tcase_create("fault");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, dropped_datagrams_get_no_answer);
	tcase_add_test(tc, delays_hold_answers_back);
	tcase_add_test(tc, duplicated_answers_come_twice);
	tcase_add_test(tc, wrong_ids_and_rebinds_are_in_the_answer);
	tcase_add_loop_test(tc, a_clock_that_is_off, 0, 2);
	tcase_add_test(tc, a_jitter_reorders);
	tcase_add_test(tc, the_ledger_tells_faults);
	tcase_add_loop_test(tc, the_ledger_tells_no_faults_of_silence, 0, 2);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
