/*
 * daemon/io/conn: every way to close, also from inside hooks, what a closing
 * peer still gets, who the peer is, and what an idle connection costs.
 */
#include "daemon/io/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/conn_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static struct conn *victims[8];
static unsigned int victim_count;

static void
close_itself(struct conn *conn)
{
	conn_close(conn);
	ck_assert(conn_closing(conn));
	ck_assert_uint_eq(service.closed, 0); /* not from in here */
	reply(conn, 98, 10);
}

static void
close_victims(struct conn *conn)
{
	(void)conn;
	for (unsigned int i = 0; i < victim_count; i++)
		conn_close(victims[i]);
	victim_count = 0;
}

static void
error_itself(struct conn *conn)
{
	conn_error(conn, 42, IPC_ERR_TYPE, "no such type");
	ck_assert(conn_closing(conn));
}

static void
stop_itself(struct conn *conn)
{
	conn_stop_reading(conn);
}

START_TEST(a_frame_hook_closes_its_own)
{
	struct peer p;

	peer_open(&p);
	service.replies = true;
	service.act = close_itself;
	service.act_at = 2;
	for (uint64_t i = 1; i < 5; i++)
		peer_frame(&p, i, 3000);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 2);
	ck_assert_uint_eq(service.closed, 1);
	peer_finish(&p);
	ck_assert_uint_eq(p.frames, 2); /* what was answered before it */
	peer_close(&p);
}
END_TEST

/* All are readable in the same turn; the first closes all. */
START_TEST(a_frame_hook_closes_the_others)
{
	struct peer p[6];

	service.replies = true;
	service.act = close_victims;
	service.act_at = 3;
	for (unsigned int i = 0; i < 6; i++) {
		peer_open(&p[i]);
		victims[victim_count++] = p[i].conn;
		peer_frame(&p[i], 3, 200);
		peer_frame(&p[i], 4, 200);
		peer_write(&p[i], "\x20\0\0", 3); /* and a started one */
	}
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 6);
	ck_assert_uint_eq(service.frames, 1);
	for (unsigned int i = 0; i < 6; i++) {
		peer_finish(&p[i]);
		peer_close(&p[i]);
	}
}
END_TEST

START_TEST(a_closed_hook_closes_the_others)
{
	struct peer p[6];

	service.on_closed = close_victims;
	for (unsigned int i = 0; i < 6; i++) {
		peer_open(&p[i]);
		victims[victim_count++] = p[i].conn;
	}
	peer_close(&p[3]);
	TURN_UNTIL(service.closed > 0);
	ck_assert_uint_eq(service.closed, 6);
	for (unsigned int i = 0; i < 6; i++) {
		if (i != 3)
			peer_close(&p[i]);
	}
}
END_TEST

START_TEST(a_half_close_is_a_close_after_its_frames)
{
	struct peer p;

	peer_open(&p);
	service.replies = true;
	for (uint64_t i = 0; i < 3; i++)
		peer_frame(&p, i, 100);
	peer_write(&p, "\x20\0\0\0\1", 5); /* an unfinished one */
	shutdown(p.fd, SHUT_WR);
	TURN_UNTIL(service.closed == 1);
	ck_assert_uint_eq(service.frames, 3);
	peer_finish(&p);
	ck_assert_uint_eq(p.frames, 3);
	ck_assert_int_eq(p.error, 0);
	peer_close(&p);
}
END_TEST

/* Has the agent closed its descriptor? Before another one takes the number. */
static bool
released(const struct peer *p)
{
	return fcntl(p->far, F_GETFD) < 0;
}

/* Has the agent closed its end? */
static bool
hung_up(const struct peer *p)
{
	struct pollfd pfd = {.fd = p->fd};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0;
}

START_TEST(an_error_reaches_a_peer_that_is_still_sending)
{
	static uint8_t junk[60000];
	struct peer p;

	peer_open(&p);
	service.act = error_itself;
	service.act_at = 1;
	peer_frame(&p, 1, 10);
	peer_write(&p, junk, sizeof(junk));
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 1);
	/* Two more bursts: neither SIGPIPE, nor a reset, nor a frame hook. */
	peer_write(&p, junk, sizeof(junk));
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	peer_write(&p, junk, sizeof(junk));
	peer_finish(&p);
	ck_assert(p.eof);
	ck_assert(!released(&p)); /* the end of the stream, no more yet */
	ck_assert_int_eq(p.error, 0);
	ck_assert_uint_eq(p.code, IPC_ERR_TYPE);
	ck_assert_uint_eq(p.last_id, 42);
	ck_assert_str_eq(p.text, "no such type");
	ck_assert_uint_eq(service.frames, 1);
	ck_assert_uint_eq(service.closed, 1);
	peer_close(&p);
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.closed, 1);
}
END_TEST

