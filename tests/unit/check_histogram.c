/*
 * A histogram against sorted samples: the error that the header promises, the
 * ends of the range, and what is forgotten.
 */
#include "daemon/core/histogram.h"

#include <string.h>

#include "tests/unit/harness.h"

#define SAMPLES 5000
#define HALF    HISTOGRAM_HALF_US

static uint64_t seed;
static struct histogram h;

static void
setup(void)
{
	memset(&h, 0, sizeof(h));
}

static void
near(int64_t got, int64_t want)
{
	ck_assert_msg(llabs(got - want) * 100 <= 6 * want,
	    "got %lld, want %lld", (long long)got, (long long)want);
}

START_TEST(every_value_is_read_back_within_six_percent)
{
	for (int64_t v = 1; v <= HISTOGRAM_MAX_US; v += 1 + v / 97) {
		memset(&h, 0, sizeof(h));
		histogram_add(&h, v, 1);
		if (v < 16)
			ck_assert_int_eq(histogram_percentile(&h, 500, 1), v);
		near(histogram_percentile(&h, 500, 1), v);
	}
}
END_TEST

START_TEST(ends_of_the_range)
{
	ck_assert_int_eq(histogram_percentile(&h, 500, 1), 0);
	histogram_add(&h, INT64_MIN, 1);
	histogram_add(&h, 0, 1);
	ck_assert_int_eq(histogram_percentile(&h, 1000, 1), 1);
	histogram_add(&h, INT64_MAX, 1);
	near(histogram_percentile(&h, 1000, 1), HISTOGRAM_MAX_US);
	ck_assert_int_eq(histogram_percentile(&h, 0, 1), 1);
	ck_assert_int_eq(histogram_percentile(&h, 666, 1), 1);
}
END_TEST

static int
by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* From 1 us to minutes, evenly on a logarithmic scale. */
static int64_t
sample(void)
{
	return ((int64_t)harness_below(&seed, 1 << 16) + 1)
	       << harness_below(&seed, 12);
}

START_TEST(percentiles_are_those_of_the_sorted_samples)
{
	static const uint32_t asked[] = {0, 1, 100, 500, 900, 990, 999, 1000};
	static int64_t samples[SAMPLES];
	const uint32_t n = 1 + harness_below(&seed, SAMPLES);
	const uint32_t half = harness_below(&seed, n + 1);
	uint32_t rank;

	for (uint32_t i = 0; i < n; i++) {
		samples[i] = sample();
		histogram_add(&h, samples[i], i < half ? 1 : HALF + 1);
	}
	qsort(samples, n, sizeof(samples[0]), by_size);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		rank = (n * asked[i] + 999) / 1000;
		near(histogram_percentile(&h, asked[i], HALF + 1),
		    samples[rank > 0 ? rank - 1 : 0]);
	}
}
END_TEST

START_TEST(one_is_small)
{
	ck_assert_uint_le(sizeof(struct histogram), 1024);
}
END_TEST

START_TEST(what_is_old_is_forgotten)
{
	const int64_t t0 = 1000 * HALF + 17;

	histogram_add(&h, 100, t0);
	ck_assert_int_ne(histogram_percentile(&h, 500, t0 + 2 * HALF - 1), 0);
	ck_assert_int_eq(histogram_percentile(&h, 500, t0 + 2 * HALF), 0);
	/* The second half has only what came in it. */
	histogram_add(&h, 9000, t0 + HALF);
	near(histogram_percentile(&h, 0, t0 + HALF), 100);
	near(histogram_percentile(&h, 1000, t0 + HALF), 9000);
	near(histogram_percentile(&h, 0, t0 + 2 * HALF - 1), 100);
	near(histogram_percentile(&h, 0, t0 + 2 * HALF), 9000);
	ck_assert_int_eq(histogram_percentile(&h, 500, t0 + 3 * HALF), 0);
	/* And what is added then joins the younger half. */
	histogram_add(&h, 3, t0 + 2 * HALF);
	near(histogram_percentile(&h, 0, t0 + 2 * HALF), 3);
	near(histogram_percentile(&h, 1000, t0 + 2 * HALF), 9000);
	/* Halves begin at their time, whenever the first sample comes. */
	setup();
	histogram_add(&h, 100, t0);
	histogram_add(&h, 9000, t0 + HALF + HALF / 2);
	near(histogram_percentile(&h, 0, t0 + 2 * HALF - 1), 100);
	near(histogram_percentile(&h, 0, t0 + 2 * HALF), 9000);
	histogram_add(&h, 5, t0 + 9 * HALF);
	ck_assert_int_eq(histogram_percentile(&h, 0, t0 + 9 * HALF), 5);
	ck_assert_int_eq(histogram_percentile(&h, 1000, t0 + 9 * HALF), 5);
}
END_TEST

/* A host that has just started has a small clock. */
START_TEST(a_clock_that_starts_at_nothing)
{
	histogram_add(&h, 7, 1);
	ck_assert_int_eq(histogram_percentile(&h, 500, 1), 7);
	ck_assert_int_eq(histogram_percentile(&h, 500, HALF), 7);
	ck_assert_int_eq(histogram_percentile(&h, 500, 2 * HALF + 1), 0);
}
END_TEST

START_TEST(a_full_counter_keeps_the_percentiles)
{
	for (int i = 0; i < 1000000; i++)
		histogram_add(&h, i % 50 == 0 ? 9000 : 100, 1);
	near(histogram_percentile(&h, 500, 1), 100);
	near(histogram_percentile(&h, 970, 1), 100);
	near(histogram_percentile(&h, 990, 1), 9000);
	/* A lone one is neither lost nor made much of. */
	histogram_add(&h, 100000, 1);
	for (int i = 0; i < 1000000; i++)
		histogram_add(&h, 100, 1);
	near(histogram_percentile(&h, 1000, 1), 100000);
	near(histogram_percentile(&h, 990, 1), 100);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("histogram");
	TCase *tc = tcase_create("histogram");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, every_value_is_read_back_within_six_percent);
	tcase_add_test(tc, ends_of_the_range);
	tcase_add_loop_test(
	    tc, percentiles_are_those_of_the_sorted_samples, 0, 20);
	tcase_add_test(tc, one_is_small);
	tcase_add_test(tc, what_is_old_is_forgotten);
	tcase_add_test(tc, a_clock_that_starts_at_nothing);
	tcase_add_test(tc, a_full_counter_keeps_the_percentiles);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
