/*
 * Puts the agent together and takes it apart, in one order and its reverse:
 * loop, tenants, dispatcher, signals.
 */
#include "daemon/agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/status.h"
#include "proto/err.h"

/* After the longest horizon, for answers that are not read yet. */
#define DRAIN_GRACE_US 2000000
#define DRAIN_POLL_US  5000

static void
ready_changed(void *arg)
{
	struct agent *a = arg;
	bool ready = a->dispatch != NULL && dispatch_is_ready(a->dispatch);

	if (ready != a->ready)
		log_info("ready", "ready=%s", ready ? "yes" : "no");
	a->ready = ready;
	if (!ready)
		return;
	agent_open(a);
	dispatch_ready(a->dispatch);
}

static char *
document(void *arg, uint16_t type)
{
	switch (type) {
	case IPC_SERVERS:
		return status_servers(arg);
	case IPC_POLICY:
		return status_policy(arg);
	default: /* IPC_STATUS: dispatch knows no other document */
		return status_document(arg);
	}
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
	if (dispatch_open(a->dispatch, err) == 0)
		return;
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
	log_info("quit", "inflight=%u", dispatch_inflight(a->dispatch));
	dispatch_stop(a->dispatch);
	loop_defer(a->loop, &a->leave);
}

static void
on_quit(void *arg)
{
	agent_quit(arg);
}

/* Looks whether the last operation is over; ends a while past the horizon. */
static void
drain_check(void *arg)
{
	struct agent *a = arg;

	if (!dispatch_idle(a->dispatch) && loop_now() < a->drain_until)
		loop_timer_set(a->drain_timer, loop_now() + DRAIN_POLL_US);
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
	a->drain_until = loop_now() +
			 (int64_t)config_max_horizon_ms(a->config) * 1000 +
			 DRAIN_GRACE_US;
	log_info("drain", "inflight=%u", dispatch_inflight(a->dispatch));
	for (size_t i = 0; i < a->config->tenant_count; i++)
		tenant_close(a->tenants[i]);
	dispatch_drain(a->dispatch);
	loop_timer_set(a->drain_timer, loop_now());
}

static void
on_signal(void *arg)
{
	agent_drain(arg);
}

/* What reloads other daemons must not end this one. */
static void
on_hangup(void *arg)
{
	(void)arg;
	log_warning("signal",
	    "signal=SIGHUP error=\"a changed configuration needs a restart\"");
}

static int
open_tenants(struct agent *a, char err[AGENT_ERR_MAX])
{
	const struct config *config = a->config;
	size_t i;

	a->tenants = calloc(config->tenant_count, sizeof(*a->tenants));
	if (a->tenants == NULL)
		return -1;
	for (i = 0; i < config->tenant_count; i++) {
		a->tenants[i] = tenant_new(a->loop, a->random,
		    &config->tenants[i], config->limits.max_inflight, err);
		if (a->tenants[i] == NULL)
			return -1;
		tenant_on_ready(a->tenants[i], ready_changed, a);
	}
	return 0;
}

static int
open_dispatch(struct agent *a, char err[AGENT_ERR_MAX])
{
	const struct dispatch_env env = {
	    .loop = a->loop,
	    .random = a->random,
	    .config = a->config,
	    .rules = a->rules,
	    .tenants = a->tenants,
	    .generation = a->generation,
	    .document = document,
	    .quit = on_quit,
	    .arg = a,
	};

	a->dispatch = dispatch_new(&env, err);
	if (a->dispatch == NULL)
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
	a->sighup = loop_signal_new(a->loop, SIGHUP, on_hangup, a);
	a->drain_timer = loop_timer_new(a->loop, drain_check, a);
	a->open_timer = loop_timer_new(a->loop, open_anyway, a);
	if (a->sigterm == NULL || a->sigint == NULL || a->sighup == NULL ||
	    a->drain_timer == NULL || a->open_timer == NULL)
		return -1;
	return 0;
}

static int
open_all(struct agent *a, char err[AGENT_ERR_MAX])
{
	if (open_loop(a) != 0)
		return -1;
	a->rules = rules_new(a->config);
	if (a->rules == NULL) {
		snprintf(err, AGENT_ERR_MAX,
		    "out of memory, or the crypto library has no BLAKE2s-256");
		return -1;
	}
	if (open_tenants(a, err) != 0)
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
	a->config = config_ref(config);
	a->generation = 1;
	a->started = loop_now();
	if (open_all(a, err) != 0) {
		agent_free(a);
		return NULL;
	}
	config_unref(config); /* the caller's: taken over */
	return a;
}

void
agent_free(struct agent *a)
{
	size_t i;

	if (a == NULL)
		return;
	dispatch_free(a->dispatch);
	for (i = 0; a->tenants != NULL && i < a->config->tenant_count; i++)
		tenant_free(a->tenants[i]);
	free(a->tenants);
	rules_free(a->rules);
	loop_timer_free(a->drain_timer);
	loop_timer_free(a->open_timer);
	loop_signal_free(a->sigterm);
	loop_signal_free(a->sigint);
	loop_signal_free(a->sighup);
	if (a->loop != NULL)
		loop_free(a->loop);
	if (a->random != NULL)
		random_pool_free(a->random);
	config_unref(a->config);
	free(a);
}

int
agent_run(struct agent *a)
{
	int rc;

	log_info("start",
	    "version=%s config=\"%s\" tenants=%zu rules=%zu listeners=%zu",
	    PACKAGE_VERSION, a->config->source, a->config->tenant_count,
	    a->config->rule_count, a->config->listener_count);
	rc = loop_run(a->loop);
	return a->failed ? RLA_ESYS : rc;
}
