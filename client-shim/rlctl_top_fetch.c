/*
 * The documents of rlctl top: on the application socket what everybody may
 * know, on the control socket the keys. An agent that is not there, or goes
 * away meanwhile, makes a sample of nothing but the reason.
 */
#include "client-shim/rlctl_top.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* An agent that is there answers long before. */
#define PING_MS 1000
/* Keys are a part of the whole; no screen waits long for them. */
#define KEYS_MS 500
/* After a control socket that cannot be had, in samples. */
#define KEYS_PAUSE 10

struct top_source {
	struct rl_client *client;
	struct rl_client *control;
	uint32_t timeout_ms;
	unsigned int keys_pause; /* samples until it is asked again */
	char keys_trouble[TOP_TEXT_MAX];
};

static struct rl_client *
open_at(const char *path, const char *option)
{
	const struct rl_options options = {
	    .socket = path, .name = "rlctl top", .on_failure = RL_CLOSED};
	struct rl_client *client;
	int status = rl_open(&client, &options);

	if (status != RL_OK)
		exit(rlctl_fail(
		    RLCTL_USAGE, "%s: %s", option, rl_strerror(status)));
	return client;
}

struct top_source *
top_source_open(const struct rlctl *ctl)
{
	struct top_source *s = calloc(1, sizeof(*s));
	char path[4096];

	if (s == NULL)
		exit(rlctl_fail(RLCTL_ERROR, "top: out of memory"));
	s->timeout_ms = ctl->timeout_ms;
	s->client = open_at(rlctl_socket(ctl), "--socket");
	s->control =
	    open_at(rlctl_control_socket(ctl, path, sizeof(path)), "--control");
	return s;
}

void
top_source_close(struct top_source *s)
{
	if (s == NULL)
		return;
	rl_close(s->client);
	rl_close(s->control);
	free(s);
}

void
top_source_interrupt(struct top_source *s)
{
	if (s == NULL)
		return;
	rl_interrupt(s->client);
	rl_interrupt(s->control);
}

static void
note(char out[TOP_TEXT_MAX], const struct rl_client *client, int status)
{
	const char *text = rl_last_text(client);

	snprintf(out, TOP_TEXT_MAX, "%s",
	    *text != '\0' ? text : rl_strerror(status));
}

/* NULL: out says why. A key may hold NUL, as any byte. */
static json_t *
query(struct rl_client *client, const char *what, uint32_t timeout_ms,
    char out[TOP_TEXT_MAX])
{
	json_error_t error;
	json_t *document;
	char *text;
	int status = rl_query(client, what, timeout_ms, &text);

	if (status != RL_OK) {
		note(out, client, status);
		return NULL;
	}
	document = json_loads(text, JSON_ALLOW_NUL, &error);
	free(text);
	if (!json_is_object(document)) {
		snprintf(out, TOP_TEXT_MAX, "%s: the agent's answer is not %s",
		    what, document != NULL ? "an object" : error.text);
		json_decref(document);
		return NULL;
	}
	return document;
}

/* No one is asked in vain for each screen. */
static void
fetch_keys(struct top_source *s, struct top_sample *out)
{
	if (s->keys_pause == 0) {
		out->keys = query(s->control, "top", KEYS_MS, s->keys_trouble);
		s->keys_pause = out->keys == NULL ? KEYS_PAUSE : 0;
	} else {
		s->keys_pause--;
	}
	if (out->keys == NULL)
		memcpy(out->keys_trouble, s->keys_trouble, TOP_TEXT_MAX);
}

void
top_server_name(char out[TOP_NAME_MAX], const json_t *server)
{
	const char *tenant =
	    json_string_value(json_object_get(server, "tenant"));
	const char *id =
	    json_string_value(json_object_get(server, "server_id"));

	snprintf(out, TOP_NAME_MAX, "%s/%s", id != NULL ? id : "-",
	    tenant != NULL ? tenant : "-");
}

void
top_limiter_name(
    char out[TOP_NAME_MAX], const char *kind, const json_t *limiter)
{
	const char *name = json_string_value(json_object_get(limiter, "name"));

	snprintf(out, TOP_NAME_MAX, "%s/%s", kind, name != NULL ? name : "-");
}

/* Entries may be anything at all: they are found by name or not at all. */
static void
index_list(json_t *index, const json_t *list, const char *kind)
{
	char name[TOP_NAME_MAX];
	json_t *entry;
	size_t i;

	json_array_foreach((json_t *)list, i, entry)
	{
		if (kind == NULL)
			top_server_name(name, entry);
		else
			top_limiter_name(name, kind, entry);
		json_object_set_nocheck(index, name, entry);
	}
}

static void
make_indices(struct top_sample *s)
{
	s->rule_index = json_object();
	s->server_index = json_object();
	s->limiter_index = json_object();
	index_list(s->rule_index, json_object_get(s->rules, "rules"), "rule");
	index_list(
	    s->server_index, json_object_get(s->servers, "servers"), NULL);
	index_list(s->limiter_index, json_object_get(s->limiters, "limiters"),
	    "limiter");
	index_list(s->limiter_index,
	    json_object_get(s->limiters, "error_controls"), "error control");
	index_list(s->limiter_index, json_object_get(s->limiters, "rules"),
	    "local of rule");
}

void
top_fetch(struct top_source *s, struct top_sample *out)
{
	int status;

	memset(out, 0, sizeof(*out));
	status = rl_ping(s->client, PING_MS, NULL);
	out->asked = top_now();
	if (status != RL_OK) {
		note(out->trouble, s->client, status);
		return;
	}
	out->status = query(s->client, "status", s->timeout_ms, out->trouble);
	out->told = top_now();
	if (out->status == NULL)
		return;
	out->rules = query(s->client, "rules", s->timeout_ms, out->trouble);
	if (out->rules != NULL)
		out->servers =
		    query(s->client, "servers", s->timeout_ms, out->trouble);
	if (out->servers != NULL)
		out->limiters =
		    query(s->client, "limiters", s->timeout_ms, out->trouble);
	if (out->limiters == NULL) {
		json_decref(out->status);
		out->status = NULL;
		return;
	}
	fetch_keys(s, out);
	make_indices(out);
}

void
top_sample_fini(struct top_sample *s)
{
	json_decref(s->rule_index);
	json_decref(s->server_index);
	json_decref(s->limiter_index);
	json_decref(s->status);
	json_decref(s->rules);
	json_decref(s->servers);
	json_decref(s->limiters);
	json_decref(s->keys);
	memset(s, 0, sizeof(*s));
}
