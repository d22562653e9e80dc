/*
 * One round of discovery. Memory is bounded by the records of one answer: so
 * many services, hosts and targets at most, and of each host so many addresses
 * as a member may have.
 */
#include "daemon/discovery_round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SRV_PREFIX "_ratelimitly._udp."

/* The addresses of one family of a host. */
struct lookup {
	struct discovery_round *round;
	struct dns_query *query; /* NULL: done */
	enum dns_type type;
	enum dns_status status;
	uint32_t count;
	uint8_t addrs[MEMBERS_MAX_ADDRS][16];
};

struct host {
	char name[DNS_MAX_NAME];
	struct lookup v4;
	struct lookup v6;
};

/* One distinct target and port. */
struct service {
	uint64_t server_id;
	uint16_t port;
	size_t host;
};

struct discovery_round {
	struct dns *dns;
	const struct members *old;
	discovery_round_fn *fn;
	void *arg;
	char srv_name[sizeof SRV_PREFIX + DNS_MAX_NAME];
	struct dns_query *srv; /* NULL: done */
	size_t open;           /* lookups that are not done */
	size_t host_count;
	size_t service_count;
	struct host hosts[DNS_MAX_RECORDS];
	struct service services[DNS_MAX_RECORDS];
	struct members_target targets[DNS_MAX_RECORDS];
	struct discovery_result result;
	char error[DISCOVERY_ERROR_MAX];
};

static void on_srv(void *arg, const struct dns_answer *answer);
static void on_lookup(void *arg, const struct dns_answer *answer);

struct discovery_round *
discovery_round_new(struct dns *dns, const char *name,
    const struct members *old, discovery_round_fn *fn, void *arg)
{
	struct discovery_round *round = calloc(1, sizeof *round);

	if (round == NULL)
		return NULL;
	round->dns = dns;
	round->old = old;
	round->fn = fn;
	round->arg = arg;
	if ((size_t)snprintf(round->srv_name, sizeof round->srv_name, "%s%s",
		SRV_PREFIX, name) < sizeof round->srv_name)
		round->srv =
		    dns_query_new(dns, round->srv_name, DNS_SRV, on_srv, round);
	if (round->srv == NULL) {
		free(round);
		return NULL;
	}
	return round;
}

static void
cancel(struct dns_query *query)
{
	if (query != NULL)
		dns_query_cancel(query);
}

void
discovery_round_free(struct discovery_round *round)
{
	if (round == NULL)
		return;
	cancel(round->srv);
	for (size_t i = 0; i < round->host_count; i++) {
		cancel(round->hosts[i].v4.query);
		cancel(round->hosts[i].v6.query);
	}
	free(round);
}

/* The callee frees the round: always the last act. */
static void
finish(struct discovery_round *round, enum discovery_verdict verdict)
{
	round->result.verdict = verdict;
	round->result.targets = round->targets;
	round->result.error = round->error;
	round->fn(round->arg, &round->result);
}

static const char *
status_text(enum dns_status status)
{
	switch (status) {
	case DNS_OK:
		return "no usable target";
	case DNS_NODATA:
		return "no such record";
	case DNS_NXDOMAIN:
		return "NXDOMAIN";
	case DNS_TIMEOUT:
		return "no nameserver answered";
	case DNS_REFUSED:
		return "every nameserver failed or refused";
	case DNS_BAD:
		return "malformed or unauthenticated answer";
	case DNS_UNREACHABLE:
		return "no nameserver is reachable";
	}
	return "";
}

static void
srv_error(struct discovery_round *round, enum dns_status status)
{
	snprintf(round->error, sizeof round->error, "SRV %s: %s",
	    round->srv_name, status_text(status));
}

/* Does the answer hold until its TTL, other than a failure of the moment? */
static bool
definite(enum dns_status status)
{
	return status == DNS_OK || status == DNS_NODATA ||
	       status == DNS_NXDOMAIN;
}

/* The host of a target; added when it is new. */
static size_t
host_of(struct discovery_round *round, const char *name)
{
	struct host *host;

	for (size_t i = 0; i < round->host_count; i++) {
		if (strcasecmp(round->hosts[i].name, name) == 0)
			return i;
	}
	host = &round->hosts[round->host_count];
	snprintf(host->name, sizeof host->name, "%s", name);
	host->v4 = (struct lookup){.round = round, .type = DNS_A};
	host->v6 = (struct lookup){.round = round, .type = DNS_AAAA};
	return round->host_count++;
}

static void
add_service(struct discovery_round *round, const struct dns_record *record)
{
	struct service service = {.port = record->port};

	/* The root as target says that there is no such service (RFC 2782). */
	if (record->target[0] == '\0')
		return;
	if (record->port == 0 ||
	    members_parse_label(record->target, strlen(record->target),
		&service.server_id) != 0) {
		round->result.bad_targets++;
		return;
	}
	service.host = host_of(round, record->target);
	for (size_t i = 0; i < round->service_count; i++) {
		if (round->services[i].host == service.host &&
		    round->services[i].port == service.port)
			return;
	}
	round->services[round->service_count++] = service;
}

