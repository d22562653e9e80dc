/*
 * A listening socket: one with a path, with the lock, the stale file of a
 * killed process, mode and group; one of TCP; or one that was passed to this
 * process. Owned by whoever accepts.
 */
#ifndef DAEMON_IO_LISTENER_H
#define DAEMON_IO_LISTENER_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/endpoint.h"
#include "daemon/io/loop.h"

#define LISTENER_BACKLOG 4096
#define LISTENER_ERR_MAX 256

struct listener;

/* Takes the descriptor (non-blocking, close-on-exec). */
typedef void listener_accept_fn(void *arg, int fd);

/*
 * Takes PATH.lock, probes the path: a live socket is an error ("in use"), a
 * dead one is unlinked, anything that is not a socket is left alone and an
 * error. Binds with the mode from the start (no moment with a wider one),
 * group gid unless (gid_t)-1. A missing directory is made, mode 0755, one
 * level only. The path stays free until listener_start(): where there is a
 * socket, somebody accepts. NULL with err set to one line that names the path,
 * or the file beside it or the folder that is at fault.
 */
struct listener *listener_new(struct loop *loop, const char *path, mode_t mode,
    gid_t gid, listener_accept_fn *accepted, void *arg,
    char err[LISTENER_ERR_MAX]);
/* Could one be made there, as far as that can be known without making it, and
 * of whichever user? Returns 0, or -1 with err set as listener_new() would. */
int listener_check(const char *path, char err[LISTENER_ERR_MAX]);
/*
 * One on a socket that listens already and is somebody else's (activation.h):
 * there is no lock, and the file, its mode and the descriptor stay as they are
 * at any time. Borrows fd.
 */
struct listener *listener_adopt(struct loop *loop, int fd, const char *path,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX]);
/* One of TCP. It has no file, no mode and no lock. */
struct listener *listener_new_tcp(struct loop *loop, const struct endpoint *at,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX]);
/* Listens and accepts from now on; again: nothing. Returns 0, or -1 with err
 * set. */
int listener_start(struct listener *listener, char err[LISTENER_ERR_MAX]);
/* Changes mode and group of the socket's file, before or after it listens,
 * unless it has none, or was adopted; gid (gid_t)-1: the group that it had
 * without one. Returns 0, or -1 with err set and both as they were. */
int listener_change(struct listener *listener, mode_t mode, gid_t gid,
    char err[LISTENER_ERR_MAX]);
/* Stops accepting and unlinks the path, if it is still this socket's, and was
 * not adopted. */
void listener_free(struct listener *listener); /* takes NULL */

/*
 * accept() failing with EMFILE, ENFILE, ENOBUFS or ENOMEM pauses accepting for
 * 100 ms; counted here.
 */
uint64_t listener_pauses(const struct listener *listener);

#endif
