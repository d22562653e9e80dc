/*
 * responder: as many r-servers as asked for, each at a UDP port of loopback,
 * in one thread. They grant whatever is asked of them in a valid request and
 * keep nothing, so that they are never what a benchmark waits for. The first
 * line is that of rl-sandbox; then it serves until a signal ends it.
 *
 * Everything is done in batches of one recvmmsg: opened, sealed into the ring
 * of answers under way, and, when they are due, sent. No more than one batch
 * leaves before the sockets are asked again, so a peer that sends while it
 * receives finds room in its own buffers.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sysexits.h>
#include <time.h>

#include "sandbox/number.h"
#include "tests/bench/answer.h"
#include "tests/bench/hold.h"
#include "tests/bench/wire.h"

#define MAX_SERVERS 16
#define MAX_HOLD_MS 60000
#define NOBODY      MAX_SERVERS

/* A server's id begins with when it started: these are a minute apart. */
#define FIRST_START 1000000
#define APART       60
#define ID_OF(i)    ((uint64_t)(FIRST_START + (i)*APART) << 23 | (i))

struct server {
	int fd;
	uint16_t port;
	struct wire_out out;
};

struct responder {
	const char *key_file;
	uint64_t count;
	uint64_t mute; /* this one reads and is silent; or NOBODY */
	uint64_t hold_ms;
	int epoll;
	struct keyring ring;
	struct hold *hold;
	struct answer answer;
	struct wire_in in;
	struct server servers[MAX_SERVERS];
};

static int
fail(const char *what)
{
	fprintf(stderr, "responder: %s: %s\n", what, strerror(errno));
	return -1;
}

static int64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int
parse_options(struct responder *r, int argc, char **argv)
{
	static const struct option options[] = {
	    {"key-file", required_argument, NULL, 'k'},
	    {"servers", required_argument, NULL, 's'},
	    {"hold", required_argument, NULL, 'h'},
	    {"mute", required_argument, NULL, 'm'}, {0}};
	int c, bad = 0;

	r->count = 1;
	r->mute = NOBODY;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'k')
			r->key_file = optarg;
		else if (c == 's')
			bad |= number_parse(optarg, 1, MAX_SERVERS, &r->count);
		else if (c == 'h')
			bad |=
			    number_parse(optarg, 0, MAX_HOLD_MS, &r->hold_ms);
		else if (c == 'm')
			bad |=
			    number_parse(optarg, 0, MAX_SERVERS - 1, &r->mute);
		else
			bad = -1;
	}
	if (bad == 0 && r->key_file != NULL && optind == argc)
		return 0;
	fputs("usage: responder --key-file FILE [--servers N] [--hold MS] "
	      "[--mute I]\n",
	    stderr);
	return -1;
}

static int
open_server(struct responder *r, uint32_t number)
{
	struct epoll_event event = {EPOLLIN, {.u32 = number}};
	struct server *s = &r->servers[number];

	s->fd = wire_open(&s->port);
	if (s->fd < 0 || epoll_ctl(r->epoll, EPOLL_CTL_ADD, s->fd, &event) != 0)
		return fail("a socket");
	wire_out_init(&s->out, s->fd, true);
	return 0;
}

static int
set_up(struct responder *r)
{
	char why[KEYRING_WHY];
	uint32_t i;

	keyring_init(&r->ring);
	if (keyring_load(&r->ring, r->key_file, NULL, why) != 0) {
		fprintf(stderr, "responder: %s\n", why);
		return -1;
	}
	r->answer.key = &r->ring.keys[0];
	wire_in_init(&r->in, true);
	r->hold = hold_new();
	if (r->hold == NULL)
		return fail("the ring");
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll < 0)
		return fail("epoll");
	for (i = 0; i < r->count; i++)
		if (open_server(r, i) != 0)
			return -1;
	return 0;
}

/* The part of rl-sandbox's first line that tells where the servers are. */
static int
announce(const struct responder *r)
{
	uint64_t i;

	fputs("{\"servers\":[", stdout);
	for (i = 0; i < r->count; i++)
		printf("%s{\"server_id\":\"%" PRIu64
		       "\",\"addresses\":[\"127.0.0.1:%u\"]}",
		    i > 0 ? "," : "", ID_OF(i), (unsigned)r->servers[i].port);
	fputs("],\"dns\":null,\"zone\":null}\n", stdout);
	return fflush(stdout) == 0 ? 0 : fail("standard output");
}

/* An answer that finds the ring full is lost, and said to be. */
static void
take(struct responder *r, uint32_t number, unsigned i, int64_t due_ns,
    uint64_t wall_ms)
{
	struct hold_record *record = hold_reserve(r->hold);
	size_t len;

	if (record == NULL) {
		fputs("responder: too many answers under way\n", stderr);
		return;
	}
	len = answer_make(&r->answer, ID_OF(number), wall_ms, r->in.bytes[i],
	    r->in.msgs[i].msg_len, record->bytes);
	if (len == 0)
		return;
	record->due_ns = due_ns;
	record->to = r->in.from[i];
	record->server = number;
	record->len = (uint32_t)len;
	hold_commit(r->hold);
}

static void
receive(struct responder *r, uint32_t number)
{
	unsigned n = wire_receive(&r->in, r->servers[number].fd), i;
	int64_t due = clock_ns(CLOCK_MONOTONIC) + (int64_t)r->hold_ms * 1000000;
	uint64_t wall = (uint64_t)clock_ns(CLOCK_REALTIME) / 1000000;

	if (number == r->mute)
		return;
	for (i = 0; i < n; i++)
		take(r, number, i, due, wall);
}

/* One batch at most of what is due. */
static void
release(struct responder *r)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct hold_record *record;
	unsigned n;
	uint64_t i;

	for (n = 0; n < WIRE_BATCH; n++) {
		record = hold_first(r->hold);
		if (record == NULL || record->due_ns > now)
			break;
		wire_add(&r->servers[record->server].out, record->bytes,
		    record->len, &record->to);
		hold_pop(r->hold);
	}
	for (i = 0; i < r->count; i++)
		wire_flush(&r->servers[i].out);
}

/* Milliseconds until the next answer is due, rounded up; -1: there is none. */
static int
patience(struct responder *r)
{
	const struct hold_record *next = hold_first(r->hold);
	int64_t left;

	if (next == NULL)
		return -1;
	left = next->due_ns - clock_ns(CLOCK_MONOTONIC);
	return left > 0 ? (int)((left + 999999) / 1000000) : 0;
}

static int
serve(struct responder *r)
{
	struct epoll_event events[MAX_SERVERS];
	int n, i;

	for (;;) {
		n = epoll_wait(r->epoll, events, MAX_SERVERS, patience(r));
		if (n < 0 && errno != EINTR)
			return fail("epoll");
		for (i = 0; i < n; i++) {
			receive(r, events[i].data.u32);
			release(r);
		}
		if (n <= 0)
			release(r);
	}
}

int
main(int argc, char **argv)
{
	static struct responder r;

	if (parse_options(&r, argc, argv) != 0)
		return EX_USAGE;
	if (set_up(&r) != 0 || announce(&r) != 0)
		return 1;
	return serve(&r) == 0 ? 0 : 1;
}
