/*
 * Bytes between start and end of each buffer are unsent; only the last buffer
 * is written to. Owned by its connection. Invariant: unsent is the sum over
 * the chain, and no buffer in it is empty.
 */
#include "daemon/io/outq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/ipc.h"

#define IOVS 16
/* Some five decisions: a thousand connections with an answer each fit a cache,
 * and need not be given a page each. */
#define SMALL_SIZE 256
#define LARGE_SIZE 32768
#define KEEP_SMALL 1024
#define KEEP_LARGE 64

struct outq_buf {
	struct outq_buf *next;
	uint16_t start;
	uint16_t end;
	uint16_t room;
	uint8_t bytes[];
};

#define HEAD offsetof(struct outq_buf, bytes)
_Static_assert(LARGE_SIZE - HEAD >= IPC_MAX_FRAME, "a buffer holds any frame");
_Static_assert(LARGE_SIZE - HEAD <= UINT16_MAX, "and its places fit");

void
outq_bufs_init(struct outq_bufs *bufs)
{
	bufs_init(&bufs->small, SMALL_SIZE, KEEP_SMALL);
	bufs_init(&bufs->large, LARGE_SIZE, KEEP_LARGE);
}

void
outq_bufs_fini(struct outq_bufs *bufs)
{
	bufs_fini(&bufs->small);
	bufs_fini(&bufs->large);
}

void
outq_init(struct outq *q)
{
	*q = (struct outq){0};
}

static void
drop_first(struct outq *q, struct outq_bufs *bufs)
{
	struct outq_buf *buf = q->first;

	q->first = buf->next;
	if (q->first == NULL)
		q->last = NULL;
	bufs_put(
	    buf->room == SMALL_SIZE - HEAD ? &bufs->small : &bufs->large, buf);
}

void
outq_clear(struct outq *q, struct outq_bufs *bufs)
{
	while (q->first != NULL)
		drop_first(q, bufs);
	q->unsent = 0;
}

/* Another last buffer. NULL without memory. */
static struct outq_buf *
grow(struct outq *q, struct outq_bufs *bufs, size_t len)
{
	const bool small = q->first == NULL && len <= SMALL_SIZE - HEAD;
	struct outq_buf *buf = bufs_get(small ? &bufs->small : &bufs->large);

	if (buf == NULL)
		return NULL;
	*buf = (struct outq_buf){
	    .room = (small ? SMALL_SIZE : LARGE_SIZE) - HEAD,
	};
	if (q->last != NULL)
		q->last->next = buf;
	else
		q->first = buf;
	q->last = buf;
	return buf;
}

bool
outq_put(struct outq *q, struct outq_bufs *bufs, const void *bytes, size_t len)
{
	struct outq_buf *buf = q->last;

	assert(len <= IPC_MAX_FRAME);
	if (len == 0)
		return true;
	if (buf == NULL || (size_t)(buf->room - buf->end) < len)
		buf = grow(q, bufs, len);
	if (buf == NULL)
		return false;
	memcpy(buf->bytes + buf->end, bytes, len);
	buf->end = (uint16_t)(buf->end + len);
	q->unsent += len;
	return true;
}

static void
took(struct outq *q, struct outq_bufs *bufs, size_t len)
{
	q->unsent -= len;
	while (q->first != NULL) {
		size_t here = (size_t)(q->first->end - q->first->start);

		if (len < here) {
			q->first->start = (uint16_t)(q->first->start + len);
			return;
		}
		len -= here;
		drop_first(q, bufs);
	}
}

/* Without the price of a message header, which one buffer does not need. */
static ssize_t
send_one(const struct outq_buf *buf, int fd)
{
	return send(fd, buf->bytes + buf->start,
	    (size_t)(buf->end - buf->start), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t
send_chain(struct outq_buf *buf, int fd)
{
	struct iovec iov[IOVS];
	struct msghdr msg = {.msg_iov = iov};

	for (; buf != NULL && msg.msg_iovlen < IOVS; buf = buf->next) {
		iov[msg.msg_iovlen++] = (struct iovec){
		    .iov_base = buf->bytes + buf->start,
		    .iov_len = (size_t)(buf->end - buf->start),
		};
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int
outq_send(struct outq *q, struct outq_bufs *bufs, int fd)
{
	ssize_t n;

	if (q->unsent == 0)
		return 0;
	n = q->first == q->last ? send_one(q->first, fd)
				: send_chain(q->first, fd);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : errno;
	took(q, bufs, (size_t)n);
	return 0;
}
