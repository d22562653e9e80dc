/*
 * The outer datagram: tenant TLV, auth TLV, PDU (specification, sections 2.2, 4
 * and 5.1). Client and server share it; only the meaning of key_id differs. A
 * struct packet_key owns the cipher contexts of one key, both directions.
 */
#ifndef PROTO_PACKET_H
#define PROTO_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"
#include "proto/nonce.h"

#define PACKET_MAX        1200 /* bytes that this project sends */
#define PACKET_TENANT_LEN 40
#define PACKET_UNIQUE_LEN 16

/* The tenant TLV. */
struct packet_head {
	uint64_t key_id; /* a response carries its server_id here */
	uint8_t unique_id[PACKET_UNIQUE_LEN];
	uint64_t time_stamp; /* wall clock, ms since the Unix epoch */
	bool keep_port;      /* steering_feedback; a request sends false */
	bool mgmt;           /* tenant_mgmt_flag; ignored in a response */
};

/* What packet_peek() found; slices borrow the datagram. */
struct packet_view {
	struct packet_head head;
	enum auth_type auth;
	const uint8_t *aad; /* start of the datagram up to the tag */
	size_t aad_len;
	const uint8_t *secret; /* AES: nonce then tag; cookie: 32 bytes */
	const uint8_t *body;   /* the PDU, encrypted with AES */
	size_t body_len;
};

struct packet_key;

/* Copies the secret into cipher contexts. NULL without memory or cipher. */
struct packet_key *packet_key_new(const struct credential *cred);
/* Wipes the secret. */
void packet_key_free(struct packet_key *key);

/* Bytes that the tenant and auth TLVs take before the PDU. */
size_t packet_overhead(enum auth_type auth);

/*
 * Writes the whole datagram. nonce is read for AES keys only and must be
 * fresh. Returns 0, RLA_ETOOBIG or RLA_ECRYPTO.
 */
int packet_seal(struct packet_key *key, const struct packet_head *head,
    const uint8_t nonce[NONCE_LEN], const uint8_t *pdu, size_t pdu_len,
    uint8_t *out, size_t cap, size_t *out_len);

/*
 * Splits a datagram without trusting it: nothing is authenticated yet. A
 * tenant TLV longer than 40 is accepted, a shorter one is malformed. Returns
 * 0, RLA_ESHORT or RLA_EMALFORMED.
 */
int packet_peek(const uint8_t *datagram, size_t len, struct packet_view *view);

/*
 * Authenticates the view with the key and yields the plaintext PDU: in
 * scratch for AES (cap at least body_len), in the datagram otherwise. Cookies
 * are compared in constant time. Returns 0, RLA_EAUTH (also for another auth
 * type than the key's) or RLA_ETOOBIG.
 */
int packet_open(struct packet_key *key, const struct packet_view *view,
    uint8_t *scratch, size_t cap, const uint8_t **pdu, size_t *pdu_len);

#endif
