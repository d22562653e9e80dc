/*
 * Deadlines, the earliest first: an indexed 4-ary min-heap, and beside it a
 * run, a list of entries in the order of their times. An entry that is not
 * earlier than the last of the run joins the run, else the heap. Deadlines are
 * mostly set in the order in which they fall due, and met long before that:
 * then both ends of the run are at hand, where a heap of thousands would touch
 * a dozen entries that nothing else has looked at for long.
 *
 * Entries are embedded in what they wake (container_of by the owner); the heap
 * owns only its array, which grows by doubling and never shrinks, so the steady
 * state allocates nothing.
 */
#ifndef DAEMON_CORE_HEAP_H
#define DAEMON_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_OUT    UINT32_MAX
#define HEAP_IN_RUN (UINT32_MAX - 1)

struct heap_entry {
	int64_t when;            /* absolute microseconds */
	struct heap_entry *next; /* these two in the run only */
	struct heap_entry *prev;
	uint32_t slot; /* HEAP_OUT while not in; HEAP_IN_RUN */
};

struct heap {
	struct heap_entry *first; /* the run */
	struct heap_entry *last;
	struct heap_entry **slots; /* the others */
	uint32_t count;            /* of slots */
	uint32_t cap;
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h); /* entries are the owner's */
void heap_entry_init(struct heap_entry *e);
/* Inserts or moves the entry. Returns 0, or -1 without memory: then nothing
 * has changed. */
int heap_set(struct heap *h, struct heap_entry *e, int64_t when);
/* Makes room for count entries, so that heap_set() cannot fail. 0 or -1. */
int heap_reserve(struct heap *h, uint32_t count);
/* A no-op when it is not in. */
void heap_remove(struct heap *h, struct heap_entry *e);
/* The earliest entry, or NULL. */
struct heap_entry *heap_first(const struct heap *h);

#endif
