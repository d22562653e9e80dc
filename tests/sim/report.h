/*
 * What is said and left behind of a scenario that fails: it is shrunk, printed
 * and written as a replay script of the operation that went wrong, which
 * expects what the oracle does.
 */
#ifndef TESTS_SIM_REPORT_H
#define TESTS_SIM_REPORT_H

#include "tests/sim/trial.h"

/* Changes sc to its shrunken form. The script is sim-SEED.rpl in folder. */
void report_failure(
    struct trial *t, struct scenario *sc, const char *folder, FILE *f);

#endif
