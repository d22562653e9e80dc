/*
 * One check at a time, by the clock on the wall: a client linked into the
 * application, and the shim through the agent, against the same sandbox.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define BLOCK  250 /* checks of one side before the other's turn */
#define BLOCKS 8
#define CHECKS (BLOCK * BLOCKS)

struct side {
	int (*check)(struct bench *b, unsigned n, double *us);
	double us[CHECKS];
};

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int
bench_check(struct rl_client *client, unsigned n, double *us)
{
	struct rl_decision decision;
	struct rl_check check = {.rule = LAB_RULE, .key_len = LAB_KEY_LEN};
	char key[LAB_KEY_LEN];
	double start;

	lab_key(n, key);
	check.key = key;
	start = now_us();
	rl_check(client, &check, &decision, NULL);
	*us = now_us() - start;
	errno = 0;
	if (decision.outcome != RL_ALLOWED)
		return lab_fail("a check was %s (%s), not allowed",
		    rl_outcome_name(decision.outcome),
		    rl_reason_name(decision.reason));
	return 0;
}

static int
check_direct(struct bench *b, unsigned n, double *us)
{
	double start = now_us();
	int rc = direct_check(b->direct, n);

	*us = now_us() - start;
	return rc;
}

static int
check_agent(struct bench *b, unsigned n, double *us)
{
	return bench_check(b->agent.client, n, us);
}

static int
run_block(struct bench *b, struct side *side, unsigned from)
{
	unsigned i;

	for (i = from; i < from + BLOCK; i++) {
		if (side->check(b, i, &side->us[i]) != 0)
			return -1;
	}
	errno = EINTR;
	return lab_signal() ? lab_fail("check") : 0;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
bench_quantile(double *samples, size_t count, double share)
{
	qsort(samples, count, sizeof(double), compare);
	return samples[(size_t)((double)count * share)];
}

int
rows_latency(struct bench *b)
{
	static struct side direct = {.check = check_direct};
	static struct side agent = {.check = check_agent};
	unsigned i;

	for (i = 0; i < CHECKS; i += BLOCK)
		if (run_block(b, &direct, i) != 0 ||
		    run_block(b, &agent, i) != 0)
			return -1;
	report_add_over(&b->report, "one check, p50", "us",
	    bench_quantile(agent.us, CHECKS, 0.5),
	    bench_quantile(direct.us, CHECKS, 0.5));
	report_add_over(&b->report, "one check, p99", "us",
	    bench_quantile(agent.us, CHECKS, 0.99),
	    bench_quantile(direct.us, CHECKS, 0.99));
	return 0;
}
