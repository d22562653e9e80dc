/* rlctl report, status, wait and quit: one call each, and how documents of the
 * agent are shown. */
#include "client-shim/rlctl.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_spec.h"

enum { OPT_TIMEOUT = 256, OPT_TENANT, OPT_TRACKER, OPT_KEY, OPT_JSON };

struct agent_options {
	const char *tenant;
	const char *tracker;
	const char *key;
};

/* The options that a command takes, by the letters of which: t(imeout),
 * T(enant), r (tracker), k(ey), j(son). Leaves optind at the first argument. */
static void
parse(struct rlctl *ctl, struct agent_options *o, int argc, char **argv,
    const char *which)
{
	struct option longs[6];
	int c, n = 0;

	memset(o, 0, sizeof(*o));
	memset(longs, 0, sizeof(longs));
	if (strchr(which, 't') != NULL)
		longs[n++] = (struct option){
		    "timeout", required_argument, NULL, OPT_TIMEOUT};
	if (strchr(which, 'T') != NULL)
		longs[n++] = (struct option){
		    "tenant", required_argument, NULL, OPT_TENANT};
	if (strchr(which, 'r') != NULL)
		longs[n++] = (struct option){
		    "tracker", required_argument, NULL, OPT_TRACKER};
	if (strchr(which, 'k') != NULL)
		longs[n++] =
		    (struct option){"key", required_argument, NULL, OPT_KEY};
	if (strchr(which, 'j') != NULL)
		longs[n++] =
		    (struct option){"json", no_argument, NULL, OPT_JSON};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case OPT_TIMEOUT:
			ctl->timeout_ms =
			    rlctl_number("--timeout", optarg, 1, UINT32_MAX);
			break;
		case OPT_TENANT:
			o->tenant = optarg;
			break;
		case OPT_TRACKER:
			o->tracker = optarg;
			break;
		case OPT_KEY:
			o->key = optarg;
			break;
		case OPT_JSON:
			ctl->json = 1;
			break;
		default:
			exit(RLCTL_USAGE); /* getopt has said why */
		}
	}
}

static int
send_report(struct rl_client *client, const struct agent_options *o,
    const char *tracker, uint32_t ms)
{
	return rl_report(client, o->tenant, tracker, o->key,
	    o->key != NULL ? strlen(o->key) : 0, ms);
}

int
rlctl_report(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	struct agent_options o;
	struct rl_guard spec;
	uint32_t ms;
	int wanted, status;

	parse(ctl, &o, argc, argv, "tTrk");
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
rlctl_wait(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	struct agent_options o;
	int status;

	parse(ctl, &o, argc, argv, "t");
	rlctl_no_more("wait", argc, argv);
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_wait(client, ctl->timeout_ms);
	if (status != RL_OK)
		return rlctl_call_failed(client, "wait", status);
	rlctl_close(client);
	return RLCTL_OK;
}

int
rlctl_quit(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	struct agent_options o;
	int status;

	parse(ctl, &o, argc, argv, "t");
	rlctl_no_more("quit", argc, argv);
	client = rlctl_open_control(ctl);
	status = rl_control(client, "quit", ctl->timeout_ms);
	if (status != RL_OK)
		return rlctl_call_failed(client, "quit", status);
	rlctl_close(client);
	return RLCTL_OK;
}

static void
print_string(const json_t *string)
{
	rlctl_print_name(json_string_value(string), json_string_length(string));
	putchar('\n');
}

/* "name: value" lines, nested objects indented under their name. */
static void
print_tree(const json_t *value, int depth)
{
	const char *name, *title;
	json_t *item;
	size_t i;

	json_object_foreach((json_t *)value, name, item)
	{
		if (json_is_array(item) && json_array_size(item) == 0) {
			printf("%*s%s: none\n", 2 * depth, "", name);
		} else if (json_is_object(item) || json_is_array(item)) {
			printf("%*s%s:\n", 2 * depth, "", name);
			print_tree(item, depth + 1);
		} else if (json_is_string(item)) {
			printf("%*s%s: ", 2 * depth, "", name);
			print_string(item);
		} else {
			title = json_is_true(item)    ? "yes"
				: json_is_false(item) ? "no"
						      : "-";
			if (json_is_integer(item))
				printf("%*s%s: %" JSON_INTEGER_FORMAT "\n",
				    2 * depth, "", name,
				    json_integer_value(item));
			else
				printf(
				    "%*s%s: %s\n", 2 * depth, "", name, title);
		}
	}
	json_array_foreach((json_t *)value, i, item)
	{
		if (json_is_object(item)) {
			print_tree(item, depth);
			if (i + 1 < json_array_size(value))
				putchar('\n');
		} else if (json_is_string(item)) {
			printf("%*s", 2 * depth, "");
			print_string(item);
		}
	}
}

json_t *
rlctl_document(struct rlctl *ctl, const char *what)
{
	struct rl_client *client = rlctl_open(ctl, RL_CLOSED);
	json_error_t error;
	json_t *document;
	char *text;
	int status = rl_query(client, what, ctl->timeout_ms, &text);

	if (status != RL_OK) {
		rlctl_call_failed(client, what, status);
		return NULL;
	}
	rlctl_close(client);
	document = json_loads(text, 0, &error);
	if (document == NULL)
		rlctl_fail(RLCTL_ERROR,
		    "%s: the agent's answer is not JSON: %s", what, error.text);
	free(text);
	return document;
}

void
rlctl_print_json(const json_t *document)
{
	json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
	putchar('\n');
}

int
rlctl_show(struct rlctl *ctl, const char *what, int argc, char **argv,
    void (*print)(const struct json_t *document))
{
	struct agent_options o;
	json_t *document;

	parse(ctl, &o, argc, argv, "tj");
	rlctl_no_more(what, argc, argv);
	document = rlctl_document(ctl, what);
	if (document == NULL)
		return RLCTL_ERROR;
	if (ctl->json)
		rlctl_print_json(document);
	else
		print(document);
	json_decref(document);
	return rlctl_written(what);
}

static void
print_status(const struct json_t *document)
{
	print_tree(document, 0);
}

int
rlctl_status(struct rlctl *ctl, int argc, char **argv)
{
	return rlctl_show(ctl, "status", argc, argv, print_status);
}
