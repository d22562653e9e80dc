/*
 * Groups: datagrams that daemon/io/udp sends as one message. What is in each
 * message is looked at on its way to the kernel, and what becomes of it at the
 * sockets that receive it. Every datagram here tells its number and length.
 */
#include "daemon/io/udp.h"

#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "tests/unit/udp_fixture.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define PEERS 3

/* A kernel without groups; else the C library's own function. */
static bool old_kernel;

int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (old_kernel && level == IPPROTO_UDP && name == UDP_SEGMENT) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

/* What leaves */

static unsigned int groups;   /* messages of more than one */
static unsigned int singles;  /* messages of one */
static unsigned int biggest;  /* datagrams in a message */
static int group_error;       /* which all groups fail with */
static size_t forbidden_len;  /* datagrams of which fail alone, with EPERM */
static unsigned int failures; /* of the two */

/* The length that the kernel cuts a message into; 0: it does not. */
static uint16_t
cut_of(const struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR((struct msghdr *)(uintptr_t)msg);
	uint16_t size;

	if (c == NULL)
		return 0;
	ck_assert_int_eq(c->cmsg_level, IPPROTO_UDP);
	ck_assert_int_eq(c->cmsg_type, UDP_SEGMENT);
	ck_assert_uint_eq(c->cmsg_len, CMSG_LEN(sizeof(size)));
	memcpy(&size, CMSG_DATA(c), sizeof(size));
	ck_assert_uint_gt(size, 0);
	return size;
}

/* Would the kernel cut it where one ends? */
static void
check_group(const struct msghdr *msg, uint16_t size)
{
	size_t bytes = 0;

	ck_assert_uint_gt(msg->msg_iovlen, 1);
	ck_assert_uint_le(msg->msg_iovlen, 64);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		size_t len = msg->msg_iov[i].iov_len;

		bytes += len;
		if (len == size)
			continue;
		ck_assert_uint_eq(i, msg->msg_iovlen - 1);
		ck_assert_uint_gt(len, 0);
		ck_assert_uint_lt(len, size);
	}
	ck_assert_uint_le(bytes, 65507);
}

static int
look(const struct msghdr *msg)
{
	const uint16_t size = cut_of(msg);
	int error = 0;

	if (size != 0) {
		check_group(msg, size);
		error = group_error;
	} else {
		ck_assert_uint_eq(msg->msg_iovlen, 1);
		if (forbidden_len != 0 &&
		    msg->msg_iov[0].iov_len == forbidden_len)
			error = EPERM;
	}
	if (error != 0) {
		failures++;
		return error;
	}
	*(size != 0 ? &groups : &singles) += 1;
	if (msg->msg_iovlen > biggest)
		biggest = (unsigned int)msg->msg_iovlen;
	return 0;
}

static void
look_again(void)
{
	groups = singles = biggest = failures = send_calls = 0;
}

/* What arrives */

static struct peer {
	struct udp *udp;
	struct endpoint at;
	unsigned int count;
	uint16_t numbers[SENT_MAX];
} peers[PEERS];

static void
make(uint8_t *bytes, size_t len, unsigned int number)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(number + i * 7);
	if (len >= 4) {
		bytes[0] = (uint8_t)(number >> 8);
		bytes[1] = (uint8_t)number;
		bytes[2] = (uint8_t)(len >> 8);
		bytes[3] = (uint8_t)len;
	}
}

