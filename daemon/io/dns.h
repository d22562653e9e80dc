/*
 * An asynchronous stub resolver: one question to the configured nameservers in
 * turn, over UDP with a fresh connected socket per try, over TCP when the
 * answer is truncated. ldns only codes messages, after a strict scan of the
 * bytes. No caching: discovery refreshes by TTL.
 */
#ifndef DAEMON_IO_DNS_H
#define DAEMON_IO_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/endpoint.h"
#include "daemon/io/loop.h"

#define DNS_MAX_NAME    256 /* text with its NUL */
#define DNS_MAX_RECORDS 128 /* of one answer; more are left out */
#define DNS_MAX_CHAIN   8   /* CNAME records of one query, over all answers */
#define DNS_ERROR_MAX   384 /* text with its NUL */

struct random_pool;

enum dns_type { DNS_A = 1, DNS_AAAA = 28, DNS_SRV = 33 };

enum dns_status {
	DNS_OK,     /* at least one record */
	DNS_NODATA, /* the name exists, without such a record */
	DNS_NXDOMAIN,
	DNS_TIMEOUT,     /* no nameserver answered */
	DNS_REFUSED,     /* every nameserver failed: SERVFAIL, REFUSED, ... */
	DNS_BAD,         /* malformed, AD missing, CNAMEs without an end */
	DNS_UNREACHABLE, /* no nameserver could be sent to */
};

struct dns_record {
	enum dns_type type;
	uint32_t ttl;  /* seconds; the least of the CNAME chain to it */
	uint16_t port; /* SRV */
	char target[DNS_MAX_NAME]; /* SRV, without the trailing dot */
	uint8_t addr[16];          /* A: 4 bytes, AAAA: 16 */
};

/*
 * An address that came along with an SRV answer, of one of its own targets.
 * That all of a target's addresses of a type come along, or none, is assumed:
 * servers leave out whole sets, but nothing in the answer says so.
 */
struct dns_glue {
	enum dns_type type; /* DNS_A or DNS_AAAA */
	uint32_t ttl;       /* seconds */
	size_t record;      /* the first of records with that target */
	uint8_t addr[16];
};

struct dns_answer {
	enum dns_status status;
	uint32_t ttl; /* seconds, least of the records; of the SOA if none */
	size_t count;
	size_t skipped; /* SRV records whose target is no host name */
	const struct dns_record *records;
	size_t glue_count; /* 0 with require_ad: AD does not cover these */
	const struct dns_glue *glue;
	/* Of the failures: what each nameserver that was asked did, one line
	 * without control characters; else "". */
	const char *error;
};

/*
 * What one query costs at most, in datagrams and connections, with this many
 * nameservers and tries: each exchange may need TCP, a nameserver is asked
 * again in its first turn without EDNS and in small letters, and each CNAME
 * that leads out of an answer is one more exchange. Each datagram and
 * connection gets timeout_ms, so this bounds the time of a query as well.
 */
#define DNS_QUERY_COST(servers, tries) \
	(2 * ((servers) * ((tries) + 2) + DNS_MAX_CHAIN))
#define DNS_MAX_ACTIVE 32 /* queries at a time; each holds a descriptor */

struct dns_options {
	const struct endpoint *nameservers; /* borrowed for the call */
	size_t nameserver_count;            /* 0: read resolv_conf per query */
	const char *resolv_conf;    /* borrowed for life; NULL: /etc's */
	struct random_pool *random; /* borrowed for life: ids, letter case */
	uint32_t timeout_ms;        /* of one try */
	uint32_t tries;             /* rounds over the nameservers, 1 or more */
	bool require_ad;
};

struct dns;
struct dns_query;

/* Called once, from the loop, never from inside dns_query_new(). */
typedef void dns_fn(void *arg, const struct dns_answer *answer);

/* Copies the options. NULL without memory. */
struct dns *dns_new(struct loop *loop, const struct dns_options *options);
void dns_free(struct dns *dns); /* cancels queries without calls */

/*
 * From now on at most this many datagrams and connections, until the next
 * call; a query that needs more gives up as though all nameservers had had
 * their turns. At first there is no limit.
 */
void dns_allow(struct dns *dns, uint64_t left);

/*
 * Has resolv.conf become another one since a query last read it? Always false
 * with nameservers in the options, and before the first query.
 */
bool dns_changed(const struct dns *dns);

/* Owned by dns until its call; NULL without memory or for a bad name. */
struct dns_query *dns_query_new(struct dns *dns, const char *name,
    enum dns_type type, dns_fn *fn, void *arg);
/* No call any more. */
void dns_query_cancel(struct dns_query *query);

struct dns_counters {
	uint64_t queries; /* datagrams and connections */
	uint64_t answers;
	uint64_t timeouts;
	uint64_t failures;  /* SERVFAIL, REFUSED, ... */
	uint64_t malformed; /* also mismatched id, question, missing AD */
	uint64_t tcp;
};
const struct dns_counters *dns_counters(const struct dns *dns);

#endif
