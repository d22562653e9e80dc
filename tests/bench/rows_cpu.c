/*
 * The agent's processor time for one decision, over the cryptography that a
 * decision cannot do without. Throughput is not a row: the sandbox is one
 * process too, and as often as not it is what the others wait for.
 */
#include "tests/bench/bench.h"

#include <jansson.h>
#include <stdlib.h>

#include "tests/bench/flow.h"
#include "tests/bench/probe.h"

#define DECISIONS 10000
#define CRYPTO    10000

struct shape {
	const char *name;
	size_t connections;
	size_t window;
};

static const struct shape shapes[] = {
    {"agent CPU a decision, 1 conn, 50 in flight", 1, 50},
    {"agent CPU a decision, 1 conn, 1000 in flight", 1, 1000},
    {"agent CPU a decision, 50 conns, 1 in flight", 50, 1},
};

/* Request datagrams that the agent has sent: more than one a decision when
 * some were lost, and then the row is dearer than it should be. */
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
	return *out > 0 ? 0 : lab_fail("servers: nothing was sent");
}

static int
measure(struct bench *b, const struct shape *shape)
{
	struct flow *f = flow_open(b->agent.socket, shape->connections);
	double before, after, floor;
	int rc = -1;

	if (f != NULL && direct_crypto(b->direct, CRYPTO, &floor) == 0 &&
	    probe_cpu(b->agent.pid, &before) == 0 &&
	    flow_run(f, shape->window, DECISIONS) == 0 &&
	    probe_cpu(b->agent.pid, &after) == 0) {
		report_add_over(&b->report, shape->name, "us",
		    (after - before) / DECISIONS, floor);
		rc = 0;
	}
	flow_close(f);
	return rc;
}

int
rows_cpu(struct bench *b)
{
	const size_t count = sizeof(shapes) / sizeof(shapes[0]);
	double before, after;
	size_t i;

	if (datagrams(b, &before) != 0)
		return -1;
	for (i = 0; i < count; i++)
		if (measure(b, &shapes[i]) != 0)
			return -1;
	if (datagrams(b, &after) != 0)
		return -1;
	report_add_over(&b->report, "datagrams sent a decision, of these", "",
	    (after - before) / (double)(count * DECISIONS), 1);
	return 0;
}