static void
on_numbered(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from)
{
	struct peer *p = arg;
	uint8_t made[1200];

	(void)from;
	ck_assert(!truncated);
	ck_assert_uint_lt(p->count, SENT_MAX);
	if (len >= 4) {
		p->numbers[p->count] = (uint16_t)(bytes[0] << 8 | bytes[1]);
		make(made, len, p->numbers[p->count]);
		ck_assert_mem_eq(bytes, made, len);
	}
	p->count++;
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static const struct udp_hooks numbered = {
    .datagram = on_numbered,
    .batch = on_nothing,
    .wanted = always_wanted,
    .sent = on_sent,
    .refused = on_refused,
};

static struct udp *us;

/* False where there is no IPv6. */
static bool
open_all(int family)
{
	us = udp_new(loop, family, &hooks, &a_seen);
	if (us == NULL && family == 6 && errno == EAFNOSUPPORT) {
		printf("# no IPv6 here\n");
		return false;
	}
	ck_assert_ptr_nonnull(us);
	for (unsigned int i = 0; i < PEERS; i++) {
		peers[i] = (struct peer){
		    .udp = udp_new(loop, family, &numbered, &peers[i]),
		};
		ck_assert_ptr_nonnull(peers[i].udp);
		peers[i].at = local(peers[i].udp, family);
	}
	return true;
}

static void
close_all(void)
{
	udp_free(us);
	for (unsigned int i = 0; i < PEERS; i++)
		udp_free(peers[i].udp);
}

static void
post(unsigned int peer, size_t len, unsigned int number)
{
	uint8_t bytes[1200];

	make(bytes, len, number);
	send_to(us, &a_seen, &peers[peer].at, bytes, len, number);
}

/* The peer has numbers first, first + step, ... and nothing else. */
static void
check_arrived(unsigned int peer, unsigned int first, unsigned int step)
{
	const struct peer *p = &peers[peer];

	for (unsigned int i = 0; i < p->count; i++)
		ck_assert_uint_eq(p->numbers[i], first + i * step);
}

static void
check_all_sent(unsigned int n)
{
	ck_assert_uint_eq(a_seen.sent, n);
	for (unsigned int i = 0; i < n; i++)
		ck_assert_int_eq(a_seen.errors[i], 0);
	ck_assert_uint_eq(udp_counters(us)->sent, n);
	ck_assert_uint_eq(udp_counters(us)->send_errors, 0);
}

static void
begin(void)
{
	setup();
	send_verdict = look;
	old_kernel = false;
	group_error = 0;
	forbidden_len = 0;
	look_again();
}

/* What becomes a group */

static void
one_destination(int family)
{
	if (!open_all(family))
		return;
	for (unsigned int i = 0; i < 150; i++)
		post(0, 140, i);
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 1);
	ck_assert_uint_eq(groups, 3);
	ck_assert_uint_eq(singles, 0);
	ck_assert_uint_eq(biggest, 64);
	TURN_UNTIL(peers[0].count == 150);
	check_arrived(0, 0, 1);
	check_all_sent(150);
	ck_assert_uint_eq(udp_counters(us)->sent_bytes, 150 * 140);
	for (unsigned int i = 0; i < 150; i++)
		ck_assert_uint_eq(a_seen.order[i], i);
	close_all();
}

START_TEST(one_length_leaves_together)
{
	one_destination(4);
}
END_TEST

START_TEST(one_length_leaves_together_over_ipv6)
{
	one_destination(6);
}
END_TEST

START_TEST(destinations_that_alternate_have_a_group_each)
{
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 90; i++)
		post(i % PEERS, 140, i);
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 1);
	ck_assert_uint_eq(groups, PEERS);
	ck_assert_uint_eq(singles, 0);
	TURN_UNTIL(peers[0].count + peers[1].count + peers[2].count == 90);
	for (unsigned int i = 0; i < PEERS; i++)
		check_arrived(i, i, PEERS);
	check_all_sent(90);
	close_all();
}
END_TEST

/* As the control message of the last call must not be left there. */
START_TEST(one_alone_is_no_group)
{
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 6; i++) {
		post(0, 140, i);
		if (i >= 2)
			loop_turn(loop);
	}
	ck_assert_uint_eq(groups, 1);
	ck_assert_uint_eq(singles, 3);
	TURN_UNTIL(peers[0].count == 6);
	check_arrived(0, 0, 1);
	check_all_sent(6);
	close_all();
}
END_TEST

