/*
 * What the files of the dispatch module share: dispatch.c (frames and their
 * messages), dispatch_check.c (checks), dispatch_request.c (the table of those
 * in flight), dispatch_answer.c (their decisions), dispatch_report.c
 * (reports), dispatch_life.c (opening, waiting, ending) and client.c (sockets,
 * connections and their caps). Nobody else includes this.
 */
#ifndef DAEMON_DISPATCH_PRIVATE_H
#define DAEMON_DISPATCH_PRIVATE_H

#include "daemon/core/slab.h"
#include "daemon/core/table.h"
#include "daemon/dispatch.h"
#include "daemon/io/conn.h"
#include "daemon/io/listener.h"

/* Slots of requests, by what must be kept of each; most keep a short key. */
#define REQUEST_CLASSES    3
#define CLIENT_NAME_MAX    63
#define CLIENT_MAX_WAITERS 16
/* Unsent bytes at which a client that does not read is closed: far above
 * CONN_OUT_HIGH, where it is no longer read from. */
#define CLIENT_OUT_MAX (2 * 1024 * 1024)
/* Of the control socket: operators, not applications. */
#define CONTROL_MAX_CONNECTIONS 64

/* One listening socket and its caps. */
struct port {
	struct dispatch *dispatch;
	const struct config_listener *config; /* NULL: the control socket */
	struct listener *listener;
	const char *name;
	uint32_t connections;
	uint32_t inflight;
};

/* What one uid uses on all ports; freed when it uses nothing. */
struct uid_use {
	struct table_entry entry;
	uid_t uid;
	uint32_t connections;
	uint32_t inflight;
};

struct client {
	struct dispatch *dispatch;
	struct conn *conn; /* outlives the client */
	struct port *port;
	struct uid_use *use;
	struct request *requests; /* in flight */
	struct waiter *waiters;
	struct client *next;
	struct client **prev;
	uint64_t last_id; /* the highest request id accepted */
	bool greeted;
	char name[CLIENT_NAME_MAX + 1];
};

/* A check in flight. */
struct request {
	struct table_entry entry; /* connection serial, request id */
	struct client *client;
	struct request *next; /* of the client */
	struct request **prev;
	const struct config_rule *rule; /* NULL: ad-hoc */
	struct tenant *tenant;
	struct tenant_op *op;
	int64_t arrived;
	uint64_t id;
	uint32_t tokens;
	uint32_t options;
	uint16_t kept_len;
	uint8_t slot_class; /* which slab it came from */
	bool resent;        /* an earlier connection had sent it */
	uint8_t kept[]; /* the key of a rule; the payload of an ad-hoc check */
};

/* What is known of a check before it is a request in the table. */
struct asking {
	struct client *client;
	uint64_t id;
	const struct ipc_check_base *base;
	const struct config_rule *rule; /* NULL: ad-hoc */
	struct tenant *tenant;          /* NULL while not known */
	struct ipc_str kept;
	int64_t arrived;
	int64_t start; /* earlier than that when it was sent before */
};

/* A WAIT that is not answered yet. */
struct waiter {
	struct client *client;
	struct waiter *next; /* of the client */
	struct loop_timer *timer;
	uint64_t id;
};

struct dispatch {
	struct dispatch_env env;
	struct conn_pool *pool;
	struct port *ports; /* listeners, then control */
	size_t port_count;
	struct table uids;
	struct table requests;
	struct slab slots[REQUEST_CLASSES];
	struct slab clients_slab;
	struct client *clients;
	uint32_t max_horizon_ms;
	struct agent_counters counters;
	/* Scratch, too large for the stack of a callback. */
	struct ipc_check_adhoc adhoc; /* being started */
	struct rules_request asked;
	struct ipc_check_adhoc kept; /* being completed */
	struct rules_request names;
	struct ipc_decision decision;
};

/* client.c */
int client_open_ports(struct dispatch *d, char err[DISPATCH_ERR_MAX]);
void client_close_ports(struct dispatch *d);
/* The client, without its requests; its connection is the caller's. */
void client_free(struct client *c);
/* May another operation of this client start? */
bool client_has_room(const struct client *c);
void client_count(struct client *c, int more); /* +1 or -1 in flight */

/* dispatch.c */
extern const struct conn_hooks dispatch_hooks;
/* Commits the frame that was encoded with result rc; it must have fitted. */
void dispatch_commit(struct client *c, int rc);
void dispatch_send_done(
    struct client *c, uint64_t id, enum ipc_reason reason, const char *text);
/* Ends the connection of a client for a frame that is wrong. */
void dispatch_bad_frame(
    struct client *c, uint64_t id, enum ipc_error_code code, const char *text);
/* Ends all that a client has under way, and the client. */
void dispatch_forget(struct client *c);

/* dispatch_report.c */
void dispatch_report(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_report_adhoc(
    struct client *c, const struct ipc_head *head, struct reader *r);

/* dispatch_life.c */
void dispatch_wait(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_wait_forget(struct client *c);
bool dispatch_waiting(const struct client *c, uint64_t id);

/* dispatch_check.c */
void dispatch_check_rule(
    struct client *c, uint64_t id, const struct ipc_check *m);
/* payload: the bytes that m was decoded from. */
void dispatch_check_adhoc(struct client *c, uint64_t id,
    const struct ipc_check_adhoc *m, struct ipc_str payload);
/* The tenant by name, or the only one for an empty name; NULL: text says. */
struct tenant *dispatch_tenant(
    struct dispatch *d, struct ipc_str name, char text[RULES_TEXT_MAX]);

/* dispatch_request.c */
void dispatch_slots_init(struct dispatch *d);
void dispatch_slots_fini(struct dispatch *d);
/* Was it sent before, on a connection that broke? */
bool dispatch_is_resend(const struct asking *a);
/* NULL at a cap or without memory. */
struct request *dispatch_request_new(const struct asking *a);
void dispatch_request_free(struct request *r);
/*
 * A connection broke, its end was not seen yet, and the same user asks again
 * on another: the operation goes on, its answer goes to the new one. False
 * when the id is in flight for anybody or anything else.
 */
bool dispatch_adopt(const struct asking *a, struct request *r);
bool dispatch_in_flight(const struct client *c, uint64_t id);
void dispatch_cancel(struct client *c, uint64_t id);
void dispatch_cancel_all(struct client *c);

/* dispatch_answer.c */
/* Sends and counts what is in d->decision. arrived: when the check came. */
void dispatch_answer(struct client *c, uint64_t id, int64_t arrived);
/*
 * Fails what is in d->decision. What was sent before may have consumed then,
 * whatever keeps it from being answered now: Failed(interrupted) says so.
 */
void dispatch_fail(struct dispatch *d, enum ipc_reason reason,
    enum config_failure policy, const char *text, bool resent);
/* The end of a request's operation: a tenant_done_fn. */
void dispatch_done(void *arg, const struct tenant_result *res);
/* What is known of the caller; key NULL: none was given. */
struct rules_caller dispatch_caller(
    const struct client *c, const uint8_t *key, size_t key_len);

#endif
