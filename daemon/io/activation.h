/*
 * Listening sockets that the process was started with: LISTEN_PID, LISTEN_FDS
 * and LISTEN_FDNAMES of sd_listen_fds(3). Owned by the agent. Invariant: a
 * descriptor stays open, and its socket listens, until activation_free(), even
 * while nobody accepts from it.
 */
#ifndef DAEMON_IO_ACTIVATION_H
#define DAEMON_IO_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

#define ACTIVATION_MAX     128
#define ACTIVATION_ERR_MAX 512

struct activation;

/* Are two absolute paths of sockets those of one file? */
typedef bool activation_same_fn(const char *a, const char *b);

/*
 * Takes the sockets and the variables out of the environment; without any, or
 * with those of another process, there are none. Each must be a listening
 * Unix stream socket with an absolute path; an inet one may serve what is
 * called gateway.NAME. NULL with err set to one line.
 */
struct activation *activation_new(char err[ACTIVATION_ERR_MAX]);
/* Closes them. Takes NULL. */
void activation_free(struct activation *activation);

/*
 * The socket for what is called name and listens at address, which is a path,
 * ADDRESS:PORT or [ADDRESS]:PORT: *fd, or -1 when there is none. Borrowed:
 * whoever accepts from it leaves it open, unlinked and unchanged, and may take
 * it again later. A name that systemd gives by default, that of the socket
 * unit, stands for any. -1 with err set when it has this name and listens
 * elsewhere, or this address and another name.
 */
int activation_take(struct activation *activation, const char *name,
    const char *address, activation_same_fn *same, int *fd,
    char err[ACTIVATION_ERR_MAX]);

/* Has each of them been taken at some time? Else -1 with err set. */
int activation_all_taken(
    const struct activation *activation, char err[ACTIVATION_ERR_MAX]);

#endif