static void
start_lookup(
    struct discovery_round *round, const char *name, struct lookup *lookup)
{
	lookup->query =
	    dns_query_new(round->dns, name, lookup->type, on_lookup, lookup);
	if (lookup->query == NULL)
		lookup->status = DNS_UNREACHABLE;
	else
		round->open++;
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
take_addresses(struct lookup *lookup, const struct dns_answer *answer)
{
	uint8_t all[DNS_MAX_RECORDS][16];

	for (size_t i = 0; i < answer->count; i++)
		memcpy(all[i], answer->records[i].addr, 16);
	qsort(all, answer->count, 16, compare_addr);
	for (size_t i = 0; i < answer->count; i++) {
		if (lookup->count == MEMBERS_MAX_ADDRS)
			return;
		if (i == 0 || memcmp(all[i], all[i - 1], 16) != 0)
			memcpy(lookup->addrs[lookup->count++], all[i], 16);
	}
}

static void
add_address(struct members_target *t, const struct lookup *lookup, uint32_t i,
    uint16_t port)
{
	struct endpoint *e = &t->addrs[t->addr_count];

	if (i >= lookup->count || t->addr_count == MEMBERS_MAX_ADDRS)
		return;
	*e = (struct endpoint){
	    .family = lookup->type == DNS_A ? 4 : 6, .port = port};
	memcpy(e->addr, lookup->addrs[i], 16);
	t->addr_count++;
}

/*
 * A lookup that failed for the moment does not take away the addresses of its
 * family while the other family has some. (When neither has, members_build()
 * keeps both.)
 */
static void
keep_known(struct members_target *t, const struct lookup *lookup,
    const struct members *old)
{
	const uint8_t family = lookup->type == DNS_A ? 4 : 6;
	int at = old == NULL ? -1 : members_find(old, t->server_id);

	if (at < 0 || definite(lookup->status))
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
static void
fill_target(struct members_target *t, const struct service *service,
    const struct host *host, const struct members *old)
{
	*t = (struct members_target){.server_id = service->server_id};
	for (uint32_t i = 0; i < MEMBERS_MAX_ADDRS; i++) {
		add_address(t, &host->v4, i, service->port);
		add_address(t, &host->v6, i, service->port);
	}
	if (t->addr_count == 0)
		return;
	keep_known(t, &host->v4, old);
	keep_known(t, &host->v6, old);
}

/* Every lookup is done. */
static void
complete(struct discovery_round *round)
{
	struct discovery_result *result = &round->result;
	const struct host *host;

	for (size_t i = 0; i < round->host_count; i++) {
		host = &round->hosts[i];
		if (host->v4.count + host->v6.count > 0)
			continue;
		result->missing_addresses++;
		if (!definite(host->v4.status) || !definite(host->v6.status))
			result->partial = true;
	}
	if (result->missing_addresses == round->host_count) {
		snprintf(round->error, sizeof round->error,
		    "no SRV target has an address");
		finish(round, DISCOVERY_FAILED);
		return;
	}
	for (size_t i = 0; i < round->service_count; i++) {
		fill_target(&round->targets[i], &round->services[i],
		    &round->hosts[round->services[i].host], round->old);
	}
	result->count = round->service_count;
	finish(round, DISCOVERY_FOUND);
}

static void
on_lookup(void *arg, const struct dns_answer *answer)
{
	struct lookup *lookup = arg;
	struct discovery_round *round = lookup->round;

	lookup->query = NULL;
	lookup->status = answer->status;
	if (answer->status == DNS_OK) {
		take_addresses(lookup, answer);
		if (answer->ttl < round->result.ttl)
			round->result.ttl = answer->ttl;
	}
	if (--round->open == 0)
		complete(round);
}

static void
on_srv(void *arg, const struct dns_answer *answer)
{
	struct discovery_round *round = arg;

	round->srv = NULL;
	round->result.ttl = answer->ttl;
	round->result.bad_targets = (uint32_t)answer->skipped;
	for (size_t i = 0; i < answer->count; i++)
		add_service(round, &answer->records[i]);
	if (round->service_count == 0) {
		srv_error(round, answer->skipped > 0 ? DNS_OK : answer->status);
		finish(round, definite(answer->status) ? DISCOVERY_EMPTY
						       : DISCOVERY_FAILED);
		return;
	}
	for (size_t i = 0; i < round->host_count; i++) {
		struct host *host = &round->hosts[i];

		start_lookup(round, host->name, &host->v4);
		start_lookup(round, host->name, &host->v6);
	}
	if (round->open == 0)
		complete(round);
}
