/*
 * What discovery writes to the log. Whoever answers DNS for us decides how
 * often something happens, so each line is paced, but for the one that tells
 * of an error's end: it comes once after each line that told an error.
 * Embedded in discovery.
 */
#ifndef DAEMON_DISCOVERY_LOG_H
#define DAEMON_DISCOVERY_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/errorrate.h"

struct discovery_log {
	const char *tenant;
	struct errorrate lines;
	uint64_t unsaid; /* lines kept back */
	bool error_told; /* and its end is not */
};

/* Borrows the tenant's name for its life. */
void discovery_log_init(struct discovery_log *l, const char *tenant);
/* A round failed; so many servers are known all the same. */
void discovery_log_error(
    struct discovery_log *l, uint32_t servers, const char *error);
/* One did not. */
void discovery_log_ok(struct discovery_log *l, uint32_t servers);
/* Other servers than before; dropped ones are past the most that are kept. */
void discovery_log_members(
    struct discovery_log *l, uint32_t servers, uint32_t dropped);

#endif
