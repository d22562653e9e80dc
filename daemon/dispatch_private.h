/*
 * What the files of the dispatch module share: dispatch.c (frames and their
 * messages), dispatch_check.c (checks), dispatch_request.c (the table of those
 * in flight), dispatch_answer.c (their decisions), dispatch_report.c
 * (reports), dispatch_limit.c (limiters of the host), dispatch_life.c (opening,
 * waiting, ending), dispatch_log.c (the log of decisions), dispatch_port.c
 * (listening sockets), caller.c (whoever may ask, and the caps) and client.c
 * (connections). Nobody else includes this.
 */
#ifndef DAEMON_DISPATCH_PRIVATE_H
#define DAEMON_DISPATCH_PRIVATE_H

#include "daemon/caller.h"
#include "daemon/core/errorrate.h"
#include "daemon/core/pace.h"
#include "daemon/core/sample.h"
#include "daemon/core/slab.h"
#include "daemon/core/table.h"
#include "daemon/decision.h"
#include "daemon/dispatch.h"
#include "daemon/io/conn.h"
#include "daemon/io/listener.h"

/* Slots of requests, by what must be kept of each; most keep a short key. */
#define REQUEST_CLASSES    4
#define CLIENT_NAME_MAX    63
#define CLIENT_MAX_WAITERS 16
/* Unsent bytes at which a client that does not read is closed: far above
 * CONN_OUT_HIGH, where it is no longer read from. */
#define CLIENT_OUT_MAX (2 * 1024 * 1024)
/* Of the control socket: operators, not applications. */
#define CONTROL_MAX_CONNECTIONS 64
/* Unsent bytes of one uid at which it gets no more documents. */
#define DOCUMENTS_OUT_MAX (16 * 1024 * 1024)

/* What a configuration says of a socket; borrowed from it. */
struct port_spec {
	const char *name; /* "control" for the control socket */
	const char *path; /* ADDRESS:PORT for TCP */
	mode_t mode;
	gid_t gid; /* -1: the process's */
	uint32_t max_connections;
	uint32_t max_inflight;
	const struct config_patterns *rules;    /* NULL: none are offered */
	const struct config_listener *listener; /* NULL: no IPC, or control */
	const struct config_gateway *gateway;   /* NULL: no HTTP */
};

/* One listening socket and its caps. */
struct port {
	struct dispatch *dispatch;
	struct port_spec is;
	struct listener *listener; /* NULL: closed */
	uint64_t number;           /* from 1 */
	uint32_t users;            /* uids with a connection */
	uint32_t connections;
	uint32_t inflight;
	bool control;
	bool adopted;  /* its socket was passed to this process */
	bool in_force; /* one of dispatch.ports */
	bool leaving;  /* was; freed with its last connection */
};

/* What one uid uses of one port, or of all ports together; freed when it uses
 * nothing. */
struct use {
	struct table_entry entry; /* number of the port, 0: all; the uid */
	uint32_t connections;
	uint32_t inflight;
	struct pace_window window; /* of all */
};

struct client {
	struct caller is;
	struct conn *conn; /* outlives the client */
	struct waiter *waiters;
	struct client *next;
	struct client **prev;
	uint64_t last_id; /* the highest request id accepted */
	bool greeted;
	char name[CLIENT_NAME_MAX + 1];
};

/* A check in flight. */
struct request {
	struct table_entry entry; /* serial of the caller, request id */
	struct caller *by;
	struct request *next; /* of the caller */
	struct request **prev;
	struct setup *setup;            /* that it began under; a reference */
	const struct config_rule *rule; /* NULL: ad-hoc */
	const struct config_tenant *tenant;
	const char *listener; /* its name then */
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
	struct caller *by;
	uint64_t id;
	const struct ipc_check_base *base;
	const struct config_rule *rule;     /* NULL: ad-hoc */
	const struct config_tenant *tenant; /* NULL while not known */
	struct ipc_str name; /* of the rule that was asked for; "": ad-hoc */
	struct ipc_str kept;
	int64_t arrived;
	int64_t start; /* earlier than that when it was sent before */
	bool resent;   /* it was sent before, on a connection that broke */
};

