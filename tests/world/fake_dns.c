/* See fake_dns.h. The zone is static, as it outlives a tenant's resolver. */
#include "tests/world/fake_dns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL 60 /* seconds */

struct dns_query {
	struct dns_query *next;
	struct dns *dns;
	char name[DNS_MAX_NAME];
	enum dns_type type;
	dns_fn *fn;
	void *arg;
};

struct dns {
	struct dns *next;
	struct loop *loop;
	struct loop_task task;
	struct dns_query *first;
	struct dns_counters counters;
};

static struct {
	struct members_target servers[MEMBERS_MAX];
	size_t count;
	enum dns_status status;
	bool silent;
	unsigned int questions;
	struct dns *first; /* resolvers, one of each tenant */
} zone;

void
fake_dns_reset(void)
{
	memset(&zone, 0, sizeof(zone));
	zone.status = DNS_OK;
}

void
fake_dns_serve(const struct members_target *servers, size_t count)
{
	memcpy(zone.servers, servers, count * sizeof(*servers));
	zone.count = count;
}

void
fake_dns_answer(enum dns_status status)
{
	zone.status = status;
}

void
fake_dns_silence(bool silent)
{
	zone.silent = silent;
	for (struct dns *dns = zone.first; dns != NULL; dns = dns->next) {
		if (!silent && dns->first != NULL)
			loop_defer(dns->loop, &dns->task);
	}
}

unsigned int
fake_dns_questions(void)
{
	return zone.questions;
}

/* The records of the zone. */

static size_t
targets(struct dns_record *out)
{
	for (size_t i = 0; i < zone.count; i++) {
		out[i] = (struct dns_record){
		    .type = DNS_SRV,
		    .ttl = TTL,
		    .port = zone.servers[i].addrs[0].port,
		};
		snprintf(out[i].target, sizeof(out[i].target),
		    "s-%" PRIu64 ".world.example", zone.servers[i].server_id);
	}
	return zone.count;
}

static size_t
addresses(const char *name, enum dns_type type, struct dns_record *out)
{
	const struct endpoint *a;
	uint64_t id = 0;
	size_t n = 0;

	if (members_parse_label(name, strlen(name), &id) != 0)
		return 0;
	for (size_t i = 0; i < zone.count; i++) {
		if (zone.servers[i].server_id != id)
			continue;
		for (uint32_t k = 0; k < zone.servers[i].addr_count; k++) {
			a = &zone.servers[i].addrs[k];
			if (a->family != (type == DNS_A ? 4 : 6))
				continue;
			out[n] = (struct dns_record){.type = type, .ttl = TTL};
			memcpy(out[n++].addr, a->addr, sizeof(a->addr));
		}
	}
	return n;
}

static void
resolve(const struct dns_query *query)
{
	struct dns_record records[MEMBERS_MAX];
	struct dns_answer answer = {
	    .status = zone.status, .ttl = TTL, .records = records, .error = ""};

	memset(records, 0, sizeof(records));
	if (zone.status == DNS_OK) {
		answer.count =
		    query->type == DNS_SRV
			? targets(records)
			: addresses(query->name, query->type, records);
		if (answer.count == 0)
			answer.status = DNS_NODATA;
	}
	query->fn(query->arg, &answer);
}

/* Where it hangs; what is there is NULL when it has gone. */
static struct dns **
place_of(const struct dns *dns)
{
	struct dns **at = &zone.first;

	while (*at != NULL && *at != dns)
		at = &(*at)->next;
	return at;
}

/* What the answers ask for in turn is for the next turn. */
static void
answer_all(void *arg)
{
	struct dns *dns = arg;
	struct dns_query *last = dns->first, *query;
	bool more = last != NULL && !zone.silent;

	while (last != NULL && last->next != NULL)
		last = last->next;
	while (more && (query = dns->first) != NULL) {
		more = query != last;
		dns->first = query->next;
		resolve(query);
		free(query);
		if (*place_of(dns) == NULL)
			return;
	}
	if (dns->first != NULL && !zone.silent)
		loop_defer(dns->loop, &dns->task);
}

struct dns *
dns_new(struct loop *loop, const struct dns_options *options)
{
	struct dns *dns = calloc(1, sizeof(*dns));

	(void)options;
	if (dns == NULL)
		return NULL;
	dns->loop = loop;
	loop_task_init(&dns->task, answer_all, dns);
	dns->next = zone.first;
	zone.first = dns;
	return dns;
}

void
dns_free(struct dns *dns)
{
	struct dns **at;

	if (dns == NULL)
		return;
	while (dns->first != NULL)
		dns_query_cancel(dns->first);
	loop_cancel(dns->loop, &dns->task);
	at = place_of(dns);
	*at = dns->next;
	free(dns);
}

/* A question costs nothing here, and there is no resolv.conf. */
void
dns_allow(struct dns *dns, uint64_t left)
{
	(void)dns;
	(void)left;
}

bool
dns_changed(const struct dns *dns)
{
	(void)dns;
	return false;
}

struct dns_query *
dns_query_new(struct dns *dns, const char *name, enum dns_type type, dns_fn *fn,
    void *arg)
{
	struct dns_query *query = calloc(1, sizeof(*query)), **at;

	if (query == NULL)
		return NULL;
	query->dns = dns;
	snprintf(query->name, sizeof(query->name), "%s", name);
	query->type = type;
	query->fn = fn;
	query->arg = arg;
	for (at = &dns->first; *at != NULL; at = &(*at)->next)
		;
	*at = query;
	dns->counters.queries++;
	zone.questions += type == DNS_SRV;
	loop_defer(dns->loop, &dns->task);
	return query;
}

void
dns_query_cancel(struct dns_query *query)
{
	struct dns_query **at = &query->dns->first;

	while (*at != query)
		at = &(*at)->next;
	*at = query->next;
	free(query);
}

const struct dns_counters *
dns_counters(const struct dns *dns)
{
	return &dns->counters;
}
