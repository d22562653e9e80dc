/*
 * bench [FILE]: measures what users pay for the agent, against floors
 * measured beside it in the same round, prints a table, and writes FILE as
 * JSON. It gates nothing. Rounds are interleaved: every group of rows has its
 * turn in a round before the next begins.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct group {
	const char *name;
	unsigned rounds;
	int (*round)(struct bench *b);
};

static const struct group groups[] = {
    {"latency", 9, rows_latency},
    {"cpu", 9, rows_cpu},
    {"dead server", 5, rows_dead},
    {"memory", 3, rows_memory},
    {"calls", 3, rows_calls},
    {"allocations", 3, rows_allocations},
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static int
run_rounds(struct bench *b)
{
	unsigned round, more = 1;
	size_t i;

	for (round = 0; more > 0; round++) {
		for (more = 0, i = 0; i < GROUPS; i++) {
			if (round >= groups[i].rounds)
				continue;
			if (groups[i].round(b) != 0)
				return lab_fail("%s, round %u: given up",
				    groups[i].name, round + 1);
			more++;
		}
	}
	return 0;
}

static int
open_bench(struct bench *b)
{
	const struct lab_wanted quick = {.servers = 1};
	const struct lab_wanted slow = {
	    .servers = 1, .delay_ms = BENCH_SLOW_MS};
	const struct lab_special none = {0};

	if (lab_open(&b->lab) != 0 ||
	    lab_start_sandbox(&b->lab, &quick, &b->sandbox) != 0 ||
	    lab_start_sandbox(&b->lab, &slow, &b->slow) != 0 ||
	    lab_start_agent(&b->lab, &b->sandbox, &none, &b->agent) != 0)
		return -1;
	b->direct = direct_open(&b->lab.cred, &b->sandbox);
	return b->direct != NULL ? 0 : lab_fail("the direct client");
}

static void
close_bench(struct bench *b)
{
	direct_close(b->direct);
	rl_close(b->agent.client);
	lab_close(&b->lab);
}

static int
publish(const struct bench *b, const char *path)
{
	report_print(&b->report, stdout);
	fputs(
	    "\nEach value is a median over interleaved rounds. Compare ratios "
	    "between runs,\nnever values: they are this machine's, now. The "
	    "CPU rows count the agent's\nprocess alone, kernel work included; "
	    "how many decisions pass in a second is no\nrow, since the "
	    "sandbox may be what limits it. See tests/bench/README.\n",
	    stdout);
	if (path != NULL && report_write(&b->report, path) != 0)
		return lab_fail("%s", path);
	return 0;
}

int
main(int argc, char **argv)
{
	struct bench *b;
	int number, rc;

	if (argc > 2) {
		fputs("usage: bench [FILE]\n", stderr);
		return 64;
	}
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return 1;
	lab_catch_signals();
	rc = open_bench(b);
	if (rc == 0)
		rc = run_rounds(b);
	if (rc == 0)
		rc = publish(b, argv[1]);
	close_bench(b);
	free(b);
	number = lab_signal();
	if (number != 0)
		return 128 + number;
	return rc == 0 ? 0 : 1;
}