/* What permit depends on when a check fails. */
struct failing {
	enum config_failure policy;
	bool resent;
	/* With FAILURE_LOCAL: whom its limiter is asked for. */
	const struct setup *setup;
	const struct config_rule *rule;
	struct rules_caller caller;
	uint32_t tokens;
};

/* A WAIT, RELOAD or DRAIN that is not answered yet. */
struct waiter {
	struct client *client;
	struct waiter *next;      /* of the client */
	struct loop_timer *timer; /* of a WAIT */
	uint64_t id;
	uint16_t type;
};

/* A user who asked, and until when it counts as one who asks. */
struct asker {
	uid_t uid;
	int64_t until;
};

struct dispatch {
	struct dispatch_env env;
	struct conn_pool *pool;
	uint64_t last_port;
	uint64_t last_caller;
	struct port **ports; /* listeners, then control */
	size_t port_count;
	bool opened;   /* applications are let in */
	bool draining; /* no check is begun */
	struct table uses;
	struct table requests;
	struct slab slots[REQUEST_CLASSES];
	struct slab clients_slab;
	struct client *clients;
	struct asker askers[2]; /* the last one, the last other than that */
	struct agent_counters counters;
	struct errorrate lines; /* clients decide how often they are bad */
	uint64_t unsaid;
	struct errorrate rate_lines; /* operators decide how often that is */
	uint64_t rates_unsaid;
	struct {
		struct sample others; /* ad-hoc, unknown rules */
		struct sample_budget budget;
		uint64_t unsaid;
	} decision_log;
	/* Scratch, too large for the stack of a callback. */
	struct ipc_check_adhoc adhoc; /* being started */
	struct rules_request asked;
	struct ipc_check_adhoc kept; /* being completed */
	struct rules_request names;
	struct ipc_decision decision;
	char local_text[DECISION_TEXT_MAX]; /* of it */
};

/* dispatch_port.c */
int dispatch_ports_open(struct dispatch *d, char err[DISPATCH_ERR_MAX]);
/* No port accepts from here on; connections stay. */
void dispatch_ports_close(struct dispatch *d);
void dispatch_ports_free(struct dispatch *d);
/* A port that is leaving may be gone when its last connection is. */
void dispatch_port_release(struct port *p);

/* caller.c */
/* The counter of the cap that keeps another operation of this caller from
 * starting; NULL: none does. */
uint64_t *caller_full(struct caller *c);
void caller_count(struct caller *c, int more); /* +1 or -1 in flight */
/* It begins a check. */
void caller_asks(const struct caller *c, int64_t now);
/* May its next request be taken? Not when its user has as much under way as
 * its window allows and other users ask, too. */
bool caller_is_hungry(const struct caller *c, int64_t now);

/* client.c */
/* A listener_accept_fn of a port. */
void client_accepted(void *arg, int fd);
/* May its user still use its port? */
bool client_may_stay(const struct client *c);
/* The client; its connection is who calls this one's. */
void client_free(struct client *c);

/* dispatch.c */
extern const struct conn_hooks dispatch_hooks;
extern const struct caller_hooks dispatch_client_hooks;
/* Commits the frame that was encoded with result rc; it must have fitted. */
void dispatch_commit(struct client *c, int rc);
void dispatch_send_done(
    struct client *c, uint64_t id, enum ipc_reason reason, const char *text);
/* id 0: of itself, after a reload. */
void dispatch_welcome(struct client *c, uint64_t id);
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

void dispatch_report_rule(
    struct client *c, const struct ipc_head *head, struct reader *r);

