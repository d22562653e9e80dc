/*
 * Slots are carved from chunks and never given back to the allocator before
 * slab_fini(); the list of free ones runs through the slots themselves.
 */
#include "daemon/core/slab.h"

#include <assert.h>
#include <stdlib.h>

#define ALIGN 16

/* The union pads the header, so that the first slot is aligned as well. */
struct slab_chunk {
	union {
		struct slab_chunk *next;
		unsigned char pad[ALIGN];
	};
	_Alignas(ALIGN) unsigned char slots[];
};

struct free_slot {
	struct free_slot *next;
};

void
slab_init(struct slab *s, size_t size, uint32_t per_chunk, uint32_t cap)
{
	assert(size > 0 && size < SIZE_MAX / 4);
	assert(per_chunk > 0 && per_chunk < SIZE_MAX / 4 / (size + ALIGN));
	*s = (struct slab){
	    .size = (size + ALIGN - 1) / ALIGN * ALIGN,
	    .per_chunk = per_chunk,
	    .cap = cap,
	};
}

void
slab_fini(struct slab *s)
{
	struct slab_chunk *chunk;

	while ((chunk = s->chunks) != NULL) {
		s->chunks = chunk->next;
		free(chunk);
	}
	*s = (struct slab){0};
}

static void
push(struct slab *s, void *slot)
{
	struct free_slot *f = slot;

	f->next = s->free;
	s->free = f;
}

/* Only called when every slot there is is in use. */
static int
grow(struct slab *s)
{
	struct slab_chunk *chunk;
	uint32_t slots = s->cap - s->in_use;

	if (slots > s->per_chunk)
		slots = s->per_chunk;
	chunk = malloc(sizeof(*chunk) + slots * s->size);
	if (chunk == NULL)
		return -1;
	chunk->next = s->chunks;
	s->chunks = chunk;
	while (slots-- > 0) /* the lowest address comes out first */
		push(s, chunk->slots + slots * s->size);
	return 0;
}

void *
slab_get(struct slab *s)
{
	struct free_slot *f;

	if (s->in_use >= s->cap)
		return NULL;
	if (s->free == NULL && grow(s) != 0)
		return NULL;
	f = s->free;
	s->free = f->next;
	s->in_use++;
	return f;
}

void
slab_put(struct slab *s, void *slot)
{
	if (slot == NULL)
		return;
	assert(s->in_use > 0);
	s->in_use--;
	push(s, slot);
}
