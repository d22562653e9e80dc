/*
 * When discovery asks: the pause after an answer, after a failure and after a
 * wish, from the dns part of the configuration (rl-agent.json(5)). Embedded in
 * discovery. Tells times and arms nothing; the clock is an argument.
 *
 * Spreads go upwards, by up to a tenth: a question that comes before the TTL
 * is over only gets the rest of that TTL from a caching resolver.
 */
#ifndef DAEMON_DISCOVERY_PACE_H
#define DAEMON_DISCOVERY_PACE_H

#include <stdint.h>

#include "daemon/config.h"
#include "daemon/core/errorrate.h"
#include "proto/random.h"

/* Microseconds; of failed rounds and of wishes in vain. */
#define DISCOVERY_PACE_MAX INT64_C(30000000)
/* Wishes in vain before they back off too. */
#define DISCOVERY_PACE_WISHES 5

struct discovery_pace {
	const struct config_dns *dns;
	struct random_pool *random;
	struct errorrate retries;
	struct errorrate wishes;
};

/* Borrows both for its life. */
void discovery_pace_init(struct discovery_pace *p, const struct config_dns *dns,
    struct random_pool *random);

/* Microseconds to the next round, after one that found servers. */
int64_t discovery_pace_refresh(struct discovery_pace *p, uint32_t ttl_s);
/* The same after one that failed: from forced_min_ms, doubling to 30 s,
 * and up to a tenth more. */
int64_t discovery_pace_retry(struct discovery_pace *p, int64_t now);
/* The outage is over, or its cause another one: the next retry is the first. */
void discovery_pace_recover(struct discovery_pace *p);

/*
 * The soonest that a round which began at began may be followed by another
 * one that somebody wishes for; without the jitter.
 */
int64_t discovery_pace_soonest(
    const struct discovery_pace *p, int64_t began, int64_t now);
/* The same with the back-off of wishes in vain. */
int64_t discovery_pace_wish(
    const struct discovery_pace *p, int64_t began, int64_t now);
/* That wish is granted; returns when, with the jitter. */
int64_t discovery_pace_grant(struct discovery_pace *p, int64_t when);
/* Other servers were found: wishes are not in vain. */
void discovery_pace_fulfil(struct discovery_pace *p);

#endif
