/*
 * Checks: from a decoded message to a request in the table and an operation
 * of a tenant. What cannot be started is answered at once; the rest by
 * dispatch_done(), when its operation ends.
 */
#include "daemon/dispatch_private.h"

#include <string.h>

#include "daemon/message.h"
#include "proto/err.h"

static const char control_text[] = "the control socket takes no checks";

/* Who asks for a rule. */
static struct rules_caller
caller_of(const struct asking *a)
{
	const bool has_key = (a->base->options & IPC_OPT_KEY) != 0;

	return dispatch_caller(
	    a->by, has_key ? a->kept.bytes : NULL, a->kept.len);
}

/* At once, with what is in d->decision. */
static void
answer(const struct asking *a)
{
	dispatch_answer(
	    a->by, a->id, a->rule, a->tenant, loop_now() - a->arrived);
	if (dispatch_logs(a->by->dispatch))
		dispatch_log_asked(a);
}

static void
fail(const struct asking *a, enum ipc_reason reason, const char *text)
{
	struct dispatch *d = a->by->dispatch;
	struct failing f = {
	    .policy = FAILURE_CLOSED,
	    .resent = a->resent,
	    .setup = d->env.setup,
	    .rule = a->rule,
	    .tokens = a->base->tokens,
	};

	if (a->rule != NULL) {
		f.policy = a->rule->on_failure;
		f.caller = caller_of(a);
	} else if (a->tenant != NULL) {
		f.policy = a->tenant->on_failure;
	}
	dispatch_fail(d, &f, reason, text);
	answer(a);
}

static bool
is_uuid4(const uint8_t id[IPC_ID_LEN])
{
	return (id[6] & 0xf0) == 0x40 && (id[8] & 0xc0) == 0x80;
}

/* May what remains of it be run? */
static bool
resumable(const struct asking *a, int64_t horizon_us, const char **why)
{
	if (!a->resent)
		return true;
	if (memcmp(a->base->config_hash,
		a->by->dispatch->env.setup->config->hash, IPC_HASH_LEN) != 0) {
		*why = "first sent under another configuration";
		return false;
	}
	*why = "its deduplication horizon has passed";
	return a->arrived - a->start < horizon_us;
}

/* Whatever keeps a request from being built is the caller's to mend, save
 * that a cap may be reached and that the crypto library may fail. */
static enum ipc_reason
reason_of(int err)
{
	if (err == RLA_EBUSY)
		return IPC_REASON_OVERLOADED;
	return err == RLA_ECRYPTO ? IPC_REASON_TRANSPORT
				  : IPC_REASON_VALIDATION;
}

/* The counter of the cap; NULL: that of the agent. */
static void
too_many(struct asking *a, uint64_t *cap, const char *text)
{
	if (cap == NULL)
		cap = &a->by->dispatch->counters.cap_inflight;
	(*cap)++;
	fail(a, IPC_REASON_OVERLOADED, text);
}

/* The request in d->asked is built and valid: start it. */
static void
start(struct asking *a)
{
	struct dispatch *d = a->by->dispatch;
	const int64_t horizon = a->tenant->plan.horizon_us;
	struct tenant *tenant = setup_tenant(d->env.setup, a->tenant);
	struct request *r = tenant_find(tenant, a->base->operation_id);
	struct tenant_check check;
	const char *why = "";
	uint64_t *full;
	int err;

	if (!resumable(a, horizon, &why)) {
		fail(a, IPC_REASON_INTERRUPTED, why);
		return;
	}
	if (d->asked.rate.guard_count + d->asked.rate.resource_count == 0) {
		decision_empty(&d->decision);
		answer(a);
		return;
	}
	if (r != NULL && dispatch_adopt(a, r)) {
		d->counters.checks--; /* it was counted when it first came */
		return;
	}
	if (r != NULL) {
		fail(a, IPC_REASON_VALIDATION,
		    "operation_id: in flight already");
		return;
	}
	if (d->draining) {
		fail(a, IPC_REASON_DRAINING, "the agent is going away");
		return;
	}
	full = caller_full(a->by);
	if (full != NULL || (r = dispatch_request_new(a)) == NULL) {
		too_many(a, full, "too many checks in flight");
		return;
	}
	check = (struct tenant_check){
	    .rate = &d->asked.rate,
	    .unique_id = a->base->operation_id,
	    .resent = a->resent,
	    .now = a->arrived,
	    .start = a->start,
	    .deadline = a->base->deadline_ms == 0
			    ? POLICY_NEVER
			    : a->start + (int64_t)a->base->deadline_ms * 1000,
	};
	err = tenant_check(tenant, &check, dispatch_done, r, &r->op);
	if (err == 0)
		return; /* r may be gone by now */
	dispatch_request_free(r);
	if (err == RLA_EBUSY)
		too_many(a, NULL, err_str(err));
	else
		fail(a, reason_of(err), err_str(err));
}

/*
 * A resend has aged in the socket, too, nobody knows for how long: since the
 * socket was last seen empty at the most, and that is what counts. Were it
 * less, a server might have forgotten the first copy and consume again.
 */
