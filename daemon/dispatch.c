/*
 * Frames to messages: the greeting, one handler per message in one table, and
 * the small answers. What a handler cannot decode ends its connection, with
 * an ERROR that says why, and touches no other.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/container.h"
#include "daemon/log.h"
#include "proto/err.h"

#define DOCUMENT_CHUNK (IPC_MAX_FRAME - IPC_HEAD_LEN)

void
dispatch_commit(struct client *c, int rc)
{
	assert(rc == 0);
	(void)rc;
	conn_commit(c->conn);
}

void
dispatch_send_done(
    struct client *c, uint64_t id, enum ipc_reason reason, const char *text)
{
	const struct ipc_done m = {
	    .reason = (uint16_t)reason, .text = ipc_text(text)};
	struct writer *w = conn_begin(c->conn);

	dispatch_commit(c, ipc_enc_done(w, id, &m));
}

void
dispatch_bad_frame(
    struct client *c, uint64_t id, enum ipc_error_code code, const char *text)
{
	struct dispatch *d = c->is.dispatch;

	d->counters.frames_bad++;
	if (log_may(LOG_LEVEL_DEBUG, &d->lines, loop_now(), &d->unsaid)) {
		log_debug("frame",
		    "listener=%s client=\"%s\" unsaid=%" PRIu64 " error=\"%s\"",
		    c->is.port->is.name, c->name, d->unsaid, text);
		d->unsaid = 0;
	}
	conn_error(c->conn, id, code, text);
}

void
dispatch_welcome(struct client *c, uint64_t id)
{
	const struct setup *setup = c->is.dispatch->env.setup;
	const struct config_listener *l = c->is.port->is.listener;
	const uint32_t horizon_ms = config_max_horizon_ms(setup->config);
	struct ipc_welcome welcome = {
	    .version = IPC_VERSION,
	    .max_frame = IPC_MAX_FRAME,
	    .max_inflight = l != NULL ? l->max_inflight : 0,
	    .default_deadline_ms =
		horizon_ms < UINT32_MAX - 1000 ? horizon_ms + 1000 : UINT32_MAX,
	    .generation = setup->generation,
	    .agent = ipc_text(PACKAGE_STRING),
	};
	struct writer *w;

	memcpy(welcome.config_hash, setup->config->hash, IPC_HASH_LEN);
	w = conn_begin(c->conn);
	dispatch_commit(c, ipc_enc_welcome(w, id, &welcome));
	dispatch_close_unread(c);
}

static void
handle_hello(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_hello hello;
	size_t len;

	if (ipc_dec_hello(r, &hello) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "HELLO: malformed");
		return;
	}
	if (hello.version_min > IPC_VERSION ||
	    hello.version_max < IPC_VERSION) {
		dispatch_bad_frame(c, head->id, IPC_ERR_VERSION,
		    "HELLO: this agent speaks version 1 only");
		return;
	}
	c->greeted = true;
	len = hello.client.len < CLIENT_NAME_MAX ? hello.client.len
						 : CLIENT_NAME_MAX;
	if (len > 0)
		memcpy(c->name, hello.client.bytes, len);
	dispatch_welcome(c, head->id);
}

static void
handle_check(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_check m;

	if (ipc_dec_check(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CHECK: malformed");
	else
		dispatch_check_rule(&c->is, head->id, &m, conn_now(c->conn));
}

static void
handle_adhoc(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct dispatch *d = c->is.dispatch;
	const struct ipc_str payload = {
	    .bytes = r->at, .len = (uint16_t)reader_left(r)};

	if (ipc_dec_check_adhoc(r, &d->adhoc) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CHECK_ADHOC: malformed");
	else
		dispatch_check_adhoc(
		    &c->is, head->id, &d->adhoc, payload, conn_now(c->conn));
}

static void
handle_cancel(struct client *c, const struct ipc_head *head, struct reader *r)
{
	if (ipc_dec_empty(r) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CANCEL: malformed");
	else
		dispatch_cancel(&c->is, head->id);
}

static void
handle_ping(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_ping m;
	struct writer *w;

	if (ipc_dec_ping(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "PING: malformed");
		return;
	}
	w = conn_begin(c->conn);
	dispatch_commit(c, ipc_enc_pong(w, head->id, &m));
}

/* Takes the text, which may be NULL: no memory. */
static void
send_document(struct client *c, uint64_t id, char *text)
{
	struct writer *w;
	size_t len, at, n;

	if (text == NULL) {
		dispatch_send_done(
		    c, id, IPC_REASON_OVERLOADED, "out of memory");
		return;
	}
	len = strlen(text);
	for (at = 0; at < len; at += n) {
		n = len - at < DOCUMENT_CHUNK ? len - at : DOCUMENT_CHUNK;
		w = conn_begin(c->conn);
		dispatch_commit(
		    c, ipc_enc_document(w, id, text + at, n, at + n < len));
	}
	free(text);
}

