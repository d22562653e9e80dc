/* When the checks of an open loop are due: evenly, and exactly as many. */
#include "client-shim/load_pace.h"

#include "tests/unit/harness.h"

#define SECOND INT64_C(1000000000)
#define WEEK   (7 * 24 * 3600 * SECOND)
#define BEGAN  (INT64_C(400) * 24 * 3600 * SECOND + 7)

static const uint32_t rates[] = {
    1, 2, 3, 7, 1000, 99991, 100000, 1000000, 9999991, 10000000};

#define RATES ((int)(sizeof(rates) / sizeof(rates[0])))

START_TEST(none_without_a_rate)
{
	struct load_pace p;

	load_pace_begin(&p, 0, BEGAN);
	load_pace_tell(&p, BEGAN + WEEK);
	ck_assert_uint_eq(p.due, 0);
}
END_TEST

/* The first is due after one interval, so that a rate has no fence-post. */
START_TEST(as_many_as_the_rate_says)
{
	const uint32_t rate = rates[_i];

	ck_assert_uint_eq(load_pace_count(rate, 0), 0);
	ck_assert_uint_eq(load_pace_count(rate, SECOND / rate - 1), 0);
	ck_assert_uint_eq(load_pace_count(rate, SECOND), rate);
	ck_assert_uint_eq(load_pace_count(rate, SECOND - 1), rate - 1);
	ck_assert_uint_eq(
	    load_pace_count(rate, WEEK), UINT64_C(7) * 24 * 3600 * rate);
}
END_TEST

/* At its time a check is due and not before, also at the end of a long run. */
static void
check_one(struct load_pace *p, uint64_t n)
{
	int64_t at;

	p->asked = n;
	at = load_pace_next(p);
	load_pace_tell(p, at - 1);
	if (p->due != n)
		ck_abort_msg("rate %u: %llu are due before check %llu", p->rate,
		    (unsigned long long)p->due, (unsigned long long)n);
	load_pace_tell(p, at);
	if (p->due < n + 1)
		ck_abort_msg("rate %u: check %llu is not due at its time",
		    p->rate, (unsigned long long)n);
}

START_TEST(each_at_its_time)
{
	const uint64_t late = UINT64_C(7) * 24 * 3600 * rates[_i];
	struct load_pace p;
	uint64_t n;

	load_pace_begin(&p, rates[_i], BEGAN);
	for (n = 0; n < 20000; n++) {
		check_one(&p, n);
		check_one(&p, late - n % late);
	}
	p.asked = late - 1;
	ck_assert_int_eq(load_pace_next(&p), BEGAN + WEEK);
}
END_TEST

START_TEST(evenly)
{
	struct load_pace p;
	int64_t last = BEGAN, at;

	load_pace_begin(&p, rates[_i], BEGAN);
	for (; p.asked < 20000; p.asked++) {
		at = load_pace_next(&p);
		if (at - last < SECOND / rates[_i] ||
		    at - last > SECOND / rates[_i] + 1)
			ck_abort_msg("rate %u: %lld ns between two", p.rate,
			    (long long)(at - last));
		last = at;
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_pace");
	TCase *tc = tcase_create("load_pace");

	tcase_add_test(tc, none_without_a_rate);
	tcase_add_loop_test(tc, as_many_as_the_rate_says, 0, RATES);
	tcase_add_loop_test(tc, each_at_its_time, 0, RATES);
	tcase_add_loop_test(tc, evenly, 0, RATES);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
