/*
 * A resolver and two nameservers that follow a script: what the tests of dns
 * and dnsexchange share. Include it after the header under test.
 */
#ifndef TESTS_UNIT_DNS_FIXTURE_H
#define TESTS_UNIT_DNS_FIXTURE_H

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/io/address.h"
#include "daemon/io/dns.h"
#include "tests/unit/fakedns.h"
#include "tests/unit/harness.h"

#include "proto/random.h"

#define SERVERS 2
#define SEEN    64

/* What one nameserver does; the n-th question gets moves[n], then the last. */
enum move {
	GOOD, /* an A record 192.0.2.<server> */
	SILENT,
	SERVFAIL,
	REFUSED,
	FORMERR,
	NO_OPT, /* FORMERR as long as there is EDNS */
	NAME_ERROR,
	NOTHING,
	BROKEN_RR,
	AUTHENTIC,
	FORGED, /* a volley of bad datagrams, then GOOD */
	TC_GOOD,
	TC_BROKEN,
	TC_STALL,
	TC_WRONG_ID,
	TC_BIG,
	TC_ALIAS,
	TC_FORMERR,
	TC_NAME_ERROR,
	HOLD,    /* see held */
	ALIAS,   /* of n<k + 1>.test alone, of which it is the k-th question */
	ALIAS_2, /* two in a row */
	ALIAS_LOOP, /* of the name that was asked for before the last one */
};

struct seen {
	uint16_t id;
	uint16_t flags;
	uint16_t port;
	bool edns;
	bool tcp;
	uint8_t question[64];
};

struct script {
	int index;
	enum move moves[12];
	size_t count;
	size_t asked;
	struct seen seen[SEEN];
};

static struct loop *loop;
static struct random_pool *pool;
static struct dns *dns;
static struct fakedns *servers[SERVERS];
static struct script scripts[SERVERS];
static struct dns_options options;
static struct endpoint endpoints[3];

static int calls;
static struct dns_answer last;
static char last_error[DNS_ERROR_MAX];
static struct dns_record records[DNS_MAX_RECORDS];

#define MAX_HELD 64
static size_t held_count, held_most;
static struct fakedns_query held[MAX_HELD];
static uint8_t held_bytes[MAX_HELD][512];

static inline void
good(const struct script *script, struct dnsreply *reply)
{
	char address[32];

	snprintf(address, sizeof address, "192.0.2.%d", script->index);
	dnsreply_address(reply, NULL, 60, address);
}

/* A datagram of the reply with one byte changed. */
static inline void
forge(const struct fakedns_query *query, const struct dnsreply *reply,
    size_t at, uint8_t mask)
{
	uint8_t copy[512];

	memcpy(copy, reply->bytes, reply->len);
	copy[at] ^= mask;
	fakedns_send(query, copy, reply->len);
}

/* From a port that is not the nameserver's: the kernel drops it. */
static inline void
forge_source(const struct fakedns_query *query, const struct dnsreply *reply)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	sendto(fd, reply->bytes, reply->len, 0,
	    (const struct sockaddr *)&query->from, query->from_len);
	close(fd);
}

static inline void
volley(const struct script *script, const struct fakedns_query *query)
{
	struct dnsreply *evil = malloc(sizeof *evil);
	uint8_t huge[4100] = {0};

	dnsreply_init(evil, query->id, query->bytes + DNSREPLY_HEADER,
	    query->question_len);
	dnsreply_address(evil, NULL, 60, "203.0.113.66");
	forge_source(query, evil);
	forge(query, evil, 1, 1);                      /* id */
	forge(query, evil, 2, 0x80);                   /* QR */
	forge(query, evil, 2, 0x08);                   /* opcode */
	forge(query, evil, DNSREPLY_HEADER + 1, 0x20); /* letter case */
	forge(query, evil, evil->len - 5, 1);          /* RDLENGTH */
	fakedns_send(query, "", 0);
	fakedns_send(query, evil->bytes, 7);
	fakedns_send(query, huge, sizeof huge);
	(void)script;
	free(evil);
}

