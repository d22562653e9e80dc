/*
 * daemon/io/outq against a socket that takes what it likes: the bytes arrive
 * once and in order, and buffers go back when they are sent.
 */
#include "daemon/io/outq.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/ipc.h"
#include "tests/unit/harness.h"

static struct outq_bufs bufs;
static struct outq q;
static int fds[2];

static void
setup(void)
{
	int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	outq_bufs_init(&bufs);
	outq_init(&q);
	ck_assert_int_eq(socketpair(AF_UNIX, flags, 0, fds), 0);
}

static void
teardown(void)
{
	outq_clear(&q, &bufs);
	outq_bufs_fini(&bufs);
	close(fds[0]);
	close(fds[1]);
}

START_TEST(any_mix_arrives_in_order)
{
	static uint8_t got[65536], frame[IPC_MAX_FRAME];
	uint64_t seed = harness_seed();
	size_t written = 0, seen = 0, left = 8 * 1024 * 1024;

	while (seen < 8 * 1024 * 1024) {
		size_t most = harness_below(&seed, 2) ? 100 : IPC_MAX_FRAME;
		size_t len = harness_below(&seed, most + 1);
		ssize_t n;

		if (len > left)
			len = left;
		for (size_t i = 0; i < len; i++)
			frame[i] = (uint8_t)((written + i) * 31 >> 3);
		ck_assert(outq_put(&q, &bufs, frame, len));
		written += len;
		left -= len;
		if (harness_below(&seed, 3) == 0)
			ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
		if (harness_below(&seed, 3) == 0 || left == 0) {
			n = recv(fds[1], got,
			    1 + harness_below(&seed, sizeof(got)), 0);
			for (ssize_t i = 0; i < n; i++, seen++) {
				if (got[i] != (uint8_t)(seen * 31 >> 3))
					ck_abort_msg("byte %zu", seen);
			}
		}
		ck_assert_uint_ge(written, seen + q.unsent);
	}
	ck_assert_uint_eq(q.unsent, 0);
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
	ck_assert_ptr_null(q.first);
	ck_assert_ptr_null(q.last);
	ck_assert_uint_gt(bufs.large.unused, 0);
	ck_assert_uint_gt(bufs.small.unused, 0);
}
END_TEST

/* An answer of the usual size is given a small buffer, and always the same. */
START_TEST(a_little_takes_little)
{
	static uint8_t frame[IPC_MAX_FRAME];

	for (int i = 0; i < 100; i++) {
		ck_assert(outq_put(&q, &bufs, frame, 60));
		ck_assert(outq_put(&q, &bufs, frame, 60));
		ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
		ck_assert_uint_eq(q.unsent, 0);
		ck_assert_ptr_null(q.first);
		ck_assert_uint_eq(bufs.small.unused, 1);
		ck_assert_uint_eq(bufs.large.unused, 0);
		ck_assert_int_eq(recv(fds[1], frame, sizeof(frame), 0), 120);
	}
	for (int i = 0; i < 100; i++)
		ck_assert(outq_put(&q, &bufs, frame, 60));
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
	ck_assert_uint_eq(q.unsent, 0);
	ck_assert_uint_eq(bufs.small.unused, 1);
	ck_assert_uint_eq(bufs.large.unused, 1);
}
END_TEST

START_TEST(nothing_is_no_call)
{
	ck_assert(outq_put(&q, &bufs, "", 0));
	close(fds[1]); /* a call would fail */
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
	ck_assert_ptr_null(q.first);
}
END_TEST

START_TEST(a_lost_peer_is_an_error_and_no_signal)
{
	ck_assert(outq_put(&q, &bufs, "x", 1));
	close(fds[1]);
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), EPIPE);
	ck_assert_uint_eq(q.unsent, 1);
	outq_clear(&q, &bufs);
	ck_assert_uint_eq(q.unsent, 0);
	ck_assert_uint_eq(bufs.small.unused, 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("outq");
	TCase *tc = tcase_create("outq");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, any_mix_arrives_in_order);
	tcase_add_test(tc, a_little_takes_little);
	tcase_add_test(tc, nothing_is_no_call);
	tcase_add_test(tc, a_lost_peer_is_an_error_and_no_signal);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
