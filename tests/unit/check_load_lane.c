/* The bytes of a connection: on a pair of sockets, and from an agent, in pieces
 * or wrong; and what keeps one from being made. */
#include "client-shim/load_lane.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/unit/load_fixture.h"

#define BYTES (4 * 1024 * 1024)

static struct load_lane lane;
static int peer;
static uint8_t buffer[LOAD_BUFFER];

static void
setup(void)
{
	int pair[2];

	ck_assert_int_eq(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	memset(&lane, 0, sizeof(lane));
	lane.fd = pair[0];
	peer = pair[1];
}

static void
teardown(void)
{
	load_lane_close(&lane);
	load_lane_close(&lane); /* does no harm */
	if (peer >= 0)
		close(peer);
}

static uint8_t
pattern(size_t i)
{
	return (uint8_t)(i ^ i >> 8 ^ i >> 16);
}

static void
send_pattern(size_t from, size_t to)
{
	static uint8_t bytes[BYTES];
	size_t i;

	for (i = from; i < to; i++)
		bytes[i] = pattern(i);
	ck_assert_int_eq(
	    load_lane_send(&lane, bytes + from, to - from, err), 0);
}

/* What the socket does not take at once goes out later, in order. */
START_TEST(all_is_sent)
{
	uint8_t bytes[1000];
	size_t got = 0;
	ssize_t n, i;

	send_pattern(0, 10);
	ck_assert_uint_eq(lane.unsent_len, 0);
	send_pattern(10, BYTES / 2);
	ck_assert_uint_gt(lane.unsent_len, 0);
	/* Room for more, which must not overtake. */
	got = (size_t)recv(peer, buffer, sizeof(buffer), 0);
	send_pattern(BYTES / 2, BYTES);
	for (i = 0; i < (ssize_t)got; i++)
		if (buffer[i] != pattern((size_t)i))
			ck_abort_msg("byte %zd", i);
	while (got < BYTES) {
		n = recv(peer, bytes, sizeof(bytes), 0);
		for (i = 0; i < n; i++)
			if (bytes[i] != pattern(got++))
				ck_abort_msg("byte %zu", got - 1);
		if (lane.unsent_len > 0)
			load_lane_flush(&lane);
	}
	ck_assert_uint_eq(lane.unsent_len, 0);
	ck_assert_ptr_null(lane.unsent);
	ck_assert_int_eq(recv(peer, bytes, 1, 0), -1);
}
END_TEST

/* What it said last is read before its end is an error. */
START_TEST(the_peer_goes)
{
	size_t len;

	send_pattern(0, BYTES);
	ck_assert_int_eq(send(peer, "last", 4, 0), 4);
	close(peer);
	peer = -1;
	load_lane_flush(&lane);
	ck_assert_uint_eq(lane.unsent_len, 0);
	send_pattern(0, 10);
	ck_assert_uint_eq(lane.unsent_len, 0);
	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), 0);
	ck_assert_uint_eq(len, 4);
	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), -1);
	ck_assert_str_eq(err, "the agent closed a connection");
}
END_TEST

START_TEST(what_is_kept)
{
	size_t len;

	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), 0);
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(
	    load_lane_keep(&lane, (const uint8_t *)"ab", 2, err), 0);
	memset(buffer, 'x', 4);
	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), 0);
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(send(peer, "cd", 2, 0), 2);
	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), 0);
	ck_assert_uint_eq(len, 4);
	ck_assert_mem_eq(buffer, "abcd", 4);
	ck_assert_int_eq(load_lane_keep(&lane, buffer, 0, err), 0);
	ck_assert_ptr_null(lane.rest);
	ck_assert_int_eq(send(peer, "ef", 2, 0), 2);
	ck_assert_int_eq(load_lane_read(&lane, buffer, &len, err), 0);
	ck_assert_uint_eq(len, 2);
	ck_assert_mem_eq(buffer, "ef", 2);
}
END_TEST

/* From an agent. */

static void
setup_agent(void)
{
	fake_init(&fake);
}

/* Each byte is read alone; then one frame and a half, and the other half. */
static void
pieces(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];
	size_t i, len, more;
	uint64_t id;

	len = put_decision(buf, sizeof(buf), read_check(f, conn));
	id = read_check(f, conn);
	for (i = 0; i < len; i++) {
		fake_write(f, conn, buf + i, 1);
		until_read(f, conn);
	}
	len = put_decision(buf, sizeof(buf), id);
	more = put_decision(buf + len, sizeof(buf) - len, read_check(f, conn));
	fake_write(f, conn, buf, len + more / 2);
	until_read(f, conn);
	fake_write(f, conn, buf + len + more / 2, more - more / 2);
	ck_assert(fake_at_end(f, conn));
}

