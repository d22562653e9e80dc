/* The pauses between rounds, on a clock of the test's own. */
#include "daemon/discovery_pace.h"

#include "tests/unit/harness.h"

#define MS INT64_C(1000)
#define S  (1000 * MS)

static struct random_pool *pool;
static struct config_dns dns;
static struct discovery_pace pace;

static void
setup(void)
{
	pool = random_pool_new();
	ck_assert_ptr_nonnull(pool);
	dns = (struct config_dns){.refresh_ms = 300000, .forced_min_ms = 1000};
	discovery_pace_init(&pace, &dns, pool);
}

static void
teardown(void)
{
	random_pool_free(pool);
}

static void
expect_spread(int64_t got, int64_t want)
{
	ck_assert_int_ge(got, want);
	ck_assert_int_le(got, want + want / 10);
}

/* min(refresh, max(TTL, forced_min)), and up to a tenth. */
START_TEST(refresh)
{
	expect_spread(discovery_pace_refresh(&pace, 0), 1 * S);
	expect_spread(discovery_pace_refresh(&pace, 1), 1 * S);
	expect_spread(discovery_pace_refresh(&pace, 60), 60 * S);
	expect_spread(discovery_pace_refresh(&pace, 300), 300 * S);
	expect_spread(discovery_pace_refresh(&pace, 301), 300 * S);
	expect_spread(discovery_pace_refresh(&pace, INT32_MAX), 300 * S);
	expect_spread(discovery_pace_refresh(&pace, UINT32_MAX), 300 * S);
	/* The cap is over the floor. */
	dns.refresh_ms = 1000;
	dns.forced_min_ms = 30000;
	expect_spread(discovery_pace_refresh(&pace, 60), 1 * S);
}
END_TEST

START_TEST(retries_double_to_thirty_seconds)
{
	static const int64_t want[] = {1, 2, 4, 8, 16, 30, 30, 30};
	int64_t now = 5 * S, delay;

	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		delay = discovery_pace_retry(&pace, now);
		expect_spread(delay, want[i] * S);
		now += delay;
	}
	discovery_pace_recover(&pace);
	expect_spread(discovery_pace_retry(&pace, now), 1 * S);
}
END_TEST

/* Failures before their time do not queue up behind one another. */
START_TEST(early_failures)
{
	for (int i = 0; i < 100; i++)
		ck_assert_int_le(discovery_pace_retry(&pace, i), 33 * S);
	/* A least pause over the most is both. */
	dns.forced_min_ms = 60000;
	discovery_pace_init(&pace, &dns, pool);
	for (int i = 0; i < 10; i++)
		expect_spread(discovery_pace_retry(&pace, i * 70 * S), 60 * S);
}
END_TEST

START_TEST(soonest)
{
	ck_assert_int_eq(discovery_pace_soonest(&pace, 10 * S, 10 * S), 11 * S);
	ck_assert_int_eq(discovery_pace_soonest(&pace, 10 * S, 12 * S), 12 * S);
}
END_TEST

/* Grants a wish as soon as may be; when. */
static int64_t
wish(int64_t began)
{
	int64_t when = discovery_pace_wish(&pace, began, began);

	ck_assert_int_eq(discovery_pace_grant(&pace, when), when);
	return when;
}

/* Five at the least pause, then ever farther apart. */
START_TEST(wishes_in_vain)
{
	static const int64_t want[] = {
	    1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 30, 30, 30};
	int64_t began = 100 * S, when;

	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		when = wish(began);
		ck_assert_msg(when - began == want[i] * S,
		    "wish %zu after %jd us", i, (intmax_t)(when - began));
		began = when;
	}
	discovery_pace_fulfil(&pace);
	ck_assert_int_eq(wish(began), began + 1 * S);
}
END_TEST

/* Each half minute without a wish gives one back. */
START_TEST(wishes_recover)
{
	int64_t began = 100 * S;

	for (int i = 0; i < 20; i++)
		began = wish(began);
	began += 600 * S;
	for (int i = 0; i < DISCOVERY_PACE_WISHES; i++) {
		ck_assert_int_eq(wish(began), began + 1 * S);
		began += 1 * S;
	}
}
END_TEST

START_TEST(jitter)
{
	int64_t least = INT64_MAX, most = 0, when;

	dns.jitter_ms = 1000;
	for (int i = 0; i < 200; i++) {
		when = discovery_pace_grant(&pace, 100 * S);
		ck_assert_int_ge(when, 100 * S);
		ck_assert_int_le(when, 101 * S);
		least = when < least ? when : least;
		most = when > most ? when : most;
		discovery_pace_fulfil(&pace);
	}
	ck_assert_int_gt(most - least, 500 * MS);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("discovery_pace");
	TCase *tc = tcase_create("discovery_pace");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, refresh);
	tcase_add_test(tc, retries_double_to_thirty_seconds);
	tcase_add_test(tc, early_failures);
	tcase_add_test(tc, soonest);
	tcase_add_test(tc, wishes_in_vain);
	tcase_add_test(tc, wishes_recover);
	tcase_add_test(tc, jitter);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
