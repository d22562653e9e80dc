/*
 * The servers of one process, oldest first: index 0 has the lowest server_id.
 */
#ifndef SANDBOX_CLUSTER_H
#define SANDBOX_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "sandbox/server.h"

#define CLUSTER_MAX 64

struct json_t;

struct cluster {
	size_t count;
	struct server *servers[CLUSTER_MAX];
};

/*
 * Writes ids of servers that started a minute apart, the last one at
 * newest_s (Unix seconds), in rising order.
 */
void cluster_ids(uint64_t seed, int64_t newest_s, size_t count, uint64_t *ids);
void cluster_init(struct cluster *c);
/* Frees every server. */
void cluster_fini(struct cluster *c);
/* Adds and starts a server; the errors of server_start(), and RLA_ENOMEM. */
int cluster_add(
    struct cluster *c, const struct server_setup *setup, struct addr *failed);
/* [{"server_id", "addresses"}] and [{"server", "server_id", counters}]. */
struct json_t *cluster_describe(const struct cluster *c);
struct json_t *cluster_counters(const struct cluster *c);

#endif
