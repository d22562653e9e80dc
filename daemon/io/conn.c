/*
 * The life of one connection, as its owner sees it: opening, its peer, frames
 * out, the ways to end it. Owned by its pool.
 */
#include "daemon/io/conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/io/conninput.h"
#include "daemon/io/connline.h"
#include "daemon/io/connpool.h"
#include "daemon/io/connwatch.h"

#define LINGER_US    1000000 /* after the last of it, for the peer to read */
#define LINGER_BYTES (256 * 1024)
#define LINGER_MAX   64 /* connections; over it the oldest goes */
#define GROUPS       64 /* usual most of a process */

int
conn_peer_of(int fd, struct conn_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -1;
	peer->pid = cred.pid;
	peer->uid = cred.uid;
	peer->gid = cred.gid;
	return 0;
}

static bool
make_nonblocking(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && ((flags & O_NONBLOCK) != 0 ||
				 fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

struct conn *
conn_new(
    struct conn_pool *pool, int fd, const struct conn_hooks *hooks, void *arg)
{
	struct conn_peer peer;
	struct conn_line *line;
	struct conn *conn;

	if (conn_peer_of(fd, &peer) != 0 || !make_nonblocking(fd))
		return NULL;
	line = connline_get(pool, peer.uid);
	conn = line != NULL ? slab_get(&pool->slab) : NULL;
	if (conn == NULL) {
		connline_put(line);
		errno = ENOMEM;
		return NULL;
	}
	*conn = (struct conn){
	    .pool = pool,
	    .hooks = hooks,
	    .arg = arg,
	    .peer = peer,
	    .line = line,
	    .fd = fd,
	    .state = CONN_OPEN,
	    .empty_at = INT64_MIN,
	};
	outq_init(&conn->out);
	if (connwatch_start(conn) != 0) {
		connline_put(line);
		slab_put(&pool->slab, conn);
		return NULL;
	}
	conn->serial = ++pool->serial;
	TAILQ_INSERT_TAIL(&pool->all, conn, all_link);
	return conn;
}

const struct conn_peer *
conn_peer(const struct conn *conn)
{
	return &conn->peer;
}

static bool
among(const gid_t *groups, socklen_t bytes, gid_t gid)
{
	for (size_t i = 0; i < bytes / sizeof(*groups); i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}

bool
conn_in_group(const struct conn *conn, gid_t gid)
{
	gid_t some[GROUPS];
	socklen_t len = sizeof(some);
	gid_t *all;
	bool found = false;

	if (gid == conn->peer.gid)
		return true;
	if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERGROUPS, some, &len) == 0)
		return among(some, len, gid);
	if (errno != ERANGE)
		return false;
	all = malloc(len); /* the kernel has said how long the list is */
	if (all != NULL &&
	    getsockopt(conn->fd, SOL_SOCKET, SO_PEERGROUPS, all, &len) == 0)
		found = among(all, len, gid);
	free(all);
	return found;
}

uint64_t
conn_serial(const struct conn *conn)
{
	return conn->serial;
}

void
conn_set_user(struct conn *conn, void *user)
{
	conn->user = user;
}

void *
conn_user(const struct conn *conn)
{
	return conn->user;
}

bool
conn_closing(const struct conn *conn)
{
	return conn->state != CONN_OPEN;
}

int64_t
conn_now(const struct conn *conn)
{
	return conn->pool->now;
}

int64_t
conn_empty_at(const struct conn *conn)
{
	return conn->empty_at;
}

size_t
conn_unsent(const struct conn *conn)
{
	return conn->out.unsent;
}

struct writer *
conn_begin(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;

	pool->writing = conn;
	writer_init(&pool->writer, pool->room, sizeof(pool->room));
	return &pool->writer;
}

void
conn_commit(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;
	const size_t len = writer_len(&pool->writer);

	assert(pool->writing == conn);
	pool->writing = NULL;
	if (conn->state != CONN_OPEN || !writer_ok(&pool->writer))
		return;
	if (!outq_put(&conn->out, &pool->outs, pool->room, len)) {
		conn_close(conn);
		return;
	}
	pool->moved += len;
	connpool_dirty(conn);
}

void
conn_close(struct conn *conn)
{
	if (conn->state == CONN_OPEN || conn->state == CONN_FINISH)
		connpool_end(conn);
}

/*
 * Closing at once would reset the connection under a peer that is still
 * sending, and what it was sent last might never be read: throw away its bytes
 * for a bounded while.
 */
static void
discard(struct conn *conn)
{
	ssize_t n = read(conn->fd, conn->pool->in, CONN_READ_MAX);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		conn->discarded += (uint32_t)n;
	if (n < 0 || conn->discarded >= LINGER_BYTES) {
		connpool_end(conn);
		return;
	}
	if (n > 0)
		return;
	conn->eof = true;
	connwatch_deaf(conn);
	if (conn->out.unsent == 0)
		connpool_end(conn);
}

/* Where descriptors are few, others need them more. */
static rlim_t
most_lingering(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 ||
	    lim.rlim_cur / 8 >= LINGER_MAX)
		return LINGER_MAX;
	return lim.rlim_cur / 8;
}

void
conn_linger(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;

	conn->state = CONN_LINGER;
	connline_unwait(conn);
	conninput_forget(conn);
	connpool_reap(conn); /* for its hook */
	connpool_set_deadline(conn, &pool->lingering, LINGER_US);
	connwatch_level(conn);
	while (pool->lingering_count > most_lingering())
		connpool_end(TAILQ_FIRST(&pool->lingering));
}

void
conn_error(
    struct conn *conn, uint64_t id, enum ipc_error_code code, const char *text)
{
	const struct ipc_error error = {
	    .code = (uint16_t)code, .text = ipc_text(text)};
	struct writer *w;

	if (conn->state != CONN_OPEN)
		return;
	w = conn_begin(conn);
	(void)ipc_enc_error(w, id, &error); /* there is room for any frame */
	conn_commit(conn);
	if (conn->state == CONN_OPEN) /* there was memory for it */
		conn_linger(conn);
}

/* What it asks for now it has to ask of another connection. */
static void
ignore(struct conn *conn)
{
	ssize_t n = read(conn->fd, conn->pool->in, CONN_READ_MAX);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_close(conn);
}

void
conn_drop_input(struct conn *conn)
{
	if (conn->state == CONN_LINGER)
		discard(conn);
	else
		ignore(conn);
}

void
conn_stop_reading(struct conn *conn)
{
	if (!conninput_open(conn))
		return;
	conn->stopped = true;
	conn->paused = false;
	connpool_untime(conn);
	connline_unwait(conn);
	conninput_forget(conn);
	connwatch_level(conn);
}

/* It has as long to read the rest as it would have to finish a frame. */
void
conn_finish(struct conn *conn)
{
	struct conn_pool *pool = conn->pool;

	conn_stop_reading(conn);
	if (conn->state != CONN_OPEN)
		return;
	conn->state = CONN_FINISH;
	connpool_set_deadline(conn, &pool->slow, pool->frame_timeout);
	connpool_dirty(conn); /* the end of the turn sees whether all is sent */
}
