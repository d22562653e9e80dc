/*
 * What comes in: datagrams in batches, and the error queue, where the kernel
 * puts what ICMP says of datagrams sent before. Invariant: both are bounded
 * per wake-up.
 *
 * A report in the error queue leaves its error pending on the socket, and the
 * next call fails with it, whatever that call is about. So an error of a call
 * means nothing until the queue was read. libevent wakes us for it as for a
 * datagram.
 */
#include "daemon/io/udp_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <linux/errqueue.h>

#define ROUNDS     16 /* receive calls of one wake-up */
#define ERRORS_MAX 64 /* reports taken at once */

/* The error queue */

/* Of one report: its place in the control messages, or false. */
static bool
report_of(struct msghdr *msg, struct sock_extended_err *out)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if ((c->cmsg_level == IPPROTO_IP &&
			c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 &&
			c->cmsg_type == IPV6_RECVERR)) {
			memcpy(out, CMSG_DATA(c), sizeof(*out));
			return true;
		}
	}
	return false;
}

static void
tell(struct udp *udp, const union address *to, int error)
{
	struct endpoint e;

	udp->counters.refused++;
	address_from_sockaddr(to, &e);
	udp->in_hook++;
	udp->hooks->refused(udp->arg, &e, error);
	udp->in_hook--;
}

/*
 * What we could not even send (SO_EE_ORIGIN_LOCAL: too long) is here as well;
 * its send has failed and says so.
 */
static bool
from_network(const struct sock_extended_err *report)
{
	return report->ee_origin == SO_EE_ORIGIN_ICMP ||
	       report->ee_origin == SO_EE_ORIGIN_ICMP6;
}

unsigned int
udp_read_errors(struct udp *udp)
{
	_Alignas(struct cmsghdr) char control[256];
	struct sock_extended_err report;
	union address to;
	unsigned int told = 0;

	for (unsigned int i = 0; i < ERRORS_MAX; i++) {
		struct msghdr msg = {
		    .msg_name = &to,
		    .msg_namelen = sizeof(to),
		    .msg_control = control,
		    .msg_controllen = sizeof(control),
		};

		memset(&to, 0, sizeof(to));
		if (recvmsg(udp->fd, &msg, MSG_ERRQUEUE) < 0)
			break;
		if (!report_of(&msg, &report) || !from_network(&report))
			continue;
		tell(udp, &to, (int)report.ee_errno);
		told++;
	}
	return told;
}

/* Datagrams */

void
udp_receive_init(struct udp *udp)
{
	for (unsigned int i = 0; i < UDP_BATCH; i++) {
		udp->in_iovs[i].iov_base = udp->in_bytes[i];
		udp->in_iovs[i].iov_len = UDP_RECEIVE_MAX;
		udp->in_msgs[i].msg_hdr = (struct msghdr){
		    .msg_name = &udp->in_from[i],
		    .msg_namelen = sizeof(udp->in_from[i]),
		    .msg_iov = &udp->in_iovs[i],
		    .msg_iovlen = 1,
		};
	}
}

static void
deliver(struct udp *udp, unsigned int i)
{
	struct mmsghdr *m = &udp->in_msgs[i];
	bool truncated = (m->msg_hdr.msg_flags & MSG_TRUNC) != 0;
	struct endpoint from;

	/* Of all that a call writes here, only this is read by the next. */
	m->msg_hdr.msg_namelen = sizeof(udp->in_from[i]);
	address_from_sockaddr(&udp->in_from[i], &from);
	udp->counters.received++;
	udp->counters.received_bytes += m->msg_len;
	if (truncated)
		udp->counters.truncated++;
	udp->hooks->datagram(
	    udp->arg, udp->in_bytes[i], m->msg_len, truncated, &from);
}

/*
 * No datagram: the error queue is why, or there is nothing at all. (With
 * datagrams there, whatever is in it wakes us again.)
 */
static bool
receive_failed(struct udp *udp, int error)
{
	unsigned int told;

	if (error == EINTR)
		return true;
	told = udp_read_errors(udp);
	if (error == EAGAIN)
		return false;
	if (told == 0) /* the report found no room; gone once read */
		udp->counters.receive_errors++;
	return true;
}

/* One call. Is there perhaps more? */
static bool
read_batch(struct udp *udp)
{
	int n = recvmmsg(udp->fd, udp->in_msgs, UDP_BATCH, 0, NULL);

	if (n < 0)
		return receive_failed(udp, errno);
	for (int i = 0; i < n; i++)
		deliver(udp, (unsigned int)i);
	if (n > 0)
		udp->hooks->batch(udp->arg);
	return n == UDP_BATCH;
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
