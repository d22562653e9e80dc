/*
 * Buckets: 1 to 15 one by one, then for each power of two from 16 on eight of
 * equal width. A bucket is read back as the value that is as far from its ends
 * in proportion: 2ab / (a + b), at most 1/17 off.
 */
#include "daemon/core/histogram.h"

#include <stdbool.h>
#include <string.h>

static int64_t
clamp(int64_t us)
{
	if (us < 1)
		return 1;
	return us > HISTOGRAM_MAX_US ? HISTOGRAM_MAX_US : us;
}

/* The three bits under the highest one choose among its eight buckets. */
static uint32_t
bucket_of(int64_t us)
{
	const uint64_t v = (uint64_t)clamp(us);
	uint32_t octave;

	if (v < 16)
		return (uint32_t)v;
	octave = 63 - (uint32_t)__builtin_clzll(v);
	return 16 + (octave - 4) * 8 + (uint32_t)(v >> (octave - 3) & 7);
}

/* The least value of a bucket; that of the one after the last, too. */
static int64_t
bucket_floor(uint32_t i)
{
	if (i < 16)
		return i;
	return (int64_t)(8 + (i - 16) % 8) << ((i - 16) / 8 + 1);
}

static int64_t
bucket_value(uint32_t i)
{
	const int64_t a = bucket_floor(i), b = bucket_floor(i + 1);

	return i < 16 ? a : 2 * a * b / (a + b);
}

/* Have the half that is filled, and both, become too old? */
static bool
half_over(const struct histogram *h, int64_t now)
{
	return now - h->began >= HISTOGRAM_HALF_US;
}

static bool
both_over(const struct histogram *h, int64_t now)
{
	return now - h->began >= 2 * HISTOGRAM_HALF_US;
}

static void
turn_over(struct histogram *h, int64_t now)
{
	if (both_over(h, now)) {
		memset(h->counts, 0, sizeof(h->counts));
		h->began = now;
	} else if (half_over(h, now)) {
		h->filling = 1 - h->filling;
		memset(h->counts[h->filling], 0, sizeof(h->counts[0]));
		h->began += HISTOGRAM_HALF_US;
	}
}

/* What is rare is kept: upwards. */
static void
halve(uint16_t counts[HISTOGRAM_BUCKETS])
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		counts[i] = (uint16_t)(counts[i] - counts[i] / 2);
}

void
histogram_add(struct histogram *h, int64_t us, int64_t now)
{
	uint16_t *counts;
	const uint32_t i = bucket_of(us);

	turn_over(h, now);
	counts = h->counts[h->filling];
	if (counts[i] == UINT16_MAX)
		halve(counts);
	counts[i]++;
}

/* Samples in a bucket that are not forgotten. */
static uint32_t
count_of(const struct histogram *h, uint32_t i, int64_t now)
{
	if (both_over(h, now))
		return 0;
	return h->counts[h->filling][i] +
	       (half_over(h, now) ? 0U : h->counts[1 - h->filling][i]);
}

int64_t
histogram_percentile(const struct histogram *h, uint32_t permille, int64_t now)
{
	uint64_t total = 0, seen = 0, rank;
	uint32_t i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		total += count_of(h, i, now);
	if (total == 0)
		return 0;
	rank = (total * permille + 999) / 1000;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += count_of(h, i, now);
		if (seen >= rank)
			break;
	}
	return bucket_value(i);
}
