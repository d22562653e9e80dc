/*
 * The stub resolver: queries wait in a queue, a bounded number of them run,
 * each walks over its nameservers by exchanges until one answers. Calling the
 * query's owner is always the last thing that a callback does: the owner may
 * cancel, ask anew or free the resolver.
 */
#include "daemon/io/dns.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/io/dnsexchange.h"
#include "daemon/io/dnsfault.h"
#include "daemon/io/dnswire.h"
#include "daemon/io/resolvconf.h"
#include "proto/random.h"

#define MAX_SERVERS RESOLVCONF_MAX
#define MAX_ACTIVE  DNS_MAX_ACTIVE
#define MAX_QUERIES 1024 /* active and waiting */

struct dns_query {
	TAILQ_ENTRY(dns_query) link;
	struct dns *dns;
	dns_fn *fn;
	void *arg;
	struct dnswire_question question;
	struct dnsexchange *exchange; /* NULL: waiting */
	size_t server_count;
	struct endpoint servers[MAX_SERVERS];
	struct dnsfault faults[MAX_SERVERS]; /* of each server, so far */
	uint64_t tried;       /* servers that are done, over all rounds */
	unsigned links;       /* CNAME records that led out of answers so far */
	uint32_t chain_ttl;   /* the least of theirs */
	unsigned asked_count; /* names asked for before this one */
	struct dnswire_name asked[DNS_MAX_CHAIN];
	bool plain; /* without EDNS, for this server */
	bool lower; /* without mixed letter case, for this server */
	bool spent; /* see dns_allow() */
};

TAILQ_HEAD(query_list, dns_query);

struct dns {
	struct loop *loop;
	struct dns_options options;
	struct endpoint servers[MAX_SERVERS];
	struct dnsexchange_env env;
	struct loop_task pump;
	uint64_t left; /* see dns_allow() */
	bool stamped;
	struct resolvconf_stamp stamp; /* of the last read */
	size_t active_count;
	size_t query_count;
	struct query_list active;
	struct query_list waiting;
	struct dns_counters counters;
	struct dnswire_answer answer; /* of the query that is being reported */
};

static void pump(void *arg);
static void on_result(void *arg, enum dnsexchange_result result);

struct dns *
dns_new(struct loop *loop, const struct dns_options *options)
{
	struct dns *dns = calloc(1, sizeof *dns);
	size_t count = options->nameserver_count;

	assert(options->random != NULL);
	if (dns == NULL)
		return NULL;
	dns->loop = loop;
	dns->options = *options;
	if (count > MAX_SERVERS)
		count = MAX_SERVERS;
	if (count > 0)
		memcpy(dns->servers, options->nameservers,
		    count * sizeof dns->servers[0]);
	dns->options.nameserver_count = count;
	dns->options.nameservers = NULL;
	if (options->tries == 0)
		dns->options.tries = 1;
	if (options->resolv_conf == NULL)
		dns->options.resolv_conf = RESOLVCONF_PATH;
	dns->env = (struct dnsexchange_env){
	    .loop = loop,
	    .timeout_ms = options->timeout_ms,
	    .counters = &dns->counters,
	    .left = &dns->left,
	    .answer = &dns->answer,
	};
	dns->left = UINT64_MAX;
	TAILQ_INIT(&dns->active);
	TAILQ_INIT(&dns->waiting);
	loop_task_init(&dns->pump, pump, dns);
	return dns;
}

/* Takes the query off its list and frees it. */
static void
release(struct dns_query *query)
{
	struct dns *dns = query->dns;

	if (query->exchange != NULL) {
		TAILQ_REMOVE(&dns->active, query, link);
		dns->active_count--;
	} else {
		TAILQ_REMOVE(&dns->waiting, query, link);
	}
	dns->query_count--;
	dnsexchange_free(query->exchange);
	free(query);
}

void
dns_free(struct dns *dns)
{
	if (dns == NULL)
		return;
	while (!TAILQ_EMPTY(&dns->active))
		release(TAILQ_FIRST(&dns->active));
	while (!TAILQ_EMPTY(&dns->waiting))
		release(TAILQ_FIRST(&dns->waiting));
	loop_cancel(dns->loop, &dns->pump);
	free(dns);
}

