/*
 * rlctl policy: asks the agent for its policies, shows what they mean in time,
 * and simulates them (core/estimate.h) on a network that the caller describes.
 */
#include "client-shim/rlctl_policy.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl.h"
#include "client-shim/rlctl_options.h"

/* Fixed, so that the same question has the same answer. */
#define OPERATIONS 20000
#define SEED       1

#define MAX_RTT_MS (ESTIMATE_MAX_RTT_US / 1000)

enum { OPT_RTT = 256, OPT_LOSS, OPT_SERVERS, OPT_TIMEOUT, OPT_JSON };

struct policy_options {
	const char *tenant; /* NULL: all */
	int64_t rtt_us;
	double loss;
	uint32_t servers; /* 0: as many as the agent knows */
};

/* What strtod() also takes is no number here: nan, inf, hex, blanks. hint is
 * for the line that says so. */
static double
read_number(const char *option, const char *text, double max, const char *hint)
{
	char *end = NULL;
	double v = 0;

	if (strspn(text, "0123456789.eE+-") == strlen(text) && *text != '+')
		v = strtod(text, &end);
	if (end == NULL || end == text || *end != '\0' || *text == '-' ||
	    !(v >= 0 && v <= max))
		exit(rlctl_fail(RLCTL_USAGE,
		    "%s: must be a number in 0..%.0f%s, not \"%s\"", option,
		    max, hint, text));
	return v;
}

static void
parse(struct rlctl *ctl, struct policy_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"rtt", required_argument, NULL, OPT_RTT},
	    {"loss", required_argument, NULL, OPT_LOSS},
	    {"servers", required_argument, NULL, OPT_SERVERS},
	    {"timeout", required_argument, NULL, OPT_TIMEOUT},
	    {"json", no_argument, NULL, OPT_JSON}, {NULL, 0, NULL, 0}};
	int c;

	*o = (struct policy_options){.rtt_us = 1000, .loss = 0.01};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case OPT_RTT:
			o->rtt_us = (int64_t)(read_number("--rtt", optarg,
						  MAX_RTT_MS, "") *
						  1000 +
					      0.5);
			break;
		case OPT_LOSS:
			o->loss =
			    read_number("--loss", optarg, 1, " (1 % is 0.01)");
			break;
		case OPT_SERVERS:
			o->servers = rlctl_number(
			    "--servers", optarg, 1, POLICY_MAX_SERVERS);
			break;
		case OPT_TIMEOUT:
			ctl->timeout_ms = rlctl_options_timeout(optarg);
			break;
		case OPT_JSON:
			ctl->json = 1;
			break;
		default:
			exit(RLCTL_USAGE); /* getopt has said why */
		}
	}
	if (optind < argc)
		o->tenant = argv[optind++];
	rlctl_no_more("policy", argc, argv);
}

static double
share(uint64_t part, uint32_t whole)
{
	return (double)part / whole;
}

static json_t *
rounds_json(const struct policy_plan *plan, const struct estimate *e)
{
	json_t *out = json_array();

	for (uint32_t k = 0; k < plan->rounds; k++)
		json_array_append_new(
		    out, json_real(share(e->by_round[k], e->decided)));
	if (plan->horizon_us > plan->round_end_us[plan->rounds - 1])
		json_array_append_new(out,
		    json_real(share(e->by_round[plan->rounds], e->decided)));
	return out;
}

/* What is of the decided is null without one. */
static json_t *
estimate_json(const struct estimate_input *in, const struct estimate *e)
{
	const bool any = e->decided > 0;

	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, "
			 "s:o, s:o}",
	    "rtt_ms", (double)in->rtt_us / 1000, "loss", in->loss, "servers",
	    (json_int_t)in->servers, "operations", (json_int_t)e->operations,
	    "decided", (json_int_t)e->decided, "decided_share",
	    share(e->decided, e->operations), "mean_us",
	    any ? json_integer(e->mean_us) : json_null(), "p99_us",
	    any ? json_integer(e->p99_us) : json_null(),
	    "requests_per_decision",
	    any ? json_real(share(e->requests, e->decided)) : json_null(),
	    "deliveries_per_decision",
	    any ? json_real(share(e->deliveries, e->decided)) : json_null(),
	    "oldest_share",
	    any ? json_real(share(e->by_oldest, e->decided)) : json_null(),
	    "round_shares", any ? rounds_json(in->plan, e) : json_null());
}

/* Reads, simulates and shows one tenant; with --json only adds to it. */
static int
show(struct rlctl *ctl, const struct policy_options *o, json_t *tenant)
{
	const char *name = json_string_value(json_object_get(tenant, "name"));
	struct policy_plan plan;
	struct estimate_input in = {
	    .plan = &plan,
	    .servers = (uint32_t)json_integer_value(
		json_object_get(tenant, "servers")),
	    .rtt_us = o->rtt_us,
	    .loss = o->loss,
	    .operations = OPERATIONS,
	    .seed = SEED,
	};
	struct estimate e;

	if (!rlctl_policy_read(tenant, &plan))
		return rlctl_fail(RLCTL_ERROR,
		    "policy: the agent's answer for tenant \"%s\" is not "
		    "understood; is it of another version?",
		    name != NULL ? name : "");
	if (o->servers > 0)
		in.servers = o->servers;
	if (in.servers > 0 && estimate_run(&in, &e) != 0)
		return rlctl_fail(RLCTL_ERROR, "policy: out of memory");
	if (ctl->json)
		json_object_set_new(tenant, "estimate",
		    in.servers > 0 ? estimate_json(&in, &e) : json_null());
	else
		rlctl_policy_print(tenant, &in, in.servers > 0 ? &e : NULL);
	return RLCTL_OK;
}

/* The tenants that were asked for: all, or the one of that name. */
static json_t *
wanted(const struct policy_options *o, const json_t *all)
{
	json_t *out = json_array(), *tenant;
	const char *name;
	size_t i;

	json_array_foreach((json_t *)all, i, tenant)
	{
		name = json_string_value(json_object_get(tenant, "name"));
		if (o->tenant == NULL ||
		    (name != NULL && strcmp(name, o->tenant) == 0))
			json_array_append(out, tenant);
	}
	return out;
}

static int
show_all(struct rlctl *ctl, const struct policy_options *o, json_t *tenants)
{
	json_t *tenant, *root;
	int status = RLCTL_OK;
	size_t i;

	json_array_foreach(tenants, i, tenant)
	{
		if (i > 0 && !ctl->json)
			putchar('\n');
		status = show(ctl, o, tenant);
		if (status != RLCTL_OK)
			return status;
	}
	if (ctl->json) {
		root = json_pack("{s:O}", "tenants", tenants);
		rlctl_print_json(root);
		json_decref(root);
	}
	return rlctl_written("policy");
}

int
rlctl_policy(struct rlctl *ctl, int argc, char **argv)
{
	struct policy_options o;
	json_t *root, *tenants;
	int status;

	parse(ctl, &o, argc, argv);
	root = rlctl_document(ctl, "policy");
	if (root == NULL)
		return RLCTL_ERROR;
	tenants = wanted(&o, json_object_get(root, "tenants"));
	if (json_array_size(tenants) > 0)
		status = show_all(ctl, &o, tenants);
	else if (o.tenant != NULL)
		status = rlctl_fail(RLCTL_ERROR,
		    "policy: the agent has no tenant \"%s\"", o.tenant);
	else
		status = rlctl_fail(
		    RLCTL_ERROR, "policy: the agent's answer has no tenants");
	json_decref(tenants);
	json_decref(root);
	return status;
}
