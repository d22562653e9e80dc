/*
 * One non-blocking UDP socket of one family, bound to a port that the kernel
 * chose. Reads and writes in batches (recvmmsg, sendmmsg), both bounded per
 * wake-up so that a flood starves nobody.
 *
 * Sends are queued by copy and leave at the end of the loop turn; those of one
 * destination in order, and together where the kernel can do that. When the
 * kernel's buffer is full they wait for writability, but never past their
 * expiry. Each send is answered by one call of the sent hook. What comes back
 * later, by ICMP, is told by the refused hook. Both may come from inside
 * udp_send(), so these hooks only record.
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
	/* Asked of each send that is queued, in every flush: is it wanted
	 * still? Only tells. */
	bool (*wanted)(void *arg, struct udp_token token);
	/* error 0: the kernel took it; else an errno of this very datagram
	 * (ETIME: it expired, ECANCELED: it was not wanted any more, or
	 * udp_free() came first). */
	void (*sent)(void *arg, struct udp_token token, int error);
	/*
	 * The network gave a datagram back that the kernel had taken. to: where
	 * it was sent; error: ECONNREFUSED, EHOSTUNREACH, ENETUNREACH,
	 * EMSGSIZE (the path takes less; the kernel has learnt it, and the next
	 * one is cut to fit) and others. Several that left together may come
	 * back as one. ICMP is not authenticated: a hint, never a verdict.
	 */
	void (*refused)(void *arg, const struct endpoint *to, int error);
};

/* family 4 or 6. Borrows hooks. NULL with errno set (EAFNOSUPPORT, ...). */
struct udp *udp_new(
    struct loop *loop, int family, const struct udp_hooks *hooks, void *arg);
/* Sends still queued are answered by the sent hook with ECANCELED, as is
 * whatever it sends then. Never from inside a hook. Takes NULL. */
void udp_free(struct udp *udp);

/* The local port. */
uint16_t udp_port(const struct udp *udp);

/*
 * Queues a copy. expires is absolute; at or after it nothing is sent. A queue
 * that is full and cannot be flushed answers ENOBUFS by the hook.
 */
void udp_send(struct udp *udp, const struct endpoint *to, const void *bytes,
    size_t len, int64_t expires, struct udp_token token);
/* Sends without an answer yet. */
uint32_t udp_waiting(const struct udp *udp);

/*
 * Reads what is readable now, at most one bounded round; calls the hooks.
 * Returns whether there may be more.
 */
bool udp_drain(struct udp *udp);

/* X(field, help), all uint64_t, in the order of status output. */
#define UDP_COUNTERS(X)                                                    \
	X(sent, "Datagrams that the kernel took")                          \
	X(sent_bytes, "Bytes in them")                                     \
	X(send_errors, "Datagrams that it refused")                        \
	X(send_blocked, "Times that a buffer or a device was full")        \
	X(send_expired, "Datagrams that waited until they were too late")  \
	X(refused, "Datagrams that the network refused later, by ICMP")    \
	X(received, "Datagrams received")                                  \
	X(received_bytes, "Bytes in them")                                 \
	X(truncated, "Datagrams received that are longer than any may be") \
	X(receive_errors, "Errors of receiving that no refusal explains")  \
	X(receive_dropped, "Datagrams that the kernel dropped, buffer full")

/* Since udp_new(). */
struct udp_counters {
#define UDP_COUNTER_FIELD(name, help) uint64_t name;
	UDP_COUNTERS(UDP_COUNTER_FIELD)
#undef UDP_COUNTER_FIELD
};
/* Brought up to date by the call. Borrowed. */
const struct udp_counters *udp_counters(struct udp *udp);
/* Adds each counter of one to *sum. */
void udp_counters_add(struct udp_counters *sum, const struct udp_counters *one);

#endif
