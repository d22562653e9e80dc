/*
 * The outer datagram (r-client specification, section 2.2, 4 and 5.1). struct
 * packet_key owns the secret: cipher contexts with the key already scheduled,
 * or the cookie. Invariant: bytes that were decrypted but not authenticated
 * are wiped before packet_open() returns.
 *
 *    0  tlv_type 0x4C52  2      tenant TLV; a longer one is accepted, and
 *    2  tlv_size 40      2      what it adds is authenticated but not read
 *    4  key_id           8
 *   12  unique_id       16
 *   28  time_stamp       8
 *   36  steering         1
 *   37  mgmt             1
 *   38  padding          2
 *
 *       none (4.1)          cookie (4.2)         AES-256-GCM (4.3)
 *   40  0x414E      2       0x4143      2        0x4541      2
 *   42  4           2       36          2        32          2
 *   44  PDU                 cookie     32        nonce      12
 *   56                                           tag        16
 *   72                                           encrypted PDU
 *   76                      PDU
 *
 * The additional data of AES is everything before the tag.
 */
#include "proto/packet.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "proto/aesgcm.h"
#include "proto/err.h"
#include "proto/reader.h"
#include "proto/writer.h"

#define TENANT_TYPE     0x4C52
#define AUTH_HEADER_LEN 4
#define COOKIE_LEN      CREDENTIAL_SECRET_LEN
#define TAG_LEN         AESGCM_TAG_LEN

_Static_assert(
    NONCE_LEN == AESGCM_NONCE_LEN && CREDENTIAL_SECRET_LEN == AESGCM_KEY_LEN,
    "lengths of AES-256-GCM");

struct packet_key {
	enum auth_type auth;
	uint8_t cookie[COOKIE_LEN]; /* AUTH_COOKIE only */
	struct aesgcm *cipher;      /* AUTH_AES only */
};

struct auth_row {
	uint16_t type;
	uint16_t size; /* of the whole TLV */
};

/* By enum auth_type. */
static const struct auth_row auth_rows[] = {
    [AUTH_NONE] = {0x414E, AUTH_HEADER_LEN},
    [AUTH_COOKIE] = {0x4143, AUTH_HEADER_LEN + COOKIE_LEN},
    [AUTH_AES] = {0x4541, AUTH_HEADER_LEN + NONCE_LEN + TAG_LEN},
};
#define AUTH_ROWS (sizeof auth_rows / sizeof auth_rows[0])

struct packet_key *
packet_key_new(const struct credential *cred)
{
	struct packet_key *key = calloc(1, sizeof *key);

	if (key == NULL)
		return NULL;
	key->auth = cred->auth;
	switch (cred->auth) {
	case AUTH_NONE:
		break;
	case AUTH_COOKIE:
		memcpy(key->cookie, cred->secret, COOKIE_LEN);
		break;
	case AUTH_AES:
		key->cipher = aesgcm_new(cred->secret);
		if (key->cipher == NULL) {
			packet_key_free(key);
			return NULL;
		}
		break;
	}
	return key;
}

void
packet_key_free(struct packet_key *key)
{
	if (key == NULL)
		return;
	aesgcm_free(key->cipher);
	OPENSSL_cleanse(key, sizeof *key);
	free(key);
}

size_t
packet_overhead(enum auth_type auth)
{
	return PACKET_TENANT_LEN + (size_t)auth_rows[auth].size;
}

static void
write_tenant(struct writer *w, const struct packet_head *head)
{
	writer_u16(w, TENANT_TYPE);
	writer_u16(w, PACKET_TENANT_LEN);
	writer_u64(w, head->key_id);
	writer_bytes(w, head->unique_id, PACKET_UNIQUE_LEN);
	writer_u64(w, head->time_stamp);
	writer_u8(w, head->keep_port);
	writer_u8(w, head->mgmt);
	writer_zeros(w, 2);
}

