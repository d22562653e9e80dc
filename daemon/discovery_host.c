/* The addresses of one SRV target; see the header. */
#include "daemon/discovery_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
discovery_host_init(struct discovery_host *host, const char *name)
{
	snprintf(host->name, sizeof host->name, "%s", name);
	host->v4 = (struct discovery_addrs){.type = DNS_A};
	host->v6 = (struct discovery_addrs){.type = DNS_AAAA};
}

static int
compare_addr(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

/*
 * Sorted, so that a resolver that rotates more addresses than a member may
 * have does not make a new membership of each answer.
 */
static void
take(struct discovery_addrs *addrs, uint8_t (*all)[16], size_t count)
{
	qsort(all, count, 16, compare_addr);
	for (size_t i = 0; i < count; i++) {
		if (addrs->count == MEMBERS_MAX_ADDRS)
			return;
		if (i == 0 || memcmp(all[i], all[i - 1], 16) != 0)
			memcpy(addrs->list[addrs->count++], all[i], 16);
	}
}

void
discovery_host_answer(
    struct discovery_addrs *addrs, const struct dns_answer *answer)
{
	uint8_t all[DNS_MAX_RECORDS][16];

	addrs->status = answer->status;
	for (size_t i = 0; i < answer->count; i++)
		memcpy(all[i], answer->records[i].addr, 16);
	take(addrs, all, answer->count);
}

static uint32_t
take_glue(struct discovery_addrs *addrs, const struct dns_answer *answer,
    const size_t *hosts, size_t self)
{
	uint8_t all[DNS_MAX_RECORDS][16];
	uint32_t ttl = INT32_MAX;
	size_t count = 0;

	for (size_t i = 0; i < answer->glue_count; i++) {
		const struct dns_glue *glue = &answer->glue[i];

		if (glue->type != addrs->type || hosts[glue->record] != self ||
		    count == DNS_MAX_RECORDS)
			continue;
		memcpy(all[count++], glue->addr, 16);
		if (glue->ttl < ttl)
			ttl = glue->ttl;
	}
	take(addrs, all, count);
	return ttl;
}

uint32_t
discovery_host_glue(struct discovery_host *host,
    const struct dns_answer *answer, const size_t *hosts, size_t self)
{
	uint32_t ttl4 = take_glue(&host->v4, answer, hosts, self);
	uint32_t ttl6 = take_glue(&host->v6, answer, hosts, self);

	return ttl4 < ttl6 ? ttl4 : ttl6;
}

bool
discovery_host_known(const struct discovery_host *host)
{
	return host->v4.count + host->v6.count > 0;
}

bool
discovery_host_definite(enum dns_status status)
{
	return status == DNS_OK || status == DNS_NODATA ||
	       status == DNS_NXDOMAIN;
}

static void
add_address(struct members_target *t, const struct discovery_addrs *addrs,
    uint32_t i, uint16_t port)
{
	struct endpoint *e = &t->addrs[t->addr_count];

	if (i >= addrs->count || t->addr_count == MEMBERS_MAX_ADDRS)
		return;
	*e = (struct endpoint){
	    .family = addrs->type == DNS_A ? 4 : 6, .port = port};
	memcpy(e->addr, addrs->list[i], 16);
	t->addr_count++;
}

static void
keep_old(struct members_target *t, const struct discovery_addrs *addrs,
    const struct members *old)
{
	const uint8_t family = addrs->type == DNS_A ? 4 : 6;
	int at = old == NULL ? -1 : members_find(old, t->server_id);

	if (at < 0 || discovery_host_definite(addrs->status))
		return;
	for (uint32_t i = 0; i < old->list[at].addr_count; i++) {
		if (old->list[at].addrs[i].family == family &&
		    t->addr_count < MEMBERS_MAX_ADDRS)
			t->addrs[t->addr_count++] = old->list[at].addrs[i];
	}
}

/*
 * The families alternate, IPv4 first: when one of them is unreachable, the
 * next address is of the other one.
 */
void
discovery_host_target(const struct discovery_host *host, uint64_t server_id,
    uint16_t port, const struct members *old, struct members_target *out)
{
	*out = (struct members_target){.server_id = server_id};
	for (uint32_t i = 0; i < MEMBERS_MAX_ADDRS; i++) {
		add_address(out, &host->v4, i, port);
		add_address(out, &host->v6, i, port);
	}
	if (out->addr_count == 0)
		return;
	keep_old(out, &host->v4, old);
	keep_old(out, &host->v6, old);
}
