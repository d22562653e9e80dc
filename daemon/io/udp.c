/*
 * Datagrams in and out by batches. Everything is allocated with the socket:
 * the receive buffers and QUEUE copies of datagrams that wait to be sent, on
 * a list in order. Invariant: each udp_send() ends in exactly one sent hook,
 * udp_free() included.
 */
#include "daemon/io/udp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "daemon/io/address.h"

#define BATCH        32 /* datagrams of one system call */
#define ROUNDS       16 /* receive calls of one wake-up */
#define QUEUE        256
#define SEND_MAX     1200
#define RECEIVE_MAX  2048
#define RETRY_US     1000 /* after ENOBUFS, which no event ends */
#define KERNEL_BYTES (4 * 1024 * 1024)

struct out {
	struct out *next;
	int64_t expires;
	struct udp_token token;
	union address to;
	size_t len;
};

struct udp {
	struct loop *loop;
	const struct udp_hooks *hooks;
	void *arg;
	int fd;
	int family; /* AF_INET or AF_INET6 */
	uint16_t port;
	unsigned int in_hook; /* depth; udp_free() is forbidden then */
	bool reading;
	bool flushing;
	bool blocked; /* the event or the timer will flush */
	bool ending;  /* udp_free(): nothing more is queued */
	struct event readable;
	struct event writable;
	struct loop_task flush;
	struct loop_timer *retry;
	int64_t retry_at;
	struct out *first; /* waiting to be sent */
	struct out **last;
	struct out *unused;
	uint32_t waiting;
	int64_t earliest; /* no waiting one expires before this */
	struct udp_counters counters;
	struct mmsghdr in_msgs[BATCH];
	struct iovec in_iovs[BATCH];
	union address in_from[BATCH];
	struct mmsghdr out_msgs[BATCH];
	struct iovec out_iovs[BATCH];
	struct out outs[QUEUE];
	uint8_t in_bytes[BATCH][RECEIVE_MAX];
	uint8_t out_bytes[QUEUE][SEND_MAX];
};

static socklen_t
address_len(int family)
{
	return family == AF_INET ? sizeof(struct sockaddr_in)
				 : sizeof(struct sockaddr_in6);
}

/* Sending */

static void
answer(struct udp *udp, struct udp_token token, int error)
{
	if (error == ETIME)
		udp->counters.send_expired++;
	else if (error != 0)
		udp->counters.send_errors++;
	udp->in_hook++;
	udp->hooks->sent(udp->arg, token, error);
	udp->in_hook--;
}

/* Takes *at off the list; its slot is free before its hook runs. */
static void
finish(struct udp *udp, struct out **at, int error)
{
	struct out *out = *at;
	struct udp_token token = out->token;

	if (error == 0) {
		udp->counters.sent++;
		udp->counters.sent_bytes += out->len;
	}
	*at = out->next;
	if (udp->last == &out->next)
		udp->last = at;
	udp->waiting--;
	out->next = udp->unused;
	udp->unused = out;
	answer(udp, token, error);
}

/*
 * The hooks may append meanwhile, which leaves at valid: only this function
 * and send_batch() take from the list.
 */
static void
expire(struct udp *udp, int64_t now)
{
	struct out **at = &udp->first;

	if (now < udp->earliest)
		return;
	udp->earliest = INT64_MAX;
	while (*at != NULL) {
		if ((*at)->expires <= now) {
			finish(udp, at, ETIME);
			continue;
		}
		if ((*at)->expires < udp->earliest)
			udp->earliest = (*at)->expires;
		at = &(*at)->next;
	}
}

static unsigned int
gather(struct udp *udp)
{
	unsigned int n = 0;

	for (struct out *out = udp->first; out != NULL && n < BATCH;
	     out = out->next) {
		udp->out_iovs[n] = (struct iovec){
		    .iov_base = udp->out_bytes[out - udp->outs],
		    .iov_len = out->len,
		};
		udp->out_msgs[n].msg_hdr = (struct msghdr){
		    .msg_name = &out->to,
		    .msg_namelen = address_len(udp->family),
		    .msg_iov = &udp->out_iovs[n],
		    .msg_iovlen = 1,
		};
		n++;
	}
	return n;
}

/* Returns 0, or the errno that says to wait. */
static int
send_batch(struct udp *udp)
{
	unsigned int n;
	int sent;

	expire(udp, loop_now());
	n = gather(udp);
	if (n == 0)
		return 0;
	sent = sendmmsg(udp->fd, udp->out_msgs, n, 0);
	if (sent < 0) {
		if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
			return errno;
		if (errno != EINTR) /* is about the first, and only it */
			finish(udp, &udp->first, errno);
		return 0;
	}
	while (sent-- > 0)
		finish(udp, &udp->first, 0);
	return 0;
}

static void
retry_by(struct udp *udp, int64_t when)
{
	if (when >= udp->retry_at)
		return;
	udp->retry_at = when;
	loop_timer_set(udp->retry, when);
}

/* error: why nothing more can be sent now, or 0. */
static void
wait_or_go_on(struct udp *udp, int error)
{
	if (udp->blocked) {
		event_del(&udp->writable);
		loop_timer_stop(udp->retry);
	} else if (error != 0) {
		udp->counters.send_blocked++;
	}
	udp->blocked = error != 0;
	udp->retry_at = INT64_MAX;
	if (error == 0) {
		if (udp->first != NULL)
			loop_defer(udp->loop, &udp->flush);
		return;
	}
	retry_by(udp, udp->earliest);
	if (error != EAGAIN || event_add(&udp->writable, NULL) != 0)
		retry_by(udp, loop_now() + RETRY_US);
}