static inline void
hold(const struct fakedns_query *query)
{
	ck_assert_uint_lt(held_count, MAX_HELD);
	memcpy(held_bytes[held_count], query->bytes, query->len);
	held[held_count] = *query;
	held[held_count].bytes = held_bytes[held_count];
	held_count++;
	if (held_count > held_most)
		held_most = held_count;
}

static inline void
big(struct dnsreply *reply)
{
	char address[32];

	for (int i = 0; i < 200; i++) {
		snprintf(address, sizeof address, "192.0.2.%d", i);
		dnsreply_address(reply, NULL, 60, address);
	}
}

static inline void
broken_rr(struct dnsreply *reply)
{
	dnsreply_record(reply, DNSREPLY_ANSWER, NULL, 1, 60, "abc", 3);
}

/* An alias and nothing else, as a server sends it that knows no more. */
static inline void
alias(const struct script *script, struct dnsreply *reply, int links)
{
	const unsigned n = (unsigned)script->asked;
	char name[32], next[32];

	snprintf(name, sizeof name, "n%u.test", n);
	dnsreply_cname(reply, NULL, 50 - n, name);
	if (links == 1)
		return;
	snprintf(next, sizeof next, "m%u.test", n);
	dnsreply_cname(reply, name, 50 - n, next);
}

static inline void
by_tcp(enum move move, const struct script *script,
    const struct fakedns_query *query, struct dnsreply *reply)
{
	if (!query->tcp) {
		dnsreply_set(reply, DNSREPLY_TC);
		return;
	}
	if (move == TC_BIG)
		big(reply);
	else if (move == TC_ALIAS)
		alias(script, reply, 1);
	else if (move == TC_FORMERR || move == TC_NAME_ERROR)
		dnsreply_rcode(reply, move == TC_FORMERR ? 1 : 3);
	else
		good(script, reply);
	reply->silent = move == TC_STALL;
	reply->broken = move == TC_BROKEN;
	if (move == TC_WRONG_ID)
		reply->bytes[0] ^= 1;
}

static inline void
alias_loop(const struct fakedns_query *query, struct dnsreply *reply)
{
	dnsreply_cname(reply, NULL, 60,
	    strcmp(query->name, "host.test") == 0 ? "Loop.test" : "Host.Test");
}

static inline void
answer_udp(enum move move, const struct script *script,
    const struct fakedns_query *query, struct dnsreply *reply)
{
	switch (move) {
	case FORGED:
		volley(script, query);
		/* fallthrough */
	case GOOD:
		good(script, reply);
		break;
	case AUTHENTIC:
		good(script, reply);
		dnsreply_set(reply, DNSREPLY_AD);
		break;
	case HOLD:
		hold(query);
		/* fallthrough */
	case SILENT:
		reply->silent = true;
		break;
	case ALIAS:
		alias(script, reply, 1);
		break;
	case ALIAS_2:
		alias(script, reply, 2);
		break;
	case ALIAS_LOOP:
		alias_loop(query, reply);
		break;
	case SERVFAIL:
		dnsreply_rcode(reply, 2);
		break;
	case REFUSED:
		dnsreply_rcode(reply, 5);
		break;
	case FORMERR:
		dnsreply_rcode(reply, 1);
		break;
	case NO_OPT:
		if (query->edns)
			dnsreply_rcode(reply, 1);
		else
			good(script, reply);
		break;
	case NAME_ERROR:
		dnsreply_rcode(reply, 3);
		dnsreply_soa(reply, "test", 60, 7);
		break;
	case NOTHING:
		dnsreply_soa(reply, "test", 60, 8);
		break;
	case BROKEN_RR:
		broken_rr(reply);
		break;
	case TC_GOOD:
	case TC_BROKEN:
	case TC_STALL:
	case TC_WRONG_ID:
	case TC_BIG:
	case TC_ALIAS:
	case TC_FORMERR:
	case TC_NAME_ERROR:
		by_tcp(move, script, query, reply);
		break;
	}
}

