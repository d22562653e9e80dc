/* See metrics_sources.h. */
#include "daemon/metrics_sources.h"

#include "daemon/core/counters.h"
#include "daemon/core/peer.h"
#include "daemon/discovery.h"
#include "daemon/io/dns.h"
#include "daemon/io/udp.h"
#include "daemon/transport.h"

/* A sample of one of the counters in a struct. */
#define FIELD(metric, more, owner, field)                            \
	{                                                            \
		METRIC_##metric, more, offsetof(struct owner, field) \
	}
#define LIST(name)                                      \
	const struct metrics_sources metrics_##name = { \
	    name##_list, sizeof(name##_list) / sizeof(name##_list[0])}

#define AGENT(metric, more, field) FIELD(metric, more, agent_counters, field)

static const struct metrics_source agent_log_list[] = {
    AGENT(LOG_DECISIONS, NULL, decisions_unsaid),
};
LIST(agent_log);

static const struct metrics_source agent_clients_list[] = {
    AGENT(CONNECTIONS, NULL, connections),
    AGENT(REFUSED, NULL, connections_refused),
    AGENT(CAPS, "cap=\"connections\"", cap_connections),
    AGENT(CAPS, "cap=\"connections_uid\"", cap_connections_uid),
    AGENT(CAPS, "cap=\"descriptors\"", cap_descriptors),
    AGENT(CAPS, "cap=\"inflight\"", cap_inflight),
    AGENT(CAPS, "cap=\"inflight_uid\"", cap_inflight_uid),
    AGENT(CAPS, "cap=\"inflight_listener\"", cap_inflight_listener),
    AGENT(CAPS, "cap=\"inflight_share\"", cap_inflight_share),
    AGENT(CAPS, "cap=\"documents\"", cap_documents),
    AGENT(CAPS, "cap=\"waiting\"", cap_waiting),
    AGENT(CAPS, "cap=\"unread\"", connections_unread),
    AGENT(FRAMES, "fault=\"malformed\"", frames_bad),
    AGENT(FRAMES, "fault=\"unfinished\"", frames_slow),
    AGENT(HTTP_CONNECTIONS, NULL, http_connections),
    AGENT(HTTP_REFUSED, NULL, http_refused),
    AGENT(HTTP_REQUESTS, "class=\"2xx\"", http_2xx),
    AGENT(HTTP_REQUESTS, "class=\"4xx\"", http_4xx),
    AGENT(HTTP_REQUESTS, "class=\"5xx\"", http_5xx),
    AGENT(HTTP_BAD, NULL, http_bad),
    AGENT(HTTP_SLOW, NULL, http_slow),
};
LIST(agent_clients);

static const struct metrics_source agent_checks_list[] = {
    AGENT(CHECKS, NULL, checks),
};
LIST(agent_checks);

static const struct metrics_source agent_reports_list[] = {
    AGENT(REPORTS, "result=\"taken\"", reports),
    AGENT(REPORTS, "result=\"refused\"", reports_refused),
};
LIST(agent_reports);

static const struct metrics_source agent_limiters_list[] = {
    AGENT(LIMITER_CALLS, NULL, limiter_calls),
    AGENT(LIMITER_FAILED, NULL, limiter_calls_failed),
};
LIST(agent_limiters);

#define TENANT(metric, more, field) FIELD(metric, more, tenant_counters, field)

static const struct metrics_source tenant_list[] = {
    TENANT(OPERATIONS, NULL, operations),
    TENANT(ENDED, "end=\"selected\"", selected),
    TENANT(ENDED, "end=\"timeout\"", timeouts),
    TENANT(ENDED, "end=\"no_server\"", no_server),
    TENANT(ENDED, "end=\"not_sent\"", not_sent),
    TENANT(ENDED, "end=\"cancelled\"", cancelled),
    TENANT(REQUESTS_SENT, NULL, requests_sent),
    TENANT(REPLAYS_SENT, NULL, replays_sent),
    TENANT(DELIVERIES_SENT, NULL, deliveries_sent),
    TENANT(REPORTS_SENT, NULL, reports_sent),
    TENANT(SEND_ERRORS, NULL, send_errors),
    TENANT(ANSWERS, "kind=\"in_flight\"", answers),
    TENANT(ANSWERS, "kind=\"late\"", answers_late),
    TENANT(ANSWERS, "kind=\"duplicate\"", answers_duplicate),
    TENANT(INVALID, "class=\"truncated\"", invalid_truncated),
    TENANT(INVALID, "class=\"malformed\"", invalid_malformed),
    TENANT(INVALID, "class=\"auth\"", invalid_auth),
    TENANT(INVALID, "class=\"operation\"", invalid_operation),
    TENANT(INVALID, "class=\"server\"", invalid_server),
    TENANT(INVALID, "class=\"content\"", invalid_content),
    TENANT(INVALID, "class=\"source\"", invalid_source),
    TENANT(SOURCE_MISMATCH, NULL, source_mismatch),
    TENANT(SUSPICIONS, NULL, suspicions),
    TENANT(REBINDS_ASKED, NULL, rebind_asked),
};
LIST(tenant);

#define TRANSPORT(metric, field) FIELD(metric, NULL, transport_counters, field)

