/*
 * Calls of the allocator for one decision, by the agent and the libraries
 * below it, once it has been as busy before: countalloc.c counts them.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/flow.h"

#define ROW       "allocations a decision, 1000 in flight"
#define WINDOW    1000
#define DECISIONS 20000

/* The counter, in a file that the agent maps too. */
static const volatile uint64_t *
map_counter(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *map = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(uint64_t)) == 0)
		map =
		    mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		lab_fail("%s", path);
	if (fd >= 0)
		close(fd);
	return map != MAP_FAILED ? map : NULL;
}

static int
measure(struct bench *b, const struct lab_agent *agent,
    const volatile uint64_t *counter)
{
	struct flow *f = flow_open(agent->socket, 1);
	uint64_t started = *counter, before;
	int rc = -1;

	errno = 0;
	if (f != NULL && started == 0)
		lab_fail("the library that counts allocations does not");
	else if (f != NULL && flow_run(f, WINDOW, DECISIONS) == 0) {
		before = *counter;
		rc = flow_run(f, WINDOW, DECISIONS);
		if (rc == 0)
			report_add(&b->report, ROW, "",
			    (double)(*counter - before) / DECISIONS);
	}
	flow_close(f);
	return rc;
}

int
rows_allocations(struct bench *b)
{
	const char *library = getenv("RLA_COUNTALLOC");
	const volatile uint64_t *counter;
	struct lab_special special = {0};
	struct lab_agent agent;
	char path[96];
	int rc = -1;

	if (library == NULL) {
		report_skip(&b->report, ROW, "RLA_COUNTALLOC is not set");
		return 0;
	}
	snprintf(path, sizeof(path), "%s/counts", b->lab.dir);
	counter = map_counter(path);
	if (counter == NULL)
		return -1;
	special.preload = library;
	special.counts = path;
	if (lab_start_agent(&b->lab, &b->sandbox, &special, &agent) == 0) {
		rc = measure(b, &agent, counter);
		lab_stop_agent(&b->lab, &agent);
	}
	munmap((void *)(uintptr_t)counter, sizeof(*counter));
	return rc;
}