START_TEST(a_shorter_one_ends_a_group)
{
	static const size_t lens[] = {9, 9, 8, 9, 9, 8, 7, 10, 10};

	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 9; i++)
		post(0, lens[i], i);
	loop_turn(loop);
	ck_assert_uint_eq(groups, 3); /* 9 9 8, 9 9 8, 10 10 */
	ck_assert_uint_eq(singles, 1);
	TURN_UNTIL(peers[0].count == 9);
	check_arrived(0, 0, 1);
	check_all_sent(9);
	close_all();
}
END_TEST

/* They would vanish among other bytes. */
START_TEST(empty_ones_leave_alone)
{
	static const size_t lens[] = {0, 0, 5, 0, 0};

	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 5; i++)
		post(0, lens[i], i);
	loop_turn(loop);
	ck_assert_uint_eq(groups, 0);
	ck_assert_uint_eq(singles, 5);
	TURN_UNTIL(peers[0].count == 5);
	check_all_sent(5);
	close_all();
}
END_TEST

/* More than a receive buffer may hold: the kernel takes them, that is all. */
START_TEST(a_group_fits_a_packet)
{
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 256; i++)
		post(0, 1200, i);
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 1);
	ck_assert_uint_eq(groups, 5);
	ck_assert_uint_eq(biggest, 54);
	check_all_sent(256);
	close_all();
}
END_TEST

/* More groups than a call takes, partial results, any lengths. */
START_TEST(any_mixture_arrives_in_order)
{
	static const size_t lens[] = {40, 41, 42, 140, 140, 140, 140, 4, 600};
	uint64_t rng = harness_seed();
	unsigned int expected[PEERS] = {0}, peer, n;
	static uint16_t numbers[PEERS][SENT_MAX];

	ck_assert(open_all(4));
	for (unsigned int number = 0; number < SENT_MAX;) {
		send_most = (unsigned int)(harness_random(&rng) % 4);
		for (n = 1 + (unsigned int)(harness_random(&rng) % 90);
		     n > 0 && number < SENT_MAX; n--) {
			peer = (unsigned int)(harness_random(&rng) % PEERS);
			post(peer, lens[harness_random(&rng) % 9], number);
			numbers[peer][expected[peer]++] = (uint16_t)number++;
		}
		for (unsigned int i = 0; i < PEERS; i++)
			TURN_UNTIL(peers[i].count == expected[i]);
	}
	for (unsigned int i = 0; i < PEERS; i++) {
		ck_assert_mem_eq(peers[i].numbers, numbers[i],
		    expected[i] * sizeof(numbers[i][0]));
	}
	check_all_sent(SENT_MAX);
	ck_assert_uint_gt(groups, 100);
	ck_assert_uint_gt(singles, 100);
	close_all();
}
END_TEST

/*
 * A call takes 64 messages: the rest is in the next, in order. The 64th to peer
 * 0 finds no room; the 65th would, in the group of the 63rd.
 */
START_TEST(more_groups_than_a_call_takes)
{
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 70; i++) {
		post(0, 10 + (i == 64 ? 62 : i), 2 * i);
		post(1, 10, 2 * i + 1);
	}
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 2);
	TURN_UNTIL(peers[0].count == 70 && peers[1].count == 70);
	check_arrived(0, 0, 2);
	check_arrived(1, 1, 2);
	check_all_sent(140);
	close_all();
}
END_TEST

/* What is refused */

static void
pair_of(unsigned int number)
{
	look_again();
	post(0, 140, number);
	post(0, 140, number + 1);
	loop_turn(loop);
}

/* A second. */
static void
until_groups_are_made_again(void)
{
	int one = 1;
	struct loop_timer *t = loop_timer_new(loop, count_down, &one);

	loop_timer_set(t, loop_now() + 1000000);
	ck_assert_int_eq(loop_run(loop), 0);
	loop_timer_free(t);
}

