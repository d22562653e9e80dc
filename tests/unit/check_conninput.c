/*
 * daemon/io/conninput: frames under every way of cutting the stream, lengths
 * that are out of range, frames that are started and not finished.
 */
#include "daemon/io/conn.h"

#include <string.h>
#include <unistd.h>

#include "tests/unit/allocations.h"
#include "daemon/io/connpool.h"
#include "tests/unit/conn_fixture.h"

static struct conn *greedy[4];

START_TEST(a_frame_byte_by_byte)
{
	struct peer p;
	uint8_t bytes[IPC_MAX_FRAME];
	size_t len = frame(bytes, 7, 100);

	peer_open(&p);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < len; i++) {
			ck_assert_uint_eq(service.frames, (unsigned int)round);
			peer_write(&p, bytes + i, 1);
			loop_turn(loop);
		}
		ck_assert_uint_eq(service.frames, (unsigned int)round + 1);
	}
	ck_assert_uint_eq(service.payload_bytes, 300);
	peer_close(&p);
	TURN_UNTIL(service.closed == 1);
}
END_TEST

START_TEST(several_frames_in_one_write)
{
	struct peer p;
	uint8_t bytes[4 * IPC_MAX_FRAME];
	size_t len = 0;

	peer_open(&p);
	service.replies = true;
	len += frame(bytes + len, 1, 0);
	len += frame(bytes + len, 2, IPC_MAX_FRAME - IPC_HEAD_LEN);
	len += frame(bytes + len, 3, 1);
	peer_write(&p, bytes, len);
	/* One turn takes a bounded part. */
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 1);
	for (unsigned int i = 0; i < 3; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.frames, 3);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_uint_eq(service.ids[i], i + 1);
	peer_read(&p); /* all answers left with their turns */
	ck_assert_uint_eq(p.frames, 3);
	ck_assert_uint_eq(conn_unsent(p.conn), 0);
	peer_close(&p);
}
END_TEST

START_TEST(any_cutting_gives_the_same_frames)
{
	static uint8_t bytes[600 * 1024];
	uint64_t seed = harness_seed();
	struct peer p;

	for (int round = 0; round < 20; round++) {
		size_t len = 0, at = 0, payload = 0;
		unsigned int n = 0;

		memset(&service, 0, sizeof(service));
		peer_open(&p);
		while (len + IPC_MAX_FRAME <= sizeof(bytes)) {
			size_t size =
			    harness_below(&seed, 8) == 0
				? harness_below(
				      &seed, IPC_MAX_FRAME - IPC_HEAD_LEN + 1)
				: harness_below(&seed, 200);

			payload += size;
			len += frame(bytes + len, n++, size);
		}
		while (at < len) {
			size_t cut =
			    1 +
			    harness_below(&seed,
				harness_below(&seed, 4) == 0 ? 100000 : 3000);

			if (cut > len - at)
				cut = len - at;
			peer_write(&p, bytes + at, cut);
			at += cut;
			if (harness_below(&seed, 2) == 0)
				loop_turn(loop);
		}
		TURN_UNTIL(service.frames == n);
		for (unsigned int i = 0; i < n; i++)
			ck_assert_uint_eq(service.ids[i], i);
		ck_assert_uint_eq(service.payload_bytes, payload);
		ck_assert_uint_eq(service.closed, 0);
		peer_close(&p);
		TURN_UNTIL(service.closed == 1);
	}
}
END_TEST

START_TEST(twenty_thousand_pipelined)
{
	static uint8_t bytes[20000 * 80];
	size_t len = 0, at = 0;
	struct peer p;

	for (uint64_t i = 0; i < 20000; i++)
		len += frame(bytes + len, i, 50);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 60;
	while (p.frames < 20000) {
		ssize_t n = at < len
				? send(p.fd, bytes + at, len - at, MSG_NOSIGNAL)
				: 0;

		if (n > 0)
			at += (size_t)n;
		loop_turn(loop);
		while (peer_read(&p) > 0)
			continue;
		ck_assert(!p.eof && p.error == 0);
		/* What is read ahead is never more than one read's answers. */
		ck_assert_uint_le(
		    conn_unsent(p.conn), CONN_OUT_HIGH + IPC_MAX_FRAME);
	}
	ck_assert_uint_eq(service.frames, 20000);
	ck_assert_uint_eq(p.last_id, 19999);
	for (uint64_t i = 0; i < 20000; i++)
		ck_assert_uint_eq(service.ids[i], i);
	peer_close(&p);
}
END_TEST

