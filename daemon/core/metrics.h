/*
 * The one table of what /metrics and rlctl metrics show: name, type, labels and
 * meaning of each metric, in the order of the text and of the manual. The
 * counters of counters.h and others are sources of them: see
 * daemon/metrics_sources.c. Pure.
 */
#ifndef DAEMON_CORE_METRICS_H
#define DAEMON_CORE_METRICS_H

#define METRICS_PREFIX "rl_agent_"

enum metric_type {
	METRIC_TYPE_COUNTER,
	METRIC_TYPE_GAUGE,
	METRIC_TYPE_HISTOGRAM
};

/* X(id, name, type, labels with commas between, help) */
#define METRICS(X)              \
	METRICS_OF_AGENT(X)     \
	METRICS_OF_CLIENTS(X)   \
	METRICS_OF_RULES(X)     \
	METRICS_OF_TENANTS(X)   \
	METRICS_OF_DATAGRAMS(X) \
	METRICS_OF_DISCOVERY(X) \
	METRICS_OF_SERVERS(X)   \
	METRICS_OF_LIMITERS(X)  \
	METRICS_OF_PROCESS(X)

#define METRICS_OF_AGENT(X)                                                   \
	X(BUILD_INFO, METRICS_PREFIX "build_info", GAUGE,                     \
	    "version,libevent,openssl",                                       \
	    "Always 1; the version of the agent and of its libraries")        \
	X(READY, METRICS_PREFIX "ready", GAUGE, "",                           \
	    "1 while a decision is possible, see READINESS in rl-agent(8)")   \
	X(DRAINING, METRICS_PREFIX "draining", GAUGE, "",                     \
	    "1 once the agent takes no more checks and is about to end")      \
	X(CONFIG_INFO, METRICS_PREFIX "config_info", GAUGE,                   \
	    "config_hash,file_hash",                                          \
	    "Always 1; hashes of the configuration in force and of its file") \
	X(CONFIG_GENERATION, METRICS_PREFIX "config_generation", GAUGE, "",   \
	    "Configurations that have been in force, this one included")      \
	X(CONFIG_AGE, METRICS_PREFIX "config_in_force_seconds", GAUGE, "",    \
	    "Time since the configuration in force began")                    \
	X(RELOAD_OK, METRICS_PREFIX "config_last_reload_successful", GAUGE,   \
	    "", "0 when the last load of the configuration failed, else 1")   \
	X(RELOAD_FAILURES, METRICS_PREFIX "config_reload_failures_total",     \
	    COUNTER, "", "Loads of the configuration that failed")            \
	X(CONFIG_WATCHING, METRICS_PREFIX "config_watching", GAUGE, "",       \
	    "1 while changes of the configuration's files are seen")          \
	X(CONFIG_ENDING, METRICS_PREFIX "configs_ending", GAUGE, "",          \
	    "Earlier configurations that have checks which are not over")     \
	X(LOG_DROPPED, METRICS_PREFIX "log_lines_dropped_total", COUNTER, "", \
	    "Lines of the log that stderr would not take")                    \
	X(LOG_HELD, METRICS_PREFIX "log_lines_held_back_total", COUNTER, "",  \
	    "Lines of the log that were not written, as there were too many") \
	X(LOG_DECISIONS, METRICS_PREFIX "log_decisions_left_out_total",       \
	    COUNTER, "", "Sampled decisions that the log had no room for")

