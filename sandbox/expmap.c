/*
 * Chained hashing beside a binary heap. Every entry is in both; the chains
 * double when there are more entries than chains.
 */
#include "sandbox/expmap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

#define FIRST_CHAINS 64
#define FIRST_HEAP   64

static uint64_t
mix(uint64_t v)
{
	v = (v ^ v >> 33) * UINT64_C(0xff51afd7ed558ccd);
	v = (v ^ v >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return v ^ v >> 33;
}

static uint32_t
chain_of(const struct expmap *m, const uint8_t key[EXPMAP_KEY_LEN])
{
	uint64_t a, b;

	memcpy(&a, key, sizeof(a));
	memcpy(&b, key + sizeof(a), sizeof(b));
	return (uint32_t)mix(mix(a ^ m->seed) + b) & (m->chain_count - 1);
}

static void
heap_put(struct expmap *m, uint32_t slot, struct expmap_entry *e)
{
	m->heap[slot] = e;
	e->slot = slot;
}

static void
heap_up(struct expmap *m, struct expmap_entry *e)
{
	uint32_t slot = e->slot;

	while (slot > 0 && m->heap[(slot - 1) / 2]->when > e->when) {
		heap_put(m, slot, m->heap[(slot - 1) / 2]);
		slot = (slot - 1) / 2;
	}
	heap_put(m, slot, e);
}

static void
heap_down(struct expmap *m, struct expmap_entry *e)
{
	uint32_t slot = e->slot;
	uint32_t child;

	while ((child = 2 * slot + 1) < m->count) {
		if (child + 1 < m->count &&
		    m->heap[child + 1]->when < m->heap[child]->when)
			child++;
		if (m->heap[child]->when >= e->when)
			break;
		heap_put(m, slot, m->heap[child]);
		slot = child;
	}
	heap_put(m, slot, e);
}

/* Doubles the chains. Without memory the old ones stay, only longer. */
static int
grow_chains(struct expmap *m)
{
	struct expmap old = *m;
	struct expmap_entry *e;
	uint32_t i, chain;

	m->chain_count = old.chain_count ? old.chain_count * 2 : FIRST_CHAINS;
	m->chains = calloc(m->chain_count, sizeof(*m->chains));
	if (m->chains == NULL) {
		m->chains = old.chains;
		m->chain_count = old.chain_count;
		return m->chain_count > 0 ? 0 : RLA_ENOMEM;
	}
	for (i = 0; i < old.chain_count; i++)
		while ((e = old.chains[i]) != NULL) {
			old.chains[i] = e->next;
			chain = chain_of(m, e->key);
			e->next = m->chains[chain];
			m->chains[chain] = e;
		}
	free(old.chains);
	return 0;
}

static int
grow_heap(struct expmap *m)
{
	uint32_t cap = m->heap_cap > 0 ? m->heap_cap * 2 : FIRST_HEAP;
	struct expmap_entry **heap;

	heap = reallocarray(m->heap, cap, sizeof(*heap));
	if (heap == NULL)
		return RLA_ENOMEM;
	m->heap = heap;
	m->heap_cap = cap;
	return 0;
}

void
expmap_init(struct expmap *m, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->seed = seed;
}

void
expmap_fini(struct expmap *m)
{
	free(m->chains);
	free(m->heap);
	memset(m, 0, sizeof(*m));
}

struct expmap_entry *
expmap_find(const struct expmap *m, const uint8_t key[EXPMAP_KEY_LEN])
{
	struct expmap_entry *e;

	if (m->count == 0)
		return NULL;
	for (e = m->chains[chain_of(m, key)]; e != NULL; e = e->next)
		if (memcmp(e->key, key, EXPMAP_KEY_LEN) == 0)
			break;
	return e;
}

int
expmap_insert(struct expmap *m, struct expmap_entry *e,
    const uint8_t key[EXPMAP_KEY_LEN], int64_t when)
{
	uint32_t chain;

	if (m->count >= m->chain_count && grow_chains(m) < 0)
		return RLA_ENOMEM;
	if (m->count == m->heap_cap && grow_heap(m) < 0)
		return RLA_ENOMEM;
	memcpy(e->key, key, EXPMAP_KEY_LEN);
	e->when = when;
	chain = chain_of(m, key);
	e->next = m->chains[chain];
	m->chains[chain] = e;
	heap_put(m, m->count++, e);
	heap_up(m, e);
	return 0;
}

void
expmap_remove(struct expmap *m, struct expmap_entry *e)
{
	struct expmap_entry **at = &m->chains[chain_of(m, e->key)];
	struct expmap_entry *last;

	while (*at != e) {
		assert(*at != NULL);
		at = &(*at)->next;
	}
	*at = e->next;
	last = m->heap[--m->count];
	if (last == e)
		return;
	heap_put(m, e->slot, last);
	heap_up(m, last);
	heap_down(m, last);
}

void
expmap_move(struct expmap *m, struct expmap_entry *e, int64_t when)
{
	e->when = when;
	heap_up(m, e);
	heap_down(m, e);
}

struct expmap_entry *
expmap_due(const struct expmap *m, int64_t now)
{
	struct expmap_entry *e = expmap_first(m);

	return e != NULL && e->when <= now ? e : NULL;
}

struct expmap_entry *
expmap_first(const struct expmap *m)
{
	return m->count > 0 ? m->heap[0] : NULL;
}
