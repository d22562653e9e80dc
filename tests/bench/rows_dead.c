/*
 * What a dead server costs: three servers, the oldest of which is silent, with
 * the adaptive preference, over three servers that are all alive. By the policy
 * as specified every decision waits for the silent one; that row informs.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#define BLOCK   50 /* checks of one side before the other's turn */
#define BLOCKS  10
#define WAITING 2 /* of the side that waits; 20 ms each */
#define SERVERS 3

/* The recommended policy: P(0) is 20 ms. */
#define SPECIFIED "\"unit_ms\": 20"
#define ADAPTIVE  SPECIFIED ", \"suspect_after\": 3"

static const struct {
	const char *name;
	bool dead;
	const char *policy;
	unsigned block;
} kinds[] = {
    {"all alive", false, ADAPTIVE, BLOCK},
    {"oldest dead, suspect_after 3", true, ADAPTIVE, BLOCK},
    {"oldest dead, specified", true, SPECIFIED, WAITING},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct dead {
	struct {
		struct lab_responder responder;
		struct lab_agent agent;
		struct side side;
	} sides[KINDS];
};

static void
dead_close(struct bench *b, void *state)
{
	struct dead *dead = state;

	for (size_t i = 0; i < KINDS; i++) {
		side_close(&dead->sides[i].side);
		if (dead->sides[i].agent.pid > 0)
			lab_stop_agent(&b->lab, &dead->sides[i].agent);
	}
	free(dead);
}

static int
start(struct bench *b, struct dead *dead, size_t i)
{
	const struct lab_wanted wanted = {
	    .servers = SERVERS, .oldest_dead = kinds[i].dead};
	const struct lab_special special = {.policy = kinds[i].policy};
	const struct shape shape = {0};
	struct lab_agent *agent = &dead->sides[i].agent;

	if (lab_start_responder(&b->lab, &wanted, &dead->sides[i].responder) !=
		0 ||
	    lab_start_agent(
		&b->lab, &dead->sides[i].responder, &special, agent) != 0 ||
	    side_open(
		&dead->sides[i].side, agent->pid, agent->socket, &shape) != 0)
		return -1;
	/* What comes before suspicion is not the steady state. */
	return side_ask(&dead->sides[i].side, 10);
}

static void *
dead_open(struct bench *b)
{
	struct dead *dead = calloc(1, sizeof(*dead));

	for (size_t i = 0; dead != NULL && i < KINDS; i++) {
		if (start(b, dead, i) == 0)
			continue;
		dead_close(b, dead);
		dead = NULL;
	}
	return dead;
}

static int
dead_round(struct bench *b, void *state)
{
	struct dead *dead = state;
	double p50[KINDS];
	char name[REPORT_NAME];
	size_t i, k;

	for (k = 0; k < KINDS; k++)
		load_reset(dead->sides[k].side.load);
	for (i = 0; i < BLOCKS; i++)
		for (k = 0; k < KINDS; k++)
			if (side_ask(&dead->sides[k].side, kinds[k].block) != 0)
				return -1;
	for (k = 0; k < KINDS; k++) {
		p50[k] = load_latency(dead->sides[k].side.load, 0.5);
		snprintf(
		    name, sizeof(name), "p50, 3 servers, %s", kinds[k].name);
		report_figure(&b->report, name, "us", p50[k]);
	}
	report_add(&b->report, ROW_DEAD, p50[1] / p50[0]);
	report_add(&b->report, ROW_DEAD_SPECIFIED, p50[2] / p50[0]);
	return 0;
}

const struct group group_dead = {"dead server", ROW_DEAD, ROW_DEAD_SPECIFIED, 7,
    dead_open, dead_round, dead_close};
