/*
 * rlctl metrics: the agent's metrics as they are, for a collector that reads
 * files or pipes; as JSON, a list of the same samples.
 */
#include "client-shim/rlctl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client-shim/rlctl_options.h"

/* One line of the text. */
struct line {
	const char *at;
	size_t len;
};

/* The next word, up to a blank; empty at the end of the line. */
static struct line
take_word(struct line *from)
{
	struct line word = {from->at, 0};

	while (word.len < from->len && word.at[word.len] != ' ')
		word.len++;
	from->at += word.len;
	from->len -= word.len;
	if (from->len > 0) {
		from->at++;
		from->len--;
	}
	return word;
}

static int
begins(const struct line *l, const char *with)
{
	return l->len >= strlen(with) && memcmp(l->at, with, strlen(with)) == 0;
}

/* The value of a label, at its first character: without escapes. Moves behind
 * the closing quote. NULL when there is none, or no memory. */
static json_t *
take_value(struct line *l)
{
	char *text = malloc(l->len + 1), *to = text;
	json_t *value = NULL;

	if (text == NULL)
		return NULL;
	while (l->len > 0 && *l->at != '"') {
		if (*l->at == '\\' && l->len > 1) {
			l->at++;
			l->len--;
			*to++ = (char)(*l->at == 'n' ? '\n' : *l->at);
		} else {
			*to++ = *l->at;
		}
		l->at++;
		l->len--;
	}
	if (l->len > 0) {
		value = json_stringn(text, (size_t)(to - text));
		l->at++;
		l->len--;
	}
	free(text);
	return value;
}

/* Behind the opening brace, up to and with the closing one. */
static json_t *
take_labels(struct line *l)
{
	json_t *labels = json_object(), *value;
	const char *equals;
	char name[64];

	while (labels != NULL && l->len > 0 && *l->at != '}') {
		equals = memchr(l->at, '=', l->len);
		if (equals == NULL || (size_t)(equals - l->at) + 2 > l->len ||
		    (size_t)(equals - l->at) >= sizeof(name))
			break;
		snprintf(
		    name, sizeof(name), "%.*s", (int)(equals - l->at), l->at);
		l->len -= (size_t)(equals - l->at) + 2;
		l->at = equals + 2;
		value = take_value(l);
		if (value == NULL)
			break;
		json_object_set_new(labels, name, value);
		if (l->len > 0 && *l->at == ',') {
			l->at++;
			l->len--;
		}
	}
	if (labels == NULL || l->len == 0 || *l->at != '}') {
		json_decref(labels);
		return NULL;
	}
	l->at++;
	l->len--;
	return labels;
}

/* A number: whole where the text has a whole one. */
static json_t *
number(const struct line *l)
{
	char text[64], *end;
	json_t *value;

	snprintf(text, sizeof(text), "%.*s", (int)l->len, l->at);
	if (strchr(text, '.') != NULL)
		value = json_real(strtod(text, &end));
	else
		value = json_integer(strtoll(text, &end, 10));
	if (end == text || *end != '\0') {
		json_decref(value);
		return NULL;
	}
	return value;
}

/* A sample; NULL: it is none, or no memory. */
static json_t *
sample(struct line l)
{
	size_t n = 0;
	json_t *labels, *name;

	while (n < l.len && l.at[n] != '{' && l.at[n] != ' ')
		n++;
	name = json_stringn(l.at, n);
	l.at += n;
	l.len -= n;
	if (begins(&l, "{")) {
		l.at++;
		l.len--;
		labels = take_labels(&l);
	} else {
		labels = json_object();
	}
	if (begins(&l, " ")) {
		l.at++;
		l.len--;
	}
	/* Takes both, and gives NULL when a part is. */
	return json_pack("{s:o, s:o, s:o}", "name", name, "labels", labels,
	    "value", number(&l));
}

/* "# HELP name text" or "# TYPE name type": into the family of that name, which
 * is the last one. */
static void
describe(json_t *families, struct line l)
{
	const struct line kind = take_word(&l), name = take_word(&l);
	json_t *last = json_array_get(families, json_array_size(families) - 1);

	if (begins(&kind, "HELP")) {
		json_array_append_new(families,
		    json_pack("{s:o, s:s, s:o, s:[]}", "name",
			json_stringn(name.at, name.len), "type", "untyped",
			"help", json_stringn(l.at, l.len), "samples"));
	} else if (begins(&kind, "TYPE") && last != NULL) {
		json_object_set_new(last, "type", json_stringn(l.at, l.len));
	}
}

/* NULL: a line of it is none of the format, or no memory. */
static json_t *
families_of(const char *text)
{
	json_t *families = json_array(), *last;
	struct line l;

	for (; *text != '\0'; text = l.at + l.len + 1) {
		l = (struct line){text, strcspn(text, "\n")};
		if (l.at[l.len] == '\0')
			break;
		if (begins(&l, "# ")) {
			describe(families, (struct line){l.at + 2, l.len - 2});
			continue;
		}
		last = json_array_get(families, json_array_size(families) - 1);
		if (json_array_append_new(
			json_object_get(last, "samples"), sample(l)) != 0)
			break;
	}
	if (*text == '\0')
		return families;
	json_decref(families);
	return NULL;
}

static int
print_json(const char *text)
{
	json_t *families = families_of(text), *document;

	if (families == NULL)
		return rlctl_fail(RLCTL_ERROR,
		    "metrics: the agent's answer has another format");
	document = json_pack("{s:o}", "metrics", families);
	rlctl_print_json(document);
	json_decref(document);
	return rlctl_written("metrics");
}

/* A terminal gets what is printable: names of rules are any text. */
static void
print_text(const char *text)
{
	size_t len;

	if (!isatty(STDOUT_FILENO)) {
		fputs(text, stdout);
		return;
	}
	for (; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		rlctl_print_name(text, len);
		putchar('\n');
	}
}

int
rlctl_metrics(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	char *text = NULL;
	int status;

	rlctl_options_alone(ctl, "metrics", argc, argv, "tj");
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_query(client, "metrics", ctl->timeout_ms, &text);
	if (status != RL_OK)
		return rlctl_call_failed(client, "metrics", status);
	rlctl_close(client);
	if (ctl->json) {
		status = print_json(text);
	} else {
		print_text(text);
		status = rlctl_written("metrics");
	}
	free(text);
	return status;
}
