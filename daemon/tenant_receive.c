/*
 * Datagrams that come in: checked from the cheap to the costly, each failure
 * counted by kind, and nothing changed before all of it has passed. Only then
 * is an answer an event of its operation (wire rules: r-client specification,
 * sections 6.3, 7.1.2 and 9.3.3).
 */
#include "daemon/tenant_private.h"

#include <string.h>

/* A server that answered within this time is known to be alive. */
#define HEARD_US 1000000

/* Stamps of answers to operations that are forgotten may differ by this. */
#define RECENT_MS 60000

/* An answer must be in the request's form: same counts, ids and order. */
static bool
same_blocks(const struct tenant_op *op, const struct pdu_rate *rate)
{
	const struct tenant_block *b = op->blocks;
	size_t i;

	if (rate->guard_count != op->guard_count ||
	    rate->resource_count != op->resource_count)
		return false;
	for (i = 0; i < rate->guard_count; i++, b++) {
		if (memcmp(b->id, rate->guards[i].id, ID_LEN) != 0)
			return false;
	}
	for (i = 0; i < rate->resource_count; i++, b++) {
		if (memcmp(b->id, rate->resources[i].id, ID_LEN) != 0)
			return false;
	}
	return true;
}

static void
keep_answer(struct tenant_op *op, const struct pdu_rate *rate)
{
	struct tenant_block *b = op->blocks;
	size_t i;

	for (i = 0; i < rate->guard_count; i++, b++) {
		b->first = rate->guards[i].threshold_ms;
		b->second = rate->guards[i].current_ms;
	}
	for (i = 0; i < rate->resource_count; i++, b++) {
		b->first = rate->resources[i].limit;
		b->second = rate->resources[i].tokens;
	}
}

static bool
known_source(const struct member *m, const struct endpoint *from)
{
	uint32_t i;

	for (i = 0; i < m->addr_count; i++) {
		if (endpoint_equal(&m->addrs[i], from))
			return true;
	}
	return false;
}

/* Counted for the server that it claims to be of, too. */
static void
note_invalid(struct tenant *t, const struct packet_view *view,
    enum peer_invalid why, uint64_t *counter)
{
	struct peer *peer = peers_find(&t->peers, view->head.key_id);

	(*counter)++;
	if (peer != NULL)
		peer_invalid(peer, why, tenant_now(t));
}

/* False when the datagram is to be ignored for where it came from. */
static bool
source_passes(struct tenant *t, const struct member *m,
    const struct packet_view *view, const struct endpoint *from)
{
	if (known_source(m, from))
		return true;
	if (t->config->strict_source) {
		note_invalid(t, view, PEER_SOURCE, &t->counters.invalid_source);
		return false;
	}
	t->counters.source_mismatch++;
	return true;
}

/* A whole answer and how it came. */
struct arrival {
	const struct packet_view *view;
	const struct pdu_rate *rate;
	bool current; /* it came in on the port in use */
};

/* The first valid answer, to whatever operation, clears a suspicion. */
static void
clear_suspicion(struct tenant *t, struct peer *peer, int64_t now)
{
	if (suspect_answered(
		&peer->suspect, t->config->plan.suspect_after, now))
		tenant_say_suspect(t, peer, false);
}

static void
note_answer(struct tenant *t, struct tenant_op *op, uint32_t server,
    const struct arrival *a, bool again)
{
	const struct packet_head *head = &a->view->head;
	const int64_t now = tenant_now(t);
	const struct peer_answer answer = {
	    .now = now,
	    .wall_ms = tenant_wall_ms(t, now),
	    .stamp = head->time_stamp,
	    .asked_stamp = op->stamp,
	    .sent_at = op->sent_at,
	    .measures = !again && (op->repeated >> server & 1) == 0,
	    .overdue = now >= op->policy.start + op->policy.plan->horizon_us,
	    .again = again,
	};
	struct peer *peer = tenant_op_peer(op, server);

	peers_answered(&t->peers, peer, &answer);
	if (again) /* or it is an old one, played again */
		return;
	if (!answer.overdue) {
		op->timely |= (uint64_t)1 << server;
		tenant_address_answered(op, server);
		tenant_say_answered(t, peer);
		tenant_silent_over(t);
	}
	if (op->stamp != 0)
		clock_accepted(&t->clock, op->stamp, op->sent_at);
	if (peer != NULL)
		clear_suspicion(t, peer, now);
}

/* To an operation that is decided: it shows that the server is alive. */
static void
hear_late(struct tenant *t, struct tenant_op *op, bool again)
{
	if (!again)
		t->counters.answers_late++;
	(void)tenant_op_settle(op);
}

