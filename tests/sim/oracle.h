/*
 * What ought to become of every operation of a scenario, worked out from the
 * text of the r-client specification (sections 6.2, 6.3 and 9.3) and, for the
 * adaptive preference, from that of suspect_after in rl-agent.json(5). It
 * shares no code and no data with daemon/: whole lives are computed in one go,
 * there are no events and no states.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "tests/sim/journal.h"
#include "tests/sim/scenario.h"

/* Fills an empty journal. */
void oracle_predict(const struct scenario *sc, struct journal *out);

#endif
