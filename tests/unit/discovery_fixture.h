/*
 * A discovery and a nameserver with a zone that the test rewrites: what the
 * tests of discovery and discovery_round share. Include it after the header
 * under test.
 */
#ifndef TESTS_UNIT_DISCOVERY_FIXTURE_H
#define TESTS_UNIT_DISCOVERY_FIXTURE_H

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/discovery.h"
#include "daemon/discovery_round.h"
#include "daemon/io/address.h"
#include "daemon/io/dns.h"
#include "tests/unit/fakedns.h"
#include "tests/unit/harness.h"

#define SERVICE "_ratelimitly._udp.tenant.test"
#define MS      INT64_C(1000)

struct srv {
	const char *target;
	uint16_t port;
};

/* Addresses or an rcode of one family; silent is the rcode 99. */
struct host {
	const char *name;  /* lower case; "*" is any */
	const char *alias; /* then nothing else is said; "+" an endless chain */
	const char *v4[16];
	const char *v6[16];
	unsigned rcode4;
	unsigned rcode6;
};

/* What the nameserver knows. */
static struct {
	unsigned rcode;
	uint32_t ttl;
	uint32_t negative_ttl; /* of NXDOMAIN; 0: it does not say */
	uint32_t host_ttl;
	struct srv srvs[160];
	struct host hosts[8];
	struct glue {
		const char *owner;
		const char *addr;
		uint32_t ttl;
	} glue[8];
	bool truncate_glued; /* glue over UDP, truncated; not over TCP */
	uint16_t flags;
	uint64_t srv_asked;
	uint64_t a_asked;
	uint64_t aaaa_asked;
	uint64_t asked; /* all of them */
} zone;

static struct loop *loop;
static struct random_pool *pool;
static struct fakedns *server;
static struct config_tenant tenant;
static struct discovery *d;
static struct members *got; /* the last that was reported */
static int calls;

static inline void
add_glue(struct dnsreply *reply)
{
	for (size_t i = 0; zone.glue[i].owner != NULL; i++)
		dnsreply_glue(reply, zone.glue[i].owner, zone.glue[i].ttl,
		    zone.glue[i].addr);
}

static inline void
answer_srv(const struct fakedns_query *query, struct dnsreply *reply)
{
	size_t i;

	zone.srv_asked += !query->tcp;
	dnsreply_rcode(reply, zone.rcode);
	if (zone.rcode != 0 && zone.negative_ttl > 0)
		dnsreply_soa(reply, NULL, 300, zone.negative_ttl);
	if (zone.rcode != 0)
		return;
	for (i = 0; zone.srvs[i].target != NULL; i++)
		dnsreply_srv(reply, NULL, zone.ttl, zone.srvs[i].port,
		    zone.srvs[i].target);
	if (!zone.truncate_glued || !query->tcp)
		add_glue(reply);
	if (zone.truncate_glued && !query->tcp)
		dnsreply_set(reply, DNSREPLY_TC);
	if (reply->len <= 1232 || query->tcp)
		return;
	dnsreply_init(reply, query->id, query->bytes + DNSREPLY_HEADER,
	    query->question_len);
	dnsreply_set(reply, DNSREPLY_TC);
}

static inline void
answer_alias(const struct fakedns_query *query, struct dnsreply *reply,
    const char *alias)
{
	char longer[300];

	if (strcmp(alias, "+") == 0) {
		snprintf(longer, sizeof longer, "x%s", query->name);
		alias = longer;
	}
	dnsreply_cname(reply, NULL, zone.host_ttl, alias);
}

static inline void
answer_host(const struct fakedns_query *query, struct dnsreply *reply)
{
	const struct host *host = zone.hosts;
	const char *const *list;
	unsigned rcode;

	zone.a_asked += query->type == DNS_A;
	zone.aaaa_asked += query->type == DNS_AAAA;
	while (host->name != NULL && strcmp(host->name, "*") != 0 &&
	       strcmp(host->name, query->name) != 0)
		host++;
	if (host->name == NULL) {
		dnsreply_rcode(reply, 3);
		return;
	}
	if (host->alias != NULL) {
		answer_alias(query, reply, host->alias);
		return;
	}
	list = query->type == DNS_A ? host->v4 : host->v6;
	rcode = query->type == DNS_A ? host->rcode4 : host->rcode6;
	reply->silent = rcode == 99;
	dnsreply_rcode(reply, rcode & 15);
	for (; rcode == 0 && *list != NULL; list++)
		dnsreply_address(reply, NULL, zone.host_ttl, *list);
}

