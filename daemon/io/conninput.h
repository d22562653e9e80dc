/*
 * The input half of a connection: reads, frames, what is kept between reads.
 * For the conn files only.
 */
#ifndef DAEMON_IO_CONNINPUT_H
#define DAEMON_IO_CONNINPUT_H

#include <stdbool.h>

struct conn;

/* One bounded read, unless whole frames are kept, and a bounded number of
 * frames; epoll or the next turn comes back for more. */
void conninput_read(struct conn *conn);
/* libevent's callback: it waits for its turn. arg is the connection. */
void conninput_ready(int fd, short what, void *arg);
/* Drops what is kept. */
void conninput_forget(struct conn *conn);
/* Are frames taken at all? */
bool conninput_open(const struct conn *conn);

#endif
