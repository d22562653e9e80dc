/* See reload.h. What is loaded last wins: it replaces one that still waits for
 * its servers, and all who asked hear what became of it. */
#include "daemon/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/errorrate.h"
#include "daemon/io/watch.h"
#include "daemon/log.h"
#include "daemon/message.h"

/* Of lines in the log. */
#define LINES_BURST 50
#define LINES_MIN   INT64_C(1000000)
#define LINES_MAX   INT64_C(60000000)

struct reload {
	struct agent *agent;
	struct watch *watch; /* NULL: not to be had */
	struct loop_signal *sighup;
	struct loop_timer *late;  /* of next: it need not wait longer */
	struct loop_timer *again; /* after a failure */
	struct loop_task load;    /* many who ask in one turn cost one */
	struct loop_task apply;
	int64_t late_at;        /* while next is not NULL */
	struct setup *next;     /* loaded; NULL: nothing waits */
	bool asked;             /* by somebody, since the last result */
	struct errorrate lines; /* files may change as often as they like */
	uint64_t unsaid;
};

static bool
may_say(struct reload *r)
{
	return log_may(LOG_LEVEL_INFO, &r->lines, loop_now(), &r->unsaid);
}

/* For a line that tells of it. */
static uint64_t
take_unsaid(struct reload *r)
{
	uint64_t unsaid = r->unsaid;

	r->unsaid = 0;
	return unsaid;
}

/* By errno. */
static void
tell_blind(struct reload *r)
{
	const char *why = strerror(errno);

	if (may_say(r))
		log_warning("watch", "error=\"%s\" unsaid=%" PRIu64, why,
		    take_unsaid(r));
}

static void
watch_all(struct reload *r, const struct config *config)
{
	bool whole = r->watch != NULL &&
		     watch_files(r->watch, (const char *const *)config->files,
			 config->file_count);

	if (r->agent->loading.watching && !whole)
		tell_blind(r);
	r->agent->loading.watching = whole;
}

static void
drop_next(struct reload *r)
{
	loop_timer_stop(r->late);
	loop_cancel(r->agent->loop, &r->apply);
	setup_free(r->next);
	r->next = NULL;
}

/* The same failure again is no news, unless somebody asked. */
static void
tell_failure(struct reload *r, const char *err)
{
	struct agent_loading *l = &r->agent->loading;

	if (r->asked || strcmp(l->error, err) != 0) {
		if (may_say(r))
			log_error("reload", "error=\"%s\" unsaid=%" PRIu64, err,
			    take_unsaid(r));
		l->failures++;
		message_format(l->error, sizeof(l->error), "%s", err);
	}
	r->asked = false;
	dispatch_reloaded(r->agent->dispatch, IPC_REASON_VALIDATION, err);
	agent_notify_reloaded(r->agent);
}

static void
failed(struct reload *r, const char *err)
{
	drop_next(r);
	tell_failure(r, err);
	loop_timer_set(r->again, loop_now() + RELOAD_AGAIN_US);
}

/* What whoever asked should know of a configuration that is in force. */
static void
remark(const struct setup *setup, char text[CONFIG_ERR_MAX])
{
	const struct config *c = setup->config;
	const char *why;
	const struct config_tenant *tenant = setup_unready(setup, &why);

	text[0] = '\0';
	if (tenant != NULL) {
		message_format(text, CONFIG_ERR_MAX,
		    "no decision is possible yet, tenant %s: %s", tenant->name,
		    why);
	} else if (c->warning_count > 0) {
		message_format(text, CONFIG_ERR_MAX, "%s%s", c->warnings[0],
		    c->warning_count > 1 ? " (and more, see the log)" : "");
	}
}

static void
succeeded(struct reload *r)
{
	char text[CONFIG_ERR_MAX];

	r->asked = false;
	r->agent->loading.error[0] = '\0';
	loop_timer_stop(r->again);
	remark(r->agent->setup, text);
	dispatch_reloaded(r->agent->dispatch, IPC_REASON_OK, text);
	agent_notify_reloaded(r->agent);
}

/* Returns whether it was said. */
static bool
tell_in_force(struct reload *r, const struct setup *setup)
{
	if (!may_say(r))
		return false;
	log_info("reload",
	    "generation=%" PRIu64 " config=\"%s\" ready=%s unsaid=%" PRIu64,
	    setup->generation, setup->config->source,
	    setup_ready(setup) ? "yes" : "no", take_unsaid(r));
	return true;
}

