/*
 * Growth schedules: the three formulas of the r-client specification, section
 * 9.3.1, their caps, and the far ends of every field.
 */
#include "daemon/core/schedule.h"

#include "tests/unit/harness.h"

START_TEST(fixed_never_grows)
{
	struct schedule s = {SCHEDULE_FIXED, 7, 5, 0};

	ck_assert_uint_eq(schedule_units(&s, 0), 7);
	ck_assert_uint_eq(schedule_units(&s, 1), 7);
	ck_assert_uint_eq(schedule_units(&s, UINT32_MAX), 7);
}
END_TEST

START_TEST(linear_steps_up_to_its_max)
{
	struct schedule s = {SCHEDULE_LINEAR, 2, 3, 10};
	static const uint32_t want[] = {2, 5, 8, 10, 10};

	for (uint32_t k = 0; k < 5; k++)
		ck_assert_uint_eq(schedule_units(&s, k), want[k]);
}
END_TEST

START_TEST(linear_without_step_is_fixed)
{
	struct schedule s = {SCHEDULE_LINEAR, 4, 0, 9};

	ck_assert_uint_eq(schedule_units(&s, 31), 4);
}
END_TEST

START_TEST(exponential_multiplies_up_to_its_max)
{
	struct schedule s = {SCHEDULE_EXPONENTIAL, 3, 2, 20};
	static const uint32_t want[] = {3, 6, 12, 20, 20};

	for (uint32_t k = 0; k < 5; k++)
		ck_assert_uint_eq(schedule_units(&s, k), want[k]);
}
END_TEST

START_TEST(exponential_by_one_is_fixed)
{
	struct schedule s = {SCHEDULE_EXPONENTIAL, 3, 1, 20};

	ck_assert_uint_eq(schedule_units(&s, UINT32_MAX), 3);
}
END_TEST

START_TEST(zero_stays_zero)
{
	struct schedule fixed = {SCHEDULE_FIXED, 0, 0, 0};
	struct schedule grows = {SCHEDULE_EXPONENTIAL, 0, 9, 20};

	ck_assert_uint_eq(schedule_units(&fixed, 3), 0);
	ck_assert_uint_eq(schedule_units(&grows, UINT32_MAX), 0);
}
END_TEST

START_TEST(a_product_over_32_bits_saturates)
{
	/* In 32 bits it would be zero. */
	struct schedule linear = {SCHEDULE_LINEAR, 0, UINT32_C(1) << 31, 9};
	struct schedule power = {SCHEDULE_EXPONENTIAL, 2, UINT32_C(1) << 31, 9};

	ck_assert_uint_eq(schedule_units(&linear, 2), 9);
	ck_assert_uint_eq(schedule_units(&power, 1), 9);
}
END_TEST

START_TEST(the_far_ends_saturate)
{
	const uint32_t top = UINT32_MAX;
	struct schedule linear = {SCHEDULE_LINEAR, top, top, top};
	struct schedule power = {SCHEDULE_EXPONENTIAL, top, top, top};
	struct schedule slow = {SCHEDULE_EXPONENTIAL, 1, 2, top};

	ck_assert_uint_eq(schedule_units(&linear, top), top);
	ck_assert_uint_eq(schedule_units(&power, top), top);
	ck_assert_uint_eq(schedule_units(&slow, 31), UINT32_C(1) << 31);
	ck_assert_uint_eq(schedule_units(&slow, 32), top);
	ck_assert_uint_eq(schedule_units(&slow, top), top);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("schedule");
	TCase *tc = tcase_create("units");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, fixed_never_grows);
	tcase_add_test(tc, linear_steps_up_to_its_max);
	tcase_add_test(tc, linear_without_step_is_fixed);
	tcase_add_test(tc, exponential_multiplies_up_to_its_max);
	tcase_add_test(tc, exponential_by_one_is_fixed);
	tcase_add_test(tc, zero_stays_zero);
	tcase_add_test(tc, a_product_over_32_bits_saturates);
	tcase_add_test(tc, the_far_ends_saturate);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
