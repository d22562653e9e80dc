/*
 * Adaptive preference's memory of one server: the bound, what clears a
 * suspicion, which misses do not count, and random histories against a model
 * that keeps the whole history and counts it again for each question.
 */
#include "daemon/core/suspect.h"

#include <inttypes.h>

#include "tests/unit/harness.h"

#define RUNS   4000
#define EVENTS 60

static uint64_t seed;
static struct suspect s;

static void
setup(void)
{
	suspect_init(&s);
}

START_TEST(nobody_is_suspected_at_first)
{
	ck_assert(!suspect_is(&s, 0));
	ck_assert(!suspect_is(&s, 1));
	ck_assert(!suspect_is(&s, UINT32_MAX));
}
END_TEST

START_TEST(suspected_after_so_many_in_a_row)
{
	ck_assert(!suspect_missed(&s, 3, 10));
	ck_assert(!suspect_missed(&s, 3, 20));
	ck_assert(!suspect_is(&s, 3));
	ck_assert(suspect_missed(&s, 3, 30));
	ck_assert(suspect_is(&s, 3));
	/* Told once; it stays. */
	ck_assert(!suspect_missed(&s, 3, 40));
	ck_assert(suspect_is(&s, 3));
}
END_TEST

START_TEST(one_may_be_enough)
{
	ck_assert(suspect_missed(&s, 1, 10));
	ck_assert(suspect_is(&s, 1));
	ck_assert(!suspect_is(&s, 2));
}
END_TEST

START_TEST(zero_is_never)
{
	for (int i = 0; i < 5; i++)
		ck_assert(!suspect_missed(&s, 0, i));
	ck_assert(!suspect_is(&s, 0));
	ck_assert(!suspect_answered(&s, 0, 9));
}
END_TEST

START_TEST(an_answer_clears_it)
{
	ck_assert(suspect_missed(&s, 1, 10));
	ck_assert(suspect_answered(&s, 1, 15));
	ck_assert(!suspect_is(&s, 1));
	/* Nothing is left to be cleared. */
	ck_assert(!suspect_answered(&s, 1, 16));
	ck_assert(suspect_missed(&s, 1, 17));
}
END_TEST

START_TEST(an_answer_begins_the_row_anew)
{
	ck_assert(!suspect_missed(&s, 2, 10));
	ck_assert(!suspect_answered(&s, 2, 15));
	ck_assert(!suspect_missed(&s, 2, 20));
	ck_assert(!suspect_is(&s, 2));
	ck_assert(suspect_missed(&s, 2, 21));
}
END_TEST

START_TEST(a_miss_before_the_last_answer_does_not_count)
{
	ck_assert(!suspect_answered(&s, 1, 15));
	ck_assert(!suspect_missed(&s, 1, 14));
	ck_assert(!suspect_missed(&s, 1, 15)); /* began as it came */
	ck_assert(!suspect_is(&s, 1));
	ck_assert(suspect_missed(&s, 1, 16));
}
END_TEST

/* A clock may be at zero, or below, without anything having been heard. */
START_TEST(never_heard_is_not_heard_at_zero)
{
	ck_assert(suspect_missed(&s, 1, -5));
	setup();
	ck_assert(suspect_missed(&s, 1, 0));
	setup();
	ck_assert(!suspect_answered(&s, 1, -3));
	ck_assert(!suspect_missed(&s, 1, -3));
	ck_assert(suspect_missed(&s, 1, -2));
}
END_TEST

START_TEST(the_count_stays_at_its_end)
{
	s.missed = UINT32_MAX - 1;
	ck_assert(suspect_missed(&s, UINT32_MAX, 10));
	ck_assert(!suspect_missed(&s, UINT32_MAX, 11));
	ck_assert_uint_eq(s.missed, UINT32_MAX);
	ck_assert(suspect_is(&s, UINT32_MAX));
	ck_assert(suspect_is(&s, 1));
}
END_TEST

struct event {
	bool answer;
	int64_t at; /* when it was read, or when the missed operation began */
};

/* How many of the last misses, back to the last answer, count. */
static uint32_t
count(const struct event *events, int n)
{
	uint32_t missed = 0;
	int last = n - 1;

	while (last >= 0 && !events[last].answer)
		last--;
	for (int i = last + 1; i < n; i++)
		missed += last < 0 || events[i].at > events[last].at;
	return missed;
}

static void
play(uint64_t *state, uint32_t after, unsigned *suspicions)
{
	struct event events[EVENTS];
	int64_t now = (int64_t)harness_below(state, 20) - 10;
	bool was, is, told;

	setup();
	for (int n = 0; n < EVENTS; n++) {
		struct event *e = &events[n];

		now += harness_below(state, 4);
		e->answer = harness_below(state, 4) == 0;
		e->at = e->answer ? now : now - harness_below(state, 12);
		was = after > 0 && count(events, n) >= after;
		is = after > 0 && count(events, n + 1) >= after;
		told = e->answer ? suspect_answered(&s, after, e->at)
				 : suspect_missed(&s, after, e->at);
		ck_assert_msg(
		    told == (was != is) && suspect_is(&s, after) == is,
		    "event %d of TEST_SEED=%" PRIu64 ", after %u", n, seed,
		    after);
		*suspicions += is && !was;
	}
}

START_TEST(random_histories_agree_with_a_recount)
{
	uint64_t state = seed;
	unsigned suspicions[5] = {0};

	for (int i = 0; i < RUNS; i++) {
		uint32_t after = harness_below(&state, 5);

		play(&state, after, &suspicions[after]);
	}
	ck_assert_uint_eq(suspicions[0], 0);
	for (int after = 1; after < 5; after++)
		ck_assert_uint_gt(suspicions[after], RUNS / 10);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("suspect");
	TCase *tc = tcase_create("suspect");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, nobody_is_suspected_at_first);
	tcase_add_test(tc, suspected_after_so_many_in_a_row);
	tcase_add_test(tc, one_may_be_enough);
	tcase_add_test(tc, zero_is_never);
	tcase_add_test(tc, an_answer_clears_it);
	tcase_add_test(tc, an_answer_begins_the_row_anew);
	tcase_add_test(tc, a_miss_before_the_last_answer_does_not_count);
	tcase_add_test(tc, never_heard_is_not_heard_at_zero);
	tcase_add_test(tc, the_count_stays_at_its_end);
	tcase_add_test(tc, random_histories_agree_with_a_recount);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
