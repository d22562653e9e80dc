/*
 * What every group of rows is given, and the groups. A group opens what it
 * measures once, adds a sample to each of its rows a round, and closes.
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "tests/bench/crypto.h"
#include "tests/bench/lab.h"
#include "tests/bench/report.h"
#include "tests/bench/rows.h"
#include "tests/bench/side.h"

struct bench {
	struct lab lab;
	struct report report;
	struct crypto *crypto;
	bool quick;
	/* One server that answers at once, and two that ask it. */
	struct lab_responder responder;
	struct lab_relay relay;
	struct lab_agent agent;
};

struct group {
	const char *name;
	enum row first, last; /* its rows */
	unsigned rounds;
	/* Its state, or NULL having said why. What was started and could not be
	 * used ends with the lab. */
	void *(*open)(struct bench *b);
	/* 0, or -1 having said why. */
	int (*round)(struct bench *b, void *state);
	void (*close)(struct bench *b, void *state);
};

extern const struct group group_cpu;
extern const struct group group_held;
extern const struct group group_keys;
extern const struct group group_servers;
extern const struct group group_latency;
extern const struct group group_redis;
extern const struct group group_flood;
extern const struct group group_dead;
extern const struct group group_memory;
extern const struct group group_allocations;
extern const struct group group_calls;

/* Is the row asked for? */
static inline bool
bench_wants(const struct bench *b, enum row row)
{
	return b->report.rows[row].shown;
}

/* How many checks a run has: of a quick bench, few that show nothing. */
static inline uint64_t
bench_checks(const struct bench *b, uint64_t checks)
{
	return b->quick ? checks / 20 : checks;
}

#endif
