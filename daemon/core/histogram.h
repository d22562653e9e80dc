/*
 * Log-linear histograms of microseconds: eight buckets for each power of two,
 * so that what is read back is within 6 % of what went in, from 1 us to
 * HISTOGRAM_MAX_US. Two forms share the buckets: struct histogram counts for
 * ever and exactly; struct histogram_recent is small and forgets. Pure: the
 * clock is an argument. All zero is an empty histogram of either form.
 */
#ifndef DAEMON_CORE_HISTOGRAM_H
#define DAEMON_CORE_HISTOGRAM_H

#include <stdint.h>

/* 1 to 15 us exactly, then 24 powers of two; 0 is not used. */
#define HISTOGRAM_BUCKETS (16 + 24 * 8)
/* 268 s; what is longer counts as that, what is shorter than 1 as 1. */
#define HISTOGRAM_MAX_US ((INT64_C(1) << 28) - 1)

struct histogram {
	uint64_t total;
	uint64_t sum_us; /* of the values as they went in, cut to the range */
	uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t us);
void histogram_merge(struct histogram *into, const struct histogram *from);
/*
 * The value that permille (0..1000) of the samples do not exceed, within 6 %;
 * 0 when there is none. 0 permille is the smallest, 1000 the largest.
 */
int64_t histogram_percentile(const struct histogram *h, uint32_t permille);
/* Samples of at most us, to the bucket: never more than there are. */
uint64_t histogram_upto(const struct histogram *h, int64_t us);

/*
 * The last one to two HISTOGRAM_HALF_US. When a counter is full all of its
 * half are halved: percentiles stay, the numbers of samples do not.
 */
#define HISTOGRAM_HALF_US INT64_C(60000000)

struct histogram_recent {
	int64_t began;    /* the half that is being filled */
	uint32_t filling; /* 0 or 1 */
	uint16_t counts[2][HISTOGRAM_BUCKETS];
};

void histogram_recent_add(struct histogram_recent *r, int64_t us, int64_t now);
/* Adds what is not forgotten at now to a histogram (its sum by buckets). */
void histogram_recent_merge(
    struct histogram *into, const struct histogram_recent *r, int64_t now);

#endif
