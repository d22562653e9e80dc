/*
 * The estimate against closed forms: q = (1 - loss)^2 is the chance that an
 * answer to one copy comes. Figures that are chances are held to five and a
 * half standard deviations of the count, the others exactly.
 */
#include "daemon/core/estimate.h"

#include <string.h>

#include "tests/unit/harness.h"

#define MS    INT64_C(1000)
#define RUNS  40000
#define SIGMA 5.5

static uint64_t seed;
static struct policy policy;
static struct policy_plan plan;
static struct estimate got;

/* One transmission of 20 ms, no final interval, no delivery, P(0) = B(0). */
static void
setup(void)
{
	policy_defaults(&policy);
	policy.replay_count = 0;
	policy.final_units = 0;
	policy.completion_delivery = false;
}

static void
run(uint32_t servers, int64_t rtt_us, double loss)
{
	struct estimate_input in = {
	    .plan = &plan,
	    .servers = servers,
	    .rtt_us = rtt_us,
	    .loss = loss,
	    .operations = RUNS,
	    .seed = harness_random(&seed),
	};
	struct policy_refusal why;
	uint32_t rounds = 0;

	ck_assert_msg(
	    policy_plan_init(&plan, &policy, &why) == 0, "%s", why.reason);
	memset(&got, 0xA5, sizeof(got));
	ck_assert_int_eq(estimate_run(&in, &got), 0);
	ck_assert_uint_eq(got.operations, RUNS);
	for (size_t k = 0; k < sizeof(got.by_round) / sizeof(*got.by_round);
	     k++)
		rounds += got.by_round[k];
	ck_assert_uint_eq(rounds, got.decided);
	ck_assert_uint_le(got.by_oldest, got.decided);
	ck_assert_uint_le(got.decided, RUNS);
}

static double
power(double x, unsigned int n)
{
	double y = 1;

	while (n-- > 0)
		y *= x;
	return y;
}

/* Is |have - want| within SIGMA deviations, for one of the given variance? */
static void
near(const char *what, double have, double want, double variance)
{
	const double off = have - want, bound = SIGMA * SIGMA * variance;

	ck_assert_msg(off * off <= bound, "%s: %g, not %g (variance %g)", what,
	    have, want, variance);
}

/* The count of a thing with chance p among n. */
static void
chance(const char *what, uint64_t count, double p, uint32_t n)
{
	near(what, (double)count, p * n, p * (1 - p) * n + 1e-9);
}

START_TEST(one_server_and_one_transmission)
{
	static const double losses[] = {0.01, 0.1, 0.5, 0.9};

	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
		run(1, 5 * MS, losses[i]);
		chance("decided", got.decided, power(1 - losses[i], 2), RUNS);
		ck_assert_uint_eq(got.by_oldest, got.decided);
		ck_assert_uint_eq(got.by_round[0], got.decided);
		ck_assert_uint_eq(got.requests, RUNS);
		ck_assert_int_eq(got.mean_us, 5 * MS);
		ck_assert_int_eq(got.p99_us, 5 * MS);
	}
}
END_TEST

/* Geometric: round k decides with chance q (1 - q)^k. */
START_TEST(replays_of_one_server)
{
	const double q = power(1 - 0.3, 2), fail = 1 - q;
	double mean = 0, all;

	policy.replay_count = 4;
	run(1, 5 * MS, 0.3);
	all = 1 - power(fail, 5);
	chance("decided", got.decided, all, RUNS);
	for (unsigned int k = 0; k < 5; k++) {
		chance("round", got.by_round[k], q * power(fail, k), RUNS);
		mean += q * power(fail, k) * (20.0 * k + 5) * 1000 / all;
	}
	/* 1 + fail + ... + fail^4 transmissions, of at most 5. */
	near("requests", (double)got.requests, RUNS * all / q, 4.0 * RUNS);
	near("mean", (double)got.mean_us, mean,
	    40.0 * MS * 40 * MS / (RUNS * all));
	/* fail^4 is 0.068, fail^5 0.035: the fifth round has the 99th. */
	ck_assert_int_eq(got.p99_us, 85 * MS);
}
END_TEST

