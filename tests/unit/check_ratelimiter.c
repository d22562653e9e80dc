/*
 * RateLimiter, statement by statement of its description, and the limits of
 * the header. What years of it add up to is check_ratelimiter_random.c; that it
 * is the original, check_ratelimiter_model.py.
 */
#include "daemon/core/ratelimiter.h"

#include "tests/unit/harness.h"

#define MS(n)         ((n)*INT64_C(1000))
#define SEC(n)        ((n)*INT64_C(1000000))
#define RATE(n)       ((n)*RATELIMITER_ONE)
#define PATIENT       RATELIMITER_MAX_WAIT_US
#define LARGEST       RATELIMITER_MAX_PERMITS
#define ck_real(x, y) ck_assert_double_eq_tol(x, y, 1e-9)

static struct ratelimiter l;
static int64_t wait;

/* Ten permits a second, one second of them can be stored. */
static void
setup(void)
{
	ratelimiter_init(&l, RATE(10), SEC(1), 0);
}

static int64_t
acquire(uint32_t permits, int64_t now)
{
	ck_assert(ratelimiter_acquire(&l, permits, PATIENT, now, &wait));
	return wait;
}

/* The loop of its usage: a hundred times, one at ten a second. */
START_TEST(a_loop_is_held_to_the_rate)
{
	int64_t now = 0;

	for (int i = 0; i < 100; i++) {
		now += acquire(1, now);
		ck_assert_int_eq(now, i * MS(100));
	}
}
END_TEST

START_TEST(a_fresh_one_stores_nothing)
{
	ratelimiter_init(&l, RATE(10), SEC(1), SEC(77));
	ck_real(ratelimiter_stored(&l, SEC(77)), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(77)), 0);
	ck_assert_int_eq(acquire(1, SEC(77)), 0);
	ck_assert_int_eq(acquire(1, SEC(77)), MS(100));
}
END_TEST

/* The present request pays for the one before it, whatever that took. */
START_TEST(the_next_one_waits_for_what_was_taken_before)
{
	ck_assert_int_eq(acquire(100, 0), 0);
	ck_assert_int_eq(acquire(1, 0), SEC(10));
	ck_assert_int_eq(acquire(1, 0), SEC(10) + MS(100));
	ck_assert_int_eq(acquire(1, SEC(4)), SEC(6) + MS(200));
}
END_TEST

START_TEST(time_stores_permits_up_to_the_burst)
{
	ck_real(ratelimiter_stored(&l, MS(50)), 0.5);
	ck_real(ratelimiter_stored(&l, MS(700)), 7);
	ck_real(ratelimiter_stored(&l, SEC(1)), 10);
	ck_real(ratelimiter_stored(&l, SEC(5000)), 10);
	for (int i = 0; i < 11; i++)
		ck_assert_int_eq(acquire(1, SEC(5000)), 0);
	ck_assert_int_eq(acquire(1, SEC(5000)), MS(100));
}
END_TEST

START_TEST(the_burst_is_a_time)
{
	ratelimiter_init(&l, RATE(10), MS(2500), 0);
	ck_real(ratelimiter_stored(&l, SEC(60)), 25);
	ck_assert_int_eq(acquire(25, SEC(60)), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(60)), 0);
	ck_assert_int_eq(acquire(1, SEC(60)), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(60)), MS(100));
}
END_TEST

START_TEST(the_store_is_full_to_the_microsecond)
{
	ratelimiter_init(&l, RATE(1000000), SEC(1), 0);
	ck_assert_int_eq(acquire(1000000, SEC(1) + _i), 0);
	ck_assert_int_eq(acquire(1, SEC(1) + _i), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(1) + _i), 1);
}
END_TEST

/* Only the permits beyond the stored ones take time. */
START_TEST(stored_permits_are_spent_first)
{
	ck_assert_int_eq(acquire(15, SEC(60)), 0);
	ck_real(ratelimiter_stored(&l, SEC(60)), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(60)), MS(500));
	ck_assert_int_eq(acquire(4, SEC(62)), 0); /* of ten again */
	ck_real(ratelimiter_stored(&l, SEC(62)), 6);
	ck_real(ratelimiter_stored(&l, MS(62300)), 9);
	ck_assert_int_eq(acquire(10, MS(62300)), 0);
	ck_assert_int_eq(acquire(1, MS(62300)), MS(100));
}
END_TEST

/* Half a permit is one, too: nothing is lost between two calls. */
START_TEST(parts_of_a_permit_count)
{
	acquire(1, 0);
	ck_assert_int_eq(acquire(1, MS(150)), 0);
	ck_assert_int_eq(acquire(1, MS(150)), MS(50));
	ck_assert_int_eq(acquire(1, MS(250)), MS(50));
}
END_TEST