START_TEST(lingering_is_bounded_in_bytes)
{
	static uint8_t junk[8192];
	size_t total = 0;
	struct peer p;
	ssize_t n;

	peer_open(&p);
	conn_error(p.conn, 0, IPC_ERR_BUSY, "full");
	for (;;) {
		n = send(p.fd, junk, sizeof(junk), MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			break;
		total += n > 0 ? (size_t)n : 0;
		ck_assert_uint_le(total, 1024 * 1024);
		loop_turn(loop);
	}
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_uint_ge(total, 256 * 1024);
	peer_close(&p);
}
END_TEST

START_TEST(lingering_is_bounded_in_time)
{
	struct peer p, full;
	int64_t start = loop_now();

	peer_open(&p);
	peer_open(&full);
	service.replies = true;
	service.reply_len = 16000;
	for (uint64_t i = 0; i < 60; i++)
		peer_frame(&full, i, 0);
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	/* One that never leaves, one that waits for an ERROR it cannot get. */
	conn_error(p.conn, 0, IPC_ERR_BUSY, "full");
	conn_error(full.conn, 0, IPC_ERR_BUSY, "full");
	TURN_UNTIL(hung_up(&p) && hung_up(&full));
	ck_assert_int_ge(loop_now() - start, SEC / 2);
	ck_assert_int_le(loop_now() - start, 10 * SEC);
	ck_assert_uint_eq(service.closed, 2);
	peer_close(&p);
	peer_close(&full);
}
END_TEST

START_TEST(lingering_is_bounded_in_number)
{
	static struct peer p[100];
	unsigned int gone = 0;

	for (unsigned int i = 0; i < 100; i++) {
		peer_open(&p[i]);
		conn_error(p[i].conn, 0, IPC_ERR_BUSY, "full");
	}
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 100);
	for (unsigned int i = 0; i < 100; i++)
		gone += hung_up(&p[i]);
	ck_assert_uint_eq(gone, 36);
	for (unsigned int i = 0; i < 100; i++) {
		peer_finish(&p[i]);
		ck_assert_uint_eq(p[i].code, IPC_ERR_BUSY); /* all of them */
		peer_close(&p[i]);
	}
}
END_TEST

/* Nor do they use up what descriptors there are: an eighth. */
START_TEST(lingering_is_bounded_in_descriptors)
{
	static struct peer p[20];
	struct rlimit lim, few;
	unsigned int gone = 0;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	few = lim;
	few.rlim_cur = 64;
	for (unsigned int i = 0; i < 20; i++)
		peer_open(&p[i]);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned int i = 0; i < 20; i++)
		conn_error(p[i].conn, 0, IPC_ERR_BUSY, "full");
	loop_turn(loop);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	for (unsigned int i = 0; i < 20; i++)
		gone += hung_up(&p[i]);
	ck_assert_uint_eq(gone, 12);
	for (unsigned int i = 0; i < 20; i++)
		peer_close(&p[i]);
}
END_TEST

START_TEST(a_peer_that_leaves_ends_the_lingering)
{
	int64_t start = loop_now();
	struct peer p;
	struct conn *again;

	peer_open(&p);
	conn_error(p.conn, 0, IPC_ERR_BUSY, "full");
	conn_error(p.conn, 0, IPC_ERR_BUSY, "full"); /* nothing */
	conn_close(p.conn);                          /* nothing */
	shutdown(p.fd, SHUT_WR);
	TURN_UNTIL(released(&p));
	ck_assert_int_lt(loop_now() - start, SEC);
	peer_finish(&p);
	ck_assert_uint_eq(p.frames, 1);
	ck_assert_uint_eq(service.closed, 1);
	again = p.conn;
	peer_close(&p);
	peer_open(&p); /* its slot is free again */
	ck_assert_ptr_eq(p.conn, again);
	peer_close(&p);
}
END_TEST

