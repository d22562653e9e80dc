/*
 * The end of connections whose peers may still be sending: their bytes are
 * thrown away for a bounded while, on a descriptor of our own.
 */
#include "daemon/io/http_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_US    1000000
#define LINGER_BYTES (1024 * 1024)
#define LINGER_MAX   64

struct http_linger {
	struct http *http;
	struct event event;
	struct loop_timer *timer;
	int fd;
	size_t discarded;
	TAILQ_ENTRY(http_linger) link;
};

static void
linger_free(struct http_linger *l)
{
	TAILQ_REMOVE(&l->http->lingers, l, link);
	l->http->linger_count--;
	event_del(&l->event);
	loop_timer_free(l->timer);
	close(l->fd);
	free(l);
}

static void
over(void *arg)
{
	linger_free(arg);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct http_linger *l = arg;
	char room[16384];
	const ssize_t n = read(fd, room, sizeof(room));

	(void)what;
	if (n > 0)
		l->discarded += (size_t)n;
	else if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || l->discarded >= LINGER_BYTES)
		linger_free(l);
}

/* Where descriptors are few, others need them more. */
static bool
may_linger(const struct http *h)
{
	struct rlimit lim;

	return h->linger_count < LINGER_MAX &&
	       getrlimit(RLIMIT_NOFILE, &lim) == 0 &&
	       h->linger_count < lim.rlim_cur / 16;
}

void
http_linger(struct http *h, int fd)
{
	const int own = may_linger(h) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	struct http_linger *l = own >= 0 ? calloc(1, sizeof(*l)) : NULL;

	if (l != NULL)
		l->timer = loop_timer_new(h->loop, over, l);
	if (l == NULL || l->timer == NULL) {
		free(l);
		if (own >= 0)
			close(own);
		return;
	}
	l->http = h;
	l->fd = own;
	TAILQ_INSERT_TAIL(&h->lingers, l, link);
	h->linger_count++;
	shutdown(own, SHUT_WR);
	event_assign(&l->event, loop_base(h->loop), own, EV_READ | EV_PERSIST,
	    on_readable, l);
	loop_timer_set(l->timer, loop_now() + LINGER_US);
	if (event_add(&l->event, NULL) != 0)
		linger_free(l);
}

void
http_linger_free_all(struct http *h)
{
	while (!TAILQ_EMPTY(&h->lingers))
		linger_free(TAILQ_FIRST(&h->lingers));
}
