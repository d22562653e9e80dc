/*
 * The text of /metrics and of rlctl metrics: what this agent counts and is now,
 * in the exposition format of Prometheus (version 0.0.4). The metrics and what
 * they mean are in core/metrics.h; each has its HELP and TYPE in every text,
 * samples or not. How many series there are is bounded by the configuration
 * and by the servers that are known, whatever clients send.
 */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "daemon/agent.h"

/* malloc()ed, the caller's; NULL without memory. It takes its time with
 * thousands of rules: whoever serves it asks for IPC_METRICS as a document of
 * the agent, which keeps it for a while. */
char *metrics_text(const struct agent *agent);

#endif
