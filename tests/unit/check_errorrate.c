/*
 * ErrorRateControl against the statements it was published with, one by one,
 * in their order; and the additions: begins that queue, begins that do not wait
 * for ever, tries for log lines.
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

/* Failures of one caller, who waits each time. When the last one began. */
static int64_t
failures(int times, int64_t now)
{
	while (times-- > 0)
		now += errorrate_begin(&e, now);
	return now;
}

static void
succeed(int times)
{
	while (times-- > 0)
		errorrate_success(&e);
}

/* What it is for */

/* An initial burst of errors, then increasing pauses. */
START_TEST(errors_pass_first_then_slow_down)
{
	static const int64_t want[] = {
	    0, 0, 0, 100, 200, 400, 800, 800, 800, 800};
	int64_t now = 77, wait;

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		wait = errorrate_begin(&e, now);
		ck_assert_int_eq(wait, want[i] * MS);
		now += wait;
	}
}
END_TEST

/* It is begin that delays, and nothing but begin. */
START_TEST(success_delays_nobody)
{
	int64_t now = failures(6, 0);

	ck_assert_int_eq(errorrate_held(&e, now), 0);
	errorrate_success(&e);
	ck_assert_int_eq(errorrate_held(&e, now), 0);
}
END_TEST

/* Events that succeed go at full speed, and go so again after errors. */
START_TEST(events_that_succeed_never_wait)
{
	int64_t now = 0;

	for (; now < 1000; now++) {
		ck_assert_int_eq(errorrate_begin(&e, now), 0);
		errorrate_success(&e);
	}
	now = failures(20, now);
	succeed(20);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(errorrate_begin(&e, now), 0);
		errorrate_success(&e);
	}
}
END_TEST

/* Nobody tells of an error: the next begin notices the missing success. */
START_TEST(a_begin_is_an_error_until_its_success)
{
	failures(3, 0);
	ck_assert_uint_eq(e.burst, 0);
	succeed(3);
	ck_assert_uint_eq(e.burst, 3);
	failures(3, 0);
	succeed(2); /* one of three was an error */
	ck_assert_uint_eq(e.burst, 2);
}
END_TEST

/* The burst */

START_TEST(a_burst_of_three_delays_the_fourth)
{
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_begin(&e, 0), 100 * MS);
}
END_TEST

START_TEST(the_burst_is_at_its_maximum_first)
{
	ck_assert_uint_eq(e.burst, 3);
	succeed(1);
	ck_assert_uint_eq(e.burst, 3);
}
END_TEST

START_TEST(begin_takes_one_of_the_burst_down_to_zero)
{
	static const uint32_t left[] = {2, 1, 0, 0, 0};

	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		errorrate_begin(&e, 0);
		ck_assert_uint_eq(e.burst, left[i]);
	}
}
END_TEST

START_TEST(begin_delays_when_the_burst_is_at_zero)
{
	int64_t now = failures(10, 0);

	succeed(1); /* not at zero: no delay, whatever it has grown to */
	ck_assert_int_eq(errorrate_begin(&e, now), 0);
	ck_assert_int_eq(errorrate_begin(&e, now), 400 * MS);
}
END_TEST

START_TEST(success_gives_one_of_the_burst_up_to_the_maximum)
{
	static const uint32_t left[] = {1, 2, 3, 3, 3};

	failures(10, 0);
	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		errorrate_success(&e);
		ck_assert_uint_eq(e.burst, left[i]);
	}
}
END_TEST

/* The delay */

START_TEST(the_delay_is_at_its_minimum_first)
{
	ck_assert_int_eq(e.delay_us, 100 * MS);
}
END_TEST

START_TEST(the_delay_stays_between_its_bounds)
{
	uint64_t seed = 1;
	int64_t now = 0;

	for (int i = 0; i < 500; i++) {
		if (harness_below(&seed, 2) == 0)
			now = failures(1, now);
		else
			succeed(1);
		if (e.delay_us < 100 * MS || e.delay_us > 800 * MS)
			ck_abort_msg("%lld", (long long)e.delay_us);
	}
}
END_TEST

