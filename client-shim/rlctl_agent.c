/*
 * rlctl report, ping and wait: one call each on the application socket; and
 * set-rate, reload, drain and quit, on the control socket.
 */
#include "client-shim/rlctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_options.h"
#include "client-shim/rlctl_spec.h"

/* Patience: a reload reads files, a drain waits for the last check. */
#define RELOAD_MS 15000
#define DRAIN_MS  600000

/* Permits a second. */
#define MIN_RATE 0.001
#define MAX_RATE 1e6

static int
send_report(struct rl_client *client, const struct rlctl_options *o,
    const char *tracker, uint32_t ms)
{
	return rl_report(client, o->tenant, tracker, o->key,
	    o->key != NULL ? strlen(o->key) : 0, ms);
}

int
rlctl_report(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	struct rlctl_options o;
	struct rl_guard spec;
	uint32_t ms;
	int wanted, status;

	rlctl_options(ctl, &o, argc, argv, "tTrk");
	if (o.tracker != NULL && o.key != NULL)
		return rlctl_fail(RLCTL_USAGE,
		    "report: --key goes with a tracker of the configuration, "
		    "not with --tracker");
	wanted = o.tracker != NULL ? 1 : 2;
	if (argc - optind != wanted)
		return rlctl_fail(RLCTL_USAGE,
		    o.tracker != NULL ? "report: takes MS after --tracker"
				      : "report: takes TRACKER and MS");
	ms = rlctl_number("MS", argv[argc - 1], 0, UINT32_MAX);
	if (o.tracker != NULL)
		rlctl_spec_tracker("--tracker", o.tracker, &spec);
	client = rlctl_open(ctl, RL_CLOSED);
	status = o.tracker != NULL
		     ? rl_report_adhoc(client, o.tenant, &spec, ms)
		     : send_report(client, &o, argv[optind], ms);
	if (status != RL_OK)
		return rlctl_call_failed(client, "report", status);
	rlctl_close(client);
	return RLCTL_OK;
}

int
rlctl_ping(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	uint64_t us;
	int status;

	rlctl_options_alone(ctl, "ping", argc, argv, "tj");
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_ping(client, ctl->timeout_ms, &us);
	if (status != RL_OK)
		return rlctl_call_failed(client, "ping", status);
	rlctl_close(client);
	if (ctl->json)
		printf("{\"round_trip_us\":%" PRIu64 "}\n", us);
	else
		printf("answered in %.3f ms\n", (double)us / 1e3);
	return rlctl_written("ping");
}

int
rlctl_wait(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	int status;

	rlctl_options_alone(ctl, "wait", argc, argv, "t");
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_wait(client, ctl->timeout_ms);
	if (status != RL_OK)
		return rlctl_call_failed(client, "wait", status);
	rlctl_close(client);
	return RLCTL_OK;
}

/* The end of a call on the control socket: takes client, the exit status. */
static int
controlled(
    struct rlctl *ctl, struct rl_client *client, const char *what, int status)
{
	if (status == RL_EUNAVAILABLE && ctl->control == NULL)
		return rlctl_fail(RLCTL_ERROR,
		    "%s: %s; --control tells where else it is", what,
		    rl_last_text(client));
	if (status != RL_OK)
		return rlctl_call_failed(client, what, status);
	if (*rl_last_text(client) != '\0') /* done, and yet */
		rlctl_fail(RLCTL_OK, "%s: %s", what, rl_last_text(client));
	rlctl_close(client);
	return RLCTL_OK;
}

/*
 * What takes long, patience_ms, must not take that long to find that there is
 * no agent; 0: it does not take long. --timeout is for both.
 */
static int
control(struct rlctl *ctl, const char *what, uint32_t patience_ms, int argc,
    char **argv)
{
	struct rl_client *client;
	int status = RL_OK;

	rlctl_options_alone(ctl, what, argc, argv, "t");
	client = rlctl_open_control(ctl);
	if (ctl->timeout_ms != 0)
		patience_ms = ctl->timeout_ms;
	else if (patience_ms != 0)
		status = rl_ping(client, 0, NULL);
	if (status == RL_OK)
		status = rl_control(client, what, patience_ms);
	return controlled(ctl, client, what, status);
}

int
rlctl_reload(struct rlctl *ctl, int argc, char **argv)
{
	return control(ctl, "reload", RELOAD_MS, argc, argv);
}

int
rlctl_drain(struct rlctl *ctl, int argc, char **argv)
{
	return control(ctl, "drain", DRAIN_MS, argc, argv);
}

int
rlctl_quit(struct rlctl *ctl, int argc, char **argv)
{
	return control(ctl, "quit", 0, argc, argv);
}

/* Digits, and maybe a point between digits: none of what strtod() takes, too,
 * such as hexadecimal, inf, nan and exponents. */
static double
read_rate(const char *text)
{
	const size_t whole = strspn(text, "0123456789");
	const char *end = text + whole;
	double rate = 0;

	if (*end == '.' && end[1] != '\0')
		end += 1 + strspn(end + 1, "0123456789");
	if (whole > 0 && *end == '\0')
		rate = strtod(text, NULL);
	if (!(rate >= MIN_RATE && rate <= MAX_RATE))
		exit(rlctl_fail(RLCTL_USAGE,
		    "RATE: must be a decimal number in %g..%.0f, not \"%s\"",
		    MIN_RATE, MAX_RATE, text));
	return rate;
}

int
rlctl_set_rate(struct rlctl *ctl, int argc, char **argv)
{
	struct rlctl_options none;
	struct rl_client *client;
	double rate;
	int status;

	rlctl_options(ctl, &none, argc, argv, "t");
	if (argc - optind != 2)
		return rlctl_fail(
		    RLCTL_USAGE, "set-rate: takes LIMITER and RATE");
	rate = read_rate(argv[optind + 1]);
	client = rlctl_open_control(ctl);
	status = rl_set_rate(client, argv[optind], rate, ctl->timeout_ms);
	return controlled(ctl, client, "set-rate", status);
}
