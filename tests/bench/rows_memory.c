/*
 * The agent's own memory. Each round has fresh agents, since what was used
 * once is kept. For the same reason an idle connection is one that has asked
 * and been answered: what it keeps of that is its, too; the operations, which
 * are not, have been there before. The kernel's socket buffers are not in it.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#include "tests/bench/probe.h"

#define HOLD_MS     1200 /* longer than it takes to fill the agent */
#define CONNECTIONS 1000
#define EACH        20 /* checks */
#define OPERATIONS  20000

struct memory {
	struct lab_responder slow;
};

/* Opens, asks a few checks of each that may be in flight, measures, closes. */
static int
use(struct lab_agent *agent, const struct shape *shape, double *memory)
{
	struct side side;
	int rc = side_open(&side, agent->pid, agent->socket, shape);

	if (rc == 0)
		rc = side_ask(&side, EACH * CONNECTIONS);
	if (rc == 0)
		rc = probe_memory(agent->pid, memory);
	side_close(&side);
	return rc;
}

static int
measure_connections(struct bench *b, const struct lab_responder *responder,
    struct lab_agent *agent)
{
	const struct shape all = {.connections = CONNECTIONS};
	double idle, before, connected;

	if (probe_memory(agent->pid, &idle) != 0 ||
	    side_crowd(
		agent->pid, agent->socket, responder->pid, CONNECTIONS) != 0 ||
	    probe_memory(agent->pid, &before) != 0 ||
	    use(agent, &all, &connected) != 0)
		return -1;
	report_add(&b->report, ROW_MEMORY_IDLE, idle / (1 << 20));
	report_add(&b->report, ROW_MEMORY_CONNECTION,
	    (connected - before) / CONNECTIONS / 1024);
	return 0;
}

static int
measure_operations(struct bench *b, const struct lab_responder *responder,
    struct lab_agent *agent)
{
	const uint64_t count = bench_checks(b, OPERATIONS);
	const struct shape shape = {.window = OPERATIONS};
	double idle, loaded;
	struct side side;
	int rc = -1;

	(void)responder;
	if (side_open(&side, agent->pid, agent->socket, &shape) != 0)
		return -1;
	if (probe_memory(agent->pid, &idle) == 0 &&
	    side_fill(&side, count) == 0 &&
	    probe_memory(agent->pid, &loaded) == 0 && side_drain(&side) == 0) {
		report_add(&b->report, ROW_MEMORY_OPERATION,
		    (loaded - idle) / (double)count / 1024);
		rc = 0;
	}
	side_close(&side);
	return rc;
}

static int
with_agent(struct bench *b, const struct lab_responder *responder,
    int (*measure)(struct bench *b, const struct lab_responder *responder,
	struct lab_agent *agent))
{
	const struct lab_special special = {.policy = LAB_POLICY_NO_REPLAY};
	struct lab_agent agent;
	int rc;

	if (lab_start_agent(&b->lab, responder, &special, &agent) != 0)
		return -1;
	rc = measure(b, responder, &agent);
	lab_stop_agent(&b->lab, &agent);
	return rc;
}

static void *
memory_open(struct bench *b)
{
	const struct lab_wanted wanted = {.servers = 1, .hold_ms = HOLD_MS};
	struct memory *memory = calloc(1, sizeof(*memory));

	if (memory != NULL &&
	    lab_start_responder(&b->lab, &wanted, &memory->slow) == 0)
		return memory;
	free(memory);
	return NULL;
}

static int
memory_round(struct bench *b, void *state)
{
	struct memory *memory = state;

	if (with_agent(b, &b->responder, measure_connections) != 0)
		return -1;
	return with_agent(b, &memory->slow, measure_operations);
}

static void
memory_close(struct bench *b, void *state)
{
	(void)b;
	free(state);
}

const struct group group_memory = {"memory", ROW_MEMORY_IDLE,
    ROW_MEMORY_OPERATION, 3, memory_open, memory_round, memory_close};
