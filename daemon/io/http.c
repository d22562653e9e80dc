/*
 * Connections and their times. Owned by the gateway. Invariants: a connection
 * is the library's, which closes it: we end one by shutting its socket down;
 * the library's own limit on connections, which would hang it, is out of reach.
 */
#include "daemon/io/http_private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/io/address.h"

/* Of a turn, for the library. */
#define TURN_US 1000

static bool
wants_more(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG wait;

	return MHD_get_timeout(h->mhd, &wait) == MHD_YES && wait == 0;
}

/* What it has taken in may want more than one run, each of which serves all
 * connections once; but others want theirs. */
static void
run(void *arg)
{
	struct http *h = arg;
	const int64_t until = loop_now() + TURN_US;
	bool more;

	do {
		MHD_run(h->mhd);
		more = wants_more(h);
	} while (more && loop_now() < until);
	if (more)
		loop_timer_set(h->again, loop_now());
}

/* At the end of the turn: on_event() is to see what there is before the library
 * has read it. */
static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd;
	(void)what;
	loop_defer(h->loop, &h->run);
}

void
http_enter(struct http_conn *c, enum http_state state)
{
	c->state = state;
	c->fresh = c->fresh && state == HTTP_STATE_IDLE;
	switch (state) {
	case HTTP_STATE_IDLE:
		loop_timer_set(c->timer, loop_now() + HTTP_IDLE_US);
		return;
	case HTTP_STATE_READING:
	case HTTP_STATE_SENDING:
		loop_timer_set(c->timer, loop_now() + HTTP_REQUEST_US);
		return;
	case HTTP_STATE_ASKED: /* whoever was asked answers in time */
		loop_timer_stop(c->timer);
		return;
	}
}

void
http_cut(struct http_conn *c)
{
	c->cut = true;
	shutdown(c->fd, SHUT_RDWR);
}

static void
late(void *arg)
{
	struct http_conn *c = arg;

	if (c->state != HTTP_STATE_IDLE)
		c->http->counters->http_slow++;
	http_cut(c);
}

/* What there is by now. */
static short
look(const struct http_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

/* The start of a request? What has come since the last turn and is less than
 * one the library may have read before us: then its next byte tells. */
static void
look_for_request(struct http_conn *c, short is)
{
	if (c->state == HTTP_STATE_IDLE && is == POLLIN)
		http_enter(c, HTTP_STATE_READING);
}

/* Edge-triggered, beside the library, which tells nothing of a request's first
 * byte, and looks at nothing while an answer is awaited. */
static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	const short is = look(c);

	(void)fd;
	(void)what;
	c->gone = (is & ~POLLIN) != 0; /* it sends no more, or all is over */
	look_for_request(c, is);
	if (c->state == HTTP_STATE_ASKED && c->gone)
		http_job_abandon(c->job);
}

static void
conn_free(struct http_conn *c)
{
	if (c == NULL)
		return;
	loop_timer_free(c->timer);
	free(c);
}

static void
begun(struct http *h, struct MHD_Connection *mhd, void **context)
{
	h->adding->mhd = mhd;
	*context = h->adding;
}

/* The library closes the descriptor when this returns. */
static void
ended(struct http *h, struct http_conn *c)
{
	if (c == NULL || c == h->adding)
		return; /* http_accept() sees to it */
	event_del(&c->event);
	TAILQ_REMOVE(&h->conns, c, link);
	if (c->state == HTTP_STATE_READING && !c->cut)
		h->counters->http_bad++;
	if (!c->gone && !c->cut)
		http_linger(h, c->fd);
	h->hooks->closed(c->user);
	conn_free(c);
}

static void
on_connection(void *arg, struct MHD_Connection *mhd, void **context,
    enum MHD_ConnectionNotificationCode code)
{
	switch (code) {
	case MHD_CONNECTION_NOTIFY_STARTED:
		begun(arg, mhd, context);
		return;
	case MHD_CONNECTION_NOTIFY_CLOSED:
		ended(arg, *context);
		return;
	}
}

static struct http_conn *
conn_new(struct http *h, int fd, void *user)
{
	struct http_conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->http = h;
	c->user = user;
	c->fd = fd;
	c->timer = loop_timer_new(h->loop, late, c);
	event_assign(&c->event, loop_base(h->loop), fd,
	    EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_event, c);
	if (c->timer != NULL)
		return c;
	conn_free(c);
	return NULL;
}

/* The library wants an address, if only to print it. */
static enum MHD_Result
add(struct http *h, struct http_conn *c)
{
	static const struct sockaddr_in nobody = {.sin_family = AF_INET};
	enum MHD_Result rc;

	h->adding = c;
	rc = MHD_add_connection(
	    h->mhd, c->fd, (const struct sockaddr *)&nobody, sizeof(nobody));
	h->adding = NULL;
	return rc;
}

