/*
 * Connections of gateways: a caller each, and routes to what they ask for.
 * Invariant: a connection asks one thing at a time, since HTTP answers in
 * order, so a check in flight is that of the request that waits.
 */
#include "daemon/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "daemon/core/container.h"
#include "daemon/gateway_answer.h"
#include "daemon/gateway_target.h"
#include "daemon/io/conn.h"
#include "daemon/io/http.h"

/* Unread bytes of documents, of all together, at which there are no more: they
 * are long, and cheap to ask for. */
#define DOCUMENTS_OUT_MAX (16 * 1024 * 1024)
#define METRICS_TYPE      "text/plain; version=0.0.4; charset=utf-8"

struct visitor {
	struct caller is;
	struct gateway *gateway;
	struct http_conn *http;
	uint64_t id;              /* of its last check */
	unsigned int deny_status; /* of that */
	bool waiting;             /* it wants an answer */
	size_t document;          /* bytes of it, when the last was one */
	TAILQ_ENTRY(visitor) link;
};

TAILQ_HEAD(visitors, visitor);

struct gateway {
	struct gateway_env env;
	struct http *http;
	struct visitors visitors;
	bool draining;
	/* Scratch, too large for the stack of a callback. */
	struct gateway_answer answer;
	struct gateway_ask ask;
};

static void
send(struct visitor *v)
{
	v->waiting = false;
	http_answer(v->http, &v->gateway->answer.is);
}

static void
send_line(struct visitor *v, unsigned int status, const char *text)
{
	gateway_answer_line(&v->gateway->answer, status, text);
	send(v);
}

static void
decided(struct caller *caller, uint64_t id, const struct config_rule *rule,
    const struct ipc_decision *d)
{
	struct visitor *v = container_of(caller, struct visitor, is);

	(void)id;
	if (!v->waiting)
		return; /* nobody is there to be told */
	gateway_answer_decision(&v->gateway->answer, rule, d, v->deny_status);
	send(v);
}

static const struct caller_hooks caller_hooks = {.decided = decided};

static bool
is_read_only(enum http_method method)
{
	return method == HTTP_GET || method == HTTP_HEAD;
}

static void
not_allowed(struct visitor *v, const char *allow)
{
	struct gateway_answer *a = &v->gateway->answer;

	gateway_answer_line(a, 405, "the method is not allowed");
	gateway_answer_field(a, "Allow", allow);
	send(v);
}

/* A header that somebody else has set beside the proxy's is no key. An empty
 * one is none. */
static int
read_key_header(
    struct visitor *v, const char *name, char text[GATEWAY_TEXT_MAX])
{
	const char *value;
	size_t len;
	const size_t count = http_header(v->http, name, &value, &len);

	if (count == 0 || (count == 1 && len == 0))
		return 0;
	if (count > 1) {
		snprintf(text, GATEWAY_TEXT_MAX, "%s: is there %zu times", name,
		    count);
		return 400;
	}
	return gateway_key_read(value, len, &v->gateway->ask, text);
}

/* The rest of what the target began. 0 or a status. */
static int
read_rest(struct visitor *v, const struct http_request *req,
    char text[GATEWAY_TEXT_MAX])
{
	struct gateway_ask *ask = &v->gateway->ask;
	const char *header = caller_gateway(&v->is)->key_header;
	int rc = 0;

	if (ask->route == GATEWAY_CHECK && req->is_form && req->form == NULL) {
		snprintf(text, GATEWAY_TEXT_MAX,
		    "the form is longer than %d bytes", HTTP_FORM_MAX);
		return 413;
	}
	if (ask->route == GATEWAY_CHECK && req->is_form)
		rc = gateway_form_read(req->form, req->form_len, ask, text);
	if (rc == 0 && !ask->has_key && header != NULL)
		rc = read_key_header(v, header, text);
	return rc;
}

static void
start_check(struct visitor *v)
{
	struct gateway_ask *ask = &v->gateway->ask;
	struct ipc_check m = {
	    .base.options = IPC_OPT_DETAIL,
	    .base.tokens = ask->tokens,
	    .rule = {ask->rule, (uint16_t)ask->rule_len},
	};

	if (ask->has_key) {
		m.base.options |= IPC_OPT_KEY;
		m.key = (struct ipc_str){ask->key, (uint16_t)ask->key_len};
	}
	if (random_uuid(v->gateway->env.random, m.base.operation_id) != 0) {
		send_line(v, 503, "the system has no randomness");
		return;
	}
	v->deny_status = caller_gateway(&v->is)->deny_status;
	dispatch_check_rule(&v->is, ++v->id, &m, loop_now());
}

static void
check(struct visitor *v, const struct http_request *req)
{
	char text[GATEWAY_TEXT_MAX];
	int status;

	if (v->gateway->ask.route == GATEWAY_CHECK &&
	    !is_read_only(req->method) && req->method != HTTP_POST) {
		not_allowed(v, "GET, HEAD, POST");
		return;
	}
	status = read_rest(v, req, text);
	if (status != 0)
		send_line(v, (unsigned int)status, text);
	else
		start_check(v);
}

static bool
leave_unread(const struct gateway *g)
{
	const struct visitor *v;
	size_t unread = 0;

	TAILQ_FOREACH(v, &g->visitors, link)
	{
		if (http_sending(v->http))
			unread += v->document;
	}
	return unread >= DOCUMENTS_OUT_MAX;
}

