/* Shares of what was added, against the same numbers sorted. */
#include "client-shim/load_histogram.h"

#include <string.h>

#include "tests/unit/harness.h"

static uint64_t seed;

static bool
near(double got, double want)
{
	const double off = got > want ? got - want : want - got;

	return off <= want * 0.004;
}

START_TEST(nothing)
{
	static struct load_histogram h;

	ck_assert(load_histogram_share(&h, 0) == 0);
	ck_assert(load_histogram_share(&h, 0.5) == 0);
	ck_assert(load_histogram_share(&h, 1) == 0);
}
END_TEST

/* What one bucket gives back, which neither end of the numbers helps. */
static double
alone(int64_t ns)
{
	static struct load_histogram h;

	memset(&h, 0, sizeof(h));
	load_histogram_add(&h, 0);
	load_histogram_add(&h, ns);
	load_histogram_add(&h, LOAD_HISTOGRAM_MAX);
	return load_histogram_share(&h, 0.5);
}

START_TEST(every_magnitude)
{
	int64_t ns;
	int bits, off;

	for (ns = 0; ns < 256; ns++)
		ck_assert_msg(alone(ns) == (double)ns, "%lld", (long long)ns);
	for (bits = 8; bits < 42; bits++)
		for (off = -1; off <= 1; off++) {
			ns = (INT64_C(1) << bits) + off;
			if (!near(alone(ns), (double)ns))
				ck_abort_msg(
				    "%lld is %f", (long long)ns, alone(ns));
		}
}
END_TEST

START_TEST(out_of_range)
{
	static struct load_histogram h;

	load_histogram_add(&h, -5);
	ck_assert(load_histogram_share(&h, 1) == 0);
	load_histogram_add(&h, INT64_MAX);
	ck_assert(load_histogram_share(&h, 1) == (double)LOAD_HISTOGRAM_MAX);
	ck_assert(load_histogram_share(&h, 0) == 0);
	ck_assert_uint_eq(h.count, 2);
}
END_TEST

static int
compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The one of rank share x n, rounded up, from 1 on. */
static int64_t
ranked(const int64_t *sorted, size_t n, double share)
{
	size_t rank = (size_t)(share * (double)n);

	if ((double)rank < share * (double)n)
		rank++;
	return sorted[rank > 0 ? rank - 1 : 0];
}

START_TEST(against_a_sorted_array)
{
	static const double shares[] = {
	    0, 1e-9, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
	static struct load_histogram h;
	static int64_t values[20000];
	uint64_t state = seed;
	size_t i, n, round;

	for (round = 0; round < 20; round++) {
		memset(&h, 0, sizeof(h));
		n = 1 + harness_below(&state, 20000);
		for (i = 0; i < n; i++) {
			values[i] = (int64_t)(harness_random(&state) >>
					      (23 + harness_below(&state, 41)));
			load_histogram_add(&h, values[i]);
		}
		qsort(values, n, sizeof(values[0]), compare);
		for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
			if (!near(load_histogram_share(&h, shares[i]),
				(double)ranked(values, n, shares[i])))
				ck_abort_msg("%zu values, %g: %f, not %lld", n,
				    shares[i],
				    load_histogram_share(&h, shares[i]),
				    (long long)ranked(values, n, shares[i]));
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_histogram");
	TCase *tc = tcase_create("load_histogram");

	seed = harness_seed();
	tcase_add_test(tc, nothing);
	tcase_add_test(tc, every_magnitude);
	tcase_add_test(tc, out_of_range);
	tcase_add_test(tc, against_a_sorted_array);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
