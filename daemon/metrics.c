/* The whole text, and what is of the agent itself, its loads and clients. */
#include "daemon/metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/log.h"
#include "daemon/metrics_private.h"
#include "proto/provider.h"

static void
hex(const uint8_t bytes[CONFIG_HASH_LEN], char text[2 * CONFIG_HASH_LEN + 1])
{
	for (size_t i = 0; i < CONFIG_HASH_LEN; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
}

/* A family of one sample that is always 1. Takes o. */
static void
write_info(
    struct metrics_writer *w, enum metric metric, struct metrics_owners *o)
{
	metrics_write_family(w, metric);
	w->failed |= o->failed;
	for (size_t i = 0; i < o->count; i++)
		metrics_write_count(w, metric, o->list[i].labels, NULL, 1);
	metrics_own_free(o);
}

static void
write_build(struct metrics_writer *w)
{
	struct metrics_owners o = {0};

	metrics_own(&o, NULL, "version", PACKAGE_VERSION, "libevent",
	    loop_library(), "openssl", provider_library(), NULL);
	write_info(w, METRIC_BUILD_INFO, &o);
}

static void
write_config(struct metrics_writer *w, const struct agent *a)
{
	const struct config *c = a->setup->config;
	char hash[2 * CONFIG_HASH_LEN + 1], file[2 * CONFIG_HASH_LEN + 1] = "";
	struct metrics_owners o = {0};

	hex(c->hash, hash);
	if (c->from_file)
		hex(c->file_hash, file);
	metrics_own(&o, NULL, "config_hash", hash, "file_hash", file, NULL);
	write_info(w, METRIC_CONFIG_INFO, &o);
}

static void
write_loading(struct metrics_writer *w, const struct agent *a, int64_t now)
{
	const struct agent_loading *l = &a->loading;
	const struct setup *s;
	uint64_t ending = 0;

	metrics_write_one(w, METRIC_CONFIG_GENERATION, a->setup->generation);
	metrics_write_family(w, METRIC_CONFIG_AGE);
	metrics_write_seconds(w, METRIC_CONFIG_AGE, "", now - l->at);
	metrics_write_one(w, METRIC_RELOAD_OK, l->error[0] == '\0');
	metrics_write_one(w, METRIC_RELOAD_FAILURES, l->failures);
	metrics_write_one(w, METRIC_CONFIG_WATCHING, l->watching);
	for (s = a->retired; s != NULL; s = s->next)
		ending++;
	metrics_write_one(w, METRIC_CONFIG_ENDING, ending);
}

/* Of the agent's own counters, which have no labels. */
static void
write_agent(struct metrics_writer *w, const struct metrics_sources *sources,
    const struct agent *a)
{
	struct metrics_owner one = {"", dispatch_counters(a->dispatch)};
	const struct metrics_owners owners = {.list = &one, .count = 1};

	metrics_write_sources(w, sources->list, sources->count, &owners);
}

/* One number of every listening socket. */
typedef uint64_t port_number(const struct dispatch_port *p);

static uint64_t
connections(const struct dispatch_port *p)
{
	return p->connections;
}

static uint64_t
connections_max(const struct dispatch_port *p)
{
	return p->max_connections;
}

static uint64_t
inflight(const struct dispatch_port *p)
{
	return p->inflight;
}

static uint64_t
inflight_max(const struct dispatch_port *p)
{
	return p->max_inflight;
}

static uint64_t
pauses(const struct dispatch_port *p)
{
	return p->accept_pauses;
}

static const struct {
	enum metric metric;
	port_number *number;
} port_metrics[] = {
    {METRIC_PORT_CONNECTIONS, connections},
    {METRIC_PORT_CONNECTIONS_MAX, connections_max},
    {METRIC_PORT_INFLIGHT, inflight},
    {METRIC_PORT_INFLIGHT_MAX, inflight_max},
    {METRIC_PORT_PAUSES, pauses},
};

static const char *
port_kind(const struct dispatch_port *p)
{
	if (p->gateway != NULL)
		return "gateway";
	return p->control ? "control" : "application";
}

static void
write_ports(struct metrics_writer *w, const struct agent *a)
{
	struct metrics_owners o = {0};
	struct dispatch_port p;
	size_t i, k;

	for (i = 0; dispatch_port(a->dispatch, i, &p); i++)
		metrics_own(
		    &o, NULL, "listener", p.name, "kind", port_kind(&p), NULL);
	w->failed |= o.failed;
	for (k = 0; k < sizeof(port_metrics) / sizeof(port_metrics[0]); k++) {
		metrics_write_family(w, port_metrics[k].metric);
		for (i = 0; i < o.count; i++) {
			dispatch_port(a->dispatch, i, &p);
			metrics_write_count(w, port_metrics[k].metric,
			    o.list[i].labels, NULL, port_metrics[k].number(&p));
		}
	}
	metrics_own_free(&o);
}

static void
write_queues(struct metrics_writer *w, const struct agent *a)
{
	struct dispatch_queues q;

	dispatch_queues(a->dispatch, &q);
	metrics_write_one(w, METRIC_INFLIGHT, dispatch_inflight(a->dispatch));
	metrics_write_one(
	    w, METRIC_INFLIGHT_MAX, a->setup->config->limits.max_inflight);
	metrics_write_one(w, METRIC_UNSENT, q.unsent);
	metrics_write_family(w, METRIC_WAITING);
	metrics_write_count(w, METRIC_WAITING, "", "request=\"wait\"", q.waits);
	metrics_write_count(
	    w, METRIC_WAITING, "", "request=\"reload\"", q.reloads);
	metrics_write_count(
	    w, METRIC_WAITING, "", "request=\"drain\"", q.drains);
}

char *
metrics_text(const struct agent *a)
{
	const int64_t now = loop_now();
	struct metrics_writer w = {0};

	write_build(&w);
	metrics_write_one(&w, METRIC_READY, dispatch_is_ready(a->dispatch));
	metrics_write_one(&w, METRIC_DRAINING, a->draining || a->ending);
	write_config(&w, a);
	write_loading(&w, a, now);
	metrics_write_one(&w, METRIC_LOG_DROPPED, log_dropped());
	metrics_write_one(&w, METRIC_LOG_HELD, log_held());
	write_agent(&w, &metrics_agent_log, a);
	write_agent(&w, &metrics_agent_clients, a);
	write_ports(&w, a);
	write_queues(&w, a);
	write_agent(&w, &metrics_agent_checks, a);
	metrics_of_rules(&w, a);
	write_agent(&w, &metrics_agent_reports, a);
	metrics_of_tenants(&w, a, now);
	write_agent(&w, &metrics_agent_limiters, a);
	metrics_of_limiters(&w, a, now);
	metrics_of_process(&w, a);
	return metrics_write_end(&w);
}