/* An answer that came in on an old port asks for what is done already. */
static void
steer(struct tenant *t, const struct arrival *a)
{
	const struct packet_head *head = &a->view->head;

	if (!head->keep_port)
		t->counters.rebind_asked++;
	if (!a->current || t->closing)
		return;
	if (head->keep_port)
		transport_kept(t->transport, head->key_id);
	else
		transport_rebind(t->transport, head->key_id);
}

/* A whole, authenticated answer of a member of the snapshot. */
static void
take_answer(struct tenant *t, struct tenant_op *op, uint32_t server,
    const struct arrival *a)
{
	const uint64_t bit = (uint64_t)1 << server;
	const bool again = (op->heard & bit) != 0;

	steer(t, a);
	if (again)
		t->counters.answers_duplicate++;
	note_answer(t, op, server, a, again);
	op->heard |= bit;
	if (op->owed > 0)
		op->owed--;
	if (op->late) {
		hear_late(t, op, again);
		return;
	}
	if (again)
		return;
	t->counters.answers++;
	if (policy_op_answer(&op->policy, server))
		keep_answer(op, a->rate);
	tenant_op_mark(op);
}

/* Opens and decodes; *why is set when that fails. */
static bool
opens(struct tenant *t, const struct packet_view *view, struct pdu_rate *rate,
    enum peer_invalid *why)
{
	const uint8_t *pdu;
	size_t pdu_len;

	*why = PEER_AUTH;
	if (packet_open(t->key, view, t->scratch, sizeof(t->scratch), &pdu,
		&pdu_len) != 0)
		return false;
	*why = PEER_MALFORMED;
	return pdu_decode_response(t->config->profile, pdu, pdu_len, rate) == 0;
}

/* The same; counts why. */
static bool
open_answer(
    struct tenant *t, const struct packet_view *view, struct pdu_rate *rate)
{
	enum peer_invalid why;

	if (opens(t, view, rate, &why))
		return true;
	note_invalid(t, view, why,
	    why == PEER_AUTH ? &t->counters.invalid_auth
			     : &t->counters.invalid_malformed);
	return false;
}

/* Whose ever the clock is: an answer that was recorded long ago is not. */
static bool
recent(uint64_t stamp_ms, uint64_t wall_ms)
{
	return (stamp_ms > wall_ms ? stamp_ms - wall_ms : wall_ms - stamp_ms) <=
	       RECENT_MS;
}

/*
 * No operation is known by that id: it decides nothing. Perhaps a server is
 * only slower than the horizon. When it was not heard of lately, that is worth
 * a decryption, for it tells slow servers from wrong keys. It may be an old
 * answer that is played again, so it clears no suspicion.
 */
static void
hear_unknown(struct tenant *t, const struct packet_view *view,
    const struct endpoint *from)
{
	struct peer *peer = peers_find(&t->peers, view->head.key_id);
	int at = members_find(t->members, view->head.key_id);
	int64_t now = tenant_now(t);
	enum peer_invalid why;
	struct pdu_rate rate;

	if (peer != NULL && at >= 0 &&
	    (peer->last_answer == 0 || now - peer->last_answer >= HEARD_US) &&
	    recent(view->head.time_stamp, tenant_wall_ms(t, now)) &&
	    (!t->config->strict_source ||
		known_source(&t->members->list[at], from)) &&
	    opens(t, view, &rate, &why))
		peers_heard(&t->peers, peer, now);
	t->counters.invalid_operation++;
}

void
tenant_receive(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from, bool current)
{
	struct tenant *t = arg;
	struct packet_view view;
	struct pdu_rate rate;
	struct tenant_op *op;
	int server;

	if (t->now == 0)
		t->now = loop_now();
	if (truncated) {
		t->counters.invalid_truncated++;
		return;
	}
	if (packet_peek(bytes, len, &view) != 0) {
		t->counters.invalid_malformed++;
		return;
	}
	if (view.auth != t->config->cred.auth) {
		note_invalid(t, &view, PEER_AUTH, &t->counters.invalid_auth);
		return;
	}
	op = tenant_op_find(t, view.head.unique_id);
	if (op == NULL) {
		hear_unknown(t, &view, from);
		return;
	}
	server = members_find(op->members, view.head.key_id);
	if (server < 0) {
		t->counters.invalid_server++;
		return;
	}
	if (!open_answer(t, &view, &rate))
		return;
	if (!same_blocks(op, &rate)) {
		note_invalid(
		    t, &view, PEER_CONTENT, &t->counters.invalid_content);
		return;
	}
	if (source_passes(t, &op->members->list[server], &view, from))
		take_answer(t, op, (uint32_t)server,
		    &(struct arrival){&view, &rate, current});
}
