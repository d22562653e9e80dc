/*
 * Linear probing with deletion by shifting back, so no tombstones build up:
 * a table that has been busy for months probes like a fresh one. Invariant:
 * no empty slot lies between an entry's home slot and the entry.
 *
 * With tens of thousands in flight an entry is seldom in the processor's
 * cache, nor is its slot. So a slot holds the hash as well: probing, growing
 * and shifting read nothing else, and an entry is looked at only when its whole
 * hash is the one that is wanted.
 */
#include "daemon/core/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/siphash.h"

#define CAP_MIN 64
#define CAP_MAX (UINT32_C(1) << 30)
/* In every hash that is kept: none is 0. Above what selects the home. */
#define TAKEN (UINT32_C(1) << 31)

static uint32_t
hash_of(struct table *t, const uint8_t key[TABLE_KEY_LEN])
{
	if (t->asked_hash == 0 || memcmp(t->asked, key, TABLE_KEY_LEN) != 0) {
		memcpy(t->asked, key, TABLE_KEY_LEN);
		t->asked_hash =
		    (uint32_t)siphash(t->seed, key, TABLE_KEY_LEN) | TAKEN;
	}
	return t->asked_hash;
}

static uint32_t
home(const struct table *t, uint32_t hash)
{
	return hash & (t->cap - 1);
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

/* There is always an empty slot: the table is never full. */
static void
put(struct table *t, struct table_entry *e, uint32_t hash)
{
	uint32_t slot = home(t, hash);

	while (t->slots[slot].hash != 0) {
		assert(t->slots[slot].hash != hash ||
		       memcmp(t->slots[slot].entry->key, e->key,
			   TABLE_KEY_LEN) != 0);
		slot = after(t, slot);
	}
	t->slots[slot] = (struct table_slot){.hash = hash, .entry = e};
}

/* Makes room for count entries. */
static int
reserve(struct table *t, uint32_t count)
{
	struct table old = *t;
	uint32_t cap = t->cap > 0 ? t->cap : CAP_MIN;

	if (count > CAP_MAX / 4 * 3)
		return -1;
	while (cap / 4 * 3 < count)
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
		if (old.slots[i].hash != 0)
			put(t, old.slots[i].entry, old.slots[i].hash);
	}
	free(old.slots);
	return 0;
}

int
table_insert(struct table *t, struct table_entry *e)
{
	if (reserve(t, t->count + 1) != 0)
		return -1;
	e->hash = hash_of(t, e->key);
	put(t, e, e->hash);
	t->count++;
	return 0;
}

struct table_entry *
table_find(struct table *t, const uint8_t key[TABLE_KEY_LEN])
{
	const uint32_t hash = hash_of(t, key);
	const struct table_slot *s;

	if (t->count == 0)
		return NULL;
	for (uint32_t at = home(t, hash);; at = after(t, at)) {
		s = &t->slots[at];
		if (s->hash == 0)
			return NULL;
		if (s->hash == hash &&
		    memcmp(s->entry->key, key, TABLE_KEY_LEN) == 0)
			return s->entry;
	}
}

void
table_remove(struct table *t, struct table_entry *e)
{
	const uint32_t mask = t->cap - 1;
	uint32_t hole, slot;

	assert(t->count > 0);
	for (hole = home(t, e->hash); t->slots[hole].entry != e;
	     hole = after(t, hole))
		assert(t->slots[hole].hash != 0);
	/*
	 * Whatever follows in the run moves into the hole unless that would
	 * put it before its home: distances are measured around the ring.
	 */
	for (slot = after(t, hole); t->slots[slot].hash != 0;
	     slot = after(t, slot)) {
		uint32_t want = home(t, t->slots[slot].hash);

		if (((slot - want) & mask) < ((slot - hole) & mask))
			continue;
		t->slots[hole] = t->slots[slot];
		hole = slot;
	}
	t->slots[hole] = (struct table_slot){0};
	t->count--;
}
