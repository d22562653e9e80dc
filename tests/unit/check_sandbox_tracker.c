/* Latency trackers: warmth, age, the ring's ends and the shared budget. */
#include "sandbox/tracker.h"

#include "tests/unit/harness.h"

#define PLENTY 1000000

static const struct tracker_def usual = {
    .ttl_ms = 1000, .max_samples = 100, .buffer_size = 32, .min_samples = 3};

START_TEST(cold_until_min_samples)
{
	uint32_t budget = PLENTY;
	struct tracker t;

	tracker_init(&t, &usual, 32);
	ck_assert_uint_eq(tracker_latency(&t, 0), 0);
	tracker_add(&t, 0, 10, &budget);
	tracker_add(&t, 1, 20, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 2), 0);
	tracker_add(&t, 2, 60, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 2), 30);
	tracker_fini(&t, &budget);
	ck_assert_uint_eq(budget, PLENTY);
}
END_TEST

START_TEST(samples_die_at_their_ttl)
{
	uint32_t budget = PLENTY;
	struct tracker t;

	tracker_init(&t, &usual, 32);
	tracker_add(&t, 0, 100, &budget);
	tracker_add(&t, 500, 1, &budget);
	tracker_add(&t, 500, 2, &budget);
	tracker_add(&t, 500, 3, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 999), 26);
	ck_assert_uint_eq(tracker_latency(&t, 1000), 2);
	ck_assert_uint_eq(tracker_latency(&t, 1500), 0);
	tracker_fini(&t, &budget);
}
END_TEST

START_TEST(a_full_ring_forgets_the_oldest)
{
	uint32_t budget = PLENTY, i;
	struct tracker t;

	tracker_init(&t, &usual, 4);
	for (i = 1; i <= 10; i++)
		tracker_add(&t, 0, i, &budget);
	ck_assert_uint_eq(t.count, 4);
	ck_assert_uint_eq(tracker_latency(&t, 0), (7 + 8 + 9 + 10) / 4);
	tracker_fini(&t, &budget);
}
END_TEST

START_TEST(at_most_max_samples_are_used)
{
	struct tracker_def def = usual;
	uint32_t budget = PLENTY, i;
	struct tracker t;

	def.max_samples = 2;
	def.min_samples = 5; /* of all live ones, not of those used */
	tracker_init(&t, &def, 32);
	for (i = 1; i <= 4; i++)
		tracker_add(&t, 0, i, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 0), 0);
	tracker_add(&t, 0, 10, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 0), 7);
	tracker_fini(&t, &budget);
}
END_TEST

START_TEST(degenerate_definitions_stay_at_zero)
{
	static const struct tracker_def odd[] = {
	    {.ttl_ms = 0, .max_samples = 9, .min_samples = 0},
	    {.ttl_ms = 1000, .max_samples = 0, .min_samples = 0},
	};
	uint32_t budget = PLENTY;
	struct tracker t;
	size_t i;

	for (i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		tracker_init(&t, &odd[i], 8);
		tracker_add(&t, 5, 70, &budget);
		ck_assert_uint_eq(tracker_latency(&t, 5), 0);
		tracker_fini(&t, &budget);
	}
	tracker_init(&t, &usual, 0);
	tracker_add(&t, 5, 70, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 5), 0);
	tracker_fini(&t, &budget);
	ck_assert_uint_eq(budget, PLENTY);
}
END_TEST

START_TEST(the_largest_latencies_do_not_wrap)
{
	uint32_t budget = PLENTY;
	struct tracker t;
	int i;

	tracker_init(&t, &usual, 32);
	for (i = 0; i < 32; i++)
		tracker_add(&t, 0, UINT32_MAX, &budget);
	ck_assert_uint_eq(tracker_latency(&t, 0), UINT32_MAX);
	tracker_fini(&t, &budget);
}
END_TEST

START_TEST(a_spent_budget_costs_old_samples_only)
{
	struct tracker_def def = usual;
	uint32_t budget = 10, i;
	struct tracker t, other;

	def.min_samples = 1;
	tracker_init(&t, &def, 32);
	tracker_init(&other, &def, 32);
	for (i = 1; i <= 20; i++)
		tracker_add(&t, 0, i, &budget);
	ck_assert_uint_eq(t.size, 8);
	ck_assert_uint_eq(budget, 2);
	ck_assert_uint_eq(tracker_latency(&t, 0), (13 + 20) / 2);
	tracker_add(&other, 0, 5, &budget); /* there is no room for it */
	ck_assert_uint_eq(tracker_latency(&other, 0), 0);
	tracker_fini(&t, &budget);
	ck_assert_uint_eq(budget, 10);
	tracker_add(&other, 0, 5, &budget);
	ck_assert_uint_eq(tracker_latency(&other, 0), 5);
	tracker_fini(&other, &budget);
}
END_TEST

START_TEST(the_ring_has_a_cap_of_its_own)
{
	struct tracker t;
	uint32_t budget = 0;

	tracker_init(&t, &usual, UINT32_MAX);
	ck_assert_uint_eq(t.cap, TRACKER_RING_MAX);
	tracker_fini(&t, &budget);
}
END_TEST

/* Against a list of all samples ever, walked from its end. */
START_TEST(agrees_with_a_plain_list)
{
	static struct tracker_sample all[3000];
	uint64_t state = harness_seed();
	int run;

	for (run = 0; run < 20; run++) {
		struct tracker_def def = {
		    .ttl_ms = 1 + harness_below(&state, 300),
		    .max_samples = 1 + harness_below(&state, 40),
		    .min_samples = harness_below(&state, 20)};
		uint32_t cap = 1 + harness_below(&state, 60);
		uint32_t budget = PLENTY, n = 0, live, used, i;
		struct tracker t;
		int64_t now = 0;

		tracker_init(&t, &def, cap);
		while (n < 3000) {
			uint64_t sum = 0;

			now += harness_below(&state, 20);
			all[n].at_ms = now;
			all[n].ms = harness_below(&state, 5000);
			tracker_add(&t, now, all[n++].ms, &budget);
			now += harness_below(&state, 5);
			for (live = 0;
			     live < n && live < cap &&
			     now - all[n - 1 - live].at_ms < def.ttl_ms;
			     live++)
				;
			used = live < def.max_samples ? live : def.max_samples;
			for (i = 0; i < used; i++)
				sum += all[n - 1 - i].ms;
			ck_assert_uint_eq(tracker_latency(&t, now),
			    live == 0 || live < def.min_samples ? 0
								: sum / used);
		}
		tracker_fini(&t, &budget);
		ck_assert_uint_eq(budget, PLENTY);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_tracker");
	TCase *tc = tcase_create("tracker");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, cold_until_min_samples);
	tcase_add_test(tc, samples_die_at_their_ttl);
	tcase_add_test(tc, a_full_ring_forgets_the_oldest);
	tcase_add_test(tc, at_most_max_samples_are_used);
	tcase_add_test(tc, degenerate_definitions_stay_at_zero);
	tcase_add_test(tc, the_largest_latencies_do_not_wrap);
	tcase_add_test(tc, a_spent_budget_costs_old_samples_only);
	tcase_add_test(tc, the_ring_has_a_cap_of_its_own);
	tcase_add_test(tc, agrees_with_a_plain_list);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
