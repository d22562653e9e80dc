/*
 * The input half of a connection: reads, frames, what is kept between reads.
 * For the conn files only.
 */
#ifndef DAEMON_IO_CONNINPUT_H
#define DAEMON_IO_CONNINPUT_H

#include <stdbool.h>

struct conn;

/* One bounded read, unless whole frames are kept, and a bounded number of
 * frames; whoever has more waits in its line again. */
void conninput_read(struct conn *conn);
/* There is something to read: it waits for its turn. more: one read may not
 * find all of it, nor the end, which is told once. */
void conninput_ready(struct conn *conn, bool more);
/* Drops what is kept. */
void conninput_forget(struct conn *conn);
/* Are frames taken at all? */
bool conninput_open(const struct conn *conn);

#endif
