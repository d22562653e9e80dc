/*
 * The table of counters: one row gives the field, its name in status output
 * and its meaning. Whatever prints or documents counters walks this table.
 */
#ifndef DAEMON_CORE_COUNTERS_H
#define DAEMON_CORE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

/* X(field, help). Of one tenant. */
#define TENANT_COUNTERS(X)                                                     \
	X(operations, "Operations started")                                    \
	X(selected, "Operations that a server's answer decided")               \
	X(timeouts, "Operations without an answer in time")                    \
	X(no_server, "Operations without a known server")                      \
	X(not_sent, "Operations whose first transmission failed whole")        \
	X(cancelled, "Operations that their caller gave up")                   \
	X(requests_sent, "Request datagrams sent")                             \
	X(replays_sent, "Request datagrams sent in later rounds")              \
	X(deliveries_sent, "Request datagrams of completion delivery")         \
	X(reports_sent, "Report datagrams sent")                               \
	X(send_errors, "Datagrams that the kernel refused")                    \
	X(answers, "Valid answers to operations in flight")                    \
	X(answers_late, "Valid answers to operations decided before")          \
	X(answers_duplicate, "Valid answers of a server that had answered")    \
	X(invalid_truncated, "Datagrams longer than any of the protocol")      \
	X(invalid_malformed, "Datagrams that are not well formed")             \
	X(invalid_auth, "Datagrams with another or failing authentication")    \
	X(invalid_operation, "Datagrams for no operation that is remembered")  \
	X(invalid_server, "Datagrams of a server outside the snapshot")        \
	X(invalid_content, "Answers whose counts or ids differ from asked")    \
	X(invalid_source, "Answers from another address, under strict_source") \
	X(source_mismatch, "Accepted answers from another address")            \
	X(rebind_asked, "Answers that ask for another source port")            \
	X(suspicions, "Times that a server became suspected")

/* X(field, help). Of the agent. */
#define AGENT_COUNTERS(X)                                                      \
	X(connections, "Connections accepted")                                 \
	X(connections_refused, "Connections refused by right or cap")          \
	X(connections_unread, "Connections closed for unread answers")         \
	X(cap_connections, "Connections refused: max_connections")             \
	X(cap_connections_uid, "Connections refused: max_connections_per_uid") \
	X(cap_descriptors,                                                     \
	    "Connections refused: too few descriptors are left")               \
	X(cap_inflight, "Checks refused: max_inflight of the agent")           \
	X(cap_inflight_uid, "Checks refused: max_inflight_per_uid")            \
	X(cap_inflight_listener,                                               \
	    "Checks refused: max_inflight of the listener")                    \
	X(cap_inflight_share,                                                  \
	    "Checks refused: the user's share of a listener")                  \
	X(cap_documents, "Documents refused: too many are not read")           \
	X(cap_waiting, "Requests refused: too many wait on the connection")    \
	X(frames_bad, "Connections closed for a malformed frame")              \
	X(frames_slow, "Connections closed for an unfinished frame")           \
	X(checks, "Checks asked for")                                          \
	X(allowed, "Checks allowed")                                           \
	X(denied, "Checks denied")                                             \
	X(failed, "Checks failed")                                             \
	X(cancelled, "Checks cancelled")                                       \
	X(permitted, "Checks that permit, whatever the outcome")               \
	X(source_server, "Checks whose permit a server decided")               \
	X(source_empty, "Checks that asked for nothing")                       \
	X(source_policy, "Checks whose permit the failure policy decided")     \
	X(source_shadow, "Checks that only a rule's mode shadow permitted")    \
	X(source_local, "Checks whose permit a local limiter decided")         \
	X(failed_validation, "Checks failed: validation")                      \
	X(failed_unknown_rule, "Checks failed: unknown rule")                  \
	X(failed_unauthorised, "Checks failed: unauthorised")                  \
	X(failed_discovery, "Checks failed: discovery")                        \
	X(failed_transport, "Checks failed: transport")                        \
	X(failed_timeout, "Checks failed: timeout")                            \
	X(failed_overloaded, "Checks failed: overloaded")                      \
	X(failed_interrupted, "Checks failed: interrupted")                    \
	X(reports, "Latency reports taken")                                    \
	X(reports_refused, "Latency reports refused")                          \
	X(limiter_calls, "Acquires, begins and successes that were answered")  \
	X(limiter_calls_failed, "Of these, failed")                            \
	X(decisions_unsaid, "Lines of decisions that the log had no room for") \
	X(http_connections, "HTTP connections accepted")                       \
	X(http_refused, "HTTP connections refused by cap")                     \
	X(http_2xx, "HTTP requests answered with 200")                         \
	X(http_4xx, "HTTP requests answered with a status of 400 to 499")      \
	X(http_5xx, "HTTP requests answered with a status of 500 to 599")      \
	X(http_bad, "HTTP requests broken off, or that are no HTTP")           \
	X(http_slow, "HTTP connections closed for a slow request or reader")

/* X(field, help). Of one rule. */
#define RULE_COUNTERS(X)                                         \
	X(checks, "Checks of the rule that were answered")       \
	X(allowed, "Checks allowed")                             \
	X(denied, "Checks denied, in mode shadow too")           \
	X(failed, "Checks failed")                               \
	X(cancelled, "Checks cancelled")                         \
	X(permitted, "Checks that permit, whatever the outcome") \
	X(would_deny, "Checks that only mode shadow permitted")  \
	X(local, "Checks that the local limiter decided")        \
	X(reports, "Latency reports of work that the rule permitted")

/* X(field, help). Of one RateLimiter, with all its keys. */
#define LIMITER_COUNTERS(X)                                        \
	X(granted, "Acquires granted")                             \
	X(permits, "Permits granted")                              \
	X(waits, "Acquires granted with a wait")                   \
	X(refused, "Acquires refused: the wait is too long")       \
	X(overloaded, "Acquires failed: every key's limiter owes") \
	X(evictions, "Keys forgotten to make room for others")

/* X(field, help). Of one ErrorRateControl, with all its keys. */
#define ERROR_CONTROL_COUNTERS(X)                             \
	X(begins, "Begins")                                   \
	X(delays, "Begins with a delay")                      \
	X(successes, "Successes")                             \
	X(overloaded, "Begins failed: every key is delaying") \
	X(evictions, "Keys forgotten to make room for others")

#define COUNTER_FIELD(name, help) uint64_t name;

struct tenant_counters {
	TENANT_COUNTERS(COUNTER_FIELD)
};

struct agent_counters {
	AGENT_COUNTERS(COUNTER_FIELD)
};

struct rule_counters {
	RULE_COUNTERS(COUNTER_FIELD)
};

struct limiter_counters {
	LIMITER_COUNTERS(COUNTER_FIELD)
};

struct error_control_counters {
	ERROR_CONTROL_COUNTERS(COUNTER_FIELD)
};

struct counter_row {
	const char *name;
	const char *help;
	size_t offset; /* of its uint64_t in the struct */
};

/* Each ends with a row whose name is NULL. */
extern const struct counter_row tenant_counter_rows[];
extern const struct counter_row agent_counter_rows[];
extern const struct counter_row rule_counter_rows[];
extern const struct counter_row limiter_counter_rows[];
extern const struct counter_row error_control_counter_rows[];

#endif
