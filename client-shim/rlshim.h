/*
 * librlshim: the client of rl-agent, the local sidecar for distributed rate
 * limiting. It depends on libc alone; rlshim.c and this header can also be
 * dropped into a project.
 *
 * A client (struct rl_client) is one connection to one agent. It connects
 * when first used and again whenever the connection is lost, within the
 * deadline of the call. Use a client in one thread at a time, each thread its
 * own; only rl_interrupt() may be called from anywhere. After fork() the
 * child may go on using it: it notices, drops the parent's connection without
 * disturbing it, and makes its own.
 *
 * Times are in milliseconds unless a name says otherwise. Strings given are
 * borrowed for the call. No call blocks for longer than its timeout plus
 * scheduling (a check or a wait that was sent: 100 ms more, for the agent's
 * own last word; rl_acquire() and rl_error_begin(): then as long as they were
 * told to wait); SIGPIPE is never raised. An absent agent may be one that
 * restarts: it is tried for until the timeout, so choose that to suit.
 */
#ifndef RLSHIM_H
#define RLSHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RL_DEFAULT_SOCKET "/run/rl-agent/agent.sock"
#define RL_NAME_MAX       255 /* bytes of a name, without the NUL here */
#define RL_TEXT_MAX       511
#define RL_MAX_GUARDS     31
#define RL_MAX_RESOURCES  40

/* Every check ends in exactly one of these. */
enum rl_outcome { RL_ALLOWED, RL_DENIED, RL_FAILED, RL_CANCELLED };

/* Who decided rl_decision.permit. A limiter of the agent's is local, too. */
enum rl_source {
	RL_SOURCE_SERVER,
	RL_SOURCE_EMPTY,  /* nothing was asked for */
	RL_SOURCE_POLICY, /* failed, and open or closed */
	RL_SOURCE_LOCAL,  /* a limiter of the agent: of a rule that failed,
			   * or the one that was asked */
	RL_SOURCE_SHADOW, /* denied or failed, but the rule only watches */
};

enum rl_reason {
	RL_REASON_OK,
	RL_REASON_RESOURCE,
	RL_REASON_GUARD,
	RL_REASON_RESOURCE_GUARD,
	RL_REASON_VALIDATION,
	RL_REASON_UNKNOWN_RULE,
	RL_REASON_UNAUTHORISED,
	RL_REASON_DISCOVERY,
	RL_REASON_TRANSPORT,
	RL_REASON_TIMEOUT,
	RL_REASON_OVERLOADED,
	RL_REASON_DRAINING,
	RL_REASON_INTERRUPTED, /* it may have consumed: do not ask again */
	RL_REASON_UNAVAILABLE, /* no agent */
	RL_REASON_CANCELLED,
};

/* What permit is when no agent can be asked. */
enum rl_failure { RL_OPEN, RL_CLOSED };

/* Return values of calls that do not decide; rl_strerror() names them. */
enum rl_status {
	RL_OK = 0,
	RL_EINVAL = -1, /* an argument is out of its range */
	RL_ENOMEM = -2,
	RL_EUNAVAILABLE = -3, /* no agent, within the timeout */
	RL_ETIMEDOUT = -4,    /* an agent, but no answer within the timeout */
	RL_EPROTO = -5,       /* it does not speak this protocol or version */
	RL_EREFUSED = -6,     /* the agent refused; see rl_last_text() */
	RL_EINTERRUPTED = -7, /* rl_interrupt() */
};

struct rl_client;

struct rl_options {
	const char *socket;  /* NULL: $RL_AGENT_SOCKET, else the default */
	const char *name;    /* of the application, for the agent's debug
			      * log, which cuts it to 63 bytes; NULL: none */
	uint32_t timeout_ms; /* of calls that give none; 0: the agent's
			      * default (its horizon plus a second), and one
			      * second until an agent was reached */
	enum rl_failure on_failure;
	uint32_t max_inflight; /* of what is submitted, 1..65536; 0: 1024 */
};

struct rl_resource {
	const char *bucket; /* bucket_len bytes; any bytes */
	size_t bucket_len;  /* 1..RL_NAME_MAX */
	uint32_t window_ms; /* 1..UINT32_MAX */
	uint32_t limit;     /* tokens in a window, 1..UINT32_MAX */
	uint32_t tokens;    /* 1..65535 */
};