static int64_t
start_of(const struct asking *a)
{
	int64_t empty;

	if (!a->resent)
		return a->arrived;
	empty = a->by->hooks->empty_at(a->by);
	if (empty < 0 || a->base->age_us >= (uint64_t)empty)
		return 0;
	return empty - (int64_t)a->base->age_us;
}

static bool
is_resend(const struct ipc_check_base *base)
{
	static const uint8_t first_time[IPC_HASH_LEN];

	return base->age_us != 0 ||
	       memcmp(base->config_hash, first_time, IPC_HASH_LEN) != 0;
}

static void
begin(struct asking *a, struct caller *c, uint64_t id,
    const struct ipc_check_base *base, int64_t arrived)
{
	memset(a, 0, sizeof(*a));
	a->by = c;
	a->id = id;
	a->base = base;
	a->resent = is_resend(base);
	a->arrived = arrived;
	a->start = start_of(a);
	caller_asks(c, a->arrived);
	c->dispatch->counters.checks++;
}

void
dispatch_unknown_rule(struct ipc_str name, char text[RULES_TEXT_MAX])
{
	message_format(text, RULES_TEXT_MAX, "unknown rule \"%.*s\"",
	    (int)name.len, (const char *)name.bytes);
}

const struct config_rule *
dispatch_rule(const struct caller *c, struct ipc_str name,
    enum ipc_reason *reason, char text[RULES_TEXT_MAX])
{
	const struct config_patterns *offered = c->port->is.rules;
	const struct config_rule *rule;

	*reason = IPC_REASON_UNAUTHORISED;
	if (offered == NULL || !config_allows(offered, name.bytes, name.len)) {
		message_format(text, RULES_TEXT_MAX, "%s",
		    offered == NULL ? control_text
				    : "this listener does not offer the rule");
		return NULL;
	}
	rule =
	    config_rule(c->dispatch->env.setup->config, name.bytes, name.len);
	*reason = IPC_REASON_UNKNOWN_RULE;
	if (rule == NULL)
		dispatch_unknown_rule(name, text);
	return rule;
}

void
dispatch_check_rule(
    struct caller *c, uint64_t id, const struct ipc_check *m, int64_t arrived)
{
	struct dispatch *d = c->dispatch;
	struct rules_caller caller;
	char text[RULES_TEXT_MAX];
	enum ipc_reason reason;
	struct asking a;
	int err;

	begin(&a, c, id, &m->base, arrived);
	a.name = m->rule;
	a.kept = m->key;
	a.rule = dispatch_rule(c, m->rule, &reason, text);
	if (a.rule == NULL) {
		fail(&a, reason, text);
		return;
	}
	a.tenant = &d->env.setup->config->tenants[a.rule->tenant];
	if (!is_uuid4(m->base.operation_id)) {
		fail(&a, IPC_REASON_VALIDATION,
		    "operation_id: must be a UUIDv4");
		return;
	}
	caller = caller_of(&a);
	err = rules_build(d->env.setup->rules, a.rule, &caller, m->base.tokens,
	    &d->asked, text);
	if (err != 0) {
		fail(&a, reason_of(err), text);
		return;
	}
	dispatch_local_warm(d->env.setup, a.rule, &caller);
	start(&a);
}

const struct config_tenant *
dispatch_tenant(
    struct dispatch *d, struct ipc_str name, char text[RULES_TEXT_MAX])
{
	const struct config *config = d->env.setup->config;
	const struct config_tenant *t;

	if (name.len == 0 && config->tenant_count == 1)
		return &config->tenants[0];
	if (name.len == 0) {
		message_format(text, RULES_TEXT_MAX,
		    "tenant: must be named, there are %zu",
		    config->tenant_count);
		return NULL;
	}
	t = config_tenant(config, name.bytes, name.len);
	if (t == NULL)
		message_format(text, RULES_TEXT_MAX, "tenant: unknown \"%.*s\"",
		    (int)name.len, (const char *)name.bytes);
	return t;
}

void
dispatch_check_adhoc(struct caller *c, uint64_t id,
    const struct ipc_check_adhoc *m, struct ipc_str payload, int64_t arrived)
{
	struct dispatch *d = c->dispatch;
	char text[RULES_TEXT_MAX];
	struct asking a;
	int err;

	begin(&a, c, id, &m->base, arrived);
	a.kept = payload;
	if (c->port->is.listener == NULL) {
		fail(&a, IPC_REASON_UNAUTHORISED, control_text);
		return;
	}
	if (!c->port->is.listener->adhoc) {
		fail(&a, IPC_REASON_UNAUTHORISED,
		    "this listener takes no ad-hoc checks");
		return;
	}
	a.tenant = dispatch_tenant(d, m->tenant, text);
	if (a.tenant == NULL) {
		fail(&a, IPC_REASON_VALIDATION, text);
		return;
	}
	if (!is_uuid4(m->base.operation_id)) {
		fail(&a, IPC_REASON_VALIDATION,
		    "operation_id: must be a UUIDv4");
		return;
	}
	err = rules_build_adhoc(
	    d->env.setup->rules, a.tenant, m, &d->asked, text);
	if (err != 0)
		fail(&a, reason_of(err), text);
	else
		start(&a);
}
