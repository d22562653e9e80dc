/*
 * From a result to a DECISION: what a server said gets its names back, what
 * failed its policy, and everything is counted. dispatch_answer() is the one
 * exit of every check, passed once.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/message.h"

/* proto/IPC.md, 4.6: a resource of a detail is longer than a guard. */
#define DECISION_LEN \
	(IPC_HEAD_LEN + 28 + 2 + IPC_MAX_NAME + 2 + IPC_MAX_TEXT + 4)
#define DETAIL_LEN (22 + IPC_MAX_NAME)

_Static_assert(DECISION_LEN + PDU_MAX_BLOCKS * DETAIL_LEN <= IPC_MAX_FRAME,
    "a frame holds the longest decision");

static void
count_failed(struct agent_counters *n, enum ipc_reason reason)
{
	n->failed++;
	switch (reason) {
	case IPC_REASON_VALIDATION:
		n->failed_validation++;
		return;
	case IPC_REASON_UNKNOWN_RULE:
		n->failed_unknown_rule++;
		return;
	case IPC_REASON_UNAUTHORISED:
		n->failed_unauthorised++;
		return;
	case IPC_REASON_DISCOVERY:
		n->failed_discovery++;
		return;
	case IPC_REASON_TRANSPORT:
		n->failed_transport++;
		return;
	case IPC_REASON_TIMEOUT:
		n->failed_timeout++;
		return;
	case IPC_REASON_OVERLOADED:
		n->failed_overloaded++;
		return;
	case IPC_REASON_INTERRUPTED:
		n->failed_interrupted++;
		return;
	case IPC_REASON_OK:
	case IPC_REASON_RESOURCE:
	case IPC_REASON_GUARD:
	case IPC_REASON_RESOURCE_GUARD:
	case IPC_REASON_DRAINING:
	case IPC_REASON_UNAVAILABLE:
	case IPC_REASON_CANCELLED:
		return;
	}
}

static void
count_source(struct agent_counters *n, enum ipc_source source)
{
	switch (source) {
	case IPC_SOURCE_SERVER:
		n->source_server++;
		return;
	case IPC_SOURCE_EMPTY:
		n->source_empty++;
		return;
	case IPC_SOURCE_POLICY:
		n->source_policy++;
		return;
	case IPC_SOURCE_SHADOW:
		n->source_shadow++;
		return;
	case IPC_SOURCE_LOCAL:
		n->source_local++;
		return;
	}
}

static void
count(struct agent_counters *n, const struct ipc_decision *d)
{
	n->permitted += d->permit;
	count_source(n, (enum ipc_source)d->source);
	switch ((enum ipc_outcome)d->outcome) {
	case IPC_ALLOWED:
		n->allowed++;
		return;
	case IPC_DENIED:
		n->denied++;
		return;
	case IPC_FAILED:
		count_failed(n, (enum ipc_reason)d->reason);
		return;
	case IPC_CANCELLED:
		n->cancelled++;
		return;
	}
}

/* Of a rule that the setup in force may have no more. */
static void
count_rule(struct rule_counters *n, const struct ipc_decision *d)
{
	if (n == NULL)
		return;
	n->checks++;
	n->permitted += d->permit;
	n->would_deny += d->source == IPC_SOURCE_SHADOW;
	n->local += d->source == IPC_SOURCE_LOCAL;
	switch ((enum ipc_outcome)d->outcome) {
	case IPC_ALLOWED:
		n->allowed++;
		return;
	case IPC_DENIED:
		n->denied++;
		return;
	case IPC_FAILED:
		n->failed++;
		return;
	case IPC_CANCELLED:
		n->cancelled++;
		return;
	}
}

void
dispatch_close_unread(struct client *c)
{
	if (conn_unsent(c->conn) <= CLIENT_OUT_MAX || conn_closing(c->conn))
		return;
	c->is.dispatch->counters.connections_unread++;
	conn_close(c->conn);
}

void
dispatch_answer(struct caller *c, uint64_t id, const struct config_rule *rule,
    const struct config_tenant *tenant, int64_t elapsed)
{
	struct dispatch *d = c->dispatch;
	struct tally *tally = setup_tally(d->env.setup, rule, tenant);

	if (rule != NULL && rule->shadow)
		decision_watch_only(&d->decision);
	if (rule != NULL)
		count_rule(setup_counters(d->env.setup, rule), &d->decision);
	d->decision.elapsed_us = (uint64_t)elapsed;
	count(&d->counters, &d->decision);
	if (tally != NULL)
		tally_note(tally, &d->decision);
	c->hooks->decided(c, id, rule, &d->decision);
}

struct rules_caller
dispatch_caller(const struct caller *c, const uint8_t *key, size_t key_len)
{
	return (struct rules_caller){
	    .uid = c->uid,
	    .gid = c->gid,
	    .listener = c->port->is.name,
	    .key = key,
	    .key_len = key_len,
	};
}