/* Nothing is stored while somebody waits, nor is it until it is asked for. */
START_TEST(time_in_debt_stores_nothing)
{
	acquire(20, 0);
	ck_real(ratelimiter_stored(&l, SEC(1)), 0);
	ck_real(ratelimiter_stored(&l, SEC(2)), 0);
	ck_real(ratelimiter_stored(&l, MS(2300)), 3);
}
END_TEST

START_TEST(looking_changes_nothing)
{
	struct ratelimiter before;

	acquire(3, SEC(60));
	before = l;
	ratelimiter_owed(&l, SEC(600));
	ratelimiter_stored(&l, SEC(600));
	ck_assert(l.since_us == before.since_us && l.part == before.part);
}
END_TEST

/* As the original resyncs in each call: how often it is asked is the same. */
START_TEST(asking_often_is_asking_once)
{
	struct ratelimiter often = l;

	for (int64_t now = 0; now < SEC(3); now += 777)
		ratelimiter_set(
		    &often, now / 777 % 2 ? RATE(10) : RATE(20), SEC(1), now);
	ratelimiter_set(&often, RATE(10), SEC(1), SEC(3));
	ratelimiter_set(&l, RATE(10), SEC(1), SEC(3));
	ck_assert_int_eq(acquire(12, SEC(3)), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, SEC(3)), MS(200));
	ck_assert(ratelimiter_acquire(&often, 12, PATIENT, SEC(3), &wait));
	ck_assert_int_eq(ratelimiter_owed(&often, SEC(3)), MS(200));
}
END_TEST

/* Tries */

START_TEST(a_refused_try_takes_nothing)
{
	struct ratelimiter before;

	acquire(20, 0);
	before = l;
	ck_assert(!ratelimiter_acquire(&l, 1, SEC(2) - 1, 0, &wait));
	ck_assert_int_eq(wait, SEC(2));
	ck_assert(!ratelimiter_acquire(&l, 1, 0, SEC(2) - 1, &wait));
	ck_assert_int_eq(wait, 1);
	ck_assert(l.since_us == before.since_us && l.part == before.part);
}
END_TEST

START_TEST(a_try_that_may_wait_as_long_is_granted)
{
	acquire(20, 0);
	ck_assert(ratelimiter_acquire(&l, 1, SEC(2), 0, &wait));
	ck_assert_int_eq(wait, SEC(2));
	ck_assert(ratelimiter_acquire(&l, 1, 0, MS(2100), &wait));
	ck_assert_int_eq(wait, 0);
}
END_TEST

/* What it takes itself is not its wait. */
START_TEST(a_try_asks_for_the_wait_not_for_the_permits)
{
	ck_assert(ratelimiter_acquire(&l, LARGEST, 0, 0, &wait));
	ck_assert(!ratelimiter_acquire(&l, 1, 0, 0, &wait));
	ck_assert_int_eq(wait, SEC(100000));
}
END_TEST

/* Rates */

START_TEST(stored_permits_scale_with_the_rate)
{
	ratelimiter_set(&l, RATE(40), SEC(1), MS(500));
	ck_real(ratelimiter_stored(&l, MS(500)), 20); /* 5 of 10: 20 of 40 */
	ratelimiter_set(&l, RATE(1), SEC(1), MS(500));
	ck_real(ratelimiter_stored(&l, MS(500)), 0.5);
	ck_assert_int_eq(acquire(1, MS(500)), 0);
	ck_assert_int_eq(acquire(1, MS(500)), MS(500));
}
END_TEST

/* The maximum at the old rate is the maximum at the new one. */
START_TEST(a_full_store_stays_full)
{
	ratelimiter_set(&l, RATE(40), SEC(1), SEC(60));
	ck_real(ratelimiter_stored(&l, SEC(60)), 40);
	ratelimiter_set(&l, RATE(10), SEC(1), SEC(60));
	ck_real(ratelimiter_stored(&l, SEC(60)), 10);
}
END_TEST

START_TEST(who_waits_waits_on_as_told)
{
	acquire(10, 0);
	ck_assert_int_eq(acquire(10, 0), SEC(1));
	ratelimiter_set(&l, RATE(1), SEC(1), 0);
	ck_assert_int_eq(acquire(1, 0), SEC(2));
	ck_assert_int_eq(acquire(1, 0), SEC(3));
	ratelimiter_set(&l, RATE(1000000), SEC(1), MS(1500));
	ck_assert_int_eq(ratelimiter_owed(&l, MS(1500)), MS(2500));
}
END_TEST

