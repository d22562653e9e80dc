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

/* Of lines in the log that clients cause. */
#define LINES_BURST  10
#define LINES_MIN_US INT64_C(1000000)
#define LINES_MAX_US INT64_C(60000000)

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

void
dispatch_unready(const struct dispatch *d, char text[RULES_TEXT_MAX])
{
	const char *why;
	const struct config_tenant *tenant = setup_unready(d->env.setup, &why);

	message_format(text, RULES_TEXT_MAX,
	    "no decision is possible now, tenant %s: %s",
	    tenant != NULL ? tenant->name : "", why);
}

/* The answer to a WAIT whose time is up. */
static void
send_not_ready(struct client *c, uint64_t id)
{
	char text[RULES_TEXT_MAX];

	dispatch_unready(c->is.dispatch, text);
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

static struct waiter *
waiter_new(struct client *c, uint64_t id, uint16_t type)
{
	struct waiter *wt = calloc(1, sizeof(*wt));

	if (wt == NULL)
		return NULL;
	wt->client = c;
	wt->id = id;
	wt->type = type;
	wt->next = c->waiters;
	c->waiters = wt;
	return wt;
}

/* Whatever keeps it from waiting is answered. NULL then. */
static struct waiter *
await(struct client *c, uint64_t id, uint16_t type)
{
	struct waiter *wt = NULL;

	if (waiter_count(c) >= CLIENT_MAX_WAITERS) {
		c->is.dispatch->counters.cap_waiting++;
		dispatch_send_done(c, id, IPC_REASON_OVERLOADED,
		    "too many requests wait on this connection");
	} else if ((wt = waiter_new(c, id, type)) == NULL) {
		dispatch_send_done(
		    c, id, IPC_REASON_OVERLOADED, "out of memory");
	}
	return wt;
}

bool
dispatch_await(struct client *c, uint64_t id, uint16_t type)
{
	return await(c, id, type) != NULL;
}

static void
await_ready(struct client *c, uint64_t id, uint32_t timeout_ms)
{
	struct waiter *wt = await(c, id, IPC_WAIT);

	if (wt == NULL)
		return;
	wt->timer = loop_timer_new(c->is.dispatch->env.loop, wait_over, wt);
	if (wt->timer != NULL) {
		loop_timer_set(
		    wt->timer, loop_now() + (int64_t)timeout_ms * 1000);
		return;
	}
	waiter_free(wt);
	dispatch_send_done(c, id, IPC_REASON_OVERLOADED, "out of memory");
}

void
dispatch_wait(struct client *c, const struct ipc_head *head, struct reader *r)
{
	struct ipc_wait m;

	if (ipc_dec_wait(r, &m) != 0)
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "WAIT: malformed");
	else if (dispatch_is_ready(c->is.dispatch))
		dispatch_send_done(c, head->id, IPC_REASON_OK, "");
	else if (m.timeout_ms == 0)
		send_not_ready(c, head->id);
	else
		await_ready(c, head->id, m.timeout_ms);
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
	return setup_decides(d->env.setup);
}

/* The waiters of one type; 0: of all. */
static void
waiters_answer(
    struct client *c, uint16_t type, enum ipc_reason reason, const char *text)
{
	struct waiter *wt, *next;

	for (wt = c->waiters; wt != NULL; wt = next) {
		next = wt->next;
		if (type != 0 && wt->type != type)
			continue;
		dispatch_send_done(c, wt->id, reason, text);
		waiter_free(wt);
	}
}

void
dispatch_ready(struct dispatch *d)
{
	struct client *c;

	if (!dispatch_is_ready(d))
		return;
	for (c = d->clients; c != NULL; c = c->next)
		waiters_answer(c, IPC_WAIT, IPC_REASON_OK, "");
}

void
dispatch_reloaded(struct dispatch *d, enum ipc_reason reason, const char *text)
{
	struct client *c;

	for (c = d->clients; c != NULL; c = c->next)
		waiters_answer(c, IPC_RELOAD, reason, text);
}

