/*
 * System calls for one decision, as strace counts them. It slows the agent,
 * which then finds more to do at each wake-up: the count is a low estimate.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW 1000
#define CHECKS 10000

/* The last number before "total" in strace's summary of counts. */
static int
read_total(const char *path, double *calls)
{
	FILE *file = fopen(path, "r");
	unsigned long total;
	char line[256], word[16];
	int rc = -1;

	if (file == NULL)
		return lab_fail("%s", path);
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "%lu %15s", &total, word) == 2 &&
		    strcmp(word, "total") == 0) {
			*calls = (double)total;
			rc = 0;
		}
	fclose(file);
	errno = 0;
	return rc == 0 ? 0 : lab_fail("strace: no total in its summary");
}

static int
measure(struct bench *b, struct side *side, pid_t strace, const char *path)
{
	const uint64_t checks = bench_checks(b, CHECKS);
	double calls = 0;
	int rc = side_ask(side, checks);

	lab_end(&b->lab, strace, SIGINT);
	if (rc == 0)
		rc = read_total(path, &calls);
	if (rc == 0)
		report_add(&b->report, ROW_CALLS, calls / (double)checks);
	return rc;
}

static void *
calls_open(struct bench *b)
{
	const struct shape shape = {.window = WINDOW};
	struct side *side = calloc(1, sizeof(*side));

	if (side != NULL &&
	    side_open(side, b->agent.pid, b->agent.socket, &shape) == 0)
		return side;
	free(side);
	return NULL;
}

static int
calls_round(struct bench *b, void *state)
{
	char pid[16], path[LAB_PATH], line[256], why[300];
	char *argv[] = {"strace", "-f", "-c", "-U", "calls,name", "-o", path,
	    "-p", pid, NULL};
	pid_t strace;
	int err, rc;

	snprintf(pid, sizeof(pid), "%d", (int)b->agent.pid);
	snprintf(path, sizeof(path), "%s/strace", b->lab.dir);
	strace = lab_start_tool(&b->lab, argv, &err);
	if (strace < 0)
		return -1;
	rc = lab_read_line(err, line, sizeof(line)) > 0 ? 0 : -1;
	if (rc == 0 && strstr(line, "attached") != NULL) {
		rc = measure(b, state, strace, path);
	} else {
		lab_end(&b->lab, strace, SIGKILL);
		snprintf(why, sizeof(why), "strace %s",
		    rc == 0 ? line : "says nothing");
		report_skip(&b->report, ROW_CALLS, why);
		rc = 0;
	}
	close(err);
	return rc;
}

static void
calls_close(struct bench *b, void *state)
{
	(void)b;
	side_close(state);
	free(state);
}

const struct group group_calls = {
    "calls", ROW_CALLS, ROW_CALLS, 3, calls_open, calls_round, calls_close};
