/*
 * The limiters of the host: acquires, begins and successes, answered at once
 * with the wait that is the caller's own, and the local limiters of rules.
 * Rights come first.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <inttypes.h>

#include "daemon/core/ratelimiter.h"
#include "daemon/log.h"
#include "daemon/message.h"

/* Why there is no grant. */
struct refusal {
	enum ipc_reason reason;
	char text[RULES_TEXT_MAX];
};

/* A call by name, of either kind. */
struct calling {
	struct client *client;
	uint64_t id;
	struct ipc_str name;
	struct limiters_key key;
	int64_t now;
};

static struct calling
calling(struct client *c, uint64_t id, struct ipc_str name, uint32_t options,
    struct ipc_str key)
{
	struct calling call = {
	    .client = c, .id = id, .name = name, .now = loop_now()};

	if ((options & IPC_OPT_KEY) != 0)
		call.key = (struct limiters_key){
		    .bytes = key.len > 0 ? (const void *)key.bytes : "",
		    .len = key.len,
		};
	return call;
}

static struct limiters *
limiters_of(const struct client *c)
{
	return c->is.dispatch->env.setup->limiters;
}

static void
count(struct client *c, enum ipc_reason reason)
{
	struct agent_counters *n = &c->is.dispatch->counters;

	n->limiter_calls++;
	n->limiter_calls_failed +=
	    reason != IPC_REASON_OK && reason != IPC_REASON_RESOURCE;
}

static void
send_delay(struct client *c, uint64_t id, enum ipc_reason reason,
    int64_t wait_us, const char *text)
{
	const struct ipc_delay m = {
	    .reason = (uint16_t)reason,
	    .wait_us = (uint64_t)wait_us,
	    .text = ipc_text(text),
	};
	struct writer *w = conn_begin(c->conn);

	count(c, reason);
	dispatch_commit(c, ipc_enc_delay(w, id, &m));
	dispatch_close_unread(c);
}

static void
send_done(
    struct client *c, uint64_t id, enum ipc_reason reason, const char *text)
{
	count(c, reason);
	dispatch_send_done(c, id, reason, text);
	dispatch_close_unread(c);
}

/* kind: of a limiter, for people. */
static void
unknown(struct refusal *no, const char *kind, struct ipc_str name)
{
	no->reason = IPC_REASON_UNKNOWN_RULE;
	message_format(no->text, sizeof(no->text), "unknown %s \"%.*s\"", kind,
	    (int)name.len, (const char *)name.bytes);
}

static void
unauthorised(struct refusal *no, const char *text)
{
	no->reason = IPC_REASON_UNAUTHORISED;
	message_format(no->text, sizeof(no->text), "%s", text);
}

static const struct config_limiter *
find_limiter(const struct calling *call, struct refusal *no)
{
	const struct client *c = call->client;
	const struct config_listener *l = c->is.port->is.listener;
	const struct config_limiter *found;

	if (l == NULL) {
		unauthorised(no, "the control socket takes no acquires");
		return NULL;
	}
	if (!config_allows(&l->limiters, call->name.bytes, call->name.len)) {
		unauthorised(no, "this listener does not offer the limiter");
		return NULL;
	}
	found = config_limiter(c->is.dispatch->env.setup->config,
	    call->name.bytes, call->name.len);
	if (found == NULL)
		unknown(no, "limiter", call->name);
	return found;
}

static const struct config_error_control *
find_control(const struct calling *call, struct refusal *no)
{
	const struct client *c = call->client;
	const struct config_listener *l = c->is.port->is.listener;
	const struct config_error_control *found;

	if (l == NULL) {
		unauthorised(
		    no, "the control socket takes no begins and successes");
		return NULL;
	}
	if (!config_allows(
		&l->error_controls, call->name.bytes, call->name.len)) {
		unauthorised(
		    no, "this listener does not offer the error control");
		return NULL;
	}
	found = config_error_control(c->is.dispatch->env.setup->config,
	    call->name.bytes, call->name.len);
	if (found == NULL)
		unknown(no, "error control", call->name);
	return found;
}

