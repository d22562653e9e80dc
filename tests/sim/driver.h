/*
 * Plays a scenario on the real core (daemon/core: policy, suspect, members) in
 * virtual time, as its owner would: what is readable is fed first, then
 * everything is judged, then callers are served. It writes a journal, and holds
 * the core to its properties after every event.
 *
 * A flaw breaks a rule on purpose, between the core and the journal, so that a
 * test can show that the oracle notices.
 */
#ifndef TESTS_SIM_DRIVER_H
#define TESTS_SIM_DRIVER_H

#include "tests/sim/journal.h"
#include "tests/sim/reach.h"
#include "tests/sim/scenario.h"

enum driver_flaw {
	FLAW_NONE,
	FLAW_YOUNGEST,        /* selects the youngest of those that answered */
	FLAW_NO_PREFERENCE,   /* whoever answers first decides */
	FLAW_LONG_PREFERENCE, /* keeps a candidate to the end of the round */
	FLAW_LATE_DELIVERY,   /* delivers after the completion */
	FLAW_NO_DELIVERY,     /* never delivers */
	FLAW_DELIVERS_TO_ALL, /* to those that have answered as well */
	FLAW_TIMER_FIRST,     /* a deadline goes before readable datagrams */
	FLAW_NO_FINAL,        /* ends with the last round */
	FLAW_PATIENT,         /* knows no caller's deadline */
	FLAW_TRUSTING,        /* prefers the oldest, suspected or not */
	FLAW_FORGIVING,       /* counts no misses */
	FLAW_UNFORGIVING,     /* late answers clear no suspicion */
	FLAW_LIVE_MEMBERSHIP, /* hears only the members of now */
	DRIVER_FLAWS
};

struct driver;

/* Aborts without memory. */
struct driver *driver_new(void);
void driver_free(struct driver *d);

/*
 * Plays it, fills an empty journal and counts what was reached. Returns NULL,
 * or the property that did not hold, with its operation in *op.
 */
const char *driver_run(struct driver *d, const struct scenario *sc,
    enum driver_flaw flaw, struct journal *out, struct reach *reach,
    uint32_t *op);

const char *driver_flaw_name(enum driver_flaw flaw);

/*
 * Is the flaw one of an operation's judgement? Else it is one of what the
 * operation is told, and the core rightly does as it was told.
 */
bool driver_flaw_judges(enum driver_flaw flaw);

#endif
