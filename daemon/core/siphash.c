/*
 * After "SipHash: a fast short-input PRF" by Aumasson and Bernstein. Every
 * word is read in little-endian order, as the paper's test values want it;
 * compilers make one load of it.
 */
#include "daemon/core/siphash.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t
rotl(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t
load(const uint8_t *p)
{
	return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
	       (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
	       (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
	       (uint64_t)p[7] << 56;
}

/* What is left over, and the length. */
static uint64_t
load_last(const uint8_t *p, size_t left, size_t len)
{
	uint64_t v = (uint64_t)len << 56;

	while (left-- > 0)
		v |= (uint64_t)p[left] << (8 * left);
	return v;
}

/* Inline, or else the state goes through memory for every round. */
static inline void
sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

static inline void
word(struct sip *s, uint64_t w)
{
	s->v3 ^= w;
	sip_round(s);
	sip_round(s);
	s->v0 ^= w;
}

uint64_t
siphash(const uint64_t seed[2], const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	size_t left;
	struct sip s = {
	    .v0 = seed[0] ^ UINT64_C(0x736f6d6570736575),
	    .v1 = seed[1] ^ UINT64_C(0x646f72616e646f6d),
	    .v2 = seed[0] ^ UINT64_C(0x6c7967656e657261),
	    .v3 = seed[1] ^ UINT64_C(0x7465646279746573),
	};

	for (left = len; left >= 8; left -= 8, p += 8)
		word(&s, load(p));
	word(&s, load_last(p, left, len));
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