/* From now on: the time before stores at the rate that it had. */
START_TEST(a_rate_does_not_reach_back)
{
	ratelimiter_set(&l, RATE(40), SEC(1), 0);
	ratelimiter_set(&l, RATE(10), SEC(1), MS(500));
	ck_real(ratelimiter_stored(&l, MS(500)), 5);
	ck_real(ratelimiter_stored(&l, MS(800)), 8);
}
END_TEST

START_TEST(a_smaller_burst_takes_what_is_over_it)
{
	ratelimiter_set(&l, RATE(10), MS(300), SEC(60));
	ck_real(ratelimiter_stored(&l, SEC(60)), 3);
	/* Gone is gone, and a longer one is filled from there. */
	ratelimiter_set(&l, RATE(10), SEC(5), SEC(60));
	ck_real(ratelimiter_stored(&l, SEC(60)), 3);
	ck_real(ratelimiter_stored(&l, SEC(61)), 13);
	/* Time before a longer burst stores no more than the shorter one. */
	ratelimiter_set(&l, RATE(10), SEC(1), SEC(70));
	ratelimiter_set(&l, RATE(10), SEC(5), SEC(80));
	ck_real(ratelimiter_stored(&l, SEC(80)), 10);
}
END_TEST

START_TEST(the_same_again_changes_nothing)
{
	struct ratelimiter before;

	ratelimiter_init(&l, RATE(7), SEC(1), 0);
	acquire(3, 0);
	before = l;
	ratelimiter_set(&l, RATE(7), SEC(1), SEC(60));
	ck_assert(l.since_us == before.since_us && l.part == before.part);
}
END_TEST

/* A third of a microsecond is not a multiple of 10^-13 of one: later. */
START_TEST(a_fraction_goes_up_to_the_new_rate)
{
	ratelimiter_init(&l, RATE(3), SEC(1), 0);
	acquire(1, 0); /* 333,333 1/3 */
	ck_assert_int_eq(l.part, RATELIMITER_ONE);
	ratelimiter_set(&l, RATE(10), SEC(1), 0);
	ck_assert_int_eq(l.since_us, 333333);
	ck_assert_int_eq(l.part, INT64_C(3333333333334));
	ratelimiter_set(&l, RATE(3), SEC(1), 0);
	ck_assert_int_eq(l.part, RATELIMITER_ONE + 1);
}
END_TEST

/* Up to the next whole microsecond, when the new rate has nothing finer. */
START_TEST(a_fraction_goes_up_to_a_microsecond)
{
	ratelimiter_init(&l, RATELIMITER_MAX_RATE, SEC(1), 0);
	l.since_us = 5;
	l.part = RATELIMITER_MAX_RATE - 1;
	ratelimiter_set(&l, RATELIMITER_MIN_RATE, SEC(1), 0);
	ck_assert_int_eq(l.since_us, 6);
	ck_assert_int_eq(l.part, 0);
	ck_assert_int_eq(ratelimiter_owed(&l, 0), 6);
}
END_TEST

/* High rates */

/* Not ck_assert for each: it writes a file each time. */
static void
after(uint64_t n, uint64_t rate)
{
	if (wait != (int64_t)((n * 1000000 + rate - 1) / rate))
		ck_abort_msg(
		    "after %llu: %lld", (unsigned long long)n, (long long)wait);
}

/*
 * Truncated to whole microseconds, 700,000 a second would be a million. One by
 * one for a while, then in steps of all sizes for hours: after n permits the
 * wait is n / rate, rounded up.
 */
START_TEST(high_rates_do_not_run_away)
{
	static const uint32_t rates[] = {700000, 1000000, 999999, 300001};
	uint64_t n = 0, rate = rates[_i];

	ratelimiter_init(&l, RATE((int64_t)rate), SEC(1), 0);
	for (; n < 1000000; n++) {
		ratelimiter_acquire(&l, 1, PATIENT, 0, &wait);
		after(n, rate);
	}
	for (uint32_t step = 1; n < rate * 3600 * 3; n += step) {
		step = step * 7 % 999983;
		ratelimiter_acquire(&l, step, PATIENT, 0, &wait);
		after(n, rate);
	}
	ck_assert_int_ge(ratelimiter_owed(&l, 0), SEC(3600 * 3));
}
END_TEST

/* Somebody who does wait, at 700,000 a second: ten permits take 14 2/7. */
START_TEST(a_caller_who_waits_gets_the_rate)
{
	int64_t now = 0;

	ratelimiter_init(&l, RATE(700000), SEC(1), 0);
	for (int64_t n = 0; n < 7000; n += 10) {
		now += acquire(10, now);
		ck_assert_int_eq(now, (n * 10 + 6) / 7);
	}
}
END_TEST

