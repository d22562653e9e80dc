/*
 * bench [OPTIONS] [FILE]: measures the agent against floors and rivals that
 * are measured beside it in the same round, prints a table, and writes FILE as
 * JSON. It gates nothing. Rounds are interleaved: every group of rows has its
 * turn in a round before the next begins, so that a bad minute of the machine
 * is one sample of many rows and not all samples of one.
 */
#include "tests/bench/bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "sandbox/number.h"

/* In the order of the table. */
static const struct group *const groups[] = {
    &group_cpu,
    &group_held,
    &group_keys,
    &group_servers,
    &group_latency,
    &group_redis,
    &group_flood,
    &group_dead,
    &group_memory,
    &group_allocations,
    &group_calls,
};

/* A group may add four samples to a figure in a round. */
#define MAX_ROUNDS (REPORT_SAMPLES / 4)

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

struct options {
	bool help;
	bool quick;
	unsigned rounds;  /* 0: each group's own */
	const char *only; /* NULL: all rows */
	const char *file; /* NULL: none */
	char **arguments; /* all of them, up to a NULL */
};

static const char usage[] =
    "usage: bench [--quick] [--rounds N] [--only TEXT] [FILE]\n"
    "  --quick      one round of very few checks: shows that all works, and\n"
    "               judges nothing\n"
    "  --rounds N   1 to 32, instead of each row's own number\n"
    "  --only TEXT  rows with TEXT in their names\n"
    "FILE gets the results as JSON.\n";

static int
refuse(const char *what, const char *text, const char *why)
{
	fprintf(stderr, "bench: %s%s: %s\n%s", what, text, why, usage);
	return EX_USAGE;
}

static int
parse_rounds(const char *text, unsigned *out)
{
	uint64_t rounds;

	if (number_parse(text, 1, MAX_ROUNDS, &rounds) != 0)
		return refuse("--rounds ", text, "not a number from 1 to 32");
	*out = (unsigned)rounds;
	return 0;
}