/* Fairness */

/* A short question and a long answer: one turn gives a few of them. */
START_TEST(long_answers_are_spread_over_turns)
{
	static uint8_t bytes[16 * 500];
	unsigned int before, n = 0;
	size_t len = 0;
	struct peer p;

	for (uint64_t i = 0; i < 500; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 3000;
	peer_write(&p, bytes, len);
	while (p.frames < 500) {
		before = service.frames;
		loop_turn(loop);
		ck_assert_uint_le(service.frames - before, 6);
		while (peer_read(&p) > 0)
			continue;
		ck_assert(!p.eof && p.error == 0);
		n++;
	}
	ck_assert_uint_ge(n, 500 / 6);
	for (uint64_t i = 0; i < 500; i++)
		ck_assert_uint_eq(service.ids[i], i);
	peer_close(&p);
}
END_TEST

/* Nor do many of them make a long turn; each gets the same. */
START_TEST(many_greedy_peers_take_turns)
{
	enum { PEERS = 40, EACH = 100 };
	static struct peer p[PEERS];
	static uint8_t bytes[16 * EACH];
	unsigned int before, most = 0, least;
	size_t len = 0;

	for (uint64_t i = 0; i < EACH; i++)
		len += frame(bytes + len, i, 0);
	service.replies = true;
	service.reply_len = 3000;
	for (unsigned int i = 0; i < PEERS; i++) {
		peer_open(&p[i]);
		peer_write(&p[i], bytes, len);
	}
	do {
		before = service.frames;
		loop_turn(loop);
		/* They are all of one user: six pass its 16 KiB. */
		ck_assert_uint_le(service.frames - before, 6);
		least = EACH;
		most = 0;
		for (unsigned int i = 0; i < PEERS; i++) {
			while (peer_read(&p[i]) > 0)
				continue;
			least = p[i].frames < least ? p[i].frames : least;
			most = p[i].frames > most ? p[i].frames : most;
		}
		/* The first may be in line again before the last are: one
		 * call of epoll tells of 32. */
		ck_assert_uint_le(most - least, 2 * 6);
	} while (least < EACH);
	for (unsigned int i = 0; i < PEERS; i++)
		peer_close(&p[i]);
	TURN_UNTIL(service.closed == PEERS);
}
END_TEST

static void
end_them(struct conn *conn)
{
	(void)conn;
	conn_close(greedy[0]);
	conn_error(greedy[1], 0, IPC_ERR_BUSY, "full");
	conn_stop_reading(greedy[2]);
	conn_finish(greedy[3]);
}

/* What waits for its turn can be ended like any other. */
START_TEST(whoever_waits_can_be_ended)
{
	static struct peer p[5];
	static uint8_t bytes[16 * 100];
	unsigned int frames;
	size_t len = 0;

	for (uint64_t i = 0; i < 100; i++)
		len += frame(bytes + len, i, 0);
	service.replies = true;
	service.reply_len = 3000;
	for (unsigned int i = 0; i < 4; i++) {
		peer_open(&p[i]);
		greedy[i] = p[i].conn;
		peer_write(&p[i], bytes, len);
	}
	loop_turn(loop); /* now they wait */
	peer_open(&p[4]);
	service.act = end_them;
	service.act_at = 1000;
	peer_frame(&p[4], 1000, 0);
	TURN_UNTIL(service.closed == 3);
	frames = service.frames;
	ck_assert_uint_lt(frames, 4 * 100); /* they had more */
	ck_assert_uint_eq(service.ids[frames - 1], 1000);
	for (int i = 0; i < 10; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.frames, frames);
	ck_assert(!conn_closing(greedy[2]));
	for (unsigned int i = 0; i < 5; i++)
		peer_close(&p[i]);
	TURN_UNTIL(service.closed == 5);
}
END_TEST

/* A frame in parts behind others that wait: its time begins when they are
 * done, and it ends in time. */
START_TEST(a_started_frame_behind_waiting_ones)
{
	static uint8_t bytes[16 * 101 + IPC_MAX_FRAME];
	size_t len = 0;
	struct peer p;
	int64_t start = loop_now();

	conn_pool_set_frame_timeout(pool, 50000);
	for (uint64_t i = 0; i < 100; i++)
		len += frame(bytes + len, i, 0);
	frame(bytes + len, 100, 50);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 3000;
	peer_write(&p, bytes, len + 40);
	while (p.frames < 100) {
		loop_turn(loop);
		while (peer_read(&p) > 0)
			continue;
	}
	ck_assert(!conn_closing(p.conn));
	peer_finish(&p);
	ck_assert_uint_eq(service.frames, 100);
	ck_assert_uint_eq(p.code, IPC_ERR_SLOW);
	ck_assert_int_ge(loop_now() - start, 50000);
	peer_close(&p);
}
END_TEST

/* The end of the stream behind frames that wait is not before them. */
START_TEST(a_half_close_behind_waiting_ones)
{
	static uint8_t bytes[16 * 300];
	size_t len = 0;
	struct peer p;

	for (uint64_t i = 0; i < 300; i++)
		len += frame(bytes + len, i, 0);
	peer_open(&p);
	service.replies = true;
	service.reply_len = 3000;
	peer_write(&p, bytes, len);
	shutdown(p.fd, SHUT_WR);
	peer_finish(&p);
	ck_assert(p.eof);
	ck_assert_uint_eq(p.frames, 300);
	ck_assert_uint_eq(service.closed, 1);
	peer_close(&p);
}
END_TEST

/* Users */

#define OTHER_UID 65534

/* A peer of another user, as root. */
static void
peer_open_as(struct peer *p, uid_t uid)
{
	ck_assert_int_eq(seteuid(uid), 0);
	peer_open(p);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_uint_eq(conn_peer(p->conn)->uid, uid);
}

/* Whoever has many connections has one user's share. */
START_TEST(users_take_turns)
{
	enum { PEERS = 60, EACH = 200 };
	static struct peer p[PEERS], other;
	static uint8_t bytes[116 * EACH];
	unsigned int turns;
	size_t len = 0;

	if (geteuid() != 0)
		return; /* cannot be another user */
	for (uint64_t i = 0; i < EACH; i++)
		len += frame(bytes + len, i, 100);
	service.replies = true;
	for (unsigned int i = 0; i < PEERS; i++) {
		peer_open(&p[i]);
		peer_write(&p[i], bytes, len);
	}
	peer_open_as(&other, OTHER_UID);
	loop_turn(loop);
	for (unsigned int i = 1; i <= 20; i++) {
		peer_frame(&other, i, 100);
		for (turns = 0; other.frames < i; turns++) {
			loop_turn(loop);
			peer_read(&other);
		}
		ck_assert_uint_le(turns, 1);
	}
	ck_assert_uint_lt(service.frames, PEERS * EACH); /* it was so then */
	for (unsigned int i = 0; i < PEERS; i++)
		peer_close(&p[i]);
	peer_close(&other);
}
END_TEST

/* The more of them wait, the less each has in a turn, down to a quarter. */
START_TEST(users_share_a_turn)
{
	enum { EACH = 200, USERS = 8 };
	static struct peer p[USERS];
	static uint8_t bytes[16 * EACH];
	unsigned int before, least = EACH, most = 0;
	size_t len = 0;

	if (geteuid() != 0)
		return; /* cannot be another user */
	for (uint64_t i = 0; i < EACH; i++)
		len += frame(bytes + len, i, 0);
	service.replies = true;
	service.reply_len = 1000;
	for (unsigned int i = 0; i < USERS; i++) {
		peer_open_as(&p[i], OTHER_UID - i);
		peer_write(&p[i], bytes, len);
	}
	for (int n = 0; n < 40; n++) {
		before = service.frames;
		loop_turn(loop);
		/* Four shares of four, each 1032 bytes. */
		ck_assert_uint_le(service.frames - before, 16);
		for (unsigned int i = 0; i < USERS; i++)
			while (peer_read(&p[i]) > 0)
				continue;
	}
	for (unsigned int i = 0; i < USERS; i++) {
		least = p[i].frames < least ? p[i].frames : least;
		most = p[i].frames > most ? p[i].frames : most;
		peer_close(&p[i]);
	}
	ck_assert_uint_ge(least, 40 * 16 / USERS - 4);
	ck_assert_uint_le(most - least, 4);
}
END_TEST

/* Who is not hungry is not read from, nor does it hold others up; it goes on
 * where it was, in time, though nothing tells of it. */
START_TEST(the_sated_wait)
{
	static struct peer p[3], other;
	static uint8_t bytes[116 * 50];
	size_t len = 0;
	int64_t start;

	if (geteuid() != 0)
		return; /* cannot be another user */
	for (uint64_t i = 0; i < 50; i++)
		len += frame(bytes + len, i, 100);
	service.sates = true;
	service.meal = 7;
	for (unsigned int i = 0; i < 3; i++) {
		peer_open(&p[i]);
		peer_write(&p[i], bytes, len);
	}
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_uint_eq(service.frames, 7); /* in the middle of a read */
	service.asked = 0;
	start = loop_now();
	for (int i = 0; i < 2000; i++)
		loop_turn(loop);
	ck_assert_int_le(service.asked, 3 * ((loop_now() - start) / 10000 + 2));
	peer_open_as(&other, OTHER_UID);
	peer_frame(&other, 1000, 100);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 8);
	ck_assert_uint_eq(service.ids[7], 1000);
	service.meal = 20;
	TURN_UNTIL(service.frames == 20);
	service.sates = false;
	TURN_UNTIL(service.frames == 1 + 3 * 50);
	for (unsigned int i = 0; i < 3; i++)
		peer_close(&p[i]);
	peer_close(&other);
	TURN_UNTIL(service.closed == 4);
}
END_TEST