/* Each round ends at least one waiting send, or blocks. */
static void
flush(void *arg)
{
	struct udp *udp = arg;
	uint32_t rounds = udp->waiting;
	int error = 0;

	if (udp->flushing)
		return;
	udp->flushing = true;
	while (rounds-- > 0 && udp->first != NULL && error == 0)
		error = send_batch(udp);
	udp->flushing = false;
	wait_or_go_on(udp, error);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

/* What keeps a send from being queued at all, or 0. */
static int
refusal(struct udp *udp, const struct endpoint *to, size_t len)
{
	if (udp->ending)
		return ECANCELED;
	if (len > SEND_MAX)
		return EMSGSIZE;
	if ((to->family == 4 ? AF_INET : AF_INET6) != udp->family)
		return EAFNOSUPPORT;
	if (udp->unused == NULL)
		flush(udp);
	return udp->unused == NULL ? ENOBUFS : 0;
}

void
udp_send(struct udp *udp, const struct endpoint *to, const void *bytes,
    size_t len, int64_t expires, struct udp_token token)
{
	int error = refusal(udp, to, len);
	struct out *out = udp->unused;

	if (error != 0) {
		answer(udp, token, error);
		return;
	}
	udp->unused = out->next;
	out->next = NULL;
	out->expires = expires;
	out->token = token;
	out->len = len;
	address_to_sockaddr(to, &out->to);
	if (len > 0)
		memcpy(udp->out_bytes[out - udp->outs], bytes, len);
	*udp->last = out;
	udp->last = &out->next;
	udp->waiting++;
	if (expires < udp->earliest)
		udp->earliest = expires;
	if (udp->blocked)
		retry_by(udp, expires);
	else
		loop_defer(udp->loop, &udp->flush);
}

/* Receiving */

static int
receive(struct udp *udp)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		udp->in_iovs[i].iov_base = udp->in_bytes[i];
		udp->in_iovs[i].iov_len = RECEIVE_MAX;
		udp->in_msgs[i].msg_hdr = (struct msghdr){
		    .msg_name = &udp->in_from[i],
		    .msg_namelen = sizeof(udp->in_from[i]),
		    .msg_iov = &udp->in_iovs[i],
		    .msg_iovlen = 1,
		};
	}
	return recvmmsg(udp->fd, udp->in_msgs, BATCH, 0, NULL);
}

static void
deliver(struct udp *udp, unsigned int i)
{
	const struct mmsghdr *m = &udp->in_msgs[i];
	bool truncated = (m->msg_hdr.msg_flags & MSG_TRUNC) != 0;
	struct endpoint from;

	address_from_sockaddr(&udp->in_from[i], &from);
	udp->counters.received++;
	udp->counters.received_bytes += m->msg_len;
	if (truncated)
		udp->counters.truncated++;
	udp->hooks->datagram(
	    udp->arg, udp->in_bytes[i], m->msg_len, truncated, &from);
}

/* One call. Is there perhaps more? */
static bool
read_batch(struct udp *udp)
{
	int n = receive(udp);

	if (n < 0) {
		if (errno == EAGAIN)
			return false;
		if (errno != EINTR) /* of an earlier send; gone once read */
			udp->counters.receive_errors++;
		return true;
	}
	for (int i = 0; i < n; i++)
		deliver(udp, (unsigned int)i);
	if (n > 0)
		udp->hooks->batch(udp->arg);
	return n == BATCH;
}

bool
udp_drain(struct udp *udp)
{
	unsigned int rounds = ROUNDS;
	bool more = true;

	assert(!udp->reading);
	udp->reading = true;
	udp->in_hook++;
	while (more && rounds-- > 0)
		more = read_batch(udp);
	udp->in_hook--;
	udp->reading = false;
	return more;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)udp_drain(arg);
}

/* Life: helpers return false with errno set. */

static bool
bind_any(struct udp *udp)
{
	union address any;
	socklen_t len = address_len(udp->family);

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
open_socket(struct udp *udp)
{
	const int on = 1;
	const int bytes = KERNEL_BYTES;
	int flags = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	udp->fd = socket(udp->family, flags, 0);
	if (udp->fd < 0)
		return false;
	/* The kernel grants what its limits allow: no error of ours. */
	(void)setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(udp->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (udp->family == AF_INET6 && setsockopt(udp->fd, IPPROTO_IPV6,
					   IPV6_V6ONLY, &on, sizeof(on)) != 0)
		return false;
	return bind_any(udp);
}

static bool
attach(struct udp *udp)
{
	struct event_base *base = loop_base(udp->loop);

	event_assign(&udp->writable, base, udp->fd, EV_WRITE, on_writable, udp);
	event_assign(&udp->readable, base, udp->fd, EV_READ | EV_PERSIST,
	    on_readable, udp);
	udp->retry = loop_timer_new(udp->loop, flush, udp);
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
	udp->last = &udp->first;
	udp->earliest = INT64_MAX;
	udp->retry_at = INT64_MAX;
	for (unsigned int i = QUEUE; i-- > 0;) {
		udp->outs[i].next = udp->unused;
		udp->unused = &udp->outs[i];
	}
	loop_task_init(&udp->flush, flush, udp);
	if (!open_socket(udp) || !attach(udp)) {
		udp_free(udp);
		return NULL;
	}
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
	while (udp->first != NULL)
		finish(udp, &udp->first, ECANCELED);
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

const struct udp_counters *
udp_counters(const struct udp *udp)
{
	return &udp->counters;
}
