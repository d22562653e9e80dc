/*
 * rlctl acquire and errctl: what a limiter or an error control of the agent
 * says, waited for here, to an exit code. Silent when it is granted.
 */
#include "client-shim/rlctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl_options.h"

/* Whole ones that are enough. */
static uint64_t
millis(uint64_t us)
{
	return us / 1000 + (us % 1000 != 0);
}

static void
say(const char *command, const char *name, const struct rl_decision *d)
{
	const char *reason = rl_reason_name(d->reason);

	if (d->text[0] == '\0')
		rlctl_fail(0, "%s: %s: %s", command, name, reason);
	else if (d->outcome == RL_FAILED)
		rlctl_fail(0, "%s: %s: %s: %s", command, name, reason, d->text);
	else
		rlctl_fail(0, "%s: %s: %s", command, name, d->text);
}

/* Prints what there is to say; the exit status. */
static int
conclude(const struct rlctl *ctl, const struct rlctl_options *o,
    const char *command, const char *name, struct rl_decision *d)
{
	if (d->outcome == RL_DENIED && o->no_longer)
		snprintf(d->text, sizeof(d->text),
		    "the wait would be %" PRIu64
		    " ms, longer than --max-wait %" PRIu64,
		    millis(d->wait_us), o->max_wait_ms);
	if (ctl->json)
		rlctl_print_wait(stdout, d);
	else if (d->outcome != RL_ALLOWED)
		say(command, name, d);
	if (fflush(stdout) != 0)
		return rlctl_fail(
		    RL_FAILED, "%s: cannot write the result", command);
	if (o->by_permit)
		return d->permit ? 0 : 1;
	return (int)d->outcome;
}

int
rlctl_acquire(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_acquire acquire = {0};
	struct rl_client *client;
	struct rlctl_options o;
	struct rl_decision d;

	rlctl_options(ctl, &o, argc, argv, "kwtfpj");
	if (optind == argc)
		return rlctl_fail(RLCTL_USAGE, "acquire: name a limiter");
	acquire.limiter = argv[optind++];
	if (optind < argc)
		acquire.permits =
		    rlctl_number("PERMITS", argv[optind++], 1, RL_MAX_PERMITS);
	rlctl_no_more("acquire", argc, argv);
	acquire.key = o.key;
	acquire.key_len = o.key != NULL ? strlen(o.key) : 0;
	acquire.no_longer = o.no_longer;
	acquire.max_wait_us = o.max_wait_ms * 1000;
	client = rlctl_open(ctl, o.on_failure);
	rl_acquire(client, &acquire, &d);
	rlctl_close(client);
	return conclude(ctl, &o, "acquire", acquire.limiter, &d);
}

static int
begin(struct rlctl *ctl, const struct rlctl_options *o,
    const struct rl_error_control *control)
{
	struct rl_client *client = rlctl_open(ctl, o->on_failure);
	struct rl_decision d;

	rl_error_begin(client, control, &d);
	rlctl_close(client);
	return conclude(ctl, o, "errctl", control->control, &d);
}

static int
success(struct rlctl *ctl, const struct rl_error_control *control)
{
	struct rl_client *client = rlctl_open(ctl, RL_CLOSED);
	int status = rl_error_success(client, control);
	char what[RL_NAME_MAX + 16];

	snprintf(what, sizeof(what), "errctl: %s", control->control);
	if (status != RL_OK) {
		rlctl_call_failed(client, what, status);
		return RL_FAILED;
	}
	rlctl_close(client);
	return RLCTL_OK;
}

int
rlctl_errctl(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_error_control control = {0};
	struct rlctl_options o;
	int begins;

	if (argc < 2 ||
	    (strcmp(argv[1], "begin") != 0 && strcmp(argv[1], "success") != 0))
		return rlctl_fail(
		    RLCTL_USAGE, "errctl: takes begin NAME or success NAME");
	begins = strcmp(argv[1], "begin") == 0;
	argv[1] = argv[0]; /* getopt's name for rlctl errctl */
	argc--;
	argv++;
	rlctl_options(ctl, &o, argc, argv, begins ? "ktfpj" : "kt");
	if (optind == argc)
		return rlctl_fail(RLCTL_USAGE, "errctl: name an error control");
	control.control = argv[optind++];
	rlctl_no_more("errctl", argc, argv);
	control.key = o.key;
	control.key_len = o.key != NULL ? strlen(o.key) : 0;
	return begins ? begin(ctl, &o, &control) : success(ctl, &control);
}