/* Documents are long, and cheap to ask for: what one uid leaves unread of them
 * is bounded, however many connections it has. An operator is let through. */
static bool
leaves_unread(const struct client *c)
{
	const struct client *other;
	size_t unsent = 0;

	for (other = c->is.dispatch->clients; other != NULL;
	     other = other->next) {
		if (other->is.all == c->is.all)
			unsent += conn_unsent(other->conn);
	}
	return !c->is.port->control && unsent >= DOCUMENTS_OUT_MAX;
}

static void
handle_document(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch_env *env = &c->is.dispatch->env;

	if (ipc_dec_empty(r) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "query: malformed");
	else if (leaves_unread(c)) {
		c->is.dispatch->counters.cap_documents++;
		dispatch_send_done(c, head->id, IPC_REASON_OVERLOADED,
		    "too many documents of this uid are not read");
	} else {
		send_document(c, head->id,
		    env->document(
			env->arg, head->type, c->is.port->is.listener));
	}
}

/* Keys can be personal. */
static void
handle_top(struct client *c, const struct ipc_head *head, struct reader *r)
{
	if (c->is.port->control || reader_left(r) > 0)
		handle_document(c, head, r);
	else
		dispatch_send_done(c, head->id, IPC_REASON_UNAUTHORISED,
		    "only on the control socket");
}

static void
handle_explain(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch_env *env = &c->is.dispatch->env;
	const struct config_rule *rule;
	struct rules_caller caller;
	struct ipc_explain m;
	char text[RULES_TEXT_MAX];

	if (ipc_dec_explain(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "EXPLAIN: malformed");
		return;
	}
	rule = config_rule(env->setup->config, m.rule.bytes, m.rule.len);
	if (rule == NULL) {
		dispatch_unknown_rule(m.rule, text);
		dispatch_send_done(c, head->id, IPC_REASON_UNKNOWN_RULE, text);
		return;
	}
	caller = dispatch_caller(&c->is,
	    (m.options & IPC_OPT_KEY) != 0 ? m.key.bytes : NULL, m.key.len);
	send_document(c, head->id,
	    env->explain(
		env->arg, c->is.port->is.listener, rule, &caller, m.tokens));
}

/* QUIT, RELOAD and DRAIN. The last answer of the first is at once: nobody
 * is there afterwards. */
static void
handle_control(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch_env *env = &c->is.dispatch->env;

	if (ipc_dec_empty(r) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "control: malformed");
		return;
	}
	if (!c->is.port->control) {
		dispatch_send_done(c, head->id, IPC_REASON_UNAUTHORISED,
		    "only on the control socket");
		return;
	}
	if (head->type == IPC_QUIT)
		dispatch_send_done(c, head->id, IPC_REASON_OK, "");
	else if (!dispatch_await(c, head->id, head->type))
		return;
	env->control(env->arg, head->type);
}

typedef void handler(
    struct client *c, const struct ipc_head *head, struct reader *r);