static void
too_many(struct visitor *v)
{
	struct gateway_answer *a = &v->gateway->answer;

	dispatch_counting(v->gateway->env.dispatch)->cap_documents++;
	gateway_answer_line(a, 503, "too many documents are not read");
	gateway_answer_field(a, "Retry-After", "1");
	send(v);
}

static void
metrics(struct visitor *v)
{
	const struct gateway_env *env = &v->gateway->env;
	char *text;

	if (leave_unread(v->gateway)) {
		too_many(v);
		return;
	}
	text = env->metrics(env->arg);
	if (text == NULL) {
		send_line(v, 503, "out of memory");
		return;
	}
	gateway_answer_document(&v->gateway->answer, METRICS_TYPE, text);
	v->document = v->gateway->answer.is.len;
	send(v);
	free(text);
}

static void
readyz(struct visitor *v)
{
	char text[RULES_TEXT_MAX];

	if (v->gateway->draining)
		send_line(v, 503, "draining");
	else if (dispatch_is_ready(v->gateway->env.dispatch))
		send_line(v, 200, "ready");
	else {
		dispatch_unready(v->gateway->env.dispatch, text);
		send_line(v, 503, text);
	}
}

static void
inform(struct visitor *v, const struct http_request *req)
{
	if (!is_read_only(req->method)) {
		not_allowed(v, "GET, HEAD");
		return;
	}
	switch (v->gateway->ask.route) {
	case GATEWAY_METRICS:
		metrics(v);
		return;
	case GATEWAY_HEALTHZ:
		send_line(v, 200, "ok");
		return;
	case GATEWAY_READYZ:
		readyz(v);
		return;
	case GATEWAY_CHECK:
	case GATEWAY_ORIGINAL:
		return;
	}
}

static void
on_request(void *user, const struct http_request *req)
{
	struct visitor *v = user;
	struct gateway_ask *ask = &v->gateway->ask;
	char text[GATEWAY_TEXT_MAX];
	int status = gateway_target_read(req->target, ask, text);

	v->waiting = true;
	v->document = 0;
	if (!caller_may_stay(&v->is))
		send_line(v, 503, "the configuration has changed");
	else if (status != 0)
		send_line(v, (unsigned int)status, text);
	else if (ask->route == GATEWAY_CHECK || ask->route == GATEWAY_ORIGINAL)
		check(v, req);
	else
		inform(v, req);
}

static void
on_gone(void *user)
{
	struct visitor *v = user;

	v->waiting = false;
	dispatch_cancel(&v->is, v->id);
}

static void
on_closed(void *user)
{
	struct visitor *v = user;

	v->waiting = false;
	TAILQ_REMOVE(&v->gateway->visitors, v, link);
	caller_end(&v->is);
	free(v);
}

static const struct http_hooks http_hooks = {
    .request = on_request,
    .gone = on_gone,
    .closed = on_closed,
};

struct gateway *
gateway_new(const struct gateway_env *env)
{
	struct gateway *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->env = *env;
	TAILQ_INIT(&g->visitors);
	g->http =
	    http_new(env->loop, &http_hooks, dispatch_counting(env->dispatch));
	if (g->http != NULL)
		return g;
	free(g);
	return NULL;
}

void
gateway_free(struct gateway *g)
{
	if (g == NULL)
		return;
	http_free(g->http);
	free(g);
}

/* What keeps it from being let in, or NULL: it is there. */
static const char *
admit(struct gateway *g, struct port *port, int fd)
{
	struct visitor *v = calloc(1, sizeof(*v));
	struct conn_peer peer;
	const char *why = "out of memory";

	if (v != NULL && conn_peer_of(fd, &peer) == 0) {
		v->gateway = g;
		v->is.hooks = &caller_hooks;
		v->is.uid = peer.uid;
		v->is.gid = peer.gid;
		why = caller_admit(&v->is, port, fd);
	}
	if (why != NULL) {
		free(v);
		return why;
	}
	TAILQ_INSERT_TAIL(&g->visitors, v, link);
	v->http = http_accept(g->http, fd, v);
	if (v->http == NULL)
		on_closed(v); /* and so is fd */
	return NULL;
}

void
gateway_accepted(struct gateway *g, struct port *port, int fd)
{
	struct agent_counters *n = dispatch_counting(g->env.dispatch);
	const char *why;

	n->http_connections++;
	why = admit(g, port, fd);
	if (why == NULL)
		return;
	n->http_refused++;
	http_refuse(g->http, fd, why);
}

void
gateway_follow(struct gateway *g)
{
	struct visitor *v;

	if (g == NULL)
		return;
	TAILQ_FOREACH(v, &g->visitors, link)
	{
		if (!caller_may_stay(&v->is))
			http_leave(v->http);
	}
}

void
gateway_drain(struct gateway *g)
{
	if (g == NULL)
		return;
	g->draining = true;
	http_drain(g->http);
}

bool
gateway_expecting(const struct gateway *g)
{
	return g != NULL && http_expecting(g->http);
}

void
gateway_drain_fresh(struct gateway *g)
{
	if (g != NULL)
		http_drain_fresh(g->http);
}

void
gateway_stop(struct gateway *g)
{
	struct visitor *v;

	if (g == NULL)
		return;
	gateway_drain(g); /* first: it may begin checks */
	TAILQ_FOREACH(v, &g->visitors, link)
	{
		dispatch_cancel(&v->is, v->id);
	}
}

bool
gateway_idle(const struct gateway *g)
{
	return g == NULL || http_idle(g->http);
}