/* An answer makes its user hungry at once, not at the next look. */
START_TEST(an_answer_lets_the_next_in)
{
	int64_t start = loop_now();
	struct peer p;

	service.sates = true;
	service.sated = geteuid();
	service.meal = 1;
	peer_open(&p);
	for (uint64_t i = 0; i < 200; i++)
		peer_frame(&p, i, 0);
	for (; service.meal < 200; service.meal++) {
		TURN_UNTIL(service.frames == service.meal);
		loop_turn(loop); /* and it is seen to have had enough */
		loop_turn(loop);
		reply(p.conn, 1, 0);
	}
	ck_assert_int_lt(loop_now() - start, 200 * 5000); /* half of that */
	peer_close(&p);
}
END_TEST

/* Datagrams that are there go first, but not for ever. */
START_TEST(new_work_waits_for_what_came_in)
{
	struct peer p;

	peer_open(&p);
	peer_frame(&p, 1, 0);
	loop_note_behind(loop);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 0);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 1);
	for (unsigned int n = 0; n < 3; n++) {
		peer_frame(&p, 2 + n, 0);
		for (int i = 0; i < 4; i++) {
			loop_note_behind(loop);
			loop_turn(loop);
			ck_assert_uint_eq(service.frames, 1 + n);
		}
		loop_note_behind(loop);
		loop_turn(loop);
		ck_assert_uint_eq(service.frames, 2 + n);
	}
	peer_close(&p);
}
END_TEST

