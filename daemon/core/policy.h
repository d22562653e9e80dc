/*
 * The HA policy of one rate request (r-client specification, sections 6.2, 6.3
 * and 9.3) as a pure state machine: no I/O, no clock, no memory of its own.
 * Times are absolute monotonic microseconds on one chain from op->start.
 *
 * Three verbs: feed events (policy_op_answer, _sent, _cancel, _advance), take
 * actions (policy_op_next, until POLICY_NOTHING), ask for the next timeout
 * (policy_op_timeout). Answers are only recorded when fed; policy_op_advance()
 * judges, so a batch of datagrams that were readable together is weighed
 * together and before the deadline that fell due with them.
 *
 * Servers are indexes into the operation's membership snapshot, which is
 * ordered oldest first: index 0 is the globally oldest server, and the
 * candidate is always the lowest index that has answered.
 *
 * Adaptive preference, which is no part of the specification: the operation is
 * told which servers are suspected (core/suspect.h) when it starts. It prefers
 * the oldest of the others: that one's answer, or an older one's, decides at
 * once, as the oldest server's does by the specification. With no suspect, or
 * with all of them suspected, the preferred server is the oldest.
 *
 * Invariants: one POLICY_COMPLETE per operation; no target in a send that has
 * answered; no send at or after start + horizon; nothing after the terminal
 * state changes the result.
 */
#ifndef DAEMON_CORE_POLICY_H
#define DAEMON_CORE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/schedule.h"

#define POLICY_MAX_SERVERS 64 /* of a snapshot: one bit each */
#define POLICY_MAX_REPLAYS 31
#define POLICY_NEVER       INT64_MAX

struct policy {
	uint32_t unit_ms;           /* U, 1..UINT32_MAX */
	uint32_t replay_count;      /* N, 0..POLICY_MAX_REPLAYS */
	struct schedule gap;        /* B(k), at least 1 unit */
	struct schedule preference; /* P(k), cut to B(k) is NOT done: invalid */
	bool first_round;     /* P(0) = B(0), P(k > 0) = 0; preference unused */
	uint32_t final_units; /* F */
	uint32_t final_preference_units; /* P_final, 0..F; 0 if first_round */
	bool completion_delivery;        /* C */
	uint32_t suspect_after; /* K of the adaptive preference; 0: off */
};

/* What a policy means in time. Frozen; operations borrow it. */
struct policy_plan {
	uint32_t rounds;                              /* N + 1 */
	int64_t round_end_us[POLICY_MAX_REPLAYS + 1]; /* offsets from start */
	int64_t prefer_end_us[POLICY_MAX_REPLAYS + 1];
	int64_t final_prefer_end_us;
	int64_t horizon_us; /* H */
	uint32_t ttl_ms;    /* H on the wire */
	bool completion_delivery;
	uint32_t suspect_after;
};

/* The recommended defaults of section 9.3.5. */
void policy_defaults(struct policy *p);

/* Constant texts. */
struct policy_refusal {
	const char *key;    /* of the configuration; NULL: of all together, the
			     * horizon is too long */
	const char *reason; /* "must be ...", the range that is broken */
};

/*
 * Derives the plan. Returns 0, or -1, the plan left alone, with *why set: a gap
 * of zero, P(k) > B(k), P_final > F, a linear or exponential maximum under its
 * initial value, a horizon over UINT32_MAX ms, ... Of a good policy *why is all
 * NULL. why may be NULL.
 */
int policy_plan_init(struct policy_plan *plan, const struct policy *p,
    struct policy_refusal *why);

enum policy_state {
	POLICY_PREPARED,
	POLICY_ROUND, /* TransmissionRound */
	POLICY_FINAL, /* FinalReceive */
	POLICY_TERMINAL,
	POLICY_CANCELLED,
};

/* Why an operation is over. */
enum policy_end {
	POLICY_SELECTED,  /* action.server holds the selected index */
	POLICY_TIMEOUT,   /* horizon or caller's deadline without a candidate */
	POLICY_NO_SERVER, /* the snapshot is empty */
	POLICY_NOT_SENT,  /* no target of the first transmission was sent */
	POLICY_STOPPED,   /* policy_op_cancel() */
};

enum policy_act {
	POLICY_NOTHING,
	POLICY_SEND,    /* to action.targets; report it with policy_op_sent() */
	POLICY_DELIVER, /* completion delivery: send and forget */
	POLICY_MISSED,  /* at most once, and only with suspect_after: the
			 * preferred server, action.server, left the operation
			 * unanswered past the preference deadline of round 0 */
	POLICY_COMPLETE, /* once; action.end says why */
};

struct policy_action {
	enum policy_act act;
	enum policy_end end;
	uint64_t targets; /* bit i: server i of the snapshot */
	uint32_t round;   /* of the send, or the round that decided; N + 1 is
			   * the final receive interval */
	uint32_t server;
};

struct policy_op {
	const struct policy_plan *plan; /* borrowed for the operation's life */
	int64_t start;                  /* when the caller first asked */
	int64_t deadline; /* the caller's, POLICY_NEVER without one */
	uint64_t members; /* bits of the snapshot */
	uint64_t answered;
	uint64_t pending_send; /* of a SEND or DELIVER not yet taken */
	uint8_t preferred;
	uint8_t round;
	enum policy_state state : 8;
	enum policy_end end : 8;
	bool sent_any; /* some target of some transmission was sent */
	bool complete_due;
	bool watching; /* P(0) has not passed: the preferred may still miss */
	bool missed_due;
};

/*
 * Starts an operation whose caller asked at start, which may be earlier than
 * now (a request sent again after its connection broke): then only what the
 * schedule still holds is run. servers is 0..POLICY_MAX_SERVERS; suspected has
 * a bit for each that is suspected; deadline is absolute. Ends at once without
 * a server or past the deadline. An operation that begins when its P(0) is
 * over already never tells of a miss.
 */
void policy_op_init(struct policy_op *op, const struct policy_plan *plan,
    uint32_t servers, uint64_t suspected, int64_t start, int64_t deadline,
    int64_t now);

/*
 * A valid correlated response of a snapshot member. Returns true when it is
 * the new candidate, whose content the owner then keeps; false for a
 * duplicate, for a younger server than the candidate, and after the end.
 */
bool policy_op_answer(struct policy_op *op, uint32_t server);

/* How a POLICY_SEND went: the targets that the kernel took. */
void policy_op_sent(struct policy_op *op, uint64_t taken);

/* The caller gave up. A no-op after the decision. */
void policy_op_cancel(struct policy_op *op);

/*
 * Judges everything recorded against the clock: selects, enters the round of
 * now (skipping those that a stall passed over), or ends. now never runs
 * backwards.
 */
void policy_op_advance(struct policy_op *op, int64_t now);

/* Takes the next action; now guards the deduplication deadline. */
struct policy_action policy_op_next(struct policy_op *op, int64_t now);

/* When policy_op_advance() is next due; POLICY_NEVER after the end. */
int64_t policy_op_timeout(const struct policy_op *op);

/* "Prepared", "TransmissionRound", ... for replay scripts. */
const char *policy_state_name(enum policy_state state);
/* "selected", "timeout", ... for the same. */
const char *policy_end_name(enum policy_end end);

#endif
