/*
 * What became of each operation of a scenario: its sends, what was read for
 * it, its end. The driver writes down one of the core and the oracle one of
 * what ought to be. Servers are the scenario's, by their place in it, a bit
 * each in a set.
 */
#ifndef TESTS_SIM_JOURNAL_H
#define TESTS_SIM_JOURNAL_H

#include <stddef.h>

#include "tests/sim/network.h"
#include "tests/sim/scenario.h"

/* Rounds and one completion delivery. */
#define JOURNAL_SENDS_MAX 33

enum journal_end {
	END_NONE,
	END_SELECTED,
	END_TIMEOUT,
	END_NO_SERVER,
	END_NOT_SENT,
	END_CANCELLED,
};

struct journal_send {
	int64_t at;
	uint64_t to;
	uint64_t taken; /* by the kernel */
	uint32_t round;
	bool delivery;
};

struct journal_read {
	int64_t at; /* when the owner read it */
	struct network_datagram what;
};

struct journal_op {
	int64_t began;
	uint32_t ranked; /* the snapshot, oldest first */
	uint8_t rank[SCENARIO_SERVERS_MAX];
	uint64_t suspected; /* of the snapshot, when it began */
	uint32_t sends;
	struct journal_send send[JOURNAL_SENDS_MAX];
	int64_t final_at;  /* the final interval began, or never did */
	int64_t missed_at; /* SCENARIO_NEVER: it was not */
	uint32_t missed;
	enum journal_end end;
	int64_t ended_at;
	uint32_t round;    /* in which it ended; N + 1: the final interval */
	uint32_t selected; /* with END_SELECTED, as is denied */
	bool denied;
	size_t reads; /* in the order of reading, to the end of the run */
	size_t room;
	struct journal_read *read;
};

struct journal {
	const char *refused; /* NULL, or the field for which the policy was,
			      * and so nothing began */
	struct journal_op op[SCENARIO_OPS_MAX];
};

void journal_init(struct journal *j);
void journal_fini(struct journal *j);
/* Empties it for another run and keeps its memory. */
void journal_clear(struct journal *j);

/* False when there is no room: more sends than a policy can have. */
bool journal_add_send(struct journal_op *op, const struct journal_send *send);
void journal_add_read(
    struct journal_op *op, int64_t at, const struct network_datagram *what);

/*
 * The first operation of which the two tell differently, or -1. why then says
 * what is different, in one line.
 */
int journal_compare(const struct journal *core, const struct journal *oracle,
    uint32_t ops, char *why, size_t size);

const char *journal_end_name(enum journal_end end);

#endif
