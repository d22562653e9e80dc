/*
 * System calls for one decision, as strace counts them. It slows the agent,
 * which then finds more to do at each wake-up: the count is for comparing one
 * build with another, and a low estimate.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/flow.h"

#define ROW       "system calls a decision, 1000 in flight"
#define WINDOW    1000
#define DECISIONS 10000

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
measure(struct bench *b, pid_t strace, const char *path)
{
	struct flow *f = flow_open(b->agent.socket, 1);
	double calls = 0;
	int rc = f != NULL ? flow_run(f, WINDOW, DECISIONS) : -1;

	lab_end(&b->lab, strace, SIGINT);
	flow_close(f);
	if (rc == 0)
		rc = read_total(path, &calls);
	if (rc == 0)
		report_add(&b->report, ROW, "", calls / DECISIONS);
	return rc;
}

int
rows_calls(struct bench *b)
{
	char pid[16], path[96], line[256], why[300];
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
		rc = measure(b, strace, path);
	} else {
		lab_end(&b->lab, strace, SIGKILL);
		snprintf(why, sizeof(why), "strace %s",
		    rc == 0 ? line : "says nothing");
		report_skip(&b->report, ROW, why);
		rc = 0;
	}
	close(err);
	return rc;
}
