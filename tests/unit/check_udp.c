/*
 * daemon/io/udp over loopback. sendmmsg() and recvmmsg() are this program's:
 * they do what the C library's do unless a test has scripted a failure, which
 * is the only way to see a full buffer on loopback.
 */
#include "daemon/io/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
static int receive_errors[8];
static unsigned int receive_error_at;
static unsigned int receive_calls;

static bool
scripted(const int *errors, unsigned int *at)
{
	if (*at >= 8 || errors[*at] == 0)
		return false;
	errno = errors[(*at)++];
	return true;
}

int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	send_calls++;
	if (scripted(send_errors, &send_error_at))
		return -1;
	if (send_error_always != 0) {
		errno = send_error_always;
		return -1;
	}
	if (send_most != 0 && n > send_most)
		n = send_most;
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
};

static struct seen a_seen, b_seen;

static void
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

static void
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

static void
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

static const struct udp_hooks hooks = {
    .datagram = on_datagram,
    .batch = on_batch,
    .sent = on_sent,
};

static void
forget(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < SENT_MAX; i++)
		s->errors[i] = -1;
}

static void
setup(void)
{
	forget(&a_seen);
	forget(&b_seen);
	memset(send_errors, 0, sizeof(send_errors));
	memset(receive_errors, 0, sizeof(receive_errors));
	send_error_at = receive_error_at = 0;
	send_error_always = 0;
	send_most = 0;
	send_calls = receive_calls = 0;
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
}

static void
teardown(void)
{
	loop_free(loop);
}

static struct endpoint
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

static struct udp_token
token_of(struct seen *s, uint64_t serial)
{
	return (struct udp_token){
	    .owner = s,
	    .serial = serial,
	    .index = (uint32_t)serial ^ 5,
	};
}

static void
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

static void
round_trip(int family)
{
	struct udp *a = udp_new(loop, family, &hooks, &a_seen);
	struct udp *b = udp_new(loop, family, &hooks, &b_seen);
	struct endpoint to, back;

	if (a == NULL && family == 6 && errno == EAFNOSUPPORT) {
		printf("# no IPv6 here\n");
		return;
	}
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_uint_ne(udp_port(a), 0);
	to = local(b, family);
	back = local(a, family);
	send_to(a, &a_seen, &to, "hello", 5, 1);
	ck_assert_uint_eq(send_calls, 0); /* at the end of the turn */
	TURN_UNTIL(b_seen.datagrams == 1);
	ck_assert_int_eq(a_seen.errors[1], 0);
	ck_assert_uint_eq(b_seen.last_len, 5);
	ck_assert_mem_eq(b_seen.last, "hello", 5);
	ck_assert_mem_eq(b_seen.from.addr, back.addr, 16);
	ck_assert_uint_eq(b_seen.from.family, (uint8_t)family);
	ck_assert_uint_eq(b_seen.from.port, udp_port(a));
	ck_assert_uint_eq(b_seen.batches, 1);
	ck_assert_uint_eq(udp_counters(a)->sent, 1);
	ck_assert_uint_eq(udp_counters(a)->sent_bytes, 5);
	ck_assert_uint_eq(udp_counters(b)->received, 1);
	ck_assert_uint_eq(udp_counters(b)->received_bytes, 5);
	send_to(b, &b_seen, &b_seen.from, NULL, 0, 2); /* empty, and back */
	TURN_UNTIL(a_seen.datagrams == 1);
	ck_assert_uint_eq(a_seen.last_len, 0);
	udp_free(a);
	udp_free(b);
}

START_TEST(ipv4_there_and_back)
{
	round_trip(4);
}
END_TEST

START_TEST(ipv6_there_and_back)
{
	round_trip(6);
}
END_TEST

START_TEST(other_families_are_refused)
{
	struct udp *a;
	struct endpoint to;

	errno = 0;
	ck_assert_ptr_null(udp_new(loop, 5, &hooks, NULL));
	ck_assert_int_eq(errno, EAFNOSUPPORT);
	a = udp_new(loop, 4, &hooks, &a_seen);
	to = local(a, 6);
	send_to(a, &a_seen, &to, "x", 1, 1);
	ck_assert_int_eq(a_seen.errors[1], EAFNOSUPPORT);
	udp_free(a);
	udp_free(NULL);
}
END_TEST