START_TEST(a_part_of_a_microsecond_is_waited_for)
{
	ratelimiter_init(&l, RATE(700000), SEC(1), 0);
	acquire(1, 0); /* 1 3/7 */
	ck_assert_int_eq(ratelimiter_owed(&l, 0), 2);
	ck_assert_int_eq(ratelimiter_owed(&l, 1), 1);
	ck_assert_int_eq(ratelimiter_owed(&l, 2), 0);
}
END_TEST

/* Limits */

START_TEST(over_a_year_is_refused)
{
	struct ratelimiter before;

	ratelimiter_init(&l, RATELIMITER_MIN_RATE, SEC(1), 0);
	acquire(31536, 0); /* a year, to the second */
	ck_assert_int_eq(acquire(1, 0), PATIENT);
	before = l;
	ck_assert(!ratelimiter_acquire(&l, 1, PATIENT, 0, &wait));
	ck_assert_int_eq(wait, PATIENT + SEC(1000));
	ck_assert(l.since_us == before.since_us && l.part == before.part);
	ck_assert_int_eq(acquire(1, SEC(1000)), PATIENT);
}
END_TEST

START_TEST(the_largest_at_the_lowest_rate)
{
	int64_t now = INT64_MAX / 2;

	ratelimiter_init(
	    &l, RATELIMITER_MIN_RATE, RATELIMITER_MIN_BURST_US, now);
	ck_assert_int_eq(acquire(LARGEST, now), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, now), SEC(LARGEST) * 1000);
	ck_assert(!ratelimiter_acquire(&l, LARGEST, PATIENT, now, &wait));
	ck_assert_int_eq(wait, SEC(LARGEST) * 1000);
	ck_assert_int_eq(acquire(1, now + wait - PATIENT), PATIENT);
}
END_TEST

START_TEST(the_longest_burst_at_the_highest_rate)
{
	int64_t now = RATELIMITER_MAX_BURST_US;

	ratelimiter_init(&l, RATELIMITER_MAX_RATE, RATELIMITER_MAX_BURST_US, 0);
	ck_real(ratelimiter_stored(&l, 1), 1);
	ck_real(ratelimiter_stored(&l, now), 3.6e9);
	ck_real(ratelimiter_stored(&l, now + 1), 3.6e9);
	for (int i = 0; i < 3600; i++)
		ck_assert_int_eq(acquire(LARGEST, now), 0);
	ck_real(ratelimiter_stored(&l, now), 0);
	ck_assert_int_eq(acquire(LARGEST, now), 0);
	ck_assert_int_eq(ratelimiter_owed(&l, now), SEC(1));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ratelimiter");
	TCase *tc = tcase_create("ratelimiter");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, a_loop_is_held_to_the_rate);
	tcase_add_test(tc, a_fresh_one_stores_nothing);
	tcase_add_test(tc, the_next_one_waits_for_what_was_taken_before);
	tcase_add_test(tc, time_stores_permits_up_to_the_burst);
	tcase_add_test(tc, the_burst_is_a_time);
	tcase_add_loop_test(tc, the_store_is_full_to_the_microsecond, 0, 3);
	tcase_add_test(tc, stored_permits_are_spent_first);
	tcase_add_test(tc, parts_of_a_permit_count);
	tcase_add_test(tc, time_in_debt_stores_nothing);
	tcase_add_test(tc, looking_changes_nothing);
	tcase_add_test(tc, asking_often_is_asking_once);
	tcase_add_test(tc, a_refused_try_takes_nothing);
	tcase_add_test(tc, a_try_that_may_wait_as_long_is_granted);
	tcase_add_test(tc, a_try_asks_for_the_wait_not_for_the_permits);
	tcase_add_test(tc, stored_permits_scale_with_the_rate);
	tcase_add_test(tc, a_full_store_stays_full);
	tcase_add_test(tc, who_waits_waits_on_as_told);
	tcase_add_test(tc, a_rate_does_not_reach_back);
	tcase_add_test(tc, a_smaller_burst_takes_what_is_over_it);
	tcase_add_test(tc, the_same_again_changes_nothing);
	tcase_add_test(tc, a_fraction_goes_up_to_the_new_rate);
	tcase_add_test(tc, a_fraction_goes_up_to_a_microsecond);
	tcase_add_loop_test(tc, high_rates_do_not_run_away, 0, 4);
	tcase_add_test(tc, a_caller_who_waits_gets_the_rate);
	tcase_add_test(tc, a_part_of_a_microsecond_is_waited_for);
	tcase_add_test(tc, over_a_year_is_refused);
	tcase_add_test(tc, the_largest_at_the_lowest_rate);
	tcase_add_test(tc, the_longest_burst_at_the_highest_rate);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
