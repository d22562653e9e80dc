/* What is known and counted of each tenant, of its sockets, of its discovery
 * and of each of its servers. */
#include "daemon/metrics_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/io/dns.h"
#include "daemon/io/udp.h"
#include "daemon/status.h"

/* The tenants in force, and lists of whose counters are shown. */
struct scene {
	struct metrics_writer *w;
	struct tenant *const *tenants;
	size_t count;
	int64_t now;
	struct metrics_owners owners; /* counters: those of the tenant */
};

/* A number of a tenant that is no counter of a table. */
typedef uint64_t tenant_number(const struct tenant *t);

static uint64_t
is_ready(const struct tenant *t)
{
	return tenant_ready(t);
}

static uint64_t
servers(const struct tenant *t)
{
	return tenant_members(t)->count;
}

static uint64_t
inflight(const struct tenant *t)
{
	return tenant_inflight(t);
}

static uint64_t
old_ports(const struct tenant *t)
{
	return transport_old_ports(tenant_transport(t));
}

static void
write_number(const struct scene *s, enum metric metric, tenant_number *number)
{
	metrics_write_family(s->w, metric);
	for (size_t i = 0; i < s->count; i++)
		metrics_write_count(s->w, metric, s->owners.list[i].labels,
		    NULL, number(s->tenants[i]));
}

static void
write_diagnosis(const struct scene *s)
{
	char more[64];

	metrics_write_family(s->w, METRIC_TENANT_DIAGNOSIS);
	for (size_t i = 0; i < s->count; i++) {
		snprintf(more, sizeof(more), "diagnosis=\"%s\"",
		    status_diagnosis(s->tenants[i]));
		metrics_write_count(s->w, METRIC_TENANT_DIAGNOSIS,
		    s->owners.list[i].labels, more, 1);
	}
}

/* The counters of something else that each tenant has one of. */
typedef const void *counters_of(const struct tenant *t);

static const void *
transport_of(const struct tenant *t)
{
	return transport_counters(tenant_transport(t));
}

static const void *
discovery_of(const struct tenant *t)
{
	return discovery_counters(tenant_discovery(t));
}

static const void *
dns_of(const struct tenant *t)
{
	return discovery_dns(tenant_discovery(t));
}

static const void *
own_of(const struct tenant *t)
{
	return tenant_counters(t);
}

static void
write_of(struct scene *s, const struct metrics_sources *sources,
    counters_of *counters)
{
	for (size_t i = 0; i < s->count; i++)
		s->owners.list[i].counters = counters(s->tenants[i]);
	metrics_write_sources(s->w, sources->list, sources->count, &s->owners);
}

/* Of the families that have a socket; they are summed up for the call. */
static void
write_udp(const struct scene *s)
{
	struct udp_counters *sums = calloc(2 * s->count, sizeof(*sums)), *n;
	struct metrics_owners o = {0};

	s->w->failed |= sums == NULL;
	for (size_t i = 0; sums != NULL && i < 2 * s->count; i++) {
		const struct tenant *t = s->tenants[i / 2];

		n = &sums[i];
		if (transport_udp(tenant_transport(t), i % 2 ? 6 : 4, n))
			metrics_own(&o, n, "tenant", tenant_config(t)->name,
			    "family", i % 2 ? "ipv6" : "ipv4", NULL);
	}
	metrics_write_sources(s->w, metrics_udp.list, metrics_udp.count, &o);
	metrics_own_free(&o);
	free(sums);
}

/* Static servers are not asked for. */
static void
write_times(const struct scene *s)
{
	const struct discovery *d;
	int64_t when;

	metrics_write_family(s->w, METRIC_DISCOVERY_AGE);
	for (size_t i = 0; i < s->count; i++) {
		when = discovery_found_at(tenant_discovery(s->tenants[i]));
		if (when != 0)
			metrics_write_seconds(s->w, METRIC_DISCOVERY_AGE,
			    s->owners.list[i].labels, s->now - when);
	}
	metrics_write_family(s->w, METRIC_DISCOVERY_NEXT);
	for (size_t i = 0; i < s->count; i++) {
		d = tenant_discovery(s->tenants[i]);
		when = discovery_next(d);
		if (when != POLICY_NEVER)
			metrics_write_seconds(s->w, METRIC_DISCOVERY_NEXT,
			    s->owners.list[i].labels, when - s->now);
	}
}

