/*
 * Groups: datagrams to one destination that leave as one message of a system
 * call. The kernel walks its layers once and cuts the message up at the end
 * (UDP_SEGMENT, Linux 4.18), which is a quarter of the price of each alone.
 * Made by the flush (udp_send.c) for one call, and void after it.
 *
 * Invariant: the datagrams of one destination leave in the order of the queue.
 * So one joins the newest group of its destination or begins another. In a
 * group all have one length, but the last may be shorter: it is where the
 * kernel cuts.
 */
#include "daemon/io/udp_private.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define GROUP_MAX   64    /* datagrams; the kernel's limit */
#define GROUP_BYTES 65000 /* an IP packet's, with room for its headers */

/*
 * How long none are made after one was refused or a device was full. A try
 * costs as much as a few datagrams, which is nothing once a second, and routes
 * change.
 */
#define ALONE_US 1000000

/*
 * A kernel that does not know groups takes no notice of the control message,
 * and would send them as one long datagram. So it is asked first.
 */
static bool
known(int fd)
{
	int size;
	socklen_t len = sizeof(size);

	return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, &len) == 0;
}

void
udp_groups_init(struct udp *udp)
{
	const struct cmsghdr header = {
	    .cmsg_level = IPPROTO_UDP,
	    .cmsg_type = UDP_SEGMENT,
	    .cmsg_len = CMSG_LEN(sizeof(uint16_t)),
	};

	udp->groups_known = known(udp->fd);
	for (unsigned int i = 0; i < UDP_GROUPS; i++) {
		udp->controls[i].header = header;
		udp->out_msgs[i].msg_hdr.msg_namelen = udp_address_len(udp);
	}
}

void
udp_groups_begin(struct udp *udp, int64_t now)
{
	udp->group_count = 0;
	udp->grouping = udp->groups_known && now >= udp->alone_until;
}

/* address_to_sockaddr() leaves no byte of an address undefined. */
static struct udp_group *
newest(struct udp *udp, const struct udp_out *out)
{
	struct udp_group *g;

	for (unsigned int i = udp->group_count; i-- > 0;) {
		g = &udp->groups[i];
		if (memcmp(&g->first->to, &out->to, sizeof(out->to)) == 0)
			return g;
	}
	return NULL;
}

/* An empty one would be lost: the kernel cuts bytes. */
static bool
takes(const struct udp_group *g, const struct udp_out *out)
{
	return !out->alone && out->len > 0 && out->len <= g->longest &&
	       g->count < GROUP_MAX && g->bytes + out->len <= GROUP_BYTES;
}

static void
join(struct udp_group *g, struct udp_out *out)
{
	g->last->peer = out;
	g->last = out;
	g->count++;
	g->bytes += out->len;
	if (out->len < g->longest)
		g->longest = 0;
}

bool
udp_group_add(struct udp *udp, struct udp_out *out)
{
	struct udp_group *g = udp->grouping ? newest(udp, out) : NULL;

	if (g != NULL && takes(g, out)) {
		join(g, out);
	} else if (udp->group_count == UDP_GROUPS) {
		return false;
	} else {
		g = &udp->groups[udp->group_count++];
		*g = (struct udp_group){
		    .first = out,
		    .last = out,
		    .count = 1,
		    .bytes = out->len,
		    .longest = out->alone ? 0 : out->len,
		};
	}
	out->group = (uint8_t)(g - udp->groups);
	return true;
}

/* Returns where the next message's bytes are listed. */
static struct iovec *
make_message(struct udp *udp, unsigned int i, struct iovec *iov)
{
	const struct udp_group *g = &udp->groups[i];
	const struct udp_out *out = g->first;
	struct msghdr *msg = &udp->out_msgs[i].msg_hdr;
	const uint16_t size = (uint16_t)out->len;

	msg->msg_name = &udp->groups[i].first->to;
	msg->msg_iov = iov;
	msg->msg_iovlen = g->count;
	for (unsigned int n = g->count; n > 0; n--) {
		*iov++ = (struct iovec){
		    .iov_base = out->bytes,
		    .iov_len = out->len,
		};
		out = out->peer;
	}
	msg->msg_control = NULL;
	msg->msg_controllen = 0;
	if (g->count > 1) {
		msg->msg_control = &udp->controls[i];
		msg->msg_controllen = sizeof(udp->controls[i].space);
		memcpy(
		    CMSG_DATA(&udp->controls[i].header), &size, sizeof(size));
	}
	return iov;
}

unsigned int
udp_groups_end(struct udp *udp)
{
	struct iovec *iov = udp->out_iovs;

	for (unsigned int i = 0; i < udp->group_count; i++)
		iov = make_message(udp, i, iov);
	return udp->group_count;
}

/*
 * What the kernel says where it would take each alone: EINVAL or EMSGSIZE when
 * they are too long for the path, since only single ones are fragmented; EIO
 * when the device computes no checksums or IPsec is in the way.
 */
static bool
about_groups(int error)
{
	return error == EINVAL || error == EMSGSIZE || error == EIO;
}

void
udp_groups_pause(struct udp *udp)
{
	udp->alone_until = loop_now() + ALONE_US;
}

void
udp_group_split(struct udp *udp, unsigned int i, int error)
{
	struct udp_out *out = udp->groups[i].first;

	for (unsigned int n = udp->groups[i].count; n > 0; n--) {
		out->alone = true;
		out->failures = 0;
		out = out->peer;
	}
	if (about_groups(error))
		udp_groups_pause(udp);
}
