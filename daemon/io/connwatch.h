/*
 * What the kernel has to tell of the connections of a pool: that something came
 * in, that there is room to write, that the peer has gone. For the conn files
 * only.
 */
#ifndef DAEMON_IO_CONNWATCH_H
#define DAEMON_IO_CONNWATCH_H

#include <stdbool.h>

struct conn;
struct conn_pool;

/* Of a pool that has its loop. 0, or -1 with errno set. */
int connwatch_init(struct conn_pool *pool);
/* Takes a pool whose init has failed or never ran, all zeros. */
void connwatch_fini(struct conn_pool *pool);
/*
 * From here on conninput_ready() is told once each time that something has
 * come: who does not read all of it remembers so. 0, or -1 with errno set.
 */
int connwatch_start(struct conn *conn);
/*
 * conninput_ready() is told in every turn in which there is something: for one
 * whose input is thrown away. What fails ends the connection, here and below.
 */
void connwatch_level(struct conn *conn);
/* conninput_ready() is told no more: the stream has ended. */
void connwatch_deaf(struct conn *conn);
/*
 * Is connoutput_ready() told when there is room? Each call that says so has it
 * told in the next turn, if there is room by then.
 */
void connwatch_room(struct conn *conn, bool wanted);
/* Nothing is told any more. */
void connwatch_stop(struct conn *conn);

#endif
