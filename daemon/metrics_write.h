/*
 * Text in the exposition format of Prometheus, version 0.0.4: families of
 * samples, in the order in which they are written. A writer without memory
 * writes no more and tells so at its end.
 */
#ifndef DAEMON_METRICS_WRITE_H
#define DAEMON_METRICS_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/latency.h"
#include "daemon/core/metrics.h"

/* All zero is an empty one. */
struct metrics_writer {
	char *text;
	size_t len;
	size_t cap;
	bool failed;
};

/* The whole text, malloc()ed, the caller's; NULL without memory. */
char *metrics_write_end(struct metrics_writer *w);

/* Opens the family of a metric; its samples follow. */
void metrics_write_family(struct metrics_writer *w, enum metric metric);

/*
 * Samples. labels: as metrics_own() makes them, "" for none. more: another
 * one that stands behind them, written as in the text; NULL: none.
 */
void metrics_write_count(struct metrics_writer *w, enum metric metric,
    const char *labels, const char *more, uint64_t value);
/* Microseconds, as seconds. */
void metrics_write_seconds(struct metrics_writer *w, enum metric metric,
    const char *labels, int64_t us);
void metrics_write_histogram(struct metrics_writer *w, enum metric metric,
    const char *labels, const struct latency *latency);

/* Family and sample of one without labels. */
void metrics_write_one(
    struct metrics_writer *w, enum metric metric, uint64_t value);

/* Whose counters are shown: all counters of one kind have one list of these. */
struct metrics_owner {
	char *labels;
	const void *counters; /* NULL: it has none */
};
struct metrics_owners {
	struct metrics_owner *list;
	size_t count;
	size_t cap;
	bool failed;
};

/*
 * Adds one with the labels of these names and values, pairs of char * up to a
 * NULL; values are any text.
 */
void metrics_own(struct metrics_owners *o, const void *counters, ...);
void metrics_own_free(struct metrics_owners *o);

/* One uint64_t of a struct of counters, and which sample it is. */
struct metrics_source {
	enum metric metric;
	const char *more; /* its own label; NULL: none */
	size_t offset;
};

/* The families of these sources, which stand together by metric. */
void metrics_write_sources(struct metrics_writer *w,
    const struct metrics_source *sources, size_t count,
    const struct metrics_owners *owners);

#endif
