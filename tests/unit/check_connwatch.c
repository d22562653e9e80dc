/*
 * daemon/io/connwatch: what is told once is not forgotten, an end comes with
 * the bytes before it, and no crowd makes a turn long.
 */
#include "daemon/io/conn.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/conn_fixture.h"

/* What is told once is the last bytes and the end behind them, whatever the
 * end is, and that of a peer that has not read all is a reset. */
START_TEST(the_end_comes_with_the_last_bytes)
{
	enum { CLOSED, HALF_CLOSED, RESET, KINDS };
	struct peer p;

	for (unsigned int kind = 0; kind < KINDS; kind++) {
		peer_open(&p);
		loop_turn(loop);
		if (kind == RESET)
			reply(p.conn, 1, 10);
		loop_turn(loop);
		peer_frame(&p, 1, 1);
		if (kind == HALF_CLOSED)
			shutdown(p.fd, SHUT_WR);
		else
			peer_close(&p);
		for (int i = 0; i < 3; i++)
			loop_turn(loop);
		ck_assert_uint_eq(service.frames, kind + 1);
		ck_assert_uint_eq(service.closed, kind + 1);
		if (kind == HALF_CLOSED)
			peer_close(&p);
	}
}
END_TEST

static void
send_with_descriptor(const struct peer *p, const void *bytes, size_t len)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {
	    .iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr msg = {
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &p->fd, sizeof(int));
	ck_assert_int_eq(sendmsg(p->fd, &msg, MSG_NOSIGNAL), (ssize_t)len);
}

/* A read ends behind each of them, and nothing is told again. */
START_TEST(descriptors_cut_the_stream)
{
	uint8_t bytes[IPC_MAX_FRAME];
	struct peer p;

	peer_open(&p);
	for (uint64_t id = 1; id <= 3; id++)
		send_with_descriptor(&p, bytes, frame(bytes, id, 20));
	peer_frame(&p, 4, 20);
	TURN_UNTIL(service.frames == 4);
	for (unsigned int i = 0; i < 4; i++)
		ck_assert_uint_eq(service.ids[i], i + 1);
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
}
END_TEST

/* So it does before an urgent byte, which is no part of the stream. */
START_TEST(an_urgent_byte_cuts_the_stream)
{
	struct peer p;

	peer_open(&p);
	peer_frame(&p, 1, 20);
	if (send(p.fd, "!", 1, MSG_OOB | MSG_NOSIGNAL) == 1) {
		peer_frame(&p, 2, 20);
		TURN_UNTIL(service.frames == 2);
		ck_assert_uint_eq(service.ids[1], 2);
	} else {
		ck_assert_int_eq(errno, EOPNOTSUPP); /* as before Linux 5.15 */
	}
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
}
END_TEST

/* As many as one turn is told of, and more: all are read, in several turns. */
START_TEST(a_crowd_is_told_of_in_turns)
{
	enum { PEERS = 2000 };
	static struct peer p[PEERS];
	struct rlimit lim;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = lim.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	ck_assert_uint_gt(lim.rlim_cur, 2 * PEERS + 100);
	for (unsigned int i = 0; i < PEERS; i++)
		peer_open(&p[i]);
	for (unsigned int round = 1; round <= 2; round++) {
		for (unsigned int i = 0; i < PEERS; i++)
			peer_frame(&p[i], round, 0);
		TURN_UNTIL(service.frames == round * PEERS);
	}
	for (unsigned int i = 0; i < PEERS; i++)
		peer_close(&p[i]);
	TURN_UNTIL(service.closed == PEERS);
}
END_TEST

/* Those who are read from only to throw it away do not make a long turn. */
START_TEST(what_is_thrown_away_is_bounded)
{
	enum { PEERS = 200, EACH = 64 * 1024, MOST = 8 * 128 * 8192 };
	static const uint8_t bytes[EACH];
	static struct peer p[PEERS];
	int unread, all = 0;

	for (unsigned int i = 0; i < PEERS; i++) {
		peer_open(&p[i]);
		conn_stop_reading(p[i].conn);
		ck_assert_int_eq(send(p[i].fd, bytes, EACH, 0), EACH);
	}
	loop_turn(loop);
	for (unsigned int i = 0; i < PEERS; i++) {
		ck_assert_int_eq(ioctl(p[i].far, FIONREAD, &unread), 0);
		all += unread;
	}
	ck_assert_int_ge(all, PEERS * EACH - MOST);
	for (unsigned int i = 0; i < PEERS; i++)
		peer_close(&p[i]);
	TURN_UNTIL(service.closed == PEERS);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("connwatch");
	TCase *tc = tcase_create("connwatch");

	tcase_add_checked_fixture(tc, setup_checked, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_end_comes_with_the_last_bytes);
	tcase_add_test(tc, descriptors_cut_the_stream);
	tcase_add_test(tc, an_urgent_byte_cuts_the_stream);
	tcase_add_test(tc, a_crowd_is_told_of_in_turns);
	tcase_add_test(tc, what_is_thrown_away_is_bounded);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