int
packet_seal(struct packet_key *key, const struct packet_head *head,
    const uint8_t nonce[NONCE_LEN], const uint8_t *pdu, size_t pdu_len,
    uint8_t *out, size_t cap, size_t *out_len)
{
	size_t overhead = packet_overhead(key->auth), aad_len;
	struct writer w;
	uint8_t *tag;
	int rc = 0;

	if (cap > PACKET_MAX)
		cap = PACKET_MAX;
	if (cap < overhead || pdu_len > cap - overhead)
		return RLA_ETOOBIG;
	writer_init(&w, out, cap);
	write_tenant(&w, head);
	writer_u16(&w, auth_rows[key->auth].type);
	writer_u16(&w, auth_rows[key->auth].size);
	switch (key->auth) {
	case AUTH_NONE:
		writer_bytes(&w, pdu, pdu_len);
		break;
	case AUTH_COOKIE:
		writer_bytes(&w, key->cookie, COOKIE_LEN);
		writer_bytes(&w, pdu, pdu_len);
		break;
	case AUTH_AES:
		writer_bytes(&w, nonce, NONCE_LEN);
		aad_len = writer_len(&w);
		tag = writer_space(&w, TAG_LEN);
		if (!aesgcm_seal(key->cipher, nonce,
			(struct aesgcm_aad){out, aad_len}, pdu, pdu_len,
			writer_space(&w, pdu_len), tag))
			rc = RLA_ECRYPTO;
		break;
	}
	assert(writer_ok(&w));
	if (rc == 0)
		*out_len = writer_len(&w);
	return rc;
}

static void
read_tenant(struct reader *r, struct packet_head *head)
{
	head->key_id = reader_u64(r);
	reader_copy(r, head->unique_id, PACKET_UNIQUE_LEN);
	head->time_stamp = reader_u64(r);
	head->keep_port = reader_u8(r) != 0;
	head->mgmt = reader_u8(r) != 0;
}

/* Which auth TLV this is, or -1 when type and size belong to none. */
static int
auth_of(uint16_t type, uint16_t size)
{
	size_t i;

	for (i = 0; i < AUTH_ROWS; i++) {
		if (auth_rows[i].type == type && auth_rows[i].size == size)
			return (int)i;
	}
	return -1;
}

int
packet_peek(const uint8_t *datagram, size_t len, struct packet_view *view)
{
	struct packet_view v = {0};
	struct reader r, tenant;
	uint16_t type, size;
	int auth;

	reader_init(&r, datagram, len);
	type = reader_u16(&r);
	size = reader_u16(&r);
	if (!reader_ok(&r))
		return RLA_ESHORT;
	if (type != TENANT_TYPE || size < PACKET_TENANT_LEN)
		return RLA_EMALFORMED;
	tenant = reader_sub(&r, size - 4u);
	read_tenant(&tenant, &v.head);
	type = reader_u16(&r);
	size = reader_u16(&r);
	if (!reader_ok(&r))
		return RLA_ESHORT;
	auth = auth_of(type, size);
	if (auth < 0)
		return RLA_EMALFORMED;
	v.auth = (enum auth_type)auth;
	v.secret = reader_bytes(&r, size - AUTH_HEADER_LEN);
	if (!reader_ok(&r))
		return RLA_ESHORT;
	v.body_len = reader_left(&r);
	v.body = reader_bytes(&r, v.body_len);
	v.aad = datagram;
	v.aad_len = len - v.body_len;
	if (v.auth == AUTH_AES)
		v.aad_len -= TAG_LEN;
	*view = v;
	return 0;
}

int
packet_open(struct packet_key *key, const struct packet_view *view,
    uint8_t *scratch, size_t cap, const uint8_t **pdu, size_t *pdu_len)
{
	const uint8_t *plain = view->body;

	if (view->auth != key->auth)
		return RLA_EAUTH;
	switch (key->auth) {
	case AUTH_NONE:
		break;
	case AUTH_COOKIE:
		if (CRYPTO_memcmp(view->secret, key->cookie, COOKIE_LEN) != 0)
			return RLA_EAUTH;
		break;
	case AUTH_AES:
		if (view->body_len > cap)
			return RLA_ETOOBIG;
		if (!aesgcm_open(key->cipher, view->secret,
			(struct aesgcm_aad){view->aad, view->aad_len},
			view->body, view->body_len, scratch,
			view->secret + NONCE_LEN)) {
			OPENSSL_cleanse(scratch, view->body_len);
			return RLA_EAUTH;
		}
		plain = scratch;
		break;
	}
	*pdu = plain;
	*pdu_len = view->body_len;
	return 0;
}
