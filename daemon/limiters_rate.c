/* RateLimiters of one name, of a limiter or of a rule. See
 * limiters_private.h. */
#include "daemon/limiters_private.h"

#include <stdlib.h>

struct limiters_rate *
limiters_rate_new(
    const struct config_rate *is, const uint64_t seed[2], int64_t now)
{
	struct limiters_rate *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->refs = 1;
	s->rate = s->configured = is->rate;
	s->burst_us = is->burst_us;
	ratelimiter_init(&s->own, s->rate, s->burst_us, now);
	s->keyed = registry_new(sizeof(s->own), is->max_keys, seed);
	if (s->keyed != NULL)
		return s;
	free(s);
	return NULL;
}

void
limiters_rate_unref(struct limiters_rate *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	registry_free(s->keyed);
	free(s);
}

/*
 * An instance takes what has changed when it is used next. For the rate that
 * is not late: what is stored and what is owed is kept as time, which no
 * change of the rate changes. Nor for a smaller burst: what is too much then
 * is no less too much later. A larger one begins to fill with the next use.
 */
static void
update(const struct limiters_rate *s, struct ratelimiter *l, int64_t now)
{
	ratelimiter_set(l, s->rate, s->burst_us, now);
}

void
limiters_rate_apply(
    struct limiters_rate *s, const struct config_rate *is, int64_t now)
{
	if (s->configured != is->rate)
		s->rate = s->configured = is->rate;
	s->burst_us = is->burst_us;
	registry_set_cap(s->keyed, is->max_keys);
	update(s, &s->own, now);
}

struct ratelimiter *
limiters_rate_instance(
    struct limiters_rate *s, struct limiters_key key, int64_t now)
{
	struct ratelimiter *l = &s->own;
	bool fresh = false;

	if (key.bytes != NULL) {
		l = registry_get(s->keyed, key.bytes, key.len, now, &fresh);
		s->counters.evictions = registry_evictions(s->keyed);
	}
	if (l == NULL)
		return NULL;
	if (fresh)
		ratelimiter_init(l, s->rate, s->burst_us, now);
	else
		update(s, l, now);
	return l;
}

enum limiters_answer
limiters_rate_acquire(struct limiters_rate *s, struct limiters_key key,
    uint32_t permits, int64_t max_wait_us, int64_t now, int64_t *wait_us)
{
	struct ratelimiter *l = limiters_rate_instance(s, key, now);

	*wait_us = 0;
	if (l == NULL) {
		s->counters.overloaded++;
		return LIMITERS_FULL;
	}
	if (!ratelimiter_acquire(l, permits, max_wait_us, now, wait_us)) {
		s->counters.refused++;
		return max_wait_us < RATELIMITER_MAX_WAIT_US
			   ? LIMITERS_REFUSED
			   : LIMITERS_TOO_LONG;
	}
	s->counters.granted++;
	s->counters.permits += permits;
	s->counters.waits += *wait_us > 0;
	if (key.bytes != NULL)
		registry_busy(s->keyed, l, now + ratelimiter_owed(l, now));
	return LIMITERS_GRANTED;
}

struct limiters_shown
limiters_rate_show(const struct limiters_rate *s, int64_t now)
{
	struct ratelimiter own = s->own;

	update(s, &own, now);
	return (struct limiters_shown){
	    .rate = s->rate,
	    .stored = ratelimiter_stored(&own, now),
	    .owed_us = ratelimiter_owed(&own, now),
	    .keys = registry_count(s->keyed),
	    .counters = &s->counters,
	};
}
