/* ErrorRateControls of one name. See limiters_private.h. */
#include "daemon/limiters_private.h"

#include <stdlib.h>

struct limiters_error *
limiters_error_new(
    const struct config_error_control *is, const uint64_t seed[2])
{
	struct limiters_error *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->refs = 1;
	s->burst = is->burst;
	s->min_us = is->min_us;
	s->max_us = is->max_us;
	errorrate_init(&s->own, s->burst, s->min_us, s->max_us);
	s->keyed = registry_new(sizeof(s->own), is->max_keys, seed);
	if (s->keyed != NULL)
		return s;
	free(s);
	return NULL;
}

void
limiters_error_unref(struct limiters_error *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	registry_free(s->keyed);
	free(s);
}

/*
 * An instance takes what has changed when it is used next. The failures that
 * the burst let pass and the delays that were handed out stay as they were;
 * one that has had neither is as if it were new.
 */
static void
update(const struct limiters_error *s, struct errorrate *e)
{
	const uint32_t passed = e->burst_max - e->burst;

	if (e->delay_us == e->min_us || e->delay_us < s->min_us)
		e->delay_us = s->min_us;
	else if (e->delay_us > s->max_us)
		e->delay_us = s->max_us;
	e->burst_max = s->burst;
	e->burst = passed < s->burst ? s->burst - passed : 0;
	e->min_us = s->min_us;
	e->max_us = s->max_us;
}

void
limiters_error_apply(
    struct limiters_error *s, const struct config_error_control *is)
{
	s->burst = is->burst;
	s->min_us = is->min_us;
	s->max_us = is->max_us;
	registry_set_cap(s->keyed, is->max_keys);
	update(s, &s->own);
}

/* NULL when there is no room. */
static struct errorrate *
instance(struct limiters_error *s, struct limiters_key key, int64_t now)
{
	struct errorrate *e = &s->own;
	bool fresh = false;

	if (key.bytes != NULL) {
		e = registry_get(s->keyed, key.bytes, key.len, now, &fresh);
		s->counters.evictions = registry_evictions(s->keyed);
	}
	if (e == NULL)
		return NULL;
	if (fresh)
		errorrate_init(e, s->burst, s->min_us, s->max_us);
	else
		update(s, e);
	return e;
}

enum limiters_answer
limiters_error_wait(struct limiters_error *s, struct limiters_key key,
    int64_t now, int64_t *wait_us)
{
	struct errorrate *e = instance(s, key, now);

	*wait_us = 0;
	if (e == NULL) {
		s->counters.overloaded++;
		return LIMITERS_FULL;
	}
	if (!errorrate_begin_within(e, RATELIMITER_MAX_WAIT_US, now, wait_us)) {
		s->counters.overloaded++;
		return LIMITERS_TOO_LONG;
	}
	s->counters.begins++;
	s->counters.delays += *wait_us > 0;
	if (key.bytes != NULL)
		registry_busy(s->keyed, e, now + errorrate_held(e, now));
	return LIMITERS_GRANTED;
}

void
limiters_error_done(
    struct limiters_error *s, struct limiters_key key, int64_t now)
{
	s->counters.successes++;
	if (key.bytes != NULL &&
	    registry_find(s->keyed, key.bytes, key.len) == NULL)
		return;
	errorrate_success(instance(s, key, now));
}

struct limiters_error_shown
limiters_error_show(const struct limiters_error *s, int64_t now)
{
	struct errorrate own = s->own;

	return (struct limiters_error_shown){
	    .burst = s->own.burst,
	    .delay_us = s->own.delay_us,
	    .owed_us = errorrate_begin(&own, now), /* it is a copy */
	    .keys = registry_count(s->keyed),
	    .counters = &s->counters,
	};
}
