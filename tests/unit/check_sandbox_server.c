/*
 * Servers on real loopback sockets, and the commands that steer them. Nothing
 * sleeps: the loop runs until a counter or a socket says that it happened.
 */
#include "sandbox/server.h"

#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "proto/err.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "sandbox/cluster.h"
#include "sandbox/command.h"
#include "sandbox/dnsd.h"
#include "sandbox/events.h"
#include "tests/unit/harness.h"

static struct event_base *base;
static struct keyring ring;
static struct events *events;
static struct cluster cluster;
static struct server_setup sup;
static uint8_t unique;

static void
setup(void)
{
	struct credential cred = {.auth = AUTH_NONE,
	    .format = KEY_FORMAT_1,
	    .key_id = 5,
	    .quotas = {16, 16, 16, 16, 2000, UINT32_MAX}};

	base = event_base_new();
	keyring_init(&ring);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), 0);
	events = events_new(NULL);
	cluster_init(&cluster);
	sup = (struct server_setup){.base = base,
	    .ring = &ring,
	    .events = events,
	    .server_id = 77,
	    .tolerance_ms = 30000,
	    .addr_count = 1};
	ck_assert_int_eq(addr_parse("127.0.0.1:0", &sup.addrs[0]), 0);
	unique = 0;
}

static void
teardown(void)
{
	cluster_fini(&cluster);
	events_free(events);
	keyring_fini(&ring);
	event_base_free(base);
}

static struct server *
start(void)
{
	struct addr failed;

	ck_assert_int_eq(cluster_add(&cluster, &sup, &failed), 0);
	return cluster.servers[cluster.count - 1];
}

/* A client's socket, connected, so that it hears of closed ports. */
static int
dial(const struct addr *to)
{
	int fd = socket(to->ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
	    connect(fd, (const struct sockaddr *)&to->ss, to->len), 0);
	return fd;
}

static size_t
make_request(uint8_t out[PACKET_MAX])
{
	struct pdu_rate req = {.dedup_ttl_ms = 60, .resource_count = 1};
	struct packet_head head = {.key_id = 5, .unique_id = {unique++}};
	uint8_t pdu[PACKET_MAX], nonce[NONCE_LEN] = {0};
	struct timespec ts;
	size_t len;

	req.resources[0].window_ms = 1000;
	req.resources[0].limit = 1000;
	req.resources[0].tokens = 1;
	clock_gettime(CLOCK_REALTIME, &ts);
	head.time_stamp =
	    (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &req, pdu, sizeof pdu, &len), 0);
	ck_assert_int_eq(packet_seal(ring.keys[0].packet, &head, nonce, pdu,
			     len, out, PACKET_MAX, &len),
	    0);
	return len;
}

static void
send_request(int fd)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = make_request(bytes);

	ck_assert_int_eq(send(fd, bytes, len, 0), (ssize_t)len);
}

static void
run_until(const struct server *s, enum counter c, uint64_t value)
{
	while (server_counters(s)->values[c] < value)
		ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	ck_assert_uint_eq(server_counters(s)->values[c], value);
}

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

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

START_TEST(dropped_datagrams_get_no_answer)
{
	struct server *s;
	size_t count;
	int fd;

	sup.faults.drop = 1;
	s = start();
	fd = dial(server_addrs(s, &count));
	send_request(fd);
	run_until(s, COUNT_DROPPED, 1);
	ck_assert(!readable(fd));
	server_set_drop(s, 0);
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

	sup.faults.delay_ms = 200;
	s = start();
	slow = dial(server_addrs(s, &count));
	fast = dial(server_addrs(s, &count));
	send_request(slow);
	run_until(s, COUNT_REQUEST, 1);
	/* A shorter delay overtakes. */
	server_set_delay(s, 1);
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

START_TEST(a_stop_forgets_answers_under_way)
{
	struct server *s;
	size_t count;
	int fd;

	sup.faults.delay_ms = 20;
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

static bool quit;

/* Runs a command; ok says what the answer has to be. Borrowed once. */
static const char *
command(struct dnsd *zone, const char *text, bool ok)
{
	static char dumped[4096];
	struct command_target target = {&cluster, zone};
	char line[256];
	json_t *answer;

	snprintf(line, sizeof line, "%s", text);
	quit = false;
	answer = command_run(&target, line, &quit);
	ck_assert_ptr_nonnull(answer);
	ck_assert_msg(
	    json_is_true(json_object_get(answer, "ok")) == ok, "%s", text);
	if (!ok)
		ck_assert(json_is_string(json_object_get(answer, "error")));
	ck_assert_uint_gt(
	    json_dumpb(answer, dumped, sizeof dumped - 1, JSON_COMPACT), 0);
	json_decref(answer);
	return dumped;
}

START_TEST(commands_steer_servers)
{
	struct dnsd *zone = dnsd_new("test.example", 1);
	struct server *first = start(), *second;
	const struct addr *addrs;
	size_t count;
	int fd;

	sup.index = 1;
	second = start();
	addrs = server_addrs(second, &count);
	ck_assert_int_eq(dnsd_add(zone, 1, addrs, 1), 0);
	ck_assert_int_eq(dnsd_add(zone, 2, addrs, 1), 0);
	command(zone, "stop 1", true);
	ck_assert(server_running(first) && !server_running(second));
	command(zone, "start 1", true);
	ck_assert(server_running(second));
	command(zone, " drop\t1  1.0 \r", true);
	fd = dial(addrs);
	send_request(fd);
	run_until(second, COUNT_DROPPED, 1);
	command(zone, "drop 1 0", true);
	command(zone, "delay 1 1", true);
	send_request(fd);
	run_until(second, COUNT_ANSWERED, 1);
	command(zone, "withdraw 0", true);
	command(zone, "publish 0", true);
	command(NULL, "publish 0", false);
	ck_assert_ptr_nonnull(
	    strstr(command(zone, "counters", true), "\"dropped\":1"));
	ck_assert(!quit);
	command(zone, "quit", true);
	ck_assert(quit);
	close(fd);
	dnsd_free(zone);
}
END_TEST

START_TEST(bad_commands_change_nothing)
{
	static const char *const lines[] = {"", " ", "halt", "stop", "stop 1",
	    "stop -1", "stop 0 0", "stop x", "drop 0", "drop 0 1.1",
	    "drop 0 -0.1", "drop 0 nan", "drop 0 0x1", "drop 0 1 1",
	    "delay 0 60001", "delay 0 -1", "delay 0 1.5", "quit 0", "STOP 0"};

	start();
	command(NULL, lines[_i], false);
	ck_assert(!quit);
	ck_assert(server_running(cluster.servers[0]));
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
	tcase_add_test(tc, dropped_datagrams_get_no_answer);
	tcase_add_test(tc, delays_hold_answers_back);
	tcase_add_test(tc, a_stop_forgets_answers_under_way);
	tcase_add_test(tc, ids_rise_and_repeat_with_the_seed);
	tcase_add_test(tc, commands_steer_servers);
	tcase_add_loop_test(tc, bad_commands_change_nothing, 0, 19);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