/* 0.1 % are decided in the second round, then 2 %: where the 99th is. */
START_TEST(the_percentile)
{
	policy.replay_count = 1;
	run(1, 5 * MS, 0.0005); /* 1 - q = 0.1 % */
	ck_assert_int_eq(got.p99_us, 5 * MS);
	run(1, 5 * MS, 0.01); /* 2 % */
	ck_assert_int_eq(got.p99_us, 25 * MS);
}
END_TEST

START_TEST(without_loss)
{
	for (uint32_t servers = 1; servers <= POLICY_MAX_SERVERS;
	     servers += 21) {
		run(servers, 1500, 0);
		ck_assert_uint_eq(got.decided, RUNS);
		ck_assert_uint_eq(got.by_oldest, RUNS);
		ck_assert_uint_eq(got.by_round[0], RUNS);
		ck_assert_uint_eq(got.requests, (uint64_t)servers * RUNS);
		ck_assert_uint_eq(got.deliveries, 0);
		ck_assert_int_eq(got.mean_us, 1500);
		ck_assert_int_eq(got.p99_us, 1500);
	}
}
END_TEST

/* The oldest of n decides when its answer comes, at a place between 1 and n
 * that is as likely as any other: (n - 1) / 2 are missing then. */
START_TEST(delivery_without_loss)
{
	policy.completion_delivery = true;
	run(3, MS, 0);
	ck_assert_uint_eq(got.requests, 3 * RUNS + got.deliveries);
	near("deliveries", (double)got.deliveries, RUNS, 2.0 / 3 * RUNS);
	run(1, MS, 0);
	ck_assert_uint_eq(got.deliveries, 0);
}
END_TEST

/* Without waiting for the oldest the first answer decides. */
START_TEST(no_preference)
{
	policy.preference.initial = 0;
	run(4, MS, 0);
	chance("by the oldest", got.by_oldest, 0.25, RUNS);
	ck_assert_int_eq(got.p99_us, MS);
}
END_TEST

/* Two servers: the oldest at once, else the other at P(0) = 20 ms. */
START_TEST(two_servers_with_loss)
{
	const double q = power(1 - 0.2, 2), any = 1 - power(1 - q, 2);
	const double later = q * (1 - q) / any; /* of the decided */
	double mean;

	policy.completion_delivery = true;
	run(2, 5 * MS, 0.2);
	/* At the horizon nothing is sent any more, not to the oldest either. */
	chance("deliveries", got.deliveries, q * (1 - q) + q * q / 2, RUNS);
	policy.final_units = 1;
	run(2, 5 * MS, 0.2);
	chance("decided", got.decided, any, RUNS);
	chance("by the oldest", got.by_oldest, q, RUNS);
	/* The other is missing: lost, or second to come; or the oldest is. */
	chance("deliveries", got.deliveries,
	    q * (1 - q) + q * q / 2 + (1 - q) * q, RUNS);
	mean = (5 + 15 * later) * MS;
	near("mean", (double)got.mean_us, mean,
	    15.0 * MS * 15 * MS * later * (1 - later) / (RUNS * any) + 1);
	ck_assert_int_eq(got.p99_us, 20 * MS);
}
END_TEST

START_TEST(nothing_gets_through)
{
	policy.replay_count = POLICY_MAX_REPLAYS;
	policy.completion_delivery = true;
	run(3, MS, 1);
	ck_assert_uint_eq(got.decided, 0);
	ck_assert_uint_eq(
	    got.requests, (uint64_t)3 * RUNS * (POLICY_MAX_REPLAYS + 1));
	ck_assert_uint_eq(got.deliveries, 0);
	ck_assert_int_eq(got.mean_us, 0);
	ck_assert_int_eq(got.p99_us, 0);
}
END_TEST

