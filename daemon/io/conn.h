/*
 * One accepted Unix stream connection: frames in, frames out. Raw events, no
 * buffer while idle, one shared read buffer; a partial frame or unsent output
 * takes a pooled buffer. A frame that was started must be finished within
 * CONN_FRAME_TIMEOUT_US; a peer that does not read is no longer read from.
 * Users have turns, each uid the same, and its connections share them.
 *
 * A connection is closed by its peer, by conn_error(), by conn_close(), or
 * after conn_finish() when all is sent. At the end of that turn the closed hook
 * runs, once, and the memory goes, so hooks may close any connection at any
 * time. Nobody uses a connection after its closed hook. A peer that stops
 * sending (half-close) has closed.
 */
#ifndef DAEMON_IO_CONN_H
#define DAEMON_IO_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/io/loop.h"
#include "proto/ipc.h"

#define CONN_FRAME_TIMEOUT_US 5000000
/* Unsent bytes at which a connection stops being read. */
#define CONN_OUT_HIGH (256 * 1024)

struct conn;
struct conn_pool;

struct conn_peer {
	pid_t pid; /* for display; 0 across pid namespaces; decides nothing */
	uid_t uid;
	gid_t gid; /* primary */
};

/* Of a connected socket; uid and gid -1 for one that is no Unix socket. 0, or
 * -1 with errno. */
int conn_peer_of(int fd, struct conn_peer *peer);

struct conn_hooks {
	/* One whole frame; payload borrows the read buffer. */
	void (*frame)(void *arg, struct conn *conn, const struct ipc_head *head,
	    struct reader *payload);
	/* Once, whatever ended it; conn is still valid, sends go nowhere. */
	void (*closed)(void *arg, struct conn *conn);
	/*
	 * May be NULL. May its next frame be taken now? When not, its bytes
	 * stay where they are and it is asked again later: a user that asks for
	 * too much waits, and nobody with it. Only tells.
	 */
	bool (*hungry)(void *arg, struct conn *conn);
	/* May be NULL. The bytes made no frame: a length out of range
	 * (IPC_ERR_MALFORMED) or a frame not finished in time (IPC_ERR_SLOW);
	 * the ERROR is being sent. */
	void (*broken)(void *arg, struct conn *conn, enum ipc_error_code code);
};

/* What all connections share: buffers, the reaper. Borrows the loop. */
struct conn_pool *conn_pool_new(struct loop *loop);
/* Closes what is left, without hooks. */
void conn_pool_free(struct conn_pool *pool);
/* Instead of CONN_FRAME_TIMEOUT_US, before the first connection; for tests. */
void conn_pool_set_frame_timeout(struct conn_pool *pool, int64_t us);

/*
 * Takes the descriptor on success. Borrows hooks. Reads the peer's
 * credentials. NULL with errno set; the descriptor is then the caller's.
 */
struct conn *conn_new(
    struct conn_pool *pool, int fd, const struct conn_hooks *hooks, void *arg);

const struct conn_peer *conn_peer(const struct conn *conn);
/* Is the peer in this group, primary or supplementary (SO_PEERGROUPS)? */
bool conn_in_group(const struct conn *conn, gid_t gid);
uint64_t conn_serial(const struct conn *conn); /* unique in this process */
/* A place for the owner's state. */
void conn_set_user(struct conn *conn, void *user);
void *conn_user(const struct conn *conn);

/*
 * Room for one frame: a writer over IPC_MAX_FRAME bytes, never NULL; encode
 * into it and commit. Leaves at the end of the turn. After the close it still
 * gives room, and the commit drops it. A commit without memory closes the
 * connection.
 */
struct writer *conn_begin(struct conn *conn);
void conn_commit(struct conn *conn);

/* Sends an ERROR frame, flushes what it can, closes. */
void conn_error(
    struct conn *conn, uint64_t id, enum ipc_error_code code, const char *text);
/* Flushes what it can without waiting, closes. */
void conn_close(struct conn *conn);
/* No more frames are taken, what comes in is thrown away; output goes on. For
 * draining. */
void conn_stop_reading(struct conn *conn);
/* The same, and it is closed as soon as the kernel has taken all output. What
 * is committed after it is dropped. A peer that does not read is closed after
 * CONN_FRAME_TIMEOUT_US all the same. */
void conn_finish(struct conn *conn);
/* Is there no use in sending any more? After conn_error(), conn_close(),
 * conn_finish(), and when the peer has closed. */
bool conn_closing(const struct conn *conn);
/*
 * In a frame or hungry hook: loop_now(), as it was when the frame came up, or
 * some dozen small frames before.
 */
int64_t conn_now(const struct conn *conn);
/*
 * loop_now() time after which the frame of the current hook was written: when
 * the socket was last seen empty. INT64_MIN when it never was.
 */
int64_t conn_empty_at(const struct conn *conn);
/* Bytes not yet taken by the kernel. */
size_t conn_unsent(const struct conn *conn);

#endif
