/*
 * The processor time of the agent for one decision, over that of the relay and
 * the cryptography alone: what a decision cannot do without. Both ask the same
 * responder, in turn.
 */
#include "tests/bench/bench.h"

#include <jansson.h>
#include <stdlib.h>

#define CHECKS 20000
#define CRYPTO 5000

static const struct {
	const char *name;
	struct shape shape;
} shapes[] = {
    {"1 conn x 50", {.window = 50}},
    {"1 conn x 1000", {.window = 1000}},
    {"50 conns x 1", {.connections = 50}},
    {"1000 conns x 1", {.connections = 1000}},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

enum { RELAY, AGENT, GSO, KINDS };

static const char *const names[KINDS] = {"relay", "agent", "relay --gso"};

struct cpu {
	struct lab_relay gso;
	struct side sides[SHAPES][KINDS];
};

/* Request datagrams that the agent has sent. */
static int
datagrams(struct bench *b, double *out)
{
	char *text = NULL;
	json_t *root, *list, *server;
	size_t i;
	int rc;

	rc = rl_query(b->agent.client, "servers", LAB_PATIENCE_MS, &text);
	if (rc != RL_OK)
		return lab_fail("servers: %s", rl_strerror(rc));
	root = json_loads(text, 0, NULL);
	free(text);
	list = json_is_object(root) ? json_object_get(root, "servers") : root;
	*out = 0;
	json_array_foreach(list, i, server) *out +=
	    (double)json_integer_value(json_object_get(server, "sent"));
	json_decref(root);
	return 0;
}

static void
cpu_close(struct bench *b, void *state)
{
	struct cpu *cpu = state;

	for (size_t i = 0; i < SHAPES; i++)
		for (size_t k = 0; k < KINDS; k++)
			side_close(&cpu->sides[i][k]);
	lab_end(&b->lab, cpu->gso.pid, SIGKILL);
	free(cpu);
}

static void *
cpu_open(struct bench *b)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));
	const struct shape *shape;
	size_t i;

	if (cpu == NULL ||
	    lab_start_relay(&b->lab, &b->responder, true, &cpu->gso) != 0) {
		free(cpu);
		return NULL;
	}
	for (i = 0; i < SHAPES; i++) {
		shape = &shapes[i].shape;
		if (side_open(&cpu->sides[i][RELAY], b->relay.pid,
			b->relay.socket, shape) == 0 &&
		    side_open(&cpu->sides[i][AGENT], b->agent.pid,
			b->agent.socket, shape) == 0 &&
		    side_open(&cpu->sides[i][GSO], cpu->gso.pid,
			cpu->gso.socket, shape) == 0)
			continue;
		cpu_close(b, cpu);
		return NULL;
	}
	return cpu;
}

static int
measure(struct bench *b, struct cpu *cpu, size_t i)
{
	const uint64_t checks = bench_checks(b, CHECKS);
	struct crypto_costs costs;
	double crypto, us[KINDS];
	char name[REPORT_NAME];

	if (crypto_measure(b->crypto, CRYPTO, &costs) != 0 ||
	    side_compare(cpu->sides[i], KINDS, checks, us) != 0)
		return -1;
	crypto = costs.id + costs.seal + costs.open;
	report_add(
	    &b->report, ROW_CPU_1X50 + i, us[AGENT] / (us[RELAY] + crypto));
	report_add(
	    &b->report, ROW_GSO_1X50 + i, us[AGENT] / (us[GSO] + crypto));
	for (size_t k = 0; k < KINDS; k++) {
		snprintf(name, sizeof(name), "CPU of %s, %s", names[k],
		    shapes[i].name);
		report_figure(&b->report, name, "us", us[k]);
	}
	report_figure(&b->report, "CPU of one id", "us", costs.id);
	report_figure(&b->report, "CPU of one seal", "us", costs.seal);
	report_figure(&b->report, "CPU of one open", "us", costs.open);
	return 0;
}

static int
cpu_round(struct bench *b, void *state)
{
	struct cpu *cpu = state;
	double before, after;
	size_t i, done = 0;

	if (datagrams(b, &before) != 0)
		return -1;
	for (i = 0; i < SHAPES; i++) {
		if (!bench_wants(b, ROW_CPU_1X50 + i) &&
		    !bench_wants(b, ROW_GSO_1X50 + i) &&
		    !bench_wants(b, ROW_DATAGRAMS))
			continue;
		if (measure(b, cpu, i) != 0)
			return -1;
		done++;
	}
	if (datagrams(b, &after) != 0)
		return -1;
	report_add(&b->report, ROW_DATAGRAMS,
	    (after - before) / (double)(done * bench_checks(b, CHECKS)));
	return 0;
}

const struct group group_cpu = {
    "cpu", ROW_CPU_1X50, ROW_DATAGRAMS, 7, cpu_open, cpu_round, cpu_close};