/* 0, or the status to exit with. */
static int
parse_options(int argc, char **argv, struct options *out)
{
	static const struct option known[] = {
	    {"quick", no_argument, NULL, 'q'},
	    {"rounds", required_argument, NULL, 'r'},
	    {"only", required_argument, NULL, 'o'},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	int c, status = 0;

	*out = (struct options){0};
	while (status == 0 &&
	       (c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (c == 'q') {
			out->quick = true;
		} else if (c == 'o') {
			out->only = optarg;
		} else if (c == 'r') {
			status = parse_rounds(optarg, &out->rounds);
		} else if (c == 'h') {
			out->help = true;
		} else { /* it has been said what is wrong */
			fputs(usage, stderr);
			status = EX_USAGE;
		}
	}
	if (status == 0 && argc - optind > 1)
		status = refuse("", argv[optind + 1], "more than one FILE");
	out->file = argv[optind]; /* which ends with NULL */
	out->arguments = argv + 1;
	return status;
}

static unsigned
rounds_of(const struct group *group, const struct options *options)
{
	if (options->rounds > 0)
		return options->rounds;
	return options->quick ? 1 : group->rounds;
}

static bool
is_wanted(const struct bench *b, const struct group *group)
{
	enum row row = group->first;

	while (row < group->last && !bench_wants(b, row))
		row++;
	return bench_wants(b, row);
}

/* Its rows get no value; those of the others may. */
static void
give_up(struct bench *b, const struct group *group)
{
	char why[REPORT_NOTE];

	snprintf(
	    why, sizeof(why), "failed: stderr tells why (%s)", group->name);
	for (enum row row = group->first; row <= group->last; row++)
		report_skip(&b->report, row, why);
	errno = 0;
	lab_fail("%s: given up", group->name);
}

struct turn {
	unsigned left_out; /* rounds */
	bool open;
	bool given_up;
	void *state;
};

/*
 * A round that fails is left out, since one lost datagram can do that; but of
 * a value most rounds must be behind.
 */
static void
take_turn(
    struct bench *b, const struct group *group, struct turn *turn, unsigned of)
{
	if (!turn->open) {
		fprintf(stderr, "bench: %s, %u round%s\n", group->name, of,
		    of > 1 ? "s" : "");
		turn->state = group->open(b);
		turn->open = true;
	}
	if (turn->state != NULL && group->round(b, turn->state) == 0)
		return;
	turn->left_out++;
	if (turn->state == NULL || turn->left_out > of / 3) {
		turn->given_up = true;
		give_up(b, group);
	}
}

/* 0, or -1 when rows have no value that should have one. */
static int
run_rounds(struct bench *b, const struct options *options)
{
	struct turn turns[GROUPS] = {0};
	bool failed = false;
	unsigned round, rounds, more = 1, left_out = 0;
	size_t i;

	for (round = 0; more > 0 && lab_signal() == 0; round++) {
		for (more = 0, i = 0; i < GROUPS && lab_signal() == 0; i++) {
			rounds = rounds_of(groups[i], options);
			if (turns[i].given_up || !is_wanted(b, groups[i]) ||
			    round >= rounds)
				continue;
			take_turn(b, groups[i], &turns[i], rounds);
			more++;
		}
	}
	for (i = 0; i < GROUPS; i++) {
		if (turns[i].state != NULL)
			groups[i]->close(b, turns[i].state);
		failed = failed || turns[i].given_up;
		left_out += turns[i].left_out;
	}
	report_figure(&b->report, "rounds left out, of all rows", "", left_out);
	return failed || lab_signal() != 0 ? -1 : 0;
}

static int
open_bench(struct bench *b)
{
	const struct lab_wanted wanted = {.servers = 1};
	const struct lab_special none = {0};

	if (lab_open(&b->lab) != 0)
		return -1;
	b->crypto = crypto_open(&b->lab.cred);
	if (b->crypto == NULL ||
	    lab_start_responder(&b->lab, &wanted, &b->responder) != 0 ||
	    lab_start_relay(&b->lab, &b->responder, false, &b->relay) != 0)
		return -1;
	return lab_start_agent(&b->lab, &b->responder, &none, &b->agent);
}

static void
close_bench(struct bench *b)
{
	crypto_close(b->crypto);
	rl_close(b->agent.client);
	lab_close(&b->lab);
}

/* Is there any? */
static bool
choose(struct report *r, const char *only)
{
	bool any = false;

	for (enum row row = 0; row < ROWS; row++) {
		r->rows[row].shown = strstr(row_goals[row].name, only) != NULL;
		any = any || r->rows[row].shown;
	}
	return any;
}

static int
publish(struct bench *b, const struct options *options)
{
	report_figure(&b->report, "checks that relays sent again", "",
	    lab_sent_again(&b->lab));
	report_print(&b->report, stdout);
	fputs("\nEach value is a median over rounds; a ratio is taken round by "
	      "round. Ratios can\nbe compared with those of other runs; what "
	      "was measured is this machine's, now.\nCPU is one process's, "
	      "kernel work included, in us a decision. tests/bench/README\n"
	      "tells how each is measured.\n",
	    stdout);
	if (options->file != NULL &&
	    report_write(&b->report, options->arguments, options->file) != 0)
		return lab_fail("%s", options->file);
	return 0;
}

/* Thousands of connections, in the programs under test as well. */
static void
raise_limits(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0)
		return;
	lim.rlim_cur = lim.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &lim);
}

static int
run(struct bench *b, const struct options *options)
{
	int rc;

	b->quick = options->quick;
	for (enum row row = 0; row < ROWS; row++)
		b->report.rows[row].judged = !options->quick;
	raise_limits();
	lab_catch_signals();
	rc = open_bench(b);
	if (rc == 0) {
		rc = run_rounds(b, options);
		if (lab_signal() == 0 && publish(b, options) != 0)
			rc = -1;
	}
	close_bench(b);
	if (lab_signal() != 0) {
		fputs("bench: interrupted\n", stderr);
		return 128 + lab_signal();
	}
	return rc == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct options options;
	struct bench *b;
	int status = parse_options(argc, argv, &options);

	if (status != 0)
		return status;
	if (options.help)
		return fputs(usage, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return 1;
	report_init(&b->report, row_goals, ROWS);
	if (options.only == NULL || choose(&b->report, options.only)) {
		status = run(b, &options);
	} else {
		fprintf(stderr, "bench: no row has \"%s\" in its name\n",
		    options.only);
		status = EX_USAGE;
	}
	free(b);
	return status;
}
