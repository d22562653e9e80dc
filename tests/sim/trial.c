/* See trial.h; trial_shrink() is shrink.c. */
#include "tests/sim/trial.h"

#include <string.h>

#include "tests/sim/oracle.h"

void
trial_init(struct trial *t, enum driver_flaw flaw)
{
	memset(t, 0, sizeof(*t));
	t->flaw = flaw;
	t->driver = driver_new();
	journal_init(&t->core);
	journal_init(&t->oracle);
}

void
trial_fini(struct trial *t)
{
	driver_free(t->driver);
	journal_fini(&t->core);
	journal_fini(&t->oracle);
}

bool
trial_run(struct trial *t, const struct scenario *sc)
{
	const char *broken;
	uint32_t op = 0;
	int differs;

	journal_clear(&t->core);
	journal_clear(&t->oracle);
	t->why[0] = '\0';
	broken = driver_run(t->driver, sc, t->flaw, &t->core, &t->reach, &op);
	oracle_predict(sc, &t->oracle);
	differs = journal_compare(
	    &t->core, &t->oracle, sc->ops, t->why, sizeof(t->why));
	if (differs >= 0) {
		t->op = (uint32_t)differs;
		return false;
	}
	if (broken == NULL || t->lenient)
		return true;
	t->op = op;
	snprintf(t->why, sizeof(t->why), "%s", broken);
	return false;
}
