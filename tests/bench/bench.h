/*
 * What every group of rows is given. A group is one function, called once a
 * round, that adds one sample to each of its rows; bench.c lists the groups.
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/bench/direct.h"
#include "tests/bench/lab.h"
#include "tests/bench/report.h"

struct bench {
	struct lab lab;
	struct report report;
	struct lab_sandbox sandbox; /* answers at once */
	struct lab_sandbox slow;    /* answers after BENCH_SLOW_MS */
	struct lab_agent agent;     /* of sandbox; others are the groups' own */
	struct direct *direct;      /* beside that agent */
};

/* Longer than it takes to fill the agent, shorter than its horizon. */
#define BENCH_SLOW_MS 1200

/* Wall time of one check of key number n, which must be Allowed. 0 or -1. */
int bench_check(struct rl_client *client, unsigned n, double *us);
/* The value that a share of the samples, 0 to 1, are under; sorts them. */
double bench_quantile(double *samples, size_t count, double share);

/* Each returns 0, or -1 having said why. */
int rows_latency(struct bench *b);
int rows_cpu(struct bench *b);
int rows_dead(struct bench *b);
int rows_memory(struct bench *b);
int rows_calls(struct bench *b);
int rows_allocations(struct bench *b);

#endif
