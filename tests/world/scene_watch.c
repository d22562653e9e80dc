/*
 * Judges every datagram that leaves, whatever the script expects: it goes to
 * an address of a server of the snapshot, that server takes it as what was
 * asked, it is the same as before, it is in time, and its nonce is its own.
 */
#include "tests/world/scene.h"

#include <inttypes.h>
#include <string.h>

#include "tests/world/fake_loop.h"
#include "tests/world/fake_udp.h"

/* What a datagram is, opened. */
struct opened {
	struct packet_view view;
	uint8_t pdu[PACKET_MAX];
	size_t pdu_len;
};

static bool
find_place(
    const struct scene *s, const struct endpoint *to, struct scene_sent *out)
{
	for (unsigned int i = 0; i < SCENE_SERVERS; i++) {
		for (uint32_t a = 0; a < s->targets[i].addr_count; a++) {
			if (endpoint_equal(&s->targets[i].addrs[a], to)) {
				out->server = i;
				out->addr = a;
				return true;
			}
		}
	}
	return false;
}

static struct packet_key *
key_of(const struct scene *s, uint64_t key_id)
{
	return key_id - SCENE_KEY_ID < SCENE_KEYS
		   ? s->keys[key_id - SCENE_KEY_ID]
		   : NULL;
}

static const char *
open_datagram(struct scene *s, const struct fake_sent *sent, struct opened *out)
{
	const struct packet_head *head = &out->view.head;
	struct packet_key *key;
	const uint8_t *pdu;

	if (packet_peek(sent->bytes, sent->len, &out->view) != 0)
		return "no server reads it";
	key = key_of(s, head->key_id);
	if (key == NULL || packet_open(key, &out->view, out->pdu,
			       sizeof(out->pdu), &pdu, &out->pdu_len) != 0)
		return "no server opens it";
	memmove(out->pdu, pdu, out->pdu_len);
	if (head->keep_port || head->mgmt)
		return "its tenant TLV is not a client's";
	if (head->unique_id[6] >> 4 != 4 || head->unique_id[8] >> 6 != 2)
		return "its unique id is no UUIDv4";
	return NULL;
}

static bool
same_guard(const struct pdu_guard *a, const struct pdu_guard *b)
{
	return memcmp(a->id, b->id, ID_LEN) == 0 && a->ttl_ms == b->ttl_ms &&
	       a->max_samples == b->max_samples &&
	       a->buffer_size == b->buffer_size &&
	       a->min_samples == b->min_samples &&
	       a->threshold_ms == b->threshold_ms && a->current_ms == 0;
}

static bool
same_resource(const struct pdu_resource *a, const struct pdu_resource *b)
{
	return memcmp(a->id, b->id, ID_LEN) == 0 &&
	       a->window_ms == b->window_ms && a->limit == b->limit &&
	       a->tokens == b->tokens;
}

static bool
same_rate(const struct pdu_rate *a, const struct pdu_rate *b)
{
	bool same = a->guard_count == b->guard_count &&
		    a->resource_count == b->resource_count &&
		    a->label_len == b->label_len &&
		    (a->label_len == 0 ||
			memcmp(a->label, b->label, a->label_len) == 0);

	for (size_t i = 0; same && i < a->guard_count; i++)
		same = same_guard(&a->guards[i], &b->guards[i]);
	for (size_t i = 0; same && i < a->resource_count; i++)
		same = same_resource(&a->resources[i], &b->resources[i]);
	return same;
}

/* The first datagram of an operation against what was asked. */
static const char *
judge_first(
    const struct scene *s, const struct scene_op *op, const struct opened *o)
{
	struct pdu_rate rate;

	if (pdu_decode_request(s->config.profile, o->pdu, o->pdu_len, &rate) !=
	    0)
		return "its PDU is not a request";
	if (!same_rate(&rate, &op->rate))
		return "its blocks or label are not those asked for";
	if (rate.dedup_ttl_ms != s->config.plan.ttl_ms)
		return "its TTL is not the horizon";
	if (o->view.head.time_stamp != op->stamp)
		return "its time stamp is not that of the first transmission";
	return NULL;
}