/* It has stopped sending, and gets its ERROR late: then there is no wait. */
START_TEST(a_half_closed_peer_gets_its_error)
{
	int64_t start = loop_now();
	struct peer p;

	peer_open(&p);
	for (uint64_t i = 0; i < 60; i++)
		reply(p.conn, i, 16000);
	conn_error(p.conn, 0, IPC_ERR_BUSY, "full");
	shutdown(p.fd, SHUT_WR);
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert(!released(&p));
	peer_finish(&p);
	ck_assert_uint_eq(p.code, IPC_ERR_BUSY);
	TURN_UNTIL(released(&p));
	ck_assert_int_lt(loop_now() - start, SEC);
	peer_close(&p);
}
END_TEST

START_TEST(a_drained_connection_takes_no_more)
{
	struct peer p;

	peer_open(&p);
	service.replies = true;
	service.act = stop_itself;
	service.act_at = 2;
	for (uint64_t i = 1; i < 5; i++)
		peer_frame(&p, i, 100);
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.frames, 2);
	conn_stop_reading(p.conn);
	reply(p.conn, 77, 100); /* output goes on */
	loop_turn(loop);
	peer_read(&p);
	ck_assert_uint_eq(p.frames, 3);
	ck_assert_uint_eq(p.last_id, 77);
	ck_assert_uint_eq(service.closed, 0);
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
	ck_assert_uint_eq(service.frames, 2);
}
END_TEST

/* It has gone without having read its answers: a reset, and no end. */
START_TEST(a_drained_peer_that_goes_is_noticed)
{
	struct peer p;

	for (int finishes = 0; finishes < 2; finishes++) {
		service.closed = 0;
		peer_open(&p);
		for (uint64_t i = 0; i < (finishes ? 30 : 1); i++)
			reply(p.conn, i, 16000);
		conn_stop_reading(p.conn);
		if (finishes)
			conn_finish(p.conn);
		loop_turn(loop);
		ck_assert_uint_eq(service.closed, 0);
		peer_close(&p);
		TURN_UNTIL(service.closed == 1);
	}
}
END_TEST

/* Nor is one held up that sends all it has before it reads. */
START_TEST(a_drained_peer_may_go_on_sending)
{
	static uint8_t junk[1 << 20];
	struct peer p;

	peer_open(&p);
	conn_stop_reading(p.conn);
	peer_write(&p, junk, sizeof(junk));
	reply(p.conn, 7, 100);
	TURN_UNTIL((peer_read(&p), p.frames == 1));
	ck_assert_uint_eq(service.frames, 0);
	ck_assert(!conn_closing(p.conn));
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
}
END_TEST

static void
finish_itself(struct conn *conn)
{
	conn_finish(conn);
	ck_assert(conn_closing(conn));
	ck_assert_uint_eq(service.closed, 0); /* not from in here */
	reply(conn, 98, 10);                  /* goes nowhere */
}

/* With nothing to send, from outside and from a hook. */
START_TEST(a_finished_connection_closes_at_once)
{
	struct peer a, b;

	peer_open(&a);
	conn_finish(a.conn);
	conn_finish(a.conn); /* nothing */
	conn_stop_reading(a.conn);
	conn_error(a.conn, 0, IPC_ERR_BUSY, "full");
	reply(a.conn, 97, 10);
	ck_assert_uint_eq(service.closed, 0);
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 1);
	peer_finish(&a);
	ck_assert(a.eof);
	ck_assert_uint_eq(a.frames, 0);
	memset(&service, 0, sizeof(service));
	peer_open(&b);
	service.act = finish_itself;
	service.act_at = 2;
	service.replies = true;
	for (uint64_t i = 1; i < 5; i++)
		peer_frame(&b, i, 100);
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 1);
	ck_assert_uint_eq(service.frames, 2);
	peer_finish(&b);
	ck_assert(b.eof);
	ck_assert_uint_eq(b.frames, 2);
	peer_close(&a);
	peer_close(&b);
	TURN_UNTIL(released(&a) && released(&b));
}
END_TEST

/* Drained, then finished with its last answer: all of them arrive, though the
 * peer goes on sending, and then the end of the stream and not a reset. */
