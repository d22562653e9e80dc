/*
 * JSON lines: the ledger of what each datagram did, and the documents of
 * standard output. Every line is flushed before its answer is sent, so who
 * has an answer can read what it consumed. No line ever holds a secret.
 */
#ifndef SANDBOX_EVENTS_H
#define SANDBOX_EVENTS_H

#include <stdint.h>

#include "sandbox/addr.h"
#include "sandbox/counters.h"
#include "sandbox/engine.h"

struct events;
struct json_t;

struct event_source {
	uint32_t server; /* index in the cluster */
	uint64_t server_id;
	int64_t wall_ms; /* of this host, whatever the server's clock says */
	const struct addr *from;
	const struct fault_plan *plan;
};

/* path NULL: no ledger; "-": standard output. NULL with errno on failure. */
struct events *events_new(const char *path);
void events_free(struct events *ev);
/*
 * Writes a line to standard output. Takes the document; NULL is no memory.
 * Returns 0 or RLA_ESYS.
 */
int events_print(struct events *ev, struct json_t *document);
/* The same to the ledger, where it is not standard output. */
void events_append(struct events *ev, struct json_t *document);
/* Writes the event of one datagram to the ledger, if there is one. */
void events_datagram(struct events *ev, const struct event_source *source,
    const struct engine_result *result);

/* {"received": 1, ...}; NULL without memory. */
struct json_t *events_counters(const struct counters *c);
/* A 64-bit number as a decimal string, which no JSON reader rounds. */
struct json_t *events_u64(uint64_t v);

#endif
