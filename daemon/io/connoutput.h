/*
 * The output half of a connection: sending, and the balance between what is
 * unsent and what is read. For the conn files only.
 */
#ifndef DAEMON_IO_CONNOUTPUT_H
#define DAEMON_IO_CONNOUTPUT_H

#include "daemon/io/conn.h"

/* Unsent bytes at which a paused connection is read again. */
#define CONN_OUT_LOW (CONN_OUT_HIGH / 2)

/* Sends what the kernel takes; the rest waits for writability. */
void connoutput_flush(struct conn *conn);
/* There is room, or there may be. */
void connoutput_ready(struct conn *conn);
/* Pauses or resumes reading by how much is unsent. */
void connoutput_balance(struct conn *conn);

#endif