START_TEST(a_finished_connection_sends_the_rest)
{
	static uint8_t junk[60000];
	struct peer p;

	peer_open(&p);
	conn_stop_reading(p.conn);
	for (uint64_t i = 1; i <= 60; i++)
		reply(p.conn, i, 16000);
	loop_turn(loop);
	ck_assert_uint_gt(conn_unsent(p.conn), CONN_OUT_HIGH);
	reply(p.conn, 61, 100);
	conn_finish(p.conn);
	reply(p.conn, 62, 100);
	peer_write(&p, junk, sizeof(junk));
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.closed, 0); /* not before it is taken */
	ck_assert_uint_gt(conn_unsent(p.conn), 0);
	peer_finish(&p);
	ck_assert(p.eof);
	ck_assert_int_eq(p.error, 0);
	ck_assert_uint_eq(p.frames, 61);
	ck_assert_uint_eq(p.last_id, 61);
	ck_assert_uint_eq(service.closed, 1);
	ck_assert_uint_eq(service.frames, 0);
	peer_write(&p, junk, sizeof(junk));
	peer_close(&p);
	TURN_UNTIL(released(&p));
}
END_TEST

/* Not for ever: as long as for a frame that was started. */
START_TEST(finishing_is_bounded_in_time)
{
	static struct peer p[70]; /* all of them have their time */
	int64_t start = loop_now();

	conn_pool_set_frame_timeout(pool, 50000);
	for (unsigned int i = 0; i < 70; i++) {
		peer_open(&p[i]);
		for (uint64_t n = 0; n < 30; n++)
			reply(p[i].conn, n, 16000);
		conn_finish(p[i].conn);
	}
	TURN_UNTIL(service.closed == 70);
	ck_assert_int_ge(loop_now() - start, 50000);
	for (unsigned int i = 0; i < 70; i++) {
		ck_assert(hung_up(&p[i]));
		peer_close(&p[i]);
	}
}
END_TEST

/* A peer that leaves, and an owner that waits no more. */
START_TEST(finishing_can_be_cut_short)
{
	struct peer a, b;

	peer_open(&a);
	peer_open(&b);
	for (uint64_t i = 0; i < 30; i++) {
		reply(a.conn, i, 16000);
		reply(b.conn, i, 16000);
	}
	conn_finish(a.conn);
	conn_finish(b.conn);
	loop_turn(loop);
	ck_assert_uint_eq(service.closed, 0);
	peer_close(&a);
	TURN_UNTIL(service.closed == 1);
	conn_close(b.conn);
	TURN_UNTIL(service.closed == 2);
	ck_assert(hung_up(&b));
	peer_open(&a); /* in one of their slots */
	peer_frame(&a, 1, 1);
	TURN_UNTIL(service.frames == 1);
	peer_close(&a);
	peer_close(&b);
}
END_TEST

START_TEST(a_long_text_is_cut)
{
	static char text[2000];
	struct peer p;

	memset(text, 'x', sizeof(text) - 1);
	peer_open(&p);
	conn_error(p.conn, 1, IPC_ERR_TYPE, text);
	peer_finish(&p);
	ck_assert_uint_eq(strlen(p.text), IPC_MAX_TEXT);
	peer_close(&p);
}
END_TEST

START_TEST(freeing_the_pool_closes_without_hooks)
{
	struct peer p[4];

	for (unsigned int i = 0; i < 4; i++)
		peer_open(&p[i]);
	peer_write(&p[0], "\x20", 1);
	reply(p[1].conn, 1, 1);
	conn_close(p[2].conn);
	conn_error(p[3].conn, 0, IPC_ERR_BUSY, "full");
	conn_pool_free(pool);
	ck_assert_uint_eq(service.closed, 0);
	for (unsigned int i = 0; i < 4; i++) {
		ck_assert(hung_up(&p[i]));
		peer_close(&p[i]);
	}
	loop_turn(loop);
	pool = conn_pool_new(loop);
	conn_pool_free(NULL);
}
END_TEST

/* Descriptions */

START_TEST(peers_serials_and_users)
{
	struct peer a, b;
	int thing, pipes[2];

	peer_open(&a);
	peer_open(&b);
	ck_assert_int_eq(conn_peer(a.conn)->pid, getpid());
	ck_assert_uint_eq(conn_peer(a.conn)->uid, geteuid());
	ck_assert_uint_eq(conn_peer(a.conn)->gid, getegid());
	ck_assert(conn_in_group(a.conn, getegid()));
	ck_assert(!conn_in_group(a.conn, 123456789));
	ck_assert_uint_ne(conn_serial(a.conn), conn_serial(b.conn));
	ck_assert_ptr_null(conn_user(a.conn));
	conn_set_user(a.conn, &thing);
	ck_assert_ptr_eq(conn_user(a.conn), &thing);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	errno = 0;
	ck_assert_ptr_null(conn_new(pool, pipes[0], &hooks, &service));
	ck_assert_int_eq(errno, ENOTSOCK);
	ck_assert_int_eq(close(pipes[0]), 0); /* still ours */
	close(pipes[1]);
	peer_close(&a);
	peer_close(&b);
}
END_TEST