START_TEST(a_failed_socket_gives_errno)
{
	int most = dup(0);

	/* With no descriptor left: errno survives the clean-up. */
	while (dup(0) >= 0)
		continue;
	errno = 0;
	ck_assert_ptr_null(udp_new(loop, 4, &hooks, NULL));
	ck_assert_int_eq(errno, EMFILE);
	ck_assert_int_ge(most, 0);
	for (int fd = most; fd < 1024; fd++)
		close(fd);
}
END_TEST

START_TEST(too_long_is_refused_and_the_longest_is_not)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	uint8_t bytes[1201];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	send_to(a, &a_seen, &to, bytes, 1201, 1);
	ck_assert_int_eq(a_seen.errors[1], EMSGSIZE);
	send_to(a, &a_seen, &to, bytes, 1200, 2);
	TURN_UNTIL(b_seen.datagrams == 1);
	ck_assert_uint_eq(b_seen.last_len, 1200);
	ck_assert_mem_eq(b_seen.last, bytes, 1200);
	ck_assert_uint_eq(b_seen.truncated, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* A plain blocking socket, as a stranger has. */
static int
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

START_TEST(truncation_is_told)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);
	static uint8_t bytes[2049];

	ck_assert_int_eq(send(fd, bytes, 2048, 0), 2048);
	TURN_UNTIL(a_seen.datagrams == 1);
	ck_assert_uint_eq(a_seen.truncated, 0);
	ck_assert_int_eq(send(fd, bytes, 2049, 0), 2049);
	TURN_UNTIL(a_seen.datagrams == 2);
	ck_assert_uint_eq(a_seen.truncated, 1);
	ck_assert_uint_eq(udp_counters(a)->truncated, 1);
	close(fd);
	udp_free(a);
}
END_TEST

START_TEST(one_wake_up_is_bounded)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);

	for (unsigned int i = 0; i < 1200; i++)
		ck_assert_int_eq(send(fd, &i, sizeof(i), 0), sizeof(i));
	ck_assert(udp_drain(a));
	ck_assert_uint_eq(a_seen.datagrams, 16 * 32);
	ck_assert_uint_eq(a_seen.batches, 16);
	ck_assert_uint_eq(a_seen.most_in_batch, 32);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.datagrams, 2 * 16 * 32);
	TURN_UNTIL(a_seen.datagrams == 1200);
	udp_drain(a); /* nothing there: no batch */
	ck_assert_uint_eq(a_seen.batches, 16 + 16 + 6);
	close(fd);
	udp_free(a);
}
END_TEST

static int flooder;

static void
flood(void *arg)
{
	struct loop_task *again = arg;

	for (int i = 0; i < 300; i++)
		(void)send(flooder, "f", 1, MSG_DONTWAIT);
	loop_defer(loop, again);
}

static void
count_down(void *arg)
{
	if (--*(int *)arg == 0)
		loop_stop(loop);
}

/* More comes in each turn than a turn reads. */
START_TEST(a_flood_stops_no_timer)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int left = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &left);
	struct loop_task task;

	flooder = stranger(a);
	loop_task_init(&task, flood, &task);
	flood(&task);
	loop_timer_set(t, loop_now() + 20000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(left, 0);
	ck_assert_uint_gt(a_seen.datagrams, 256);
	loop_cancel(loop, &task);
	loop_timer_free(t);
	close(flooder);
	udp_free(a);
}
END_TEST

