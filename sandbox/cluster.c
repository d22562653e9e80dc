/*
 * Server ids and lists of servers. A server_id is the start in seconds since
 * 2025 << 23 | listener << 15 | node (the r-client specification, section
 * 9.1).
 */
#include "sandbox/cluster.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "proto/err.h"
#include "sandbox/events.h"
#include "sandbox/prng.h"

#define EPOCH_2025 INT64_C(1735689600)
#define APART_S    60

void
cluster_ids(uint64_t seed, int64_t newest_s, size_t count, uint64_t *ids)
{
	int64_t first = newest_s - EPOCH_2025 - (int64_t)(count - 1) * APART_S;
	struct prng prng;
	uint64_t start;
	size_t i;

	if (first < 0) /* a clock before 2025 */
		first = 0;
	prng_init(&prng, seed, UINT64_MAX);
	for (i = 0; i < count; i++) {
		start = (uint64_t)first + i * APART_S;
		ids[i] = start << 23 | (prng_next(&prng) & 0x7FFFFF);
	}
}

void
cluster_init(struct cluster *c)
{
	memset(c, 0, sizeof(*c));
}

void
cluster_fini(struct cluster *c)
{
	while (c->count > 0)
		server_free(c->servers[--c->count]);
}

int
cluster_add(
    struct cluster *c, const struct server_setup *setup, struct addr *failed)
{
	struct server *s;

	assert(c->count < CLUSTER_MAX);
	s = server_new(setup);
	if (s == NULL)
		return RLA_ENOMEM;
	c->servers[c->count++] = s;
	return server_start(s, failed);
}

json_t *
cluster_describe(const struct cluster *c)
{
	json_t *list = json_array(), *texts;
	char text[ADDR_TEXT_MAX];
	const struct addr *addrs;
	size_t i, k, n;

	for (i = 0; i < c->count; i++) {
		texts = json_array();
		addrs = server_addrs(c->servers[i], &n);
		for (k = 0; k < n; k++) {
			addr_format(&addrs[k], text);
			json_array_append_new(texts, json_string(text));
		}
		json_array_append_new(
		    list, json_pack("{s:o,s:o}", "server_id",
			      events_u64(server_id(c->servers[i])), "addresses",
			      texts));
	}
	return list;
}

json_t *
cluster_counters(const struct cluster *c)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < c->count; i++) {
		one = json_pack("{s:I,s:o}", "server", (json_int_t)i,
		    "server_id", events_u64(server_id(c->servers[i])));
		json_object_update_new(
		    one, events_counters(server_counters(c->servers[i])));
		json_array_append_new(list, one);
	}
	return list;
}
