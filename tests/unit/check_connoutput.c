/*
 * daemon/io/connoutput: peers that do not read, what waits behind them, and
 * how they come back.
 */
#include "daemon/io/conn.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/unit/conn_fixture.h"

START_TEST(a_peer_that_does_not_read_is_not_read_from)
{
	static uint8_t bytes[16 * 60000];
	struct peer lazy, good;
	size_t len = 0, at = 0, most = 0;
	unsigned int calm = 0, before;

	conn_pool_set_frame_timeout(pool, 20000);
	for (uint64_t i = 0; i < 20000; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&lazy);
	peer_open(&good);
	service.replies = true;
	service.reply_len = 1000;
	/* Cut in a head, which must not count against the paused peer. */
	len -= 7;
	while (calm < 100) {
		ssize_t n = send(lazy.fd, bytes + at, len - at, MSG_NOSIGNAL);

		before = service.frames;
		if (n > 0)
			at += (size_t)n;
		loop_turn(loop);
		calm = n > 0 || service.frames != before ? 0 : calm + 1;
		if (conn_unsent(lazy.conn) > most)
			most = conn_unsent(lazy.conn);
	}
	ck_assert_uint_ge(most, CONN_OUT_HIGH);
	ck_assert_uint_le(most, CONN_OUT_HIGH + 1016);
	ck_assert_uint_lt(service.frames, 20000);
	/* Nobody else waits. */
	before = service.frames;
	peer_frame(&good, 5, 5);
	TURN_UNTIL((peer_read(&good), good.frames == 1));
	ck_assert_uint_eq(service.frames, before + 1);
	pass(30000); /* over the frame timeout: it is we who do not read */
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	ck_assert(!conn_closing(lazy.conn));
	/* And when it reads, it gets everything, in order. */
	while (lazy.frames < 19999) {
		ssize_t n =
		    at < len ? send(lazy.fd, bytes + at, len - at, MSG_NOSIGNAL)
			     : 0;

		if (n > 0)
			at += (size_t)n;
		loop_turn(loop);
		while (peer_read(&lazy) > 0)
			ck_assert_uint_eq(lazy.last_id, lazy.frames - 1);
		ck_assert(!lazy.eof && lazy.error == 0);
	}
	/* The cut frame's time runs again. */
	peer_finish(&lazy);
	ck_assert_uint_eq(lazy.code, IPC_ERR_SLOW);
	peer_close(&lazy);
	peer_close(&good);
}
END_TEST

/* Output that nobody asked for in this turn pauses as well. */
START_TEST(a_paused_peer_has_time_for_its_frame)
{
	struct peer p;

	conn_pool_set_frame_timeout(pool, 5000);
	peer_open(&p);
	peer_write(&p, "\x20\0\0", 3);
	loop_turn(loop); /* it is started */
	for (uint64_t i = 0; i < 60; i++)
		reply(p.conn, i, 16000);
	loop_turn(loop);
	ck_assert_uint_ge(conn_unsent(p.conn), CONN_OUT_HIGH);
	pass(6000);
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert(!conn_closing(p.conn));
	peer_finish(&p); /* reads: then its time runs */
	ck_assert_uint_eq(p.frames, 61);
	ck_assert_uint_eq(p.code, IPC_ERR_SLOW);
	peer_close(&p);
}
END_TEST

/* And what it sends meanwhile is not forgotten, nor is its end. */
START_TEST(what_came_while_paused_is_read)
{
	struct peer p;

	peer_open(&p);
	for (unsigned int end = 0; end < 2; end++) {
		for (uint64_t i = 0; i < 60; i++)
			reply(p.conn, i, 16000);
		loop_turn(loop);
		ck_assert_uint_ge(conn_unsent(p.conn), CONN_OUT_HIGH);
		if (end == 0)
			peer_frame(&p, 7, 7);
		else
			shutdown(p.fd, SHUT_WR);
		for (int i = 0; i < 5; i++)
			loop_turn(loop);
		ck_assert_uint_eq(service.frames, end);
		ck_assert(!conn_closing(p.conn));
		TURN_UNTIL((peer_read(&p), service.frames == 1 &&
					       service.closed == end &&
					       (end == 1 || p.frames == 60)));
	}
	peer_close(&p);
}
END_TEST

