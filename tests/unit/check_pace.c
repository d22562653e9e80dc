/*
 * The pace of users: what is late, what is forgotten and when, how a window
 * shrinks and grows, what limits nothing; and greedy users before a server of
 * a known rate, in virtual time.
 */
#include "daemon/core/pace.h"

#include "tests/unit/harness.h"

#define MS(n)  ((n)*INT64_C(1000))
#define SEC(n) ((n)*INT64_C(1000000))

static struct pace_path path;
static struct pace_window window;

static void
setup(void)
{
	pace_path_init(&path, 0);
	pace_window_init(&window);
}

/* Paths */

START_TEST(late_is_over_twice_the_least)
{
	ck_assert_int_eq(pace_path_judge(&path, MS(10), false, 0), PACE_EVEN);
	ck_assert_int_eq(
	    pace_path_judge(&path, MS(20) + PACE_SLACK_US, false, 0),
	    PACE_EVEN);
	ck_assert_int_eq(
	    pace_path_judge(&path, MS(20) + PACE_SLACK_US + 1, false, 0),
	    PACE_LATE);
	/* A lesser one is the measure at once. */
	ck_assert_int_eq(pace_path_judge(&path, 0, false, 0), PACE_EVEN);
	ck_assert_int_eq(
	    pace_path_judge(&path, PACE_SLACK_US, false, 0), PACE_EVEN);
	ck_assert_int_eq(
	    pace_path_judge(&path, PACE_SLACK_US + 1, false, 0), PACE_LATE);
}
END_TEST

START_TEST(the_least_is_forgotten_after_two_periods)
{
	int64_t now = PACE_PERIOD_US - 1;

	pace_path_judge(&path, MS(1), true, 0);
	ck_assert_int_eq(pace_path_judge(&path, MS(9), true, now), PACE_LATE);
	now++;
	ck_assert_int_eq(pace_path_judge(&path, MS(9), true, now), PACE_LATE);
	now += PACE_PERIOD_US - 1;
	ck_assert_int_eq(pace_path_judge(&path, MS(9), true, now), PACE_LATE);
	now++;
	ck_assert_int_eq(pace_path_judge(&path, MS(9), true, now), PACE_EVEN);
}
END_TEST

/* A crowd that lasts is not the measure. */
START_TEST(nothing_is_forgotten_in_a_crowd)
{
	pace_path_judge(&path, MS(1), true, 0);
	for (int64_t now = 0; now < 100 * PACE_PERIOD_US; now += SEC(1))
		ck_assert_int_eq(
		    pace_path_judge(&path, MS(9), false, now), PACE_LATE);
}
END_TEST

/* Windows */

static void
hear(unsigned int n, enum pace pace, uint32_t inflight, int64_t now)
{
	while (n-- > 0)
		pace_window_note(&window, pace, now, inflight, now);
}

START_TEST(no_answer_no_limit)
{
	ck_assert(pace_window_open(&window, UINT32_MAX, 0));
	hear(1000, PACE_UNKNOWN, 50000, MS(5));
	ck_assert(pace_window_open(&window, UINT32_MAX, MS(5)));
	/* The first one limits; then silence does no more. */
	hear(1, PACE_EVEN, 50000, MS(5));
	ck_assert(!pace_window_open(&window, PACE_LEAST, MS(5)));
	ck_assert(pace_window_open(&window, PACE_LEAST - 1, MS(5)));
	hear(1000, PACE_UNKNOWN, 50000, MS(900));
	ck_assert(
	    !pace_window_open(&window, PACE_LEAST, MS(5) + PACE_FRESH_US - 1));
	ck_assert(pace_window_open(&window, UINT32_MAX, MS(5) + PACE_FRESH_US));
}
END_TEST

START_TEST(a_round_is_what_began_after_the_last)
{
	hear(PACE_ROUND, PACE_EVEN, PACE_LEAST, MS(10));
	ck_assert_uint_eq(window.size, 2 * PACE_LEAST);
	for (int i = 0; i < 100; i++)
		pace_window_note(
		    &window, PACE_LATE, MS(9), 2 * PACE_LEAST, MS(11));
	ck_assert_uint_eq(window.size, 2 * PACE_LEAST);
	hear(PACE_ROUND - 1, PACE_EVEN, 2 * PACE_LEAST, MS(12));
	ck_assert_uint_eq(window.size, 2 * PACE_LEAST);
	hear(1, PACE_EVEN, 2 * PACE_LEAST, MS(12));
	ck_assert_uint_eq(window.size, 4 * PACE_LEAST);
}
END_TEST

/* To the least, fast to the half, and on slowly. */
START_TEST(a_crowded_window)
{
	int64_t now = MS(1);

	for (; window.size < 64 * PACE_LEAST; now++)
		hear(PACE_ROUND, PACE_EVEN, window.size, now);
	hear(PACE_ROUND, PACE_LATE, 64 * PACE_LEAST, now++);
	ck_assert_uint_eq(window.size, PACE_LEAST);
	for (int i = 0; i < 5; i++)
		hear(PACE_ROUND, PACE_EVEN, window.size, now++);
	ck_assert_uint_eq(window.size, 32 * PACE_LEAST);
	hear(PACE_ROUND, PACE_EVEN, window.size, now++);
	ck_assert_uint_eq(window.size, 32 * PACE_LEAST + PACE_LEAST / 2);
	/* It is the half of what was used, and never below the least. */
	hear(PACE_ROUND, PACE_LATE, 100, now++);
	hear(PACE_ROUND, PACE_EVEN, 16, now++);
	hear(PACE_ROUND, PACE_EVEN, 32, now++);
	ck_assert_uint_eq(window.size, 50);
	for (int i = 0; i < 50; i++)
		hear(PACE_ROUND, PACE_LATE, window.size, now++);
	ck_assert_uint_eq(window.size, PACE_LEAST);
	hear(PACE_ROUND, PACE_EVEN, window.size, now++);
	ck_assert_uint_eq(window.size, PACE_LEAST + PACE_LEAST / 2);
}
END_TEST

