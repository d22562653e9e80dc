/* See sample.h. The sum of shares is kept as what is left of it until the next
 * whole one: exact, whatever the share, and 0 or less means a line. */
#include "daemon/core/sample.h"

#include <assert.h>

int64_t
sample_share(double share)
{
	const double scaled = share * (double)SAMPLE_ALL;

	assert(share >= 0 && share <= 1);
	return scaled > 0 && scaled < 1 ? 1 : (int64_t)scaled;
}

bool
sample_due(struct sample *s, int64_t share)
{
	const bool due = s->left <= 0;

	if (due)
		s->left += SAMPLE_ALL;
	s->left -= share;
	return due;
}

void
sample_budget_init(struct sample_budget *b, int64_t now)
{
	/* As if a second had passed: the first lines need not wait. */
	const int64_t before = now > SAMPLE_RARE_US ? now - SAMPLE_RARE_US : 0;

	ratelimiter_init(
	    &b->common, SAMPLE_COMMON * RATELIMITER_ONE, 1000000, before);
	ratelimiter_init(
	    &b->rare, SAMPLE_RARE * RATELIMITER_ONE, 1000000, before);
}

/* Without a debt: a RateLimiter grants one permit ahead of time. */
static bool
take(struct ratelimiter *l, int64_t now)
{
	int64_t wait;

	return ratelimiter_stored(l, now) >= 1 &&
	       ratelimiter_acquire(l, 1, 0, now, &wait);
}

bool
sample_take(struct sample_budget *b, struct sample *s, int64_t now)
{
	const bool rare = s->told == 0 || now - s->told >= SAMPLE_RARE_US;

	if (!take(&b->common, now) && !(rare && take(&b->rare, now)))
		return false;
	s->told = now;
	return true;
}