#define METRICS_OF_CLIENTS(X)                                                  \
	X(CONNECTIONS, METRICS_PREFIX "connections_total", COUNTER, "",        \
	    "Connections accepted")                                            \
	X(REFUSED, METRICS_PREFIX "connections_refused_total", COUNTER, "",    \
	    "Connections refused by right or cap")                             \
	X(CAPS, METRICS_PREFIX "caps_hit_total", COUNTER, "cap",               \
	    "Times that something was refused or ended by a cap")              \
	X(FRAMES, METRICS_PREFIX "bad_frames_total", COUNTER, "fault",         \
	    "Connections closed for a frame that is malformed or unfinished")  \
	X(HTTP_CONNECTIONS, METRICS_PREFIX "http_connections_total", COUNTER,  \
	    "", "HTTP connections accepted")                                   \
	X(HTTP_REFUSED, METRICS_PREFIX "http_connections_refused_total",       \
	    COUNTER, "", "HTTP connections refused by cap")                    \
	X(HTTP_REQUESTS, METRICS_PREFIX "http_requests_total", COUNTER,        \
	    "class", "HTTP requests answered, by the class of their status")   \
	X(HTTP_BAD, METRICS_PREFIX "http_bad_requests_total", COUNTER, "",     \
	    "HTTP requests broken off, or that are no HTTP")                   \
	X(HTTP_SLOW, METRICS_PREFIX "http_slow_connections_total", COUNTER,    \
	    "", "HTTP connections closed for a slow request or reader")        \
	X(PORT_CONNECTIONS, METRICS_PREFIX "listener_connections", GAUGE,      \
	    "listener,kind", "Connections that are open")                      \
	X(PORT_CONNECTIONS_MAX, METRICS_PREFIX "listener_connections_limit",   \
	    GAUGE, "listener,kind", "Connections that may be open")            \
	X(PORT_INFLIGHT, METRICS_PREFIX "listener_checks_in_flight", GAUGE,    \
	    "listener,kind", "Checks that are not answered yet")               \
	X(PORT_INFLIGHT_MAX, METRICS_PREFIX "listener_checks_in_flight_limit", \
	    GAUGE, "listener,kind", "Checks that may wait for their answer")   \
	X(PORT_PAUSES, METRICS_PREFIX "listener_accept_pauses_total", COUNTER, \
	    "listener,kind",                                                   \
	    "Times that accepting paused for want of descriptors")             \
	X(INFLIGHT, METRICS_PREFIX "checks_in_flight", GAUGE, "",              \
	    "Checks that are not answered yet, of all listeners")              \
	X(INFLIGHT_MAX, METRICS_PREFIX "checks_in_flight_limit", GAUGE, "",    \
	    "Checks that may wait for their answer, of all listeners")         \
	X(UNSENT, METRICS_PREFIX "unsent_bytes", GAUGE, "",                    \
	    "Bytes of answers that clients have not read")                     \
	X(WAITING, METRICS_PREFIX "waiting_requests", GAUGE, "request",        \
	    "Requests that wait for readiness, a reload or the end")

#define METRICS_OF_RULES(X)                                                    \
	X(CHECKS, METRICS_PREFIX "checks_total", COUNTER, "",                  \
	    "Checks asked for")                                                \
	X(DECISIONS, METRICS_PREFIX "decisions_total", COUNTER,                \
	    "tenant,rule,outcome,source,reason",                               \
	    "Checks decided; those that are ad-hoc have an empty rule")        \
	X(PERMITTED, METRICS_PREFIX "permitted_total", COUNTER, "tenant,rule", \
	    "Checks that permit, whatever the outcome")                        \
	X(DURATION, METRICS_PREFIX "decision_duration_seconds", HISTOGRAM,     \
	    "tenant,rule", "Time from a check to its decision")                \
	X(RULE_REPORTS, METRICS_PREFIX "rule_reports_total", COUNTER,          \
	    "tenant,rule", "Latency reports of work that the rule permitted")  \
	X(REPORTS, METRICS_PREFIX "reports_total", COUNTER, "result",          \
	    "Latency reports that clients sent")

