/*
 * flood: forged datagrams at a steady rate to a UDP port of loopback. Each has
 * the form and the length of an answer to a check with one resource, under an
 * AES key, and the id of the server that is named; what should prove them is
 * random. They leave in bursts a millisecond apart. At the end, or when
 * SIGTERM comes, it prints how many were sent, and in how many microseconds.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "proto/packet.h"
#include "proto/random.h"
#include "proto/writer.h"
#include "sandbox/number.h"
#include "tests/bench/wire.h"

#define FORGED     4096 /* different ones, sent in turn */
#define FORGED_LEN 112
#define AES_TYPE   0x4541
#define AES_LEN    32
#define TICK_NS    1000000
/* What a late tick may make up for; the rest is given up. */
#define MAX_LATE_NS (10 * TICK_NS)

struct flood {
	uint64_t port;
	uint64_t rate; /* a second */
	uint64_t seconds;
	uint64_t server_id;
	struct sockaddr_in to;
	struct wire_out out;
	uint64_t sent;
	uint8_t forged[FORGED][FORGED_LEN];
};

/* A handler can reach nothing else. */
static volatile sig_atomic_t stopped;

static void
on_signal(int number)
{
	stopped = number;
}

static int
parse_options(struct flood *f, int argc, char **argv)
{
	static const struct option options[] = {
	    {"port", required_argument, NULL, 'p'},
	    {"rate", required_argument, NULL, 'r'},
	    {"seconds", required_argument, NULL, 's'},
	    {"server-id", required_argument, NULL, 'i'}, {0}};
	int c, bad = 0;

	f->rate = 100000;
	f->seconds = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			bad |= number_parse(optarg, 1, UINT16_MAX, &f->port);
		else if (c == 'r')
			bad |= number_parse(optarg, 1, 10000000, &f->rate);
		else if (c == 's')
			bad |= number_parse(optarg, 1, 3600, &f->seconds);
		else if (c == 'i')
			bad |=
			    number_parse(optarg, 0, UINT64_MAX, &f->server_id);
		else
			bad = -1;
	}
	if (bad == 0 && f->port != 0 && optind == argc)
		return 0;
	fputs("usage: flood --port P [--rate N] [--seconds S] "
	      "[--server-id ID]\n",
	    stderr);
	return -1;
}

/* Random all over, then what a glance sees before it judges the rest. */
static int
forge(struct flood *f, struct random_pool *random, uint8_t out[FORGED_LEN])
{
	struct timespec now;
	struct writer w;

	clock_gettime(CLOCK_REALTIME, &now);
	if (random_bytes(random, out, FORGED_LEN) != 0)
		return -1;
	writer_init(&w, out, FORGED_LEN);
	writer_u16(&w, 0x4C52);
	writer_u16(&w, PACKET_TENANT_LEN);
	writer_u64(&w, f->server_id);
	if (random_uuid(random, writer_space(&w, PACKET_UNIQUE_LEN)) != 0)
		return -1;
	writer_u64(&w, (uint64_t)now.tv_sec * 1000);
	writer_u8(&w, 1); /* keep the port */
	writer_zeros(&w, 3);
	writer_u16(&w, AES_TYPE);
	writer_u16(&w, AES_LEN);
	return 0;
}

static int
set_up(struct flood *f)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct random_pool *random = random_pool_new();
	int bad = random == NULL, fd;
	uint16_t port;
	size_t i;

	for (i = 0; i < FORGED && !bad; i++)
		bad = forge(f, random, f->forged[i]) != 0;
	random_pool_free(random);
	if (bad) {
		fputs("flood: no randomness\n", stderr);
		return -1;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	f->to = wire_loopback((uint16_t)f->port);
	fd = wire_open(&port);
	if (fd < 0) {
		fprintf(stderr, "flood: a socket: %s\n", strerror(errno));
		return -1;
	}
	wire_out_init(&f->out, fd, true);
	return 0;
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
burst(struct flood *f, uint64_t count)
{
	for (; count > 0; count--, f->sent++)
		wire_add(
		    &f->out, f->forged[f->sent % FORGED], FORGED_LEN, &f->to);
	wire_flush(&f->out);
}

/* What is due from since until now, in whole datagrams; moves since on. */
static uint64_t
due(const struct flood *f, int64_t *since, int64_t now)
{
	uint64_t count;

	if (now - *since > MAX_LATE_NS)
		*since = now - MAX_LATE_NS;
	count = (uint64_t)(now - *since) * f->rate / 1000000000;
	*since += (int64_t)(count * 1000000000 / f->rate);
	return count;
}

/* Returns how long it took, in microseconds, to the last burst. */
static int64_t
run(struct flood *f)
{
	const int64_t start = now_ns();
	int64_t now = start, since = now, tick = now;
	int64_t end = now + (int64_t)f->seconds * 1000000000;
	struct timespec until;

	while (now < end && !stopped) {
		tick = now - tick > MAX_LATE_NS ? now : tick + TICK_NS;
		until = (struct timespec){tick / 1000000000, tick % 1000000000};
		(void)clock_nanosleep(
		    CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		now = now_ns();
		burst(f, due(f, &since, now));
	}
	return (now - start) / 1000;
}

int
main(int argc, char **argv)
{
	static struct flood f;
	int64_t us;

	if (parse_options(&f, argc, argv) != 0)
		return EX_USAGE;
	if (set_up(&f) != 0)
		return 1;
	us = run(&f);
	printf("%" PRIu64 " %" PRId64 "\n", f.sent, us);
	return fflush(stdout) == 0 ? 0 : 1;
}
