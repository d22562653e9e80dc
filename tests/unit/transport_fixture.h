/*
 * What the tests of daemon/transport share: hooks that keep what they saw, and
 * a peer on loopback. socket() and sendmmsg() are the program's own: they do
 * what the C library's do unless a test has scripted a failure.
 */
#ifndef TESTS_UNIT_TRANSPORT_FIXTURE_H
#define TESTS_UNIT_TRANSPORT_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/transport.h"
#include "tests/unit/harness.h"

#define SEC INT64_C(1000000)
#define FAR (60 * SEC)

#define TURN_UNTIL(condition)                                              \
	do {                                                               \
		int64_t limit_ = loop_now() + 60 * SEC;                    \
		while (!(condition)) {                                     \
			ck_assert_msg(                                     \
			    loop_now() < limit_, "never: %s", #condition); \
			loop_turn(loop);                                   \
		}                                                          \
	} while (0)

static struct loop *loop;

/* The script */

static int socket_error;    /* of every socket() */
static int socket_error_v6; /* of those for IPv6 */
static unsigned int sockets;
static int send_error;

int
socket(int domain, int type, int protocol)
{
	int error = socket_error;

	if (error == 0 && domain == AF_INET6)
		error = socket_error_v6;
	sockets++;
	if (error != 0) {
		errno = error;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	if (send_error != 0) {
		errno = send_error;
		return -1;
	}
	return (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

/* What the hooks saw */

struct seen {
	unsigned int datagrams;
	unsigned int batches;
	unsigned int old; /* datagrams on an old port */
	bool current;     /* of the last */
	uint8_t bytes[64];
	size_t len;
	unsigned int sent;
	unsigned int sent_errors;
	int error; /* of the last sent */
	unsigned int refused;
	struct endpoint refused_to;
	int refused_error;
	void (*act)(void); /* from inside the hook of a datagram */
	void (*act_sent)(void);
};

static struct transport *transport;
static struct seen seen;

static inline void
on_datagram(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from, bool current)
{
	struct seen *s = arg;

	(void)from;
	ck_assert(!truncated);
	ck_assert_uint_le(len, sizeof(s->bytes));
	s->datagrams++;
	s->old += !current;
	s->current = current;
	memcpy(s->bytes, bytes, len);
	s->len = len;
	if (s->act != NULL)
		s->act();
}

static inline void
on_batch(void *arg)
{
	((struct seen *)arg)->batches++;
}

static inline void
on_sent(void *arg, struct udp_token token, int error)
{
	struct seen *s = arg;

	ck_assert_uint_eq(token.serial, 7);
	s->sent++;
	s->sent_errors += error != 0;
	s->error = error;
	if (s->act_sent != NULL)
		s->act_sent();
}

static inline void
on_refused(void *arg, const struct endpoint *to, int error)
{
	struct seen *s = arg;

	s->refused++;
	s->refused_to = *to;
	s->refused_error = error;
}

static inline bool
on_wanted(void *arg, struct udp_token token)
{
	(void)arg;
	(void)token;
	return true;
}

static const struct transport_hooks transport_hooks = {
    .datagram = on_datagram,
    .batch = on_batch,
    .wanted = on_wanted,
    .sent = on_sent,
    .refused = on_refused,
};

/* A plain socket of a server, on loopback */

static inline struct endpoint
loopback(int family, uint16_t port)
{
	struct endpoint e = {.family = (uint8_t)family, .port = port};

	e.addr[0] = family == 4 ? 127 : 0;
	e.addr[family == 4 ? 3 : 15] = 1;
	return e;
}

static int peer = -1;
static struct endpoint peer_at;

static inline void
peer_open(void)
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(in);

	peer = (int)syscall(
	    SYS_socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(peer, 0);
	ck_assert_int_eq(bind(peer, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(peer, (struct sockaddr *)&in, &len), 0);
	peer_at = loopback(4, ntohs(in.sin_port));
}

/* Waits for a datagram; the port that it came from. */
static inline uint16_t
peer_hears(void)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char byte;

	TURN_UNTIL(
	    recvfrom(peer, &byte, 1, 0, (struct sockaddr *)&from, &len) >= 0);
	return ntohs(from.sin_port);
}

static inline void
peer_tells(uint16_t port, const char *text)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	ck_assert_int_eq(sendto(peer, text, strlen(text), 0,
			     (struct sockaddr *)&to, sizeof(to)),
	    (int)strlen(text));
}

static inline void
say(void)
{
	const struct udp_token token = {.serial = 7};

	ck_assert_int_eq(transport_send(transport, &peer_at, "?", 1,
			     loop_now() + FAR, token),
	    0);
}

static inline void
setup(void)
{
	memset(&seen, 0, sizeof(seen));
	socket_error = socket_error_v6 = send_error = 0;
	sockets = 0;
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	peer_open();
	transport = transport_new(loop, &transport_hooks, &seen);
	ck_assert_ptr_nonnull(transport);
}

static inline void
teardown(void)
{
	transport_free(transport);
	transport = NULL;
	loop_free(loop);
	close(peer);
}

static inline uint16_t
local_port(void)
{
	return transport_local_port(transport, 4);
}

/* Turns until the rebind that was asked for is done. */
static inline void
rebind_now(void)
{
	uint64_t before = transport_counters(transport)->rebinds;

	transport_rebind(transport, 7);
	TURN_UNTIL(transport_counters(transport)->rebinds > before);
}

#endif