/* What a limiter said, of max_keys keys; what: each of them does. */
static void
answer(const struct calling *call, enum limiters_answer said, int64_t wait_us,
    const char *what, uint32_t max_keys)
{
	char text[RULES_TEXT_MAX];

	switch (said) {
	case LIMITERS_GRANTED:
		send_delay(call->client, call->id, IPC_REASON_OK, wait_us, "");
		return;
	case LIMITERS_REFUSED:
		send_delay(
		    call->client, call->id, IPC_REASON_RESOURCE, wait_us, "");
		return;
	case LIMITERS_FULL:
		message_format(text, sizeof(text),
		    "every key of \"%.*s\" %s (max_keys %" PRIu32 ")",
		    (int)call->name.len, (const char *)call->name.bytes, what,
		    max_keys);
		break;
	case LIMITERS_TOO_LONG:
		message_format(text, sizeof(text),
		    "\"%.*s\" owes a wait of over a year", (int)call->name.len,
		    (const char *)call->name.bytes);
		break;
	}
	send_delay(call->client, call->id, IPC_REASON_OVERLOADED, 0, text);
}

static bool
in_range(const struct ipc_acquire *m, uint64_t max_wait_us, struct refusal *no)
{
	no->reason = IPC_REASON_VALIDATION;
	if (m->permits == 0 || m->permits > RATELIMITER_MAX_PERMITS)
		message_format(no->text, sizeof(no->text),
		    "permits: must be 1..%d, not %" PRIu32,
		    RATELIMITER_MAX_PERMITS, m->permits);
	else if (max_wait_us > RATELIMITER_MAX_WAIT_US)
		message_format(no->text, sizeof(no->text),
		    "max_wait_us: must be 0..%" PRId64
		    " (a year), not %" PRIu64,
		    RATELIMITER_MAX_WAIT_US, max_wait_us);
	else
		return true;
	return false;
}

/* max_wait_us may be out of range yet. */
static void
acquire(struct client *c, uint64_t id, const struct ipc_acquire *m,
    uint64_t max_wait_us)
{
	const struct calling call =
	    calling(c, id, m->limiter, m->options, m->key);
	const struct config_limiter *limiter;
	enum limiters_answer said;
	struct refusal no;
	int64_t wait_us = 0;

	limiter = find_limiter(&call, &no);
	if (limiter == NULL || !in_range(m, max_wait_us, &no)) {
		send_delay(c, id, no.reason, 0, no.text);
		return;
	}
	said = limiters_acquire(limiters_of(c), limiter, call.key, m->permits,
	    (int64_t)max_wait_us, call.now, &wait_us);
	answer(&call, said, wait_us, "owes a wait", limiter->is.max_keys);
}

