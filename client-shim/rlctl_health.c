/*
 * rlctl health: is a decision possible now? For the probes of containers and
 * supervisors, so it waits for nothing and says why not in one line.
 */
#include "client-shim/rlctl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl_options.h"

/* Probes come every few seconds. */
#define HEALTH_MS 1000

struct health {
	const char *reason; /* "ok": it is */
	const char *text;   /* borrowed */
};

static struct health
judge(const json_t *status)
{
	const char *unready =
	    json_string_value(json_object_get(status, "unready"));

	if (json_is_true(json_object_get(status, "draining")))
		return (struct health){"draining", "the agent is going away"};
	if (json_is_true(json_object_get(status, "ready")))
		return (struct health){"ok", "a decision is possible"};
	return (struct health){
	    "not-ready", unready != NULL ? unready : "no answer of that kind"};
}

static int
print(const struct rlctl *ctl, const struct health *h)
{
	const int healthy = strcmp(h->reason, "ok") == 0;
	json_t *out;

	if (ctl->json) {
		out = json_pack("{s:b, s:s, s:s}", "healthy", healthy, "reason",
		    h->reason, "text", h->text);
		if (out != NULL)
			rlctl_print_json(out);
		json_decref(out);
	} else if (healthy) {
		rlctl_print_name(h->text, strlen(h->text));
		putchar('\n');
	} else {
		rlctl_fail(RLCTL_ERROR, "health: %s: %s", h->reason, h->text);
	}
	if (rlctl_written("health") != RLCTL_OK)
		return RLCTL_ERROR;
	return healthy ? RLCTL_OK : RLCTL_ERROR;
}

static int
unavailable(const struct rlctl *ctl, const struct rl_client *client, int status)
{
	const char *text = rl_last_text(client);
	const struct health h = {
	    "unavailable", *text != '\0' ? text : rl_strerror(status)};

	return print(ctl, &h);
}

int
rlctl_health(struct rlctl *ctl, int argc, char **argv)
{
	struct rl_client *client;
	json_t *document = NULL;
	char *text = NULL;
	struct health h;
	int status;

	rlctl_options_alone(ctl, "health", argc, argv, "tj");
	if (ctl->timeout_ms == 0)
		ctl->timeout_ms = HEALTH_MS;
	client = rlctl_open(ctl, RL_CLOSED);
	status = rl_query(client, "status", ctl->timeout_ms, &text);
	if (status != RL_OK) {
		status = unavailable(ctl, client, status);
		rlctl_close(client);
		return status;
	}
	rlctl_close(client);
	document = json_loads(text, 0, NULL);
	h = judge(document);
	status = print(ctl, &h);
	json_decref(document);
	free(text);
	return status;
}