START_TEST(receive_errors_are_counted_and_skipped)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	int fd = stranger(a);

	receive_errors[0] = ECONNREFUSED;
	receive_errors[1] = EINTR;
	receive_errors[2] = EHOSTUNREACH;
	ck_assert_int_eq(send(fd, "x", 1, 0), 1);
	udp_drain(a);
	ck_assert_uint_eq(a_seen.datagrams, 1);
	ck_assert_uint_eq(udp_counters(a)->receive_errors, 2);
	ck_assert_uint_eq(receive_calls, 4); /* the batch was short: no more */
	/* An error that never ends costs the bounded rounds, no more. */
	for (unsigned int i = 0; i < 8; i++)
		receive_errors[i] = EIO;
	receive_error_at = 0;
	receive_calls = 0;
	udp_drain(a);
	ck_assert_uint_eq(receive_calls, 9);
	close(fd);
	udp_free(a);
}
END_TEST

START_TEST(a_turn_leaves_in_batches_and_in_order)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 100; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 100);
	ck_assert_uint_eq(send_calls, 4);
	for (unsigned int i = 0; i < 100; i++)
		ck_assert_uint_eq(a_seen.order[i], i);
	TURN_UNTIL(b_seen.datagrams == 100);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(partial_results_go_on)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_most = 7;
	for (unsigned int i = 0; i < 100; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	TURN_UNTIL(b_seen.datagrams == 100);
	ck_assert_uint_eq(a_seen.sent, 100);
	ck_assert_uint_eq(send_calls, 15);
	udp_free(a);
	udp_free(b);
}
END_TEST