void
dispatch_acquire(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_acquire m;

	if (ipc_dec_acquire(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "ACQUIRE: malformed");
	else
		acquire(c, head->id, &m, RATELIMITER_MAX_WAIT_US);
}

void
dispatch_try_acquire(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_try_acquire m;

	if (ipc_dec_try_acquire(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "TRY_ACQUIRE: malformed");
	else
		acquire(c, head->id, &m.acquire, m.max_wait_us);
}

void
dispatch_error_begin(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config_error_control *control;
	struct ipc_error_control m;
	enum limiters_answer said;
	struct calling call;
	struct refusal no;
	int64_t wait_us = 0;

	if (ipc_dec_error_control(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "ERROR_BEGIN: malformed");
		return;
	}
	call = calling(c, head->id, m.control, m.options, m.key);
	control = find_control(&call, &no);
	if (control == NULL) {
		send_delay(c, head->id, no.reason, 0, no.text);
		return;
	}
	said = limiters_error_begin(
	    limiters_of(c), control, call.key, call.now, &wait_us);
	answer(&call, said, wait_us, "holds a delay", control->max_keys);
}

void
dispatch_error_success(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config_error_control *control;
	struct ipc_error_control m;
	struct calling call;
	struct refusal no;

	if (ipc_dec_error_control(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "ERROR_SUCCESS: malformed");
		return;
	}
	call = calling(c, head->id, m.control, m.options, m.key);
	control = find_control(&call, &no);
	if (control == NULL) {
		send_done(c, head->id, no.reason, no.text);
		return;
	}
	limiters_error_success(limiters_of(c), control, call.key, call.now);
	send_done(c, head->id, IPC_REASON_OK, "");
}

/* A script may change it often. */
static void
say_rate(
    struct dispatch *d, const struct config_limiter *limiter, uint64_t rate)
{
	if (!log_may(
		LOG_LEVEL_INFO, &d->rate_lines, loop_now(), &d->rates_unsaid))
		return;
	log_info("set-rate",
	    "limiter=\"%s\" permits_per_second=%.15g unsaid=%" PRIu64,
	    limiter->name, (double)rate / RATELIMITER_ONE, d->rates_unsaid);
	d->rates_unsaid = 0;
}

void
dispatch_set_rate(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config *config = c->is.dispatch->env.setup->config;
	const struct config_limiter *limiter;
	struct ipc_set_rate m;
	struct refusal no;

	if (ipc_dec_set_rate(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "SET_RATE: malformed");
		return;
	}
	if (!c->is.port->control) {
		dispatch_send_done(c, head->id, IPC_REASON_UNAUTHORISED,
		    "only on the control socket");
		return;
	}
	limiter = config_limiter(config, m.limiter.bytes, m.limiter.len);
	if (limiter == NULL) {
		unknown(&no, "limiter", m.limiter);
		dispatch_send_done(c, head->id, no.reason, no.text);
		return;
	}
	if (m.rate < RATELIMITER_MIN_RATE || m.rate > RATELIMITER_MAX_RATE) {
		dispatch_send_done(c, head->id, IPC_REASON_VALIDATION,
		    "rate: must be 0.001..1000000 permits a second");
		return;
	}
	limiters_set_rate(limiters_of(c), limiter, (int64_t)m.rate);
	say_rate(c->is.dispatch, limiter, m.rate);
	dispatch_send_done(c, head->id, IPC_REASON_OK, "");
}

/* The instance of the rule for a caller; the one without a key when the rule
 * asks the same for everybody. False: the caller lacks a key. */
static bool
local_key(const struct setup *setup, const struct config_rule *rule,
    const struct rules_caller *caller, uint8_t room[RULES_LOCAL_KEY_MAX],
    struct limiters_key *key)
{
	size_t len;

	if (rules_local_key(setup->rules, rule, caller, room, &len) != 0)
		return false;
	*key = (struct limiters_key){
	    .bytes = len > 0 ? room : NULL,
	    .len = len,
	};
	return true;
}

void
dispatch_local_warm(const struct setup *setup, const struct config_rule *rule,
    const struct rules_caller *caller)
{
	uint8_t room[RULES_LOCAL_KEY_MAX];
	struct limiters_key key;

	if (rule->on_failure == FAILURE_LOCAL &&
	    local_key(setup, rule, caller, room, &key))
		limiters_local_warm(setup->limiters, rule, key, loop_now());
}

void
dispatch_local_decide(struct dispatch *d, const struct failing *f)
{
	uint8_t room[RULES_LOCAL_KEY_MAX];
	enum limiters_answer said = LIMITERS_FULL;
	struct limiters_key key;
	int64_t wait_us = 0;

	/* What lacks a key was never asked, and fails by validation. */
	if (local_key(f->setup, f->rule, &f->caller, room, &key))
		said = limiters_local_acquire(f->setup->limiters, f->rule, key,
		    f->tokens, loop_now(), &wait_us);
	else
		assert(false);
	decision_local(&d->decision, said == LIMITERS_GRANTED,
	    said == LIMITERS_REFUSED ? wait_us : 0, d->local_text);
}
