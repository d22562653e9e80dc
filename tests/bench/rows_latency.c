/*
 * One check at a time, by the clock on the wall, with everything on one core:
 * the load, the agent or the relay, and the responder of both. Over two cores
 * it would be the wake-up of the other core that is measured.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#define BLOCK  250 /* checks of one side before the other's turn */
#define BLOCKS 16

struct latency {
	cpu_set_t before; /* where the bench may run else */
	struct lab_responder responder;
	struct lab_relay relay;
	struct lab_agent agent;
	struct side sides[2]; /* the relay, the agent */
};

/* To the last of the cores that it may use. What it starts stays there. */
static int
pin(struct latency *latency)
{
	cpu_set_t one;
	int cpu = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(latency->before), &latency->before) !=
	    0)
		return lab_fail("sched_getaffinity");
	while (cpu > 0 && !CPU_ISSET(cpu, &latency->before))
		cpu--;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		return lab_fail("sched_setaffinity");
	return 0;
}

static void
unpin(const struct latency *latency)
{
	(void)sched_setaffinity(0, sizeof(latency->before), &latency->before);
}

static void
latency_close(struct bench *b, void *state)
{
	struct latency *latency = state;

	side_close(&latency->sides[0]);
	side_close(&latency->sides[1]);
	if (latency->agent.pid > 0)
		lab_stop_agent(&b->lab, &latency->agent);
	free(latency);
}

static int
start(struct bench *b, struct latency *latency)
{
	const struct lab_wanted wanted = {.servers = 1};
	const struct lab_special none = {0};
	const struct shape shape = {0};

	if (lab_start_responder(&b->lab, &wanted, &latency->responder) != 0 ||
	    lab_start_relay(
		&b->lab, &latency->responder, false, &latency->relay) != 0 ||
	    lab_start_agent(
		&b->lab, &latency->responder, &none, &latency->agent) != 0 ||
	    side_open(&latency->sides[0], latency->relay.pid,
		latency->relay.socket, &shape) != 0)
		return -1;
	return side_open(&latency->sides[1], latency->agent.pid,
	    latency->agent.socket, &shape);
}

static void *
latency_open(struct bench *b)
{
	struct latency *latency = calloc(1, sizeof(*latency));
	int rc;

	if (latency == NULL || pin(latency) != 0) {
		free(latency);
		return NULL;
	}
	rc = start(b, latency);
	unpin(latency);
	if (rc == 0)
		return latency;
	latency_close(b, latency);
	return NULL;
}

static int
take_turns(struct bench *b, struct latency *latency)
{
	size_t i, k;

	for (k = 0; k < 2; k++)
		load_reset(latency->sides[k].load);
	for (i = 0; i < BLOCKS; i++)
		for (k = 0; k < 2; k++)
			if (side_ask(&latency->sides[k],
				bench_checks(b, BLOCK)) != 0)
				return -1;
	return 0;
}

static void
judge(struct bench *b, const struct latency *latency, enum row row,
    const char *name, double share)
{
	double relay = load_latency(latency->sides[0].load, share);
	double agent = load_latency(latency->sides[1].load, share);
	char figure[REPORT_NAME];

	report_add(&b->report, row, agent / relay);
	snprintf(figure, sizeof(figure), "%s of relay, one core", name);
	report_figure(&b->report, figure, "us", relay);
	snprintf(figure, sizeof(figure), "%s of agent, one core", name);
	report_figure(&b->report, figure, "us", agent);
}

static int
latency_round(struct bench *b, void *state)
{
	struct latency *latency = state;
	int rc;

	if (pin(latency) != 0)
		return -1;
	rc = take_turns(b, latency);
	unpin(latency);
	if (rc == 0) {
		judge(b, latency, ROW_P50, "p50", 0.5);
		judge(b, latency, ROW_P99, "p99", 0.99);
	}
	return rc;
}

const struct group group_latency = {
    "latency", ROW_P50, ROW_P99, 9, latency_open, latency_round, latency_close};