/* All is sent at once by the tail of a turn: no writability to wait for. */
START_TEST(a_backlog_is_never_forgotten)
{
	static const int small = 32768, large = 4 * 1024 * 1024;
	static uint8_t bytes[16 * 60];
	struct peer p;
	size_t len = 0;

	for (uint64_t i = 0; i < 60; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&p);
	ck_assert_int_eq(
	    setsockopt(p.far, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	service.replies = true;
	service.reply_len = 16000;
	peer_write(&p, bytes, len);
	TURN_UNTIL(conn_unsent(p.conn) >= CONN_OUT_HIGH);
	ck_assert_uint_lt(service.frames, 60);
	while (peer_read(&p) > 0)
		continue;
	ck_assert_int_eq(setsockopt(p.far, SOL_SOCKET, SO_SNDBUFFORCE, &large,
			     sizeof(large)) == 0 ||
			     setsockopt(p.far, SOL_SOCKET, SO_SNDBUF, &large,
				 sizeof(large)) == 0,
	    1);
	reply(p.conn, 1000, 0);
	loop_turn(loop);
	ck_assert_uint_lt(conn_unsent(p.conn), 16000);
	TURN_UNTIL((peer_read(&p), service.frames == 60));
	TURN_UNTIL((peer_read(&p), p.frames == 61));
	peer_close(&p);
}
END_TEST

static void
answer_at_length(struct conn *conn)
{
	for (uint64_t i = 0; i < 20; i++)
		reply(conn, i, 16000);
}

/* Whoever is paused by its answer and goes on as soon as that has left has had
 * its turn: timers and datagrams are in between. */
START_TEST(whoever_goes_on_does_so_in_the_next_turn)
{
	static const int large = 4 * 1024 * 1024;
	enum { EACH = 8 * 1024, FRAMES = 10 }; /* one read each */
	static uint8_t bytes[FRAMES * EACH + IPC_MAX_FRAME];
	unsigned int before;
	size_t len = 0;
	struct peer p;

	for (unsigned int i = 0; i < FRAMES; i++)
		len += frame(bytes + len, 7, EACH - IPC_HEAD_LEN);
	peer_open(&p);
	if (setsockopt(
		p.far, SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof(large)) != 0)
		return; /* too little for such an answer at once */
	service.act = answer_at_length;
	service.act_at = 7;
	peer_write(&p, bytes, len);
	while (service.frames < FRAMES) {
		before = service.frames;
		loop_turn(loop);
		ck_assert_uint_le(service.frames, before + 1);
	}
	TURN_UNTIL((peer_read(&p), p.frames == FRAMES * 20));
	peer_close(&p);
}
END_TEST

/* A paused connection with whole frames left, and then the end of it. */
START_TEST(a_half_close_behind_a_backlog)
{
	static uint8_t bytes[16 * 4000];
	size_t len = 0;
	struct peer p;

	for (uint64_t i = 0; i < 4000; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 2000;
	peer_write(&p, bytes, len);
	shutdown(p.fd, SHUT_WR);
	for (int i = 0; i < 50; i++)
		loop_turn(loop);
	ck_assert_uint_lt(service.frames, 4000);
	ck_assert_uint_eq(service.closed, 0);
	TURN_UNTIL((peer_read(&p), service.closed == 1));
	ck_assert_uint_eq(service.frames, 4000);
	peer_close(&p);
}
END_TEST

static void
stop(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

/* Room for what it may not ask yet is no news. */
START_TEST(a_backlog_of_the_sated_costs_no_busy_loop)
{
	static uint8_t bytes[16 * 60];
	struct loop_timer *timer = loop_timer_new(loop, stop, NULL);
	struct rusage before, after;
	struct peer p;
	size_t len = 0;

	for (uint64_t i = 0; i < 60; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 16000;
	peer_write(&p, bytes, len);
	for (int i = 0; i < 100; i++)
		loop_turn(loop);
	ck_assert_uint_lt(service.frames, 60);
	service.sates = true;
	service.sated = geteuid();
	service.meal = service.frames;
	TURN_UNTIL((peer_read(&p), conn_unsent(p.conn) == 0));
	while (peer_read(&p) > 0)
		continue;
	loop_timer_set(timer, loop_now() + 200000);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
	timersub(&after.ru_utime, &before.ru_utime, &after.ru_utime);
	timersub(&after.ru_stime, &before.ru_stime, &after.ru_stime);
	timeradd(&after.ru_utime, &after.ru_stime, &after.ru_utime);
	ck_assert_int_lt(
	    after.ru_utime.tv_sec * SEC + after.ru_utime.tv_usec, 20000);
	service.sates = false;
	TURN_UNTIL((peer_read(&p), p.frames == 60));
	loop_timer_free(timer);
	peer_close(&p);
}
END_TEST

START_TEST(a_lazy_peer_that_goes_away_is_noticed)
{
	struct peer p;

	peer_open(&p);
	service.replies = true;
	service.reply_len = 16000;
	for (uint64_t i = 0; i < 60; i++)
		peer_frame(&p, i, 0);
	TURN_UNTIL(conn_unsent(p.conn) >= CONN_OUT_HIGH);
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
	peer_open(&p); /* in its slot: libevent must have forgotten it */
	peer_frame(&p, 1, 0);
	TURN_UNTIL((peer_read(&p), p.frames == 1));
	peer_close(&p);
}
END_TEST

START_TEST(a_drained_connection_can_be_full)
{
	struct peer p;

	peer_open(&p);
	for (uint64_t i = 0; i < 60; i++)
		reply(p.conn, i, 16000);
	loop_turn(loop);
	ck_assert_uint_ge(conn_unsent(p.conn), CONN_OUT_HIGH);
	conn_stop_reading(p.conn);
	TURN_UNTIL((peer_read(&p), p.frames == 60));
	TURN_UNTIL(conn_unsent(p.conn) == 0);
	peer_frame(&p, 1, 1); /* and is not read after it either */
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.frames, 0);
	conn_error(p.conn, 0, IPC_ERR_BUSY, "bye");
	peer_finish(&p);
	ck_assert_str_eq(p.text, "bye");
	peer_close(&p);
}
END_TEST

START_TEST(an_unused_room_goes_back)
{
	struct peer p;
	struct writer *w;

	peer_open(&p);
	w = conn_begin(p.conn);
	writer_u8(w, 1); /* never committed */
	loop_turn(loop);
	w = conn_begin(p.conn);
	writer_zeros(w, (size_t)1 << 20); /* overflows */
	conn_commit(p.conn);
	ck_assert_uint_eq(conn_unsent(p.conn), 0);
	loop_turn(loop);
	reply(p.conn, 3, 3);
	loop_turn(loop);
	peer_read(&p);
	ck_assert_uint_eq(p.frames, 1);
	ck_assert_uint_eq(p.in_len, 0);
	peer_close(&p);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("connoutput");
	TCase *tc = tcase_create("connoutput");

	tcase_add_checked_fixture(tc, setup_checked, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_peer_that_does_not_read_is_not_read_from);
	tcase_add_test(tc, a_paused_peer_has_time_for_its_frame);
	tcase_add_test(tc, what_came_while_paused_is_read);
	tcase_add_test(tc, a_backlog_is_never_forgotten);
	tcase_add_test(tc, whoever_goes_on_does_so_in_the_next_turn);
	tcase_add_test(tc, a_half_close_behind_a_backlog);
	tcase_add_test(tc, a_lazy_peer_that_goes_away_is_noticed);
	tcase_add_test(tc, a_drained_connection_can_be_full);
	tcase_add_test(tc, an_unused_room_goes_back);
	tcase_add_test(tc, a_backlog_of_the_sated_costs_no_busy_loop);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
