/*
 * What a decision costs with many more in flight: the responder holds every
 * answer, so that the whole window waits in the agent. The relay's growth over
 * the same steps is the floor's: caches and socket buffers are its, too.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#define HOLD_MS 300

static const struct {
	size_t window;
	uint64_t checks; /* whole windows: each takes HOLD_MS */
} steps[] = {{1000, 4000}, {4000, 16000}, {60000, 120000}};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct held {
	struct lab_responder responder;
	struct lab_relay relay;
	struct lab_agent agent;
	struct {
		struct side agent, relay;
	} sides[STEPS];
};

static void
held_close(struct bench *b, void *state)
{
	struct held *held = state;

	for (size_t i = 0; i < STEPS; i++) {
		side_close(&held->sides[i].agent);
		side_close(&held->sides[i].relay);
	}
	if (held->agent.pid > 0)
		lab_stop_agent(&b->lab, &held->agent);
	free(held);
}

static int
start(struct bench *b, struct held *held)
{
	const struct lab_wanted wanted = {.servers = 1, .hold_ms = HOLD_MS};
	const struct lab_special special = {.policy = LAB_POLICY_NO_REPLAY};

	if (lab_start_responder(&b->lab, &wanted, &held->responder) != 0 ||
	    lab_start_relay(&b->lab, &held->responder, false, &held->relay) !=
		0 ||
	    lab_start_agent(
		&b->lab, &held->responder, &special, &held->agent) != 0)
		return -1;
	for (size_t i = 0; i < STEPS; i++) {
		const struct shape shape = {.window = steps[i].window};

		if (side_open(&held->sides[i].agent, held->agent.pid,
			held->agent.socket, &shape) != 0 ||
		    side_open(&held->sides[i].relay, held->relay.pid,
			held->relay.socket, &shape) != 0)
			return -1;
	}
	return 0;
}

static void *
held_open(struct bench *b)
{
	struct held *held = calloc(1, sizeof(*held));

	if (held != NULL && start(b, held) != 0) {
		held_close(b, held);
		held = NULL;
	}
	return held;
}

static int
held_round(struct bench *b, void *state)
{
	struct held *held = state;
	double agent[STEPS], relay[STEPS];
	char name[REPORT_NAME];

	for (size_t i = 0; i < STEPS; i++) {
		const uint64_t checks = bench_checks(b, steps[i].checks);

		if (side_run(&held->sides[i].relay, checks, &relay[i]) != 0 ||
		    side_run(&held->sides[i].agent, checks, &agent[i]) != 0)
			return -1;
		snprintf(name, sizeof(name), "CPU of relay, %zu held for %d ms",
		    steps[i].window, HOLD_MS);
		report_figure(&b->report, name, "us", relay[i]);
		snprintf(name, sizeof(name), "CPU of agent, %zu held for %d ms",
		    steps[i].window, HOLD_MS);
		report_figure(&b->report, name, "us", agent[i]);
	}
	for (size_t i = 1; i < STEPS; i++)
		report_add(&b->report, ROW_HELD_4000 + i - 1,
		    agent[i] / agent[0] / (relay[i] / relay[0]));
	return 0;
}

const struct group group_held = {"held", ROW_HELD_4000, ROW_HELD_60000, 5,
    held_open, held_round, held_close};
