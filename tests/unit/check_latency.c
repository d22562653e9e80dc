/*
 * The histogram that is counted for ever: where each bound falls, that nothing
 * is lost or counted twice, and that the texts say what the bounds are.
 */
#include "daemon/core/latency.h"

#include <string.h>

#include "tests/unit/harness.h"

#define BOUND(us, text) us,
static const int64_t bounds[] = {LATENCY_BOUNDS(BOUND)};

static struct latency l;

static void
setup(void)
{
	memset(&l, 0, sizeof(l));
}

/* Only this bucket has samples, so many. */
static void
only(int bucket, uint64_t count)
{
	for (int i = 0; i <= LATENCY_BUCKETS; i++)
		ck_assert_uint_eq(l.counts[i], i == bucket ? count : 0);
}

START_TEST(a_bound_is_the_most_of_its_bucket)
{
	latency_note(&l, bounds[_i]);
	only(_i, 1);
	latency_note(&l, _i > 0 ? bounds[_i - 1] + 1 : 0);
	only(_i, 2);
	setup();
	latency_note(&l, bounds[_i] + 1);
	only(_i + 1, 1);
}
END_TEST

START_TEST(the_ends)
{
	latency_note(&l, INT64_MIN);
	latency_note(&l, -1);
	latency_note(&l, 0);
	only(0, 3);
	ck_assert_uint_eq(l.sum_us, 0);
	setup();
	latency_note(&l, INT64_MAX);
	only(LATENCY_BUCKETS, 1);
	ck_assert_uint_eq(l.sum_us, INT64_MAX);
}
END_TEST

START_TEST(texts_are_the_bounds)
{
	char *end;

	ck_assert_int_eq(sizeof(bounds) / sizeof(bounds[0]), LATENCY_BUCKETS);
	for (int i = 0; i < LATENCY_BUCKETS; i++) {
		ck_assert_double_eq(strtod(latency_bound_texts[i], &end),
		    (double)bounds[i] / 1e6);
		ck_assert_str_eq(end, "");
		ck_assert(i == 0 || bounds[i - 1] < bounds[i]);
	}
}
END_TEST

START_TEST(random_samples)
{
	uint64_t seed = harness_seed(), sum = 0, below[LATENCY_BUCKETS] = {0};
	int64_t us;

	for (unsigned int i = 0; i < 20000; i++) {
		us = (int64_t)(harness_random(&seed) >>
			       (40 + harness_random(&seed) % 24));
		latency_note(&l, us);
		sum += (uint64_t)us;
		for (int k = 0; k < LATENCY_BUCKETS; k++)
			below[k] += us <= bounds[k];
	}
	for (int k = 0; k < LATENCY_BUCKETS; k++) {
		uint64_t counted = 0;

		for (int i = 0; i <= k; i++)
			counted += l.counts[i];
		ck_assert_uint_eq(counted, below[k]);
	}
	ck_assert_uint_eq(l.sum_us, sum);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("latency");
	TCase *tc = tcase_create("latency");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_loop_test(
	    tc, a_bound_is_the_most_of_its_bucket, 0, LATENCY_BUCKETS);
	tcase_add_test(tc, the_ends);
	tcase_add_test(tc, texts_are_the_bounds);
	tcase_add_test(tc, random_samples);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
