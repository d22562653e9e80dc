/*
 * Dispatch: takes the frames of every connection, finds what they ask for,
 * and answers each exactly once. Owns the listening sockets, connections and
 * the table of requests in flight.
 */
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/caller.h"
#include "daemon/core/counters.h"
#include "daemon/io/activation.h"
#include "daemon/io/loop.h"
#include "daemon/setup.h"
#include "proto/ipc.h"

#define DISPATCH_ERR_MAX CONFIG_ERR_MAX

struct dispatch;

/* What it works on; all borrowed for its life, the setup until the next one
 * is followed. */
struct dispatch_env {
	struct loop *loop;
	struct random_pool *random;
	struct setup *setup; /* in force */
	/* Sockets that were passed to this process. */
	struct activation *activation;
	/* What STATUS, SERVERS, POLICY, RULES, LIMITERS, TOP ask for:
	 * malloc()ed JSON, or NULL; METRICS: text. by: the listener, NULL for
	 * the control socket, on which alone TOP may come. */
	char *(*document)(
	    void *arg, uint16_t type, const struct config_listener *by);
	/* The same for EXPLAIN. */
	char *(*explain)(void *arg, const struct config_listener *by,
	    const struct config_rule *rule, const struct rules_caller *caller,
	    uint32_t tokens);
	/* An authorised QUIT, RELOAD or DRAIN came. The last two are answered
	 * by dispatch_reloaded() and at the end. */
	void (*control)(void *arg, uint16_t type);
	/* Somebody has connected to a gateway, whose port it is: takes fd. */
	void (*accepted)(void *arg, struct port *port, int fd);
	void *arg;
};

/*
 * Binds all sockets, or none: NULL with err set to one line. The control
 * socket listens at once, the others from dispatch_open() on.
 */
struct dispatch *dispatch_new(
    const struct dispatch_env *env, char err[DISPATCH_ERR_MAX]);
/* Returns 0, or -1 with err set. */
int dispatch_open(struct dispatch *d, char err[DISPATCH_ERR_MAX]);
void dispatch_free(struct dispatch *d); /* takes NULL */
/* Before there is one: could it open its sockets, as far as is known without
 * doing so? 0, or -1 with err as dispatch_new() would set it. */
int dispatch_check_ports(
    const struct config *config, char err[DISPATCH_ERR_MAX]);

/*
 * Another configuration is in force. Its listeners are told from those before
 * by their paths: new ones are opened, those that are gone are closed, and so
 * are connections whose user may not use a listener any more: they are told to
 * go away and get the answers to what they have asked. The others stay. Checks
 * in flight keep their setup. Returns 0, or -1 with err set and nothing
 * changed.
 */
int dispatch_follow(
    struct dispatch *d, struct setup *next, char err[DISPATCH_ERR_MAX]);
/* Answers every RELOAD that waits. */
void dispatch_reloaded(
    struct dispatch *d, enum ipc_reason reason, const char *text);

/* Tell it that readiness may have changed. */
void dispatch_ready(struct dispatch *d);
/* Is a decision possible: does every tenant know a server? */
bool dispatch_is_ready(const struct dispatch *d);
/* Why it is not: the first tenant that knows none, and what DNS says of it. */
void dispatch_unready(const struct dispatch *d, char text[RULES_TEXT_MAX]);

/* Stops accepting, says GO_AWAY; requests in flight go on. */
void dispatch_drain(struct dispatch *d);
/* No check is begun any more: it fails. Those of gateways go on until then. */
void dispatch_refuse(struct dispatch *d);
/* Ends what is in flight as cancelled and closes every connection. */
void dispatch_stop(struct dispatch *d);
/* Checks in flight. */
uint32_t dispatch_inflight(const struct dispatch *d);
/* Nothing in flight, and every answer is with the kernel. */
bool dispatch_idle(const struct dispatch *d);

/* One row per listener, then the control socket, then one per gateway; false
 * past the end. */
struct dispatch_port {
	const char *name; /* "control" for the control socket */
	const char *path; /* ADDRESS:PORT for TCP */
	bool control;
	const struct config_gateway *gateway; /* NULL: it is none */
	uint32_t connections;
	uint32_t max_connections;
	uint32_t inflight;
	uint32_t max_inflight; /* 0: it takes no checks */
	uint64_t accept_pauses;
	bool adopted; /* the socket was passed to this process */
};
bool dispatch_port(
    const struct dispatch *d, size_t index, struct dispatch_port *out);
/* What waits, of all connections. */
struct dispatch_queues {
	uint64_t unsent; /* bytes of answers that the kernel has not taken */
	uint64_t waits;  /* requests of these types that are not answered */
	uint64_t reloads;
	uint64_t drains;
};
void dispatch_queues(const struct dispatch *d, struct dispatch_queues *out);
const struct agent_counters *dispatch_counters(const struct dispatch *d);
/* For who else counts in them. */
struct agent_counters *dispatch_counting(struct dispatch *d);

#endif