#define METRICS_OF_TENANTS(X)                                                 \
	X(TENANT_READY, METRICS_PREFIX "tenant_ready", GAUGE, "tenant",       \
	    "1 while the tenant knows a server")                              \
	X(TENANT_DIAGNOSIS, METRICS_PREFIX "tenant_diagnosis_info", GAUGE,    \
	    "tenant,diagnosis",                                               \
	    "Always 1; what is wrong with the tenant, as in rlctl servers")   \
	X(SERVERS, METRICS_PREFIX "servers", GAUGE, "tenant",                 \
	    "Servers that are known")                                         \
	X(OPERATIONS_INFLIGHT, METRICS_PREFIX "operations_in_flight", GAUGE,  \
	    "tenant", "Operations that are not decided yet")                  \
	X(OPERATIONS, METRICS_PREFIX "operations_total", COUNTER, "tenant",   \
	    "Operations started")                                             \
	X(ENDED, METRICS_PREFIX "operations_ended_total", COUNTER,            \
	    "tenant,end", "Operations that are over, by what ended them")     \
	X(REQUESTS_SENT, METRICS_PREFIX "requests_sent_total", COUNTER,       \
	    "tenant", "Request datagrams sent, all of them")                  \
	X(REPLAYS_SENT, METRICS_PREFIX "replays_sent_total", COUNTER,         \
	    "tenant", "Request datagrams sent in later rounds")               \
	X(DELIVERIES_SENT, METRICS_PREFIX "deliveries_sent_total", COUNTER,   \
	    "tenant", "Request datagrams of completion delivery")             \
	X(REPORTS_SENT, METRICS_PREFIX "reports_sent_total", COUNTER,         \
	    "tenant", "Report datagrams sent")                                \
	X(SEND_ERRORS, METRICS_PREFIX "send_errors_total", COUNTER, "tenant", \
	    "Datagrams that the kernel refused")                              \
	X(ANSWERS, METRICS_PREFIX "answers_total", COUNTER, "tenant,kind",    \
	    "Valid answers, before a decision, after it, and repeated")       \
	X(INVALID, METRICS_PREFIX "invalid_datagrams_total", COUNTER,         \
	    "tenant,class", "Datagrams that were ignored, by what is wrong")  \
	X(SOURCE_MISMATCH, METRICS_PREFIX "source_mismatches_total", COUNTER, \
	    "tenant", "Accepted answers from another address")                \
	X(SUSPICIONS, METRICS_PREFIX "suspicions_total", COUNTER, "tenant",   \
	    "Times that a server became suspected")                           \
	X(REBINDS_ASKED, METRICS_PREFIX "rebinds_asked_total", COUNTER,       \
	    "tenant", "Answers that ask for another source port")             \
	X(REBINDS, METRICS_PREFIX "rebinds_total", COUNTER, "tenant",         \
	    "Changes of the source port")                                     \
	X(REBIND_FAILURES, METRICS_PREFIX "rebind_failures_total", COUNTER,   \
	    "tenant", "Attempts to change the source port that failed")       \
	X(OLD_PORTS, METRICS_PREFIX "old_ports", GAUGE, "tenant",             \
	    "Earlier source ports that still receive")

#define METRICS_OF_DATAGRAMS(X)                                                \
	X(UDP_SENT, METRICS_PREFIX "udp_sent_datagrams_total", COUNTER,        \
	    "tenant,family", "Datagrams that the kernel took")                 \
	X(UDP_SENT_BYTES, METRICS_PREFIX "udp_sent_bytes_total", COUNTER,      \
	    "tenant,family", "Bytes in datagrams that the kernel took")        \
	X(UDP_UNSENT, METRICS_PREFIX "udp_unsent_datagrams_total", COUNTER,    \
	    "tenant,family,why", "Datagrams that were not sent, or came back") \
	X(UDP_BLOCKED, METRICS_PREFIX "udp_send_blocked_total", COUNTER,       \
	    "tenant,family", "Times that a buffer or a device was full")       \
	X(UDP_RECEIVED, METRICS_PREFIX "udp_received_datagrams_total",         \
	    COUNTER, "tenant,family", "Datagrams received")                    \
	X(UDP_RECEIVED_BYTES, METRICS_PREFIX "udp_received_bytes_total",       \
	    COUNTER, "tenant,family", "Bytes in datagrams received")           \
	X(UDP_LOST, METRICS_PREFIX "udp_lost_datagrams_total", COUNTER,        \
	    "tenant,family,why",                                               \
	    "Datagrams that came in and could not be taken")