/* While the burst lasts the delay is neither used nor changed. */
START_TEST(the_delay_counts_only_at_zero)
{
	failures(5, 0); /* 400 ms next */
	succeed(1);     /* 200 ms */
	ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(e.delay_us, 200 * MS);
}
END_TEST

/* It is increased after the delay itself. */
START_TEST(begin_doubles_the_delay_after_it)
{
	failures(3, 0);
	ck_assert_int_eq(e.delay_us, 100 * MS);
	ck_assert_int_eq(errorrate_begin(&e, 0), 100 * MS);
	ck_assert_int_eq(e.delay_us, 200 * MS);
}
END_TEST

START_TEST(begin_doubles_the_delay_up_to_the_maximum)
{
	int64_t now;

	errorrate_init(&e, 0, 3 * MS, 10 * MS);
	now = failures(2, 0);
	ck_assert_int_eq(errorrate_begin(&e, now), 10 * MS); /* 3, 6, 10 */
	ck_assert_int_eq(e.delay_us, 10 * MS);
}
END_TEST

START_TEST(success_halves_the_delay_down_to_the_minimum)
{
	static const int64_t want[] = {400, 200, 100, 100, 100};

	failures(10, 0);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		errorrate_success(&e);
		ck_assert_int_eq(e.delay_us, want[i] * MS);
	}
	errorrate_init(&e, 0, 3 * MS, 10 * MS);
	failures(3, 0);
	errorrate_success(&e);
	ck_assert_int_eq(e.delay_us, 5 * MS);
	errorrate_success(&e); /* 2.5 would be less than the minimum */
	ck_assert_int_eq(e.delay_us, 3 * MS);
}
END_TEST

/* Concurrent begins */

START_TEST(each_delay_starts_when_the_one_before_ends)
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

/* Whoever queues, waits on; who comes now finds one more in the burst. */
START_TEST(a_success_while_others_queue_shortens_no_wait)
{
	for (int i = 0; i < 5; i++)
		errorrate_begin(&e, 0); /* until 100 and 300 ms */
	errorrate_success(&e);
	ck_assert_int_eq(errorrate_held(&e, 0), 300 * MS);
	ck_assert_int_eq(errorrate_begin(&e, 0), 0);
	ck_assert_int_eq(errorrate_held(&e, 0), 300 * MS);
	/* The next one queues behind them, with the halved delay. */
	ck_assert_int_eq(errorrate_begin(&e, 0), 500 * MS);
}
END_TEST

/* Successes of one burst of concurrent callers, in whatever order. */
START_TEST(concurrent_callers_who_succeed_restore_it)
{
	for (int i = 0; i < 6; i++)
		errorrate_begin(&e, 0);
	succeed(6);
	ck_assert_uint_eq(e.burst, 3);
	ck_assert_int_eq(e.delay_us, 100 * MS);
}
END_TEST

START_TEST(held_is_the_end_of_the_last_delay)
{
	ck_assert_int_eq(errorrate_held(&e, 0), 0);
	failures(3, 50);
	ck_assert_int_eq(errorrate_held(&e, 50), 0);
	errorrate_begin(&e, 50);
	errorrate_begin(&e, 50);
	ck_assert_int_eq(errorrate_held(&e, 50), 300 * MS);
	ck_assert_int_eq(errorrate_held(&e, 49 + 300 * MS), 1);
	ck_assert_int_eq(errorrate_held(&e, 50 + 300 * MS), 0);
	ck_assert_int_eq(errorrate_held(&e, INT64_MAX), 0);
}
END_TEST

/* Begins that do not wait for ever */

static bool
unchanged(const struct errorrate *before)
{
	return e.burst == before->burst && e.delay_us == before->delay_us &&
	       e.free_at == before->free_at;
}

