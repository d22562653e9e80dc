/*
 * One datagram, step by step: frame, key, authentication, management flag,
 * clock, PDU, fault, remembered answer, decision. Nothing before the
 * authentication changes more than a counter.
 */
#include "sandbox/engine.h"

#include <stdlib.h>
#include <string.h>

#include "proto/nonce.h"
#include "sandbox/dedup.h"

struct tenant {
	struct state *state;
	struct dedup dedup;
};

struct engine {
	const struct keyring *ring;
	uint64_t server_id;
	uint32_t tolerance_ms;
	struct counters counters;
	struct tenant tenants[KEYRING_MAX]; /* by index in the ring */
	uint8_t scratch[PACKET_MAX];        /* the decrypted PDU */
};

struct engine *
engine_new(const struct keyring *ring, uint64_t server_id, uint64_t hash_seed,
    uint32_t tolerance_ms)
{
	struct engine *e = calloc(1, sizeof(*e));
	size_t i;

	if (e == NULL)
		return NULL;
	e->ring = ring;
	e->server_id = server_id;
	e->tolerance_ms = tolerance_ms;
	for (i = 0; i < ring->count; i++) {
		dedup_init(&e->tenants[i].dedup, ENGINE_MAX_ANSWERS, hash_seed);
		e->tenants[i].state = state_new(
		    &ring->keys[i].cred, ring->keys[i].profile, hash_seed);
		if (e->tenants[i].state == NULL) {
			engine_free(e);
			return NULL;
		}
	}
	return e;
}

void
engine_free(struct engine *e)
{
	size_t i;

	if (e == NULL)
		return;
	for (i = 0; i < KEYRING_MAX; i++) {
		state_free(e->tenants[i].state);
		dedup_fini(&e->tenants[i].dedup);
	}
	explicit_bzero(e->scratch, sizeof(e->scratch));
	free(e);
}

struct counters *
engine_counters(struct engine *e)
{
	return &e->counters;
}

uint64_t
engine_server_id(const struct engine *e)
{
	return e->server_id;
}

static void
count(struct engine *e, enum counter c)
{
	e->counters.values[c]++;
}

static void
ignore(struct engine *e, struct engine_result *out, enum counter reason)
{
	out->event = ENGINE_IGNORED;
	out->reason = reason;
	count(e, reason);
}

static void
count_faults(struct engine *e, const struct fault_plan *plan)
{
	if (plan->corrupt)
		count(e, COUNT_CORRUPTED);
	if (plan->wrong_id != 0)
		count(e, COUNT_WRONG_ID);
	if (plan->rebind)
		count(e, COUNT_REBIND_ASKED);
}

/* Frames the answer afresh: own time stamp, own nonce, own faults. */
static void
seal(struct engine *e, const struct key *key, const struct engine_input *in,
    const uint8_t *pdu, size_t len, struct engine_result *out)
{
	const struct fault_plan *plan = &in->plan;
	struct packet_head head = {.key_id = e->server_id ^ plan->wrong_id,
	    .time_stamp = (uint64_t)in->wall_ms,
	    .keep_port = !plan->rebind};
	struct damage_answer a = {key->cred.auth, key->profile, len, {0}};
	struct prng how = {plan->damage};
	uint8_t nonce[NONCE_LEN] = {0};

	memcpy(head.unique_id, out->head.unique_id, PACKET_UNIQUE_LEN);
	memcpy(a.pdu, pdu, len);
	if (plan->corrupt) {
		out->damage = damage_choose(&how, &a);
		damage_content(out->damage, &how, &a, &head);
	}
	if ((a.auth == AUTH_AES && nonce_next(key->nonce, nonce) < 0) ||
	    packet_seal(key->packet, &head, nonce, a.pdu, a.len, out->answer,
		sizeof(out->answer), &out->answer_len) < 0) {
		out->answer_len = 0;
		count(e, COUNT_UNSENT);
		return;
	}
	if (plan->corrupt)
		damage_datagram(
		    out->damage, &how, &a, out->answer, &out->answer_len);
	out->answer_id = head.key_id;
	count_faults(e, plan);
}

/* Replays past the key's limit of an over-long request are not covered. */
static uint32_t
remember_ms(const struct key *key, uint32_t asked)
{
	return credential_allows_ttl(&key->cred, asked)
		   ? asked
		   : key->cred.quotas.dedup_ttl_ms;
}

static void
count_decision(struct engine *e, const struct engine_result *out)
{
	count(e, COUNT_REQUEST);
	count(e, out->allowed ? COUNT_ALLOWED : COUNT_DENIED);
	if (out->state.verdict == STATE_QUOTA)
		count(e, COUNT_QUOTA);
	if (out->state.label_overflow)
		count(e, COUNT_LABEL_OVERFLOW);
}

/* The verdicts that are met with silence; false for the others. */
static bool
refused(struct engine *e, struct engine_result *out)
{
	switch (out->state.verdict) {
	case STATE_ALLOWED:
	case STATE_DENIED:
	case STATE_QUOTA:
		return false;
	case STATE_MALFORMED:
		ignore(e, out, COUNT_MALFORMED);
		return true;
	case STATE_MISMATCH:
		ignore(e, out, COUNT_MISMATCH);
		return true;
	case STATE_NO_MEMORY:
		break;
	}
	ignore(e, out, COUNT_FULL);
	return true;
}