#define METRICS_OF_DISCOVERY(X)                                               \
	X(REFRESHES, METRICS_PREFIX "discovery_refreshes_total", COUNTER,     \
	    "tenant", "Rounds of DNS begun")                                  \
	X(FORCED, METRICS_PREFIX "discovery_forced_refreshes_total", COUNTER, \
	    "tenant", "Rounds of DNS that were asked for early")              \
	X(DISCOVERY_FAILURES, METRICS_PREFIX "discovery_failures_total",      \
	    COUNTER, "tenant", "Rounds of DNS that brought nothing usable")   \
	X(BAD_TARGETS, METRICS_PREFIX "discovery_bad_targets_total", COUNTER, \
	    "tenant", "SRV targets without a server id or a port")            \
	X(MISSING_ADDRESSES,                                                  \
	    METRICS_PREFIX "discovery_missing_addresses_total", COUNTER,      \
	    "tenant", "SRV targets whose addresses could not be had")         \
	X(SERVERS_DROPPED, METRICS_PREFIX "discovery_servers_dropped_total",  \
	    COUNTER, "tenant", "Servers past the most that are kept")         \
	X(CHANGES, METRICS_PREFIX "membership_changes_total", COUNTER,        \
	    "tenant", "Times that other servers were found")                  \
	X(DISCOVERY_AGE, METRICS_PREFIX "discovery_age_seconds", GAUGE,       \
	    "tenant", "Time since DNS last named servers")                    \
	X(DISCOVERY_NEXT, METRICS_PREFIX "discovery_next_seconds", GAUGE,     \
	    "tenant", "Time until DNS is asked again")                        \
	X(DNS_QUERIES, METRICS_PREFIX "dns_queries_total", COUNTER, "tenant", \
	    "Datagrams and connections to nameservers")                       \
	X(DNS_TCP, METRICS_PREFIX "dns_tcp_queries_total", COUNTER, "tenant", \
	    "Connections to nameservers")                                     \
	X(DNS_ANSWERS, METRICS_PREFIX "dns_answers_total", COUNTER, "tenant", \
	    "Answers of nameservers")                                         \
	X(DNS_FAILURES, METRICS_PREFIX "dns_failures_total", COUNTER,         \
	    "tenant,kind", "Questions that a nameserver did not answer well")

#define METRICS_OF_SERVERS(X)                                                  \
	X(SERVER_RTT, METRICS_PREFIX "server_round_trip_seconds", HISTOGRAM,   \
	    "tenant,server", "Time from a request to the server's answer")     \
	X(SERVER_SELECTED, METRICS_PREFIX "server_selected_total", COUNTER,    \
	    "tenant,server", "Operations that the server's answer decided")    \
	X(SERVER_SENT, METRICS_PREFIX "server_requests_sent_total", COUNTER,   \
	    "tenant,server", "Request datagrams sent to it, all of them")      \
	X(SERVER_REPLAYS, METRICS_PREFIX "server_replays_sent_total", COUNTER, \
	    "tenant,server", "Those that were sent in later rounds")           \
	X(SERVER_DELIVERIES, METRICS_PREFIX "server_deliveries_sent_total",    \
	    COUNTER, "tenant,server", "Those of completion delivery")          \
	X(SERVER_ANSWERS, METRICS_PREFIX "server_answers_total", COUNTER,      \
	    "tenant,server", "Its valid answers to what is remembered")        \
	X(SERVER_OVERDUE, METRICS_PREFIX "server_overdue_answers_total",       \
	    COUNTER, "tenant,server", "Its answers past the horizon")          \
	X(SERVER_MISSED, METRICS_PREFIX "server_missed_rounds_total", COUNTER, \
	    "tenant,server", "Rounds that it did not answer in time")          \
	X(SERVER_UNANSWERED, METRICS_PREFIX "server_unanswered_operations",    \
	    GAUGE, "tenant,server",                                            \
	    "Operations in a row that it did not answer")                      \
	X(SERVER_SUSPECTED, METRICS_PREFIX "server_suspected", GAUGE,          \
	    "tenant,server", "1 while it is not waited for")                   \
	X(SERVER_INVALID, METRICS_PREFIX "server_invalid_datagrams_total",     \
	    COUNTER, "tenant,server,class",                                    \
	    "Ignored datagrams that claim to be of it")                        \
	X(SERVER_SEND_ERRORS, METRICS_PREFIX "server_send_errors_total",       \
	    COUNTER, "tenant,server", "Datagrams to it that failed at once")   \
	X(SERVER_REFUSED, METRICS_PREFIX "server_refused_datagrams_total",     \
	    COUNTER, "tenant,server", "Datagrams to it that came back")

