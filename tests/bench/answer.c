/* Opened, judged and sealed as any server does it, with nothing between. */
#include "tests/bench/answer.h"

#include <string.h>

#include "proto/nonce.h"

/* The request becomes its response: no deficit, no latency. */
static void
grant(struct pdu_rate *rate)
{
	size_t i;

	for (i = 0; i < rate->resource_count; i++) {
		rate->resources[i].limit = rate->resources[i].tokens;
		rate->resources[i].tokens = 0;
	}
	for (i = 0; i < rate->guard_count; i++)
		rate->guards[i].current_ms = 0;
}

static bool
read_request(
    struct answer *a, const struct packet_view *view, const struct key *key)
{
	const uint8_t *pdu;
	size_t len;

	return view->head.key_id == key->cred.key_id && !view->head.mgmt &&
	       packet_open(key->packet, view, a->plain, sizeof(a->plain), &pdu,
		   &len) == 0 &&
	       pdu_type(pdu, len) == PDU_RATE_REQUEST &&
	       pdu_decode_request(key->profile, pdu, len, &a->rate) == 0;
}

size_t
answer_make(struct answer *a, uint64_t server_id, uint64_t wall_ms,
    const uint8_t *request, size_t len, uint8_t *out)
{
	const struct key *key = a->key;
	struct packet_head head = {
	    .key_id = server_id, .time_stamp = wall_ms, .keep_port = true};
	uint8_t nonce[NONCE_LEN] = {0};
	struct packet_view view;
	size_t pdu_len, out_len;

	if (packet_peek(request, len, &view) != 0 ||
	    !read_request(a, &view, key))
		return 0;
	grant(&a->rate);
	memcpy(head.unique_id, view.head.unique_id, PACKET_UNIQUE_LEN);
	if (pdu_encode_response(key->profile, &a->rate, a->pdu, sizeof(a->pdu),
		&pdu_len) != 0 ||
	    (key->cred.auth == AUTH_AES && nonce_next(key->nonce, nonce) != 0))
		return 0;
	if (packet_seal(key->packet, &head, nonce, a->pdu, pdu_len, out,
		PACKET_MAX, &out_len) != 0)
		return 0;
	return out_len;
}
