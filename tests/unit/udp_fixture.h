/*
 * What the tests of daemon/io/udp share: sockets over loopback, and hooks that
 * keep what they saw. sendmmsg() and recvmmsg() are the program's own: they do
 * what the C library's do unless a test has scripted a failure.
 */
#ifndef TESTS_UNIT_UDP_FIXTURE_H
#define TESTS_UNIT_UDP_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/io/address.h"
#include "daemon/io/udp.h"
#include "tests/unit/harness.h"

#define SENT_MAX 4096
#define FAR      (60 * INT64_C(1000000))

static struct loop *loop;

/* The script */

static int send_errors[8]; /* answered in order, 0 ends it */
static unsigned int send_error_at;
static int send_error_always;
static unsigned int send_most; /* 0: all */
static unsigned int send_calls;
/* Asked of each message: 0, or the errno that it fails with. */
static int (*send_verdict)(const struct msghdr *msg);
static in_addr_t send_full;        /* the host behind a device that is full */
static unsigned int send_echoes;   /* calls before which one is refused */
static struct sockaddr_in refuses; /* by this port */
static int receive_errors[8];
static unsigned int receive_error_at;
static unsigned int receive_calls;

static inline bool
scripted(const int *errors, unsigned int *at)
{
	if (*at >= 8 || errors[*at] == 0)
		return false;
	errno = errors[(*at)++];
	return true;
}

/* How many come before the first one to the full device. */
static inline unsigned int
until_full(const struct mmsghdr *msgs, unsigned int n)
{
	const struct sockaddr_in *to;
	unsigned int i;

	for (i = 0; i < n; i++) {
		to = msgs[i].msg_hdr.msg_name;
		if (to->sin_addr.s_addr == send_full)
			break;
	}
	return i;
}

/* How many come before the first one that fails, and its errno. */
static inline unsigned int
until_failure(const struct mmsghdr *msgs, unsigned int n, int *error)
{
	*error = 0;
	for (unsigned int i = 0; i < n; i++) {
		*error = send_verdict(&msgs[i].msg_hdr);
		if (*error != 0)
			return i;
	}
	return n;
}

int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	int error = ENOBUFS;

	send_calls++;
	if (send_echoes > 0) {
		send_echoes--;
		sendto(fd, "x", 1, 0, (struct sockaddr *)&refuses,
		    sizeof(refuses));
	}
	if (scripted(send_errors, &send_error_at))
		return -1;
	if (send_error_always != 0) {
		errno = send_error_always;
		return -1;
	}
	if (send_most != 0 && n > send_most)
		n = send_most;
	if (send_full != 0)
		n = until_full(msgs, n);
	if (send_verdict != NULL)
		n = until_failure(msgs, n, &error);
	if (n == 0) {
		errno = error;
		return -1;
	}
	return (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

int
recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags,
    struct timespec *timeout)
{
	receive_calls++;
	if (scripted(receive_errors, &receive_error_at))
		return -1;
	return (int)syscall(SYS_recvmmsg, fd, msgs, n, flags, timeout);
}

/* What the hooks saw */

struct seen {
	unsigned int datagrams;
	unsigned int batches;
	unsigned int since_batch;
	unsigned int most_in_batch;
	unsigned int truncated;
	uint8_t last[4096];
	size_t last_len;
	struct endpoint from;
	unsigned int sent;    /* hook calls */
	int errors[SENT_MAX]; /* by token.serial; -1: not yet */
	uint64_t order[SENT_MAX];
	struct udp *resend; /* from inside the hook */
	unsigned int refused;
	struct endpoint refused_to; /* the last */
	int refused_error;
};

static struct seen a_seen, b_seen;

static inline void
on_datagram(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from)
{
	struct seen *s = arg;

	s->datagrams++;
	s->since_batch++;
	s->truncated += truncated;
	ck_assert_uint_le(len, sizeof(s->last));
	memcpy(s->last, bytes, len);
	s->last_len = len;
	s->from = *from;
}

static inline void
on_batch(void *arg)
{
	struct seen *s = arg;

	ck_assert_uint_gt(s->since_batch, 0);
	if (s->since_batch > s->most_in_batch)
		s->most_in_batch = s->since_batch;
	s->since_batch = 0;
	s->batches++;
}