static inline void
on_question(
    void *arg, const struct fakedns_query *query, struct dnsreply *reply)
{
	(void)arg;
	zone.asked++;
	dnsreply_set(reply, zone.flags);
	if (query->type != DNS_SRV)
		answer_host(query, reply);
	else if (strcmp(query->name, SERVICE) == 0)
		answer_srv(query, reply);
	else
		dnsreply_rcode(reply, 3);
}

static inline void
on_members(void *arg, struct members *members)
{
	ck_assert_ptr_eq(arg, &tenant);
	calls++;
	members_unref(got);
	got = members_ref(members);
}

/* The error of a round whose SRV query failed by what the nameserver did. */
static inline void
expect_fault(const char *fault)
{
	char want[DISCOVERY_ERROR_MAX], name[ADDRESS_TEXT_MAX];

	snprintf(want, sizeof want, "SRV %s: %s: %s", SERVICE,
	    address_format(&tenant.dns.nameservers[0], name), fault);
	ck_assert_str_eq(discovery_error(d), want);
}

static inline void
setup(void)
{
	static char name[] = "tenant.test";

	loop = loop_new();
	pool = random_pool_new();
	server = fakedns_new(loop, 4, on_question, NULL);
	ck_assert(loop != NULL && pool != NULL && server != NULL);
	tenant = (struct config_tenant){.dns = {
					    .name = name,
					    .refresh_ms = 300000,
					    .forced_min_ms = 20,
					    .timeout_ms = 5000,
					    .nameserver_count = 1,
					}};
	tenant.dns.nameservers[0] = fakedns_endpoint(server);
	memset(&zone, 0, sizeof zone);
	zone.ttl = 300;
	zone.host_ttl = 300;
	d = NULL;
	got = NULL;
	calls = 0;
}

static inline void
teardown(void)
{
	discovery_free(d);
	members_unref(got);
	fakedns_free(server);
	random_pool_free(pool);
	loop_free(loop);
}

/* Replaces the file whole, so that nobody reads half of it. */
static inline void
write_resolv_conf(const char *path, uint16_t port)
{
	char fresh[80], text[64];
	FILE *f;

	snprintf(fresh, sizeof fresh, "%s.%u", path, port);
	snprintf(text, sizeof text, "nameserver [127.0.0.1]:%u\n", port);
	f = fopen(fresh, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(rename(fresh, path), 0);
}

/* Two servers, of which the second has both families. */
static inline void
two_servers(void)
{
	zone.srvs[0] = (struct srv){"S-9.b.test", 29293};
	zone.srvs[1] = (struct srv){"s-5.a.test", 29292};
	zone.srvs[2] = (struct srv){NULL, 0};
	zone.hosts[0] =
	    (struct host){.name = "s-5.a.test", .v4 = {"192.0.2.5"}};
	zone.hosts[1] = (struct host){
	    .name = "s-9.b.test", .v4 = {"192.0.2.9"}, .v6 = {"2001:db8::9"}};
}

static inline void
start(void)
{
	d = discovery_new(loop, pool, &tenant, on_members, &tenant);
	ck_assert_ptr_nonnull(d);
	ck_assert_int_eq(calls, 0);
}

static inline void
step(void)
{
	event_base_loop(loop_base(loop), EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
}

/* Runs until no round runs and n have been. */
static inline void
run_rounds(uint64_t n)
{
	while (discovery_counters(d)->refreshes < n ||
	       discovery_next(d) == POLICY_NEVER)
		step();
	ck_assert_uint_eq(discovery_counters(d)->refreshes, n);
}

/* The next round is due in min..max and some time for having come here. */
static inline void
expect_due(int64_t began, int64_t min_ms, int64_t max_ms)
{
	ck_assert_int_ge(discovery_next(d), began + min_ms * MS);
	ck_assert_int_le(discovery_next(d), loop_now() + max_ms * MS);
}

static inline void
expect_member(uint32_t at, uint64_t id, uint32_t addrs)
{
	ck_assert_uint_lt(at, got->count);
	ck_assert(got->list[at].server_id == id);
	ck_assert_uint_eq(got->list[at].addr_count, addrs);
}

static inline void
expect_addr(uint32_t at, uint32_t i, const char *text, uint16_t port)
{
	const struct endpoint *e = &got->list[at].addrs[i];
	char have[INET6_ADDRSTRLEN];

	inet_ntop(
	    e->family == 4 ? AF_INET : AF_INET6, e->addr, have, sizeof have);
	ck_assert_str_eq(have, text);
	ck_assert_uint_eq(e->port, port);
}

#endif