static const struct metrics_source transport_list[] = {
    TRANSPORT(REBINDS, rebinds),
    TRANSPORT(REBIND_FAILURES, rebind_failures),
};
LIST(transport);

#define UDP(metric, more, field) FIELD(metric, more, udp_counters, field)

static const struct metrics_source udp_list[] = {
    UDP(UDP_SENT, NULL, sent),
    UDP(UDP_SENT_BYTES, NULL, sent_bytes),
    UDP(UDP_UNSENT, "why=\"refused\"", send_errors),
    UDP(UDP_UNSENT, "why=\"expired\"", send_expired),
    UDP(UDP_UNSENT, "why=\"returned\"", refused),
    UDP(UDP_BLOCKED, NULL, send_blocked),
    UDP(UDP_RECEIVED, NULL, received),
    UDP(UDP_RECEIVED_BYTES, NULL, received_bytes),
    UDP(UDP_LOST, "why=\"truncated\"", truncated),
    UDP(UDP_LOST, "why=\"error\"", receive_errors),
    UDP(UDP_LOST, "why=\"buffer\"", receive_dropped),
};
LIST(udp);

#define DISCOVERY(metric, field) FIELD(metric, NULL, discovery_counters, field)

static const struct metrics_source discovery_list[] = {
    DISCOVERY(REFRESHES, refreshes),
    DISCOVERY(FORCED, forced),
    DISCOVERY(DISCOVERY_FAILURES, failures),
    DISCOVERY(BAD_TARGETS, bad_targets),
    DISCOVERY(MISSING_ADDRESSES, missing_addresses),
    DISCOVERY(SERVERS_DROPPED, dropped),
    DISCOVERY(CHANGES, changes),
};
LIST(discovery);

#define DNS(metric, more, field) FIELD(metric, more, dns_counters, field)

static const struct metrics_source dns_list[] = {
    DNS(DNS_QUERIES, NULL, queries),
    DNS(DNS_TCP, NULL, tcp),
    DNS(DNS_ANSWERS, NULL, answers),
    DNS(DNS_FAILURES, "kind=\"timeout\"", timeouts),
    DNS(DNS_FAILURES, "kind=\"refused\"", failures),
    DNS(DNS_FAILURES, "kind=\"malformed\"", malformed),
};
LIST(dns);

#define PEER(metric, more, field) FIELD(metric, more, peer, field)

static const struct metrics_source peer_list[] = {
    PEER(SERVER_SELECTED, NULL, selected),
    PEER(SERVER_SENT, NULL, sent),
    PEER(SERVER_REPLAYS, NULL, replays),
    PEER(SERVER_DELIVERIES, NULL, deliveries),
    PEER(SERVER_ANSWERS, NULL, answered),
    PEER(SERVER_OVERDUE, NULL, overdue),
    PEER(SERVER_MISSED, NULL, missed_rounds),
};
LIST(peer);

static const struct metrics_source peer_trouble_list[] = {
    PEER(SERVER_INVALID, "class=\"auth\"", invalid[PEER_AUTH].count),
    PEER(SERVER_INVALID, "class=\"malformed\"", invalid[PEER_MALFORMED].count),
    PEER(SERVER_INVALID, "class=\"content\"", invalid[PEER_CONTENT].count),
    PEER(SERVER_INVALID, "class=\"source\"", invalid[PEER_SOURCE].count),
    PEER(SERVER_SEND_ERRORS, NULL, send_errors.count),
    PEER(SERVER_REFUSED, NULL, refused.count),
};
LIST(peer_trouble);

#define LIMITER(metric, more, field) \
	FIELD(metric, more, limiter_counters, field)

static const struct metrics_source limiter_list[] = {
    LIMITER(LIMITER_ACQUIRES, "result=\"granted\"", granted),
    LIMITER(LIMITER_ACQUIRES, "result=\"refused\"", refused),
    LIMITER(LIMITER_ACQUIRES, "result=\"overloaded\"", overloaded),
    LIMITER(LIMITER_PERMITS, NULL, permits),
    LIMITER(LIMITER_WAITS, NULL, waits),
    LIMITER(LIMITER_EVICTIONS, NULL, evictions),
};
LIST(limiter);

/* These never wait. */
static const struct metrics_source local_list[] = {
    LIMITER(LOCAL_ACQUIRES, "result=\"granted\"", granted),
    LIMITER(LOCAL_ACQUIRES, "result=\"refused\"", refused),
    LIMITER(LOCAL_ACQUIRES, "result=\"overloaded\"", overloaded),
    LIMITER(LOCAL_PERMITS, NULL, permits),
    LIMITER(LOCAL_EVICTIONS, NULL, evictions),
};
LIST(local);

#define ERROR_CONTROL(metric, field) \
	FIELD(metric, NULL, error_control_counters, field)

static const struct metrics_source error_control_list[] = {
    ERROR_CONTROL(ERROR_BEGINS, begins),
    ERROR_CONTROL(ERROR_DELAYS, delays),
    ERROR_CONTROL(ERROR_SUCCESSES, successes),
    ERROR_CONTROL(ERROR_OVERLOADED, overloaded),
    ERROR_CONTROL(ERROR_EVICTIONS, evictions),
};
LIST(error_control);
