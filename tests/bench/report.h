/*
 * What was measured: rows of samples, one sample a round. A sample may have a
 * floor, the least that the same work can cost, measured beside it in the
 * same round; the ratio is taken round by round, so that a machine that is
 * slow for a while is slow on both sides.
 */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stddef.h>
#include <stdio.h>

#define REPORT_ROWS    32
#define REPORT_SAMPLES 16
#define REPORT_NAME    64
#define REPORT_NOTE    96

struct report_row {
	char name[REPORT_NAME];
	const char *unit;
	size_t count; /* of samples; 0: note says why there are none */
	double values[REPORT_SAMPLES];
	size_t floors; /* 0, or count */
	double floor[REPORT_SAMPLES];
	char note[REPORT_NOTE];
};

struct report {
	size_t count;
	struct report_row rows[REPORT_ROWS];
};

/* One more sample of the row, which its first sample makes. unit is kept. */
void report_add(
    struct report *r, const char *name, const char *unit, double value);
void report_add_over(struct report *r, const char *name, const char *unit,
    double value, double floor);
/* A row that cannot be measured here. */
void report_skip(struct report *r, const char *name, const char *why);

void report_print(const struct report *r, FILE *out);
/* Returns 0, or -1 with errno set. */
int report_write(const struct report *r, const char *path);

#endif