/* Answers that come in a later round than their request left in. */
START_TEST(slow_servers)
{
	policy.replay_count = 1;
	policy.final_units = 1;
	run(2, 19 * MS, 0);
	ck_assert_uint_eq(got.by_round[0], RUNS);
	run(2, 25 * MS, 0);
	ck_assert_uint_eq(got.by_round[1], RUNS);
	ck_assert_uint_eq(got.requests, 4 * RUNS);
	ck_assert_int_eq(got.mean_us, 25 * MS);
	run(2, 45 * MS, 0); /* P_final is 0: the first decides */
	ck_assert_uint_eq(got.by_round[2], RUNS);
	chance("by the oldest", got.by_oldest, 0.5, RUNS);
	/* There when the horizon is: before it. */
	run(2, 60 * MS, 0);
	ck_assert_uint_eq(got.decided, RUNS);
	run(2, 60 * MS + 1, 0);
	ck_assert_uint_eq(got.decided, 0);
	ck_assert_uint_eq(got.requests, 4 * RUNS);
	run(2, ESTIMATE_MAX_RTT_US, 0);
	ck_assert_uint_eq(got.decided, 0);
}
END_TEST

/* The answer to the replay, and none to the first, may be the one that comes:
 * q of two chances before the end. */
START_TEST(the_last_replay_counts)
{
	const double q = power(1 - 0.5, 2);

	policy.replay_count = 1;
	run(1, 0, 0.5);
	chance("decided", got.decided, 1 - power(1 - q, 2), RUNS);
	ck_assert_int_eq(got.p99_us, 20 * MS);
	/* Its answer would come past the end. */
	run(1, 21 * MS, 0.5);
	chance("decided", got.decided, q, RUNS);
}
END_TEST

/* As many answers under way as there can be: all come in the final. */
START_TEST(everything_in_flight)
{
	policy.unit_ms = 1;
	policy.replay_count = POLICY_MAX_REPLAYS;
	policy.final_units = 100;
	run(POLICY_MAX_SERVERS, 50 * MS, 0);
	ck_assert_uint_eq(got.by_round[POLICY_MAX_REPLAYS + 1], RUNS);
	ck_assert_uint_eq(got.requests, (uint64_t)RUNS * 64 * 32);
}
END_TEST

START_TEST(the_longest_horizon)
{
	policy.unit_ms = UINT32_MAX;
	policy.preference.initial = 1;
	run(2, MS, 0.5);
	chance("decided", got.decided, 1 - power(0.75, 2), RUNS);
	ck_assert_int_eq(got.p99_us, UINT32_MAX * MS);
}
END_TEST

START_TEST(the_same_seed_the_same_figures)
{
	struct estimate_input in = {.plan = &plan,
	    .servers = 3,
	    .rtt_us = MS,
	    .loss = 0.3,
	    .operations = 1000,
	    .seed = 1};
	struct estimate a, b;

	run(3, MS, 0.3);
	ck_assert_int_eq(estimate_run(&in, &a), 0);
	ck_assert_int_eq(estimate_run(&in, &b), 0);
	ck_assert_uint_eq(a.decided, b.decided);
	ck_assert_uint_eq(a.by_oldest, b.by_oldest);
	ck_assert_int_eq(a.mean_us, b.mean_us);
	in.seed = 2;
	ck_assert_int_eq(estimate_run(&in, &b), 0);
	ck_assert(a.decided != b.decided || a.by_oldest != b.by_oldest ||
		  a.mean_us != b.mean_us);
	in.operations = 1;
	in.loss = 0;
	ck_assert_int_eq(estimate_run(&in, &b), 0);
	ck_assert_uint_eq(b.decided, 1);
	ck_assert_int_eq(b.p99_us, MS);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("estimate");
	TCase *tc = tcase_create("closed forms");

	seed = harness_seed();
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, one_server_and_one_transmission);
	tcase_add_test(tc, replays_of_one_server);
	tcase_add_test(tc, the_percentile);
	tcase_add_test(tc, without_loss);
	tcase_add_test(tc, delivery_without_loss);
	tcase_add_test(tc, no_preference);
	tcase_add_test(tc, two_servers_with_loss);
	tcase_add_test(tc, nothing_gets_through);
	tcase_add_test(tc, slow_servers);
	tcase_add_test(tc, the_last_replay_counts);
	tcase_add_test(tc, everything_in_flight);
	tcase_add_test(tc, the_longest_horizon);
	tcase_add_test(tc, the_same_seed_the_same_figures);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