struct http_conn *
http_accept(struct http *h, int fd, void *user)
{
	struct http_conn *c = conn_new(h, fd, user);

	if (c == NULL || event_add(&c->event, NULL) != 0) {
		conn_free(c);
		close(fd);
		return NULL;
	}
	if (add(h, c) != MHD_YES) {
		event_del(&c->event);
		conn_free(c);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&h->conns, c, link);
	c->fresh = true;
	http_enter(c, HTTP_STATE_IDLE);
	look_for_request(c, look(c));
	return c;
}

/* Nothing is read: it is a new connection, so there is room for the answer. */
void
http_refuse(struct http *h, int fd, const char *why)
{
	char text[512];
	const int len = snprintf(text, sizeof(text),
	    "HTTP/1.1 503 Service Unavailable\r\n"
	    "Content-Type: text/plain; charset=utf-8\r\n"
	    "Cache-Control: no-store\r\n"
	    "Retry-After: 1\r\n"
	    "Content-Length: %zu\r\n"
	    "Connection: close\r\n"
	    "\r\n"
	    "%s\n",
	    strlen(why) + 1, why);

	if (send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) == len)
		http_linger(h, fd);
	close(fd);
}

void
http_leave(struct http_conn *c)
{
	c->leaving = true;
	if (c->state == HTTP_STATE_IDLE)
		http_cut(c);
}

void
http_drain(struct http *h)
{
	struct http_conn *c;

	h->draining = true;
	TAILQ_FOREACH(c, &h->conns, link)
	{
		look_for_request(c, look(c));
	}
	run(h);
	TAILQ_FOREACH(c, &h->conns, link)
	{
		if (c->fresh)
			c->leaving = true;
		else
			http_leave(c);
	}
}

bool
http_expecting(const struct http *h)
{
	const struct http_conn *c;

	TAILQ_FOREACH(c, &h->conns, link)
	{
		if (!c->cut && (c->fresh || c->state == HTTP_STATE_READING))
			return true;
	}
	return false;
}

void
http_drain_fresh(struct http *h)
{
	struct http_conn *c;

	TAILQ_FOREACH(c, &h->conns, link)
	{
		http_leave(c);
	}
}

bool
http_sending(const struct http_conn *c)
{
	return c->state == HTTP_STATE_SENDING;
}

bool
http_idle(const struct http *h)
{
	const struct http_conn *c;

	TAILQ_FOREACH(c, &h->conns, link)
	{
		if (c->state != HTTP_STATE_IDLE && !c->cut)
			return false;
	}
	return true;
}

/* Paths and queries are taken as they were sent. */
static size_t
keep_escapes(void *arg, struct MHD_Connection *mhd, char *text)
{
	(void)arg;
	(void)mhd;
	return strlen(text);
}

static struct MHD_Daemon *
daemon_new(struct http *h)
{
	/* MHD_OPTION_CONNECTION_LIMIT: at it the library locks itself out. */
	return MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME,
	    0, NULL, NULL, http_job_handle, h, MHD_OPTION_CONNECTION_LIMIT,
	    (unsigned int)INT_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)HTTP_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
	    MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_UNESCAPE_CALLBACK,
	    keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, http_job_begin, h,
	    MHD_OPTION_NOTIFY_COMPLETED, http_job_end, h,
	    MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
}

static int
open_daemon(struct http *h)
{
	const union MHD_DaemonInfo *info;

	h->again = loop_timer_new(h->loop, run, h);
	if (h->again == NULL)
		return -1;
	h->mhd = daemon_new(h);
	if (h->mhd == NULL)
		return -1;
	info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL || info->epoll_fd < 0)
		return -1;
	event_assign(&h->readable, loop_base(h->loop), info->epoll_fd,
	    EV_READ | EV_PERSIST, on_readable, h);
	return event_add(&h->readable, NULL);
}

struct http *
http_new(struct loop *loop, const struct http_hooks *hooks,
    struct agent_counters *counters)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->loop = loop;
	h->hooks = hooks;
	h->counters = counters;
	loop_task_init(&h->run, run, h);
	TAILQ_INIT(&h->conns);
	TAILQ_INIT(&h->lingers);
	if (open_daemon(h) == 0)
		return h;
	http_free(h);
	return NULL;
}

/* The library must not be stopped while it waits for our answers. */
static void
close_all(struct http *h)
{
	struct http_conn *c;

	run(h); /* answers that are there */
	TAILQ_FOREACH(c, &h->conns, link)
	{
		if (c->state == HTTP_STATE_ASKED)
			http_job_abandon(c->job);
		http_cut(c);
	}
	MHD_run(h->mhd);
	MHD_stop_daemon(h->mhd);
}

void
http_free(struct http *h)
{
	if (h == NULL)
		return;
	if (event_initialized(&h->readable))
		event_del(&h->readable);
	if (h->mhd != NULL)
		close_all(h);
	loop_cancel(h->loop, &h->run);
	http_linger_free_all(h);
	loop_timer_free(h->again);
	free(h);
}
