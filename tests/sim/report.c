/* See report.h. Every line is a TAP remark. */
#include "tests/sim/report.h"

#include <inttypes.h>

#include "tests/sim/transcript.h"

static void
write_script(const struct trial *t, const struct scenario *sc,
    const char *folder, FILE *f)
{
	char path[4096];
	FILE *script;

	snprintf(
	    path, sizeof(path), "%s/sim-%" PRIu64 ".rpl", folder, sc->seed);
	script = fopen(path, "w");
	if (script == NULL) {
		fprintf(f, "# %s: cannot be written\n", path);
		return;
	}
	transcript_write(script, sc, &t->oracle, t->op, t->why);
	fprintf(f, "# %s: %s\n", path,
	    fclose(script) == 0 ? "expects what the oracle does"
				: "cannot be written whole");
}

void
report_failure(
    struct trial *t, struct scenario *sc, const char *folder, FILE *f)
{
	unsigned tried;

	fprintf(f, "# scenario %" PRIu64 " fails: operation %u: %s\n", sc->seed,
	    t->op, t->why);
	tried = trial_shrink(t, sc);
	fprintf(
	    f, "# after %u edits: operation %u: %s\n", tried, t->op, t->why);
	scenario_print(sc, "#   ", f);
	write_script(t, sc, folder, f);
	fprintf(f, "# again: tests/sim/soak -s %" PRIu64 " -n 1\n", sc->seed);
	fflush(f);
}
