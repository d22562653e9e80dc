/*
 * The one number of a RateLimiter, the moment since which permits are
 * unspent, as since_us + part / rate microseconds. A permit costs COST / rate
 * of them, so with the rate as the denominator every cost is a whole number of
 * parts and nothing is ever rounded, but for a change of the rate: upwards.
 * Invariant: 0 <= part < rate.
 */
#include "daemon/core/ratelimiter.h"

#include <assert.h>

/* A second, in microseconds, by the unit of the rate. */
#define COST (UINT64_C(1000000) * (uint64_t)RATELIMITER_ONE)

/*
 * n * each / by, and the rest, which is below by. The product takes up to 120
 * bits, and a 32-bit host has no such integer. So n goes in by its octal
 * digits, the first one first, as long division does it: what is left of the
 * digits before counts eight times. With each and by at most 10^18 a step
 * needs at most 8 * 10^18 + 7 * 10^18, which is below 2^64. A small n, as
 * almost every one is, takes one step. The caller knows that the result fits.
 */
static uint64_t
scale(uint64_t n, uint64_t each, uint64_t by, uint64_t *rest)
{
	uint64_t whole = 0, sum;
	unsigned shift = 0;

	while (n >> shift >= 8)
		shift += 3;
	for (*rest = 0;; shift -= 3) {
		sum = *rest * 8 + (n >> shift & 7) * each;
		whole = whole * 8 + sum / by;
		*rest = sum % by;
		if (shift == 0)
			return whole;
	}
}

static void
check(int64_t rate, int64_t burst_us)
{
	assert(rate >= RATELIMITER_MIN_RATE && rate <= RATELIMITER_MAX_RATE);
	assert(burst_us >= RATELIMITER_MIN_BURST_US &&
	       burst_us <= RATELIMITER_MAX_BURST_US);
}

void
ratelimiter_init(
    struct ratelimiter *l, int64_t rate, int64_t burst_us, int64_t now)
{
	check(rate, burst_us);
	*l = (struct ratelimiter){
	    .rate = rate,
	    .burst_us = burst_us,
	    .since_us = now,
	};
}

/* No more is stored than the burst. */
static void
resync(struct ratelimiter *l, int64_t now)
{
	if (l->since_us >= now - l->burst_us)
		return;
	l->since_us = now - l->burst_us;
	l->part = 0;
}

/* Makes a microsecond of the parts that are one. */
static void
carry(struct ratelimiter *l)
{
	if (l->part < l->rate)
		return;
	l->part -= l->rate;
	l->since_us++;
}

void
ratelimiter_set(
    struct ratelimiter *l, int64_t rate, int64_t burst_us, int64_t now)
{
	uint64_t rest;

	check(rate, burst_us);
	if (rate == l->rate && burst_us == l->burst_us)
		return;
	/* What was over the burst until now does not come back with another. */
	resync(l, now);
	l->part = (int64_t)scale(
	    (uint64_t)l->part, (uint64_t)rate, (uint64_t)l->rate, &rest);
	if (rest > 0)
		l->part++;
	l->rate = rate;
	carry(l);
	l->burst_us = burst_us;
}

static void
spend(struct ratelimiter *l, uint32_t permits)
{
	uint64_t rest;

	l->since_us += (int64_t)scale(permits, COST, (uint64_t)l->rate, &rest);
	l->part += (int64_t)rest;
	carry(l);
}

bool
ratelimiter_acquire(struct ratelimiter *l, uint32_t permits,
    int64_t max_wait_us, int64_t now, int64_t *wait_us)
{
	assert(permits >= 1 && permits <= RATELIMITER_MAX_PERMITS);
	assert(max_wait_us >= 0 && max_wait_us <= RATELIMITER_MAX_WAIT_US);
	*wait_us = ratelimiter_owed(l, now);
	if (*wait_us > max_wait_us)
		return false;
	resync(l, now);
	spend(l, permits);
	return true;
}

int64_t
ratelimiter_owed(const struct ratelimiter *l, int64_t now)
{
	if (l->since_us < now)
		return 0;
	return l->since_us - now + (l->part > 0);
}

double
ratelimiter_stored(const struct ratelimiter *l, int64_t now)
{
	double time =
	    (double)(now - l->since_us) - (double)l->part / (double)l->rate;

	if (time <= 0)
		return 0;
	if (time > (double)l->burst_us)
		time = (double)l->burst_us;
	return time * (double)l->rate / (double)COST;
}
