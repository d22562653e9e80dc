/*
 * The inside of connections, for the conn files only: what one is, what all
 * of one pool share, the lists by which the tail of a turn and the alarm find
 * their work. Invariant: a connection is freed by the tail of a turn only,
 * after its closed hook, so that every callback and hook of the turn may
 * still hold it.
 */
#ifndef DAEMON_IO_CONNPOOL_H
#define DAEMON_IO_CONNPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "daemon/core/slab.h"
#include "daemon/io/bufs.h"
#include "daemon/io/conn.h"
#include "daemon/io/outq.h"

/* Of one read: a hundred checks. */
#define CONN_READ_MAX (8 * 1024)
#define CONN_IN_MAX   (CONN_READ_MAX + IPC_MAX_FRAME)

enum conn_state {
	CONN_OPEN,
	CONN_FINISH, /* only what is unsent leaves */
	CONN_LINGER, /* an ERROR leaves; what comes in is thrown away */
	CONN_CLOSED, /* on the reap list */
};

/* Why whole frames are kept. */
enum conn_backlog {
	BACKLOG_NONE,
	BACKLOG_ROOM, /* there is too much output */
	BACKLOG_TURN, /* its turn was over, or it is not hungry */
};

TAILQ_HEAD(conn_list, conn);

/* Of one uid: its connections that have something to read, first come first
 * served. Freed with its last connection. */
struct conn_line {
	struct conn_pool *pool;
	uid_t uid;
	uint32_t conns;   /* that there are */
	uint32_t waiting; /* of these, in the line */
	struct conn_list conns_waiting;
	LIST_ENTRY(conn_line) all_link;
	TAILQ_ENTRY(conn_line) turn_link; /* while somebody waits in it */
};

LIST_HEAD(conn_lines, conn_line);
TAILQ_HEAD(conn_turns, conn_line);

struct conn {
	struct conn_pool *pool;
	const struct conn_hooks *hooks;
	void *arg;
	void *user;
	uint64_t serial;
	struct conn_peer peer;
	struct conn_line *line;
	int fd;
	enum conn_state state;
	bool told;    /* the closed hook has run */
	bool stopped; /* conn_stop_reading() */
	bool paused;  /* too much is unsent */
	enum conn_backlog backlog;
	bool readable; /* there may be something to read */
	bool more;     /* a read that is not full may not be the last */
	bool eof;
	bool waiting; /* in its line, and not read meanwhile */
	bool dirty;
	bool reaping;
	uint8_t *in; /* kept input; usually a partial frame or NULL */
	uint32_t in_len;
	uint32_t in_cap;
	uint32_t discarded;
	int64_t empty_at; /* what is being read was written after this */
	struct outq out;
	uint32_t mask; /* of connwatch */
	int64_t deadline;
	struct conn_list *timed; /* the list with that deadline, or NULL */
	TAILQ_ENTRY(conn) all_link;
	TAILQ_ENTRY(conn) timed_link;
	TAILQ_ENTRY(conn) waiting_link;
	TAILQ_ENTRY(conn) dirty_link;
	TAILQ_ENTRY(conn) reap_link;
};

struct conn_pool {
	struct loop *loop;
	struct event told; /* of connwatch */
	bool watching;     /* it is there */
	struct loop_task tail;
	struct loop_timer *alarm;
	int64_t alarm_at; /* INT64_MAX: not set */
	int64_t frame_timeout;
	struct event serve; /* at the end of this turn */
	struct loop_timer *next_turn;
	/* Who comes to wait now has the next turn. */
	bool served;
	uint32_t put_off;     /* turns in a row that served nobody */
	int64_t now;          /* when it was last looked at */
	uint64_t now_at;      /* what moved was then */
	uint32_t looks;       /* that were spared since */
	uint64_t moved;       /* bytes of frames in and out, ever */
	uint64_t turn_began;  /* what it was then */
	uint64_t share;       /* of each line in this turn */
	uint64_t share_began; /* and when the first of a line was read from */
	uint64_t serial;
	uint32_t turn_count;
	uint32_t lingering_count;
	struct slab slab;
	struct bufs frames; /* IPC_MAX_FRAME: partial frames */
	struct outq_bufs outs;
	struct conn_list all;
	struct conn_list
	    slow; /* with a started frame, or finishing; by deadline */
	struct conn_list lingering; /* by deadline */
	struct conn_lines lines;
	struct conn_turns turns; /* lines that wait, one share each */
	struct conn_list dirty;  /* with output of this turn */
	struct conn_list reap;   /* closed in this turn */
	struct writer writer;    /* between conn_begin() and commit */
	struct conn *writing;
	uint8_t in[CONN_IN_MAX];
	uint8_t room[IPC_MAX_FRAME]; /* the frame being written */
};

/* The clock is looked at again, if so much moved or was read since that it
 * matters. Before each read and each frame. */
void connpool_look_at_clock(struct conn_pool *pool);
/* Closed: no more callbacks; the tail runs the hook and frees it. */
void connpool_end(struct conn *conn);
/* conn_error(), and its owner is told: what came was no frame. */
void connpool_broken(
    struct conn *conn, enum ipc_error_code code, const char *text);
/* There is output to send at the end of the turn. */
void connpool_dirty(struct conn *conn);
/* There is a hook to call or a connection to free. */
void connpool_reap(struct conn *conn);
/* Moves to the end of slow or lingering, each of one constant timeout. */
void connpool_set_deadline(
    struct conn *conn, struct conn_list *list, int64_t after);
void connpool_untime(struct conn *conn);
/* All is said: its hook runs, what still comes in is thrown away. conn.c */
void conn_linger(struct conn *conn);
/* Throws away what came in once frames are taken no more. conn.c */
void conn_drop_input(struct conn *conn);

#endif
