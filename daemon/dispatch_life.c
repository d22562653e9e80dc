/*
 * The dispatcher's life: opening, readiness and those who wait for it,
 * draining, stopping.
 */
#include "daemon/dispatch_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/message.h"

static void
waiter_free(struct waiter *wt)
{
	struct waiter **at = &wt->client->waiters;

	while (*at != wt)
		at = &(*at)->next;
	*at = wt->next;
	loop_timer_free(wt->timer);
	free(wt);
}

static const char going_away[] = "the agent is going away";

/* The answer to a WAIT whose time is up: the first tenant that is not ready,
 * and what DNS says of it. */
static void
send_not_ready(struct client *c, uint64_t id)
{
	const struct dispatch_env *env = &c->dispatch->env;
	char text[RULES_TEXT_MAX];
	const char *why;
	size_t i = 0;

	while (
	    i + 1 < env->config->tenant_count && tenant_ready(env->tenants[i]))
		i++;
	why = discovery_error(tenant_discovery(env->tenants[i]));
	message_format(text, sizeof(text),
	    "no decision is possible yet, tenant %s: %s",
	    env->config->tenants[i].name,
	    *why != '\0' ? why : "discovery is not finished");
	dispatch_send_done(c, id, IPC_REASON_TIMEOUT, text);
}

static void
wait_over(void *arg)
{
	struct waiter *wt = arg;

	send_not_ready(wt->client, wt->id);
	waiter_free(wt);
}

bool
dispatch_waiting(const struct client *c, uint64_t id)
{
	const struct waiter *wt;

	for (wt = c->waiters; wt != NULL; wt = wt->next) {
		if (wt->id == id)
			return true;
	}
	return false;
}

static size_t
waiter_count(const struct client *c)
{
	const struct waiter *wt;
	size_t n = 0;

	for (wt = c->waiters; wt != NULL; wt = wt->next)
		n++;
	return n;
}

static int
waiter_new(struct client *c, uint64_t id, uint32_t timeout_ms)
{
	struct waiter *wt = calloc(1, sizeof(*wt));

	if (wt == NULL)
		return -1;
	wt->timer = loop_timer_new(c->dispatch->env.loop, wait_over, wt);
	if (wt->timer == NULL) {
		free(wt);
		return -1;
	}
	wt->client = c;
	wt->id = id;
	wt->next = c->waiters;
	c->waiters = wt;
	loop_timer_set(wt->timer, loop_now() + (int64_t)timeout_ms * 1000);
	return 0;
}

