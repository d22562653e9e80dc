/*
 * Which counter is which sample: a row for each counter of core/counters.h, of
 * peers, sockets, transports, discovery and DNS, in the order of
 * core/metrics.h. What another metric tells already is left out, and named in
 * the test.
 */
#ifndef DAEMON_METRICS_SOURCES_H
#define DAEMON_METRICS_SOURCES_H

#include "daemon/metrics_write.h"

struct metrics_sources {
	const struct metrics_source *list;
	size_t count;
};

/* struct agent_counters, in five places of the text. */
extern const struct metrics_sources metrics_agent_log;
extern const struct metrics_sources metrics_agent_clients;
extern const struct metrics_sources metrics_agent_checks;
extern const struct metrics_sources metrics_agent_reports;
extern const struct metrics_sources metrics_agent_limiters;
extern const struct metrics_sources metrics_tenant;    /* tenant_counters */
extern const struct metrics_sources metrics_transport; /* transport_counters */
extern const struct metrics_sources metrics_udp;       /* udp_counters */
extern const struct metrics_sources metrics_discovery; /* discovery_counters */
extern const struct metrics_sources metrics_dns;       /* dns_counters */
extern const struct metrics_sources metrics_peer;      /* peer */
extern const struct metrics_sources metrics_peer_trouble; /* peer */
extern const struct metrics_sources metrics_limiter;      /* limiter_counters */
extern const struct metrics_sources metrics_local;        /* limiter_counters */
extern const struct metrics_sources
    metrics_error_control; /* error_control_counters */

#endif