/* 255.255.255.255 without SO_BROADCAST, and port 0: the kernel's own no. */
START_TEST(an_error_concerns_its_datagram_only)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4), broadcast = to, nowhere = to;

	memset(broadcast.addr, 255, 4);
	nowhere.port = 0;
	for (unsigned int i = 0; i < 90; i++) {
		send_to(a, &a_seen,
		    i % 10 == 3   ? &broadcast
		    : i % 10 == 4 ? &nowhere
				  : &to,
		    &i, sizeof(i), i);
	}
	TURN_UNTIL(b_seen.datagrams == 72);
	ck_assert_uint_eq(a_seen.sent, 90);
	for (unsigned int i = 0; i < 90; i++) {
		ck_assert_int_eq(a_seen.errors[i], i % 10 == 3   ? EACCES
						   : i % 10 == 4 ? EINVAL
								 : 0);
		ck_assert_uint_eq(a_seen.order[i], i);
	}
	ck_assert_uint_eq(udp_counters(a)->send_errors, 18);
	ck_assert_uint_eq(udp_counters(a)->sent, 72);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(unreachable_is_told_to_one_token)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_errors[0] = ENETUNREACH;
	send_errors[1] = EINTR;
	send_errors[2] = EPERM;
	for (unsigned int i = 0; i < 5; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	TURN_UNTIL(b_seen.datagrams == 3);
	ck_assert_int_eq(a_seen.errors[0], ENETUNREACH);
	ck_assert_int_eq(a_seen.errors[1], EPERM);
	for (unsigned int i = 2; i < 5; i++)
		ck_assert_int_eq(a_seen.errors[i], 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(what_expired_is_not_sent)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 10; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i % 3 == 0 ? loop_now() : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	TURN_UNTIL(b_seen.datagrams == 6 && a_seen.sent == 10);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_int_eq(a_seen.errors[i], i % 3 == 0 ? ETIME : 0);
	ck_assert_uint_eq(udp_counters(a)->send_expired, 4);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

static void
blocked_by(int error)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	int64_t soon;

	send_error_always = error;
	for (unsigned int i = 0; i < 40; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 0);
	ck_assert_uint_eq(udp_counters(a)->send_blocked, 1);
	/* One in the middle expires while all wait, and is told in time. */
	soon = loop_now() + 5000;
	udp_send(a, &to, "soon", 4, soon, token_of(&a_seen, 40));
	send_to(a, &a_seen, &to, "late", 4, 41);
	TURN_UNTIL(a_seen.sent == 1);
	ck_assert_int_ge(loop_now(), soon);
	ck_assert_int_eq(a_seen.errors[40], ETIME);
	ck_assert_uint_eq(udp_counters(a)->send_blocked, 1);
	send_error_always = 0;
	TURN_UNTIL(b_seen.datagrams == 41);
	ck_assert_uint_eq(a_seen.sent, 42);
	ck_assert_uint_eq(b_seen.last_len, 4);
	ck_assert_mem_eq(b_seen.last, "late", 4);
	/* And the socket works as before. */
	send_to(a, &a_seen, &to, "next", 4, 42);
	loop_turn(loop);
	ck_assert_int_eq(a_seen.errors[42], 0);
	udp_free(a);
	udp_free(b);
}

START_TEST(a_full_buffer_waits_for_writability)
{
	blocked_by(EAGAIN);
}
END_TEST

START_TEST(a_full_device_waits_for_the_timer)
{
	blocked_by(ENOBUFS);
}
END_TEST

/*
 * A corked datagram fills the real buffer, so that writability, too, is real:
 * nothing but the expiry wakes the loop, until the cork is out.
 */
START_TEST(a_full_buffer_costs_no_busy_loop)
{
	static const uint8_t plug[4000];
	const int small = 1, on = 1, off = 0;
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = dup(0); /* the number that the socket will have */
	struct udp *a, *b;
	struct endpoint to;
	int64_t soon;

	close(fd);
	a = udp_new(loop, 4, &hooks, &a_seen);
	b = udp_new(loop, 4, &hooks, &b_seen);
	to = local(b, 4);
	in.sin_port = htons(udp_port(b));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	ck_assert_int_eq(
	    setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)), 0);
	ck_assert_int_eq(sendto(fd, plug, sizeof(plug), 0,
			     (const struct sockaddr *)&in, sizeof(in)),
	    sizeof(plug));
	send_error_always = EAGAIN; /* a corked socket would append */
	udp_send(a, &to, "1", 1, loop_now() + 300000, token_of(&a_seen, 1));
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 1);
	/* Comes later and expires earlier. */
	soon = loop_now() + 5000;
	udp_send(a, &to, "2", 1, soon, token_of(&a_seen, 2));
	send_to(a, &a_seen, &to, "3", 1, 3);
	TURN_UNTIL(a_seen.errors[2] == ETIME);
	ck_assert_int_ge(loop_now(), soon);
	ck_assert_int_eq(a_seen.errors[1], -1);
	TURN_UNTIL(a_seen.errors[1] == ETIME);
	ck_assert_uint_le(send_calls, 4);
	ck_assert_int_eq(a_seen.errors[3], -1);
	send_error_always = 0;
	ck_assert_int_eq(
	    setsockopt(fd, IPPROTO_UDP, UDP_CORK, &off, sizeof(off)), 0);
	TURN_UNTIL(b_seen.datagrams == 2);
	ck_assert_int_eq(a_seen.errors[3], 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(a_full_device_costs_no_busy_loop)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct endpoint to = local(a, 4);
	int one = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &one);

	send_error_always = ENOBUFS;
	send_to(a, &a_seen, &to, "x", 1, 1);
	loop_timer_set(t, loop_now() + 20000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_ge(send_calls, 2);
	ck_assert_uint_le(send_calls, 25); /* one a millisecond */
	loop_timer_free(t);
	ck_assert_uint_eq(a_seen.sent, 0);
	udp_free(a);
	ck_assert_int_eq(a_seen.errors[1], ECANCELED);
}
END_TEST

/* What is queued is answered, in order, and so is what the hook sends then. */
START_TEST(freeing_answers_what_is_queued)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct endpoint to = local(a, 4);

	for (unsigned int i = 0; i < 256; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	a_seen.resend = a;
	resend_to = to;
	udp_free(a);
	ck_assert_uint_eq(send_calls, 0);
	ck_assert_uint_eq(a_seen.sent, 512);
	for (unsigned int i = 0; i < 256; i++) {
		ck_assert_int_eq(a_seen.errors[i], ECANCELED);
		ck_assert_int_eq(a_seen.errors[2000 + i], ECANCELED);
		ck_assert_uint_eq(a_seen.order[2 * i], i);
	}
	loop_turn(loop); /* nothing of it is left there */
}
END_TEST

