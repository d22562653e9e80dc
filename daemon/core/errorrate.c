/*
 * ErrorRateControl after its published tuning rules: the burst is tested
 * before it is spent, the delay doubles after it was handed out, a success
 * gives one back and halves the delay. Sums saturate instead of wrapping.
 */
#include "daemon/core/errorrate.h"

#include <assert.h>

void
errorrate_init(
    struct errorrate *e, uint32_t burst, int64_t min_us, int64_t max_us)
{
	assert(min_us > 0 && min_us <= max_us);
	*e = (struct errorrate){
	    .burst_max = burst,
	    .burst = burst,
	    .min_us = min_us,
	    .max_us = max_us,
	    .delay_us = min_us,
	    .free_at = INT64_MIN,
	};
}

/* The delay of one more failure: none while the burst lasts. */
static int64_t
spend(struct errorrate *e)
{
	int64_t delay;

	if (e->burst > 0) {
		e->burst--;
		return 0;
	}
	delay = e->delay_us;
	e->delay_us = delay > e->max_us / 2 ? e->max_us : delay * 2;
	return delay;
}

static int64_t
add(int64_t at, int64_t delay)
{
	return at > INT64_MAX - delay ? INT64_MAX : at + delay;
}

bool
errorrate_begin_within(
    struct errorrate *e, int64_t max_us, int64_t now, int64_t *wait_us)
{
	struct errorrate after = *e;
	int64_t delay = spend(&after);

	*wait_us = 0;
	if (delay > 0) {
		after.free_at = add(e->free_at > now ? e->free_at : now, delay);
		*wait_us = after.free_at - now;
	}
	if (*wait_us > max_us)
		return false;
	*e = after;
	return true;
}

int64_t
errorrate_begin(struct errorrate *e, int64_t now)
{
	int64_t wait;

	(void)errorrate_begin_within(e, INT64_MAX, now, &wait);
	return wait;
}

int64_t
errorrate_held(const struct errorrate *e, int64_t now)
{
	return e->free_at > now ? e->free_at - now : 0;
}

static void
halve(struct errorrate *e)
{
	e->delay_us /= 2;
	if (e->delay_us < e->min_us)
		e->delay_us = e->min_us;
}

void
errorrate_success(struct errorrate *e)
{
	if (e->burst < e->burst_max)
		e->burst++;
	halve(e);
}

/*
 * A log line never reports success, so silence stands for it: one for each
 * full max_us in which a line would have been let through and none came.
 */
static void
recover(struct errorrate *e, int64_t now)
{
	/* Unsigned, as free_at may be INT64_MIN. */
	uint64_t quiet = (uint64_t)now - (uint64_t)e->free_at;
	uint64_t successes = quiet / (uint64_t)e->max_us;
	uint32_t spent = e->burst_max - e->burst;

	e->burst += successes < spent ? (uint32_t)successes : spent;
	for (; successes > 0 && e->delay_us > e->min_us; successes--)
		halve(e);
}

bool
errorrate_try(struct errorrate *e, int64_t now, uint64_t *suppressed)
{
	if (now < e->free_at) {
		++*suppressed;
		return false;
	}
	recover(e, now);
	e->free_at = add(now, spend(e));
	return true;
}
