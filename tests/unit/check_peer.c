/* What is recorded of servers, and what a change of membership keeps of it. */
#include "daemon/core/peer.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/harness.h"

#define MS(n) ((n)*INT64_C(1000))

static uint64_t seed;
static struct peers ps;
static struct peer p;

static void
setup(void)
{
	memset(&ps, 0, sizeof(ps));
	memset(&p, 0, sizeof(p));
}

/* The usual answer: sent at 1 s, received 2.5 ms later, its own stamp. */
static struct peer_answer
answer(void)
{
	return (struct peer_answer){
	    .now = MS(1000) + 2500,
	    .wall_ms = 900002,
	    .stamp = 900001,
	    .asked_stamp = 900000,
	    .sent_at = MS(1000),
	    .measures = true,
	};
}

START_TEST(an_answer)
{
	struct peer_answer a = answer();

	peer_sent(&p, MS(1000));
	peer_sent(&p, MS(1001));
	ck_assert_uint_eq(p.sent, 2);
	ck_assert_int_eq(p.asked_since, MS(1000));
	peer_answered(&p, &a);
	ck_assert_int_eq(p.asked_since, 0);
	ck_assert_uint_eq(p.answered, 1);
	ck_assert_int_eq(p.last_answer, a.now);
	ck_assert_int_eq(p.last_in_time, a.now);
	ck_assert_int_eq(p.rtt_us, 2500);
	ck_assert_int_ge(peer_rtt(&p, 500, a.now), 2350);
	ck_assert_int_le(peer_rtt(&p, 500, a.now), 2650);
	ck_assert_int_eq(peer_rtt(&p, 500, a.now + MS(120000)), 0);
	peer_selected(&p);
	ck_assert_uint_eq(p.selected, 1);
	peer_sent(&p, MS(1100));
	ck_assert_int_eq(p.asked_since, MS(1100));
	a.now = MS(1200);
	peer_answered(&p, &a);
	ck_assert_int_eq(p.last_answer, MS(1200));
}
END_TEST

START_TEST(the_round_trip_is_smoothed)
{
	struct peer_answer a = answer();

	a.now = a.sent_at + 800;
	peer_answered(&p, &a);
	a.now = a.sent_at + 1600;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.rtt_us, 900);
	a.measures = false;
	a.now = a.sent_at + 50000;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.rtt_us, 900);
	ck_assert_int_lt(peer_rtt(&p, 1000, a.now), 2000);
	setup();
	a.measures = true;
	a.now = a.sent_at;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.rtt_us, 1); /* 0 would say that it is not known */
}
END_TEST

START_TEST(an_echoed_stamp_says_nothing)
{
	struct peer_answer a = answer();

	a.stamp = a.asked_stamp;
	peer_answered(&p, &a);
	ck_assert(!p.clock.known);
	a.asked_stamp = 0; /* another agent sent it first */
	peer_answered(&p, &a);
	ck_assert(!p.clock.known);
}
END_TEST

START_TEST(its_own_stamp_tells_its_clock)
{
	struct peer_answer a = answer();

	a.stamp = a.wall_ms + 20000;
	peer_answered(&p, &a);
	ck_assert(p.clock.known);
	ck_assert_int_eq(p.clock.offset_ms, 20000);
	ck_assert_int_eq(p.clock.within_ms, 3); /* 2.5, upwards */
	/* It has stamps of its own: an equal one is no echo. */
	a.stamp = a.asked_stamp;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.clock.offset_ms, -2);
	a.stamp = a.wall_ms - 70000;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.clock.offset_ms, -70000);
}
END_TEST

START_TEST(a_stamp_may_be_any_number)
{
	struct peer_answer a = answer();

	a.stamp = UINT64_MAX;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.clock.offset_ms, PEER_CLOCK_MAX_MS);
	a.wall_ms = UINT64_MAX;
	a.stamp = 0;
	peer_answered(&p, &a);
	ck_assert_int_eq(p.clock.offset_ms, -PEER_CLOCK_MAX_MS);
}
END_TEST

START_TEST(unanswered_in_a_row)
{
	struct peer_answer a = answer();

	peer_unanswered(&p, MS(1));
	peer_unanswered(&p, MS(2));
	ck_assert_uint_eq(p.unanswered, 2);
	ck_assert_uint_eq(p.missed_rounds, 2);
	peer_missed_round(&p);
	ck_assert_uint_eq(p.unanswered, 2);
	ck_assert_uint_eq(p.missed_rounds, 3);
	peer_answered(&p, &a);
	ck_assert_uint_eq(p.unanswered, 0);
	/* Began before the answer came: it was under way meanwhile. */
	peer_unanswered(&p, a.now);
	ck_assert_uint_eq(p.unanswered, 0);
	ck_assert_uint_eq(p.missed_rounds, 4);
	peer_unanswered(&p, a.now + 1);
	ck_assert_uint_eq(p.unanswered, 1);
	p.unanswered = UINT32_MAX;
	peer_unanswered(&p, a.now + 1);
	ck_assert_uint_eq(p.unanswered, UINT32_MAX);
}
END_TEST