START_TEST(frames_in_pieces)
{
	const struct load_options o = load_options(1, 2);
	struct load *l = start_load(pieces, &o);

	ran(load_run(l, 3, 0, err));
	ck_assert_uint_eq(load_result(l)->allowed, 3);
	end_load(l);
}
END_TEST

/* Decisions that are none: this byte of the payload, this value. */
static const struct {
	size_t at;
	uint8_t value;
} wrong[] = {{0, 4}, {1, 2}, {2, 5}, {3, 15}, {0, 255}, {3, 255}};

static void
wrong_decision(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];
	const size_t len = put_decision(buf, sizeof(buf), read_check(f, conn));

	fake_hold(f);
	buf[IPC_HEAD_LEN + wrong[f->hash].at] = wrong[f->hash].value;
	fake_write(f, conn, buf, len);
}

START_TEST(wrong_decisions)
{
	const struct load_options o = load_options(1, 1);
	struct load *l;

	fake.hash = (uint8_t)_i; /* what the script is to write */
	l = start_load(wrong_decision, &o);
	fake_let(&fake);
	failed_with(
	    load_run(l, 1, 0, err), "the agent sent a decision that is none");
	end_load(l);
}
END_TEST

/* A payload without room for two empty texts. */
static void
short_decision(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];

	(void)put_decision(buf, sizeof(buf), read_check(f, conn));
	buf[0] = IPC_HEAD_LEN + 31;
	buf[1] = 0;
	fake_write(f, conn, buf, IPC_HEAD_LEN + 31);
}

START_TEST(a_short_decision)
{
	const struct load_options o = load_options(1, 1);
	struct load *l = start_load(short_decision, &o);

	failed_with(
	    load_run(l, 1, 0, err), "the agent sent a decision that is none");
	end_load(l);
}
END_TEST

/* Its text begins, and the frame is at its end. */
static void
cut_failure(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];

	(void)put_decision(buf, sizeof(buf), read_check(f, conn));
	buf[0]--;
	buf[IPC_HEAD_LEN] = IPC_FAILED;
	fake_write(f, conn, buf, buf[0]);
}

START_TEST(a_cut_failure)
{
	const struct load_options o = load_options(1, 1);
	struct load *l = start_load(cut_failure, &o);

	failed_with(
	    load_run(l, 1, 0, err), "the agent sent a decision that is none");
	end_load(l);
}
END_TEST

/* Not made. */

#define BUSY                                                                   \
	"the agent refuses: the fake's error (its limits are max_connections " \
	"and max_connections_per_uid)"

static void
refuse_a_greeting(struct fake *f)
{
	int conn;

	while (f->conn_count < f->hash)
		(void)fake_greet(f);
	conn = fake_accept(f);
	(void)fake_read(f, conn, IPC_HELLO);
	fake_error(f, conn, 0, IPC_ERR_BUSY);
}

START_TEST(busy_at_the_greeting)
{
	const struct load_options o = load_options(4, 1);

	fake.hash = (uint8_t)(2 * _i); /* so many are taken */
	fake_start(&fake, refuse_a_greeting);
	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_str_eq(
	    err, _i == 0 ? BUSY : BUSY ", with 2 of --connections 4 open");
	fake_stop(&fake);
}
END_TEST

/* Until there are no more descriptors here, and until these are closed. */
static void
greet_them(struct fake *f)
{
	uint8_t byte;

	(void)fake_greet(f);
	(void)fake_greet(f);
	ck_assert_int_eq(recv(f->conns[1], &byte, 1, MSG_PEEK), 0);
}

/* The lowest descriptor that has no open one above it: those below are filled,
 * whoever left them open. */
static int
next_file(void)
{
	int highest = 0, next;

	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			highest = fd;
	do {
		next = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(next, 0);
	} while (next < highest);
	close(next);
	return next;
}

/* Six are left: the listener's, epoll's, and both ends of two connections. The
 * limit stays, so this test comes last. */
START_TEST(no_more_files)
{
	const struct load_options o = load_options(4, 1);
	const int next = next_file();
	struct rlimit files, few;

	fake_start(&fake, greet_them);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	few.rlim_cur = few.rlim_max = (rlim_t)next + 6;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	ck_assert_ptr_null(load_open(&o, err));
	ck_assert_str_eq(
	    err, "socket: Too many open files, with 2 of --connections 4 open");
	fake_stop(&fake);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_lane");
	TCase *tc = tcase_create("load_lane");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_is_sent);
	tcase_add_test(tc, the_peer_goes);
	tcase_add_test(tc, what_is_kept);
	suite_add_tcase(s, tc);
	tc = tcase_create("agent");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_agent, NULL);
	tcase_add_test(tc, frames_in_pieces);
	tcase_add_loop_test(
	    tc, wrong_decisions, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(tc, a_short_decision);
	tcase_add_test(tc, a_cut_failure);
	tcase_add_loop_test(tc, busy_at_the_greeting, 0, 2);
	tcase_add_test(tc, no_more_files);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
