/*
 * A pool of equal buffers: those given back are kept for the next taker, up
 * to a cap, so that the steady state allocates nothing. Embedded by its owner.
 */
#ifndef DAEMON_IO_BUFS_H
#define DAEMON_IO_BUFS_H

#include <stddef.h>
#include <stdint.h>

struct bufs {
	size_t size;
	uint32_t keep; /* most unused ones kept */
	uint32_t unused;
	void *list;
};

/* size is at least that of a pointer. */
void bufs_init(struct bufs *bufs, size_t size, uint32_t keep);
void bufs_fini(struct bufs *bufs); /* those in use are their takers' */
/* Not zeroed. NULL without memory. */
void *bufs_get(struct bufs *bufs);
void bufs_put(struct bufs *bufs, void *buf); /* takes NULL */

#endif
