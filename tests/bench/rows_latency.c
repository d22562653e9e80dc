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
	int (*check)(struct bench *b, unsigned n);
	double us[CHECKS];
};

static int
check_direct(struct bench *b, unsigned n)
{
	return direct_check(b->direct, n);
}

static int
check_agent(struct bench *b, unsigned n)
{
	struct rl_decision decision;
	struct rl_check check = {.rule = LAB_RULE, .key_len = LAB_KEY_LEN};
	char key[LAB_KEY_LEN];

	lab_key(n, key);
	check.key = key;
	rl_check(b->agent.client, &check, &decision, NULL);
	errno = 0;
	if (decision.outcome != RL_ALLOWED)
		return lab_fail("a check was %s (%s), not allowed",
		    rl_outcome_name(decision.outcome),
		    rl_reason_name(decision.reason));
	return 0;
}

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
run_block(struct bench *b, struct side *side, unsigned from)
{
	double start;
	unsigned i;

	for (i = from; i < from + BLOCK; i++) {
		start = now_us();
		if (side->check(b, i) != 0)
			return -1;
		side->us[i] = now_us() - start;
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
	qsort(direct.us, CHECKS, sizeof(double), compare);
	qsort(agent.us, CHECKS, sizeof(double), compare);
	report_add_over(&b->report, "one check, p50", "us",
	    agent.us[CHECKS / 2], direct.us[CHECKS / 2]);
	report_add_over(&b->report, "one check, p99", "us",
	    agent.us[CHECKS * 99 / 100], direct.us[CHECKS * 99 / 100]);
	return 0;
}
