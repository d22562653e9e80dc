/* rlctl check: options to a check, its decision to text or JSON and an exit
 * code. */
#include "client-shim/rlctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
set_failure(struct check_options *o, const char *text)
{
	if (strcmp(text, "open") == 0)
		o->on_failure = RL_OPEN;
	else if (strcmp(text, "closed") == 0)
		o->on_failure = RL_CLOSED;
	else
		exit(rlctl_fail(RLCTL_USAGE,
		    "--on-failure: must be open or closed, not \"%s\"", text));
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
		o->check.timeout_ms =
		    rlctl_number("--timeout", optarg, 1, UINT32_MAX);
		break;
	case OPT_DETAIL:
		o->detail = 1;
		break;
	case OPT_PERMIT:
		o->by_permit = 1;
		break;
	case OPT_ON_FAILURE:
		set_failure(o, optarg);
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
	if (optind < argc)
		exit(rlctl_fail(RLCTL_USAGE,
		    "check: unexpected argument \"%s\"", argv[optind]));
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

static json_t *
name_json(const char *name, size_t len)
{
	json_t *s = json_stringn(name, len);
	char *escaped, *to;
	size_t i;

	if (s != NULL)
		return s;
	/* Not UTF-8: JSON cannot carry it but escaped. */
	escaped = to = malloc(4 * len + 1);
	if (escaped == NULL)
		return json_null();
	for (i = 0; i < len; i++)
		to += sprintf(to,
		    name[i] >= ' ' && name[i] <= '~' ? "%c" : "\\x%02x",
		    (unsigned char)name[i]);
	s = json_string(escaped);
	free(escaped);
	return s;
}

static void
detail_json(json_t *out, const struct rl_detail *detail)
{
	json_t *resources = json_array(), *guards = json_array();
	const struct rl_resource_result *r;
	const struct rl_guard_result *g;
	size_t i;

	for (i = 0; i < detail->resource_count; i++) {
		r = &detail->resources[i];
		json_array_append_new(resources,
		    json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "bucket",
			name_json(r->bucket, r->bucket_len), "window_ms",
			(json_int_t)r->window_ms, "limit", (json_int_t)r->limit,
			"tokens", (json_int_t)r->tokens, "deficit",
			(json_int_t)r->deficit, "actual_rate",
			(json_int_t)r->actual_rate));
	}
	for (i = 0; i < detail->guard_count; i++) {
		g = &detail->guards[i];
		json_array_append_new(guards,
		    json_pack("{s:o, s:I, s:I, s:b}", "tracker",
			name_json(g->tracker, g->tracker_len), "below_ms",
			(json_int_t)g->below_ms, "current_ms",
			(json_int_t)g->current_ms, "passed", g->passed));
	}
	json_object_set_new(out, "resources", resources);
	json_object_set_new(out, "guards", guards);
}

static void
print_json(const struct rl_decision *d, const struct rl_detail *detail)
{
	json_t *out = json_pack("{s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:o, "
				"s:I, s:o}",
	    "outcome", rl_outcome_name(d->outcome), "permit", d->permit,
	    "source", rl_source_name(d->source), "reason",
	    rl_reason_name(d->reason), "limit",
	    d->limit_len > 0 ? name_json(d->limit, d->limit_len) : json_null(),
	    "retry_after_ms",
	    d->retry_after_ms > 0 ? json_integer(d->retry_after_ms)
				  : json_null(),
	    "server_id",
	    d->has_server ? json_sprintf("%" PRIu64, d->server_id)
			  : json_null(),
	    "round", d->has_server ? json_integer(d->round) : json_null(),
	    "elapsed_us", (json_int_t)d->elapsed_us, "text",
	    d->text[0] != '\0' ? name_json(d->text, strlen(d->text))
			       : json_null());

	if (out != NULL && detail != NULL)
		detail_json(out, detail);
	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
}

static const char *
title(enum rl_outcome outcome)
{
	switch (outcome) {
	case RL_ALLOWED:
		return "Allowed";
	case RL_DENIED:
		return "Denied";
	case RL_FAILED:
		return "Failed";
	case RL_CANCELLED:
		return "Cancelled";
	}
	return "Failed";
}

/*
 * Names are any bytes; a terminal gets what is printable. Bytes that are no
 * UTF-8, and the C1 control characters, which are, could steer it.
 */
static void
print_name(const char *name, size_t len)
{
	json_t *utf8 = json_stringn(name, len);
	unsigned char c, next;
	size_t i;

	for (i = 0; i < len; i++) {
		c = (unsigned char)name[i];
		next = i + 1 < len ? (unsigned char)name[i + 1] : 0;
		if (c == 0xC2 && next < 0xA0) {
			putchar('?');
			i++;
		} else if (c < ' ' || c == 0x7f || (c >= 0x80 && !utf8)) {
			putchar('?');
		} else {
			putchar(c);
		}
	}
	json_decref(utf8);
}

static void
print_detail(const struct rl_detail *detail)
{
	const struct rl_resource_result *r;
	const struct rl_guard_result *g;
	size_t i;

	for (i = 0; i < detail->resource_count; i++) {
		r = &detail->resources[i];
		fputs("  bucket ", stdout);
		print_name(r->bucket, r->bucket_len);
		printf(": %s, asked %u, short of %u, rate %u of %u in %u ms\n",
		    r->deficit == 0 ? "granted" : "denied", r->tokens,
		    r->deficit, r->actual_rate, r->limit, r->window_ms);
	}
	for (i = 0; i < detail->guard_count; i++) {
		g = &detail->guards[i];
		fputs("  tracker ", stdout);
		print_name(g->tracker, g->tracker_len);
		printf(": %s, %u ms, must be below %u ms\n",
		    g->passed ? "passed" : "denied", g->current_ms,
		    g->below_ms);
	}
}

static void
print_text(const struct rl_decision *d, const struct rl_detail *detail)
{
	printf("%s: permit=%s source=%s reason=%s", title(d->outcome),
	    d->permit ? "yes" : "no", rl_source_name(d->source),
	    rl_reason_name(d->reason));
	if (d->limit_len > 0) {
		fputs(" limit=", stdout);
		print_name(d->limit, d->limit_len);
	}
	if (d->retry_after_ms > 0)
		printf(" retry_after_ms=%u", d->retry_after_ms);
	if (d->has_server)
		printf(" server=%" PRIu64 " round=%u", d->server_id, d->round);
	printf(" elapsed_us=%" PRIu64, d->elapsed_us);
	if (d->text[0] != '\0') {
		fputs(" (", stdout);
		print_name(d->text, strlen(d->text));
		putchar(')');
	}
	putchar('\n');
	if (detail != NULL)
		print_detail(detail);
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
	if (ctl->json)
		print_json(&d, o.detail ? &detail : NULL);
	else
		print_text(&d, o.detail ? &detail : NULL);
	if (fflush(stdout) != 0)
		return rlctl_fail(2, "check: cannot write the result");
	if (o.by_permit)
		return d.permit ? 0 : 1;
	return (int)d.outcome;
}
