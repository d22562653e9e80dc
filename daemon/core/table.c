/*
 * Linear probing with deletion by shifting back, so no tombstones build up:
 * a table that has been busy for months probes like a fresh one. Invariant:
 * no empty slot lies between an entry's home slot and the entry.
 */
#include "daemon/core/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN 64
#define CAP_MAX (UINT32_C(1) << 31)

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t
rotl(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	/* Host order: the hash never leaves the process. */
	memcpy(&v, p, sizeof(v));
	return v;
}

static void
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

static void
sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

/* SipHash-1-3 of exactly 16 bytes. */
static uint64_t
hash(const uint64_t seed[2], const uint8_t key[TABLE_KEY_LEN])
{
	struct sip s = {
	    .v0 = seed[0] ^ UINT64_C(0x736f6d6570736575),
	    .v1 = seed[1] ^ UINT64_C(0x646f72616e646f6d),
	    .v2 = seed[0] ^ UINT64_C(0x6c7967656e657261),
	    .v3 = seed[1] ^ UINT64_C(0x7465646279746573),
	};

	sip_word(&s, load64(key));
	sip_word(&s, load64(key + 8));
	sip_word(&s, (uint64_t)TABLE_KEY_LEN << 56);
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static uint32_t
home(const struct table *t, const uint8_t key[TABLE_KEY_LEN])
{
	return (uint32_t)hash(t->seed, key) & (t->cap - 1);
}

static uint32_t
after(const struct table *t, uint32_t slot)
{
	return (slot + 1) & (t->cap - 1);
}

void
table_init(struct table *t, const uint64_t seed[2])
{
	*t = (struct table){.seed = {seed[0], seed[1]}};
}

void
table_fini(struct table *t)
{
	free(t->slots);
	*t = (struct table){0};
}

/* There is always an empty slot: the table is at most half full. */
static void
put(struct table *t, struct table_entry *e)
{
	uint32_t slot = home(t, e->key);

	while (t->slots[slot] != NULL) {
		assert(memcmp(t->slots[slot]->key, e->key, TABLE_KEY_LEN) != 0);
		slot = after(t, slot);
	}
	t->slots[slot] = e;
}

/* Makes room for count entries. */
static int
reserve(struct table *t, uint32_t count)
{
	struct table old = *t;
	uint32_t cap = t->cap > 0 ? t->cap : CAP_MIN;

	if (count > CAP_MAX / 2)
		return -1;
	while (cap / 2 < count)
		cap *= 2;
	if (cap == t->cap)
		return 0;
	t->slots = calloc(cap, sizeof(*t->slots));
	if (t->slots == NULL) {
		t->slots = old.slots;
		return -1;
	}
	t->cap = cap;
	for (uint32_t i = 0; i < old.cap; i++) {
		if (old.slots[i] != NULL)
			put(t, old.slots[i]);
	}
	free(old.slots);
	return 0;
}

int
table_insert(struct table *t, struct table_entry *e)
{
	if (reserve(t, t->count + 1) != 0)
		return -1;
	put(t, e);
	t->count++;
	return 0;
}

struct table_entry *
table_find(const struct table *t, const uint8_t key[TABLE_KEY_LEN])
{
	struct table_entry *e;

	if (t->count == 0)
		return NULL;
	for (uint32_t slot = home(t, key); (e = t->slots[slot]) != NULL;
	     slot = after(t, slot)) {
		if (memcmp(e->key, key, TABLE_KEY_LEN) == 0)
			return e;
	}
	return NULL;
}

void
table_remove(struct table *t, struct table_entry *e)
{
	const uint32_t mask = t->cap - 1;
	uint32_t hole, slot;

	assert(t->count > 0);
	for (hole = home(t, e->key); t->slots[hole] != e; hole = after(t, hole))
		assert(t->slots[hole] != NULL);
	/*
	 * Whatever follows in the run moves into the hole unless that would
	 * put it before its home: distances are measured around the ring.
	 */
	for (slot = after(t, hole); t->slots[slot] != NULL;
	     slot = after(t, slot)) {
		uint32_t want = home(t, t->slots[slot]->key);

		if (((slot - want) & mask) < ((slot - hole) & mask))
			continue;
		t->slots[hole] = t->slots[slot];
		hole = slot;
	}
	t->slots[hole] = NULL;
	t->count--;
}