START_TEST(a_full_queue_is_flushed_at_once)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	for (unsigned int i = 0; i < 257; i++)
		send_to(a, &a_seen, &to, &i, sizeof(i), i);
	ck_assert_uint_eq(a_seen.sent, 256); /* inside the last udp_send() */
	TURN_UNTIL(a_seen.sent == 257);
	ck_assert_uint_eq(udp_counters(a)->send_errors, 0);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(a_full_queue_that_is_blocked_answers)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);

	send_error_always = EAGAIN;
	for (unsigned int i = 0; i < 256; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i < 3 ? loop_now() + 1000 : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	ck_assert_uint_eq(a_seen.sent, 0);
	send_to(a, &a_seen, &to, "x", 1, 256);
	if (a_seen.errors[0] != ETIME) /* not on a very slow machine */
		ck_assert_int_eq(a_seen.errors[256], ENOBUFS);
	/* Those that expire make room. */
	TURN_UNTIL(a_seen.errors[2] == ETIME);
	send_to(a, &a_seen, &to, "x", 1, 257);
	ck_assert_int_eq(a_seen.errors[257], -1);
	send_error_always = 0;
	TURN_UNTIL(a_seen.errors[257] == 0);
	TURN_UNTIL(b_seen.datagrams >= 254);
	udp_free(a);
	udp_free(b);
}
END_TEST

START_TEST(the_hook_may_send)
{
	struct udp *a = udp_new(loop, 4, &hooks, &a_seen);
	struct udp *b = udp_new(loop, 4, &hooks, &b_seen);
	struct endpoint to = local(b, 4);
	unsigned int taken = 0;

	a_seen.resend = a;
	resend_to = to;
	/* Over the queue, so that some answers come from udp_send() itself. */
	for (unsigned int i = 0; i < 600; i++) {
		udp_send(a, &to, &i, sizeof(i),
		    i % 7 == 2 ? loop_now() : loop_now() + FAR,
		    token_of(&a_seen, i));
	}
	TURN_UNTIL(a_seen.sent == 1200);
	for (unsigned int i = 0; i < SENT_MAX; i++) {
		if (i < 600 || (i >= 2000 && i < 2600))
			ck_assert_int_ne(a_seen.errors[i], -1);
		taken += a_seen.errors[i] == 0;
	}
	ck_assert_uint_eq(udp_counters(a)->sent, taken);
	ck_assert_uint_eq(udp_counters(a)->sent + udp_counters(a)->send_errors +
			      udp_counters(a)->send_expired,
	    1200);
	TURN_UNTIL(b_seen.datagrams == taken);
	udp_free(a);
	udp_free(b);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("udp");
	TCase *tc = tcase_create("udp");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ipv4_there_and_back);
	tcase_add_test(tc, ipv6_there_and_back);
	tcase_add_test(tc, other_families_are_refused);
	tcase_add_test(tc, a_failed_socket_gives_errno);
	tcase_add_test(tc, too_long_is_refused_and_the_longest_is_not);
	tcase_add_test(tc, truncation_is_told);
	tcase_add_test(tc, one_wake_up_is_bounded);
	tcase_add_test(tc, a_flood_stops_no_timer);
	tcase_add_test(tc, receive_errors_are_counted_and_skipped);
	tcase_add_test(tc, a_turn_leaves_in_batches_and_in_order);
	tcase_add_test(tc, partial_results_go_on);
	tcase_add_test(tc, an_error_concerns_its_datagram_only);
	tcase_add_test(tc, unreachable_is_told_to_one_token);
	tcase_add_test(tc, what_expired_is_not_sent);
	tcase_add_test(tc, a_full_buffer_waits_for_writability);
	tcase_add_test(tc, a_full_device_waits_for_the_timer);
	tcase_add_test(tc, a_full_buffer_costs_no_busy_loop);
	tcase_add_test(tc, a_full_device_costs_no_busy_loop);
	tcase_add_test(tc, freeing_answers_what_is_queued);
	tcase_add_test(tc, a_full_queue_is_flushed_at_once);
	tcase_add_test(tc, a_full_queue_that_is_blocked_answers);
	tcase_add_test(tc, the_hook_may_send);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
