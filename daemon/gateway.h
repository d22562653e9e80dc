/*
 * The HTTP gateway: checks, metrics and health for whoever speaks HTTP. A check
 * takes the same way as one over IPC, and its decision is the same; only asking
 * and telling differ. Owned by the agent; one for all gateways of the
 * configuration, whose sockets are the dispatcher's.
 */
#ifndef DAEMON_GATEWAY_H
#define DAEMON_GATEWAY_H

#include <stdbool.h>

#include "daemon/caller.h"
#include "daemon/dispatch.h"
#include "daemon/io/loop.h"
#include "proto/random.h"

struct gateway;

/* All borrowed for its life. */
struct gateway_env {
	struct loop *loop;
	struct random_pool *random;
	struct dispatch *dispatch;
	/* The text of /metrics, malloc()ed, or NULL. */
	char *(*metrics)(void *arg);
	void *arg;
};

/* NULL without memory or descriptors. */
struct gateway *gateway_new(const struct gateway_env *env);
/* Before the dispatcher. Takes NULL, as do the others. */
void gateway_free(struct gateway *gateway);

/* Somebody has connected to this port: takes fd. */
void gateway_accepted(struct gateway *gateway, struct port *port, int fd);

/* Another configuration is in force: those whose gateway is gone leave. */
void gateway_follow(struct gateway *gateway);
/* What has come in is asked for; then nobody is kept beyond his answer, and who
 * has asked for nothing so far may do so once. */
void gateway_drain(struct gateway *gateway);
/* May a first check still come, or is one coming in? */
bool gateway_expecting(const struct gateway *gateway);
/* It may not any more: before the dispatcher refuses checks. */
void gateway_drain_fresh(struct gateway *gateway);
/* What has come in is asked for; what is in flight then is cancelled, and said
 * to be. */
void gateway_stop(struct gateway *gateway);
/* Is every answer with the kernel? */
bool gateway_idle(const struct gateway *gateway);

#endif
