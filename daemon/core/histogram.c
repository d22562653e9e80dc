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

void
histogram_add(struct histogram *h, int64_t us)
{
	h->total++;
	h->sum_us += (uint64_t)clamp(us);
	h->counts[bucket_of(us)]++;
}

void
histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->total += from->total;
	into->sum_us += from->sum_us;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
}

int64_t
histogram_percentile(const struct histogram *h, uint32_t permille)
{
	uint64_t rank, seen = 0;
	uint32_t i;

	if (h->total == 0)
		return 0;
	/* total * permille / 1000 upwards, without an overflow */
	rank = h->total / 1000 * permille +
	       (h->total % 1000 * permille + 999) / 1000;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += h->counts[i];
		if (seen >= rank)
			break;
	}
	return bucket_value(i);
}

uint64_t
histogram_upto(const struct histogram *h, int64_t us)
{
	const uint32_t last = us < 1 ? 0 : bucket_of(us);
	uint64_t n = 0;

	for (uint32_t i = 0; i <= last; i++)
		n += h->counts[i];
	return n;
}

/* Have the half that is filled, and both, become too old? */
static bool
half_over(const struct histogram_recent *r, int64_t now)
{
	return now - r->began >= HISTOGRAM_HALF_US;
}

static bool
both_over(const struct histogram_recent *r, int64_t now)
{
	return now - r->began >= 2 * HISTOGRAM_HALF_US;
}

static void
turn_over(struct histogram_recent *r, int64_t now)
{
	if (both_over(r, now)) {
		memset(r->counts, 0, sizeof(r->counts));
		r->began = now;
	} else if (half_over(r, now)) {
		r->filling = 1 - r->filling;
		memset(r->counts[r->filling], 0, sizeof(r->counts[0]));
		r->began += HISTOGRAM_HALF_US;
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
histogram_recent_add(struct histogram_recent *r, int64_t us, int64_t now)
{
	uint16_t *counts;
	const uint32_t i = bucket_of(us);

	turn_over(r, now);
	counts = r->counts[r->filling];
	if (counts[i] == UINT16_MAX)
		halve(counts);
	counts[i]++;
}

static void
merge_half(struct histogram *into, const uint16_t counts[HISTOGRAM_BUCKETS])
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		into->total += counts[i];
		into->counts[i] += counts[i];
		into->sum_us += counts[i] * (uint64_t)bucket_value(i);
	}
}

void
histogram_recent_merge(
    struct histogram *into, const struct histogram_recent *r, int64_t now)
{
	if (both_over(r, now))
		return;
	merge_half(into, r->counts[r->filling]);
	if (!half_over(r, now))
		merge_half(into, r->counts[1 - r->filling]);
}