START_TEST(an_old_kernel_sees_no_group)
{
	old_kernel = true;
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 100; i++)
		post(0, 140, i);
	TURN_UNTIL(peers[0].count == 100);
	ck_assert_uint_eq(groups, 0);
	ck_assert_uint_eq(send_calls, 2);
	/* Nor after what ends them for a while elsewhere. */
	send_errors[0] = ENOBUFS;
	pair_of(100);
	until_groups_are_made_again();
	pair_of(102);
	ck_assert_uint_eq(groups, 0);
	TURN_UNTIL(peers[0].count == 104);
	check_arrived(0, 0, 1);
	check_all_sent(104);
	close_all();
}
END_TEST

/* All leave without, and a second later groups are tried again. */
START_TEST(groups_that_are_refused_leave_alone)
{
	static const int errors[] = {EIO, EINVAL, EMSGSIZE};
	const int64_t from = loop_now();

	ck_assert(open_all(4));
	group_error = errors[_i];
	for (unsigned int i = 0; i < 90; i++)
		post(i % PEERS, 140, i);
	loop_turn(loop);
	check_all_sent(90);
	ck_assert_uint_eq(groups, 0);
	ck_assert_uint_eq(failures, 2); /* the second one is to be sure */
	group_error = 0;
	pair_of(90);
	if (loop_now() < from + 1000000)
		ck_assert_uint_eq(groups, 0);
	until_groups_are_made_again();
	pair_of(92);
	ck_assert_uint_eq(groups, 1);
	TURN_UNTIL(peers[0].count == 34 && peers[1].count == 30 &&
		   peers[2].count == 30);
	check_all_sent(94);
	close_all();
}
END_TEST

/* The error is one datagram's; the others go, and so does the next group. */
START_TEST(one_of_a_group_is_refused)
{
	ck_assert(open_all(4));
	group_error = EPERM;
	forbidden_len = 100;
	for (unsigned int i = 0; i < 10; i++)
		post(0, i == 9 ? 100 : 140, i);
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 10);
	for (unsigned int i = 0; i < 10; i++)
		ck_assert_int_eq(a_seen.errors[i], i == 9 ? EPERM : 0);
	ck_assert_uint_eq(udp_counters(us)->send_errors, 1);
	group_error = 0;
	pair_of(10);
	ck_assert_uint_eq(groups, 1);
	TURN_UNTIL(peers[0].count == 11);
	close_all();
}
END_TEST

/* Nor does anybody join those that were told to leave alone. */
START_TEST(alone_means_alone)
{
	ck_assert(open_all(4));
	send_errors[0] = send_errors[1] = EPERM; /* of the group */
	send_errors[2] = EAGAIN;
	for (unsigned int i = 0; i < 5; i++)
		post(0, 140, i);
	loop_turn(loop);
	ck_assert_uint_eq(send_calls, 3);
	ck_assert_uint_eq(a_seen.sent, 0);
	look_again();
	for (unsigned int i = 5; i < 10; i++)
		post(0, 140, i);
	TURN_UNTIL(peers[0].count == 10);
	ck_assert_uint_eq(singles, 5);
	ck_assert_uint_eq(groups, 1);
	check_arrived(0, 0, 1);
	check_all_sent(10);
	close_all();
}
END_TEST

/* An error that was an earlier datagram's leaves the group together. */
START_TEST(an_echo_breaks_up_no_group)
{
	struct endpoint nobody;
	int fd = closed_port(4, &nobody);
	union address at;

	ck_assert(open_all(4));
	address_to_sockaddr(&nobody, &at);
	refuses = at.in4;
	send_echoes = 3;
	for (unsigned int i = 0; i < 20; i++)
		post(0, 140, i);
	TURN_UNTIL(peers[0].count == 20);
	ck_assert_uint_eq(send_calls, 4);
	ck_assert_uint_eq(singles, 0);
	ck_assert_uint_eq(a_seen.refused, 3);
	check_all_sent(20);
	close_all();
	close(fd);
}
END_TEST

/* The network refuses what the kernel took: each was sent, and it is told. */
START_TEST(a_group_to_a_closed_port_is_told)
{
	struct endpoint nobody;
	int fd = closed_port(4, &nobody);
	uint8_t bytes[140] = {0};

	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 20; i++)
		send_to(us, &a_seen, &nobody, bytes, sizeof(bytes), i);
	TURN_UNTIL(a_seen.refused > 0);
	ck_assert(endpoint_equal(&a_seen.refused_to, &nobody));
	check_all_sent(20);
	close_all();
	close(fd);
}
END_TEST

