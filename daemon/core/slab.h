/*
 * Fixed-size slots for requests, operations and connections: chunks are
 * allocated as the number in use first grows, up to a cap, and are kept.
 * Freed slots are used again last in, first out.
 */
#ifndef DAEMON_CORE_SLAB_H
#define DAEMON_CORE_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab_chunk;

struct slab {
	size_t size; /* of a slot, rounded up to 16 */
	uint32_t per_chunk;
	uint32_t cap; /* most slots in use */
	uint32_t in_use;
	void *free; /* list through the slots */
	struct slab_chunk *chunks;
};

void slab_init(struct slab *s, size_t size, uint32_t per_chunk, uint32_t cap);
void slab_fini(struct slab *s); /* frees every slot, used or not */
/* Not zeroed. NULL at the cap or without memory. */
void *slab_get(struct slab *s);
/* Takes NULL. */
void slab_put(struct slab *s, void *slot);

#endif
