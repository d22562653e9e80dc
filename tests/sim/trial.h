/*
 * One scenario on trial: the core plays it, the oracle predicts it, and the two
 * must tell the same. It keeps the memory that a run of many would allocate
 * again and again.
 */
#ifndef TESTS_SIM_TRIAL_H
#define TESTS_SIM_TRIAL_H

#include "tests/sim/driver.h"

struct trial {
	enum driver_flaw flaw;
	bool lenient; /* the properties do not count, only the comparison */
	struct driver *driver;
	struct journal core;
	struct journal oracle;
	struct reach reach;
	uint32_t op; /* the one that failed */
	char why[320];
};

void trial_init(struct trial *t, enum driver_flaw flaw);
void trial_fini(struct trial *t);

/* False: t->why tells how the two differ, or what does not hold. */
bool trial_run(struct trial *t, const struct scenario *sc);

/*
 * Makes a failing scenario as small as it gets while it still fails, runs it
 * once more, and returns how many were tried.
 */
unsigned trial_shrink(struct trial *t, struct scenario *sc);

#endif
