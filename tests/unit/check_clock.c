/*
 * The clock of the host: what the kernel's words mean, and steps of the wall
 * clock, which a suspended host and reading noise must not look like.
 */
#include "daemon/clock.h"

#include <sys/timex.h>

#include "daemon/io/loop.h"
#include "tests/unit/harness.h"

#define WALL INT64_C(1800000000000) /* ms */
#define MONO INT64_C(77000000)      /* us */

static struct clock_watch w;

/* So much later by the monotonic clock, the wall clock set by that. */
static int64_t
stepped(int64_t later_ms, int64_t set_ms, int64_t slept_ms)
{
	const struct clock_reading now = {
	    .wall_ms = WALL + later_ms + slept_ms + set_ms,
	    .mono_us = MONO + later_ms * 1000,
	    .suspended_us = 5000000 + slept_ms * 1000,
	};

	return clock_stepped_ms(&w, &now);
}

static void
setup(void)
{
	w = (struct clock_watch){0};
}

START_TEST(nothing_accepted_nothing_stepped)
{
	ck_assert_int_eq(stepped(0, 0, 0), 0);
	ck_assert_int_eq(stepped(1, 3600000, 0), 0);
}
END_TEST

START_TEST(steps_both_ways)
{
	clock_mark(&w, WALL, MONO, 5000000);
	ck_assert_int_eq(stepped(0, 0, 0), 0);
	ck_assert_int_eq(stepped(86400000, 0, 0), 0);
	ck_assert_int_eq(stepped(5, CLOCK_STEP_MS - 1, 0), 0);
	ck_assert_int_eq(stepped(5, CLOCK_STEP_MS, 0), CLOCK_STEP_MS);
	ck_assert_int_eq(stepped(5, 1 - CLOCK_STEP_MS, 0), 0);
	ck_assert_int_eq(stepped(5, -CLOCK_STEP_MS, 0), -CLOCK_STEP_MS);
	ck_assert_int_eq(stepped(5, -3600000, 0), -3600000);
}
END_TEST

START_TEST(a_suspended_host_is_no_step)
{
	clock_mark(&w, WALL, MONO, 5000000);
	ck_assert_int_eq(stepped(10, 0, 7200000), 0);
	ck_assert_int_eq(stepped(10, 2000, 7200000), 2000);
}
END_TEST

START_TEST(what_is_accepted_after_a_step_is_the_new_measure)
{
	clock_mark(&w, WALL, MONO, 5000000);
	clock_mark(&w, WALL + 3600000, MONO, 5000000);
	ck_assert_int_eq(stepped(1, 3600000, 0), 0);
	ck_assert_int_eq(stepped(1, 0, 0), -3600000);
}
END_TEST

/* A request that was stamped before the step and answered after it must not
 * hide the step: its stamp counts as of when it was made. */
START_TEST(the_stamp_counts_not_the_answer)
{
	struct clock_reading now;

	clock_read(&now);
	clock_accepted(&w, (uint64_t)(now.wall_ms + 3600000), now.mono_us);
	ck_assert(w.marked);
	clock_read(&now);
	ck_assert_int_le(clock_stepped_ms(&w, &now), -3599000);
	ck_assert_int_ge(clock_stepped_ms(&w, &now), -3601000);
	clock_accepted(&w, (uint64_t)now.wall_ms, now.mono_us);
	clock_read(&now);
	ck_assert_int_eq(clock_stepped_ms(&w, &now), 0);
}
END_TEST

START_TEST(noise_does_not_move_the_measure)
{
	const struct clock_watch before = {
	    .marked = true, .base_us = WALL * 1000 - MONO};

	w = before;
	clock_accepted(&w, WALL, MONO + 9000);
	ck_assert_int_eq(w.base_us, before.base_us);
	clock_accepted(&w, WALL, MONO + 11000);
	ck_assert_int_eq(w.base_us, before.base_us - 11000);
}
END_TEST

START_TEST(the_words_of_the_kernel)
{
	ck_assert_int_eq(clock_sync_of(-1, 0), CLOCK_SYNC_UNKNOWN);
	ck_assert_int_eq(clock_sync_of(-1, STA_UNSYNC), CLOCK_SYNC_UNKNOWN);
	ck_assert_int_eq(clock_sync_of(TIME_OK, 0), CLOCK_SYNCHRONISED);
	ck_assert_int_eq(clock_sync_of(TIME_OK, STA_PLL), CLOCK_SYNCHRONISED);
	ck_assert_int_eq(clock_sync_of(TIME_INS, 0), CLOCK_SYNCHRONISED);
	ck_assert_int_eq(
	    clock_sync_of(TIME_ERROR, STA_UNSYNC), CLOCK_UNSYNCHRONISED);
	ck_assert_int_eq(clock_sync_of(TIME_ERROR, 0), CLOCK_UNSYNCHRONISED);
	ck_assert_int_eq(
	    clock_sync_of(TIME_OK, STA_UNSYNC), CLOCK_UNSYNCHRONISED);
}
END_TEST

START_TEST(a_reading_agrees_with_the_loop)
{
	struct clock_reading now;
	int64_t mono = loop_now(), wall = (int64_t)loop_wall_ms();

	clock_read(&now);
	ck_assert_int_ge(now.mono_us, mono);
	ck_assert_int_le(now.mono_us, loop_now());
	ck_assert_int_ge(now.wall_ms, wall);
	ck_assert_int_ge(now.suspended_us, 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("clock");
	TCase *tc = tcase_create("clock");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, nothing_accepted_nothing_stepped);
	tcase_add_test(tc, steps_both_ways);
	tcase_add_test(tc, a_suspended_host_is_no_step);
	tcase_add_test(tc, what_is_accepted_after_a_step_is_the_new_measure);
	tcase_add_test(tc, the_stamp_counts_not_the_answer);
	tcase_add_test(tc, noise_does_not_move_the_measure);
	tcase_add_test(tc, the_words_of_the_kernel);
	tcase_add_test(tc, a_reading_agrees_with_the_loop);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
