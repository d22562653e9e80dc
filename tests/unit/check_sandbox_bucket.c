/*
 * Token buckets: the edges of the arithmetic, and long random runs against
 * 128-bit fractions.
 */
#include "sandbox/bucket.h"

#include <inttypes.h>

#include "tests/unit/harness.h"

START_TEST(starts_full)
{
	struct bucket b;

	bucket_init(&b, 1000, 100, 5);
	ck_assert_uint_eq(bucket_available(&b), 100);
	ck_assert_uint_eq(bucket_rate(&b), 0);
	ck_assert_int_eq(bucket_full_at(&b), 5);
	ck_assert(bucket_matches(&b, 1000, 100));
	ck_assert(!bucket_matches(&b, 1001, 100));
	ck_assert(!bucket_matches(&b, 1000, 99));
}
END_TEST

START_TEST(refills_continuously)
{
	struct bucket b;

	bucket_init(&b, 1000, 100, 0);
	bucket_take(&b, 100);
	ck_assert_uint_eq(bucket_available(&b), 0);
	ck_assert_int_eq(bucket_full_at(&b), 1000);
	bucket_refill(&b, 9);
	ck_assert_uint_eq(bucket_available(&b), 0);
	ck_assert_uint_eq(bucket_rate(&b), 100);
	bucket_refill(&b, 10);
	ck_assert_uint_eq(bucket_available(&b), 1);
	ck_assert_uint_eq(bucket_rate(&b), 99);
	bucket_refill(&b, 999);
	ck_assert_uint_eq(bucket_available(&b), 99);
	bucket_refill(&b, 1000);
	ck_assert_uint_eq(bucket_available(&b), 100);
	ck_assert_int_eq(bucket_full_at(&b), 1000);
}
END_TEST

/* Three tokens in a second: a third of a second each, nothing is rounded. */
START_TEST(fractions_are_kept)
{
	struct bucket b;
	int64_t t;

	bucket_init(&b, 1000, 3, 0);
	bucket_take(&b, 3);
	for (t = 1; t <= 1000; t++) {
		bucket_refill(&b, t);
		ck_assert_uint_eq(bucket_available(&b), (uint64_t)t * 3 / 1000);
	}
	bucket_take(&b, 1);
	ck_assert_int_eq(bucket_full_at(&b), 1334);
	bucket_refill(&b, 1333);
	ck_assert_uint_eq(bucket_available(&b), 2);
	bucket_refill(&b, 1334);
	ck_assert_uint_eq(bucket_available(&b), 3);
}
END_TEST

START_TEST(never_more_than_the_limit)
{
	struct bucket b;

	bucket_init(&b, 10, 7, 0);
	bucket_take(&b, 1);
	bucket_refill(&b, INT64_MAX);
	ck_assert_uint_eq(bucket_available(&b), 7);
}
END_TEST

START_TEST(a_clock_that_goes_back_adds_nothing)
{
	struct bucket b;

	bucket_init(&b, 1000, 1000, 500);
	bucket_take(&b, 1000);
	bucket_refill(&b, 400);
	ck_assert_uint_eq(bucket_available(&b), 0);
	bucket_refill(&b, 501);
	ck_assert_uint_eq(bucket_available(&b), 1);
}
END_TEST

START_TEST(largest_definition)
{
	struct bucket b;

	bucket_init(&b, UINT32_MAX, UINT32_MAX, 0);
	ck_assert_uint_eq(bucket_available(&b), UINT32_MAX);
	bucket_take(&b, UINT32_MAX);
	ck_assert_int_eq(bucket_full_at(&b), UINT32_MAX);
	bucket_refill(&b, UINT32_MAX - 1);
	ck_assert_uint_eq(bucket_available(&b), UINT32_MAX - 1);
	bucket_refill(&b, UINT32_MAX);
	ck_assert_uint_eq(bucket_available(&b), UINT32_MAX);
}
END_TEST

START_TEST(one_token_in_the_longest_window)
{
	struct bucket b;

	bucket_init(&b, UINT32_MAX, 1, 0);
	bucket_take(&b, 1);
	bucket_refill(&b, UINT32_MAX - 1);
	ck_assert_uint_eq(bucket_available(&b), 0);
	bucket_refill(&b, UINT32_MAX);
	ck_assert_uint_eq(bucket_available(&b), 1);
}
END_TEST

/*
 * In steps of any length the level is what one division says, and full_at is
 * the first millisecond at which the bucket is full.
 */
START_TEST(agrees_with_wide_arithmetic)
{
	uint64_t state = harness_seed();
	int run, step;

	for (run = 0; run < 300; run++) {
		uint32_t bits = 1 + harness_below(&state, 32);
		uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
		uint32_t window =
		    1 + ((uint32_t)harness_random(&state) & mask) % UINT32_MAX;
		uint32_t limit =
		    1 + ((uint32_t)harness_random(&state) & mask) % UINT32_MAX;
		unsigned __int128 full = (unsigned __int128)window * limit;
		unsigned __int128 level = full;
		struct bucket b, copy;
		int64_t now = 0;

		bucket_init(&b, window, limit, now);
		for (step = 0; step < 100; step++) {
			uint32_t passed =
			    (uint32_t)harness_random(&state) % (window / 4 + 2);
			uint64_t tokens;

			now += passed;
			level += (unsigned __int128)passed * limit;
			if (level > full)
				level = full;
			bucket_refill(&b, now);
			ck_assert_uint_eq(
			    bucket_available(&b), (uint64_t)(level / window));
			tokens = harness_random(&state) %
				 (bucket_available(&b) + UINT64_C(1));
			bucket_take(&b, tokens);
			level -= (unsigned __int128)tokens * window;
			copy = b;
			bucket_refill(&copy, bucket_full_at(&b));
			ck_assert_uint_eq(copy.level, (uint64_t)full);
			copy = b;
			if (bucket_full_at(&b) > now) {
				bucket_refill(&copy, bucket_full_at(&b) - 1);
				ck_assert_uint_lt(copy.level, (uint64_t)full);
			}
		}
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_bucket");
	TCase *tc = tcase_create("bucket");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, starts_full);
	tcase_add_test(tc, refills_continuously);
	tcase_add_test(tc, fractions_are_kept);
	tcase_add_test(tc, never_more_than_the_limit);
	tcase_add_test(tc, a_clock_that_goes_back_adds_nothing);
	tcase_add_test(tc, largest_definition);
	tcase_add_test(tc, one_token_in_the_longest_window);
	tcase_add_test(tc, agrees_with_wide_arithmetic);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
