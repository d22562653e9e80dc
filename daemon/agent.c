/*
 * Puts the agent together and takes it apart, in one order and its reverse:
 * loop, setup, dispatcher, signals. One setup follows another while it runs.
 */
#include "daemon/agent.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/agent_document.h"
#include "daemon/gateway.h"
#include "daemon/log.h"
#include "proto/err.h"

/* After the longest horizon, for answers that are not read yet. */
#define DRAIN_GRACE_US 2000000
#define DRAIN_POLL_US  5000
/* For the first request of an HTTP connection that was accepted just before:
 * its client cannot know that it was not taken. */
#define DRAIN_EXPECT_US 200000
/* How often a retired setup is looked at. */
#define REAP_POLL_US 100000
/* Of lines that tell whether it is ready. */
#define READY_BURST  5
#define READY_MIN_US INT64_C(1000000)
#define READY_MAX_US INT64_C(60000000)

static enum log_level
level_of(enum config_level level)
{
	switch (level) {
	case LEVEL_ERROR:
		return LOG_LEVEL_ERROR;
	case LEVEL_WARNING:
		return LOG_LEVEL_WARNING;
	case LEVEL_INFO:
		return LOG_LEVEL_INFO;
	case LEVEL_DEBUG:
		return LOG_LEVEL_DEBUG;
	}
	return LOG_LEVEL_INFO;
}

void
agent_apply_level(const struct config *config)
{
	log_set_level(level_of(config->level));
}

void
agent_log_warnings(const struct config *config)
{
	for (size_t i = 0; i < config->warning_count; i++)
		log_warning("config", "text=\"%s\"", config->warnings[i]);
}

/* It has changed. A line that is held back is written later, if it is another
 * one than the last then. */
static void
say_ready(struct agent *a)
{
	if (!log_may(LOG_LEVEL_INFO, &a->ready_lines, loop_now(),
		&a->ready_unsaid)) {
		loop_timer_set(a->ready_timer, a->ready_lines.free_at);
		return;
	}
	log_info("ready", "ready=%s unsaid=%" PRIu64, a->ready ? "yes" : "no",
	    a->ready_unsaid);
	a->ready_unsaid = 0;
	a->ready_told = a->ready;
	loop_timer_stop(a->ready_timer);
}

static void
say_ready_late(void *arg)
{
	struct agent *a = arg;

	if (a->ready == a->ready_told)
		return;
	a->ready_unsaid--; /* this one */
	say_ready(a);
}

static void
ready_changed(void *arg)
{
	struct agent *a = arg;
	bool ready = a->dispatch != NULL && dispatch_is_ready(a->dispatch);

	if (ready != a->ready) {
		a->ready = ready;
		say_ready(a);
	}
	if (a->on_ready != NULL)
		a->on_ready(a->reload_arg);
	agent_notify_status(a);
	if (!ready)
		return;
	agent_open(a);
	dispatch_ready(a->dispatch);
}

static void
leave(void *arg)
{
	struct agent *a = arg;

	loop_stop(a->loop);
}

void
agent_open(struct agent *a)
{
	char err[DISPATCH_ERR_MAX];

	if (a->draining || a->ending)
		return;
	loop_timer_stop(a->open_timer);
	if (dispatch_open(a->dispatch, err) == 0) {
		agent_notify_started(a);
		return;
	}
	log_error("start", "error=\"%s\"", err);
	a->failed = true;
	agent_quit(a);
}

static void
open_anyway(void *arg)
{
	agent_open(arg);
}

void
agent_quit(struct agent *a)
{
	if (a->ending)
		return;
	a->ending = true;
	loop_timer_stop(a->open_timer);
	loop_timer_stop(a->drain_timer);
	agent_notify_stopping(a, loop_now());
	log_info("quit", "inflight=%u", dispatch_inflight(a->dispatch));
	dispatch_stop(a->dispatch);
	gateway_stop(a->gateway);
	loop_defer(a->loop, &a->leave);
}

/* What comes from here on fails. */
static void
refuse_checks(struct agent *a)
{
	a->expect_until = 0;
	gateway_drain_fresh(a->gateway);
	setup_end(a->setup, NULL);
	dispatch_refuse(a->dispatch);
}

