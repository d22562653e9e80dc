/*
 * A log-linear histogram of microseconds: eight buckets for each power of two,
 * so that what is read back is within 6 % of what went in, from 1 us to
 * HISTOGRAM_MAX_US. It is small, and holds the last one to two
 * HISTOGRAM_HALF_US. When a counter is full all of its half are halved:
 * percentiles stay. Pure: the clock is an argument. All zero is an empty one.
 */
#ifndef DAEMON_CORE_HISTOGRAM_H
#define DAEMON_CORE_HISTOGRAM_H

#include <stdint.h>

/* 1 to 15 us exactly, then 24 powers of two; 0 is not used. */
#define HISTOGRAM_BUCKETS (16 + 24 * 8)
/* 268 s; what is longer counts as that, what is shorter than 1 as 1. */
#define HISTOGRAM_MAX_US  ((INT64_C(1) << 28) - 1)
#define HISTOGRAM_HALF_US INT64_C(60000000)

struct histogram {
	int64_t began;    /* the half that is being filled */
	uint32_t filling; /* 0 or 1 */
	uint16_t counts[2][HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t us, int64_t now);
/*
 * The value that permille (0..1000) of the samples do not exceed, within 6 %,
 * of what is not forgotten at now; 0 when there is none. 0 permille is the
 * smallest, 1000 the largest.
 */
int64_t histogram_percentile(
    const struct histogram *h, uint32_t permille, int64_t now);

#endif
