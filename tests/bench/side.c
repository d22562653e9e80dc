/* load.h with the kernel's clocks. */
#include "tests/bench/side.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "proto/ipc.h"
#include "tests/bench/lab.h"
#include "tests/bench/probe.h"

#define TURNS 4

static bool
stopped(void *arg)
{
	(void)arg;
	return lab_signal() != 0;
}

/* A line of the load's. */
static int
fail(const char *err)
{
	errno = 0;
	return lab_fail("%s", err);
}

int
side_open(
    struct side *s, pid_t pid, const char *socket, const struct shape *shape)
{
	const struct load_options options = {
	    .socket = socket,
	    .rule = LAB_RULE,
	    .key = shape->key != NULL ? shape->key : SIDE_KEY,
	    .keys = shape->keys > 0 ? shape->keys : SIDE_KEYS,
	    .order = shape->order,
	    .tokens = 1,
	    .connections = shape->connections > 0 ? shape->connections : 1,
	    .window = shape->window > 0 ? shape->window : 1,
	    .patience_ms = LAB_PATIENCE_MS,
	    .stop = stopped,
	};
	char err[LOAD_ERR_MAX];

	s->pid = pid;
	s->load = load_open(&options, err);
	return s->load != NULL ? 0 : fail(err);
}

void
side_close(struct side *s)
{
	load_close(s->load);
	s->load = NULL;
}

/* The most frequent one of those that were not allowed. */
static const char *
reason(const struct load_result *r)
{
	size_t most = IPC_REASON_OK + 1;

	for (size_t i = most + 1; i < LOAD_REASONS; i++)
		if (r->reasons[i] > r->reasons[most])
			most = i;
	return ipc_reason_name((enum ipc_reason)most);
}

static int
judge(const struct side *s)
{
	const struct load_result *r = load_result(s->load);

	if (lab_signal() != 0)
		return -1;
	errno = 0;
	if (r->allowed == r->checks && r->local + r->shadow + r->policy == 0)
		return 0;
	return lab_fail("of %" PRIu64 " checks, %" PRIu64
			" were not allowed: %s",
	    r->checks, r->checks - r->allowed, reason(r));
}

int
side_ask(struct side *s, uint64_t checks)
{
	char err[LOAD_ERR_MAX];

	if (load_run(s->load, checks, 0, err) != 0)
		return fail(err);
	return judge(s);
}

int
side_crowd(pid_t pid, const char *socket, pid_t responder, size_t checks)
{
	const struct shape shape = {.window = checks};
	struct side side;
	int rc = side_open(&side, pid, socket, &shape);

	if (rc == 0 && kill(responder, SIGSTOP) == 0) {
		rc = side_fill(&side, checks);
		kill(responder, SIGCONT);
	}
	if (rc == 0)
		rc = side_drain(&side);
	side_close(&side);
	return rc;
}

int
side_run(struct side *s, uint64_t checks, double *us)
{
	double before, after;

	load_reset(s->load);
	if (probe_cpu(s->pid, &before) != 0 || side_ask(s, checks) != 0 ||
	    probe_cpu(s->pid, &after) != 0)
		return -1;
	*us = (after - before) / (double)checks;
	return 0;
}

int
side_compare(struct side *sides, size_t count, uint64_t checks, double *us)
{
	size_t turn, i;
	double once;

	for (i = 0; i < count; i++)
		us[i] = 0;
	for (turn = 0; turn < TURNS; turn++)
		for (i = 0; i < count; i++) {
			if (side_run(&sides[i], checks / TURNS, &once) != 0)
				return -1;
			us[i] += once / TURNS;
		}
	return 0;
}

int
side_fill(struct side *s, uint64_t checks)
{
	char err[LOAD_ERR_MAX];

	load_reset(s->load);
	if (load_fill(s->load, checks, err) != 0)
		return fail(err);
	if (load_result(s->load)->checks > 0)
		return fail("an answer came too early");
	return 0;
}

int
side_drain(struct side *s)
{
	char err[LOAD_ERR_MAX];

	if (load_drain(s->load, err) != 0)
		return fail(err);
	return judge(s);
}