static void
apply(void *arg)
{
	struct reload *r = arg;
	struct setup *next = r->next;
	char err[AGENT_ERR_MAX];

	/* Ready and late may be true in one turn: once is enough. */
	loop_timer_stop(r->late);
	loop_cancel(r->agent->loop, &r->apply);
	if (r->agent->draining || r->agent->ending) {
		drop_next(r);
		return;
	}
	r->next = NULL;
	/* What a socket lacked may be there by then; its tenants go on. */
	if (agent_follow(r->agent, next, err) != 0) {
		r->next = next;
		tell_failure(r, err);
		r->late_at = loop_now() + RELOAD_AGAIN_US;
		loop_timer_set(r->late, r->late_at);
		return;
	}
	agent_apply_level(next->config);
	if (tell_in_force(r, next))
		agent_log_warnings(next->config);
	succeeded(r);
}

/* From a tenant's callback: not at once. */
static void
ready_changed(void *arg)
{
	struct reload *r = arg;

	if (r->next != NULL && setup_ready(r->next))
		loop_defer(r->agent->loop, &r->apply);
}

static void
begin(struct reload *r, struct config *config)
{
	char err[AGENT_ERR_MAX];

	if (r->next == NULL) /* else it must not be put off for ever */
		r->late_at = loop_now() + RELOAD_READY_US;
	drop_next(r);
	agent_notify_reloading(r->agent);
	r->next = agent_prepare(r->agent, config, err);
	if (r->next == NULL) {
		failed(r, err);
		return;
	}
	if (setup_ready(r->next))
		loop_defer(r->agent->loop, &r->apply);
	else
		loop_timer_set(r->late, r->late_at);
}

/* anyway: also when nothing has changed. */
static void
load(struct reload *r, bool anyway)
{
	struct agent *a = r->agent;
	const struct config *last =
	    r->next != NULL ? r->next->config : a->setup->config;
	char err[CONFIG_ERR_MAX];
	struct config *config;

	if (a->draining || a->ending)
		return;
	if (anyway)
		agent_notify_reloading(a);
	if (!last->from_file) {
		snprintf(err, sizeof(err), "%s: there is no file to load again",
		    last->source);
		failed(r, err);
		loop_timer_stop(r->again);
		return;
	}
	watch_all(r, last); /* before it is read: what changes later is seen */
	config = config_load_again(last->source, err);
	if (config == NULL) {
		failed(r, err);
		return;
	}
	watch_all(r, config);
	if (anyway || !config_equal(config, last))
		begin(r, config);
	else if (r->next == NULL) {
		/* What was wrong is put right by what is in force. */
		if (a->loading.error[0] != '\0')
			(void)tell_in_force(r, a->setup);
		succeeded(r);
	}
	config_unref(config);
}

static void
on_request(void *arg)
{
	struct reload *r = arg;

	r->asked = true;
	/* What waits was read before, and must not answer this one. */
	loop_timer_stop(r->late);
	loop_cancel(r->agent->loop, &r->apply);
	loop_defer(r->agent->loop, &r->load);
}

static void
load_anyway(void *arg)
{
	load(arg, true);
}

static void
on_change(void *arg)
{
	load(arg, false);
}

struct reload *
reload_new(struct agent *a)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->agent = a;
	errorrate_init(&r->lines, LINES_BURST, LINES_MIN, LINES_MAX);
	loop_task_init(&r->load, load_anyway, r);
	loop_task_init(&r->apply, apply, r);
	r->sighup = loop_signal_new(a->loop, SIGHUP, on_request, r);
	r->late = loop_timer_new(a->loop, apply, r);
	r->again = loop_timer_new(a->loop, on_change, r);
	if (r->sighup == NULL || r->late == NULL || r->again == NULL) {
		reload_free(r);
		return NULL;
	}
	a->on_reload = on_request;
	a->on_ready = ready_changed;
	a->reload_arg = r;
	if (!a->setup->config->from_file)
		return r;
	r->watch = watch_new(a->loop, on_change, r);
	if (r->watch == NULL)
		tell_blind(r);
	a->loading.watching = r->watch != NULL;
	on_change(r); /* what has changed since it was read at the start */
	return r;
}

void
reload_free(struct reload *r)
{
	if (r == NULL)
		return;
	r->agent->on_reload = NULL;
	r->agent->on_ready = NULL;
	loop_cancel(r->agent->loop, &r->load);
	if (r->late != NULL)
		drop_next(r);
	watch_free(r->watch);
	loop_timer_free(r->late);
	loop_timer_free(r->again);
	loop_signal_free(r->sighup);
	free(r);
}
