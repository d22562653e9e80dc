/*
 * The list of unused buffers runs through the buffers themselves. Owned by
 * the pool of connections.
 */
#include "daemon/io/bufs.h"

#include <assert.h>
#include <stdlib.h>

struct unused {
	struct unused *next;
};

void
bufs_init(struct bufs *bufs, size_t size, uint32_t keep)
{
	assert(size >= sizeof(struct unused));
	*bufs = (struct bufs){.size = size, .keep = keep};
}

void
bufs_fini(struct bufs *bufs)
{
	struct unused *u;

	while ((u = bufs->list) != NULL) {
		bufs->list = u->next;
		free(u);
	}
	bufs->unused = 0;
}

void *
bufs_get(struct bufs *bufs)
{
	struct unused *u = bufs->list;

	if (u == NULL)
		return malloc(bufs->size);
	bufs->list = u->next;
	bufs->unused--;
	return u;
}

void
bufs_put(struct bufs *bufs, void *buf)
{
	struct unused *u = buf;

	if (u == NULL)
		return;
	if (bufs->unused >= bufs->keep) {
		free(u);
		return;
	}
	u->next = bufs->list;
	bufs->list = u;
	bufs->unused++;
}