/* Looks whether the last operation is over; ends a while past the horizon. */
static void
drain_check(void *arg)
{
	struct agent *a = arg;

	const int64_t now = loop_now();
	bool over;

	if (a->expect_until != 0 &&
	    !(gateway_expecting(a->gateway) && now < a->expect_until))
		refuse_checks(a);
	over = a->expect_until == 0 && dispatch_idle(a->dispatch) &&
	       gateway_idle(a->gateway);
	if (!over && now < a->drain_until)
		loop_timer_set(a->drain_timer, now + DRAIN_POLL_US);
	else
		agent_quit(a);
}

void
agent_drain(struct agent *a)
{
	if (a->draining) {
		agent_quit(a);
		return;
	}
	if (a->ending)
		return;
	a->draining = true;
	loop_timer_stop(a->open_timer);
	a->drain_until =
	    loop_now() + (int64_t)a->longest_horizon_ms * 1000 + DRAIN_GRACE_US;
	agent_notify_stopping(a, a->drain_until);
	log_info("drain", "inflight=%u", dispatch_inflight(a->dispatch));
	gateway_drain(a->gateway);
	dispatch_drain(a->dispatch);
	a->expect_until = loop_now() + DRAIN_EXPECT_US;
	loop_timer_set(a->drain_timer, loop_now());
}

static void
on_signal(void *arg)
{
	agent_drain(arg);
}

/* One that asks twice to drain waits twice. */
static void
control(void *arg, uint16_t type)
{
	struct agent *a = arg;

	if (type == IPC_QUIT)
		agent_quit(a);
	else if (type == IPC_DRAIN && !a->draining)
		agent_drain(a);
	else if (type == IPC_RELOAD && (a->draining || a->on_reload == NULL))
		dispatch_reloaded(a->dispatch, IPC_REASON_DRAINING,
		    "the agent is going away");
	else if (type == IPC_RELOAD)
		a->on_reload(a->reload_arg);
}

static void
reap(void *arg)
{
	struct agent *a = arg;
	struct setup **at = &a->retired, *s;

	while ((s = *at) != NULL) {
		if (setup_over(s)) {
			*at = s->next;
			setup_free(s);
		} else {
			at = &s->next;
		}
	}
	if (a->retired != NULL)
		loop_timer_set(a->reap_timer, loop_now() + REAP_POLL_US);
}

struct setup *
agent_prepare(struct agent *a, struct config *config, char err[AGENT_ERR_MAX])
{
	const uint32_t horizon = config_max_horizon_ms(config);
	struct setup *next =
	    setup_new(a->loop, a->random, config, a->setup, err);

	if (next == NULL)
		return NULL;
	next->generation = a->setup != NULL ? a->setup->generation + 1 : 1;
	if (horizon > a->longest_horizon_ms)
		a->longest_horizon_ms = horizon;
	for (size_t i = 0; i < config->tenant_count; i++)
		tenant_on_ready(next->tenants[i], ready_changed, a);
	return next;
}

static char *
metrics(void *arg)
{
	return agent_document(arg, IPC_METRICS, NULL);
}

/* Once a configuration has one. */
static int
open_gateway(
    struct agent *a, const struct config *config, char err[AGENT_ERR_MAX])
{
	const struct gateway_env env = {
	    .loop = a->loop,
	    .random = a->random,
	    .dispatch = a->dispatch,
	    .metrics = metrics,
	    .arg = a,
	};

	if (a->gateway != NULL || config->gateway_count == 0)
		return 0;
	a->gateway = gateway_new(&env);
	if (a->gateway != NULL)
		return 0;
	snprintf(err, AGENT_ERR_MAX,
	    "gateway: no memory or no descriptors are left");
	return -1;
}

static void
accepted(void *arg, struct port *port, int fd)
{
	struct agent *a = arg;

	gateway_accepted(a->gateway, port, fd);
}

int
agent_follow(struct agent *a, struct setup *next, char err[AGENT_ERR_MAX])
{
	struct setup *old = a->setup;

	if (open_gateway(a, next->config, err) != 0 ||
	    dispatch_follow(a->dispatch, next, err) != 0)
		return -1;
	gateway_follow(a->gateway);
	a->setup = next;
	a->loading.at = loop_now();
	setup_begin(next, old);
	setup_end(old, next);
	old->next = a->retired;
	a->retired = old;
	loop_timer_set(a->reap_timer, loop_now());
	ready_changed(a);
	return 0;
}

