/*
 * RateLimiter: Guava's SmoothBursty. A caller takes permits now and is told
 * how long to wait for those that were taken before it; whoever comes next
 * waits for these. What was not used is stored, up to the rate times the burst
 * time. Pure: the clock is an argument (microseconds, 0 or later, never less
 * than in the call before).
 *
 * SmoothBursty keeps a time, nextFreeTicket, and a number of stored permits,
 * and only one of them says anything at a time. Both are one number here: the
 * moment since which permits are unspent (in debt: will be). At a moment t
 *
 *   stored permits  = min(t - since, burst) x rate   when since is before t
 *   wait            = since - t                      when it is after t
 *
 * A change of the rate scales the stored permits as the original does by
 * leaving that number alone. It is exact: whole microseconds, and the rest as
 * a fraction with the rate as its denominator. Nothing is granted early, not
 * after years: in any time T no more than rate x T + what was stored + the
 * largest single acquire.
 */
#ifndef DAEMON_CORE_RATELIMITER_H
#define DAEMON_CORE_RATELIMITER_H

#include <stdbool.h>
#include <stdint.h>

/* Rates are in 10^-12 permits a second: 0.001 to 1,000,000 permits a second. */
#define RATELIMITER_ONE      INT64_C(1000000000000)
#define RATELIMITER_MIN_RATE (RATELIMITER_ONE / 1000)
#define RATELIMITER_MAX_RATE (RATELIMITER_ONE * 1000000)
/* What can be stored, as the time that makes it: 1 ms to an hour. */
#define RATELIMITER_MIN_BURST_US 1000
#define RATELIMITER_MAX_BURST_US INT64_C(3600000000)
/* Permits of one call, from 1. */
#define RATELIMITER_MAX_PERMITS 1000000
/* The longest wait that is handed out, a year; longer ones are refused. */
#define RATELIMITER_MAX_WAIT_US INT64_C(31536000000000)

struct ratelimiter {
	int64_t rate;     /* 10^-12 permits a second */
	int64_t burst_us; /* of the rate, that can be stored */
	int64_t since_us;
	int64_t part; /* of a microsecond more: part / rate; below rate */
};

/* In range, asserted: the rate and the burst. Nothing is stored at first, and
 * nothing is owed. */
void ratelimiter_init(
    struct ratelimiter *l, int64_t rate, int64_t burst_us, int64_t now);
/*
 * From now on. With the rate stored permits are scaled, as their maximum is;
 * another burst only takes what is over it. Who waits, waits on as told. No-op
 * when nothing changes.
 */
void ratelimiter_set(
    struct ratelimiter *l, int64_t rate, int64_t burst_us, int64_t now);

/*
 * Takes permits (1..RATELIMITER_MAX_PERMITS, asserted). Returns true with the
 * caller's wait, in microseconds, rounded up; false when it would be longer
 * than max_wait_us (0..RATELIMITER_MAX_WAIT_US, asserted): then nothing is
 * taken, and *wait_us is what it would have been.
 */
bool ratelimiter_acquire(struct ratelimiter *l, uint32_t permits,
    int64_t max_wait_us, int64_t now, int64_t *wait_us);

/* How long an acquire would have to wait now; 0: nothing is owed. */
int64_t ratelimiter_owed(const struct ratelimiter *l, int64_t now);
/* Stored permits now, for people. */
double ratelimiter_stored(const struct ratelimiter *l, int64_t now);

#endif