static void
decide(struct engine *e, int k, const struct engine_input *in, size_t pdu_len,
    struct engine_result *out)
{
	const struct key *key = &e->ring->keys[k];
	struct tenant *tenant = &e->tenants[k];
	uint32_t ttl = remember_ms(key, out->rate.dedup_ttl_ms);
	struct dedup_entry *place = NULL;
	struct pdu_rate response;
	uint8_t pdu[PACKET_MAX];
	size_t len;

	/* An answer is never longer than its request: it has no label. */
	if (ttl > 0) {
		place =
		    dedup_reserve(&tenant->dedup, out->head.unique_id, pdu_len);
		if (place == NULL) {
			ignore(e, out, COUNT_FULL);
			return;
		}
	}
	out->state =
	    state_check(tenant->state, in->now_ms, &out->rate, &response);
	if (refused(e, out)) {
		dedup_abandon(&tenant->dedup, place);
		return;
	}
	out->event = ENGINE_REQUEST;
	out->allowed = out->state.verdict == STATE_ALLOWED;
	count_decision(e, out);
	if (pdu_encode_response(
		key->profile, &response, pdu, sizeof(pdu), &len) < 0) {
		dedup_abandon(&tenant->dedup, place);
		count(e, COUNT_UNSENT);
		return;
	}
	if (place != NULL)
		dedup_commit(&tenant->dedup, place, in->now_ms, ttl, pdu, len,
		    out->allowed);
	seal(e, key, in, pdu, len, out);
}

static void
request(struct engine *e, int k, const struct engine_input *in,
    const uint8_t *pdu, size_t len, struct engine_result *out)
{
	const struct key *key = &e->ring->keys[k];
	const struct dedup_entry *known;

	if (pdu_decode_request(key->profile, pdu, len, &out->rate) < 0) {
		ignore(e, out, COUNT_MALFORMED);
		return;
	}
	if (in->plan.lose) {
		ignore(e, out, COUNT_DROPPED);
		return;
	}
	known =
	    dedup_find(&e->tenants[k].dedup, in->now_ms, out->head.unique_id);
	if (known == NULL) {
		decide(e, k, in, len, out);
		return;
	}
	out->event = ENGINE_DUPLICATE;
	out->allowed = known->allowed;
	count(e, COUNT_DUPLICATE);
	seal(e, key, in, known->pdu, known->len, out);
}

static void
report(struct engine *e, int k, const struct engine_input *in,
    const uint8_t *pdu, size_t len, struct engine_result *out)
{
	enum profile profile = e->ring->keys[k].profile;

	if (pdu_decode_report(profile, pdu, len, &out->report) < 0) {
		ignore(e, out, COUNT_MALFORMED);
		return;
	}
	if (in->plan.lose) {
		ignore(e, out, COUNT_DROPPED);
		return;
	}
	out->state =
	    state_report(e->tenants[k].state, in->now_ms, &out->report);
	if (refused(e, out))
		return;
	if (out->state.verdict == STATE_QUOTA) {
		ignore(e, out, COUNT_QUOTA);
		return;
	}
	out->event = ENGINE_REPORT;
	count(e, COUNT_REPORT);
}

static bool
is_stale(const struct engine *e, uint64_t stamp, int64_t wall_ms)
{
	uint64_t wall = (uint64_t)wall_ms;
	uint64_t apart = wall > stamp ? wall - stamp : stamp - wall;

	return apart > e->tolerance_ms;
}

void
engine_handle(
    struct engine *e, const struct engine_input *in, struct engine_result *out)
{
	struct packet_view view;
	const uint8_t *pdu;
	size_t len;
	uint16_t type;
	int k;

	count(e, COUNT_RECEIVED);
	out->answer_len = 0;
	out->has_head = false;
	out->state = (struct state_result){.verdict = STATE_DENIED};
	if (in->len > PACKET_MAX ||
	    packet_peek(in->bytes, in->len, &view) < 0) {
		ignore(e, out, COUNT_MALFORMED);
		return;
	}
	out->has_head = true;
	out->head = view.head;
	k = keyring_find(e->ring, view.head.key_id);
	if (k < 0) {
		ignore(e, out, COUNT_UNKNOWN_KEY);
		return;
	}
	if (packet_open(e->ring->keys[k].packet, &view, e->scratch,
		sizeof(e->scratch), &pdu, &len) < 0) {
		ignore(e, out, COUNT_AUTH);
		return;
	}
	type = pdu_type(pdu, len);
	if (view.head.mgmt)
		ignore(e, out, COUNT_MGMT);
	else if (is_stale(e, view.head.time_stamp, in->wall_ms))
		ignore(e, out, COUNT_STALE);
	else if (type == PDU_RATE_REQUEST)
		request(e, k, in, pdu, len, out);
	else if (type == PDU_LATENCY_REPORT)
		report(e, k, in, pdu, len, out);
	else
		ignore(e, out, COUNT_MALFORMED);
}
