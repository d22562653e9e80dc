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

#include "daemon/discovery_host.h"

#define SRV_PREFIX "_ratelimitly._udp."

/* A question for the addresses of one family of a host. */
struct lookup {
	struct discovery_round *round;
	struct dns_query *query; /* NULL: done */
	struct discovery_addrs *addrs;
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
	struct discovery_host hosts[DNS_MAX_RECORDS];
	struct lookup lookups[2 * DNS_MAX_RECORDS];
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
	dns_allow(dns, DISCOVERY_MAX_SENT);
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

void
discovery_round_known(struct discovery_round *round, const struct members *old)
{
	round->old = old;
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
	for (size_t i = 0; i < 2 * round->host_count; i++)
		cancel(round->lookups[i].query);
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

/* An answer without a server, or why there is no answer. */
static const char *
none_text(const struct dns_answer *answer)
{
	switch (answer->status) {
	case DNS_OK: /* the root as target */
		return "no such service: DNS says that there is no server";
	case DNS_NODATA:
		return "no such record: DNS says that there is no server; is "
		       "dns.name right?";
	case DNS_NXDOMAIN:
		return "NXDOMAIN: DNS says that there is no server; is "
		       "dns.name right?";
	case DNS_TIMEOUT:
	case DNS_REFUSED:
	case DNS_BAD:
	case DNS_UNREACHABLE:
		return answer->error;
	}
	return "";
}

static void
srv_error(struct discovery_round *round, const struct dns_answer *answer)
{
	snprintf(round->error, sizeof round->error, "SRV %s: %s",
	    round->srv_name, none_text(answer));
}

/* The host of a target, or host_count. */
static size_t
find_host(const struct discovery_round *round, const char *name)
{
	size_t i = 0;

	while (i < round->host_count &&
	       strcasecmp(round->hosts[i].name, name) != 0)
		i++;
	return i;
}

static size_t
host_of(struct discovery_round *round, const char *name)
{
	size_t at = find_host(round, name);

	if (at == round->host_count) {
		discovery_host_init(&round->hosts[at], name);
		round->host_count++;
	}
	return at;
}

/* Why a target cannot be used, or NULL. */
static const char *
target_fault(const struct dns_record *record, uint64_t *server_id)
{
	if (members_parse_label(
		record->target, strlen(record->target), server_id) != 0)
		return "no s-ID label";
	return record->port == 0 ? "port 0" : NULL;
}

/* Returns what is wrong with it; the root as target is no mistake. */
static const char *
add_service(struct discovery_round *round, const struct dns_record *record)
{
	struct service service = {.port = record->port};
	const char *fault;

	/* It says that there is no such service (RFC 2782). */
	if (record->target[0] == '\0')
		return NULL;
	fault = target_fault(record, &service.server_id);
	if (fault != NULL)
		return fault;
	service.host = host_of(round, record->target);
	for (size_t i = 0; i < round->service_count; i++) {
		if (round->services[i].host == service.host &&
		    round->services[i].port == service.port)
			return NULL;
	}
	round->services[round->service_count++] = service;
	return NULL;
}

/* All services of the answer; the error is that of the first bad target. */
static void
add_services(struct discovery_round *round, const struct dns_answer *answer)
{
	const char *fault;

	round->result.bad_targets = (uint32_t)answer->skipped;
	if (answer->skipped > 0)
		snprintf(round->error, sizeof round->error,
		    "SRV %s: no usable target: not a host name",
		    round->srv_name);
	for (size_t i = 0; i < answer->count; i++) {
		fault = add_service(round, &answer->records[i]);
		if (fault != NULL && round->result.bad_targets++ == 0)
			snprintf(round->error, sizeof round->error,
			    "SRV %s: no usable target: %s: %s", round->srv_name,
			    answer->records[i].target, fault);
	}
}

static void
lower_ttl(struct discovery_round *round, uint32_t ttl)
{
	if (ttl < round->result.ttl)
		round->result.ttl = ttl;
}

static void
take_glue(struct discovery_round *round, const struct dns_answer *answer)
{
	size_t hosts[DNS_MAX_RECORDS];

	if (answer->glue_count == 0)
		return;
	for (size_t i = 0; i < answer->count; i++)
		hosts[i] = find_host(round, answer->records[i].target);
	for (size_t i = 0; i < round->host_count; i++)
		lower_ttl(round,
		    discovery_host_glue(&round->hosts[i], answer, hosts, i));
}

static void
start_lookup(struct discovery_round *round, const char *name,
    struct discovery_addrs *addrs, struct lookup *lookup)
{
	lookup->round = round;
	lookup->addrs = addrs;
	if (addrs->count > 0) /* they came along */
		return;
	lookup->query =
	    dns_query_new(round->dns, name, addrs->type, on_lookup, lookup);
	if (lookup->query == NULL)
		addrs->status = DNS_UNREACHABLE;
	else
		round->open++;
}

/* Every lookup is done. */
static void
complete(struct discovery_round *round)
{
	struct discovery_result *result = &round->result;
	const struct discovery_host *host;

	for (size_t i = 0; i < round->host_count; i++) {
		host = &round->hosts[i];
		if (discovery_host_known(host))
			continue;
		result->missing_addresses++;
		if (!discovery_host_definite(host->v4.status) ||
		    !discovery_host_definite(host->v6.status))
			result->partial = true;
	}
	if (result->missing_addresses == round->host_count) {
		if (round->error[0] == '\0')
			snprintf(round->error, sizeof round->error,
			    "no SRV target has an address");
		finish(round, DISCOVERY_FAILED);
		return;
	}
	for (size_t i = 0; i < round->service_count; i++) {
		const struct service *service = &round->services[i];

		discovery_host_target(&round->hosts[service->host],
		    service->server_id, service->port, round->old,
		    &round->targets[i]);
	}
	round->error[0] = '\0';
	result->count = round->service_count;
	finish(round, DISCOVERY_FOUND);
}

/* The first that fails speaks for all: most of them fail alike. */
static void
lookup_error(struct discovery_round *round, const struct lookup *lookup,
    const char *error)
{
	size_t host = (size_t)(lookup - round->lookups) / 2;

	snprintf(round->error, sizeof round->error,
	    "no SRV target has an address: %s %s: %s",
	    lookup->addrs->type == DNS_A ? "A" : "AAAA",
	    round->hosts[host].name, error);
}

static void
on_lookup(void *arg, const struct dns_answer *answer)
{
	struct lookup *lookup = arg;
	struct discovery_round *round = lookup->round;

	lookup->query = NULL;
	discovery_host_answer(lookup->addrs, answer);
	if (answer->status == DNS_OK)
		lower_ttl(round, answer->ttl);
	if (answer->error[0] != '\0' && round->error[0] == '\0')
		lookup_error(round, lookup, answer->error);
	if (--round->open == 0)
		complete(round);
}

/* No service: is that what DNS says, or is there only nothing of use? */
static void
finish_without(struct discovery_round *round, const struct dns_answer *answer)
{
	bool empty = discovery_host_definite(answer->status) &&
		     round->result.bad_targets == 0;

	if (round->result.bad_targets == 0)
		srv_error(round, answer);
	finish(round, empty ? DISCOVERY_EMPTY : DISCOVERY_FAILED);
}

static void
on_srv(void *arg, const struct dns_answer *answer)
{
	struct discovery_round *round = arg;

	round->srv = NULL;
	round->result.ttl = answer->ttl;
	add_services(round, answer);
	if (round->service_count == 0) {
		finish_without(round, answer);
		return;
	}
	round->error[0] = '\0';
	take_glue(round, answer);
	for (size_t i = 0; i < round->host_count; i++) {
		struct discovery_host *host = &round->hosts[i];
		struct lookup *lookup = &round->lookups[2 * i];

		start_lookup(round, host->name, &host->v4, lookup);
		start_lookup(round, host->name, &host->v6, lookup + 1);
	}
	if (round->open == 0)
		complete(round);
}
