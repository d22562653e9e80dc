/*
 * Asks rl-agent about many units of work at once, in libevent's loop.
 *
 *     example_event RULE KEY...
 *
 * Submits a check of the rule for each key, and prints each decision as it
 * comes. An interrupt (SIGINT) cancels what is still open. Exits with 0 when
 * all of the work may go on, else with 1. Another event loop is used alike:
 * it has only to tell when one descriptor is readable.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlshim.h"

struct job {
	const char *key;
	uint64_t ticket;
};

struct app {
	struct event_base *base;
	struct rl_client *client;
	struct job *jobs;
	int count;
	int open; /* not decided */
	int permitted;
};

/* Fails only where nothing was begun: then there is no decision to come. */
static void
job_begin(struct app *app, const char *rule, struct job *job)
{
	struct rl_check check = {.rule = rule};

	check.key = job->key;
	check.key_len = strlen(job->key);
	if (rl_submit(app->client, &check, NULL, job, &job->ticket) == RL_OK)
		app->open++;
	else
		printf("%s: %s\n", job->key, rl_last_text(app->client));
}

static void
job_end(struct app *app, const struct job *job, const struct rl_decision *d)
{
	printf("%s: %s, permit %d by %s, reason %s%s%s\n", job->key,
	    rl_outcome_name(d->outcome), d->permit, rl_source_name(d->source),
	    rl_reason_name(d->reason), d->text[0] != '\0' ? ": " : "", d->text);
	fflush(stdout);
	app->open--;
	app->permitted += d->permit;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct app *app = arg;
	struct rl_completion done;

	(void)fd;
	(void)what;
	while (rl_collect(app->client, &done))
		job_end(app, done.user, &done.decision);
	if (app->open == 0)
		event_base_loopbreak(app->base);
}

/* What is decided already is not in flight any more, and refused. */
static void
on_sigint(evutil_socket_t number, short what, void *arg)
{
	struct app *app = arg;
	int i;

	(void)number;
	(void)what;
	for (i = 0; i < app->count; i++)
		rl_cancel(app->client, app->jobs[i].ticket);
}

static void
run(struct app *app, const char *rule, char **keys)
{
	struct event *readable, *sigint;
	int i;

	readable = event_new(app->base, rl_fd(app->client),
	    EV_READ | EV_PERSIST, on_readable, app);
	sigint = evsignal_new(app->base, SIGINT, on_sigint, app);
	event_add(readable, NULL);
	event_add(sigint, NULL);
	for (i = 0; i < app->count; i++) {
		app->jobs[i].key = keys[i];
		job_begin(app, rule, &app->jobs[i]);
	}
	if (app->open > 0)
		event_base_dispatch(app->base);
	/* Before rl_close(), which closes the descriptor. */
	event_free(readable);
	event_free(sigint);
}

int
main(int argc, char **argv)
{
	struct rl_options options = {.name = "example_event",
	    .timeout_ms = 10000,
	    .max_inflight = 65536};
	struct app app = {.count = argc - 2};

	if (app.count < 1) {
		fprintf(stderr, "usage: example_event RULE KEY...\n");
		return 64;
	}
	app.base = event_base_new();
	app.jobs = calloc((size_t)app.count, sizeof(*app.jobs));
	if (app.base == NULL || app.jobs == NULL ||
	    rl_open(&app.client, &options) != RL_OK || rl_fd(app.client) < 0) {
		fprintf(stderr, "example_event: cannot begin\n");
		return 1;
	}
	run(&app, argv[1], argv + 2);
	rl_close(app.client);
	event_base_free(app.base);
	free(app.jobs);
	return app.permitted == app.count ? 0 : 1;
}
