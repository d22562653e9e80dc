/*
 * One token bucket: limit tokens, refilled continuously over window_ms. The
 * level is kept in tokens times window_ms, so that a refill of any number of
 * milliseconds is exact and nothing is ever lost to rounding. Pure: the clock
 * (milliseconds, monotonic) is an argument.
 */
#ifndef SANDBOX_BUCKET_H
#define SANDBOX_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint32_t window_ms;
	uint32_t limit;
	uint64_t level; /* tokens * window_ms, at most limit * window_ms */
	int64_t at_ms;  /* when level was right */
};

/* Starts full. Neither window_ms nor limit may be zero. */
void bucket_init(
    struct bucket *b, uint32_t window_ms, uint32_t limit, int64_t now_ms);
/* Is this the definition that established the bucket? */
bool bucket_matches(const struct bucket *b, uint32_t window_ms, uint32_t limit);
/* Brings the level up to now. A clock that stands still adds nothing. */
void bucket_refill(struct bucket *b, int64_t now_ms);
/* Whole tokens there, as of the last refill. */
uint32_t bucket_available(const struct bucket *b);
/* The limit less what is available: tokens in use, a fraction rounded up. */
uint32_t bucket_rate(const struct bucket *b);
/* Takes tokens that are available. */
void bucket_take(struct bucket *b, uint64_t tokens);
/* When it will be full again, and is worth forgetting. */
int64_t bucket_full_at(const struct bucket *b);

#endif
