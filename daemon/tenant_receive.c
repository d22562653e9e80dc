/*
 * Datagrams that come in: checked from the cheap to the costly, each failure
 * counted by kind, and nothing changed before all of it has passed. Only then
 * is an answer an event of its operation (wire rules: r-client specification,
 * sections 6.3, 7.1.2 and 9.3.3).
 */
#include "daemon/tenant_private.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/log.h"

/* A server that answered within this time is known to be alive. */
#define HEARD_US 1000000

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

/* False when the datagram is to be ignored for where it came from. */
static bool
source_passes(
    struct tenant *t, const struct member *m, const struct endpoint *from)
{
	if (known_source(m, from))
		return true;
	if (t->config->strict_source) {
		t->counters.invalid_source++;
		return false;
	}
	t->counters.source_mismatch++;
	return true;
}

/* It is alive; that clears a suspicion. */
static void
note_alive(struct tenant *t, struct tenant_server *s,
    const struct packet_head *head, int64_t now)
{
	s->last_answer = now;
	s->clock_ms = (int64_t)(head->time_stamp - loop_wall_ms());
	if (suspect_answered(&s->suspect, t->config->plan.suspect_after, now))
		log_info("suspect",
		    "tenant=\"%s\" server=%" PRIu64 " suspected=no",
		    t->config->name, s->server_id);
}

static void
note_answer(struct tenant *t, const struct tenant_op *op,
    const struct packet_head *head, bool again)
{
	struct tenant_server *s = tenant_stat(t, head->key_id);
	int64_t now = loop_now(), rtt = now - op->sent_at;

	if (s == NULL)
		return;
	s->answered++;
	note_alive(t, s, head, now);
	if (again || op->policy.round != 0)
		return; /* which transmission it answers is not known */
	s->rtt_us = s->rtt_us == 0 ? rtt : s->rtt_us + (rtt - s->rtt_us) / 8;
}

/* To an operation that is decided: it shows that the server is alive. */
static void
hear_late(struct tenant *t, struct tenant_op *op, bool again)
{
	if (!again)
		t->counters.answers_late++;
	if (op->owed + op->sending == 0 &&
	    (op->policy.members & ~op->heard) == 0)
		tenant_op_bury(op);
}

/* A whole, authenticated answer of a member of the snapshot. */
static void
take_answer(struct tenant *t, struct tenant_op *op, uint32_t server,
    const struct packet_view *view, const struct pdu_rate *rate)
{
	const uint64_t bit = (uint64_t)1 << server;
	const bool again = (op->heard & bit) != 0;

	if (!view->head.keep_port)
		t->counters.rebind_asked++;
	if (again)
		t->counters.answers_duplicate++;
	note_answer(t, op, &view->head, again);
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
		keep_answer(op, rate);
	tenant_op_mark(op);
}

/* Opens and decodes; counts why when it fails. */
static bool
open_answer(
    struct tenant *t, const struct packet_view *view, struct pdu_rate *rate)
{
	const uint8_t *pdu;
	size_t pdu_len;

	if (packet_open(t->key, view, t->scratch, sizeof(t->scratch), &pdu,
		&pdu_len) != 0) {
		t->counters.invalid_auth++;
		return false;
	}
	if (pdu_decode_response(t->config->profile, pdu, pdu_len, rate) != 0) {
		t->counters.invalid_malformed++;
		return false;
	}
	return true;
}

/*
 * No operation is known by that id: it decides nothing. Perhaps a server is
 * only slower than the horizon. When it was not heard of lately, that is worth
 * a decryption, for it tells slow servers from wrong keys.
 */
static void
hear_unknown(struct tenant *t, const struct packet_view *view)
{
	struct tenant_server *s = tenant_stat(t, view->head.key_id);
	int64_t now = loop_now();
	const uint8_t *pdu;
	size_t pdu_len;

	t->counters.invalid_operation++;
	if (s == NULL ||
	    (s->last_answer > 0 && now - s->last_answer < HEARD_US) ||
	    packet_open(t->key, view, t->scratch, sizeof(t->scratch), &pdu,
		&pdu_len) != 0)
		return;
	note_alive(t, s, &view->head, now);
}

void
tenant_receive(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from)
{
	struct tenant *t = arg;
	struct packet_view view;
	struct pdu_rate rate;
	struct tenant_op *op;
	int server;

	if (truncated) {
		t->counters.invalid_truncated++;
		return;
	}
	if (packet_peek(bytes, len, &view) != 0) {
		t->counters.invalid_malformed++;
		return;
	}
	if (view.auth != t->config->cred.auth) {
		t->counters.invalid_auth++;
		return;
	}
	op = tenant_op_find(t, view.head.unique_id);
	if (op == NULL) {
		hear_unknown(t, &view);
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
		t->counters.invalid_content++;
		return;
	}
	if (source_passes(t, &op->members->list[server], from))
		take_answer(t, op, (uint32_t)server, &view, &rate);
}
