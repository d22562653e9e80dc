/*
 * Datagrams are answered where they are read; a TCP connection is a
 * bufferevent that is closed when idle, when it stops reading its answers, or
 * when a message is shorter than anything that gets an answer.
 */
#include "sandbox/dnsio.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "proto/err.h"
#include "sandbox/dnsd.h"

#define MAX_CONNS   32
#define MAX_QUERIES 64 /* read in one wake-up */
#define PORT_TRIES  16
#define BACKLOG     64
/* A connection with more than this unread is not listened to. */
#define OUTPUT_HIGH (256 << 10)

static const struct timeval idle_time = {5, 0};
static const struct timeval accept_pause = {1, 0};

struct conn {
	LIST_ENTRY(conn) link;
	struct dnsio *io;
	struct bufferevent *bev;
};

struct dnsio {
	struct event_base *base;
	const struct dnsd *zone;
	struct addr addr;
	int udp;
	struct event *udp_event;
	struct evconnlistener *listener;
	struct event *resume; /* accepting, after a lack of descriptors */
	LIST_HEAD(, conn) conns;
	size_t conn_count;
	uint8_t query[DNSD_UDP_MAX];
	uint8_t answer[DNSD_TCP_MAX];
};

static void
on_datagram(evutil_socket_t fd, short what, void *arg)
{
	struct dnsio *io = arg;
	struct addr from;
	ssize_t n;
	size_t len;
	int i;

	(void)what;
	for (i = 0; i < MAX_QUERIES; i++) {
		from.len = sizeof(from.ss);
		n = recvfrom(fd, io->query, sizeof(io->query), MSG_TRUNC,
		    (struct sockaddr *)&from.ss, &from.len);
		if (n < 0)
			return;
		if ((size_t)n > sizeof(io->query))
			continue;
		len = dnsd_answer(io->zone, io->query, (size_t)n, false,
		    io->answer, sizeof(io->answer));
		if (len > 0)
			(void)sendto(fd, io->answer, len, 0,
			    (struct sockaddr *)&from.ss, from.len);
	}
}

static void
close_conn(struct conn *c)
{
	struct dnsio *io = c->io;

	LIST_REMOVE(c, link);
	bufferevent_free(c->bev);
	free(c);
	if (io->conn_count-- == MAX_CONNS)
		evconnlistener_enable(io->listener);
}

/* Answers one whole query. False: the connection has to go. */
static bool
answer_one(struct conn *c, struct evbuffer *in, size_t len)
{
	struct dnsio *io = c->io;
	uint8_t *query, head[2];
	size_t used;

	evbuffer_drain(in, 2);
	query = evbuffer_pullup(in, (ev_ssize_t)len);
	if (query == NULL)
		return false;
	used = dnsd_answer(
	    io->zone, query, len, true, io->answer, sizeof(io->answer));
	evbuffer_drain(in, len);
	head[0] = (uint8_t)(used >> 8);
	head[1] = (uint8_t)used;
	return used > 0 && bufferevent_write(c->bev, head, 2) == 0 &&
	       bufferevent_write(c->bev, io->answer, used) == 0;
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	uint8_t head[2];
	size_t len;

	while (evbuffer_copyout(in, head, 2) == 2) {
		len = (size_t)head[0] << 8 | head[1];
		if (evbuffer_get_length(in) < 2 + len)
			return;
		if (len == 0 || !answer_one(c, in, len)) {
			close_conn(c);
			return;
		}
		if (evbuffer_get_length(bufferevent_get_output(bev)) >
		    OUTPUT_HIGH) {
			bufferevent_disable(bev, EV_READ);
			return;
		}
	}
}

/* All answers are out: go on with what was read meanwhile. */
static void
on_written(struct bufferevent *bev, void *arg)
{
	if (bufferevent_get_enabled(bev) & EV_READ)
		return;
	bufferevent_enable(bev, EV_READ);
	on_read(bev, arg);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	close_conn(arg); /* the end, an error or a timeout */
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int from_len, void *arg)
{
	struct dnsio *io = arg;
	struct conn *c = calloc(1, sizeof(*c));

	(void)from;
	(void)from_len;
	if (c != NULL)
		c->bev =
		    bufferevent_socket_new(io->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (c == NULL || c->bev == NULL) {
		free(c);
		close(fd);
		return;
	}
	c->io = io;
	LIST_INSERT_HEAD(&io->conns, c, link);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, 2 + DNSD_TCP_MAX);
	bufferevent_set_timeouts(c->bev, &idle_time, &idle_time);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	if (++io->conn_count == MAX_CONNS)
		evconnlistener_disable(listener);
}

static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct dnsio *io = arg;

	evconnlistener_disable(listener);
	event_add(io->resume, &accept_pause);
}

static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct dnsio *io = arg;

	(void)fd;
	(void)what;
	if (io->conn_count < MAX_CONNS)
		evconnlistener_enable(io->listener);
}

/* UDP first, then TCP on its port. Returns the TCP socket or RLA_ESYS. */
static int
bind_both(struct dnsio *io, const struct addr *wanted)
{
	int tcp, err;

	io->addr = *wanted;
	io->udp = addr_bind(&io->addr, SOCK_DGRAM);
	if (io->udp < 0)
		return RLA_ESYS;
	tcp = addr_bind(&io->addr, SOCK_STREAM);
	if (tcp < 0) {
		err = errno;
		close(io->udp);
		io->udp = -1;
		errno = err;
	}
	return tcp;
}

static bool
serve(struct dnsio *io, int tcp)
{
	/* The listener owns its socket only once it exists. */
	io->listener = evconnlistener_new(io->base, on_accept, io,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG, tcp);
	if (io->listener == NULL) {
		close(tcp);
		return false;
	}
	evconnlistener_set_error_cb(io->listener, on_accept_error);
	io->resume = evtimer_new(io->base, on_resume, io);
	io->udp_event =
	    event_new(io->base, io->udp, EV_READ | EV_PERSIST, on_datagram, io);
	return io->resume != NULL && io->udp_event != NULL &&
	       event_add(io->udp_event, NULL) == 0;
}

struct dnsio *
dnsio_new(
    struct event_base *base, const struct dnsd *zone, const struct addr *listen)
{
	struct dnsio *io = calloc(1, sizeof(*io));
	int tries = addr_port(listen) == 0 ? PORT_TRIES : 1;
	int tcp, err;

	if (io == NULL)
		return NULL;
	io->base = base;
	io->zone = zone;
	io->udp = -1;
	LIST_INIT(&io->conns);
	while ((tcp = bind_both(io, listen)) < 0)
		if (--tries == 0 || errno != EADDRINUSE)
			break;
	if (tcp < 0 || !serve(io, tcp)) {
		err = errno;
		dnsio_free(io);
		errno = err;
		return NULL;
	}
	return io;
}

void
dnsio_free(struct dnsio *io)
{
	struct conn *c;

	if (io == NULL)
		return;
	while ((c = LIST_FIRST(&io->conns)) != NULL)
		close_conn(c);
	if (io->listener != NULL)
		evconnlistener_free(io->listener);
	if (io->resume != NULL)
		event_free(io->resume);
	if (io->udp_event != NULL)
		event_free(io->udp_event);
	if (io->udp >= 0)
		close(io->udp);
	free(io);
}

const struct addr *
dnsio_addr(const struct dnsio *io)
{
	return &io->addr;
}
