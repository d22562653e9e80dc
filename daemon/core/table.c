/*
 * Linear probing with deletion by shifting back, so no tombstones build up:
 * a table that has been busy for months probes like a fresh one. Invariant:
 * no empty slot lies between an entry's home slot and the entry.
 */
#include "daemon/core/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/siphash.h"

#define CAP_MIN 64
#define CAP_MAX (UINT32_C(1) << 31)

static uint32_t
home(const struct table *t, const uint8_t key[TABLE_KEY_LEN])
{
	return (uint32_t)siphash(t->seed, key, TABLE_KEY_LEN) & (t->cap - 1);
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