static const char *
judge_request(struct scene *s, struct scene_sent *seen,
    const struct fake_sent *sent, const struct opened *o)
{
	struct scene_op *op = seen->op;

	seen->fresh = op->first_len == 0;
	if (o->view.head.key_id != SCENE_KEY_ID + op->key)
		return "it is under another key";
	if ((op->members >> seen->server & 1) == 0)
		return "it goes outside the snapshot";
	if (fake_loop_time(sent->clock) >=
	    op->start + s->config.plan.horizon_us)
		return "it leaves at or after the horizon";
	if (op->heard[seen->server] != 0 &&
	    sent->left > op->heard[seen->server])
		return "it goes to a server that has answered";
	op->port[seen->server] = sent->port;
	op->addr[seen->server] = seen->addr;
	if (!seen->fresh) {
		if (op->first_len != sent->len ||
		    memcmp(op->first, sent->bytes, sent->len) != 0)
			return "it differs from the first transmission";
		return NULL;
	}
	memcpy(op->first, sent->bytes, sent->len);
	op->first_len = sent->len;
	return judge_first(s, op, o);
}

/* For a server that answers it, which none should. */
static void
note_report(struct scene *s, const struct scene_sent *seen, const uint8_t *id)
{
	s->report = (struct scene_op){
	    .scene = s, .name = "report", .rate = {.resource_count = 1}};
	memcpy(s->report.id, id, PACKET_UNIQUE_LEN);
	s->report.port[seen->server] = seen->port;
}

static const char *
judge_report(struct scene *s, const struct scene_sent *seen, size_t at,
    const struct opened *o)
{
	struct pdu_report report;
	struct packet_view other;

	note_report(s, seen, o->view.head.unique_id);
	if (pdu_decode_report(s->config.profile, o->pdu, o->pdu_len, &report) !=
	    0)
		return "it is neither of an operation nor a report";
	if (report.count != s->report_samples ||
	    report.samples[0].observed_ms != 50)
		return "its samples are not those reported";
	for (size_t i = 0; i < at; i++) {
		if (packet_peek(fake_udp_sent(i)->bytes, fake_udp_sent(i)->len,
			&other) == 0 &&
		    memcmp(other.head.unique_id, o->view.head.unique_id,
			PACKET_UNIQUE_LEN) == 0)
			return "a report's unique id was used before";
	}
	return NULL;
}

/* One nonce seals one datagram. */
static const char *
judge_nonce(const struct scene *s, size_t at)
{
	const struct fake_sent *mine = fake_udp_sent(at), *other;
	struct packet_view a, b;

	if (s->cred.auth != AUTH_AES ||
	    packet_peek(mine->bytes, mine->len, &a) != 0)
		return NULL;
	for (size_t i = 0; i < at; i++) {
		other = fake_udp_sent(i);
		if (packet_peek(other->bytes, other->len, &b) == 0 &&
		    memcmp(a.secret, b.secret, NONCE_LEN) == 0 &&
		    (mine->len != other->len ||
			memcmp(mine->bytes, other->bytes, mine->len) != 0))
			return "its nonce has sealed another datagram";
	}
	return NULL;
}

static const char *
judge(struct scene *s, size_t at, struct scene_sent *seen)
{
	const struct fake_sent *sent = fake_udp_sent(at);
	struct opened o;
	const char *why;

	if (!find_place(s, &sent->to, seen))
		return "it goes to no server's address";
	why = open_datagram(s, sent, &o);
	if (why != NULL)
		return why;
	seen->port = sent->port;
	seen->op = scene_op_of(s, o.view.head.unique_id);
	why = seen->op != NULL ? judge_request(s, seen, sent, &o)
			       : judge_report(s, seen, at, &o);
	return why != NULL ? why : judge_nonce(s, at);
}

void
scene_watch(struct scene *s)
{
	const char *why;

	while (s->sent_count < fake_udp_sent_count()) {
		if (s->sent_count == SCENE_SENT) {
			words_fault(&s->w, "too many datagrams");
			return;
		}
		why = judge(s, s->sent_count, &s->sent[s->sent_count]);
		s->sent_count++;
		if (why != NULL)
			words_fault(&s->w, "a datagram is wrong: %s", why);
	}
	if (fake_loop_fault() != NULL)
		words_fault(&s->w, "%s", fake_loop_fault());
}
