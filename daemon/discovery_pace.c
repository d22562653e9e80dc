/* The pauses between rounds of discovery; see the header. */
#include "daemon/discovery_pace.h"

#define MS_US INT64_C(1000)

/* Uniform in 0..max; 0 when the pool fails: only the spread is lost. */
static int64_t
spread(struct discovery_pace *p, int64_t max)
{
	uint64_t random = 0;

	if (random_bytes(p->random, &random, sizeof random) != 0)
		return 0;
	return (int64_t)(random % ((uint64_t)max + 1));
}

static void
reset(struct discovery_pace *p, struct errorrate *pace, uint32_t burst)
{
	int64_t min = p->dns->forced_min_ms * MS_US, max = DISCOVERY_PACE_MAX;

	if (min < MS_US)
		min = MS_US;
	errorrate_init(pace, burst, min, min > max ? min : max);
}

void
discovery_pace_init(struct discovery_pace *p, const struct config_dns *dns,
    struct random_pool *random)
{
	*p = (struct discovery_pace){.dns = dns, .random = random};
	discovery_pace_recover(p);
	discovery_pace_fulfil(p);
}

/* min(refresh, max(TTL, forced_min)) and up to a tenth more. */
int64_t
discovery_pace_refresh(struct discovery_pace *p, uint32_t ttl_s)
{
	int64_t delay = (int64_t)ttl_s * 1000 * MS_US;

	if (delay < p->dns->forced_min_ms * MS_US)
		delay = p->dns->forced_min_ms * MS_US;
	if (delay > p->dns->refresh_ms * MS_US)
		delay = p->dns->refresh_ms * MS_US;
	return delay + spread(p, delay / 10);
}

/*
 * Each failure is a begin without a success. A round that was brought forward
 * may fail before a delay is over and would queue behind it, hence the bound.
 */
int64_t
discovery_pace_retry(struct discovery_pace *p, int64_t now)
{
	int64_t delay = errorrate_begin(&p->retries, now);

	if (delay > p->retries.max_us)
		delay = p->retries.max_us;
	return delay + spread(p, delay / 10);
}

/*
 * Afresh instead of by errorrate_success(): one complete answer ends an
 * outage, so the next one starts at the minimum, and no delay that was handed
 * out before is left to wait for.
 */
void
discovery_pace_recover(struct discovery_pace *p)
{
	reset(p, &p->retries, 0);
}

int64_t
discovery_pace_soonest(
    const struct discovery_pace *p, int64_t began, int64_t now)
{
	int64_t when = began + p->dns->forced_min_ms * MS_US;

	return when > now ? when : now;
}

/*
 * Whoever asks us for decisions wishes as often as he likes, and while the
 * servers are silent every failed check does.
 */
int64_t
discovery_pace_wish(const struct discovery_pace *p, int64_t began, int64_t now)
{
	int64_t when = discovery_pace_soonest(p, began, now);

	return when > p->wishes.free_at ? when : p->wishes.free_at;
}

int64_t
discovery_pace_grant(struct discovery_pace *p, int64_t when)
{
	uint64_t refused = 0; /* none: it is free by then */

	errorrate_try(&p->wishes, when, &refused);
	return when + spread(p, p->dns->jitter_ms * MS_US);
}

void
discovery_pace_fulfil(struct discovery_pace *p)
{
	reset(p, &p->wishes, DISCOVERY_PACE_WISHES);
}
