/*
 * Random scenarios, biased towards trouble: times that meet exactly, dead
 * servers, long stalls. A seed always gives the same one.
 */
#ifndef TESTS_SIM_GENERATE_H
#define TESTS_SIM_GENERATE_H

#include "tests/sim/scenario.h"

void generate_scenario(struct scenario *sc, uint64_t seed);

/* The seed of scenario number i of a run; the first is the run's own. */
uint64_t generate_seed(uint64_t run, uint64_t i);

#endif
