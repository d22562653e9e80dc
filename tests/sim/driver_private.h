/*
 * What the files of the driver share: the run (driver.c), an operation's life
 * in it (driver_op.c, driver_read.c), the properties (driver_check.c),
 * datagrams under way (driver_queue.c).
 */
#ifndef TESTS_SIM_DRIVER_PRIVATE_H
#define TESTS_SIM_DRIVER_PRIVATE_H

#include "daemon/core/members.h"
#include "daemon/core/policy.h"
#include "daemon/core/suspect.h"
#include "tests/sim/driver.h"

/* Datagrams by the time at which they can be read: a binary heap. */
struct driver_queue {
	struct network_datagram *list;
	size_t count;
	size_t room;
};

/* What the driver knows by itself about an operation. */
struct driver_op {
	struct policy_op op;
	struct members *members; /* a reference */
	uint64_t seal;           /* of the snapshot's content */
	struct journal_op *j;
	uint32_t index;
	bool begun;
	bool over;
	bool fresh;          /* something was fed since it was last judged */
	bool called;         /* the cancel has been carried out */
	uint64_t fed;        /* places in the snapshot that have answered */
	uint64_t fed_before; /* the same when it was last judged */
	int64_t due;         /* its timeout then */
	int64_t start;
	int64_t deadline;
	uint32_t preferred;
	bool kept_denied; /* what the candidate said */
	bool missed;
	uint32_t sends;
	uint32_t last_round; /* of a send */
	enum policy_state state;
	uint32_t copies[SCENARIO_SERVERS_MAX];
	uint32_t newest[SCENARIO_SERVERS_MAX]; /* copy answered, and 1 */
};

struct driver {
	const struct scenario *sc;
	enum driver_flaw flaw;
	struct journal *out;
	struct reach *reach;
	struct policy_plan plan; /* what the operations run on */
	struct policy_plan true_plan;
	int64_t now;
	struct driver_queue queue;
	struct suspect suspect[SCENARIO_SERVERS_MAX];
	struct members *members; /* of now */
	uint32_t views;          /* so many have come */
	uint32_t ops;
	struct driver_op op[SCENARIO_OPS_MAX];
	uint32_t broken_op;
	char broken[256]; /* the first property that did not hold */
};

/* driver_queue.c */
void driver_queue_put(struct driver_queue *q, const struct network_datagram *g);
/* Takes the first; there must be one. */
struct network_datagram driver_queue_take(struct driver_queue *q);

/* driver_op.c */
void driver_op_begin(struct driver *d, uint32_t index);
/* Though nothing was fed and nothing is due: nothing may come of it, whatever
 * woke the owner. */
void driver_op_judge_idle(struct driver *d, struct driver_op *op);
void driver_op_judge(struct driver *d, struct driver_op *op);
void driver_op_cancel(struct driver *d, struct driver_op *op);
/* The scenario's servers that stand at places of the snapshot. */
uint64_t driver_op_servers(const struct driver_op *op, uint64_t places);

/* driver_read.c */
void driver_read(struct driver *d, const struct network_datagram *g);

/* driver_check.c: each breaks the run when its property does not hold. */
void driver_broken(
    struct driver *d, const struct driver_op *op, const char *what);
uint64_t driver_check_seal(const struct members *m);
void driver_check_begun(struct driver *d, struct driver_op *op, uint64_t sus);
void driver_check_answer(struct driver *d, struct driver_op *op, uint32_t place,
    bool kept, const struct policy_op *before);
void driver_check_same(struct driver *d, const struct driver_op *op,
    const struct policy_op *before, const char *what);
void driver_check_send(
    struct driver *d, struct driver_op *op, const struct policy_action *a);
void driver_check_missed(
    struct driver *d, struct driver_op *op, const struct policy_action *a);
void driver_check_end(
    struct driver *d, struct driver_op *op, const struct policy_action *a);
/* After everything was judged and done at a time. */
void driver_check_rest(struct driver *d, struct driver_op *op);
void driver_check_snapshot(struct driver *d, const struct driver_op *op);

#endif
