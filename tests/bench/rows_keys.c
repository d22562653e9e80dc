/*
 * A million distinct keys against one, asked of one agent, which has met each
 * of them before: what it keeps of keys is as full as it gets.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>

#define KEYS   1000000
#define WINDOW 1000
#define CHECKS 30000

enum { ONE, MILLION, KINDS };

struct keys {
	struct lab_agent agent;
	struct side sides[KINDS];
};

static void
keys_close(struct bench *b, void *state)
{
	struct keys *keys = state;

	side_close(&keys->sides[ONE]);
	side_close(&keys->sides[MILLION]);
	if (keys->agent.pid > 0)
		lab_stop_agent(&b->lab, &keys->agent);
	free(keys);
}

/* Every key once. */
static int
meet(struct bench *b, const struct lab_agent *agent)
{
	const struct shape shape = {
	    .window = WINDOW, .key = "k{n}", .keys = KEYS};
	struct side side;
	int rc = side_open(&side, agent->pid, agent->socket, &shape);

	if (rc == 0)
		rc = side_ask(&side, bench_checks(b, KEYS));
	side_close(&side);
	return rc;
}

static int
start(struct bench *b, struct keys *keys)
{
	const struct lab_special none = {0};
	/* Of the same length as the others. */
	const struct shape one = {
	    .window = WINDOW, .key = "k00000{n}", .keys = 1};
	const struct shape million = {.window = WINDOW,
	    .key = "k{n}",
	    .keys = KEYS,
	    .order = LOAD_RANDOM};

	if (lab_start_agent(&b->lab, &b->responder, &none, &keys->agent) != 0 ||
	    meet(b, &keys->agent) != 0 ||
	    side_open(&keys->sides[ONE], keys->agent.pid, keys->agent.socket,
		&one) != 0)
		return -1;
	return side_open(&keys->sides[MILLION], keys->agent.pid,
	    keys->agent.socket, &million);
}

static void *
keys_open(struct bench *b)
{
	struct keys *keys = calloc(1, sizeof(*keys));

	if (keys != NULL && start(b, keys) != 0) {
		keys_close(b, keys);
		keys = NULL;
	}
	return keys;
}

static int
keys_round(struct bench *b, void *state)
{
	struct keys *keys = state;
	double us[KINDS];

	if (side_compare(keys->sides, KINDS, bench_checks(b, CHECKS), us) != 0)
		return -1;
	report_add(&b->report, ROW_KEYS, us[MILLION] / us[ONE]);
	report_figure(&b->report, "CPU of agent, 1 key", "us", us[ONE]);
	report_figure(
	    &b->report, "CPU of agent, 1 million keys", "us", us[MILLION]);
	return 0;
}

const struct group group_keys = {
    "keys", ROW_KEYS, ROW_KEYS, 7, keys_open, keys_round, keys_close};