static void
take_long(struct conn *conn)
{
	(void)conn;
	pass(2000);
}

START_TEST(the_clock_of_a_long_read_goes_on)
{
	const int64_t start = loop_now();
	struct peer p;

	service.act = take_long;
	service.act_at = 10;
	peer_open(&p);
	for (uint64_t i = 0; i < 60; i++)
		peer_frame(&p, i, 100);
	TURN_UNTIL(service.frames == 60);
	ck_assert_int_ge(service.times[0], start);
	for (int i = 1; i < 60; i++)
		ck_assert_int_ge(service.times[i], service.times[i - 1]);
	ck_assert_int_ge(service.times[30], service.times[10] + 2000);
	ck_assert_int_le(service.times[59], loop_now());
	peer_frame(&p, 60, 0);
	pass(2000);
	TURN_UNTIL(service.frames == 61);
	ck_assert_int_ge(service.times[60], service.times[59] + 2000);
	peer_close(&p);
}
END_TEST

/* No memory for a started frame ends its connection, though more of it is
 * there: it does not wait for its turn any more. */
START_TEST(whoever_cannot_be_kept_is_closed)
{
	static uint8_t bytes[3 * IPC_MAX_FRAME];
	size_t len = frame(bytes, 1, 100);
	struct peer p, next;

	len += frame(bytes + len, 2, IPC_MAX_FRAME - IPC_HEAD_LEN);
	peer_open(&p);
	peer_write(&p, bytes, len);
	allocations_most = 1024;
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	allocations_most = SIZE_MAX;
	ck_assert_uint_eq(service.frames, allocations_are_counted ? 1 : 2);
	ck_assert_uint_eq(service.closed, allocations_are_counted ? 1 : 0);
	peer_open(&next); /* in its slot */
	peer_frame(&next, 3, 3);
	TURN_UNTIL(service.frames == (allocations_are_counted ? 2 : 3));
	peer_close(&p);
	peer_close(&next);
	TURN_UNTIL(service.closed == 2);
}
END_TEST

