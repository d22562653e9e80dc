/*
 * Buckets: 0 to 255 one by one, then for each power of two from 256 on 128 of
 * equal width, read back as their middle. Both ends are kept exactly.
 */
#include "client-shim/load_histogram.h"

#include <stddef.h>

#define SUB_BITS 7 /* 128 buckets */

/* The seven bits under the highest one choose among its 128 buckets. */
static size_t
bucket_of(uint64_t v)
{
	unsigned int shift;

	if (v < 2 << SUB_BITS)
		return (size_t)v;
	shift = 63 - SUB_BITS - (unsigned int)__builtin_clzll(v);
	return ((size_t)shift << SUB_BITS) + (size_t)(v >> shift);
}

static double
bucket_middle(size_t i)
{
	size_t shift;

	if (i < 2 << SUB_BITS)
		return (double)i;
	shift = (i >> SUB_BITS) - 1;
	return (double)((uint64_t)(i - (shift << SUB_BITS)) << shift) +
	       (double)((UINT64_C(1) << shift) - 1) / 2;
}

void
load_histogram_add(struct load_histogram *h, int64_t ns)
{
	if (ns < 0)
		ns = 0;
	if (ns > LOAD_HISTOGRAM_MAX)
		ns = LOAD_HISTOGRAM_MAX;
	if (h->count == 0 || ns < h->least)
		h->least = ns;
	if (h->count == 0 || ns > h->most)
		h->most = ns;
	h->count++;
	h->buckets[bucket_of((uint64_t)ns)]++;
}

/* The middle of a bucket at an end may lie beyond that end. */
static double
within(const struct load_histogram *h, double v)
{
	if (v < (double)h->least)
		return (double)h->least;
	return v > (double)h->most ? (double)h->most : v;
}

double
load_histogram_share(const struct load_histogram *h, double share)
{
	const double rank = share * (double)h->count;
	uint64_t seen = 0;
	size_t i;

	if (h->count == 0 || share <= 0)
		return (double)h->least;
	if (share >= 1)
		return (double)h->most;
	for (i = 0; i < LOAD_HISTOGRAM_BUCKETS - 1; i++) {
		seen += h->buckets[i];
		if ((double)seen >= rank)
			break;
	}
	return within(h, bucket_middle(i));
}