/* dispatch_limit.c */
void dispatch_acquire(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_try_acquire(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_error_begin(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_error_success(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_set_rate(
    struct client *c, const struct ipc_head *head, struct reader *r);
/* A check of a rule begins, which was built for this caller: its local
 * limiter, if it has one, is there when it is needed. */
void dispatch_local_warm(const struct setup *setup,
    const struct config_rule *rule, const struct rules_caller *caller);
/* What is in d->decision failed under FAILURE_LOCAL, for a reason that the
 * policy covers. */
void dispatch_local_decide(struct dispatch *d, const struct failing *f);

/* dispatch_life.c */
/* RELOAD or DRAIN, which are authorised: answered later. False when it was
 * answered now: no memory. */
bool dispatch_await(struct client *c, uint64_t id, uint16_t type);
/* Tells it to go away: nothing more is read, what was asked is answered, and
 * then it is closed. */
void dispatch_leave(struct client *c, const char *why);
/* Has a caller that is leaving got its last answer? */
void dispatch_leave_done(struct caller *c);
void dispatch_wait(
    struct client *c, const struct ipc_head *head, struct reader *r);
void dispatch_wait_forget(struct client *c);
bool dispatch_waiting(const struct client *c, uint64_t id);

/* dispatch_log.c */
void dispatch_log_init(struct dispatch *d);
/* What is in d->decision was answered: without a request, and of one. Only
 * where dispatch_logs(). */
void dispatch_log_asked(const struct asking *a);
void dispatch_log_done(const struct request *r);

static inline bool
dispatch_logs(const struct dispatch *d)
{
	return d->env.setup->config->decisions != 0;
}

/* dispatch_check.c */
/* payload: the bytes that m was decoded from. */
void dispatch_check_adhoc(struct caller *c, uint64_t id,
    const struct ipc_check_adhoc *m, struct ipc_str payload, int64_t arrived);
/* The tenant by name, or the only one for an empty name; NULL: text says. */
const struct config_tenant *dispatch_tenant(
    struct dispatch *d, struct ipc_str name, char text[RULES_TEXT_MAX]);
/*
 * The rule by name, when this caller's port offers it; NULL with the reason,
 * unauthorised or unknown-rule, and its text.
 */
const struct config_rule *dispatch_rule(const struct caller *c,
    struct ipc_str name, enum ipc_reason *reason, char text[RULES_TEXT_MAX]);
void dispatch_unknown_rule(struct ipc_str name, char text[RULES_TEXT_MAX]);

/* dispatch_request.c */
void dispatch_slots_init(struct dispatch *d);
void dispatch_slots_fini(struct dispatch *d);
/* NULL at a cap or without memory. */
struct request *dispatch_request_new(const struct asking *a);
void dispatch_request_free(struct request *r);
/*
 * A connection broke, its end was not seen yet, and the same user asks again
 * on another: the operation goes on, its answer goes to the new one. False
 * when the id is in flight for anybody or anything else.
 */
bool dispatch_adopt(const struct asking *a, struct request *r);
bool dispatch_in_flight(const struct caller *c, uint64_t id);
void dispatch_cancel_all(struct caller *c);

/* dispatch_answer.c */
/* Tells and counts what is in d->decision, after the mode of the rule, which
 * is NULL for an ad-hoc check; the tenant is NULL, too, when none was named
 * that there is. elapsed: since the check came. */
void dispatch_answer(struct caller *c, uint64_t id,
    const struct config_rule *rule, const struct config_tenant *tenant,
    int64_t elapsed);
/*
 * Reading stops at CONN_OUT_HIGH unsent bytes, but answers to what was asked
 * before still come, and WELCOMEs: a client that never reads them is closed in
 * the end.
 */
void dispatch_close_unread(struct client *c);
/*
 * Fails what is in d->decision. What was sent before may have consumed then,
 * whatever keeps it from being answered now: Failed(interrupted) says so.
 */
void dispatch_fail(struct dispatch *d, const struct failing *f,
    enum ipc_reason reason, const char *text);
/* The end of a request's operation: a tenant_done_fn. */
void dispatch_done(void *arg, const struct tenant_result *res);
/* What is known of the caller; key NULL: none was given. */
struct rules_caller dispatch_caller(
    const struct caller *c, const uint8_t *key, size_t key_len);

#endif
