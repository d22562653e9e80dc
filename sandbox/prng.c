/* splitmix64: one addition and a mixing function. */
#include "sandbox/prng.h"

void
prng_init(struct prng *p, uint64_t seed, uint64_t stream)
{
	struct prng first = {seed};

	p->state = prng_next(&first) ^ stream * UINT64_C(0xda942042e4dd58b5);
}

uint64_t
prng_next(struct prng *p)
{
	uint64_t v;

	p->state += UINT64_C(0x9e3779b97f4a7c15);
	v = p->state;
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

bool
prng_chance(struct prng *p, double probability)
{
	/* 53 bits: a double in [0, 1), so that 1 is always and 0 never. */
	return (double)(prng_next(p) >> 11) * 0x1p-53 < probability;
}

uint32_t
prng_below(struct prng *p, uint32_t n)
{
	/* The bias of 2^-32 n is nothing to a test. */
	return (uint32_t)(prng_next(p) % n);
}
