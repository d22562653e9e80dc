/*
 * rlctl bench: options to a load, which runs until its bound, a signal or an
 * error; what was measured until then is printed in any case.
 */
#include "client-shim/rlctl_bench.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_options.h"

#define DEFAULT_DURATION_US 5000000
#define MAX_DURATION_US     (INT64_C(7) * 24 * 3600 * 1000000)
#define MAX_CHECKS          UINT64_C(1000000000000)

enum {
	OPT_KEY = 256,
	OPT_KEYS,
	OPT_ORDER,
	OPT_CONNECTIONS,
	OPT_WINDOW,
	OPT_RATE,
	OPT_TOKENS,
	OPT_DEADLINE,
	OPT_CHECKS,
	OPT_DURATION,
	OPT_WARMUP,
	OPT_TIMEOUT,
	OPT_JSON,
};

static const struct option longs[] = {
    {"key", required_argument, NULL, OPT_KEY},
    {"keys", required_argument, NULL, OPT_KEYS},
    {"order", required_argument, NULL, OPT_ORDER},
    {"connections", required_argument, NULL, OPT_CONNECTIONS},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"rate", required_argument, NULL, OPT_RATE},
    {"tokens", required_argument, NULL, OPT_TOKENS},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    {"checks", required_argument, NULL, OPT_CHECKS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"json", no_argument, NULL, OPT_JSON},
    {NULL, 0, NULL, 0},
};

static enum load_order
read_order(const char *text)
{
	if (strcmp(text, "random") == 0)
		return LOAD_RANDOM;
	if (strcmp(text, "sequential") != 0)
		exit(rlctl_fail(RLCTL_USAGE,
		    "--order: must be sequential or random, not \"%s\"", text));
	return LOAD_SEQUENTIAL;
}

/* A whole number with its unit; microseconds. */
static int64_t
read_duration(const char *text)
{
	static const struct {
		const char *name;
		int64_t us;
	} units[] = {{"ms", 1000}, {"s", 1000000}, {"m", 60000000}};
	unsigned long long v = 0;
	char *end = NULL;
	size_t i;

	errno = 0;
	if (text[0] >= '0' && text[0] <= '9')
		v = strtoull(text, &end, 10);
	for (i = 0; end != NULL && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0 && errno == 0 && v > 0 &&
		    v <= (unsigned long long)(MAX_DURATION_US / units[i].us))
			return (int64_t)v * units[i].us;
	exit(rlctl_fail(RLCTL_USAGE,
	    "--duration: must be a whole number of ms, s or m such as 500ms, "
	    "10s or 2m, up to 10080m, not \"%s\"",
	    text));
}

static void
take_option(struct rlctl *ctl, struct rlctl_bench *b, int c)
{
	struct load_options *o = &b->load;

	switch (c) {
	case OPT_KEY:
		o->key = optarg;
		break;
	case OPT_KEYS:
		o->keys = rlctl_long_number("--keys", optarg, 1, LOAD_MAX_KEYS);
		break;
	case OPT_ORDER:
		o->order = read_order(optarg);
		break;
	case OPT_CONNECTIONS:
		o->connections = rlctl_number(
		    "--connections", optarg, 1, LOAD_MAX_CONNECTIONS);
		break;
	case OPT_WINDOW:
		o->window =
		    rlctl_number("--window", optarg, 1, LOAD_MAX_WINDOW);
		break;
	case OPT_RATE:
		o->rate = rlctl_number("--rate", optarg, 1, LOAD_MAX_RATE);
		break;
	case OPT_TOKENS:
		o->tokens = rlctl_options_tokens(optarg);
		break;
	case OPT_DEADLINE:
		o->deadline_ms =
		    rlctl_number("--deadline", optarg, 1, UINT32_MAX);
		break;
	case OPT_CHECKS:
		b->checks =
		    rlctl_long_number("--checks", optarg, 1, MAX_CHECKS);
		break;
	case OPT_DURATION:
		b->duration_us = read_duration(optarg);
		break;
	case OPT_WARMUP:
		b->warmup =
		    rlctl_long_number("--warmup", optarg, 0, MAX_CHECKS);
		break;
	case OPT_TIMEOUT:
		o->patience_ms = rlctl_options_timeout(optarg);
		break;
	case OPT_JSON:
		ctl->json = 1;
		break;
	default:
		exit(RLCTL_USAGE); /* getopt has said why */
	}
}