static int
open_dispatch(struct agent *a, char err[AGENT_ERR_MAX])
{
	const struct dispatch_env env = {
	    .loop = a->loop,
	    .random = a->random,
	    .setup = a->setup,
	    .activation = a->activation,
	    .document = agent_document,
	    .explain = agent_explain,
	    .control = control,
	    .accepted = accepted,
	    .arg = a,
	};

	a->dispatch = dispatch_new(&env, err);
	if (a->dispatch == NULL ||
	    activation_all_taken(a->activation, err) != 0 ||
	    open_gateway(a, a->setup->config, err) != 0)
		return -1;
	loop_timer_set(a->open_timer, loop_now() + AGENT_OPEN_MS * 1000);
	return 0;
}

static int
open_loop(struct agent *a)
{
	a->random = random_pool_new();
	a->loop = loop_new();
	if (a->random == NULL || a->loop == NULL)
		return -1;
	loop_task_init(&a->leave, leave, a);
	a->sigterm = loop_signal_new(a->loop, SIGTERM, on_signal, a);
	a->sigint = loop_signal_new(a->loop, SIGINT, on_signal, a);
	a->drain_timer = loop_timer_new(a->loop, drain_check, a);
	a->open_timer = loop_timer_new(a->loop, open_anyway, a);
	a->reap_timer = loop_timer_new(a->loop, reap, a);
	a->ready_timer = loop_timer_new(a->loop, say_ready_late, a);
	if (a->sigterm == NULL || a->sigint == NULL || a->drain_timer == NULL ||
	    a->open_timer == NULL || a->reap_timer == NULL ||
	    a->ready_timer == NULL)
		return -1;
	return 0;
}

static int
open_all(struct agent *a, struct config *config, char err[AGENT_ERR_MAX])
{
	/* First: its descriptors have fixed numbers. */
	a->activation = activation_new(err);
	if (a->activation == NULL || open_loop(a) != 0 ||
	    agent_notify_open(a) != 0)
		return -1;
	a->setup = agent_prepare(a, config, err);
	if (a->setup == NULL)
		return -1;
	return open_dispatch(a, err);
}

struct agent *
agent_new(struct config *config, char err[AGENT_ERR_MAX])
{
	struct agent *a = calloc(1, sizeof(*a));

	snprintf(err, AGENT_ERR_MAX, "out of memory or randomness");
	if (a == NULL)
		return NULL;
	errorrate_init(
	    &a->ready_lines, READY_BURST, READY_MIN_US, READY_MAX_US);
	a->started = loop_now();
	a->started_wall_ms = loop_wall_ms();
	a->loading.at = a->started;
	if (open_all(a, config, err) != 0) {
		agent_free(a);
		return NULL;
	}
	config_unref(config); /* the caller's: taken over */
	return a;
}

void
agent_free(struct agent *a)
{
	struct setup *s;

	if (a == NULL)
		return;
	gateway_free(a->gateway);
	dispatch_free(a->dispatch);
	while ((s = a->retired) != NULL) {
		a->retired = s->next;
		setup_free(s);
	}
	setup_free(a->setup);
	agent_documents_free(a);
	agent_notify_close(a);
	loop_timer_free(a->ready_timer);
	loop_timer_free(a->reap_timer);
	loop_timer_free(a->drain_timer);
	loop_timer_free(a->open_timer);
	loop_signal_free(a->sigterm);
	loop_signal_free(a->sigint);
	if (a->loop != NULL)
		loop_free(a->loop);
	if (a->random != NULL)
		random_pool_free(a->random);
	activation_free(a->activation);
	free(a);
}

int
agent_run(struct agent *a)
{
	const struct config *c = a->setup->config;
	int rc;

	log_info("start",
	    "version=%s config=\"%s\" tenants=%zu rules=%zu listeners=%zu",
	    PACKAGE_VERSION, c->source, c->tenant_count, c->rule_count,
	    c->listener_count);
	agent_notify_status(a);
	rc = loop_run(a->loop);
	return a->failed ? RLA_ESYS : rc;
}
