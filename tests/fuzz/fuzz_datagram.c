/*
 * Bytes as a datagram or a bare PDU. The first one chooses the profile (bit 0)
 * and what the rest is (bits 1 and 2): a datagram under each auth type, or a
 * PDU. Whatever decodes must encode to the same bytes again, but for what the
 * decoder ignores; whatever is sealed must open. Any disagreement is a crash.
 */
#include "proto/packet.h"
#include "proto/pdu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_LEN 8
#define BLOCKS_AT  12
#define ROOM       2048

/* The secrets of the vectors' keys, so that their datagrams open here. */
#define COOKIE_FILL 2
#define AES_FILL    3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "datagram: does not hold: %s\n", what);
		abort();
	}
}

static void
put_size(uint8_t *pdu, size_t len)
{
	pdu[2] = (uint8_t)len;
	pdu[3] = (uint8_t)(len >> 8);
}

/*
 * Clears what a decoder of rate PDUs ignores in the blocks; returns where
 * they end.
 */
static size_t
clear_blocks(enum profile profile, const struct pdu_rate *rate, int request,
    uint8_t *pdu)
{
	size_t at = BLOCKS_AT, i;

	for (i = 0; i < rate->guard_count; i++) {
		at += profile == PROFILE_V1 ? 40 : 36;
		if (request)
			memset(pdu + at - 4, 0, 4);
	}
	for (i = 0; i < rate->resource_count; i++) {
		at += 28;
		memset(pdu + at - 2, 0, 2);
	}
	return at;
}

static void
check_request(enum profile profile, const uint8_t *pdu, size_t len)
{
	static struct pdu_rate rate;
	uint8_t want[ROOM], out[ROOM];
	size_t want_len, n = 0;

	if (pdu_decode_request(profile, pdu, len, &rate) != 0)
		return;
	want_len = pdu[2] | (size_t)pdu[3] << 8;
	require(want_len <= len && want_len <= ROOM, "the declared size");
	memcpy(want, pdu, want_len);
	clear_blocks(profile, &rate, 1, want);
	require(pdu_encode_request(profile, &rate, out, ROOM, &n) == 0,
	    "a decoded request encodes");
	require(
	    n == want_len && memcmp(out, want, n) == 0, "to the same request");
}

static void
check_response(enum profile profile, const uint8_t *pdu, size_t len)
{
	static struct pdu_rate rate;
	uint8_t want[ROOM], out[ROOM];
	size_t want_len, n = 0;

	if (pdu_decode_response(profile, pdu, len, &rate) != 0)
		return;
	memcpy(want, pdu, len < ROOM ? len : ROOM);
	want_len = clear_blocks(profile, &rate, 0, want);
	require(want_len <= len, "the blocks are there");
	memset(want + 4, 0, 4);
	put_size(want, want_len);
	require(rate.label == NULL && rate.dedup_ttl_ms == 0,
	    "a response has neither label nor TTL");
	require(pdu_encode_response(profile, &rate, out, ROOM, &n) == 0,
	    "a decoded response encodes");
	require(
	    n == want_len && memcmp(out, want, n) == 0, "to the same response");
}

static void
check_report(enum profile profile, const uint8_t *pdu, size_t len)
{
	static struct pdu_report report;
	uint8_t want[ROOM], out[ROOM];
	size_t want_len, n = 0;

	if (pdu_decode_report(profile, pdu, len, &report) != 0)
		return;
	want_len = pdu[2] | (size_t)pdu[3] << 8;
	require(want_len <= len && want_len <= ROOM, "the declared size");
	memcpy(want, pdu, want_len);
	memset(want + 4, 0, 4);
	memset(want + 10, 0, 2);
	require(pdu_encode_report(profile, &report, out, ROOM, &n) == 0,
	    "a decoded report encodes");
	require(
	    n == want_len && memcmp(out, want, n) == 0, "to the same report");
}

/* Every decoder on every PDU: at most one may take it. */
static void
check_pdu(enum profile profile, const uint8_t *pdu, size_t len)
{
	uint16_t type = pdu_type(pdu, len);

	require(type == 0 || len >= HEADER_LEN, "a type needs a header");
	check_request(profile, pdu, len);
	check_response(profile, pdu, len);
	check_report(profile, pdu, len);
}

static struct packet_key *
key_of(enum auth_type auth)
{
	static struct packet_key *keys[AUTH_AES + 1];
	struct credential cred = {.auth = auth};

	if (keys[auth] == NULL) {
		memset(cred.secret, auth == AUTH_AES ? AES_FILL : COOKIE_FILL,
		    sizeof cred.secret);
		keys[auth] = packet_key_new(&cred);
		require(keys[auth] != NULL, "a key");
	}
	return keys[auth];
}

static void
check_datagram(
    enum auth_type auth, enum profile profile, const uint8_t *d, size_t len)
{
	static uint8_t scratch[65536];
	struct packet_view view;
	const uint8_t *pdu;
	size_t pdu_len;

	if (packet_peek(d, len, &view) != 0)
		return;
	require(view.body + view.body_len == d + len, "the body is the rest");
	require(view.aad == d && view.aad_len <= len, "the additional data");
	if (packet_open(key_of(auth), &view, scratch, sizeof scratch, &pdu,
		&pdu_len) == 0)
		check_pdu(profile, pdu, pdu_len);
}

/* The same bytes as the PDU of a datagram of ours. */
static void
check_sealing(enum auth_type auth, const uint8_t *pdu, size_t pdu_len)
{
	static const uint8_t nonce[NONCE_LEN] = "fuzz";
	struct packet_head head = {.key_id = pdu_len, .keep_port = true};
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX];
	size_t room = PACKET_MAX - packet_overhead(auth), len, got_len;
	struct packet_view view;
	const uint8_t *got;
	int rc = packet_seal(
	    key_of(auth), &head, nonce, pdu, pdu_len, d, sizeof d, &len);

	require((rc == 0) == (pdu_len <= room), "what fits is sealed");
	if (rc != 0)
		return;
	require(packet_peek(d, len, &view) == 0, "what is sealed is whole");
	require(packet_open(key_of(auth), &view, scratch, sizeof scratch, &got,
		    &got_len) == 0,
	    "and opens");
	require(got_len == pdu_len &&
		    (pdu_len == 0 || memcmp(got, pdu, pdu_len) == 0),
	    "to the same bytes");
	require(view.head.key_id == head.key_id && view.head.keep_port &&
		    !view.head.mgmt,
	    "and the same head");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum profile profile;
	int what;

	if (size == 0)
		return 0;
	profile = data[0] & 1 ? PROFILE_V2 : PROFILE_V1;
	what = data[0] >> 1 & 3;
	data++;
	size--;
	if (what > AUTH_AES) {
		check_pdu(profile, data, size);
		return 0;
	}
	check_datagram((enum auth_type)what, profile, data, size);
	check_sealing((enum auth_type)what, data, size);
	return 0;
}
