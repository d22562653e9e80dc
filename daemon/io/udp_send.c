/*
 * The queue of sends: UDP_QUEUE copies of datagrams on a list in order, which
 * leave in batches. Invariant: each udp_send() ends in exactly one sent hook,
 * udp_free() included.
 *
 * Whom an error concerns: EAGAIN and ENOMEM the socket, which waits; ENOBUFS
 * the device of one destination, and the others go on; anything else one
 * datagram, once it is sure that it is not the echo of an earlier one. A group
 * of datagrams that was refused goes again, each alone, to know which.
 */
#include "daemon/io/udp_private.h"

#include <errno.h>
#include <string.h>

#define RETRY_US   1000 /* after ENOBUFS, which no event ends */
#define ECHOES_MAX 16   /* of ICMP errors in a row, for one send */

static void
answer(struct udp *udp, struct udp_token token, int error)
{
	if (error == ETIME)
		udp->counters.send_expired++;
	else if (error != 0 && error != ECANCELED)
		udp->counters.send_errors++;
	udp->in_hook++;
	udp->hooks->sent(udp->arg, token, error);
	udp->in_hook--;
}

/* Takes *at off the list; its slot is free before its hook runs. */
static void
finish(struct udp *udp, struct udp_out **at, int error)
{
	struct udp_out *out = *at;
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
 * The datagrams of the first n groups of this call, in order. What the hooks
 * append meanwhile is behind the last of them.
 */
static void
finish_groups(struct udp *udp, unsigned int n, int error)
{
	struct udp_out **at = &udp->first;
	unsigned int left = 0;

	for (unsigned int i = 0; i < n; i++)
		left += udp->groups[i].count;
	while (left > 0) {
		if ((*at)->group < n) {
			finish(udp, at, error);
			left--;
		} else {
			at = &(*at)->next;
		}
	}
}

/*
 * The hooks may append meanwhile, which leaves at valid: only this function
 * and two others take from the list.
 */
static void
expire(struct udp *udp, int64_t now)
{
	struct udp_out **at = &udp->first;

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

/* What happened since they were queued may have made some needless. */
static void
discard(struct udp *udp)
{
	struct udp_out **at = &udp->first;

	while (*at != NULL) {
		if (udp->hooks->wanted(udp->arg, (*at)->token))
			at = &(*at)->next;
		else
			finish(udp, at, ECANCELED);
	}
}

/* The route depends on the host, not on the port. */
static bool
same_host(const struct udp *udp, const union address *a, const union address *b)
{
	if (udp->family == AF_INET)
		return a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
		   sizeof(a->in6.sin6_addr)) == 0 &&
	       a->in6.sin6_scope_id == b->in6.sin6_scope_id;
}

/* Is its device known to be full, in this flush? */
static bool
held_up(const struct udp *udp, const struct udp_out *out)
{
	for (unsigned int i = 0; i < udp->fulls; i++) {
		if (same_host(udp, &udp->full[i], &out->to))
			return true;
	}
	return false;
}

static unsigned int
gather(struct udp *udp, int64_t now)
{
	bool room = true;

	udp_groups_begin(udp, now);
	for (struct udp_out *out = udp->first; out != NULL; out = out->next) {
		out->group = UDP_GROUPS;
		if (room && !held_up(udp, out))
			room = udp_group_add(udp, out);
	}
	return udp_groups_end(udp);
}

/*
 * The first group was not sent. Is that its own error? What ICMP said of an
 * earlier datagram fails the next call too, so it is tried again, until it
 * fails with nothing in the error queue. Even then ECONNREFUSED is such an
 * echo, whose report found no room: a send does not know it by itself.
 */
static void
judge(struct udp *udp, int error)
{
	const struct udp_group *g = &udp->groups[0];
	struct udp_out *out = g->first;
	const uint8_t most = error == ECONNREFUSED ? ECHOES_MAX : 1;

	if (udp_read_errors(udp) == 0 && out->failures >= most) {
		if (g->count > 1)
			udp_group_split(udp, 0, error);
		else
			finish_groups(udp, 1, error);
	} else if (out->failures < ECHOES_MAX) {
		out->failures++;
	}
}

/* Returns 0 to go on, or the errno that says to wait. */
static int
send_failed(struct udp *udp, int error)
{
	if (error == EAGAIN || error == ENOMEM)
		return error;
	if (error == ENOBUFS) {
		/* A queue that cuts a group up drops what finds no room, and
		 * says so only when that is all of it. */
		udp_groups_pause(udp);
		if (udp->fulls == UDP_FULL_MAX)
			return error;
		udp->full[udp->fulls++] = udp->groups[0].first->to;
	} else if (error != EINTR) {
		judge(udp, error);
	}
	return 0;
}

static int
send_batch(struct udp *udp)
{
	const int64_t now = loop_now();
	unsigned int n;
	int sent;

	expire(udp, now);
	n = gather(udp, now);
	if (n == 0)
		return udp->fulls > 0 ? ENOBUFS : 0;
	sent = sendmmsg(udp->fd, udp->out_msgs, n, 0);
	if (sent < 0)
		return send_failed(udp, errno);
	finish_groups(udp, (unsigned int)sent, 0);
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

/*
 * Bounded: a round ends a send, finds a device full, or tries one again. What
 * is left then goes on after the other callbacks.
 */
void
udp_flush(void *arg)
{
	struct udp *udp = arg;
	uint32_t rounds = udp->waiting + UDP_FULL_MAX;
	int error = 0;

	if (udp->flushing)
		return;
	udp->flushing = true;
	udp->fulls = 0;
	discard(udp);
	while (rounds-- > 0 && udp->first != NULL && error == 0)
		error = send_batch(udp);
	udp->flushing = false;
	wait_or_go_on(udp, udp->first != NULL ? error : 0);
}

/*
 * The oldest of those whose device is full gives way to one whose device is
 * not: else a single dead link would fill the queue of all. Not from inside a
 * flush, which walks the list.
 */
static void
make_room(struct udp *udp, const struct endpoint *to)
{
	struct udp_out **at = &udp->first, other;

	address_to_sockaddr(to, &other.to);
	if (udp->flushing || held_up(udp, &other))
		return;
	while (*at != NULL && !held_up(udp, *at))
		at = &(*at)->next;
	if (*at != NULL)
		finish(udp, at, ENOBUFS);
}

/* What keeps a send from being queued at all, or 0. */
static int
refusal(struct udp *udp, const struct endpoint *to, size_t len)
{
	if (udp->ending)
		return ECANCELED;
	if (len > UDP_SEND_MAX)
		return EMSGSIZE;
	if ((to->family == 4 ? AF_INET : AF_INET6) != udp->family)
		return EAFNOSUPPORT;
	if (udp->unused == NULL)
		udp_flush(udp);
	if (udp->unused == NULL)
		make_room(udp, to);
	return udp->unused == NULL ? ENOBUFS : 0;
}

void
udp_send(struct udp *udp, const struct endpoint *to, const void *bytes,
    size_t len, int64_t expires, struct udp_token token)
{
	int error = refusal(udp, to, len);
	struct udp_out *out = udp->unused;

	if (error != 0) {
		answer(udp, token, error);
		return;
	}
	udp->unused = out->next;
	out->next = NULL;
	out->expires = expires;
	out->token = token;
	out->len = len;
	out->failures = 0;
	out->alone = false;
	address_to_sockaddr(to, &out->to);
	if (len > 0)
		memcpy(out->bytes, bytes, len);
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

uint32_t
udp_waiting(const struct udp *udp)
{
	return udp->waiting;
}

void
udp_queue_init(struct udp *udp)
{
	udp->last = &udp->first;
	udp->earliest = INT64_MAX;
	udp->retry_at = INT64_MAX;
	for (unsigned int i = UDP_QUEUE; i-- > 0;) {
		udp->outs[i].bytes = udp->out_bytes[i];
		udp->outs[i].next = udp->unused;
		udp->unused = &udp->outs[i];
	}
	loop_task_init(&udp->flush, udp_flush, udp);
}

void
udp_cancel(struct udp *udp)
{
	while (udp->first != NULL)
		finish(udp, &udp->first, ECANCELED);
}
