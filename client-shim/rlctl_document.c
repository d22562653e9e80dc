/*
 * Documents of the agent: fetched, shown as they are, or as lines of names and
 * values; and rlctl status, which is that and nothing more.
 */
#include "client-shim/rlctl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_options.h"

static void
print_string(const json_t *string)
{
	rlctl_print_name(json_string_value(string), json_string_length(string));
}

void
rlctl_print_field(const json_t *from, const char *name)
{
	const json_t *string = json_object_get(from, name);

	if (json_is_string(string))
		print_string(string);
	else
		putchar('-');
}

static void
print_title(const char *name, int depth)
{
	printf("%*s", 2 * depth, "");
	rlctl_print_name(name, strlen(name));
	putchar(':');
}

/* What is neither a list nor an object. */
static void
print_scalar(const json_t *item)
{
	if (json_is_string(item))
		print_string(item);
	else if (json_is_integer(item))
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(item));
	else if (json_is_real(item))
		printf("%.15g", json_real_value(item));
	else
		fputs(json_is_true(item)    ? "yes"
		      : json_is_false(item) ? "no"
					    : "-",
		    stdout);
	putchar('\n');
}

/* The name of an entry may be one of the configuration: any bytes. */
void
rlctl_print_tree(const json_t *value, int depth)
{
	const char *name;
	json_t *item;
	size_t i;

	json_object_foreach((json_t *)value, name, item)
	{
		print_title(name, depth);
		if (json_is_array(item) && json_array_size(item) == 0) {
			puts(" none");
		} else if (json_is_object(item) || json_is_array(item)) {
			putchar('\n');
			rlctl_print_tree(item, depth + 1);
		} else {
			putchar(' ');
			print_scalar(item);
		}
	}
	json_array_foreach((json_t *)value, i, item)
	{
		if (json_is_object(item)) {
			rlctl_print_tree(item, depth);
			if (i + 1 < json_array_size(value))
				putchar('\n');
		} else if (!json_is_array(item)) {
			printf("%*s", 2 * depth, "");
			print_scalar(item);
		}
	}
}

json_t *
rlctl_answer(struct rl_client *client, const char *what, int status, char *text)
{
	json_error_t error;
	json_t *document;

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

json_t *
rlctl_document(struct rlctl *ctl, const char *what)
{
	struct rl_client *client = rlctl_open(ctl, RL_CLOSED);
	char *text = NULL;
	int status = rl_query(client, what, ctl->timeout_ms, &text);

	return rlctl_answer(client, what, status, text);
}

void
rlctl_print_json(const json_t *document)
{
	/* What is decimal, like a tenth, has 15 digits of its own. */
	json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
	putchar('\n');
}

int
rlctl_show(struct rlctl *ctl, const char *what, int argc, char **argv,
    void (*print)(const struct json_t *document))
{
	json_t *document;

	rlctl_options_alone(ctl, what, argc, argv, "tj");
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
	rlctl_print_tree(document, 0);
}

int
rlctl_status(struct rlctl *ctl, int argc, char **argv)
{
	return rlctl_show(ctl, "status", argc, argv, print_status);
}