/* As root only: a list longer than any buffer on the stack, too. */
static int
groups_in_child(void)
{
	gid_t groups[300];
	struct peer p;
	bool good = true;

	for (unsigned int n = 1; n <= 300; n += 299) {
		for (unsigned int i = 0; i < n; i++)
			groups[i] = 5000 + i;
		if (setgroups(n, groups) != 0)
			return 77;
		peer_open(&p);
		good = good && conn_in_group(p.conn, 5000) &&
		       conn_in_group(p.conn, 5000 + n - 1) &&
		       !conn_in_group(p.conn, 5000 + n);
		peer_close(&p);
	}
	return good ? 0 : 1;
}

START_TEST(supplementary_groups)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(groups_in_child());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("# supplementary groups: not permitted to set them\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(an_idle_connection_costs_a_kibibyte_at_most)
{
	enum { COUNT = 500 };
	static struct peer p[COUNT];
	struct mallinfo2 before, after;
	size_t each;

	peer_open(&p[0]); /* what the first one makes for all */
	loop_turn(loop);
	before = mallinfo2();
	for (unsigned int i = 1; i < COUNT; i++)
		peer_open(&p[i]);
	/* Each has worked, in parts, and is idle again. */
	service.replies = true;
	service.reply_len = 500;
	for (unsigned int i = 0; i < COUNT; i++) {
		uint8_t bytes[IPC_MAX_FRAME];
		size_t len = frame(bytes, i, 50);

		peer_write(&p[i], bytes, 20);
		loop_turn(loop);
		peer_write(&p[i], bytes + 20, len - 20);
		TURN_UNTIL((peer_read(&p[i]), p[i].frames == 1));
	}
	after = mallinfo2();
	each =
	    (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
	    (COUNT - 1);
	printf("# an idle connection costs %zu bytes\n", each);
#ifndef SANITIZED
	ck_assert_uint_gt(each, 100); /* it is counted at all */
	ck_assert_uint_le(each, 1024);
#endif
	for (unsigned int i = 0; i < COUNT; i++)
		peer_close(&p[i]);
	TURN_UNTIL(service.closed == COUNT);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conn");
	TCase *tc = tcase_create("conn");
	TCase *memory = tcase_create("memory");

	tcase_add_checked_fixture(tc, setup_checked, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_frame_hook_closes_its_own);
	tcase_add_test(tc, a_frame_hook_closes_the_others);
	tcase_add_test(tc, a_closed_hook_closes_the_others);
	tcase_add_test(tc, a_half_close_is_a_close_after_its_frames);
	tcase_add_test(tc, an_error_reaches_a_peer_that_is_still_sending);
	tcase_add_test(tc, lingering_is_bounded_in_bytes);
	tcase_add_test(tc, lingering_is_bounded_in_time);
	tcase_add_test(tc, lingering_is_bounded_in_number);
	tcase_add_test(tc, lingering_is_bounded_in_descriptors);
	tcase_add_test(tc, a_peer_that_leaves_ends_the_lingering);
	tcase_add_test(tc, a_half_closed_peer_gets_its_error);
	tcase_add_test(tc, a_drained_connection_takes_no_more);
	tcase_add_test(tc, a_drained_peer_that_goes_is_noticed);
	tcase_add_test(tc, a_drained_peer_may_go_on_sending);
	tcase_add_test(tc, a_finished_connection_closes_at_once);
	tcase_add_test(tc, a_finished_connection_sends_the_rest);
	tcase_add_test(tc, finishing_is_bounded_in_time);
	tcase_add_test(tc, finishing_can_be_cut_short);
	tcase_add_test(tc, a_long_text_is_cut);
	tcase_add_test(tc, freeing_the_pool_closes_without_hooks);
	tcase_add_test(tc, peers_serials_and_users);
	tcase_add_test(tc, supplementary_groups);
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(memory, setup, teardown);
	tcase_set_timeout(memory, 60);
	tcase_add_test(memory, an_idle_connection_costs_a_kibibyte_at_most);
	suite_add_tcase(suite, memory);
	return harness_run(suite);
}