struct rl_guard {
	const char *tracker;
	size_t tracker_len; /* 1..RL_NAME_MAX */
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size; /* used by profile v1 only */
	uint32_t min_samples;
	uint32_t below_ms; /* passes while the latency is below this */
};

/* A check by rule, or, with rule NULL, an ad-hoc one. Zero what is unused. */
struct rl_check {
	const char *rule;
	const char *key; /* fills {key}; NULL: none */
	size_t key_len;
	uint32_t tokens;     /* multiplies each resource's tokens; 0 means 1 */
	uint32_t timeout_ms; /* 0: as rl_options says */
	const char *tenant;  /* ad-hoc only; NULL: the only one */
	const char *label;   /* ad-hoc only; at most 256 bytes */
	const struct rl_resource *resources; /* ad-hoc only */
	size_t resource_count;               /* 0..RL_MAX_RESOURCES */
	const struct rl_guard *guards;       /* ad-hoc only */
	size_t guard_count;                  /* 0..RL_MAX_GUARDS */
};

struct rl_resource_result {
	char bucket[RL_NAME_MAX + 1];
	size_t bucket_len;
	uint32_t window_ms;
	uint32_t limit;
	uint32_t tokens;      /* asked for */
	uint32_t deficit;     /* 0: granted */
	uint32_t actual_rate; /* in the window, as the server counts it */
};

struct rl_guard_result {
	char tracker[RL_NAME_MAX + 1];
	size_t tracker_len;
	uint32_t below_ms;
	uint32_t current_ms;
	int passed;
};

/* The full result of each part, in the request's order. 20 KiB. */
struct rl_detail {
	size_t resource_count;
	size_t guard_count;
	struct rl_resource_result resources[RL_MAX_RESOURCES];
	struct rl_guard_result guards[RL_MAX_GUARDS];
};

struct rl_decision {
	enum rl_outcome outcome;
	int permit; /* may the work go on: the one thing most callers ask */
	enum rl_source source;
	enum rl_reason reason;
	int by_agent;   /* 0: this library decided, for want of an agent */
	int has_server; /* server_id and round mean something */
	uint64_t server_id;
	uint32_t round; /* 0 first transmission, 1.. replays, then final */
	uint32_t retry_after_ms;     /* an estimate; 0: none */
	uint64_t wait_us;            /* see rl_acquire(); else 0 */
	uint64_t elapsed_us;         /* whole call, measured here */
	char limit[RL_NAME_MAX + 1]; /* the first limit that denied */
	size_t limit_len;
	char text[RL_TEXT_MAX + 1]; /* why, for people */
};

#define RL_MAX_PERMITS 1000000

/* Permits of a limiter of the agent's configuration. Zero what is unused. */
struct rl_acquire {
	const char *limiter; /* 1..RL_NAME_MAX bytes */
	const char *key;     /* key_len bytes of any kind: of an instance of its
			      * own; NULL: of the one without a key */
	size_t key_len;      /* 0..RL_NAME_MAX */
	uint32_t permits;    /* 1..RL_MAX_PERMITS; 0 means 1 */
	int no_longer;       /* not 0: not when it means to wait longer than */
	uint64_t max_wait_us; /* 0..31536000000000, a year; 0 without it */
	uint32_t timeout_ms;  /* for the agent's answer; 0: as rl_options */
};

/* An error control of the agent's configuration. Zero what is unused. */
struct rl_error_control {
	const char *control; /* 1..RL_NAME_MAX bytes */
	const char *key;     /* as above */
	size_t key_len;
	uint32_t timeout_ms;
};

/*
 * Makes a client; does not connect. Returns RL_OK, RL_ENOMEM or RL_EINVAL (a
 * socket path that does not fit sockaddr_un). *out is owned by the caller.
 */
int rl_open(struct rl_client **out, const struct rl_options *options);
/* Takes NULL. Operations still in flight are cancelled by the agent. */
void rl_close(struct rl_client *client);

/*
 * Asks and waits. Always fills *decision; detail may be NULL. Returns RL_OK,
 * or RL_EINVAL when an argument is out of range: then the decision is Failed
 * (validation) too, with a text, and nothing was sent.
 */
int rl_check(struct rl_client *client, const struct rl_check *check,
    struct rl_decision *decision, struct rl_detail *detail);

/*
 * Guarded work: check, do it when permitted, report once how long it took to
 * the trackers of the rule's guards. The struct is the library's; it holds
 * copies, so nothing that the check pointed to need stay.
 */
