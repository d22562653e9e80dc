/*
 * One listening socket and its path, or its address. Owned by whoever accepts.
 * One that was adopted is only accepted from.
 */
#include "daemon/io/listener_private.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "daemon/io/address.h"

#define ACCEPTS  64 /* of one wake-up */
#define PAUSE_US 100000

int
listener_fail(
    const struct listener *l, char err[LISTENER_ERR_MAX], const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(err, LISTENER_ERR_MAX, "%s: ", l->addr.sun_path);

	va_start(ap, fmt);
	vsnprintf(err + n, LISTENER_ERR_MAX - (size_t)n, fmt, ap);
	va_end(ap);
	return -1;
}

static int
set_path(struct listener *l, const char *path, char err[LISTENER_ERR_MAX])
{
	size_t len = strlen(path);

	l->addr.sun_family = AF_UNIX;
	if (len > 0 && len < sizeof(l->addr.sun_path)) {
		memcpy(l->addr.sun_path, path, len + 1);
		return 0;
	}
	snprintf(err, LISTENER_ERR_MAX,
	    "%.100s: a socket's path has 1 to %zu bytes", path,
	    sizeof(l->addr.sun_path) - 1);
	return -1;
}

static void
resume(void *arg)
{
	struct listener *l = arg;

	if (event_add(&l->readable, NULL) != 0)
		loop_timer_set(l->resume, loop_now() + PAUSE_US);
}

/* An error that stays would wake the loop for ever. */
static void
pause_accepting(struct listener *l)
{
	l->pauses++;
	event_del(&l->readable);
	loop_timer_set(l->resume, loop_now() + PAUSE_US);
}

/* Is there perhaps more? */
static bool
accept_one(struct listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		l->accepted(l->arg, fd);
		return true;
	}
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno != EAGAIN)
		pause_accepting(l);
	return false;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;
	unsigned int n = ACCEPTS;

	(void)fd;
	(void)what;
	l->accepting = true;
	while (n-- > 0 && accept_one(l))
		continue;
	l->accepting = false;
}

static int
attach(struct listener *l, char err[LISTENER_ERR_MAX])
{
	event_assign(&l->readable, loop_base(l->loop), l->fd,
	    EV_READ | EV_PERSIST, on_readable, l);
	l->resume = loop_timer_new(l->loop, resume, l);
	if (l->resume == NULL)
		return listener_fail(l, err, "cannot watch: out of memory");
	return 0;
}

int
listener_start(struct listener *l, char err[LISTENER_ERR_MAX])
{
	if (l->started)
		return 0;
	if (!l->adopted && listen(l->fd, LISTENER_BACKLOG) != 0)
		return listener_fail(
		    l, err, "cannot listen: %s", strerror(errno));
	if (event_add(&l->readable, NULL) != 0)
		return listener_fail(l, err, "cannot watch: out of memory");
	if (!l->adopted && !l->tcp && listener_file_show(l) != 0)
		return listener_fail(
		    l, err, "cannot take its place: %s", strerror(errno));
	l->started = true;
	return 0;
}

/* It has no descriptor yet. */
static struct listener *
listener_alloc(struct loop *loop, const char *path,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX])
{
	struct listener *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		snprintf(err, LISTENER_ERR_MAX, "%.100s: out of memory", path);
		return NULL;
	}
	l->loop = loop;
	l->accepted = accepted;
	l->arg = arg;
	l->lock = -1;
	l->fd = -1;
	if (set_path(l, path, err) == 0)
		return l;
	listener_free(l);
	return NULL;
}

struct listener *
listener_new(struct loop *loop, const char *path, mode_t mode, gid_t gid,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX])
{
	struct listener *l = listener_alloc(loop, path, accepted, arg, err);

	if (l == NULL)
		return NULL;
	if (listener_file_make(l, mode, gid, err) == 0 && attach(l, err) == 0)
		return l;
	listener_free(l);
	return NULL;
}

struct listener *
listener_adopt(struct loop *loop, int fd, const char *path,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX])
{
	struct listener *l = listener_alloc(loop, path, accepted, arg, err);

	if (l == NULL)
		return NULL;
	l->adopted = true;
	l->fd = fd;
	if (attach(l, err) == 0)
		return l;
	listener_free(l);
	return NULL;
}

/* One that is bound, to an address that a killed process may just have used. */
static int
bind_tcp(
    struct listener *l, const struct endpoint *at, char err[LISTENER_ERR_MAX])
{
	const int on = 1, type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	union address sa;
	const socklen_t len = address_to_sockaddr(at, &sa);

	l->fd = socket(sa.any.sa_family, type, 0);
	if (l->fd < 0)
		return listener_fail(l, err, "%s", strerror(errno));
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    (at->family == 6 && setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY,
				    &on, sizeof(on)) != 0))
		return listener_fail(l, err, "%s", strerror(errno));
	if (bind(l->fd, &sa.any, len) != 0)
		return listener_fail(
		    l, err, "cannot bind: %s", strerror(errno));
	return 0;
}

struct listener *
listener_new_tcp(struct loop *loop, const struct endpoint *at,
    listener_accept_fn *accepted, void *arg, char err[LISTENER_ERR_MAX])
{
	char text[ADDRESS_TEXT_MAX];
	struct listener *l =
	    listener_alloc(loop, address_format(at, text), accepted, arg, err);

	if (l == NULL)
		return NULL;
	l->tcp = true;
	if (bind_tcp(l, at, err) == 0 && attach(l, err) == 0)
		return l;
	listener_free(l);
	return NULL;
}

/* The path goes before the lock does: a successor finds it free. */
void
listener_free(struct listener *l)
{
	if (l == NULL)
		return;
	assert(!l->accepting);
	loop_timer_free(l->resume);
	if (event_initialized(&l->readable))
		event_del(&l->readable);
	listener_file_remove(l);
	if (l->fd >= 0 && !l->adopted)
		close(l->fd);
	if (l->lock >= 0)
		close(l->lock);
	free(l);
}

uint64_t
listener_pauses(const struct listener *l)
{
	return l->pauses;
}
