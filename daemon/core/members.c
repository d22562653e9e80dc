/*
 * Snapshots of who the servers are. A snapshot is built once and never
 * changed, so operations that hold a reference see one membership for life.
 */
#include "daemon/core/members.h"

#include <assert.h>
#include <stdlib.h>

#define START_EPOCH UINT64_C(1735689600) /* 2025-01-01T00:00:00Z */

/* A target's place in the order of the servers; ties keep the given order. */
struct rank {
	uint64_t server_id;
	size_t target;
};

static int
compare_rank(const void *va, const void *vb)
{
	const struct rank *a = va, *b = vb;

	if (a->server_id != b->server_id)
		return a->server_id < b->server_id ? -1 : 1;
	return a->target < b->target ? -1 : a->target > b->target;
}

static bool
has_endpoint(const struct member *m, const struct endpoint *e)
{
	for (uint32_t i = 0; i < m->addr_count; i++) {
		if (endpoint_equal(&m->addrs[i], e))
			return true;
	}
	return false;
}

static void
add_endpoints(struct member *m, const struct members_target *t)
{
	for (uint32_t i = 0; i < t->addr_count && i < MEMBERS_MAX_ADDRS; i++) {
		if (m->addr_count == MEMBERS_MAX_ADDRS)
			return;
		if (!has_endpoint(m, &t->addrs[i]))
			m->addrs[m->addr_count++] = t->addrs[i];
	}
}

/*
 * Merges the run of one server's targets at ranks into m and returns its
 * length. m->addr_count stays 0 when no address is known for the server.
 */
static size_t
merge_run(struct member *m, const struct rank *ranks, size_t left,
    const struct members_target *targets, const struct members *old)
{
	size_t run = 0;
	int known;

	*m = (struct member){.server_id = ranks->server_id};
	while (run < left && ranks[run].server_id == m->server_id)
		add_endpoints(m, &targets[ranks[run++].target]);
	if (m->addr_count == 0 && old != NULL) {
		known = members_find(old, m->server_id);
		if (known >= 0)
			*m = old->list[known];
	}
	return run;
}

/* Fills the snapshot from the ordered targets; returns what did not fit. */
static uint32_t
fill(struct members *m, const struct rank *ranks, size_t count,
    const struct members_target *targets, const struct members *old)
{
	struct member next;
	uint32_t excess = 0;

	for (size_t i = 0; i < count;) {
		i += merge_run(&next, ranks + i, count - i, targets, old);
		if (next.addr_count == 0)
			continue;
		if (m->count < MEMBERS_MAX)
			m->list[m->count++] = next;
		else
			excess++;
	}
	return excess;
}

struct members *
members_build(const struct members_target *targets, size_t count,
    const struct members *old, uint32_t *dropped)
{
	const size_t room = count < MEMBERS_MAX ? count : MEMBERS_MAX;
	struct rank *ranks = calloc(count > 0 ? count : 1, sizeof(*ranks));
	struct members *m = malloc(sizeof(*m) + room * sizeof(struct member));
	uint32_t excess = 0;

	if (ranks == NULL || m == NULL) {
		free(m);
		m = NULL;
		goto out;
	}
	m->refs = 1;
	m->count = 0;
	for (size_t i = 0; i < count; i++) {
		ranks[i].server_id = targets[i].server_id;
		ranks[i].target = i;
	}
	qsort(ranks, count, sizeof(*ranks), compare_rank);
	excess = fill(m, ranks, count, targets, old);
out:
	free(ranks);
	if (dropped != NULL)
		*dropped = excess;
	return m;
}

struct members *
members_ref(struct members *m)
{
	assert(m->refs > 0 && m->refs < UINT32_MAX);
	m->refs++;
	return m;
}

void
members_unref(struct members *m)
{
	if (m == NULL)
		return;
	assert(m->refs > 0);
	if (--m->refs == 0)
		free(m);
}

int
members_find(const struct members *m, uint64_t server_id)
{
	uint32_t low = 0, high = m->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (m->list[middle].server_id < server_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == m->count || m->list[low].server_id != server_id)
		return -1;
	return (int)low;
}

/* Addresses are compared as a set: resolvers rotate them at will. */
static bool
same_member(const struct member *a, const struct member *b)
{
	if (a->server_id != b->server_id || a->addr_count != b->addr_count)
		return false;
	for (uint32_t i = 0; i < a->addr_count; i++) {
		if (!has_endpoint(b, &a->addrs[i]))
			return false;
	}
	return true;
}

bool
members_equal(const struct members *a, const struct members *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		if (!same_member(&a->list[i], &b->list[i]))
			return false;
	}
	return true;
}

int
members_parse_label(const char *name, size_t len, uint64_t *server_id)
{
	uint64_t id = 0;
	unsigned digit;
	size_t at = 2;

	if (len < 3 || (name[0] != 's' && name[0] != 'S') || name[1] != '-')
		return -1;
	if (name[2] == '0' && len > 3 && name[3] != '.')
		return -1;
	for (; at < len && name[at] != '.'; at++) {
		digit = (unsigned)((unsigned char)name[at] - '0');
		if (digit > 9 || id > (UINT64_MAX - digit) / 10)
			return -1;
		id = id * 10 + digit;
	}
	if (at == 2)
		return -1;
	*server_id = id;
	return 0;
}

uint64_t
members_start_time(uint64_t server_id)
{
	return START_EPOCH + (server_id >> 23);
}

uint32_t
members_listener(uint64_t server_id)
{
	return (uint32_t)(server_id >> 15 & 0xFF);
}

uint32_t
members_node(uint64_t server_id)
{
	return (uint32_t)(server_id & 0x7FFF);
}