#define METRICS_OF_LIMITERS(X)                                                \
	X(LIMITER_CALLS, METRICS_PREFIX "limiter_calls_total", COUNTER, "",   \
	    "Acquires, begins and successes that were answered")              \
	X(LIMITER_FAILED, METRICS_PREFIX "limiter_calls_failed_total",        \
	    COUNTER, "", "Of these, failed")                                  \
	X(LIMITER_ACQUIRES, METRICS_PREFIX "limiter_acquires_total", COUNTER, \
	    "limiter,result", "Acquires of a limiter of this host")           \
	X(LIMITER_PERMITS, METRICS_PREFIX "limiter_permits_total", COUNTER,   \
	    "limiter", "Permits granted")                                     \
	X(LIMITER_WAITS, METRICS_PREFIX "limiter_waits_total", COUNTER,       \
	    "limiter", "Acquires granted with a wait")                        \
	X(LIMITER_EVICTIONS, METRICS_PREFIX "limiter_evictions_total",        \
	    COUNTER, "limiter", "Keys forgotten to make room for others")     \
	X(LIMITER_KEYS, METRICS_PREFIX "limiter_keys", GAUGE, "limiter",      \
	    "Keys that have permits of their own")                            \
	X(LOCAL_ACQUIRES, METRICS_PREFIX "local_limiter_acquires_total",      \
	    COUNTER, "rule,result",                                           \
	    "Failed checks that the rule's local limiter decided")            \
	X(LOCAL_PERMITS, METRICS_PREFIX "local_limiter_permits_total",        \
	    COUNTER, "rule", "Permits of the local limiter granted")          \
	X(LOCAL_EVICTIONS, METRICS_PREFIX "local_limiter_evictions_total",    \
	    COUNTER, "rule", "Callers forgotten to make room for others")     \
	X(LOCAL_KEYS, METRICS_PREFIX "local_limiter_keys", GAUGE, "rule",     \
	    "Callers that have a local limiter of their own")                 \
	X(ERROR_BEGINS, METRICS_PREFIX "error_control_begins_total", COUNTER, \
	    "error_control", "Begins")                                        \
	X(ERROR_DELAYS, METRICS_PREFIX "error_control_delays_total", COUNTER, \
	    "error_control", "Begins with a delay")                           \
	X(ERROR_SUCCESSES, METRICS_PREFIX "error_control_successes_total",    \
	    COUNTER, "error_control", "Successes")                            \
	X(ERROR_OVERLOADED, METRICS_PREFIX "error_control_overloaded_total",  \
	    COUNTER, "error_control", "Begins failed: every key is delaying") \
	X(ERROR_EVICTIONS, METRICS_PREFIX "error_control_evictions_total",    \
	    COUNTER, "error_control",                                         \
	    "Keys of an error control forgotten to make room for others")     \
	X(ERROR_KEYS, METRICS_PREFIX "error_control_keys", GAUGE,             \
	    "error_control", "Keys that have a burst and a delay")

/* Named as those of every Prometheus client. */
#define METRICS_OF_PROCESS(X)                                   \
	X(CPU, "process_cpu_seconds_total", COUNTER, "",        \
	    "Total user and system CPU time spent in seconds")  \
	X(OPEN_FDS, "process_open_fds", GAUGE, "",              \
	    "Number of open file descriptors")                  \
	X(MAX_FDS, "process_max_fds", GAUGE, "",                \
	    "Maximum number of open file descriptors")          \
	X(VIRTUAL, "process_virtual_memory_bytes", GAUGE, "",   \
	    "Virtual memory size in bytes")                     \
	X(RESIDENT, "process_resident_memory_bytes", GAUGE, "", \
	    "Resident memory size in bytes")                    \
	X(START_TIME, "process_start_time_seconds", GAUGE, "",  \
	    "Start time of the process since unix epoch in seconds")

#define METRIC_ID(id, name, type, labels, help) METRIC_##id,
enum metric { METRICS(METRIC_ID) METRIC_COUNT };

struct metric_row {
	const char *name;
	enum metric_type type;
	const char *labels;
	const char *help;
};

extern const struct metric_row metric_rows[METRIC_COUNT];
/* "counter", ... */
const char *metric_type_name(enum metric_type type);

#endif