START_TEST(the_more_part_counts)
{
	hear(PACE_ROUND / 2, PACE_LATE, PACE_LEAST, MS(1));
	hear(PACE_ROUND / 2, PACE_EVEN, PACE_LEAST, MS(1));
	ck_assert_uint_eq(window.size, 2 * PACE_LEAST);
	hear(PACE_ROUND / 2 + 1, PACE_LATE, 2 * PACE_LEAST, MS(2));
	hear(PACE_ROUND / 2 - 1, PACE_EVEN, 2 * PACE_LEAST, MS(2));
	ck_assert_uint_eq(window.size, PACE_LEAST);
}
END_TEST

START_TEST(what_is_not_used_does_not_grow)
{
	hear(PACE_ROUND, PACE_EVEN, PACE_LEAST / 2 - 1, MS(1));
	ck_assert_uint_eq(window.size, PACE_LEAST);
	hear(PACE_ROUND, PACE_EVEN, PACE_LEAST / 2, MS(2));
	ck_assert_uint_eq(window.size, 2 * PACE_LEAST);
}
END_TEST

/*
 * Greedy users before one queue that serves a check in each_us and is trip
 * away: all that may begin begins. What came of it, from half of the run on.
 */
#define USERS  3
#define QUEUE  65536
#define RUN_US SEC(40)

struct world {
	struct pace_window user[USERS];
	uint32_t inflight[USERS];
	uint32_t served[USERS];
	int64_t longest;
	struct {
		int64_t began;
		int64_t done;
		unsigned int who;
	} queue[QUEUE];
	uint32_t first, count;
	int64_t free_at;
};

static struct world w;

static void
begin(unsigned int who, int64_t trip, int64_t each, int64_t now)
{
	const uint32_t at = (w.first + w.count) % QUEUE;

	ck_assert_uint_lt(w.count, QUEUE);
	w.free_at = (w.free_at > now ? w.free_at : now) + each;
	w.queue[at].began = now;
	w.queue[at].done = w.free_at + trip;
	w.queue[at].who = who;
	w.count++;
	w.inflight[who]++;
}

static void
end(int64_t now)
{
	const unsigned int who = w.queue[w.first].who;
	const int64_t began = w.queue[w.first].began;
	const int64_t took = now - began;
	const enum pace pace =
	    pace_path_judge(&path, took, w.count <= PACE_LEAST, now);

	pace_window_note(&w.user[who], pace, began, w.inflight[who], now);
	w.first = (w.first + 1) % QUEUE;
	w.count--;
	w.inflight[who]--;
	if (now < RUN_US / 2)
		return;
	w.served[who]++;
	if (took > w.longest)
		w.longest = took;
}

static void
run(unsigned int users, int64_t trip, int64_t each)
{
	memset(&w, 0, sizeof(w));
	for (unsigned int i = 0; i < users; i++)
		pace_window_init(&w.user[i]);
	for (int64_t now = 1; now < RUN_US; now += 100) {
		while (w.count > 0 && w.queue[w.first].done <= now)
			end(now);
		for (unsigned int i = 0; i < users; i++) {
			for (int n = 0; n < 10 && pace_window_open(&w.user[i],
						      w.inflight[i], now);
			     n++)
				begin(i, trip, each, now);
		}
	}
}

/* Near and far: the queue is short and the server busy. */
START_TEST(one_greedy_user)
{
	static const int64_t trips[] = {0, 200, MS(3), MS(50)};
	const int64_t each = 40;

	for (size_t i = 0; i < sizeof(trips) / sizeof(trips[0]); i++) {
		setup();
		run(1, trips[i], each);
		printf("# %lld us away: %.0f %% used, longest %lld us\n",
		    (long long)trips[i],
		    100.0 * w.served[0] * (double)each / (RUN_US / 2),
		    (long long)w.longest);
		ck_assert_int_gt(w.served[0] * each, RUN_US / 2 * 7 / 10);
		ck_assert_int_lt(
		    w.longest, 4 * (trips[i] + PACE_LEAST * each) + MS(2));
	}
}
END_TEST

START_TEST(greedy_users_share)
{
	const int64_t each = 40;
	uint32_t sum = 0;

	run(USERS, MS(3), each);
	for (unsigned int i = 0; i < USERS; i++)
		sum += w.served[i];
	ck_assert_int_gt(sum * each, RUN_US / 2 * 7 / 10);
	for (unsigned int i = 0; i < USERS; i++)
		ck_assert_uint_gt(w.served[i], sum / USERS / 2);
	ck_assert_int_lt(w.longest, MS(20));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("pace");
	TCase *tc = tcase_create("pace");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, late_is_over_twice_the_least);
	tcase_add_test(tc, the_least_is_forgotten_after_two_periods);
	tcase_add_test(tc, nothing_is_forgotten_in_a_crowd);
	tcase_add_test(tc, no_answer_no_limit);
	tcase_add_test(tc, a_round_is_what_began_after_the_last);
	tcase_add_test(tc, a_crowded_window);
	tcase_add_test(tc, the_more_part_counts);
	tcase_add_test(tc, what_is_not_used_does_not_grow);
	tcase_add_test(tc, one_greedy_user);
	tcase_add_test(tc, greedy_users_share);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
