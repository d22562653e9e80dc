/*
 * Frames to messages: the greeting, one handler per message in one table, and
 * the small answers. What a handler cannot decode ends its connection, with
 * an ERROR that says why, and touches no other.
 */
#include "daemon/dispatch_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/message.h"
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

	if (w == NULL)
		return;
	dispatch_commit(c, ipc_enc_done(w, id, &m));
}

void
dispatch_bad_frame(
    struct client *c, uint64_t id, enum ipc_error_code code, const char *text)
{
	c->dispatch->counters.frames_bad++;
	log_debug("frame", "listener=%s client=\"%s\" error=\"%s\"",
	    c->port->name, c->name, text);
	conn_error(c->conn, id, code, text);
}

static void
handle_hello(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch *d = c->dispatch;
	struct ipc_welcome welcome;
	struct ipc_hello hello;
	struct writer *w;
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
	welcome = (struct ipc_welcome){
	    .version = IPC_VERSION,
	    .max_frame = IPC_MAX_FRAME,
	    .max_inflight =
		c->port->config != NULL ? c->port->config->max_inflight : 0,
	    .default_deadline_ms = d->max_horizon_ms < UINT32_MAX - 1000
				       ? d->max_horizon_ms + 1000
				       : UINT32_MAX,
	    .generation = d->env.generation,
	    .agent = ipc_text(PACKAGE_STRING),
	};
	memcpy(welcome.config_hash, d->env.config->hash, IPC_HASH_LEN);
	w = conn_begin(c->conn);
	if (w == NULL)
		return;
	dispatch_commit(c, ipc_enc_welcome(w, head->id, &welcome));
}

static void
handle_check(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_check m;

	if (ipc_dec_check(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CHECK: malformed");
	else
		dispatch_check_rule(c, head->id, &m);
}

static void
handle_adhoc(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct dispatch *d = c->dispatch;
	const struct ipc_str payload = {
	    .bytes = r->at, .len = (uint16_t)reader_left(r)};

	if (ipc_dec_check_adhoc(r, &d->adhoc) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CHECK_ADHOC: malformed");
	else
		dispatch_check_adhoc(c, head->id, &d->adhoc, payload);
}

static void
handle_cancel(struct client *c, const struct ipc_head *head, struct reader *r)
{
	if (ipc_dec_empty(r) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "CANCEL: malformed");
	else
		dispatch_cancel(c, head->id);
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
	if (w == NULL)
		return;
	dispatch_commit(c, ipc_enc_pong(w, head->id, &m));
}

static void
handle_document(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch_env *env = &c->dispatch->env;
	struct writer *w;
	size_t len, at, n;
	char *json;

	if (ipc_dec_empty(r) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "query: malformed");
		return;
	}
	json = env->document(env->arg, head->type);
	if (json == NULL) {
		dispatch_send_done(
		    c, head->id, IPC_REASON_OVERLOADED, "out of memory");
		return;
	}
	len = strlen(json);
	for (at = 0; at < len; at += n) {
		n = len - at < DOCUMENT_CHUNK ? len - at : DOCUMENT_CHUNK;
		w = conn_begin(c->conn);
		if (w == NULL)
			break;
		dispatch_commit(c,
		    ipc_enc_document(w, head->id, json + at, n, at + n < len));
	}
	free(json);
}

static void
handle_quit(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct dispatch_env *env = &c->dispatch->env;

	if (ipc_dec_empty(r) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "QUIT: malformed");
		return;
	}
	if (c->port->config != NULL) {
		dispatch_send_done(c, head->id, IPC_REASON_UNAUTHORISED,
		    "quit: only on the control socket");
		return;
	}
	dispatch_send_done(c, head->id, IPC_REASON_OK, "");
	env->quit(env->arg);
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
    {IPC_PING, handle_ping},
    {IPC_WAIT, dispatch_wait},
    {IPC_STATUS, handle_document},
    {IPC_SERVERS, handle_document},
    {IPC_POLICY, handle_document},
    {IPC_QUIT, handle_quit},
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
	if (head->type != IPC_CANCEL && (dispatch_in_flight(c, head->id) ||
					    dispatch_waiting(c, head->id))) {
		dispatch_bad_frame(c, head->id, IPC_ERR_ID,
		    "the request id is in flight on this connection");
		return;
	}
	if (head->type != IPC_CANCEL && head->id > c->last_id)
		c->last_id = head->id;
	handle(c, head, payload);
}

void
dispatch_forget(struct client *c)
{
	dispatch_cancel_all(c);
	dispatch_wait_forget(c);
	conn_set_user(c->conn, NULL);
	client_free(c);
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
    .closed = closed,
    .broken = broken,
};