/* Many who send a piece of a frame move nothing, but take their time. */
START_TEST(the_clock_goes_on_without_frames)
{
	struct peer p;

	peer_open(&p);
	peer_frame(&p, 1, 0);
	TURN_UNTIL(service.frames == 1);
	pool->now = 0;
	for (int i = 0; i < 100 && pool->now == 0; i++)
		connpool_look_at_clock(pool);
	ck_assert_int_gt(pool->now, 0);
	peer_close(&p);
}
END_TEST

START_TEST(bad_lengths_are_answered)
{
	static const struct {
		uint8_t bytes[4];
		const char *number;
	} bad[] = {
	    {{0, 0, 0, 0}, " 0 "},
	    {{15, 0, 0, 0}, " 15 "},
	    {{1, 0x40, 0, 0}, " 16385 "},
	    {{255, 255, 255, 255}, " 4294967295 "},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct peer p;

		memset(&service, 0, sizeof(service));
		peer_open(&p);
		peer_frame(&p, 1, 10);
		peer_write(&p, bad[i].bytes, 4);
		peer_finish(&p);
		ck_assert(p.eof);
		ck_assert_uint_eq(service.frames, 1);
		ck_assert_uint_eq(p.frames, 1);
		ck_assert_uint_eq(p.code, IPC_ERR_MALFORMED);
		ck_assert_uint_eq(p.last_id, 0);
		ck_assert_ptr_nonnull(strstr(p.text, bad[i].number));
		ck_assert_uint_eq(service.closed, 1);
		peer_close(&p);
	}
}
END_TEST

/* Slow and lazy peers */

START_TEST(a_started_frame_must_be_finished)
{
	struct peer drip, idle;
	uint8_t bytes[IPC_MAX_FRAME];
	size_t len = frame(bytes, 1, 10000), at = 0;
	int64_t started;

	conn_pool_set_frame_timeout(pool, 50000);
	peer_open(&drip);
	peer_open(&idle);
	peer_frame(&idle, 2, 5);
	started = loop_now();
	/* Progress does not help: it is the frame that counts. */
	while (drip.code == 0 && at < len && !drip.eof && drip.error == 0) {
		if (send(drip.fd, bytes + at, 1, MSG_NOSIGNAL) == 1)
			at++;
		loop_turn(loop);
		peer_read(&drip);
		pass(200);
	}
	ck_assert_int_ge(loop_now() - started, 50000);
	ck_assert_uint_eq(drip.code, IPC_ERR_SLOW);
	peer_finish(&drip);
	ck_assert(drip.eof);
	ck_assert_uint_eq(service.closed, 1);
	ck_assert_uint_eq(service.frames, 1); /* idle's */
	ck_assert(!conn_closing(idle.conn));
	peer_frame(&idle, 2, 5);
	TURN_UNTIL(service.frames == 2);
	peer_close(&drip);
	peer_close(&idle);
}
END_TEST

