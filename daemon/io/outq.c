/*
 * Bytes between start and end of each buffer are unsent; only the last buffer
 * is written to. Owned by its connection. Invariant: unsent is the sum over
 * the chain.
 */
#include "daemon/io/outq.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/ipc.h"

#define IOVS 16

struct outq_buf {
	struct outq_buf *next;
	uint32_t start;
	uint32_t end;
	uint8_t bytes[];
};

#define ROOM (OUTQ_BUF_SIZE - sizeof(struct outq_buf))
_Static_assert(ROOM >= IPC_MAX_FRAME, "a buffer holds any frame");

void
outq_init(struct outq *q)
{
	*q = (struct outq){0};
}

static void
drop_first(struct outq *q, struct bufs *bufs)
{
	struct outq_buf *buf = q->first;

	q->first = buf->next;
	if (q->first == NULL)
		q->last = NULL;
	bufs_put(bufs, buf);
}

void
outq_clear(struct outq *q, struct bufs *bufs)
{
	while (q->first != NULL)
		drop_first(q, bufs);
	q->unsent = 0;
}

uint8_t *
outq_room(struct outq *q, struct bufs *bufs, size_t need, size_t *cap)
{
	struct outq_buf *buf = q->last;

	assert(need <= ROOM && bufs->size == OUTQ_BUF_SIZE);
	if (buf == NULL || ROOM - buf->end < need) {
		buf = bufs_get(bufs);
		if (buf == NULL)
			return NULL;
		buf->next = NULL;
		buf->start = 0;
		buf->end = 0;
		if (q->last != NULL)
			q->last->next = buf;
		else
			q->first = buf;
		q->last = buf;
	}
	*cap = ROOM - buf->end;
	return buf->bytes + buf->end;
}

void
outq_add(struct outq *q, size_t len)
{
	assert(q->last != NULL && len <= ROOM - q->last->end);
	q->last->end += (uint32_t)len;
	q->unsent += len;
}

static void
took(struct outq *q, struct bufs *bufs, size_t len)
{
	q->unsent -= len;
	while (q->first != NULL) {
		size_t here = q->first->end - q->first->start;

		if (len < here) {
			q->first->start += (uint32_t)len;
			return;
		}
		len -= here;
		drop_first(q, bufs);
	}
}

int
outq_send(struct outq *q, struct bufs *bufs, int fd)
{
	struct iovec iov[IOVS];
	struct msghdr msg = {.msg_iov = iov};
	ssize_t n;

	if (q->unsent == 0) { /* at most room that was not used */
		outq_clear(q, bufs);
		return 0;
	}
	for (struct outq_buf *b = q->first; b != NULL; b = b->next) {
		if (msg.msg_iovlen == IOVS)
			break;
		iov[msg.msg_iovlen++] = (struct iovec){
		    .iov_base = b->bytes + b->start,
		    .iov_len = b->end - b->start,
		};
	}
	n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : errno;
	took(q, bufs, (size_t)n);
	return 0;
}