struct rl_work {
	int state;
	int64_t begun_us; /* CLOCK_MONOTONIC */
	size_t key_len;
	int has_key;
	char rule[RL_NAME_MAX + 1];
	char key[RL_NAME_MAX + 1];
};

/*
 * rl_check() of a rule, and the start of the work's clock when it permits.
 * Returns what rl_check() does; RL_EINVAL for an ad-hoc check, too.
 */
int rl_admit(struct rl_client *client, const struct rl_check *check,
    struct rl_decision *decision, struct rl_detail *detail,
    struct rl_work *work);
/*
 * The work is done: reports its latency, in milliseconds on the monotonic
 * clock, rounded. Returns RL_OK when it was reported and when there was
 * nothing to report: the work was not permitted, or this library permitted it
 * because no agent decided. Else as rl_report(), and RL_EINVAL when this work
 * was reported before, whatever became of that. Do not call it for work that
 * was given up.
 */
int rl_finish(struct rl_client *client, struct rl_work *work);
/* The start of the clock alone, for the check of a rule that was submitted. */
void rl_begin(struct rl_work *work, const struct rl_check *check,
    const struct rl_decision *decision);

/*
 * The asynchronous form: no call below blocks, and none calls back. Many
 * checks may be in flight; the blocking calls can be used in between, and
 * make them go on, too.
 *
 * Poll rl_fd() for reading (poll(2), epoll(7), any event loop); when it is
 * readable, call rl_collect() until it returns 0. After fork() the child has
 * none of the checks in flight, and another descriptor: rl_fd() tells.
 */

/* -1 without memory or descriptors. Made by the first call; the client's. */
int rl_fd(struct rl_client *client);

struct rl_completion {
	uint64_t ticket; /* of rl_submit() */
	void *user;
	struct rl_decision decision;
};

/*
 * Begins a check. Whatever check points to may go after the call; detail,
 * which may be NULL, is filled by the time the check is collected and must
 * stay until then. *ticket, never 0, names it; ticket may be NULL. Each check
 * that was begun is collected exactly once, at its timeout and 100 ms at
 * the latest (rl_fd() becomes readable then). Returns RL_OK, RL_EINVAL
 * (rl_last_text() says what is out of range) or RL_ENOMEM (max_inflight is
 * reached, counting what is not collected; or no memory); then nothing was
 * begun.
 */
int rl_submit(struct rl_client *client, const struct rl_check *check,
    struct rl_detail *detail, void *user, uint64_t *ticket);
/*
 * Gives a check up: it is collected as Cancelled, unless the agent, which is
 * told, decided it before; within 100 ms. RL_EINVAL for a ticket that is not
 * in flight any more.
 */
int rl_cancel(struct rl_client *client, uint64_t ticket);
/*
 * Moves what is in flight on; 1 with one decision in *out, or 0. After 0,
 * rl_fd() is not readable until something happens.
 */
int rl_collect(struct rl_client *client, struct rl_completion *out);
/*
 * rl_finish() that does not wait for the agent's word; best effort, for the
 * usual timeout. RL_ENOMEM, and the sample is lost, when max_inflight of them
 * are under way, or without memory.
 */
int rl_submit_finish(struct rl_client *client, struct rl_work *work);

/*
 * Limiters that all processes of the host share. The agent answers at once,
 * with how long to wait before going on, decision->wait_us microseconds; this
 * call then waits that long, here, and returns when the work may begin, while
 * what was submitted goes on. The agent may end meanwhile. At most a year.
 *
 * Allowed, source local, permit 1: granted, and waited for. Denied, reason
 * resource, source local, permit 0: only with no_longer; it would have meant
 * to wait wait_us (retry_after_ms is that, rounded up), so nothing was taken
 * and nothing waited for; limit is the limiter. Failed, source policy: as a
 * check's, and permit as rl_options.on_failure says, but never when the reason
 * is validation, unknown-rule (no such limiter) or unauthorised. Then nobody
 * waits and wait_us is 0. Returns what rl_check() does.
 *
 * Permits are spent when they are granted. rl_interrupt() ends the wait, as
 * Cancelled with wait_us and by_agent as granted; who is interrupted, or dies,
 * has spent them. When the connection breaks before the answer, it is asked
 * again: that may spend permits twice, never pass more.
 */
int rl_acquire(struct rl_client *client, const struct rl_acquire *acquire,
    struct rl_decision *decision);
/*
 * Something begins that may fail: without a delay while a burst lasts, then
 * with one that doubles. It counts as failed until rl_error_success() says
 * otherwise. All as rl_acquire(), but never Denied.
 */
