/*
 * rlctl explain: what a check of a rule would send, or why it would fail. The
 * agent's answer is a success either way.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"
#include "client-shim/rlctl_options.h"
#include "client-shim/rlctl_rules.h"
#include "client-shim/rlctl_table.h"

/* "-" for what is not known, be it null or missing. */
static void
print_number(const char *before, const json_t *from, const char *name)
{
	fputs(before, stdout);
	if (rlctl_table_known(from, name))
		printf("%lld", rlctl_table_number(from, name));
	else
		putchar('-');
}

static void
print_name(const char *before, const json_t *from, const char *name)
{
	fputs(before, stdout);
	rlctl_print_field(from, name);
}

static void
print_head(const json_t *document)
{
	const json_t *offered = json_object_get(document, "offered");
	const json_t *error = json_object_get(document, "error");

	print_name("rule ", document, "rule");
	if (json_is_object(error)) {
		print_name(": a check would fail, ", error, "reason");
		print_name(": ", error, "text");
	}
	print_name("\n  tenant: ", document, "tenant");
	print_name(", key id ", document, "key_id");
	print_name(", profile ", document, "profile");
	print_name("\n  mode: ", document, "mode");
	fputs(", on failure: ", stdout);
	rlctl_rules_failure(document);
	if (*rlctl_table_text(document, "label") != '\0')
		print_name("\n  label: ", document, "label");
	printf("\n  offered here: %s\n", json_is_true(offered)    ? "yes"
					 : json_is_false(offered) ? "no"
								  : "-");
}

static void
print_resource(const json_t *resource)
{
	fputs("  ", stdout);
	rlctl_rules_resource(resource);
	print_name("\n    name: ", resource, "name");
	print_name("\n    id: ", resource, "id");
	putchar('\n');
}

static void
print_guard(const json_t *guard)
{
	fputs("  ", stdout);
	rlctl_rules_guard(guard);
	print_number(", ttl ", guard, "ttl_ms");
	print_number(" ms, samples at least ", guard, "min_samples");
	print_number(" and at most ", guard, "max_samples");
	print_number(", buffer ", guard, "buffer_size");
	print_name("\n    name: ", guard, "name");
	print_name("\n    id: ", guard, "id");
	putchar('\n');
}

static void
print(const json_t *document)
{
	const json_t *part;
	size_t i;

	print_head(document);
	json_array_foreach(json_object_get(document, "resources"), i, part)
	    print_resource(part);
	json_array_foreach(json_object_get(document, "guards"), i, part)
	    print_guard(part);
	print_number("  datagram: ", document, "datagram_bytes");
	print_number(" of at most ", document, "datagram_max");
	print_number(
	    " bytes, to each of the servers known: ", document, "servers");
	print_number(
	    "\n  remembered by servers for: ", document, "dedup_ttl_ms");
	print_number(" ms\n  a check waits by default at most: ", document,
	    "default_deadline_ms");
	puts(" ms\n  policy:");
	rlctl_print_tree(json_object_get(document, "policy"), 2);
}

/* Of rl_explain(): takes client. */
static int
show(struct rlctl *ctl, struct rl_client *client, int status, char *text)
{
	json_t *document = rlctl_answer(client, "explain", status, text);

	if (document == NULL)
		return RLCTL_ERROR;
	if (ctl->json)
		rlctl_print_json(document);
	else
		print(document);
	json_decref(document);
	return rlctl_written("explain");
}

int
rlctl_explain(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	struct rl_check check = {0};
	struct rlctl_options o;
	char *text = NULL;
	int status;

	rlctl_options(ctl, &o, argc, argv, "tknj");
	if (optind == argc)
		return rlctl_fail(RLCTL_USAGE, "explain: name a rule");
	check.rule = argv[optind++];
	rlctl_no_more("explain", argc, argv);
	check.key = o.key;
	check.key_len = o.key != NULL ? strlen(o.key) : 0;
	check.tokens = o.tokens;
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_explain(client, &check, &text);
	return show(ctl, client, status, text);
}