/*
 * A full device takes no groups for a second: its queue might cut one up and
 * lose what finds no room, without a word.
 */
START_TEST(after_a_full_device_all_leave_alone)
{
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 90; i++)
		post(i % PEERS, 140, i);
	send_error_always = ENOBUFS;
	loop_turn(loop);
	ck_assert_uint_eq(a_seen.sent, 0);
	send_error_always = 0;
	look_again();
	TURN_UNTIL(a_seen.sent == 90);
	ck_assert_uint_eq(groups, 0);
	ck_assert_uint_eq(singles, 90);
	until_groups_are_made_again();
	pair_of(90);
	ck_assert_uint_eq(groups, 1);
	TURN_UNTIL(peers[0].count + peers[1].count + peers[2].count == 92);
	check_all_sent(92);
	close_all();
}
END_TEST

/* The kernel's own refusals */

START_TEST(a_socket_without_checksums_sends_no_group)
{
	const int on = 1;
	int fd = next_fd();

	ck_assert(open_all(4));
	ck_assert_int_eq(
	    setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
	for (unsigned int i = 0; i < 90; i++)
		post(i % PEERS, 140, i);
	TURN_UNTIL(peers[0].count + peers[1].count + peers[2].count == 90);
	ck_assert_uint_eq(singles, 90);
	for (unsigned int i = 0; i < PEERS; i++)
		check_arrived(i, i, PEERS);
	check_all_sent(90);
	close_all();
}
END_TEST

/* In a network of this process alone, where packets are short. */
static bool
short_packets(int mtu)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd;

	if (unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
		if (getenv("RLA_REQUIRE_NETNS") != NULL)
			ck_abort_msg(
			    "no network namespace: %s", strerror(errno));
		printf("# no network namespace here\n");
		return false;
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, SIOCSIFMTU, &lo), 0);
	lo.ifr_flags = IFF_UP;
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

/* Single ones are cut up by IP, as ever. */
START_TEST(what_is_longer_than_a_packet_leaves_alone)
{
	if (!short_packets(400))
		return;
	ck_assert(open_all(4));
	for (unsigned int i = 0; i < 40; i++)
		post(0, 500, i);
	TURN_UNTIL(peers[0].count == 40);
	ck_assert_uint_eq(singles, 40);
	check_arrived(0, 0, 1);
	check_all_sent(40);
	close_all();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("udp_group");
	TCase *tc = tcase_create("udp_group");

	tcase_add_checked_fixture(tc, begin, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, one_length_leaves_together);
	tcase_add_test(tc, one_length_leaves_together_over_ipv6);
	tcase_add_test(tc, destinations_that_alternate_have_a_group_each);
	tcase_add_test(tc, one_alone_is_no_group);
	tcase_add_test(tc, a_shorter_one_ends_a_group);
	tcase_add_test(tc, empty_ones_leave_alone);
	tcase_add_test(tc, a_group_fits_a_packet);
	tcase_add_test(tc, any_mixture_arrives_in_order);
	tcase_add_test(tc, more_groups_than_a_call_takes);
	tcase_add_test(tc, an_old_kernel_sees_no_group);
	tcase_add_loop_test(tc, groups_that_are_refused_leave_alone, 0, 3);
	tcase_add_test(tc, one_of_a_group_is_refused);
	tcase_add_test(tc, alone_means_alone);
	tcase_add_test(tc, an_echo_breaks_up_no_group);
	tcase_add_test(tc, a_group_to_a_closed_port_is_told);
	tcase_add_test(tc, after_a_full_device_all_leave_alone);
	tcase_add_test(tc, a_socket_without_checksums_sends_no_group);
	tcase_add_test(
	    tc, what_is_longer_than_a_packet_leaves_alone); /* last */
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