static struct endpoint resend_to;

static inline void
on_sent(void *arg, struct udp_token token, int error)
{
	struct seen *s = arg;

	ck_assert_ptr_eq(token.owner, s);
	ck_assert_uint_lt(token.serial, SENT_MAX);
	ck_assert_uint_eq(token.index, (uint32_t)token.serial ^ 5);
	ck_assert_int_eq(s->errors[token.serial], -1); /* once */
	s->errors[token.serial] = error;
	s->order[s->sent++] = token.serial;
	if (s->resend != NULL && token.serial < 2000) {
		token.serial += 2000;
		token.index = (uint32_t)token.serial ^ 5;
		udp_send(
		    s->resend, &resend_to, "again", 5, loop_now() + FAR, token);
	}
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
always_wanted(void *arg, struct udp_token token)
{
	(void)arg;
	(void)token;
	return true;
}

static const struct udp_hooks hooks = {
    .datagram = on_datagram,
    .batch = on_batch,
    .wanted = always_wanted,
    .sent = on_sent,
    .refused = on_refused,
};

static inline void
forget(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < SENT_MAX; i++)
		s->errors[i] = -1;
}

static inline void
setup(void)
{
	forget(&a_seen);
	forget(&b_seen);
	memset(send_errors, 0, sizeof(send_errors));
	memset(receive_errors, 0, sizeof(receive_errors));
	send_error_at = receive_error_at = 0;
	send_error_always = 0;
	send_most = 0;
	send_verdict = NULL;
	send_full = 0;
	send_echoes = 0;
	send_calls = receive_calls = 0;
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
}

static inline void
teardown(void)
{
	loop_free(loop);
}

static inline struct endpoint
local(const struct udp *udp, int family)
{
	struct endpoint e = {.family = (uint8_t)family, .port = udp_port(udp)};

	if (family == 4) {
		e.addr[0] = 127;
		e.addr[3] = 1;
	} else {
		e.addr[15] = 1;
	}
	return e;
}

static inline struct udp_token
token_of(struct seen *s, uint64_t serial)
{
	return (struct udp_token){
	    .owner = s,
	    .serial = serial,
	    .index = (uint32_t)serial ^ 5,
	};
}

static inline void
send_to(struct udp *udp, struct seen *s, const struct endpoint *to,
    const void *bytes, size_t len, uint64_t serial)
{
	udp_send(udp, to, bytes, len, loop_now() + FAR, token_of(s, serial));
}

#define TURN_UNTIL(condition)                                              \
	do {                                                               \
		int64_t limit_ = loop_now() + 20 * INT64_C(1000000);       \
		while (!(condition)) {                                     \
			ck_assert_msg(                                     \
			    loop_now() < limit_, "never: %s", #condition); \
			loop_turn(loop);                                   \
		}                                                          \
	} while (0)

/* The number that the next socket will have. */
static inline int
next_fd(void)
{
	int fd = dup(0);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

/* A plain blocking socket, as a stranger has. */
static inline int
stranger(struct udp *to)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in in = {
	    .sin_family = AF_INET,
	    .sin_port = htons(udp_port(to)),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
	    connect(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static inline void
count_down(void *arg)
{
	if (--*(int *)arg == 0)
		loop_stop(loop);
}

/*
 * A port that refuses us and that nobody else can take meanwhile: its socket
 * is connected to itself. Returns it, or -1 with errno set.
 */
static inline int
closed_port(int family, struct endpoint *out)
{
	int fd = socket(family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
	union address at;
	socklen_t len;

	*out = (struct endpoint){.family = (uint8_t)family};
	out->addr[0] = family == 4 ? 127 : 0;
	out->addr[family == 4 ? 3 : 15] = 1;
	len = address_to_sockaddr(out, &at);
	if (fd < 0 || bind(fd, &at.any, len) != 0)
		return -1;
	ck_assert_int_eq(getsockname(fd, &at.any, &len), 0);
	ck_assert_int_eq(connect(fd, &at.any, len), 0);
	address_from_sockaddr(&at, out);
	return fd;
}

#endif