START_TEST(a_wait_over_the_most_changes_nothing)
{
	struct errorrate before;
	int64_t wait;

	for (int i = 0; i < 3; i++)
		ck_assert(errorrate_begin_within(&e, 0, 7, &wait));
	ck_assert_int_eq(wait, 0);
	before = e;
	ck_assert(!errorrate_begin_within(&e, 100 * MS - 1, 7, &wait));
	ck_assert_int_eq(wait, 100 * MS);
	ck_assert(unchanged(&before));
	ck_assert(errorrate_begin_within(&e, 100 * MS, 7, &wait));
	ck_assert_int_eq(wait, 100 * MS);
	before = e;
	ck_assert(!errorrate_begin_within(&e, 300 * MS - 1, 7, &wait));
	ck_assert_int_eq(wait, 300 * MS);
	ck_assert(unchanged(&before));
	/* While the burst lasts nobody waits: nothing to refuse. */
	errorrate_success(&e);
	ck_assert(errorrate_begin_within(&e, 0, 7, &wait));
	ck_assert_int_eq(wait, 0);
}
END_TEST

START_TEST(a_queue_ends_where_the_most_says)
{
	int64_t wait, longest = 0;
	int granted = 0;

	while (errorrate_begin_within(&e, 3600000 * MS, 0, &wait)) {
		granted++;
		longest = wait;
	}
	/* 3 at once, 100 + 200 + 400 ms, then 800 each to an hour. */
	ck_assert_int_eq(granted, 3 + 3 + (3600000 - 700) / 800);
	ck_assert_int_eq(longest, errorrate_held(&e, 0));
	ck_assert_int_eq(wait, longest + 800 * MS);
}
END_TEST

/* Edges */

START_TEST(without_a_burst_the_first_waits)
{
	errorrate_init(&e, 0, 1, 1);
	ck_assert_int_eq(errorrate_begin(&e, 0), 1);
	errorrate_success(&e);
	ck_assert_int_eq(errorrate_begin(&e, 50), 1);
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

/* Tries for log lines */

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
	tcase_add_test(tc, errors_pass_first_then_slow_down);
	tcase_add_test(tc, success_delays_nobody);
	tcase_add_test(tc, events_that_succeed_never_wait);
	tcase_add_test(tc, a_begin_is_an_error_until_its_success);
	tcase_add_test(tc, a_burst_of_three_delays_the_fourth);
	tcase_add_test(tc, the_burst_is_at_its_maximum_first);
	tcase_add_test(tc, begin_takes_one_of_the_burst_down_to_zero);
	tcase_add_test(tc, begin_delays_when_the_burst_is_at_zero);
	tcase_add_test(tc, success_gives_one_of_the_burst_up_to_the_maximum);
	tcase_add_test(tc, the_delay_is_at_its_minimum_first);
	tcase_add_test(tc, the_delay_stays_between_its_bounds);
	tcase_add_test(tc, the_delay_counts_only_at_zero);
	tcase_add_test(tc, begin_doubles_the_delay_after_it);
	tcase_add_test(tc, begin_doubles_the_delay_up_to_the_maximum);
	tcase_add_test(tc, success_halves_the_delay_down_to_the_minimum);
	tcase_add_test(tc, each_delay_starts_when_the_one_before_ends);
	tcase_add_test(tc, a_success_while_others_queue_shortens_no_wait);
	tcase_add_test(tc, concurrent_callers_who_succeed_restore_it);
	tcase_add_test(tc, held_is_the_end_of_the_last_delay);
	tcase_add_test(tc, a_wait_over_the_most_changes_nothing);
	tcase_add_test(tc, a_queue_ends_where_the_most_says);
	tcase_add_test(tc, without_a_burst_the_first_waits);
	tcase_add_test(tc, huge_delays_saturate);
	tcase_add_test(tc, tries_pass_the_burst_then_pace);
	tcase_add_test(tc, a_refused_try_is_no_begin);
	tcase_add_test(tc, quiet_recovers_one_by_one);
	tcase_add_test(tc, long_quiet_recovers_wholly);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
