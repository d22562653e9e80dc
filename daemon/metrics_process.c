/* What the kernel knows of this process, named as every Prometheus client names
 * it. What it does not tell, as where there is no /proc, is left out. */
#include "daemon/metrics_private.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define US INT64_C(1000000)

static void
write_cpu(struct metrics_writer *w)
{
	struct timespec t;

	metrics_write_family(w, METRIC_CPU);
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0)
		metrics_write_seconds(
		    w, METRIC_CPU, "", t.tv_sec * US + t.tv_nsec / 1000);
}

/* Not . and .., nor the one that it is read through. */
int64_t
metrics_count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int64_t n = -3;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* Since 6.2 Linux tells their number as the size of the folder. */
static int64_t
open_descriptors(void)
{
	struct stat st;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return st.st_size;
	return metrics_count_descriptors();
}

static void
write_descriptors(struct metrics_writer *w)
{
	const int64_t open = open_descriptors();
	struct rlimit limit;

	metrics_write_family(w, METRIC_OPEN_FDS);
	if (open >= 0)
		metrics_write_count(
		    w, METRIC_OPEN_FDS, "", NULL, (uint64_t)open);
	metrics_write_family(w, METRIC_MAX_FDS);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		metrics_write_count(
		    w, METRIC_MAX_FDS, "", NULL, (uint64_t)limit.rlim_cur);
}

static void
write_memory(struct metrics_writer *w)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long whole = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	bool known = f != NULL && fscanf(f, "%lu %lu", &whole, &resident) == 2;

	if (f != NULL)
		fclose(f);
	metrics_write_family(w, METRIC_VIRTUAL);
	if (known)
		metrics_write_count(w, METRIC_VIRTUAL, "", NULL, whole * page);
	metrics_write_family(w, METRIC_RESIDENT);
	if (known)
		metrics_write_count(
		    w, METRIC_RESIDENT, "", NULL, resident * page);
}

void
metrics_of_process(struct metrics_writer *w, const struct agent *a)
{
	write_cpu(w);
	write_descriptors(w);
	write_memory(w);
	metrics_write_family(w, METRIC_START_TIME);
	metrics_write_seconds(
	    w, METRIC_START_TIME, "", (int64_t)a->started_wall_ms * 1000);
}
