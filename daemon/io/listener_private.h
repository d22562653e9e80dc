/*
 * What the files of listener share: listener.c (accepting, and the life of one)
 * and listener_file.c (the file of a Unix socket). Nobody else includes this.
 */
#ifndef DAEMON_IO_LISTENER_PRIVATE_H
#define DAEMON_IO_LISTENER_PRIVATE_H

#include <stdbool.h>
#include <sys/un.h>

#include <event2/event_struct.h>

#include "daemon/io/listener.h"

struct listener {
	struct loop *loop;
	listener_accept_fn *accepted;
	void *arg;
	int lock;
	int fd;
	bool bound;   /* dev and ino are those of our socket */
	bool adopted; /* the descriptor and the file are somebody else's */
	bool tcp;     /* no file: the path is only what it is called */
	bool started;
	bool accepting;
	dev_t dev;
	ino_t ino;
	gid_t usual; /* the group that it was made with */
	uint64_t pauses;
	struct event readable;
	struct loop_timer *resume;
	struct sockaddr_un addr;
	struct sockaddr_un place; /* where it is until it listens */
};

/* What is wrong with it; returns -1. listener.c */
int listener_fail(const struct listener *listener, char err[LISTENER_ERR_MAX],
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* listener_file.c: 0, or -1 with err set. */
/* Takes the lock, clears the path and binds, beside it. */
int listener_file_make(struct listener *listener, mode_t mode, gid_t gid,
    char err[LISTENER_ERR_MAX]);
/* To where clients look. -1 with errno set. */
int listener_file_show(const struct listener *listener);
/* Whatever of it is there, if it is still this socket's. */
void listener_file_remove(const struct listener *listener);

#endif
