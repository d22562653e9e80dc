/*
 * daemon/io/conninput: frames under every way of cutting the stream, lengths
 * that are out of range, frames that are started and not finished.
 */
#include "daemon/io/conn.h"

#include <string.h>
#include <unistd.h>

#include "tests/unit/conn_fixture.h"

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

static struct peer *late_peer;

static void
finish_late(struct conn *conn)
{
	uint8_t bytes[IPC_MAX_FRAME];
	size_t len = frame(bytes, 1, 100);

	(void)conn;
	peer_write(late_peer, bytes + 30, len - 30);
}

/*
 * In one turn: a frame of another peer, in whose hook the rest of a late one
 * arrives, and then the alarm. What has come by then counts.
 */
START_TEST(the_alarm_looks_once_more)
{
	struct peer a, b, c;
	uint8_t bytes[IPC_MAX_FRAME];

	frame(bytes, 1, 100);
	conn_pool_set_frame_timeout(pool, 1);
	peer_open(&a);
	peer_open(&b);
	peer_open(&c);
	late_peer = &b;
	service.act = finish_late;
	service.act_at = 5;
	peer_write(&b, bytes, 30);
	peer_write(&c, bytes, 30);
	loop_turn(loop); /* both are started */
	peer_frame(&a, 5, 0);
	loop_turn(loop);
	ck_assert_uint_eq(service.frames, 2);
	ck_assert_uint_eq(service.ids[1], 1);
	ck_assert(!conn_closing(b.conn));
	ck_assert_uint_eq(service.closed, 1);
	peer_finish(&c);
	ck_assert_uint_eq(c.code, IPC_ERR_SLOW);
	peer_close(&a);
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
	tcase_add_test(tc, bad_lengths_are_answered);
	tcase_add_test(tc, a_started_frame_must_be_finished);
	tcase_add_test(tc, each_frame_has_its_own_time);
	tcase_add_test(tc, the_alarm_looks_once_more);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
