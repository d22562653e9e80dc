/*
 * Sending. Invariant: after a flush it is told of room exactly while bytes are
 * unsent or whole frames wait for room, and not for their turn by now, so that
 * a paused connection is always woken.
 */
#include "daemon/io/connoutput.h"

#include <sys/socket.h>

#include "daemon/io/conninput.h"
#include "daemon/io/connline.h"
#include "daemon/io/connpool.h"
#include "daemon/io/connwatch.h"

/* Now it is not the peer who keeps a started frame waiting. */
static void
pause_reading(struct conn *conn)
{
	conn->paused = true;
	connpool_untime(conn);
}

static void
resume_reading(struct conn *conn)
{
	conn->paused = false;
	if (conn->readable && !conn->stopped)
		connline_wait(conn);
	if (conn->in_len > 0)
		connpool_set_deadline(
		    conn, &conn->pool->slow, conn->pool->frame_timeout);
}

void
connoutput_balance(struct conn *conn)
{
	if (conn->state != CONN_OPEN)
		return;
	if (!conn->paused && conn->out.unsent >= CONN_OUT_HIGH)
		pause_reading(conn);
	else if (conn->paused && conn->backlog == BACKLOG_NONE &&
		 conn->out.unsent <= CONN_OUT_LOW)
		resume_reading(conn);
}

/* The last of it has left: the peer may see the end. */
static void
linger_sent(struct conn *conn)
{
	if (conn->eof)
		connpool_end(conn);
	else
		(void)shutdown(conn->fd, SHUT_WR);
}

void
connoutput_flush(struct conn *conn)
{
	if (outq_send(&conn->out, &conn->pool->outs, conn->fd) != 0) {
		connpool_end(conn); /* EPIPE: there is no peer any more */
		return;
	}
	if (conn->state == CONN_FINISH && conn->out.unsent == 0)
		conn_linger(conn);
	if (conn->state == CONN_LINGER && conn->out.unsent == 0)
		linger_sent(conn);
	connoutput_balance(conn);
	if (conn->state == CONN_CLOSED)
		return;
	connwatch_room(
	    conn, conn->out.unsent > 0 ||
		      (conn->backlog == BACKLOG_ROOM && !conn->waiting));
}

void
connoutput_ready(struct conn *conn)
{
	connoutput_flush(conn);
	if (conn->backlog == BACKLOG_ROOM && !conn->waiting &&
	    conn->out.unsent <= CONN_OUT_LOW)
		connline_wait(conn);
}
