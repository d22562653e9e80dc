/*
 * The 4-ary heap: half the depth of a binary one, and the four children share
 * a cache line. Every move of a pointer goes through place(), which keeps
 * entry->slot true. The run is an ordinary list.
 */
#include "daemon/core/heap.h"

#include <assert.h>
#include <stdlib.h>

#define ARITY   4
#define CAP_MIN 64
#define CAP_MAX (UINT32_C(1) << 28) /* its bytes fit 32 bits as well */

void
heap_init(struct heap *h)
{
	*h = (struct heap){0};
}

void
heap_fini(struct heap *h)
{
	/* The entries are not touched: their owner may have freed them. */
	free(h->slots);
	heap_init(h);
}

void
heap_entry_init(struct heap_entry *e)
{
	*e = (struct heap_entry){.slot = HEAP_OUT};
}

static void
place(struct heap *h, uint32_t slot, struct heap_entry *e)
{
	h->slots[slot] = e;
	e->slot = slot;
}

/* Moves the hole at slot up to where e belongs, then fills it. */
static void
sift_up(struct heap *h, uint32_t slot, struct heap_entry *e)
{
	uint32_t parent;

	while (slot > 0) {
		parent = (slot - 1) / ARITY;
		if (h->slots[parent]->when <= e->when)
			break;
		place(h, slot, h->slots[parent]);
		slot = parent;
	}
	place(h, slot, e);
}

/* The earliest child of slot, or HEAP_OUT for a leaf. */
static uint32_t
first_child(const struct heap *h, uint32_t slot)
{
	uint64_t child = (uint64_t)slot * ARITY + 1;
	uint64_t end = child + ARITY;
	uint64_t best = child;

	if (child >= h->count)
		return HEAP_OUT;
	if (end > h->count)
		end = h->count;
	while (++child < end) {
		if (h->slots[child]->when < h->slots[best]->when)
			best = child;
	}
	return (uint32_t)best;
}

static void
sift_down(struct heap *h, uint32_t slot, struct heap_entry *e)
{
	uint32_t child;

	while ((child = first_child(h, slot)) != HEAP_OUT) {
		if (e->when <= h->slots[child]->when)
			break;
		place(h, slot, h->slots[child]);
		slot = child;
	}
	place(h, slot, e);
}

/* e is wanted at slot, whose old content is gone: restore the order. */
static void
settle(struct heap *h, uint32_t slot, struct heap_entry *e)
{
	if (slot > 0 && e->when < h->slots[(slot - 1) / ARITY]->when)
		sift_up(h, slot, e);
	else
		sift_down(h, slot, e);
}

int
heap_reserve(struct heap *h, uint32_t count)
{
	struct heap_entry **slots;
	uint32_t cap = h->cap > 0 ? h->cap : CAP_MIN;

	if (count <= h->cap)
		return 0;
	if (count > CAP_MAX)
		return -1;
	while (cap < count)
		cap *= 2;
	slots = realloc(h->slots, cap * sizeof(*slots));
	if (slots == NULL)
		return -1;
	h->slots = slots;
	h->cap = cap;
	return 0;
}

static void
join_run(struct heap *h, struct heap_entry *e)
{
	e->slot = HEAP_IN_RUN;
	e->next = NULL;
	e->prev = h->last;
	*(h->last != NULL ? &h->last->next : &h->first) = e;
	h->last = e;
}

static void
leave_run(struct heap *h, struct heap_entry *e)
{
	*(e->prev != NULL ? &e->prev->next : &h->first) = e->next;
	*(e->next != NULL ? &e->next->prev : &h->last) = e->prev;
}

static void
leave_slots(struct heap *h, const struct heap_entry *e)
{
	struct heap_entry *last = h->slots[--h->count];

	if (last != e)
		settle(h, e->slot, last);
}

int
heap_set(struct heap *h, struct heap_entry *e, int64_t when)
{
	const bool in_slots = e->slot < HEAP_IN_RUN;

	if (e->slot != HEAP_OUT && e->when == when)
		return 0;
	if (!in_slots && heap_reserve(h, h->count + 1) != 0)
		return -1;
	heap_remove(h, e);
	e->when = when;
	if (h->last == NULL || h->last->when <= when)
		join_run(h, e);
	else
		sift_up(h, h->count++, e);
	return 0;
}

void
heap_remove(struct heap *h, struct heap_entry *e)
{
	if (e->slot == HEAP_OUT)
		return;
	if (e->slot == HEAP_IN_RUN) {
		assert(h->first != NULL);
		leave_run(h, e);
	} else {
		assert(e->slot < h->count && h->slots[e->slot] == e);
		leave_slots(h, e);
	}
	e->slot = HEAP_OUT;
}

struct heap_entry *
heap_first(const struct heap *h)
{
	if (h->count == 0 ||
	    (h->first != NULL && h->first->when <= h->slots[0]->when))
		return h->first;
	return h->slots[0];
}
