/*
 * Answers under way: a ring of records, each due a fixed time after it was
 * made, so that they leave in the order in which they came. Owns its memory,
 * allocated once. An empty ring starts over at its beginning: without delay
 * its head stays in the cache.
 */
#ifndef TESTS_BENCH_HOLD_H
#define TESTS_BENCH_HOLD_H

#include <netinet/in.h>
#include <stdint.h>

#include "tests/bench/wire.h"

struct hold_record {
	int64_t due_ns;
	struct sockaddr_in to;
	uint32_t server;
	uint32_t len;
	uint8_t bytes[]; /* len of them */
};

struct hold;

/* NULL without memory. */
struct hold *hold_new(void);
void hold_free(struct hold *h);
/*
 * Room for the next record with WIRE_MAX bytes, to be filled; NULL when the
 * ring is full. It is not there before hold_commit().
 */
struct hold_record *hold_reserve(struct hold *h);
void hold_commit(struct hold *h);
/* The oldest one, or NULL. It can be read until the next reserve. */
const struct hold_record *hold_first(struct hold *h);
void hold_pop(struct hold *h);

#endif
