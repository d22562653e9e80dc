/*
 * Membership: an immutable, reference-counted snapshot of one tenant's
 * servers, ordered oldest first (the plain unsigned order of server_id), and
 * the builder that turns discovered targets into the next snapshot.
 */
#ifndef DAEMON_CORE_MEMBERS_H
#define DAEMON_CORE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/endpoint.h"
#include "daemon/core/policy.h"

#define MEMBERS_MAX       POLICY_MAX_SERVERS
#define MEMBERS_MAX_ADDRS 8 /* per server; more are left out, in order */

struct member {
	uint64_t server_id;
	uint32_t addr_count; /* at least 1 */
	struct endpoint addrs[MEMBERS_MAX_ADDRS];
};

struct members {
	uint32_t refs;
	uint32_t count;
	struct member list[]; /* ascending server_id, no duplicates */
};

/* What one discovery found for one SRV target or static server. */
struct members_target {
	uint64_t server_id;
	uint32_t addr_count; /* 0: its addresses could not be had */
	struct endpoint addrs[MEMBERS_MAX_ADDRS];
};

/*
 * Builds a snapshot with one reference. Targets with the same id are merged.
 * A target without addresses keeps those that old (may be NULL) has for it,
 * else it is dropped. Over MEMBERS_MAX, the oldest are kept and *dropped
 * (may be NULL) counts the rest. An empty result is a snapshot of count 0.
 * NULL without memory.
 */
struct members *members_build(const struct members_target *targets,
    size_t count, const struct members *old, uint32_t *dropped);

struct members *members_ref(struct members *m);
/* Takes NULL. Frees with the last reference. */
void members_unref(struct members *m);

/* Index of a server, or -1. */
int members_find(const struct members *m, uint64_t server_id);

/* Same servers, ports and addresses? Either may be NULL. */
bool members_equal(const struct members *a, const struct members *b);

/*
 * The server id in the first label of an SRV target, "s-<decimal u64>",
 * case-insensitive prefix, no leading zero (0 itself is "s-0"). name may be a
 * whole host name; its first label counts. Returns 0 or -1.
 */
int members_parse_label(const char *name, size_t len, uint64_t *server_id);

/* The parts of a server id, specification section 9.1. */
uint64_t members_start_time(uint64_t server_id); /* Unix seconds */
uint32_t members_listener(uint64_t server_id);
uint32_t members_node(uint64_t server_id);

#endif
