/*
 * The lines in which connections wait to be read from, one of each uid. For
 * the conn files only.
 */
#ifndef DAEMON_IO_CONNLINE_H
#define DAEMON_IO_CONNLINE_H

#include <stdbool.h>
#include <sys/types.h>

struct conn;
struct conn_line;
struct conn_pool;

/* The line of a uid, with one connection more; NULL without memory. */
struct conn_line *connline_get(struct conn_pool *pool, uid_t uid);
/* One less. Takes NULL. */
void connline_put(struct conn_line *line);
/* Into its line, last: it is read from when it has its turn. */
void connline_wait(struct conn *conn);
void connline_unwait(struct conn *conn);
/* A share begins: of what is read from here on. */
void connline_share(struct conn_pool *pool);
/* Is it over, or is the connection not hungry? */
bool connline_enough(struct conn *conn);
/* Whoever waits may be hungry again: there is another turn. */
void connline_again(struct conn_pool *pool);
/* Of the pool's event and its timer; arg is the pool. */
void connline_serve(int fd, short what, void *arg);
void connline_turn(void *arg);

#endif
