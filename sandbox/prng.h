/*
 * The sandbox's own deterministic numbers (splitmix64) for server ids and
 * faults: --seed must give the same run anywhere. Never for secrets.
 */
#ifndef SANDBOX_PRNG_H
#define SANDBOX_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state;
};

/* Each stream of one seed is a sequence of its own. */
void prng_init(struct prng *p, uint64_t seed, uint64_t stream);
uint64_t prng_next(struct prng *p);
/* True with this probability, 0 to 1; always draws exactly one number. */
bool prng_chance(struct prng *p, double probability);
/* Below n, which is not 0; always draws exactly one number. */
uint32_t prng_below(struct prng *p, uint32_t n);

#endif
