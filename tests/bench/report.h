/*
 * What was measured. A row is one number to be judged: most are ratios of two
 * figures that were measured beside each other in the same round, so that a
 * machine that is slow for a while is slow on both sides. It gets one sample a
 * round, its value is their median, and its goal is an upper bound. Figures
 * are what the rows were made of, for reading only.
 */
#ifndef TESTS_BENCH_REPORT_H
#define TESTS_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define REPORT_ROWS    48
#define REPORT_FIGURES 128
#define REPORT_SAMPLES 128
#define REPORT_NAME    64
#define REPORT_NOTE    96

struct report_goal {
	const char *name;
	double goal; /* NAN: the row informs only */
};

struct report_samples {
	size_t count;
	double list[REPORT_SAMPLES];
};

struct report_row {
	struct report_goal goal;
	bool shown;
	bool judged; /* against its goal */
	struct report_samples samples;
	char note[REPORT_NOTE]; /* without samples: why */
};

struct report_figure {
	char name[REPORT_NAME];
	const char *unit;
	struct report_samples samples;
};

struct report {
	size_t row_count;
	struct report_row rows[REPORT_ROWS];
	size_t figure_count;
	struct report_figure figures[REPORT_FIGURES];
};

/*
 * All rows there are, in the order of the table, shown and judged. The names
 * are kept.
 */
void report_init(
    struct report *r, const struct report_goal *goals, size_t count);
/* One more sample of row number n, and of a figure. unit is kept. */
void report_add(struct report *r, size_t n, double value);
/* The only sample of row number n, instead of what it had. */
void report_set(struct report *r, size_t n, double value);
void report_figure(
    struct report *r, const char *name, const char *unit, double value);
/* The row cannot be measured, or no further: it gets no value. */
void report_skip(struct report *r, size_t n, const char *why);

/* The median of the samples, not rounded; NAN without any. */
double report_value(const struct report_row *row);
/* 1: the goal is met, 0: it is missed, -1: no goal, no value or not judged. */
int report_ok(const struct report_row *row);

/* The rows that are shown, then the figures. */
void report_print(const struct report *r, FILE *out);
/*
 * The same as JSON, with the date and the arguments, up to a NULL, that the
 * program was given. Returns 0, or -1 with errno set.
 */
int report_write(
    const struct report *r, char *const arguments[], const char *path);

#endif
