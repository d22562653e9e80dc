/*
 * The agent's own memory. Each round has fresh agents, since slots that were
 * used once are kept. The kernel's socket buffers are not in it.
 */
#include "tests/bench/bench.h"

#include "tests/bench/flow.h"
#include "tests/bench/probe.h"

#define CONNECTIONS 500
#define OPERATIONS  10000

static int
measure_connections(struct bench *b, struct lab_agent *agent)
{
	double idle, connected;
	struct flow *f;
	int rc = -1;

	if (probe_memory(agent->pid, &idle) != 0)
		return -1;
	f = flow_open(agent->socket, CONNECTIONS);
	if (f != NULL && probe_memory(agent->pid, &connected) == 0) {
		report_add(&b->report, "memory, idle", "KiB", idle / 1024);
		report_add(&b->report, "memory, an idle connection", "B",
		    (connected - idle) / CONNECTIONS);
		rc = 0;
	}
	flow_close(f);
	return rc;
}

static int
measure_operations(struct bench *b, struct lab_agent *agent)
{
	struct flow *f = flow_open(agent->socket, 1);
	double idle, loaded;
	int rc = -1;

	if (f != NULL && probe_memory(agent->pid, &idle) == 0 &&
	    flow_load(f, OPERATIONS) == 0 &&
	    probe_memory(agent->pid, &loaded) == 0 && flow_drain(f) == 0) {
		report_add(&b->report, "memory, an operation in flight", "B",
		    (loaded - idle) / OPERATIONS);
		rc = 0;
	}
	flow_close(f);
	return rc;
}

static int
with_agent(struct bench *b, const struct lab_sandbox *sandbox,
    int (*measure)(struct bench *b, struct lab_agent *agent))
{
	const struct lab_special none = {0};
	struct lab_agent agent;
	int rc;

	if (lab_start_agent(&b->lab, sandbox, &none, &agent) != 0)
		return -1;
	rc = measure(b, &agent);
	lab_stop_agent(&b->lab, &agent);
	return rc;
}

int
rows_memory(struct bench *b)
{
	if (with_agent(b, &b->sandbox, measure_connections) != 0)
		return -1;
	return with_agent(b, &b->slow, measure_operations);
}
