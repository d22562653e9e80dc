/*
 * What the service manager is told of the agent's life: that applications are
 * let in, that it loads its configuration again, that it ends, whether a
 * decision is possible, and that its loop turns. Part of the agent.
 */
#ifndef DAEMON_AGENT_NOTIFY_H
#define DAEMON_AGENT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/errorrate.h"

#define AGENT_NOTIFY_STATUS_MAX 1280

struct agent;

/* Embedded in the agent; nobody else looks into it. */
struct agent_notify {
	struct notify *to;
	struct loop_timer *watchdog;
	struct loop_timer *again;        /* after a message that did not fit */
	struct loop_timer *status_timer; /* it may be another one by then */
	struct errorrate paced;          /* DNS decides how often it changes */
	unsigned int owed;               /* what is not said yet */
	int64_t reload_began;
	int64_t drain_until;
	bool started; /* applications are let in */
	bool reloading;
	bool stopping;
	char status[AGENT_NOTIFY_STATUS_MAX]; /* told last */
};

/* Before the loop runs. 0, or -1 without memory. */
int agent_notify_open(struct agent *agent);
void agent_notify_close(struct agent *agent);

/* Each may be called more often than it is true. */
void agent_notify_started(struct agent *agent);
void agent_notify_reloading(struct agent *agent);
/* Well or not: status tells. */
void agent_notify_reloaded(struct agent *agent);
/* Its end may take until then, a loop_now() time. */
void agent_notify_stopping(struct agent *agent, int64_t until);
/* Readiness, its reason, or the outcome of a reload may have changed. */
void agent_notify_status(struct agent *agent);

#endif
