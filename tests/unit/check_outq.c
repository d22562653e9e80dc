/*
 * daemon/io/outq against a socket that takes what it likes: the bytes arrive
 * once and in order, and buffers go back when they are sent.
 */
#include "daemon/io/outq.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/ipc.h"
#include "tests/unit/harness.h"

static struct bufs bufs;
static struct outq q;
static int fds[2];

static void
setup(void)
{
	int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	bufs_init(&bufs, OUTQ_BUF_SIZE, 4);
	outq_init(&q);
	ck_assert_int_eq(socketpair(AF_UNIX, flags, 0, fds), 0);
}

static void
teardown(void)
{
	outq_clear(&q, &bufs);
	bufs_fini(&bufs);
	close(fds[0]);
	close(fds[1]);
}

START_TEST(any_mix_arrives_in_order)
{
	static uint8_t got[65536];
	uint64_t seed = harness_seed();
	size_t written = 0, seen = 0, left = 8 * 1024 * 1024;

	while (seen < 8 * 1024 * 1024) {
		size_t cap, len = harness_below(&seed, IPC_MAX_FRAME + 1);
		uint8_t *room;
		ssize_t n;

		if (len > left)
			len = left;
		room = outq_room(&q, &bufs, IPC_MAX_FRAME, &cap);
		ck_assert_ptr_nonnull(room);
		ck_assert_uint_ge(cap, IPC_MAX_FRAME);
		for (size_t i = 0; i < len; i++)
			room[i] = (uint8_t)((written + i) * 31 >> 3);
		outq_add(&q, len);
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
	ck_assert_uint_gt(bufs.unused, 0);
}
END_TEST

START_TEST(unused_room_goes_back_without_a_call)
{
	size_t cap;

	ck_assert_ptr_nonnull(outq_room(&q, &bufs, 1, &cap));
	outq_add(&q, 0);
	close(fds[1]); /* a call would fail */
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), 0);
	ck_assert_ptr_null(q.first);
	ck_assert_uint_eq(bufs.unused, 1);
}
END_TEST

START_TEST(a_lost_peer_is_an_error_and_no_signal)
{
	size_t cap;

	ck_assert_ptr_nonnull(outq_room(&q, &bufs, 1, &cap));
	memset(outq_room(&q, &bufs, 1, &cap), 0, 1);
	outq_add(&q, 1);
	close(fds[1]);
	ck_assert_int_eq(outq_send(&q, &bufs, fds[0]), EPIPE);
	ck_assert_uint_eq(q.unsent, 1);
	outq_clear(&q, &bufs);
	ck_assert_uint_eq(q.unsent, 0);
	ck_assert_uint_eq(bufs.unused, 1);
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
	tcase_add_test(tc, unused_room_goes_back_without_a_call);
	tcase_add_test(tc, a_lost_peer_is_an_error_and_no_signal);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