/* Who asked for a rule, as it was then. */
static struct rules_caller
caller_of(const struct request *r)
{
	struct rules_caller caller = dispatch_caller(r->by,
	    (r->options & IPC_OPT_KEY) != 0 ? r->kept : NULL, r->kept_len);

	caller.listener = r->listener;
	return caller;
}

/*
 * The names of a request that was built once already, from what was kept of
 * it; NULL cannot be, but for a bug. Its scratch is not that of a check being
 * started, which may be why the one before it ends.
 */
static const struct rules_request *
names_of(struct request *r)
{
	struct dispatch *d = r->by->dispatch;
	struct rules_caller caller;
	struct reader reader;
	int err;

	if (r->rule != NULL) {
		caller = caller_of(r);
		err = rules_names(
		    r->setup->rules, r->rule, &caller, r->tokens, &d->names);
	} else {
		reader_init(&reader, r->kept, r->kept_len);
		err = ipc_dec_check_adhoc(&reader, &d->kept);
		if (err == 0)
			rules_names_adhoc(&d->kept, &d->names);
	}
	assert(err == 0);
	return err == 0 ? &d->names : NULL;
}

static void
decide_selected(struct request *r, const struct tenant_result *res)
{
	bool detail = (r->options & IPC_OPT_DETAIL) != 0;
	const struct rules_request *names = NULL;

	if (detail || !res->guards_pass || !res->resources_pass)
		names = names_of(r);
	decision_selected(&r->by->dispatch->decision, res, names, detail);
}

void
dispatch_fail(struct dispatch *d, const struct failing *f,
    enum ipc_reason reason, const char *text)
{
	const bool covered = decision_policy_applies(reason);

	if (f->resent && reason != IPC_REASON_TIMEOUT && covered)
		reason = IPC_REASON_INTERRUPTED;
	decision_failed(&d->decision, reason, f->policy, text);
	if (f->policy == FAILURE_LOCAL && covered)
		dispatch_local_decide(d, f);
}

/* A request in flight fails. */
static void
fail(struct request *r, enum ipc_reason reason, const char *text)
{
	struct failing f = {
	    .policy = r->tenant->on_failure,
	    .resent = r->resent,
	    .setup = r->setup,
	    .rule = r->rule,
	    .tokens = r->tokens,
	};

	if (r->rule != NULL) {
		f.policy = r->rule->on_failure;
		f.caller = caller_of(r);
	}
	dispatch_fail(r->by->dispatch, &f, reason, text);
}

/* Only keys that are a part of what was asked for. */
static void
remember_denied(const struct request *r, int64_t now)
{
	const struct dispatch *d = r->by->dispatch;
	struct topk *keys;

	if (r->rule == NULL || (r->options & IPC_OPT_KEY) == 0)
		return;
	keys = setup_denied(d->env.setup, r->rule);
	if (keys != NULL)
		topk_add(keys, r->kept, r->kept_len, now);
}

/* The end of an operation, for whatever reason. */
void
dispatch_done(void *arg, const struct tenant_result *res)
{
	struct request *r = arg;
	struct caller *c = r->by;
	struct dispatch *d = c->dispatch;
	const struct tenant *tenant = setup_tenant(r->setup, r->tenant);
	/* It may have come after the clock was read that decided. */
	const int64_t elapsed =
	    res->now > r->arrived ? res->now - r->arrived : 0;
	char text[RULES_TEXT_MAX];
	const char *why;

	switch (res->end) {
	case POLICY_SELECTED:
		decide_selected(r, res);
		break;
	case POLICY_TIMEOUT:
		snprintf(text, sizeof(text),
		    "no server answered in %lld ms%s; see rlctl servers",
		    (long long)elapsed / 1000,
		    tenant_heard(tenant)
			? ""
			: ", none ever has: a wrong key, or the clock");
		fail(r, IPC_REASON_TIMEOUT, text);
		break;
	case POLICY_NO_SERVER:
		why = discovery_error(tenant_discovery(tenant));
		message_format(text, sizeof(text),
		    "no server is known (see rlctl servers): %s",
		    *why != '\0' ? why : "discovery is not finished");
		fail(r, IPC_REASON_DISCOVERY, text);
		break;
	case POLICY_NOT_SENT:
		fail(r, IPC_REASON_TRANSPORT,
		    "no server could be sent to; see rlctl servers");
		break;
	case POLICY_STOPPED:
		decision_cancelled(&d->decision);
		break;
	}
	if (d->decision.outcome == IPC_DENIED)
		remember_denied(r, res->now);
	dispatch_answer(c, r->id, r->rule, r->tenant, elapsed);
	if (dispatch_logs(d))
		dispatch_log_done(r);
	pace_window_note(
	    &c->all->window, res->pace, r->arrived, c->all->inflight, res->now);
	dispatch_request_free(r);
	dispatch_leave_done(c);
}
