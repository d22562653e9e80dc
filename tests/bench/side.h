/*
 * A program under load, one side of a comparison: what it spends for a check,
 * and how long a check takes. Every check must be allowed by a server; anything
 * else fails the run, so that no row can count work that was not done.
 */
#ifndef TESTS_BENCH_SIDE_H
#define TESTS_BENCH_SIDE_H

#include <sys/types.h>

#include "client-shim/load.h"

struct shape {
	size_t connections; /* 0: one */
	size_t window;      /* in flight on each; 0: one */
	const char *key;    /* NULL: that of SIDE_KEYS keys */
	uint64_t keys;
	enum load_order order;
};

/* All keys are of a length, that of the relay's and redis's, too. */
#define SIDE_KEYS 1000
#define SIDE_KEY  "k{n}"

struct side {
	pid_t pid;
	struct load *load; /* NULL: not open */
};

/* All return 0, or -1 having said why. */
int side_open(
    struct side *s, pid_t pid, const char *socket, const struct shape *shape);
void side_close(struct side *s);
/* So many checks more, latencies since load_reset() kept. */
int side_ask(struct side *s, uint64_t checks);
/*
 * So many checks over a connection of its own, all of them in flight at once,
 * as the responder is stopped meanwhile. How many of a window reach the agent
 * together is chance otherwise, and what it keeps for them grows to a new peak
 * now and then.
 */
int side_crowd(pid_t pid, const char *socket, pid_t responder, size_t checks);
/* side_ask() from a reset on, and the processor time of the program for each.
 */
int side_run(struct side *s, uint64_t checks, double *us);
/*
 * side_run() of sides that are compared, so many checks each: in short turns
 * one after another, so that whatever slows the machine slows all of them.
 */
int side_compare(struct side *sides, size_t count, uint64_t checks, double *us);
/* So many in flight, taken by the program, and none answered yet. */
int side_fill(struct side *s, uint64_t checks);
int side_drain(struct side *s);

#endif
