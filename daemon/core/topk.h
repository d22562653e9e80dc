/*
 * The keys that were counted most often of late, with a bounded number of them
 * kept: Space-Saving. A key that is not kept takes the place and the count of
 * the least one, and remembers that count as its error. So with N counted and
 * room for K keys
 *   - a key's true count is at most what is shown, and at least that less its
 *     error, which is at most N / K;
 *   - every key that was counted more than N / K times is kept.
 *
 * What was counted fades by steps of TOPK_STEP_US, to a half in TOPK_HALF_US:
 * each one weighs more than those before it, so nothing is to be walked when
 * time passes. The same holds for N, for counts and for errors.
 *
 * Pure: the clock is an argument. Its memory is that of topk_new(); a secret
 * seed keeps those who choose keys from choosing collisions.
 */
#ifndef DAEMON_CORE_TOPK_H
#define DAEMON_CORE_TOPK_H

#include <stddef.h>
#include <stdint.h>

#define TOPK_KEY_MAX 255 /* bytes */
#define TOPK_STEPS   20  /* until a half is left */
#define TOPK_STEP_US INT64_C(15000000)
#define TOPK_HALF_US (TOPK_STEPS * TOPK_STEP_US)

struct topk;

struct topk_key {
	const uint8_t *bytes; /* borrowed until the next one is counted */
	size_t len;
	double count;
	double error;
};

/* size: the most keys, from 1. NULL without memory. */
struct topk *topk_new(uint32_t size, const uint64_t seed[2]);
void topk_free(struct topk *t); /* takes NULL */
uint32_t topk_size(const struct topk *t);

/* len: at most TOPK_KEY_MAX. bytes may be NULL when it is 0. */
void topk_add(struct topk *t, const void *bytes, size_t len, int64_t now);

/* N, as it has faded at now. */
double topk_total(struct topk *t, int64_t now);
/* Those that are kept, the most counted first; the number of them, at most
 * topk_size(). Counts as they have faded at now. */
uint32_t topk_list(struct topk *t, struct topk_key *out, int64_t now);

#endif
