/*
 * Reading and framing. What is kept goes to the front of the pool's buffer
 * and the next read behind it, so a frame is always in one piece. Invariant:
 * a started frame has a deadline, unless it is our output that keeps it
 * waiting.
 */
#include "daemon/io/conninput.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/io/connline.h"
#include "daemon/io/connoutput.h"
#include "daemon/io/connpool.h"

bool
conninput_open(const struct conn *conn)
{
	return conn->state == CONN_OPEN && !conn->stopped;
}

void
conninput_forget(struct conn *conn)
{
	if (conn->in_cap == IPC_MAX_FRAME)
		bufs_put(&conn->pool->frames, conn->in);
	else
		free(conn->in);
	conn->in = NULL;
	conn->in_len = 0;
	conn->in_cap = 0;
	conn->backlog = BACKLOG_NONE;
}

/* More than a frame is kept only for a peer that sends more than it may or
 * does not read: no pool. */
static int
keep_input(struct conn *conn, const uint8_t *bytes, size_t len)
{
	enum conn_backlog backlog = conn->backlog;

	if (len == 0 || len > conn->in_cap) {
		conninput_forget(conn);
		conn->backlog = backlog;
	}
	if (len == 0)
		return 0;
	if (conn->in == NULL) {
		conn->in_cap = len > IPC_MAX_FRAME ? len : IPC_MAX_FRAME;
		conn->in = len > IPC_MAX_FRAME ? malloc(len)
					       : bufs_get(&conn->pool->frames);
		if (conn->in == NULL)
			return -1;
	}
	memcpy(conn->in, bytes, len);
	conn->in_len = (uint32_t)len;
	return 0;
}

static void
bad_length(struct conn *conn, const uint8_t *bytes)
{
	char text[IPC_MAX_TEXT];
	struct reader r;

	reader_init(&r, bytes, sizeof(uint32_t));
	snprintf(text, sizeof(text),
	    "a frame of %u bytes: %d to %d are allowed", reader_u32(&r),
	    IPC_HEAD_LEN, IPC_MAX_FRAME);
	connpool_broken(conn, IPC_ERR_MALFORMED, text);
}

/* Is there too much output for another frame, even after sending some? */
static bool
too_full(struct conn *conn)
{
	if (conn->out.unsent < CONN_OUT_HIGH)
		return false;
	connoutput_flush(conn);
	return conn->out.unsent >= CONN_OUT_HIGH || !conninput_open(conn);
}

/* What keeps the next frame waiting? */
static enum conn_backlog
backlog_of(struct conn *conn)
{
	if (too_full(conn))
		return conninput_open(conn) ? BACKLOG_ROOM : BACKLOG_NONE;
	if (connline_enough(conn))
		return BACKLOG_TURN;
	return BACKLOG_NONE;
}

/* Returns how many bytes have been used up. */
static size_t
take_frames(struct conn *conn, const uint8_t *bytes, size_t len)
{
	size_t at = 0;
	struct ipc_head head;
	struct reader payload;

	conn->backlog = BACKLOG_NONE;
	while (conninput_open(conn)) {
		switch (ipc_frame(bytes + at, len - at, &head, &payload)) {
		case IPC_NEED_MORE:
			return at;
		case IPC_BAD:
			bad_length(conn, bytes + at);
			return at;
		case IPC_MESSAGE:
			break;
		}
		conn->backlog = backlog_of(conn);
		if (conn->backlog != BACKLOG_NONE || !conninput_open(conn))
			return at;
		at += head.length;
		conn->pool->moved += head.length;
		connpool_look_at_clock(conn->pool);
		conn->hooks->frame(conn->arg, conn, &head, &payload);
	}
	return at;
}

/*
 * The kernel ends a read behind descriptors, whatever follows them: it drops
 * them, since nothing here asks for any, and says so.
 */
static ssize_t
take_bytes(struct conn *conn, uint8_t *to)
{
	struct iovec iov = {.iov_base = to, .iov_len = CONN_READ_MAX};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	const ssize_t n = recvmsg(conn->fd, &msg, 0);

	conn->more = conn->more || (msg.msg_flags & MSG_CTRUNC) != 0;
	return n;
}

/*
 * Appends to what is in the pool's buffer. Notes the end of the stream, and
 * in *emptied whether that was all that the socket had.
 */
static size_t
receive(struct conn *conn, size_t have, bool *emptied)
{
	const ssize_t n = take_bytes(conn, conn->pool->in + have);
	const ssize_t full = conn->more ? 1 : CONN_READ_MAX;

	*emptied = n < full && (n >= 0 || errno == EAGAIN);
	conn->readable = !*emptied;
	if (n > 0)
		return have + (size_t)n;
	if (n == 0)
		conn->eof = true;
	else if (errno != EAGAIN && errno != EINTR)
		connpool_end(conn);
	return have;
}

static void
keep_rest(struct conn *conn, const uint8_t *bytes, size_t len, bool fresh)
{
	struct conn_pool *pool = conn->pool;

	if (keep_input(conn, bytes, len) != 0)
		conn_close(conn);
	else if (len == 0 || conn->backlog != BACKLOG_NONE || conn->paused)
		connpool_untime(conn);
	else if (fresh || conn->timed == NULL)
		connpool_set_deadline(conn, &pool->slow, pool->frame_timeout);
}

/* Nobody else tells it: not again of what it was told of. */
static void
wait_for_more(struct conn *conn)
{
	if (conn->backlog == BACKLOG_TURN ||
	    (conn->backlog == BACKLOG_NONE && conn->readable && !conn->paused))
		connline_wait(conn);
}

void
conninput_read(struct conn *conn)
{
	uint8_t *bytes = conn->pool->in;
	size_t have = conn->in_len;
	const int64_t now = conn->pool->now;
	bool emptied = false;
	size_t used;

	if (have > 0)
		memcpy(bytes, conn->in, have);
	if (conn->backlog == BACKLOG_NONE)
		have = receive(conn, have, &emptied);
	used = take_frames(conn, bytes, have);
	if (!conninput_open(conn))
		return; /* whoever stopped it has dropped the rest */
	if (emptied && used == have)
		conn->empty_at = now;
	keep_rest(conn, bytes + used, have - used, used > 0);
	if (conn->eof && conn->backlog == BACKLOG_NONE)
		conn_close(conn);
	if (!conninput_open(conn))
		return; /* or there was no memory for the rest */
	connoutput_balance(conn);
	wait_for_more(conn);
}

void
conninput_ready(struct conn *conn, bool more)
{
	if (!conninput_open(conn)) {
		conn_drop_input(conn);
		return;
	}
	conn->readable = true;
	conn->more = conn->more || more;
	if (!conn->paused)
		connline_wait(conn);
}