int rl_error_begin(struct rl_client *client,
    const struct rl_error_control *control, struct rl_decision *decision);
/*
 * What began last has succeeded. Returns as rl_report() does, RL_EREFUSED for
 * an error control that the agent does not know. Not repeated when the
 * connection breaks.
 */
int rl_error_success(
    struct rl_client *client, const struct rl_error_control *control);
/*
 * The asynchronous forms, as rl_submit(), and collected among the checks as
 * soon as the agent has answered: the caller waits decision.wait_us from then
 * on, if that is Allowed. rl_cancel() makes it Cancelled at once, unless it is
 * answered; nothing that was granted is given back. rl_submit_error_success()
 * is best effort and collects nothing, like rl_submit_finish().
 */
int rl_submit_acquire(struct rl_client *client,
    const struct rl_acquire *acquire, void *user, uint64_t *ticket);
int rl_submit_error_begin(struct rl_client *client,
    const struct rl_error_control *control, void *user, uint64_t *ticket);
int rl_submit_error_success(
    struct rl_client *client, const struct rl_error_control *control);
/*
 * Another rate for a limiter, with all its keys, until a reload brings another
 * configured one: 0.001..1000000 permits a second, in steps of 10^-12. Only on
 * the agent's control socket. timeout_ms 0: the usual one. Returns as
 * rl_control(); repeated when the connection breaks.
 */
int rl_set_rate(struct rl_client *client, const char *limiter,
    double permits_per_second, uint32_t timeout_ms);

/*
 * One latency sample for a tracker of the agent's configuration, named as it
 * is there. key, key_len bytes of any kind, fills a {key} in that name; NULL:
 * none.
 */
int rl_report(struct rl_client *client, const char *tenant, const char *tracker,
    const char *key, size_t key_len, uint32_t latency_ms);
/* One latency sample for a tracker given here (below_ms is not used). */
int rl_report_adhoc(struct rl_client *client, const char *tenant,
    const struct rl_guard *tracker, uint32_t latency_ms);

/* Is an agent there? *round_trip_us may be NULL. */
int rl_ping(
    struct rl_client *client, uint32_t timeout_ms, uint64_t *round_trip_us);
/* Waits until the agent can decide. */
int rl_wait(struct rl_client *client, uint32_t timeout_ms);
/*
 * what: "status", "servers", "policy", "rules" or "limiters"; "metrics", which
 * is not JSON but the text that Prometheus reads; and "top" on the agent's
 * control socket. *json is malloc()ed, NUL-terminated, yours. timeout_ms 0: the
 * usual one to reach the agent, and then at least 5 seconds for the document.
 */
int rl_query(struct rl_client *client, const char *what, uint32_t timeout_ms,
    char **json);
/*
 * What would be sent for this check of a rule (rule, key, tokens), and nothing
 * is. *json and the timeout as above; RL_EREFUSED for a rule that the agent
 * does not know.
 */
int rl_explain(
    struct rl_client *client, const struct rl_check *check, char **json);
/*
 * what: "reload" (returns when the new configuration is in force, or
 * RL_EREFUSED with the reason in rl_last_text(); with RL_OK that is a remark,
 * or ""), "drain" (returns when the last check is answered; the agent ends
 * then) or "quit". Only on the agent's control socket. A reload may take 5
 * seconds and more. timeout_ms 0: the usual one to reach the agent, and then a
 * minute for its answer. After a timeout it may be done all the same.
 */
int rl_control(struct rl_client *client, const char *what, uint32_t timeout_ms);

/*
 * Async-signal-safe and thread-safe: a call of this client that blocks now
 * gives up, a check as Cancelled after telling the agent (unless its decision
 * was made already: then that one counts), rl_acquire() and rl_error_begin()
 * as Cancelled, any other with RL_EINTERRUPTED.
 * Without a call in progress, the next one gives up.
 */
void rl_interrupt(struct rl_client *client);

/* The agent's or the library's words on the last failure; never NULL. */
const char *rl_last_text(const struct rl_client *client);

/* Names as in the documentation and JSON: "allowed", "unknown-rule", ... */
const char *rl_outcome_name(enum rl_outcome outcome);
const char *rl_source_name(enum rl_source source);
const char *rl_reason_name(enum rl_reason reason);
const char *rl_strerror(int status);

#ifdef __cplusplus
}
#endif

#endif
