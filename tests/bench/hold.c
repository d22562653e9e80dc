/*
 * Records stand one behind the other and are never split: when the longest
 * would not fit before the end of the ring, the next one is at its start. The
 * place where the last one before it ends is then in wrap. Invariant: either
 * head <= tail and what is used is between them, or tail < head and it is
 * head to wrap and 0 to tail; head == tail means empty.
 */
#include "tests/bench/hold.h"

#include <stdlib.h>
#include <sys/mman.h>

#define RING_BYTES ((size_t)128 << 20) /* touched only when it is needed */
#define LONGEST    (sizeof(struct hold_record) + WIRE_MAX)

struct hold {
	uint8_t *ring;
	size_t head;
	size_t tail;
	size_t wrap;
};

struct hold *
hold_new(void)
{
	struct hold *h = calloc(1, sizeof(*h));
	void *ring;

	if (h == NULL)
		return NULL;
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ring == MAP_FAILED) {
		free(h);
		return NULL;
	}
	h->ring = ring;
	return h;
}

void
hold_free(struct hold *h)
{
	if (h == NULL)
		return;
	munmap(h->ring, RING_BYTES);
	free(h);
}

static struct hold_record *
record_at(struct hold *h, size_t at)
{
	return (struct hold_record *)(void *)(h->ring + at);
}

struct hold_record *
hold_reserve(struct hold *h)
{
	if (h->head == h->tail)
		h->head = h->tail = 0;
	if (h->head <= h->tail && RING_BYTES - h->tail < LONGEST) {
		/* A tail of 0 that meets a head of 0 would look empty. */
		if (h->head <= LONGEST)
			return NULL;
		h->wrap = h->tail;
		h->tail = 0;
	}
	if (h->tail < h->head && h->head - h->tail <= LONGEST)
		return NULL;
	return record_at(h, h->tail);
}

void
hold_commit(struct hold *h)
{
	size_t len = sizeof(struct hold_record) + record_at(h, h->tail)->len;

	/* Each record starts where its first member may. */
	h->tail += (len + 7) & ~(size_t)7;
}

const struct hold_record *
hold_first(struct hold *h)
{
	return h->head != h->tail ? record_at(h, h->head) : NULL;
}

void
hold_pop(struct hold *h)
{
	size_t len = sizeof(struct hold_record) + record_at(h, h->head)->len;

	h->head += (len + 7) & ~(size_t)7;
	if (h->tail < h->head && h->head == h->wrap)
		h->head = 0;
}
