/*
 * A log-linear histogram of nanoseconds: 128 buckets for each power of two, so
 * that what is read back is within 0.4 % of what went in. Of load.c. All zero
 * is an empty one.
 */
#ifndef CLIENT_SHIM_LOAD_HISTOGRAM_H
#define CLIENT_SHIM_LOAD_HISTOGRAM_H

#include <stdint.h>

/* 0 to 255 exactly, then 34 powers of two. */
#define LOAD_HISTOGRAM_BUCKETS (256 + 34 * 128)
/* 73 minutes; what is longer counts as that, what is negative as 0. */
#define LOAD_HISTOGRAM_MAX ((INT64_C(1) << 42) - 1)

struct load_histogram {
	uint64_t count;
	int64_t least, most; /* of what there is */
	uint64_t buckets[LOAD_HISTOGRAM_BUCKETS];
};

void load_histogram_add(struct load_histogram *h, int64_t ns);
/*
 * What a share, 0 to 1, do not exceed: of count of them the one of rank
 * share x count, rounded up. 0 when there is none.
 */
double load_histogram_share(const struct load_histogram *h, double share);

#endif
