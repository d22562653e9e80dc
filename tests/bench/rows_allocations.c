/*
 * Calls of the allocator for one decision, by the agent and the libraries
 * below it, once it has been as busy before: countalloc.c counts them. A median
 * of rounds would not show what only some of them allocate, so the one sample
 * is of all rounds together, and of one that fails, too.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW  1000
#define CHECKS  30000
#define WARM_UP 100000

struct counted {
	enum row row;
	struct side side;
	uint64_t calls;
	uint64_t checks;
};

struct allocations {
	const volatile uint64_t *counter;
	struct lab_agent agent;
	struct counted few, million;
};

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

static void
allocations_close(struct bench *b, void *state)
{
	struct allocations *a = state;

	side_close(&a->few.side);
	side_close(&a->million.side);
	if (a->agent.pid > 0)
		lab_stop_agent(&b->lab, &a->agent);
	if (a->counter != NULL)
		munmap((void *)(uintptr_t)a->counter, sizeof(*a->counter));
	free(a);
}

static int
start(struct bench *b, struct allocations *a)
{
	char library[PATH_MAX], path[LAB_PATH];
	const struct lab_special special = {.preload = library, .counts = path};
	const struct shape few = {.window = WINDOW};
	const struct shape million = {.window = WINDOW,
	    .key = "k{n}",
	    .keys = 1000000,
	    .order = LOAD_RANDOM};
	const struct lab_agent *agent = &a->agent;

	lab_part(&b->lab, ".libs/countalloc.so", library);
	snprintf(path, sizeof(path), "%s/counts", b->lab.dir);
	a->counter = map_counter(path);
	if (a->counter == NULL ||
	    lab_start_agent(&b->lab, &b->responder, &special, &a->agent) != 0)
		return -1;
	errno = 0;
	if (*a->counter == 0)
		return lab_fail("the library that counts allocations does not");
	a->few.row = ROW_ALLOCATIONS;
	a->million.row = ROW_ALLOCATIONS_MILLION;
	if (side_open(&a->few.side, agent->pid, agent->socket, &few) != 0 ||
	    side_open(&a->million.side, agent->pid, agent->socket, &million) !=
		0)
		return -1;
	/* As many keys as there will ever be, and more in flight. */
	if (side_crowd(
		agent->pid, agent->socket, b->responder.pid, 2 * WINDOW) != 0 ||
	    side_ask(&a->million.side, bench_checks(b, WARM_UP)) != 0)
		return -1;
	return side_ask(&a->few.side, bench_checks(b, WARM_UP));
}

static void *
allocations_open(struct bench *b)
{
	struct allocations *a = calloc(1, sizeof(*a));

	if (a != NULL && start(b, a) != 0) {
		allocations_close(b, a);
		a = NULL;
	}
	return a;
}

static int
measure(struct bench *b, struct allocations *a, struct counted *counted)
{
	const uint64_t checks = bench_checks(b, CHECKS);
	uint64_t before = *a->counter;
	int rc = side_ask(&counted->side, checks);

	counted->calls += *a->counter - before;
	counted->checks += checks;
	if (rc == 0)
		report_set(&b->report, counted->row,
		    (double)counted->calls / (double)counted->checks);
	return rc;
}

static int
allocations_round(struct bench *b, void *state)
{
	struct allocations *a = state;

	if (measure(b, a, &a->few) != 0)
		return -1;
	return measure(b, a, &a->million);
}

const struct group group_allocations = {"allocations", ROW_ALLOCATIONS,
    ROW_ALLOCATIONS_MILLION, 3, allocations_open, allocations_round,
    allocations_close};
