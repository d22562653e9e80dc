/*
 * The unsent output of one connection: a chain of pooled buffers, written in
 * place and sent with one gathering call. Holds no buffer while it is empty
 * and was sent. Embedded in the connection.
 */
#ifndef DAEMON_IO_OUTQ_H
#define DAEMON_IO_OUTQ_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/io/bufs.h"

#define OUTQ_BUF_SIZE 32768 /* what the pool's buffers must have */

struct outq_buf;

struct outq {
	struct outq_buf *first;
	struct outq_buf *last;
	size_t unsent;
};

void outq_init(struct outq *q);
void outq_clear(struct outq *q, struct bufs *bufs);
/*
 * Room for at least need bytes (no more than IPC_MAX_FRAME) behind what is
 * queued; *cap says how many. NULL without memory.
 */
uint8_t *outq_room(struct outq *q, struct bufs *bufs, size_t need, size_t *cap);
/* The first len bytes of the last room have been written. */
void outq_add(struct outq *q, size_t len);
/*
 * One call to the kernel. Returns 0, also when it took only a part or nothing
 * for now, or the errno that ends the connection.
 */
int outq_send(struct outq *q, struct bufs *bufs, int fd);

#endif