/* Each frame has a time of its own, and each connection. */
START_TEST(each_frame_has_its_own_time)
{
	struct peer a, b;
	uint8_t bytes[IPC_MAX_FRAME];
	size_t len = frame(bytes, 1, 100);
	int64_t start = loop_now();

	conn_pool_set_frame_timeout(pool, 100000);
	peer_open(&a);
	peer_open(&b);
	peer_write(&b, bytes, 20); /* never goes on */
	/* Never without a started frame, for three times as long. */
	while (loop_now() < start + 300000) {
		peer_write(&a, bytes + 50, a.frames++ == 0 ? 0 : len - 50);
		peer_write(&a, bytes, 50);
		loop_turn(loop);
		pass(1000);
	}
	ck_assert(!conn_closing(a.conn));
	ck_assert_uint_eq(service.frames, a.frames - 1);
	ck_assert_uint_eq(service.closed, 1); /* b */
	peer_finish(&b);
	ck_assert_uint_eq(b.code, IPC_ERR_SLOW);
	peer_close(&a);
	peer_close(&b);
}
END_TEST

/*
 * In one turn the rest of a late frame, which stands in line to be read, and
 * the alarm before it has its turn. What has come by then counts.
 */
START_TEST(the_alarm_looks_once_more)
{
	struct peer b, c;
	uint8_t bytes[IPC_MAX_FRAME];
	size_t len = frame(bytes, 1, 100);

	conn_pool_set_frame_timeout(pool, 1);
	peer_open(&b);
	peer_open(&c);
	peer_write(&b, bytes, 30);
	peer_write(&c, bytes, 30);
	loop_turn(loop); /* both are started */
	peer_write(&b, bytes + 30, len - 30);
	pass(1000);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 1);
	ck_assert_uint_eq(service.ids[0], 1);
	ck_assert(!conn_closing(b.conn));
	ck_assert_uint_eq(service.closed, 1);
	peer_finish(&c);
	ck_assert_uint_eq(c.code, IPC_ERR_SLOW);
	peer_close(&b);
	peer_close(&c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("conninput");
	TCase *tc = tcase_create("conninput");

	tcase_add_checked_fixture(tc, setup_checked, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_frame_byte_by_byte);
	tcase_add_test(tc, several_frames_in_one_write);
	tcase_add_test(tc, any_cutting_gives_the_same_frames);
	tcase_add_test(tc, twenty_thousand_pipelined);
	tcase_add_test(tc, long_answers_are_spread_over_turns);
	tcase_add_test(tc, many_greedy_peers_take_turns);
	tcase_add_test(tc, whoever_waits_can_be_ended);
	tcase_add_test(tc, a_started_frame_behind_waiting_ones);
	tcase_add_test(tc, a_half_close_behind_waiting_ones);
	tcase_add_test(tc, users_take_turns);
	tcase_add_test(tc, users_share_a_turn);
	tcase_add_test(tc, the_sated_wait);
	tcase_add_test(tc, an_answer_lets_the_next_in);
	tcase_add_test(tc, new_work_waits_for_what_came_in);
	tcase_add_test(tc, the_clock_of_a_long_read_goes_on);
	tcase_add_test(tc, whoever_cannot_be_kept_is_closed);
	tcase_add_test(tc, the_clock_goes_on_without_frames);
	tcase_add_test(tc, bad_lengths_are_answered);
	tcase_add_test(tc, a_started_frame_must_be_finished);
	tcase_add_test(tc, each_frame_has_its_own_time);
	tcase_add_test(tc, the_alarm_looks_once_more);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
