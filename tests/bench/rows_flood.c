/*
 * Forged datagrams at the agent's own port, against as many at another one,
 * which a second responder reads and throws away: the machine carries the same
 * datagrams to a process that reads them all, only to another one.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/bench/probe.h"

#define RATE   100000
#define LEAST  (0.9 * RATE) /* a slower flood is not the one in the name */
#define WINDOW 8
#define CHECKS 6000

/* More work than an idle program has in between. */
#define ARRIVED_US 2000

struct flood {
	struct lab_responder sink;
	struct side side;
};

/* The port that the agent sends from and so listens on. 0, having said why. */
static uint16_t
agent_port(const struct lab_agent *agent)
{
	char *text = NULL;
	json_t *root, *tenant;
	int rc, port = 0;

	errno = 0;
	rc = rl_query(agent->client, "status", LAB_PATIENCE_MS, &text);
	if (rc != RL_OK)
		return lab_fail("status: %s", rl_strerror(rc)), 0;
	root = json_loads(text, 0, NULL);
	free(text);
	tenant = json_array_get(json_object_get(root, "tenants"), 0);
	if (json_unpack(tenant, "{s:{s:i}}", "transport", "port4", &port) != 0)
		lab_fail("status: no port");
	json_decref(root);
	return (uint16_t)port;
}

static void
flood_close(struct bench *b, void *state)
{
	struct flood *flood = state;

	(void)b;
	side_close(&flood->side);
	free(flood);
}

static void *
flood_open(struct bench *b)
{
	const struct lab_wanted wanted = {.servers = 1};
	const struct shape shape = {.window = WINDOW};
	struct flood *flood = calloc(1, sizeof(*flood));

	if (flood != NULL &&
	    lab_start_responder(&b->lab, &wanted, &flood->sink) == 0 &&
	    side_open(&flood->side, b->agent.pid, b->agent.socket, &shape) == 0)
		return flood;
	free(flood);
	return NULL;
}

/* A flood that has begun; *out is its output. */
static pid_t
start_flood(struct bench *b, uint16_t port, int *out)
{
	char path[PATH_MAX], number[8], rate[16], id[24];
	char *argv[] = {path, "--port", number, "--rate", rate, "--seconds",
	    "60", "--server-id", id, NULL};

	lab_part(&b->lab, "flood", path);
	snprintf(number, sizeof(number), "%u", (unsigned)port);
	snprintf(rate, sizeof(rate), "%d", RATE);
	snprintf(id, sizeof(id), "%" PRIu64, b->responder.servers[0].id);
	return lab_start_tool(&b->lab, argv, out);
}

/* It says how many it sent, and how long that took it. */
static int
end_flood(struct bench *b, pid_t pid, int out)
{
	double sent, us, rate;
	char line[64] = "";
	ssize_t n;

	lab_end(&b->lab, pid, SIGTERM);
	n = lab_read_line(out, line, sizeof(line));
	close(out);
	errno = 0;
	if (n <= 0 || sscanf(line, "%lf %lf", &sent, &us) != 2 || us <= 0)
		return lab_fail("flood: %s", n > 0 ? line : "says nothing");
	rate = sent / us * 1e6;
	report_figure(&b->report, "forged datagrams a second", "", rate);
	if (rate < LEAST && !b->quick)
		return lab_fail("flood: only %.0f datagrams a second", rate);
	return 0;
}

/* p99 while nothing is flooded. */
static int
measure(struct bench *b, struct flood *flood, double *us)
{
	load_reset(flood->side.load);
	if (side_ask(&flood->side, bench_checks(b, CHECKS)) != 0)
		return -1;
	*us = load_latency(flood->side.load, 0.99);
	return 0;
}

/* Nobody asks, so it is the flood that a program has so much work with. */
static int
await_flood(pid_t pid)
{
	unsigned waited = 0;
	double before, now;

	if (probe_cpu(pid, &before) != 0)
		return -1;
	do {
		if (probe_cpu(pid, &now) != 0)
			return -1;
		if (now - before > ARRIVED_US)
			return 0;
		poll(NULL, 0, 1);
	} while (waited++ < LAB_PATIENCE_MS && lab_signal() == 0);
	errno = 0;
	return lab_fail("flood: it does not arrive");
}

/* While a port is, that of a program. */
static int
measure_flooded(struct bench *b, struct flood *flood, pid_t target,
    uint16_t port, double *us)
{
	int out, rc;
	pid_t pid = start_flood(b, port, &out);

	if (pid < 0)
		return -1;
	rc = await_flood(target);
	if (rc == 0)
		rc = measure(b, flood, us);
	if (end_flood(b, pid, out) != 0)
		return -1;
	return rc;
}

static int
flood_round(struct bench *b, void *state)
{
	struct flood *flood = state;
	uint16_t port = agent_port(&b->agent);
	double none, other, here;

	if (port == 0 || measure(b, flood, &none) != 0 ||
	    measure_flooded(b, flood, flood->sink.pid,
		flood->sink.servers[0].port, &other) != 0 ||
	    measure_flooded(b, flood, b->agent.pid, port, &here) != 0)
		return -1;
	report_add(&b->report, ROW_FLOOD, here / other);
	report_figure(&b->report, "p99, no flood", "us", none);
	report_figure(&b->report, "p99, flood at another port", "us", other);
	report_figure(&b->report, "p99, flood at the agent's port", "us", here);
	return 0;
}

const struct group group_flood = {
    "flood", ROW_FLOOD, ROW_FLOOD, 15, flood_open, flood_round, flood_close};