static void
own_servers(struct metrics_owners *o, const struct scene *s)
{
	const struct peers *ps;
	char id[24];

	for (size_t i = 0; i < s->count; i++) {
		ps = tenant_peers(s->tenants[i]);
		for (uint32_t k = 0; k < ps->count; k++) {
			snprintf(
			    id, sizeof(id), "%" PRIu64, ps->list[k].server_id);
			metrics_own(o, &ps->list[k], "tenant",
			    tenant_config(s->tenants[i])->name, "server", id,
			    NULL);
		}
	}
}

static void
write_suspicion(const struct scene *s, const struct metrics_owners *o)
{
	const struct peer *p;
	uint32_t after;
	size_t at = 0;

	metrics_write_family(s->w, METRIC_SERVER_UNANSWERED);
	for (size_t i = 0; i < o->count; i++) {
		p = o->list[i].counters;
		metrics_write_count(s->w, METRIC_SERVER_UNANSWERED,
		    o->list[i].labels, NULL, p->unanswered);
	}
	metrics_write_family(s->w, METRIC_SERVER_SUSPECTED);
	for (size_t i = 0; i < s->count; i++) {
		after = tenant_config(s->tenants[i])->plan.suspect_after;
		for (uint32_t k = tenant_peers(s->tenants[i])->count; k > 0;
		     k--, at++) {
			p = o->list[at].counters;
			metrics_write_count(s->w, METRIC_SERVER_SUSPECTED,
			    o->list[at].labels, NULL,
			    suspect_is(&p->suspect, after));
		}
	}
}

static void
write_servers(const struct scene *s)
{
	struct metrics_owners o = {0};
	const struct peer *p;

	own_servers(&o, s);
	s->w->failed |= o.failed;
	if (!s->w->failed) {
		metrics_write_family(s->w, METRIC_SERVER_RTT);
		for (size_t i = 0; i < o.count; i++) {
			p = o.list[i].counters;
			metrics_write_histogram(s->w, METRIC_SERVER_RTT,
			    o.list[i].labels, &p->round_trips);
		}
		metrics_write_sources(
		    s->w, metrics_peer.list, metrics_peer.count, &o);
		write_suspicion(s, &o);
		metrics_write_sources(s->w, metrics_peer_trouble.list,
		    metrics_peer_trouble.count, &o);
	}
	metrics_own_free(&o);
}

void
metrics_of_tenants(struct metrics_writer *w, const struct agent *a, int64_t now)
{
	struct scene s = {.w = w,
	    .tenants = a->setup->tenants,
	    .count = a->setup->config->tenant_count,
	    .now = now};

	for (size_t i = 0; i < s.count; i++)
		metrics_own(&s.owners, NULL, "tenant",
		    tenant_config(s.tenants[i])->name, NULL);
	w->failed |= s.owners.failed;
	if (!w->failed) {
		write_number(&s, METRIC_TENANT_READY, is_ready);
		write_diagnosis(&s);
		write_number(&s, METRIC_SERVERS, servers);
		write_number(&s, METRIC_OPERATIONS_INFLIGHT, inflight);
		write_of(&s, &metrics_tenant, own_of);
		write_of(&s, &metrics_transport, transport_of);
		write_number(&s, METRIC_OLD_PORTS, old_ports);
		write_udp(&s);
		write_of(&s, &metrics_discovery, discovery_of);
		write_times(&s);
		write_of(&s, &metrics_dns, dns_of);
		write_servers(&s);
	}
	metrics_own_free(&s.owners);
}
