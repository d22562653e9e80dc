/*
 * ErrorRateControl against the tuning rules it was published with, and the
 * two additions: begins that queue, and tries for log lines.
 */
#include "daemon/core/errorrate.h"

#include "tests/unit/harness.h"

#define MS INT64_C(1000)

static struct errorrate e;
static uint64_t suppressed;

static void
setup(void)
{
	errorrate_init(&e, 3, 100 * MS, 800 * MS);
	suppressed = 0;
}

START_TEST(the_fourth_failure_is_the_first_to_wait)
{
	ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_begin(&e, 0), 100 * MS);
}
END_TEST

START_TEST(delays_double_up_to_the_maximum)
{
	static const int64_t want[] = {100, 200, 400, 800, 800, 800};
	int64_t now = 0, wait;

	for (int i = 0; i < 3; i++)
		errorrate_begin(&e, now);
	for (int i = 0; i < 6; i++) {
		wait = errorrate_begin(&e, now);
		ck_assert_int_eq(wait, want[i] * MS);
		now += wait; /* one caller: the next begin comes after it */
	}
}
END_TEST

START_TEST(concurrent_begins_queue)
{
	for (int i = 0; i < 3; i++)
		errorrate_begin(&e, 5);
	ck_assert_int_eq(errorrate_begin(&e, 5), 100 * MS);
	ck_assert_int_eq(errorrate_begin(&e, 5), 300 * MS);
	ck_assert_int_eq(errorrate_begin(&e, 5 + 100 * MS), 600 * MS);
	/* Free at 700 ms; asked later, it starts from then. */
	ck_assert_int_eq(errorrate_begin(&e, 900 * MS), 800 * MS);
}
END_TEST

START_TEST(a_success_gives_one_back_and_halves)
{
	int64_t now = 0;

	for (int i = 0; i < 6; i++)
		now += errorrate_begin(&e, now); /* delay is 800 next */
	errorrate_success(&e);
	ck_assert_int_eq(errorrate_begin(&e, now), 0);
	ck_assert_int_eq(errorrate_begin(&e, now), 400 * MS);
}
END_TEST

START_TEST(success_stops_at_both_bounds)
{
	for (int i = 0; i < 100; i++)
		errorrate_success(&e);
	ck_assert_uint_eq(e.burst, 3);
	ck_assert_int_eq(e.delay_us, 100 * MS);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_begin(&e, 0), 100 * MS);
}
END_TEST

START_TEST(events_that_succeed_never_wait)
{
	for (int64_t now = 0; now < 1000; now++) {
		ck_assert_int_eq(errorrate_begin(&e, now), 0);
		errorrate_success(&e);
	}
}
END_TEST

START_TEST(without_a_burst_the_first_waits)
{
	errorrate_init(&e, 0, 1, 1);
	ck_assert_int_eq(errorrate_begin(&e, 0), 1);
	errorrate_success(&e);
	ck_assert_int_eq(errorrate_begin(&e, 50), 1);
}
END_TEST

START_TEST(the_maximum_is_reached_exactly)
{
	int64_t now = 0, wait = 0;

	errorrate_init(&e, 0, 3 * MS, 10 * MS);
	for (int i = 0; i < 4; i++) {
		wait = errorrate_begin(&e, now);
		now += wait;
	}
	ck_assert_int_eq(wait, 10 * MS); /* 3, 6, 10, 10 */
	errorrate_success(&e);
	errorrate_success(&e);
	ck_assert_int_eq(e.delay_us, 3 * MS);
}
END_TEST

START_TEST(huge_delays_saturate)
{
	errorrate_init(&e, 0, INT64_MAX, INT64_MAX);
	ck_assert_int_eq(errorrate_begin(&e, 10), INT64_MAX - 10);
	ck_assert_int_eq(errorrate_begin(&e, 10), INT64_MAX - 10);
	ck_assert(!errorrate_try(&e, 10, &suppressed));
}
END_TEST

START_TEST(tries_pass_the_burst_then_pace)
{
	int64_t now = 0;
	int granted = 0;

	/* A flood for 10 s, one try a millisecond. */
	for (; now < 10000 * MS; now += MS)
		granted += errorrate_try(&e, now, &suppressed);
	/* 0, 1, 2 and 3 ms; 103, 303, 703, then every 800. */
	ck_assert_int_eq(granted, 4 + 3 + (10000 - 703 - 1) / 800);
	ck_assert_uint_eq(suppressed, 10000 - (uint64_t)granted);
}
END_TEST

START_TEST(a_refused_try_is_no_begin)
{
	for (int i = 0; i < 4; i++)
		ck_assert(errorrate_try(&e, 0, &suppressed));
	ck_assert(!errorrate_try(&e, 100 * MS - 1, &suppressed));
	ck_assert_uint_eq(suppressed, 1);
	ck_assert_int_eq(e.delay_us, 200 * MS);
	ck_assert(errorrate_try(&e, 100 * MS, &suppressed));
	ck_assert_uint_eq(suppressed, 1);
}
END_TEST

START_TEST(quiet_recovers_one_by_one)
{
	for (int i = 0; i < 4; i++)
		errorrate_try(&e, 0, &suppressed); /* free at 100 ms */
	/* One microsecond short of a full 800 ms of quiet. */
	ck_assert(errorrate_try(&e, 900 * MS - 1, &suppressed));
	ck_assert_int_eq(e.delay_us, 400 * MS);
	/* Free at 1,100 ms less 1 us; two full quiet spells from there. */
	ck_assert(errorrate_try(&e, 2700 * MS - 1, &suppressed));
	ck_assert_uint_eq(e.burst, 1);
	ck_assert_int_eq(e.delay_us, 100 * MS);
	ck_assert_uint_eq(suppressed, 0);
}
END_TEST

START_TEST(long_quiet_recovers_wholly)
{
	for (int i = 0; i < 4; i++)
		errorrate_try(&e, 0, &suppressed);
	ck_assert(errorrate_try(&e, INT64_MAX / 2, &suppressed));
	ck_assert_uint_eq(e.burst, 2);
	ck_assert_int_eq(e.delay_us, 100 * MS);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("errorrate");
	TCase *tc = tcase_create("errorrate");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, the_fourth_failure_is_the_first_to_wait);
	tcase_add_test(tc, delays_double_up_to_the_maximum);
	tcase_add_test(tc, concurrent_begins_queue);
	tcase_add_test(tc, a_success_gives_one_back_and_halves);
	tcase_add_test(tc, success_stops_at_both_bounds);
	tcase_add_test(tc, events_that_succeed_never_wait);
	tcase_add_test(tc, without_a_burst_the_first_waits);
	tcase_add_test(tc, the_maximum_is_reached_exactly);
	tcase_add_test(tc, huge_delays_saturate);
	tcase_add_test(tc, tries_pass_the_burst_then_pace);
	tcase_add_test(tc, a_refused_try_is_no_begin);
	tcase_add_test(tc, quiet_recovers_one_by_one);
	tcase_add_test(tc, long_quiet_recovers_wholly);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
