/* rlctl check: options to a check, its decision to an exit code. */
#include "client-shim/rlctl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_options.h"
#include "client-shim/rlctl_spec.h"

struct check_options {
	struct rl_check check;
	struct rl_resource resources[RL_MAX_RESOURCES];
	int windows[RL_MAX_RESOURCES]; /* was it given? */
	int limits[RL_MAX_RESOURCES];
	struct rl_guard guards[RL_MAX_GUARDS];
	enum rl_failure on_failure;
	int by_permit;
	int detail;
	int zero_tokens; /* asked for none: the shim would take it for one */
};

enum {
	OPT_KEY = 256,
	OPT_TOKENS,
	OPT_TIMEOUT,
	OPT_DETAIL,
	OPT_PERMIT,
	OPT_ON_FAILURE,
	OPT_BUCKET,
	OPT_WINDOW,
	OPT_LIMIT,
	OPT_GUARD,
	OPT_TENANT,
	OPT_LABEL,
	OPT_JSON,
};

static const struct option longs[] = {
    {"key", required_argument, NULL, OPT_KEY},
    {"tokens", required_argument, NULL, OPT_TOKENS},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"detail", no_argument, NULL, OPT_DETAIL},
    {"permit", no_argument, NULL, OPT_PERMIT},
    {"on-failure", required_argument, NULL, OPT_ON_FAILURE},
    {"bucket", required_argument, NULL, OPT_BUCKET},
    {"window", required_argument, NULL, OPT_WINDOW},
    {"limit", required_argument, NULL, OPT_LIMIT},
    {"guard", required_argument, NULL, OPT_GUARD},
    {"tenant", required_argument, NULL, OPT_TENANT},
    {"label", required_argument, NULL, OPT_LABEL},
    {"json", no_argument, NULL, OPT_JSON},
    {NULL, 0, NULL, 0},
};

static void
add_bucket(struct check_options *o, const char *name)
{
	struct rl_resource *r;

	if (o->check.resource_count == RL_MAX_RESOURCES)
		exit(rlctl_fail(
		    RLCTL_USAGE, "--bucket: at most %d", RL_MAX_RESOURCES));
	r = &o->resources[o->check.resource_count++];
	r->bucket = name;
	r->bucket_len = strlen(name);
	r->tokens = 1;
}

/* The bucket that --window, --limit or --tokens is about. */
static struct rl_resource *
last_bucket(struct check_options *o, const char *option)
{
	if (o->check.resource_count == 0)
		exit(rlctl_fail(
		    RLCTL_USAGE, "%s: comes after its --bucket", option));
	return &o->resources[o->check.resource_count - 1];
}

static void
add_guard(struct check_options *o, const char *text)
{
	if (o->check.guard_count == RL_MAX_GUARDS)
		exit(rlctl_fail(
		    RLCTL_USAGE, "--guard: at most %d", RL_MAX_GUARDS));
	rlctl_spec_guard("--guard", text, &o->guards[o->check.guard_count++]);
}

static void
set_tokens(struct check_options *o, const char *text)
{
	uint32_t n = rlctl_number("--tokens", text, 0, UINT32_MAX);

	if (n == 0)
		o->zero_tokens = 1;
	else if (o->check.resource_count > 0)
		o->resources[o->check.resource_count - 1].tokens = n;
	else
		o->check.tokens = n;
}

static void
take_option(struct rlctl *ctl, struct check_options *o, int c)
{
	switch (c) {
	case OPT_KEY:
		o->check.key = optarg;
		o->check.key_len = strlen(optarg);
		break;
	case OPT_TOKENS:
		set_tokens(o, optarg);
		break;
	case OPT_TIMEOUT:
		o->check.timeout_ms = rlctl_options_timeout(optarg);
		break;
	case OPT_DETAIL:
		o->detail = 1;
		break;
	case OPT_PERMIT:
		o->by_permit = 1;
		break;
	case OPT_ON_FAILURE:
		o->on_failure = rlctl_options_failure(optarg);
		break;
	case OPT_BUCKET:
		add_bucket(o, optarg);
		break;
	case OPT_WINDOW:
		last_bucket(o, "--window")->window_ms =
		    rlctl_number("--window", optarg, 0, UINT32_MAX);
		o->windows[o->check.resource_count - 1] = 1;
		break;
	case OPT_LIMIT:
		last_bucket(o, "--limit")->limit =
		    rlctl_number("--limit", optarg, 0, UINT32_MAX);
		o->limits[o->check.resource_count - 1] = 1;
		break;
	case OPT_GUARD:
		add_guard(o, optarg);
		break;
	case OPT_TENANT:
		o->check.tenant = optarg;
		break;
	case OPT_LABEL:
		o->check.label = optarg;
		break;
	case OPT_JSON:
		ctl->json = 1;
		break;
	default:
		exit(RLCTL_USAGE); /* getopt has said why */
	}
}

static int
is_adhoc(const struct check_options *o)
{
	return o->check.resource_count > 0 || o->check.guard_count > 0 ||
	       o->check.tenant != NULL || o->check.label != NULL;
}

/* A forgotten option is not a wrong value. */
static void
need_window_and_limit(const struct check_options *o)
{
	size_t i;

	for (i = 0; i < o->check.resource_count; i++) {
		if (!o->windows[i] || !o->limits[i])
			exit(rlctl_fail(RLCTL_USAGE,
			    "--bucket %s: needs a --window and a --limit",
			    o->resources[i].bucket));
	}
}

static void
check_parse(struct rlctl *ctl, struct check_options *o, int argc, char **argv)
{
	int c;

	memset(o, 0, sizeof(*o));
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		take_option(ctl, o, c);
	o->check.resources = o->resources;
	o->check.guards = o->guards;
	if (optind < argc)
		o->check.rule = argv[optind++];
	rlctl_no_more("check", argc, argv);
	if (o->check.rule != NULL && is_adhoc(o))
		exit(rlctl_fail(RLCTL_USAGE,
		    "check: a rule or --bucket, --guard, --tenant and "
		    "--label, not both"));
	if (o->check.rule == NULL && !is_adhoc(o))
		exit(rlctl_fail(RLCTL_USAGE,
		    "check: name a rule, or a --bucket or --guard"));
	if (o->check.rule == NULL && o->check.key != NULL)
		exit(rlctl_fail(RLCTL_USAGE, "--key: goes with a rule"));
	need_window_and_limit(o);
}

/* The shim takes 0 tokens for "the default"; the command line does not. */
static void
refuse_zero(struct rl_decision *d)
{
	memset(d, 0, sizeof(*d));
	d->outcome = RL_FAILED;
	d->source = RL_SOURCE_POLICY;
	d->reason = RL_REASON_VALIDATION;
	snprintf(d->text, sizeof(d->text), "tokens: must be 1..65535, not 0");
}

int
rlctl_check(struct rlctl *ctl, int argc, char **argv)
{
	static struct rl_detail detail;
	struct check_options o;
	struct rl_decision d;
	struct rl_client *client;

	check_parse(ctl, &o, argc, argv);
	if (o.zero_tokens) {
		refuse_zero(&d);
	} else {
		client = rlctl_open(ctl, o.on_failure);
		rl_check(client, &o.check, &d, o.detail ? &detail : NULL);
		rlctl_close(client);
	}
	rlctl_print(stdout, ctl, &d, o.detail ? &detail : NULL);
	if (fflush(stdout) != 0)
		return rlctl_fail(2, "check: cannot write the result");
	if (o.by_permit)
		return d.permit ? 0 : 1;
	return (int)d.outcome;
}
