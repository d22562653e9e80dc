/* Clocks and /proc. */
#include "tests/bench/probe.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "tests/bench/lab.h"

int
probe_cpu(pid_t pid, double *us)
{
	struct timespec ts;
	clockid_t clock;

	errno = clock_getcpuclockid(pid, &clock);
	if (errno != 0 || clock_gettime(clock, &ts) != 0)
		return lab_fail("the processor time of a program");
	*us = (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
	return 0;
}

/* The line "FIELD  N kB" of a file in /proc/PID. */
static int
read_field(pid_t pid, const char *name, const char *field, double *bytes)
{
	char path[64], line[256], scan[64];
	unsigned long kb;
	int rc = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	snprintf(scan, sizeof(scan), "%s: %%lu kB", field);
	file = fopen(path, "r");
	if (file == NULL)
		return -1;
	while (rc != 0 && fgets(line, sizeof(line), file) != NULL)
		rc = sscanf(line, scan, &kb) == 1 ? 0 : -1;
	fclose(file);
	*bytes = (double)kb * 1024;
	return rc;
}

int
probe_memory(pid_t pid, double *bytes)
{
	if (read_field(pid, "smaps_rollup", "Anonymous", bytes) == 0 ||
	    read_field(pid, "status", "RssAnon", bytes) == 0)
		return 0;
	return lab_fail("the memory of the agent");
}