static void
wake(struct dns *dns)
{
	if (!TAILQ_EMPTY(&dns->waiting) && dns->active_count < MAX_ACTIVE)
		loop_defer(dns->loop, &dns->pump);
}

struct dns_query *
dns_query_new(struct dns *dns, const char *name, enum dns_type type, dns_fn *fn,
    void *arg)
{
	struct dns_query *query;

	if (dns->query_count >= MAX_QUERIES)
		return NULL;
	query = calloc(1, sizeof *query);
	if (query == NULL)
		return NULL;
	if (dnswire_question_init(
		&query->question, name, type, dns->options.require_ad) != 0) {
		free(query);
		return NULL;
	}
	query->dns = dns;
	query->fn = fn;
	query->arg = arg;
	query->chain_ttl = INT32_MAX;
	TAILQ_INSERT_TAIL(&dns->waiting, query, link);
	dns->query_count++;
	wake(dns);
	return query;
}

void
dns_query_cancel(struct dns_query *query)
{
	struct dns *dns = query->dns;

	release(query);
	wake(dns);
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Frees the query and tells its owner; dns may be gone when this returns. */
static void
finish(struct dns_query *query, const struct dns_answer *answer)
{
	struct dns *dns = query->dns;
	dns_fn *fn = query->fn;
	void *arg = query->arg;

	release(query);
	wake(dns);
	fn(arg, answer);
}

static void
succeed(struct dns_query *query)
{
	struct dnswire_answer *got = &query->dns->answer;
	struct dns_answer answer = {
	    .status = got->status,
	    .ttl = least(got->ttl, query->chain_ttl),
	    .count = got->count,
	    .skipped = got->skipped,
	    .records = got->records,
	    .glue_count = got->glue_count,
	    .glue = got->glue,
	    .error = "",
	};

	for (size_t i = 0; i < got->count; i++)
		got->records[i].ttl =
		    least(got->records[i].ttl, query->chain_ttl);
	finish(query, &answer);
}

/* Every nameserver had its turns; the most telling fault decides. */
/* Why 127.0.0.1 was asked, of which nobody has told. */
static void
note_resolv_conf(const struct dns *dns, char error[DNS_ERROR_MAX])
{
	size_t len = strlen(error);

	if (dns->options.nameserver_count == 0 && !dns->stamp.named)
		snprintf(error + len, DNS_ERROR_MAX - len,
		    " (%s names no nameserver)", dns->options.resolv_conf);
}

static void
give_up(struct dns_query *query)
{
	char error[DNS_ERROR_MAX];
	struct dns_answer answer = {.error = error};

	answer.status = dnsfault_status(query->faults, query->server_count);
	dnsfault_text(error, query->servers, query->faults, query->server_count,
	    query->dns->options.timeout_ms);
	note_resolv_conf(query->dns, error);
	if (query->spent) {
		answer.error = "too many queries in one round";
		if (answer.status == DNS_UNREACHABLE)
			answer.status = DNS_TIMEOUT;
	}
	finish(query, &answer);
}

static void
note_fault(struct dns_query *query, struct dnsfault fault)
{
	struct dnsfault *of =
	    &query->faults[query->tried % query->server_count];

	*of = dnsfault_worse(*of, fault);
}

/*
 * A fresh id and port for every try, and in the first round a fresh letter
 * case and EDNS. Some nameservers fold the case, compare names with it, or
 * are silent on EDNS: the later rounds ask in the plainest way. False when
 * the server cannot be asked.
 */
static bool
try_server(struct dns_query *query, const struct endpoint *server)
{
	const bool first = query->tried < query->server_count;
	uint8_t random[DNSWIRE_RANDOM_LEN];
	int rc =
	    random_bytes(query->dns->options.random, random, sizeof random);

	if (rc != 0) {
		note_fault(query, (struct dnsfault){DNSFAULT_UNREACHABLE, EIO});
		return false;
	}
	query->lower = query->lower || !first;
	if (query->lower)
		memset(random + DNSWIRE_RANDOM_ID, 0,
		    sizeof random - DNSWIRE_RANDOM_ID);
	dnswire_question_mix(&query->question, random);
	query->question.edns = first && !query->plain;
	rc = dnsexchange_start(query->exchange, &query->question, server);
	if (rc != 0)
		note_fault(query, dnsexchange_fault(query->exchange));
	return rc == 0;
}

static void
next_server(struct dns_query *query)
{
	query->tried++;
	query->plain = false;
	query->lower = false;
}

/* Asks the next server that can be sent to; the query may be gone then. */
static void
advance(struct dns_query *query)
{
	const size_t count = query->server_count;
	const uint64_t turns = (uint64_t)count * query->dns->options.tries;

	for (; query->tried < turns; next_server(query)) {
		if (query->dns->left == 0) {
			query->spent = true;
			break;
		}
		if (try_server(query, &query->servers[query->tried % count]))
			return;
	}
	give_up(query);
}

/*
 * The answer was about an alias alone: asks for what it leads to, first of the
 * server that said so. False when a name would be asked for twice: the chain
 * has no end.
 */
static bool
follow(struct dns_query *query)
{
	const struct dnswire_answer *got = &query->dns->answer;

	query->links += got->links;
	dnswire_question_name(
	    &query->question, &query->asked[query->asked_count++]);
	for (unsigned i = 0; i < query->asked_count; i++) {
		if (dnswire_same_name(&query->asked[i], &got->alias))
			return false;
	}
	query->chain_ttl = least(query->chain_ttl, got->ttl);
	dnswire_question_rename(&query->question, &got->alias);
	return true;
}

/* What the server answered: the end, another name, or the same in plain. */
static void
take_answer(struct dns_query *query, enum dnsexchange_result result)
{
	static const struct dns_answer endless = {
	    .status = DNS_BAD, .error = "CNAME records without an end"};
	const struct dnswire_answer *got = &query->dns->answer;

	if (query->links + got->links > DNS_MAX_CHAIN) {
		finish(query, &endless);
	} else if (result == DNSEXCHANGE_ALIAS) {
		if (follow(query))
			advance(query);
		else
			finish(query, &endless);
	} else if (got->status != DNS_NXDOMAIN || query->lower) {
		succeed(query);
	} else {
		/* "No such name" may be about its letter case. */
		query->lower = true;
		advance(query);
	}
}

static void
on_result(void *arg, enum dnsexchange_result result)
{
	struct dns_query *query = arg;

	switch (result) {
	case DNSEXCHANGE_ANSWER:
	case DNSEXCHANGE_ALIAS:
		take_answer(query, result);
		return;
	case DNSEXCHANGE_NO_EDNS:
		query->plain = true;
		advance(query);
		return;
	case DNSEXCHANGE_FAILED:
	case DNSEXCHANGE_BAD:
	case DNSEXCHANGE_TIMEOUT:
	case DNSEXCHANGE_UNREACHABLE:
		note_fault(query, dnsexchange_fault(query->exchange));
		break;
	}
	next_server(query);
	advance(query);
}

static void
load_servers(struct dns_query *query)
{
	struct dns *dns = query->dns;

	query->server_count = dns->options.nameserver_count;
	if (query->server_count > 0)
		memcpy(query->servers, dns->servers, sizeof query->servers);
	else
		query->server_count = resolvconf_read(
		    dns->options.resolv_conf, query->servers, &dns->stamp);
	dns->stamped = true;
}

/* Starts one waiting query; the next one is another task. */
static void
pump(void *arg)
{
	struct dns *dns = arg;
	struct dns_query *query = TAILQ_FIRST(&dns->waiting);
	struct dnsexchange *exchange;

	if (query == NULL || dns->active_count >= MAX_ACTIVE)
		return;
	exchange = dnsexchange_new(&dns->env, on_result, query);
	if (exchange == NULL) {
		give_up(query);
		return;
	}
	TAILQ_REMOVE(&dns->waiting, query, link);
	TAILQ_INSERT_TAIL(&dns->active, query, link);
	dns->active_count++;
	query->exchange = exchange;
	wake(dns);
	load_servers(query);
	advance(query);
}

void
dns_allow(struct dns *dns, uint64_t left)
{
	dns->left = left;
}

bool
dns_changed(const struct dns *dns)
{
	return dns->options.nameserver_count == 0 && dns->stamped &&
	       resolvconf_changed(dns->options.resolv_conf, &dns->stamp);
}

const struct dns_counters *
dns_counters(const struct dns *dns)
{
	return &dns->counters;
}