static inline void
on_question(
    void *arg, const struct fakedns_query *query, struct dnsreply *reply)
{
	struct script *script = arg;
	struct seen *seen = &script->seen[script->asked % SEEN];
	size_t at = script->asked;

	*seen = (struct seen){.id = query->id,
	    .flags = query->flags,
	    .port = ntohs(((const struct sockaddr_in *)&query->from)->sin_port),
	    .edns = query->edns,
	    .tcp = query->tcp};
	memcpy(seen->question, query->bytes + DNSREPLY_HEADER,
	    query->question_len < 64 ? query->question_len : 64);
	/* The question over TCP belongs to the move that asked for it. */
	if (!query->tcp)
		script->asked++;
	else
		at--;
	if (at >= script->count)
		at = script->count - 1;
	answer_udp(script->moves[at], script, query, reply);
}

static inline void
on_answer(void *arg, const struct dns_answer *answer)
{
	(void)arg;
	calls++;
	last = *answer;
	snprintf(last_error, sizeof last_error, "%s", answer->error);
	if (answer->count > 0)
		memcpy(records, answer->records,
		    answer->count * sizeof records[0]);
	loop_stop(loop);
}

/* first says what nameserver 0 did, or all of it; second, of 1, may be NULL. */
static inline void
expect_error(const char *first, const char *second)
{
	char want[DNS_ERROR_MAX], one[ADDRESS_TEXT_MAX], two[ADDRESS_TEXT_MAX];

	snprintf(want, sizeof want, "%s: %s%s%s%s%s",
	    address_format(&endpoints[0], one), first,
	    second != NULL ? "; " : "",
	    second != NULL ? address_format(&endpoints[1], two) : "",
	    second != NULL ? ": " : "", second != NULL ? second : "");
	ck_assert_str_eq(last_error, want);
}

static inline void
setup(void)
{
	loop = loop_new();
	pool = random_pool_new();
	ck_assert(loop != NULL && pool != NULL);
	for (int i = 0; i < SERVERS; i++) {
		scripts[i] = (struct script){.index = i + 1, .count = 1};
		servers[i] = fakedns_new(loop, 4, on_question, &scripts[i]);
		ck_assert_ptr_nonnull(servers[i]);
		endpoints[i] = fakedns_endpoint(servers[i]);
	}
	options = (struct dns_options){
	    .nameservers = endpoints,
	    .nameserver_count = SERVERS,
	    .timeout_ms = 10000,
	    .tries = 2,
	    .random = pool,
	};
	dns = NULL;
	calls = 0;
	held_count = held_most = 0;
}

static inline void
teardown(void)
{
	dns_free(dns);
	for (int i = 0; i < SERVERS; i++)
		fakedns_free(servers[i]);
	random_pool_free(pool);
	loop_free(loop);
}

static inline void
play(int server, size_t count, const enum move *moves)
{
	memcpy(scripts[server].moves, moves, count * sizeof *moves);
	scripts[server].count = count;
}

#define PLAY(server, ...)                                                    \
	play(server, sizeof((enum move[]){__VA_ARGS__}) / sizeof(enum move), \
	    (enum move[]){__VA_ARGS__})

/* One query from start to end. */
static inline void
resolve(enum dns_status want)
{
	int before = calls;

	if (dns == NULL)
		dns = dns_new(loop, &options);
	ck_assert_ptr_nonnull(dns);
	ck_assert_ptr_nonnull(
	    dns_query_new(dns, "Host.test", DNS_A, on_answer, NULL));
	ck_assert_int_eq(calls, before);
	loop_run(loop);
	ck_assert_int_eq(calls, before + 1);
	ck_assert_int_eq(last.status, want);
}

/* The answer came from this server, 1 or 2. */
static inline void
expect_from(int server)
{
	ck_assert_uint_eq(last.count, 1);
	ck_assert_uint_eq(last.ttl, 60);
	ck_assert_mem_eq(records[0].addr, "\xc0\0\2", 3);
	ck_assert_int_eq(records[0].addr[3], server);
}

/* An endpoint where nobody listens. */
static inline struct endpoint
closed_port(void)
{
	struct fakedns *gone = fakedns_new(loop, 4, on_question, &scripts[0]);
	struct endpoint e = fakedns_endpoint(gone);

	fakedns_free(gone);
	return e;
}

#endif
