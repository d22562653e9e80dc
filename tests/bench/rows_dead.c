/*
 * What a dead server costs: three servers, the oldest of which is silent, by
 * the policy as specified and with the adaptive preference, each over three
 * servers that are all alive. Takes turns check by check.
 */
#include "tests/bench/bench.h"

#include <errno.h>

#define CHECKS        50
#define UNIT_MS       20 /* the recommended one: P(0) is as long */
#define SUSPECT_AFTER 3

struct side {
	const char *row; /* NULL: the floor of the others */
	bool dead;
	unsigned suspect_after;
	struct lab_sandbox sandbox;
	struct lab_agent agent;
	double us[CHECKS];
};

static struct side sides[] = {
    {.row = NULL},
    {.row = "one check, oldest of 3 dead, specified", .dead = true},
    {.row = "one check, oldest of 3 dead, suspect_after 3",
	.dead = true,
	.suspect_after = SUSPECT_AFTER},
};

#define SIDES (sizeof(sides) / sizeof(sides[0]))

static int
open_side(struct lab *lab, struct side *side)
{
	const struct lab_wanted wanted = {
	    .servers = LAB_MAX_SERVERS, .oldest_dead = side->dead};
	const struct lab_special special = {
	    .unit_ms = UNIT_MS, .suspect_after = side->suspect_after};
	double us;

	if (lab_start_sandbox(lab, &wanted, &side->sandbox) != 0 ||
	    lab_start_agent(lab, &side->sandbox, &special, &side->agent) != 0)
		return -1;
	/* What comes first is not the steady state. */
	for (unsigned i = 0; i <= side->suspect_after; i++) {
		if (bench_check(side->agent.client, i, &us) != 0)
			return -1;
	}
	return 0;
}

static void
close_side(struct lab *lab, struct side *side)
{
	lab_stop_agent(lab, &side->agent);
	lab_end(lab, side->sandbox.pid, SIGKILL);
}

static int
run(void)
{
	for (unsigned i = 0; i < CHECKS; i++) {
		for (size_t k = 0; k < SIDES; k++) {
			if (bench_check(
				sides[k].agent.client, i, &sides[k].us[i]) != 0)
				return -1;
		}
	}
	errno = EINTR;
	return lab_signal() ? lab_fail("check") : 0;
}

int
rows_dead(struct bench *b)
{
	size_t open = 0;
	int rc = 0;

	while (open < SIDES && rc == 0)
		rc = open_side(&b->lab, &sides[open++]);
	if (rc == 0)
		rc = run();
	for (size_t k = 1; k < SIDES && rc == 0; k++)
		report_add_over(&b->report, sides[k].row, "us",
		    bench_quantile(sides[k].us, CHECKS, 0.5),
		    bench_quantile(sides[0].us, CHECKS, 0.5));
	while (open > 0)
		close_side(&b->lab, &sides[--open]);
	return rc;
}
