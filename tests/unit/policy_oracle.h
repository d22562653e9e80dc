/*
 * A second, naive implementation of the HA policy that runs beside the real
 * one and predicts every action, timeout and result. The unit test, the
 * replay scripts and the fuzzer drive the operation through it only.
 *
 * Invariant: once broken is set it names the first disagreement and stays.
 */
#ifndef TESTS_UNIT_POLICY_ORACLE_H
#define TESTS_UNIT_POLICY_ORACLE_H

#include "daemon/core/policy.h"

struct oracle {
	struct policy policy;
	struct policy_plan plan;
	struct policy_op op;
	struct policy_refusal why; /* of the plan */
	const char *broken;        /* what does not hold, or NULL */
	int64_t start;
	int64_t deadline;
	int64_t horizon;
	int64_t now;
	uint64_t members;
	uint64_t answered; /* before the decision */
	uint64_t late;     /* after it */
	uint64_t decisive; /* the preferred server and those older than it */
	uint32_t preferred;
	bool may_miss; /* P(0) is still ahead, and K > 0 */
	bool missed_due;
	uint32_t round;
	bool send_due;
	bool prepared; /* no SEND was taken yet */
	bool taken_any;
	bool over;
	enum policy_end end;
	uint32_t server;
	bool at_once; /* selected while a preference held */
	bool deliver_due;
	unsigned sends;
	unsigned misses;
	unsigned deliveries;
	unsigned completions;
};

/* Whether the policy is accepted, as predicted. */
bool oracle_policy(struct oracle *o, const struct policy *p);
void oracle_start(struct oracle *o, uint32_t servers, uint64_t suspected,
    int64_t start, int64_t deadline, int64_t now);
bool oracle_answer(struct oracle *o, uint32_t server);
void oracle_sent(struct oracle *o, uint64_t taken);
void oracle_cancel(struct oracle *o);
void oracle_advance(struct oracle *o, int64_t now);
struct policy_action oracle_next(struct oracle *o);

/* A number under bound, from a generator or a fuzzer's bytes. */
typedef uint32_t oracle_pick(void *arg, uint32_t bound);

/* What the runs have reached, to show that they are not idle. */
struct oracle_reach {
	unsigned refused;
	unsigned ends[5]; /* by enum policy_end */
	unsigned finals;  /* decided in the final interval */
	unsigned deliveries;
	unsigned skipped; /* runs that passed over a round unsent */
	/* Of the adaptive preference. */
	unsigned missed;       /* runs that told of a miss */
	unsigned spared;       /* P(0) was watched, and nothing missed */
	unsigned by_preferred; /* decided at once, by one not the oldest */
	unsigned by_suspect;   /* decided at once, by one older than that */
	unsigned all_suspect;  /* nobody else to prefer */
};

/*
 * One random operation from its policy to its completion: stalls, batches,
 * duplicates, strangers, failing sends, cancels. Returns what is broken, or
 * NULL. reach may be NULL.
 */
const char *oracle_run(
    oracle_pick *pick, void *arg, unsigned steps, struct oracle_reach *reach);

#endif
