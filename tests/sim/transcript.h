/*
 * An operation's journal as a replay script (tests/replay/README), which says
 * what the operation was told and expects what the journal tells.
 */
#ifndef TESTS_SIM_TRANSCRIPT_H
#define TESTS_SIM_TRANSCRIPT_H

#include <stdio.h>

#include "tests/sim/journal.h"

void transcript_write(FILE *f, const struct scenario *sc,
    const struct journal *j, uint32_t op, const char *why);

#endif
