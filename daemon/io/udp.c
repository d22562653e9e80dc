/*
 * The life of a UDP socket: its options, its events and its counters. Bound
 * to any address and never connected, so what ICMP says of its datagrams
 * reaches it only through the error queue, which RECVERR turns on.
 */
#include "daemon/io/udp_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/sock_diag.h>

/* Answers to tens of thousands of requests may come all at once. */
#define RECEIVE_BYTES (16 * 1024 * 1024)
#define SEND_BYTES    (4 * 1024 * 1024)

socklen_t
udp_address_len(const struct udp *udp)
{
	return udp->family == AF_INET ? sizeof(struct sockaddr_in)
				      : sizeof(struct sockaddr_in6);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	udp_flush(arg);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct udp *udp = arg;

	(void)fd;
	(void)what;
	if (udp_drain(udp))
		loop_note_behind(udp->loop);
}

/* Life: helpers return false with errno set. */

static bool
bind_any(struct udp *udp)
{
	union address any;
	socklen_t len = udp_address_len(udp);

	memset(&any, 0, sizeof(any));
	any.any.sa_family = (sa_family_t)udp->family;
	if (bind(udp->fd, &any.any, len) != 0 ||
	    getsockname(udp->fd, &any.any, &len) != 0)
		return false;
	udp->port = ntohs(
	    udp->family == AF_INET ? any.in4.sin_port : any.in6.sin6_port);
	return true;
}

static bool
turn_on(struct udp *udp, int level, int option)
{
	const int on = 1;

	return setsockopt(udp->fd, level, option, &on, sizeof(on)) == 0;
}

static bool
set_bytes(struct udp *udp, int option, int bytes)
{
	return setsockopt(udp->fd, SOL_SOCKET, option, &bytes, sizeof(bytes)) ==
	       0;
}

static bool
set_options(struct udp *udp)
{
	/*
	 * The kernel grants what its limits allow, and all of it to who may
	 * administer the network: no error of ours.
	 */
	if (!set_bytes(udp, SO_RCVBUFFORCE, RECEIVE_BYTES))
		(void)set_bytes(udp, SO_RCVBUF, RECEIVE_BYTES);
	(void)set_bytes(udp, SO_SNDBUF, SEND_BYTES);
	if (udp->family == AF_INET)
		return turn_on(udp, IPPROTO_IP, IP_RECVERR);
	return turn_on(udp, IPPROTO_IPV6, IPV6_V6ONLY) &&
	       turn_on(udp, IPPROTO_IPV6, IPV6_RECVERR);
}

static bool
open_socket(struct udp *udp)
{
	int flags = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	udp->fd = socket(udp->family, flags, 0);
	return udp->fd >= 0 && set_options(udp) && bind_any(udp);
}

static bool
attach(struct udp *udp)
{
	struct event_base *base = loop_base(udp->loop);

	event_assign(&udp->writable, base, udp->fd, EV_WRITE, on_writable, udp);
	event_assign(&udp->readable, base, udp->fd, EV_READ | EV_PERSIST,
	    on_readable, udp);
	udp->retry = loop_timer_new(udp->loop, udp_flush, udp);
	return udp->retry != NULL && event_add(&udp->readable, NULL) == 0;
}

struct udp *
udp_new(struct loop *loop, int family, const struct udp_hooks *hooks, void *arg)
{
	struct udp *udp;

	if (family != 4 && family != 6) {
		errno = EAFNOSUPPORT;
		return NULL;
	}
	udp = calloc(1, sizeof(*udp));
	if (udp == NULL)
		return NULL;
	udp->loop = loop;
	udp->hooks = hooks;
	udp->arg = arg;
	udp->family = family == 4 ? AF_INET : AF_INET6;
	udp_queue_init(udp);
	if (!open_socket(udp) || !attach(udp)) {
		udp_free(udp);
		return NULL;
	}
	udp_groups_init(udp);
	udp_receive_init(udp);
	return udp;
}

void
udp_free(struct udp *udp)
{
	int saved = errno;

	if (udp == NULL)
		return;
	assert(udp->in_hook == 0);
	udp->ending = true;
	udp_cancel(udp);
	loop_cancel(udp->loop, &udp->flush);
	loop_timer_free(udp->retry);
	if (event_initialized(&udp->readable)) {
		event_del(&udp->readable);
		event_del(&udp->writable);
	}
	if (udp->fd >= 0)
		close(udp->fd);
	free(udp);
	errno = saved;
}

uint16_t
udp_port(const struct udp *udp)
{
	return udp->port;
}

/*
 * SO_MEMINFO tells the drops as of now and costs nothing else; SO_RXQ_OVFL
 * would tell them with the next datagram only, and with each one.
 */
static void
count_drops(struct udp *udp)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	if (getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, info, &len) != 0 ||
	    len < (SK_MEMINFO_DROPS + 1) * sizeof(info[0]))
		return;
	udp->counters.receive_dropped +=
	    (uint32_t)(info[SK_MEMINFO_DROPS] - udp->drops_seen);
	udp->drops_seen = info[SK_MEMINFO_DROPS];
}

const struct udp_counters *
udp_counters(struct udp *udp)
{
	count_drops(udp);
	return &udp->counters;
}

void
udp_counters_add(struct udp_counters *sum, const struct udp_counters *one)
{
#define ADD(name, help) sum->name += one->name;
	UDP_COUNTERS(ADD)
#undef ADD
}
