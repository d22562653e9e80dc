/*
 * An indexed 4-ary min-heap of deadlines. Entries are embedded in what they
 * wake (container_of by the owner); the heap owns only its array, which grows
 * by doubling and never shrinks, so the steady state allocates nothing.
 */
#ifndef DAEMON_CORE_HEAP_H
#define DAEMON_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_OUT UINT32_MAX

struct heap_entry {
	int64_t when;  /* absolute microseconds */
	uint32_t slot; /* HEAP_OUT while not in a heap */
};

struct heap {
	struct heap_entry **slots;
	uint32_t count;
	uint32_t cap;
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h); /* entries are the owner's */
void heap_entry_init(struct heap_entry *e);
/* Inserts or moves the entry. Returns 0, or -1 without memory. */
int heap_set(struct heap *h, struct heap_entry *e, int64_t when);
/* Makes room for count entries, so that heap_set() cannot fail. 0 or -1. */
int heap_reserve(struct heap *h, uint32_t count);
/* A no-op when it is not in. */
void heap_remove(struct heap *h, struct heap_entry *e);
/* The earliest entry, or NULL. */
struct heap_entry *heap_first(const struct heap *h);

#endif
