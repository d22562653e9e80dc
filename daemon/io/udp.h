/*
 * One non-blocking UDP socket of one family, bound to a port that the kernel
 * chose. Reads and writes in batches (recvmmsg, sendmmsg), both bounded per
 * wake-up so that a flood starves nobody.
 *
 * Sends are queued by copy and leave at the end of the loop turn. When the
 * kernel's buffer is full they wait for writability, but never past their
 * expiry. Each send is answered by one call of the sent hook; it may come
 * from inside udp_send(), so the hook only records.
 */
#ifndef DAEMON_IO_UDP_H
#define DAEMON_IO_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/endpoint.h"
#include "daemon/io/loop.h"

struct udp;

struct udp_token {
	void *owner;
	uint64_t serial;
	uint32_t index;
};

struct udp_hooks {
	/* truncated: longer than any datagram of the protocol. */
	void (*datagram)(void *arg, const uint8_t *bytes, size_t len,
	    bool truncated, const struct endpoint *from);
	/* After each batch of datagrams: now judge what they brought. */
	void (*batch)(void *arg);
	/* error 0: the kernel took it; else an errno (ETIME: it expired,
	 * ECANCELED: udp_free() came first). */
	void (*sent)(void *arg, struct udp_token token, int error);
};

/* family 4 or 6. Borrows hooks. NULL with errno set (EAFNOSUPPORT, ...). */
struct udp *udp_new(
    struct loop *loop, int family, const struct udp_hooks *hooks, void *arg);
/* Sends still queued are answered by the sent hook with ECANCELED, as is
 * whatever it sends then. Takes NULL. */
void udp_free(struct udp *udp);

/* The local port. */
uint16_t udp_port(const struct udp *udp);

/*
 * Queues a copy. expires is absolute; at or after it nothing is sent. A queue
 * that is full and cannot be flushed answers ENOBUFS by the hook.
 */
void udp_send(struct udp *udp, const struct endpoint *to, const void *bytes,
    size_t len, int64_t expires, struct udp_token token);

/*
 * Reads what is readable now, at most one bounded round; calls the hooks.
 * Returns whether there may be more.
 */
bool udp_drain(struct udp *udp);

/* Counters since udp_new(). */
struct udp_counters {
	uint64_t received;
	uint64_t received_bytes;
	uint64_t receive_errors;
	uint64_t sent;
	uint64_t sent_bytes;
	uint64_t send_errors;
	uint64_t send_blocked; /* times that the buffer was full */
	uint64_t send_expired;
	uint64_t truncated;
};
const struct udp_counters *udp_counters(const struct udp *udp);

#endif
