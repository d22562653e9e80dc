/*
 * Servers of the sandbox on real loopback sockets, and a client's side of
 * them. Nothing sleeps: the loop runs until a counter says that it happened.
 */
#ifndef TESTS_UNIT_SANDBOX_FIXTURE_H
#define TESTS_UNIT_SANDBOX_FIXTURE_H

#include <event2/event.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "proto/packet.h"
#include "proto/pdu.h"
#include "sandbox/cluster.h"
#include "sandbox/events.h"
#include "sandbox/server.h"
#include "tests/unit/harness.h"

static struct event_base *base;
static struct keyring ring;
static struct events *events;
static struct cluster cluster;
static struct server_setup sup;
static uint8_t unique;

static inline void
setup(void)
{
	struct credential cred = {.auth = AUTH_NONE,
	    .format = KEY_FORMAT_1,
	    .key_id = 5,
	    .quotas = {16, 16, 16, 16, 2000, UINT32_MAX}};

	base = event_base_new();
	keyring_init(&ring);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), 0);
	events = events_new(NULL);
	cluster_init(&cluster);
	sup = (struct server_setup){.base = base,
	    .ring = &ring,
	    .events = events,
	    .server_id = 77,
	    .tolerance_ms = 30000,
	    .addr_count = 1};
	ck_assert_int_eq(addr_parse("127.0.0.1:0", &sup.addrs[0]), 0);
	unique = 0;
}

static inline void
teardown(void)
{
	cluster_fini(&cluster);
	events_free(events);
	keyring_fini(&ring);
	event_base_free(base);
}

static inline struct server *
start(void)
{
	struct addr failed;

	ck_assert_int_eq(cluster_add(&cluster, &sup, &failed), 0);
	return cluster.servers[cluster.count - 1];
}

/* A client's socket, connected, so that it hears of closed ports. */
static inline int
dial(const struct addr *to)
{
	int fd = socket(to->ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
	    connect(fd, (const struct sockaddr *)&to->ss, to->len), 0);
	return fd;
}

static inline size_t
make_request(uint8_t out[PACKET_MAX])
{
	struct pdu_rate req = {.dedup_ttl_ms = 60, .resource_count = 1};
	struct packet_head head = {.key_id = 5, .unique_id = {unique++}};
	uint8_t pdu[PACKET_MAX], nonce[NONCE_LEN] = {0};
	struct timespec ts;
	size_t len;

	req.resources[0].window_ms = 1000;
	req.resources[0].limit = 1000;
	req.resources[0].tokens = 1;
	clock_gettime(CLOCK_REALTIME, &ts);
	head.time_stamp =
	    (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &req, pdu, sizeof pdu, &len), 0);
	ck_assert_int_eq(packet_seal(ring.keys[0].packet, &head, nonce, pdu,
			     len, out, PACKET_MAX, &len),
	    0);
	return len;
}

static inline void
send_request(int fd)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = make_request(bytes);

	ck_assert_int_eq(send(fd, bytes, len, 0), (ssize_t)len);
}

static inline void
run_until(const struct server *s, enum counter c, uint64_t value)
{
	while (server_counters(s)->values[c] < value)
		ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	ck_assert_uint_eq(server_counters(s)->values[c], value);
}

static inline bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

#endif
