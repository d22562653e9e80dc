/*
 * Which decisions are logged: the share is exact, the first one is seen, and
 * whatever comes, no more lines than there is room for, some of it for those
 * that are rare.
 */
#include "daemon/core/sample.h"

#include <string.h>

#include "tests/unit/harness.h"

#define SECOND INT64_C(1000000)

static struct sample_budget budget;

static void
setup(void)
{
	sample_budget_init(&budget, 50 * SECOND);
}

START_TEST(shares)
{
	static const struct {
		double share;
		unsigned every;
	} rows[] = {
	    {1, 1}, {0.5, 2}, {0.25, 4}, {0.1, 10}, {0.01, 100}, {0.001, 1000}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const int64_t share = sample_share(rows[i].share);
		struct sample s = {0};
		unsigned due = 0;

		for (unsigned n = 0; n < 100000; n++) {
			/* The first, and then one in so many. */
			ck_assert_uint_eq(
			    due, (n + rows[i].every - 1) / rows[i].every);
			due += sample_due(&s, share);
		}
		ck_assert_uint_eq(due, 100000 / rows[i].every);
	}
}
END_TEST

START_TEST(the_ends_of_a_share)
{
	struct sample s = {0};

	ck_assert_int_eq(sample_share(0), 0);
	ck_assert_int_eq(sample_share(1), SAMPLE_ALL);
	ck_assert_int_eq(sample_share(1e-300), 1);
	ck_assert(sample_due(&s, 1));
	for (int i = 0; i < 1000000; i++)
		ck_assert(!sample_due(&s, 1));
}
END_TEST

START_TEST(what_is_uneven_does_not_drift)
{
	const int64_t share = sample_share(0.7);
	struct sample s = {0};
	unsigned due = 0;

	for (unsigned n = 1; n <= 1000000; n++) {
		due += sample_due(&s, share);
		ck_assert_uint_ge(due, (unsigned)(0.7 * n));
		ck_assert_uint_le(due, (unsigned)(0.7 * n) + 1);
	}
}
END_TEST

START_TEST(no_more_than_there_is_room_for)
{
	struct sample busy = {0};
	int64_t now = 50 * SECOND;
	unsigned lines = 0, first = 0;

	for (int i = 0; i < 100000; i++, now += 100) {
		lines += sample_take(&budget, &busy, now);
		if (i == 1000) /* 0.1 s */
			first = lines;
	}
	/* 10 s: what was stored, and what came. A busy one has none of what is
	 * kept for others, but for its first line. */
	ck_assert_uint_ge(first, SAMPLE_COMMON);
	ck_assert_uint_le(lines, 11 * SAMPLE_COMMON + 1);
	ck_assert_uint_ge(lines, 11 * SAMPLE_COMMON - 1);
}
END_TEST

START_TEST(a_rare_one_is_seen_beside_a_busy_one)
{
	struct sample busy = {0}, rare = {0};
	int64_t now = 50 * SECOND;

	for (int second = 0; second < 20; second++) {
		for (int i = 0; i < 1000; i++, now += 1000)
			sample_take(&budget, &busy, now);
		while (sample_take(&budget, &busy, now))
			continue;
		ck_assert(sample_take(&budget, &rare, now));
	}
}
END_TEST

START_TEST(many_rare_ones_have_a_bound_too)
{
	static struct sample rules[4096];
	int64_t now = 50 * SECOND;
	unsigned lines = 0;

	memset(rules, 0, sizeof(rules));
	for (int second = 0; second < 10; second++) {
		for (size_t i = 0; i < 4096; i++)
			lines += sample_take(
			    &budget, &rules[i], now + (int64_t)i * 244);
		now += SECOND;
	}
	ck_assert_uint_le(lines, 11 * (SAMPLE_COMMON + SAMPLE_RARE));
	ck_assert_uint_ge(lines, 10 * (SAMPLE_COMMON + SAMPLE_RARE));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sample");
	TCase *tc = tcase_create("sample");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, shares);
	tcase_add_test(tc, the_ends_of_a_share);
	tcase_add_test(tc, what_is_uneven_does_not_drift);
	tcase_add_test(tc, no_more_than_there_is_room_for);
	tcase_add_test(tc, a_rare_one_is_seen_beside_a_busy_one);
	tcase_add_test(tc, many_rare_ones_have_a_bound_too);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
