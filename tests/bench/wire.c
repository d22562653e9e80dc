/* Sockets, recvmmsg and sendmmsg. */
#include "tests/bench/wire.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#define KERNEL_BYTES (32 << 20)
#define GSO_MAX      60000 /* bytes; the kernel takes a little more */

struct sockaddr_in
wire_loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* Root gets what it asks for, others what net.core allows. */
static void
enlarge(int fd, int force, int option)
{
	const int bytes = KERNEL_BYTES;

	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) != 0)
		(void)setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

int
wire_open(uint16_t *port)
{
	struct sockaddr_in at = wire_loopback(0);
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	*port = ntohs(at.sin_port);
	return fd;
}

void
wire_in_init(struct wire_in *in, bool with_sender)
{
	size_t i;

	memset(in, 0, sizeof(*in));
	for (i = 0; i < WIRE_BATCH; i++) {
		in->parts[i] =
		    (struct iovec){in->bytes[i], sizeof(in->bytes[i])};
		in->msgs[i].msg_hdr.msg_iov = &in->parts[i];
		in->msgs[i].msg_hdr.msg_iovlen = 1;
		if (!with_sender)
			continue;
		in->msgs[i].msg_hdr.msg_name = &in->from[i];
		in->msgs[i].msg_hdr.msg_namelen = sizeof(in->from[i]);
	}
}

/* The length of a name needs no reset: all senders are of one family. */
unsigned
wire_receive(struct wire_in *in, int fd)
{
	int n = recvmmsg(fd, in->msgs, WIRE_BATCH, MSG_DONTWAIT, NULL);

	return n > 0 ? (unsigned)n : 0;
}

void
wire_out_init(struct wire_out *out, int fd, bool gso)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
	out->gso = gso;
}

void
wire_add(struct wire_out *out, const void *bytes, size_t len,
    const struct sockaddr_in *to)
{
	if (out->count == WIRE_BATCH)
		wire_flush(out);
	/* The kernel only reads it. */
	out->parts[out->count] = (struct iovec){(void *)(uintptr_t)bytes, len};
	out->to[out->count] = *to;
	out->count++;
}

/* How many datagrams from first on may be one message. */
static size_t
run_of(const struct wire_out *out, size_t first)
{
	const struct sockaddr_in *to = &out->to[first], *other;
	size_t len = out->parts[first].iov_len, n = 1;

	while (out->gso && first + n < out->count && (n + 1) * len <= GSO_MAX) {
		other = &out->to[first + n];
		if (out->parts[first + n].iov_len != len ||
		    other->sin_port != to->sin_port ||
		    other->sin_addr.s_addr != to->sin_addr.s_addr)
			break;
		n++;
	}
	return n;
}

static void
fill_message(struct wire_out *out, size_t number, size_t first, size_t run)
{
	struct msghdr *m = &out->msgs[number].msg_hdr;
	struct cmsghdr *c = &out->control[number].head;
	uint16_t len = (uint16_t)out->parts[first].iov_len;

	m->msg_name = &out->to[first];
	m->msg_namelen = sizeof(out->to[first]);
	m->msg_iov = &out->parts[first];
	m->msg_iovlen = run;
	m->msg_control = run > 1 ? c : NULL;
	m->msg_controllen = run > 1 ? sizeof(out->control[number]) : 0;
	if (run == 1)
		return;
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(len));
	memcpy(CMSG_DATA(c), &len, sizeof(len));
}

/* One sendmmsg of the datagrams from first on; how many it has dealt with. */
static size_t
send_from(struct wire_out *out, size_t first)
{
	size_t at, run, count = 0, lost;
	int n;

	for (at = first; at < out->count; at += run) {
		run = run_of(out, at);
		fill_message(out, count++, at, run);
	}
	n = sendmmsg(out->fd, out->msgs, (unsigned)count, 0);
	if (n == (int)count)
		return out->count - first;
	if (n > 0)
		return (
		    size_t)(out->msgs[n].msg_hdr.msg_iov - &out->parts[first]);
	if (errno == EINTR)
		return 0;
	lost = out->msgs[0].msg_hdr.msg_iovlen;
	if (lost == 1)
		return 1;
	out->gso = false; /* then again, one by one */
	return 0;
}

void
wire_flush(struct wire_out *out)
{
	size_t at = 0;

	while (at < out->count)
		at += send_from(out, at);
	out->count = 0;
}
