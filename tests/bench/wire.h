/*
 * UDP on loopback as the helpers of the bench use it: sockets whose buffers
 * hold a burst, and batches of datagrams. A batch goes out in one sendmmsg;
 * with segmentation offload (GSO), datagrams of one length to one place go
 * through the kernel as one until they are delivered.
 */
#ifndef TESTS_BENCH_WIRE_H
#define TESTS_BENCH_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WIRE_BATCH 64
#define WIRE_MAX   1200 /* bytes of a datagram; a longer one is cut */

struct wire_in {
	struct mmsghdr msgs[WIRE_BATCH]; /* msg_len, and the next two */
	struct iovec parts[WIRE_BATCH];
	struct sockaddr_in from[WIRE_BATCH]; /* only when asked for */
	uint8_t bytes[WIRE_BATCH][WIRE_MAX];
};

struct wire_out {
	int fd;
	bool gso; /* becomes false when the kernel cannot */
	size_t count;
	struct iovec parts[WIRE_BATCH];
	struct sockaddr_in to[WIRE_BATCH];
	struct mmsghdr msgs[WIRE_BATCH];
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control[WIRE_BATCH];
};

struct sockaddr_in wire_loopback(uint16_t port);
/*
 * A blocking socket on a port of the kernel's choice, with the largest
 * buffers that it grants. -1 with errno.
 */
int wire_open(uint16_t *port);

void wire_in_init(struct wire_in *in, bool with_sender);
/* Whatever is there, up to WIRE_BATCH; 0: nothing. Does not block. */
unsigned wire_receive(struct wire_in *in, int fd);

void wire_out_init(struct wire_out *out, int fd, bool gso);
/*
 * Adds a datagram, whose bytes are borrowed until the flush. A full batch is
 * flushed first.
 */
void wire_add(struct wire_out *out, const void *bytes, size_t len,
    const struct sockaddr_in *to);
/* What the kernel refuses is lost, as on any network. */
void wire_flush(struct wire_out *out);

#endif