void
dispatch_wait(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_wait m;

	if (ipc_dec_wait(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "WAIT: malformed");
	else if (dispatch_is_ready(c->dispatch))
		dispatch_send_done(c, head->id, IPC_REASON_OK, "");
	else if (m.timeout_ms == 0)
		send_not_ready(c, head->id);
	else if (waiter_count(c) >= CLIENT_MAX_WAITERS)
		dispatch_send_done(c, head->id, IPC_REASON_OVERLOADED,
		    "too many waits on this connection");
	else if (waiter_new(c, head->id, m.timeout_ms) != 0)
		dispatch_send_done(
		    c, head->id, IPC_REASON_OVERLOADED, "out of memory");
}

void
dispatch_wait_forget(struct client *c)
{
	while (c->waiters != NULL)
		waiter_free(c->waiters);
}

bool
dispatch_is_ready(const struct dispatch *d)
{
	size_t i;

	for (i = 0; i < d->env.config->tenant_count; i++) {
		if (!tenant_ready(d->env.tenants[i]))
			return false;
	}
	return true;
}

static void
waiters_answer(struct client *c, enum ipc_reason reason, const char *text)
{
	while (c->waiters != NULL) {
		dispatch_send_done(c, c->waiters->id, reason, text);
		waiter_free(c->waiters);
	}
}

void
dispatch_ready(struct dispatch *d)
{
	struct client *c;

	if (!dispatch_is_ready(d))
		return;
	for (c = d->clients; c != NULL; c = c->next)
		waiters_answer(c, IPC_REASON_OK, "");
}

static int
open_tables(struct dispatch *d)
{
	const struct config *config = d->env.config;
	uint32_t clients = 0;
	uint64_t seed[4];
	size_t i;

	if (random_bytes(d->env.random, seed, sizeof(seed)) != 0)
		return -1;
	for (i = 0; i < config->listener_count; i++)
		clients += config->listeners[i].max_connections;
	table_init(&d->uids, seed);
	table_init(&d->requests, seed + 2);
	dispatch_slots_init(d);
	slab_init(&d->clients_slab, sizeof(struct client), 32,
	    clients + CONTROL_MAX_CONNECTIONS);
	d->pool = conn_pool_new(d->env.loop);
	return d->pool != NULL ? 0 : -1;
}

struct dispatch *
dispatch_new(const struct dispatch_env *env, char err[DISPATCH_ERR_MAX])
{
	struct dispatch *d = calloc(1, sizeof(*d));

	snprintf(err, DISPATCH_ERR_MAX, "out of memory or randomness");
	if (d == NULL)
		return NULL;
	d->env = *env;
	d->max_horizon_ms = config_max_horizon_ms(env->config);
	if (open_tables(d) != 0 || client_open_ports(d, err) != 0) {
		dispatch_free(d);
		return NULL;
	}
	return d;
}

int
dispatch_open(struct dispatch *d, char err[DISPATCH_ERR_MAX])
{
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		if (listener_start(d->ports[i].listener, err) != 0)
			return -1;
	}
	return 0;
}

void
dispatch_free(struct dispatch *d)
{
	if (d == NULL)
		return;
	client_close_ports(d);
	while (d->clients != NULL)
		dispatch_forget(d->clients);
	conn_pool_free(d->pool);
	table_fini(&d->requests);
	table_fini(&d->uids);
	dispatch_slots_fini(d);
	slab_fini(&d->clients_slab);
	free(d->ports);
	free(d);
}

void
dispatch_drain(struct dispatch *d)
{
	struct ipc_go_away m = {.text = ipc_text(going_away)};
	struct client *c;
	struct writer *w;

	client_close_ports(d);
	for (c = d->clients; c != NULL; c = c->next) {
		if (c->port->config == NULL)
			continue; /* an operator may look on, or hasten it */
		m.last_id = c->last_id;
		w = conn_begin(c->conn);
		if (w != NULL)
			dispatch_commit(c, ipc_enc_go_away(w, 0, &m));
		waiters_answer(c, IPC_REASON_DRAINING, going_away);
		conn_stop_reading(c->conn);
	}
}

/* Their closed hooks run at the end of the turn. */
void
dispatch_stop(struct dispatch *d)
{
	struct client *c;

	client_close_ports(d);
	for (c = d->clients; c != NULL; c = c->next) {
		dispatch_cancel_all(c);
		waiters_answer(c, IPC_REASON_DRAINING, going_away);
		conn_close(c->conn);
	}
}

uint32_t
dispatch_inflight(const struct dispatch *d)
{
	return d->requests.count;
}

bool
dispatch_idle(const struct dispatch *d)
{
	const struct client *c;

	if (d->requests.count > 0)
		return false;
	for (c = d->clients; c != NULL; c = c->next) {
		if (conn_unsent(c->conn) > 0)
			return false;
	}
	return true;
}

bool
dispatch_port(const struct dispatch *d, size_t index, struct dispatch_port *out)
{
	const struct port *p;

	if (index >= d->port_count)
		return false;
	p = &d->ports[index];
	out->name = p->name;
	out->path =
	    p->config != NULL ? p->config->path : d->env.config->control.path;
	out->connections = p->connections;
	out->inflight = p->inflight;
	out->accept_pauses =
	    p->listener != NULL ? listener_pauses(p->listener) : 0;
	return true;
}

const struct agent_counters *
dispatch_counters(const struct dispatch *d)
{
	return &d->counters;
}
