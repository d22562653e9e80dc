/*
 * The processor time of the agent for one decision against that of a redis
 * server which runs a token bucket, asked over as many connections with as much
 * in flight and as many keys. The agent's server is another machine's business,
 * as redis is the whole of the rival. An agent of three servers, which are not
 * asked at one price, has its turn with them and only informs.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#include "tests/bench/probe.h"
#include "tests/bench/redis.h"

#define CONNECTIONS 64
#define TURNS       4
#define CHECKS      5000 /* a turn */

static const size_t depths[] = {1, 16};

#define DEPTHS (sizeof(depths) / sizeof(depths[0]))
#define LAST   ROW_REDIS_3_64X16

enum { ONE, THREE, KINDS };

static const char *const names[KINDS] = {
    "agent", "agent, 3 servers, default policy"};

struct rival {
	struct redis redis;
	struct redis_load *load; /* NULL: there is no redis here */
	struct lab_responder responder;
	struct lab_agent three; /* asks its three servers */
	struct side sides[KINDS][DEPTHS];
};

static enum row
row_of(size_t kind, size_t depth)
{
	return ROW_REDIS_64X1 + (enum row)(kind * DEPTHS + depth);
}

static void
redis_end(struct bench *b, void *state)
{
	struct rival *rival = state;

	for (size_t k = 0; k < KINDS; k++)
		for (size_t i = 0; i < DEPTHS; i++)
			side_close(&rival->sides[k][i]);
	if (rival->three.pid > 0)
		lab_stop_agent(&b->lab, &rival->three);
	redis_close(rival->load);
	free(rival);
}

static int
open_sides(struct bench *b, struct rival *rival, size_t i)
{
	const struct shape shape = {
	    .connections = CONNECTIONS, .window = depths[i]};

	if (side_open(&rival->sides[ONE][i], b->agent.pid, b->agent.socket,
		&shape) != 0)
		return -1;
	return side_open(&rival->sides[THREE][i], rival->three.pid,
	    rival->three.socket, &shape);
}

static int
start(struct bench *b, struct rival *rival)
{
	const struct lab_wanted wanted = {.servers = 3};
	const struct lab_special policy = {.policy = LAB_POLICY_DELIVERY};
	int rc = redis_start(&b->lab, &rival->redis);

	if (rc > 0) {
		for (enum row row = ROW_REDIS_64X1; row <= LAST; row++)
			report_skip(
			    &b->report, row, "redis-server is not installed");
		return 0;
	}
	if (rc == 0)
		rival->load = redis_open(&rival->redis, CONNECTIONS, SIDE_KEYS);
	if (rival->load == NULL ||
	    lab_start_responder(&b->lab, &wanted, &rival->responder) != 0 ||
	    lab_start_agent(
		&b->lab, &rival->responder, &policy, &rival->three) != 0)
		return -1;
	for (size_t i = 0; i < DEPTHS; i++)
		if (open_sides(b, rival, i) != 0)
			return -1;
	return 0;
}

static void *
redis_begin(struct bench *b)
{
	struct rival *rival = calloc(1, sizeof(*rival));

	if (rival != NULL && start(b, rival) != 0) {
		redis_end(b, rival);
		rival = NULL;
	}
	return rival;
}

static int
run_redis(struct rival *rival, size_t depth, uint64_t checks, double *us)
{
	double before, after;

	if (probe_cpu(rival->redis.pid, &before) != 0 ||
	    redis_run(rival->load, depth, checks) != 0 ||
	    probe_cpu(rival->redis.pid, &after) != 0)
		return -1;
	*us = (after - before) / (double)checks;
	return 0;
}

static int
measure(struct bench *b, struct rival *rival, size_t i)
{
	const uint64_t checks = bench_checks(b, CHECKS);
	double redis = 0, us[KINDS] = {0}, once;
	char name[REPORT_NAME];

	for (unsigned turn = 0; turn < TURNS; turn++) {
		if (run_redis(rival, depths[i], checks, &once) != 0)
			return -1;
		redis += once / TURNS;
		for (size_t k = 0; k < KINDS; k++) {
			if (side_run(&rival->sides[k][i], checks, &once) != 0)
				return -1;
			us[k] += once / TURNS;
		}
	}
	snprintf(name, sizeof(name), "CPU of redis, %d conns x %zu",
	    CONNECTIONS, depths[i]);
	report_figure(&b->report, name, "us", redis);
	for (size_t k = 0; k < KINDS; k++) {
		report_add(&b->report, row_of(k, i), us[k] / redis);
		snprintf(name, sizeof(name), "CPU of %s, %d conns x %zu",
		    names[k], CONNECTIONS, depths[i]);
		report_figure(&b->report, name, "us", us[k]);
	}
	return 0;
}

static int
redis_round(struct bench *b, void *state)
{
	struct rival *rival = state;

	for (size_t i = 0; rival->load != NULL && i < DEPTHS; i++)
		if (measure(b, rival, i) != 0)
			return -1;
	return 0;
}

const struct group group_redis = {
    "redis", ROW_REDIS_64X1, LAST, 7, redis_begin, redis_round, redis_end};