/* Every message that a client may send after its HELLO. */
static const struct {
	uint16_t type;
	handler *handle;
} handlers[] = {
    {IPC_CHECK, handle_check},
    {IPC_CHECK_ADHOC, handle_adhoc},
    {IPC_CANCEL, handle_cancel},
    {IPC_REPORT, dispatch_report},
    {IPC_REPORT_ADHOC, dispatch_report_adhoc},
    {IPC_REPORT_RULE, dispatch_report_rule},
    {IPC_PING, handle_ping},
    {IPC_WAIT, dispatch_wait},
    {IPC_STATUS, handle_document},
    {IPC_SERVERS, handle_document},
    {IPC_POLICY, handle_document},
    {IPC_RULES, handle_document},
    {IPC_EXPLAIN, handle_explain},
    {IPC_LIMITERS, handle_document},
    {IPC_METRICS, handle_document},
    {IPC_TOP, handle_top},
    {IPC_ACQUIRE, dispatch_acquire},
    {IPC_TRY_ACQUIRE, dispatch_try_acquire},
    {IPC_ERROR_BEGIN, dispatch_error_begin},
    {IPC_ERROR_SUCCESS, dispatch_error_success},
    {IPC_QUIT, handle_control},
    {IPC_RELOAD, handle_control},
    {IPC_DRAIN, handle_control},
    {IPC_SET_RATE, dispatch_set_rate},
};

static handler *
find_handler(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type == type)
			return handlers[i].handle;
	}
	return NULL;
}

/* Is it free? Whoever counts upwards, as most do, need not be looked up. */
static bool
take_id(struct client *c, uint64_t id)
{
	if (id > c->last_id) {
		c->last_id = id;
		return true;
	}
	return !dispatch_in_flight(&c->is, id) && !dispatch_waiting(c, id);
}

static void
frame(void *arg, struct conn *conn, const struct ipc_head *head,
    struct reader *payload)
{
	struct client *c = conn_user(conn);
	handler *handle;

	(void)arg;
	if (c == NULL) /* refused; its ERROR is on the way */
		return;
	if (c->greeted == (head->type == IPC_HELLO)) {
		dispatch_bad_frame(c, head->id, IPC_ERR_GREETING,
		    c->greeted ? "HELLO: sent twice" : "HELLO must be first");
		return;
	}
	if (head->type == IPC_HELLO) {
		handle_hello(c, head, payload);
		return;
	}
	handle = find_handler(head->type);
	if (handle == NULL) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_TYPE, "unknown message type");
		return;
	}
	if (head->type != IPC_CANCEL && !take_id(c, head->id)) {
		dispatch_bad_frame(c, head->id, IPC_ERR_ID,
		    "the request id is in flight on this connection");
		return;
	}
	handle(c, head, payload);
}

void
dispatch_forget(struct client *c)
{
	dispatch_cancel_all(&c->is);
	dispatch_wait_forget(c);
	conn_set_user(c->conn, NULL);
	client_free(c);
}

static bool
hungry(void *arg, struct conn *conn)
{
	const struct client *c = conn_user(conn);

	(void)arg;
	return c == NULL || caller_is_hungry(&c->is, conn_now(conn));
}

static void
closed(void *arg, struct conn *conn)
{
	struct client *c = conn_user(conn);

	(void)arg;
	if (c != NULL)
		dispatch_forget(c);
}

static void
broken(void *arg, struct conn *conn, enum ipc_error_code code)
{
	struct dispatch *d = arg;

	(void)conn;
	if (code == IPC_ERR_SLOW)
		d->counters.frames_slow++;
	else
		d->counters.frames_bad++;
}

const struct conn_hooks dispatch_hooks = {
    .frame = frame,
    .hungry = hungry,
    .closed = closed,
    .broken = broken,
};

static struct client *
client_of(const struct caller *c)
{
	return container_of(c, struct client, is);
}

static void
decided(struct caller *caller, uint64_t id, const struct config_rule *rule,
    const struct ipc_decision *d)
{
	struct client *c = client_of(caller);
	struct writer *w = conn_begin(c->conn);

	(void)rule;
	dispatch_commit(c, ipc_enc_decision(w, id, d));
	dispatch_close_unread(c);
}

static void
left(struct caller *c)
{
	conn_finish(client_of(c)->conn);
}

static int64_t
empty_at(const struct caller *c)
{
	return conn_empty_at(client_of(c)->conn);
}

const struct caller_hooks dispatch_client_hooks = {
    .decided = decided,
    .left = left,
    .empty_at = empty_at,
};