START_TEST(overdue_answers_show_life_and_no_more)
{
	struct peer_answer a = answer();

	peer_sent(&p, MS(900));
	peer_unanswered(&p, MS(900));
	a.overdue = true;
	peer_answered(&p, &a);
	ck_assert_uint_eq(p.unanswered, 1);
	ck_assert_uint_eq(p.overdue, 1);
	ck_assert_uint_eq(p.answered, 1);
	ck_assert_int_eq(p.last_answer, a.now);
	ck_assert_int_eq(p.last_in_time, 0);
	ck_assert_int_eq(p.asked_since, 0);
	ck_assert_int_eq(p.last_late, a.now);
	ck_assert_int_eq(p.late_us, 2500);
	/* A further copy of an answer that was late is no second one. */
	a.again = true;
	a.now++;
	peer_answered(&p, &a);
	ck_assert_uint_eq(p.overdue, 1);
	ck_assert_uint_eq(p.answered, 2);
	ck_assert_int_eq(p.last_in_time, 0);
	ck_assert_int_eq(p.late_us, 2500);
	peer_heard(&p, a.now + 5);
	ck_assert_uint_eq(p.overdue, 2);
	ck_assert_uint_eq(p.answered, 2);
	ck_assert_int_eq(p.last_late, a.now - 1);
	ck_assert_int_eq(p.last_answer, a.now + 5);
	ck_assert_uint_eq(p.unanswered, 1);
	/* It does not outweigh what it missed in time. */
	peer_unanswered(&p, a.now - 1);
	ck_assert_uint_eq(p.unanswered, 2);
}
END_TEST

/* What is forgotten does not tell when it was asked: only when what was sent
 * before is out of the question is it the first that is unanswered. */
START_TEST(how_late_forgotten_answers_are)
{
	peer_heard(&p, MS(10));
	ck_assert_int_eq(p.late_us, 0);
	peer_sent(&p, MS(1000));
	peer_heard(&p, MS(1300));
	ck_assert_int_eq(p.late_us, MS(300));
	peer_sent(&p, MS(1301));
	peer_heard(&p, MS(2400));
	ck_assert_int_eq(p.late_us, MS(300));
	peer_sent(&p, MS(2700));
	peer_heard(&p, MS(3000));
	ck_assert_int_eq(p.late_us, MS(300));
	peer_sent(&p, MS(4000));
	peer_heard(&p, MS(4500));
	ck_assert_int_eq(p.late_us, MS(500));
}
END_TEST

START_TEST(errors_and_refusals)
{
	peer_refused(&p, ECONNREFUSED, 5);
	peer_refused(&p, EHOSTUNREACH, 6);
	peer_send_error(&p, EPERM, 7);
	ck_assert_uint_eq(p.refused.count, 2);
	ck_assert_int_eq(p.refused.error, EHOSTUNREACH);
	ck_assert_int_eq(p.refused.last, 6);
	ck_assert_uint_eq(p.send_errors.count, 1);
	ck_assert_int_eq(p.send_errors.error, EPERM);
	ck_assert_int_eq(p.send_errors.last, 7);
	ck_assert_uint_eq(p.sent, 0);
}
END_TEST

START_TEST(invalid_datagrams_by_class)
{
	enum peer_invalid why = PEER_SOURCE;

	ck_assert(!peer_invalid_since(&p, 0, &why));
	peer_invalid(&p, PEER_CONTENT, 10);
	peer_invalid(&p, PEER_AUTH, 20);
	peer_invalid(&p, PEER_AUTH, 30);
	peer_invalid(&p, PEER_MALFORMED, 25);
	ck_assert_uint_eq(p.invalid[PEER_AUTH].count, 2);
	ck_assert_uint_eq(p.invalid[PEER_CONTENT].count, 1);
	ck_assert_uint_eq(p.invalid[PEER_SOURCE].count, 0);
	ck_assert(peer_invalid_since(&p, 0, &why));
	ck_assert_int_eq(why, PEER_AUTH);
	ck_assert(peer_invalid_since(&p, 30, &why));
	ck_assert(!peer_invalid_since(&p, 31, &why));
	peer_invalid(&p, PEER_CONTENT, 40);
	ck_assert(peer_invalid_since(&p, 30, &why));
	ck_assert_int_eq(why, PEER_CONTENT);
	ck_assert_int_eq(p.last_answer, 0);
}
END_TEST

static void
follow(const uint64_t *ids, size_t count)
{
	static struct members_target targets[MEMBERS_MAX];
	struct members *m;

	memset(targets, 0, sizeof(targets));
	for (size_t i = 0; i < count; i++) {
		targets[i].server_id = ids[i];
		targets[i].addr_count = 1;
		targets[i].addrs[0].family = 4;
	}
	m = members_build(targets, count, NULL, NULL);
	ck_assert_ptr_nonnull(m);
	peers_follow(&ps, m);
	ck_assert_uint_eq(ps.count, m->count);
	for (uint32_t i = 0; i < m->count; i++)
		ck_assert_uint_eq(ps.list[i].server_id, m->list[i].server_id);
	members_unref(m);
}