static bool
signalled(void *arg)
{
	(void)arg;
	return rlctl_signalled();
}

static void
parse(struct rlctl *ctl, struct rlctl_bench *b, int argc, char **argv)
{
	char err[LOAD_ERR_MAX];
	int c;

	*b = (struct rlctl_bench){.load = {.keys = 1,
				      .tokens = 1,
				      .connections = 1,
				      .window = 1,
				      .stop = signalled}};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		take_option(ctl, b, c);
	if (optind == argc)
		exit(rlctl_fail(RLCTL_USAGE, "bench: name a rule"));
	b->load.rule = argv[optind++];
	rlctl_no_more("bench", argc, argv);
	if (load_check_options(&b->load, err) != 0)
		exit(rlctl_fail(RLCTL_USAGE, "bench: %s", err));
	if (b->checks == 0 && b->duration_us == 0)
		b->duration_us = DEFAULT_DURATION_US;
	if (b->load.rate > 0 && b->duration_us > 0 &&
	    b->duration_us < 1000000 / b->load.rate)
		exit(rlctl_fail(RLCTL_USAGE,
		    "bench: at this rate no check is due in that time"));
	b->load.socket = rlctl_socket(ctl);
}

/* What was measured is whole or a beginning; of a warm-up nothing is. */
static void
run(struct rlctl_bench *b, struct load *load, char err[LOAD_ERR_MAX])
{
	int rc = 0;

	if (b->warmup > 0)
		rc = load_run(load, b->warmup, 0, err);
	load_reset(load);
	if (rc == 0 && !rlctl_signalled())
		rc = load_run(load, b->checks, b->duration_us, err);
	if (rc != 0)
		b->error = err;
	else
		b->interrupted = rlctl_signalled();
}

/* Was not one check decided, be it by what stands in for a server? */
static bool
undecided(const struct load_result *r)
{
	return r->checks > 0 && r->allowed + r->denied + r->local == 0;
}

/* The line on what did not go well, if anything did not. */
static int
tell(const struct rlctl_bench *b, const struct load *load)
{
	const struct load_result *r = load_result(load);
	const uint64_t n = r->failed + r->cancelled;
	const char *what = "failed or cancelled";

	if (n == 0 && b->error == NULL)
		return RLCTL_OK;
	if (n == 0)
		return rlctl_fail(RLCTL_ERROR, "bench: %s", b->error);
	if (r->cancelled == 0)
		what = "failed";
	else if (r->failed == 0)
		what = "cancelled";
	return rlctl_fail(
	    b->error != NULL || undecided(r) ? RLCTL_ERROR : RLCTL_OK,
	    "bench: %s%s%" PRIu64 " check%s %s%s: %s",
	    b->error != NULL ? b->error : "", b->error != NULL ? "; " : "", n,
	    n == 1 ? "" : "s", what, n == 1 ? "" : ", the first",
	    load_first_failure(load));
}

int
rlctl_bench(struct rlctl *ctl, int argc, char **argv)
{
	struct rlctl_bench bench;
	char err[LOAD_ERR_MAX];
	struct load *load;
	int status, told;

	parse(ctl, &bench, argc, argv);
	rlctl_watch_signals();
	load = load_open(&bench.load, err);
	if (load == NULL)
		return rlctl_fail(RLCTL_ERROR, "bench: %s", err);
	run(&bench, load, err);
	rlctl_bench_print(ctl, &bench, load);
	status = rlctl_written("bench");
	told = tell(&bench, load);
	load_close(load);
	return told != RLCTL_OK ? told : status;
}