static int
open_tables(struct dispatch *d)
{
	uint64_t seed[4];

	if (random_bytes(d->env.random, seed, sizeof(seed)) != 0)
		return -1;
	table_init(&d->uses, seed);
	table_init(&d->requests, seed + 2);
	dispatch_slots_init(d);
	slab_init(&d->clients_slab, sizeof(struct client), 32, UINT32_MAX);
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
	errorrate_init(&d->lines, LINES_BURST, LINES_MIN_US, LINES_MAX_US);
	dispatch_log_init(d);
	errorrate_init(&d->rate_lines, LINES_BURST, LINES_MIN_US, LINES_MAX_US);
	if (open_tables(d) != 0 || dispatch_ports_open(d, err) != 0) {
		dispatch_free(d);
		return NULL;
	}
	return d;
}

void
dispatch_free(struct dispatch *d)
{
	if (d == NULL)
		return;
	while (d->clients != NULL)
		dispatch_forget(d->clients);
	dispatch_ports_free(d);
	conn_pool_free(d->pool);
	table_fini(&d->requests);
	table_fini(&d->uses);
	dispatch_slots_fini(d);
	slab_fini(&d->clients_slab);
	free(d);
}

/* What it asks for next it has to ask of another connection. */
static void
go_away(struct client *c, const char *why)
{
	const struct ipc_go_away m = {
	    .last_id = c->last_id, .text = ipc_text(why)};
	struct writer *w = conn_begin(c->conn);

	dispatch_commit(c, ipc_enc_go_away(w, 0, &m));
	waiters_answer(c, 0, IPC_REASON_DRAINING, why);
	conn_stop_reading(c->conn);
}

void
dispatch_leave_done(struct caller *c)
{
	if (c->leaving && c->requests == NULL)
		c->hooks->left(c);
}

void
dispatch_leave(struct client *c, const char *why)
{
	if (c->is.leaving)
		return;
	c->is.leaving = true;
	go_away(c, why);
	dispatch_leave_done(&c->is);
}

/* An operator may look on, or hasten it. */
void
dispatch_drain(struct dispatch *d)
{
	struct client *c;

	dispatch_ports_close(d);
	for (c = d->clients; c != NULL; c = c->next) {
		if (c->is.port->control)
			waiters_answer(
			    c, IPC_RELOAD, IPC_REASON_DRAINING, going_away);
		else if (!c->is.leaving)
			go_away(c, going_away);
	}
}

void
dispatch_refuse(struct dispatch *d)
{
	d->draining = true;
}

/* Their closed hooks run at the end of the turn. */
void
dispatch_stop(struct dispatch *d)
{
	const bool idle = d->requests.count == 0;
	struct client *c;

	dispatch_ports_close(d);
	for (c = d->clients; c != NULL; c = c->next) {
		dispatch_cancel_all(&c->is);
		if (idle)
			waiters_answer(c, IPC_DRAIN, IPC_REASON_OK, "");
		waiters_answer(c, 0, IPC_REASON_DRAINING, going_away);
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

static void
count_waiters(const struct client *c, struct dispatch_queues *out)
{
	const struct waiter *wt;

	for (wt = c->waiters; wt != NULL; wt = wt->next) {
		out->waits += wt->type == IPC_WAIT;
		out->reloads += wt->type == IPC_RELOAD;
		out->drains += wt->type == IPC_DRAIN;
	}
}

void
dispatch_queues(const struct dispatch *d, struct dispatch_queues *out)
{
	const struct client *c;

	*out = (struct dispatch_queues){0};
	for (c = d->clients; c != NULL; c = c->next) {
		out->unsent += conn_unsent(c->conn);
		count_waiters(c, out);
	}
}

const struct agent_counters *
dispatch_counters(const struct dispatch *d)
{
	return &d->counters;
}

struct agent_counters *
dispatch_counting(struct dispatch *d)
{
	return &d->counters;
}
