/*
 * The oracle's idea of a policy: what section 9.3.1 of the r-client
 * specification makes of its parameters.
 */
#ifndef TESTS_SIM_TIMETABLE_H
#define TESTS_SIM_TIMETABLE_H

#include "tests/sim/scenario.h"

/* The most rounds a policy may have: the initial one and 31 replays. */
#define TIMETABLE_ROUNDS_MAX 32

/* Section 9.3.1 in microseconds from the start of an operation. */
struct timetable {
	uint32_t rounds;    /* transmissions: N + 1 */
	uint32_t intervals; /* the same, or one more with a final interval */
	int64_t prefer[TIMETABLE_ROUNDS_MAX + 1]; /* preference deadlines */
	int64_t end[TIMETABLE_ROUNDS_MAX + 1];
	int64_t horizon; /* H */
};

/* Returns NULL, or the field that breaks section 9.3.1 or does not fit the
 * wire; then nothing begins. */
const char *timetable_make(
    const struct scenario_policy *p, struct timetable *t);

#endif
