/*
 * The UDP sockets of one tenant, both families, and the change of their source
 * port (r-client specification, section 6.1). A port is a pair of sockets.
 * Sends always use the newest port. Those before it only receive: an old port
 * is closed when it and every port older than it are held by nobody and have
 * sent all that was queued. So an operation that holds the port of its first
 * transmission hears every answer, also those to replays over later ports.
 *
 * Invariant: there is a current port at any time. A new one is bound and
 * registered before it becomes current; one that cannot be had changes
 * nothing. Sockets are opened and closed by tasks at the end of a loop turn,
 * never inside a hook.
 */
#ifndef DAEMON_TRANSPORT_H
#define DAEMON_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/endpoint.h"
#include "daemon/io/loop.h"
#include "daemon/io/udp.h"

/* Old ports that are kept at most; a rebind waits until one of them goes. */
#define TRANSPORT_MAX_OLD 8

struct transport;
struct transport_port;

/* As those of udp.h. */
struct transport_hooks {
	/* current: it came in on the port that is in use now. */
	void (*datagram)(void *arg, const uint8_t *bytes, size_t len,
	    bool truncated, const struct endpoint *from, bool current);
	void (*batch)(void *arg);
	bool (*wanted)(void *arg, struct udp_token token);
	void (*sent)(void *arg, struct udp_token token, int error);
	void (*refused)(void *arg, const struct endpoint *to, int error);
};

/* Borrows hooks. NULL with errno set when no socket of any family, or no
 * memory, can be had. */
struct transport *transport_new(
    struct loop *loop, const struct transport_hooks *hooks, void *arg);
/* Queued sends are answered with ECANCELED. What is held may be released before
 * or after. Never from inside a hook. Takes NULL. */
void transport_free(struct transport *t);

/*
 * udp_send() over the current port. Returns 0, or EAFNOSUPPORT when that
 * family has no socket: then there is no sent hook.
 */
int transport_send(struct transport *t, const struct endpoint *to,
    const void *bytes, size_t len, int64_t expires, struct udp_token token);

/* Reads what is readable on every port, the oldest first, bounded. Returns
 * whether there may be more. Never from inside a hook. */
bool transport_drain(struct transport *t);

/*
 * The current port, which keeps receiving until it is released, once for each
 * hold. Never NULL. Both may be called from inside a hook.
 */
struct transport_port *transport_hold(struct transport *t);
void transport_release(struct transport_port *port); /* takes NULL */

/*
 * A server asks for another source port. It is opened at the end of this loop
 * turn, and used from then on. One at a time: asking again meanwhile changes
 * nothing. May be called from inside a hook.
 *
 * Paced by ErrorRateControl, as is "as soon as the safety condition permits":
 * attempts that fail, three at once, then after 100 ms to 30 s, until one
 * succeeds; and wishes, sixteen at once, then the same, lest a server that is
 * never content has a port for each answer.
 */
void transport_rebind(struct transport *t, uint64_t server);
/*
 * An answer of that server came in on the current port and does not ask for
 * another one. When it had, and the port is 100 ms old, its wish was a success.
 */
void transport_kept(struct transport *t, uint64_t server);

/* What was asked for and is not done is forgotten: the current port stays. May
 * be called from inside a hook. */
void transport_stay(struct transport *t);

enum transport_state {
	TRANSPORT_READY,
	TRANSPORT_REBIND_PENDING, /* asked for; paced, or too many old ports */
	TRANSPORT_REBINDING,      /* being opened */
};
enum transport_state transport_state(const struct transport *t);

/* Does nobody hold a port, and no send wait for the kernel? */
bool transport_idle(const struct transport *t);

struct transport_counters {
	uint64_t rebinds;         /* that succeeded */
	uint64_t rebind_failures; /* attempts that did not */
};
const struct transport_counters *transport_counters(const struct transport *t);
/* Why the last attempt failed, an errno; 0 when it did not. */
int transport_rebind_error(const struct transport *t);
/* Old ports that still receive, 0 to TRANSPORT_MAX_OLD. */
uint32_t transport_old_ports(const struct transport *t);
/* The local port number of the current port. family 4 or 6; 0: no socket. */
uint16_t transport_local_port(const struct transport *t, int family);
/* The counters of a family, summed over all ports that there ever were. False,
 * and all 0, when the family has no socket. */
bool transport_udp(
    const struct transport *t, int family, struct udp_counters *out);

#endif