START_TEST(a_change_keeps_what_is_known)
{
	static const uint64_t first[] = {10, 20, 30};
	static const uint64_t second[] = {5, 20, 25, 30, 40};

	follow(first, 3);
	ck_assert_ptr_null(peers_find(&ps, 15));
	ck_assert_ptr_null(peers_find(&ps, 31));
	peers_find(&ps, 10)->sent = 1;
	peers_find(&ps, 20)->sent = 2;
	peers_find(&ps, 30)->sent = 3;
	follow(second, 5);
	ck_assert_ptr_null(peers_find(&ps, 10));
	ck_assert_uint_eq(peers_find(&ps, 5)->sent, 0);
	ck_assert_uint_eq(peers_find(&ps, 20)->sent, 2);
	ck_assert_uint_eq(peers_find(&ps, 25)->sent, 0);
	ck_assert_uint_eq(peers_find(&ps, 30)->sent, 3);
	ck_assert_uint_eq(peers_find(&ps, 40)->sent, 0);
	follow(first, 3); /* one that comes back begins anew */
	ck_assert_uint_eq(peers_find(&ps, 10)->sent, 0);
	follow(NULL, 0);
	ck_assert_ptr_null(peers_find(&ps, 20));
}
END_TEST

START_TEST(random_changes_keep_what_is_known)
{
	uint64_t ids[MEMBERS_MAX], sent[2 * MEMBERS_MAX] = {0};
	size_t n;

	for (int step = 0; step < 200; step++) {
		n = 0;
		for (uint64_t id = 0; id < 2 * MEMBERS_MAX; id++) {
			if (n < MEMBERS_MAX && harness_below(&seed, 3) != 0)
				ids[n++] = id;
			else
				sent[id] = 0;
		}
		follow(ids, n);
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_eq(
			    peers_find(&ps, ids[i])->sent, sent[ids[i]]);
			sent[ids[i]] = harness_random(&seed);
			peers_find(&ps, ids[i])->sent = sent[ids[i]];
		}
	}
}
END_TEST

START_TEST(answers_of_all)
{
	static const uint64_t ids[] = {10, 20};
	struct peer_answer a = answer();

	follow(ids, 2);
	peers_answered(&ps, &ps.list[1], &a);
	ck_assert_uint_eq(ps.list[1].answered, 1);
	ck_assert_int_eq(ps.last_answer, a.now);
	a.now++;
	peers_answered(&ps, NULL, &a); /* has departed */
	ck_assert_int_eq(ps.last_answer, a.now);
	peers_heard(&ps, &ps.list[0], a.now + 1);
	ck_assert_int_eq(ps.list[0].last_answer, a.now + 1);
	ck_assert_int_eq(ps.last_answer, a.now + 1);
	peers_heard(&ps, NULL, a.now + 2);
	ck_assert_int_eq(ps.last_answer, a.now + 2);
	follow(NULL, 0);
	ck_assert_int_eq(ps.last_answer, a.now + 2);
}
END_TEST

START_TEST(operations_by_form)
{
	peers_operation(&ps, false, true, 5);
	peers_operation(&ps, true, false, 6);
	peers_operation(&ps, true, false, 7);
	ck_assert_uint_eq(ps.plain.answered, 1);
	ck_assert_int_eq(ps.plain.last_answered, 5);
	ck_assert_uint_eq(ps.plain.unanswered, 0);
	ck_assert_uint_eq(ps.guarded.unanswered, 2);
	ck_assert_int_eq(ps.guarded.first_unanswered, 6);
	ck_assert_int_eq(ps.guarded.last_unanswered, 7);
	ck_assert_int_eq(ps.guarded.last_answered, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("peer");
	TCase *tc = tcase_create("peer");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, an_answer);
	tcase_add_test(tc, the_round_trip_is_smoothed);
	tcase_add_test(tc, an_echoed_stamp_says_nothing);
	tcase_add_test(tc, its_own_stamp_tells_its_clock);
	tcase_add_test(tc, a_stamp_may_be_any_number);
	tcase_add_test(tc, unanswered_in_a_row);
	tcase_add_test(tc, overdue_answers_show_life_and_no_more);
	tcase_add_test(tc, how_late_forgotten_answers_are);
	tcase_add_test(tc, errors_and_refusals);
	tcase_add_test(tc, invalid_datagrams_by_class);
	tcase_add_test(tc, a_change_keeps_what_is_known);
	tcase_add_test(tc, random_changes_keep_what_is_known);
	tcase_add_test(tc, answers_of_all);
	tcase_add_test(tc, operations_by_form);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
