/*
 * The unsent output of one connection: a chain of pooled buffers, the first of
 * them small, since most have an answer or two to send in a turn, and sent with
 * one gathering call. Holds no buffer while it is empty. Embedded in the
 * connection.
 */
#ifndef DAEMON_IO_OUTQ_H
#define DAEMON_IO_OUTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/io/bufs.h"

struct outq_buf;

struct outq {
	struct outq_buf *first;
	struct outq_buf *last;
	size_t unsent;
};

/* The buffers of all queues of a pool. */
struct outq_bufs {
	struct bufs small;
	struct bufs large;
};

void outq_bufs_init(struct outq_bufs *bufs);
void outq_bufs_fini(struct outq_bufs *bufs);

void outq_init(struct outq *q);
void outq_clear(struct outq *q, struct outq_bufs *bufs);
/* Queues a copy of at most IPC_MAX_FRAME bytes. False without memory, and then
 * nothing of them. */
bool outq_put(
    struct outq *q, struct outq_bufs *bufs, const void *bytes, size_t len);
/*
 * One call to the kernel. Returns 0, also when it took only a part or nothing
 * for now, or the errno that ends the connection.
 */
int outq_send(struct outq *q, struct outq_bufs *bufs, int fd);

#endif
