/*
 * The outer datagram: every offset, every truncation, every flipped bit. The
 * bytes of public clients are in tests/vectors.
 */
#include "proto/packet.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"

#define PDU     "twelve bytes"
#define PDU_LEN 12

static const uint8_t nonce[NONCE_LEN] = "nonce 12 by.";
static const struct packet_head head = {.key_id = UINT64_C(0x0807060504030201),
    .unique_id = "0123456789abcde",
    .time_stamp = UINT64_C(0x1817161514131211),
    .keep_port = true};

static struct packet_key *
key_of(enum auth_type auth, uint8_t fill)
{
	struct credential cred = {.auth = auth};
	struct packet_key *key;

	memset(cred.secret, fill, sizeof cred.secret);
	key = packet_key_new(&cred);
	ck_assert_ptr_nonnull(key);
	return key;
}

static size_t
seal(struct packet_key *key, uint8_t out[PACKET_MAX])
{
	size_t len = 0;

	ck_assert_int_eq(packet_seal(key, &head, nonce, (const uint8_t *)PDU,
			     PDU_LEN, out, PACKET_MAX, &len),
	    0);
	return len;
}

/* Peek and open; the first error. */
static int
open_bytes(struct packet_key *key, const uint8_t *bytes, size_t len,
    uint8_t scratch[PACKET_MAX], const uint8_t **pdu, size_t *pdu_len)
{
	struct packet_view view;
	int rc = packet_peek(bytes, len, &view);

	return rc != 0
		   ? rc
		   : packet_open(key, &view, scratch, PACKET_MAX, pdu, pdu_len);
}

static const size_t overheads[] = {
    [AUTH_NONE] = 44, [AUTH_COOKIE] = 76, [AUTH_AES] = 72};

START_TEST(layout)
{
	enum auth_type auth = (enum auth_type)_i;
	struct packet_key *key = key_of(auth, 0x5a);
	uint8_t d[PACKET_MAX], cookie[32];
	size_t len = seal(key, d);

	ck_assert_uint_eq(packet_overhead(auth), overheads[auth]);
	ck_assert_uint_eq(len, overheads[auth] + PDU_LEN);
	ck_assert_mem_eq(d, "RL\x28\0\1\2\3\4\5\6\7\x8", 12);
	ck_assert_mem_eq(d + 12, "0123456789abcde", 16);
	ck_assert_mem_eq(d + 28, "\x11\x12\x13\x14\x15\x16\x17\x18", 8);
	ck_assert_mem_eq(d + 36, "\1\0\0\0", 4);
	memset(cookie, 0x5a, sizeof cookie);
	if (auth == AUTH_NONE) {
		ck_assert_mem_eq(d + 40, "NA\x04\0" PDU, 4 + PDU_LEN);
	} else if (auth == AUTH_COOKIE) {
		ck_assert_mem_eq(d + 40, "CA\x24\0", 4);
		ck_assert_mem_eq(d + 44, cookie, 32);
		ck_assert_mem_eq(d + 76, PDU, PDU_LEN);
	} else {
		ck_assert_mem_eq(d + 40, "AE\x20\0", 4);
		ck_assert_mem_eq(d + 44, nonce, NONCE_LEN);
		ck_assert_mem_ne(d + 72, PDU, PDU_LEN);
	}
	packet_key_free(key);
}
END_TEST

START_TEST(round_trip)
{
	enum auth_type auth = (enum auth_type)_i;
	struct packet_key *key = key_of(auth, 0x5a);
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX];
	size_t len = seal(key, d), pdu_len;
	struct packet_view v;
	const uint8_t *pdu;

	ck_assert_int_eq(packet_peek(d, len, &v), 0);
	ck_assert_int_eq(v.auth, auth);
	ck_assert(v.head.key_id == head.key_id);
	ck_assert_mem_eq(v.head.unique_id, head.unique_id, 16);
	ck_assert(v.head.time_stamp == head.time_stamp);
	ck_assert(v.head.keep_port && !v.head.mgmt);
	ck_assert_uint_eq(v.body_len, PDU_LEN);
	ck_assert_ptr_eq(v.body, d + overheads[auth]);
	ck_assert_ptr_eq(v.aad, d);
	ck_assert_int_eq(
	    packet_open(key, &v, scratch, PACKET_MAX, &pdu, &pdu_len), 0);
	ck_assert_uint_eq(pdu_len, PDU_LEN);
	ck_assert_mem_eq(pdu, PDU, PDU_LEN);
	ck_assert_ptr_eq(pdu, auth == AUTH_AES ? scratch : v.body);
	packet_key_free(key);
}
END_TEST

START_TEST(head_flags)
{
	struct packet_key *key = key_of(AUTH_NONE, 0);
	struct packet_head h = {.mgmt = true};
	uint8_t d[PACKET_MAX];
	struct packet_view v;
	size_t len;

	ck_assert_int_eq(
	    packet_seal(key, &h, NULL, NULL, 0, d, sizeof d, &len), 0);
	ck_assert_uint_eq(len, 44);
	ck_assert_mem_eq(d + 36, "\0\1\0\0", 4);
	/* Any non-zero byte is true, and the padding is nobody's business. */
	memcpy(d + 36, "\x80\0\xff\xff", 4);
	ck_assert_int_eq(packet_peek(d, len, &v), 0);
	ck_assert(v.head.keep_port && !v.head.mgmt);
	ck_assert_uint_eq(v.body_len, 0);
	packet_key_free(key);
}
END_TEST

/* Copies of the exact size, so that ASan sees a read past the end. */
START_TEST(every_truncation)
{
	enum auth_type auth = (enum auth_type)_i;
	struct packet_key *key = key_of(auth, 0x5a);
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX], *copy;
	size_t len = seal(key, d), n, pdu_len;
	const uint8_t *pdu;
	int want;

	for (n = 0; n < len; n++) {
		copy = malloc(n + (n == 0));
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, d, n);
		want = n < overheads[auth] ? RLA_ESHORT
		       : auth == AUTH_AES  ? RLA_EAUTH
					   : 0;
		ck_assert_int_eq(
		    open_bytes(key, copy, n, scratch, &pdu, &pdu_len), want);
		if (want == 0)
			ck_assert_uint_eq(pdu_len, n - overheads[auth]);
		free(copy);
	}
	packet_key_free(key);
}
END_TEST

/* With AES no bit is free: header, padding, nonce, tag, ciphertext. */
START_TEST(every_flipped_bit)
{
	enum auth_type auth = (enum auth_type)_i;
	struct packet_key *key = key_of(auth, 0x5a);
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX];
	size_t len = seal(key, d), bit, pdu_len, at;
	const uint8_t *pdu;
	bool refused;

	for (bit = 0; bit < 8 * len; bit++) {
		at = bit / 8;
		d[at] ^= (uint8_t)(1u << bit % 8);
		refused = open_bytes(key, d, len, scratch, &pdu, &pdu_len) != 0;
		d[at] ^= (uint8_t)(1u << bit % 8);
		/* Without a tag only what is compared can be found. */
		if (auth == AUTH_AES || at < 4 ||
		    (at >= 40 && at < overheads[auth]))
			ck_assert_msg(refused, "bit %zu is not covered", bit);
		else
			ck_assert_msg(!refused, "bit %zu matters", bit);
	}
	/* The context that refused all of that still opens the original. */
	ck_assert_int_eq(open_bytes(key, d, len, scratch, &pdu, &pdu_len), 0);
	ck_assert_mem_eq(pdu, PDU, PDU_LEN);
	packet_key_free(key);
}
END_TEST

START_TEST(unauthenticated_plaintext_is_wiped)
{
	static const uint8_t zeros[PDU_LEN];
	struct packet_key *key = key_of(AUTH_AES, 0x5a);
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX];
	size_t len = seal(key, d), pdu_len = 77;
	const uint8_t *pdu = NULL;

	memset(scratch, 0xaa, sizeof scratch);
	d[56] ^= 1; /* the tag: the plaintext itself would come out right */
	ck_assert_int_eq(
	    open_bytes(key, d, len, scratch, &pdu, &pdu_len), RLA_EAUTH);
	ck_assert_mem_eq(scratch, zeros, PDU_LEN);
	ck_assert_uint_eq(scratch[PDU_LEN], 0xaa);
	ck_assert_ptr_null(pdu);
	ck_assert_uint_eq(pdu_len, 77);
	packet_key_free(key);
}
END_TEST

/* Every key type against every datagram type, and against another secret. */
START_TEST(wrong_keys)
{
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX];
	const uint8_t *pdu;
	size_t len, pdu_len;
	int auth, other;

	for (auth = 0; auth < 3; auth++) {
		struct packet_key *key = key_of((enum auth_type)auth, 1);

		len = seal(key, d);
		packet_key_free(key);
		for (other = 0; other < 3; other++) {
			bool same = other == auth && auth == AUTH_NONE;

			key = key_of((enum auth_type)other, 2);
			ck_assert_int_eq(
			    open_bytes(key, d, len, scratch, &pdu, &pdu_len),
			    same ? 0 : RLA_EAUTH);
			packet_key_free(key);
		}
	}
}
END_TEST

START_TEST(malformed_heads)
{
	struct packet_key *key = key_of(AUTH_COOKIE, 1);
	uint8_t d[PACKET_MAX], bad[PACKET_MAX];
	size_t len = seal(key, d);
	struct packet_view v;
	unsigned int size;

	for (size = 0; size < 65536; size++) {
		memcpy(bad, d, len);
		bad[2] = (uint8_t)size;
		bad[3] = (uint8_t)(size >> 8);
		/* Behind a longer TLV no auth TLV starts, or none is left. */
		ck_assert_int_eq(packet_peek(bad, len, &v),
		    size == 40       ? 0
		    : size < 40      ? RLA_EMALFORMED
		    : size > len - 4 ? RLA_ESHORT
				     : RLA_EMALFORMED);
	}
	for (size = 0; size < 65536; size++) {
		memcpy(bad, d, len);
		bad[42] = (uint8_t)size;
		bad[43] = (uint8_t)(size >> 8);
		ck_assert_int_eq(
		    packet_peek(bad, len, &v), size == 36 ? 0 : RLA_EMALFORMED);
	}
	memcpy(bad, d, len);
	bad[0] = 'S';
	ck_assert_int_eq(packet_peek(bad, len, &v), RLA_EMALFORMED);
	/* A sound type is asked for before more bytes are. */
	ck_assert_int_eq(packet_peek(bad, 4, &v), RLA_EMALFORMED);
	packet_key_free(key);
}
END_TEST

/* What a longer TLV adds is skipped; with AES see the vectors. */
START_TEST(longer_tenant_tlv)
{
	struct packet_key *key = key_of(AUTH_COOKIE, 1);
	uint8_t d[PACKET_MAX], longer[PACKET_MAX], scratch[PACKET_MAX];
	size_t len = seal(key, d), extra, pdu_len;
	struct packet_view v;
	const uint8_t *pdu;

	for (extra = 1; extra < 64; extra++) {
		memcpy(longer, d, 40);
		memset(longer + 40, 'N', extra);
		memcpy(longer + 40 + extra, d + 40, len - 40);
		longer[2] = (uint8_t)(40 + extra);
		ck_assert_int_eq(packet_peek(longer, len + extra, &v), 0);
		ck_assert(v.head.key_id == head.key_id);
		ck_assert_int_eq(
		    packet_open(key, &v, scratch, PACKET_MAX, &pdu, &pdu_len),
		    0);
		ck_assert_mem_eq(pdu, PDU, PDU_LEN);
	}
	packet_key_free(key);
}
END_TEST

START_TEST(additional_data_ends_at_the_tag)
{
	struct packet_key *key = key_of(AUTH_AES, 1);
	uint8_t d[PACKET_MAX];
	size_t len = seal(key, d);
	struct packet_view v;

	ck_assert_int_eq(packet_peek(d, len, &v), 0);
	ck_assert_uint_eq(v.aad_len, 56);
	ck_assert_ptr_eq(v.secret, d + 44);
	packet_key_free(key);
}
END_TEST

START_TEST(room)
{
	enum auth_type auth = (enum auth_type)_i;
	struct packet_key *key = key_of(auth, 1);
	uint8_t pdu[PACKET_MAX] = {0}, d[PACKET_MAX + 64];
	uint8_t scratch[PACKET_MAX];
	size_t most = PACKET_MAX - overheads[auth], len = 77, pdu_len, cap;
	struct packet_view v;
	const uint8_t *got;

	memset(d, 0xaa, sizeof d);
	for (cap = 0; cap < overheads[auth] + PDU_LEN; cap++) {
		ck_assert_int_eq(
		    packet_seal(key, &head, nonce, pdu, PDU_LEN, d, cap, &len),
		    RLA_ETOOBIG);
		ck_assert_uint_eq(d[0], 0xaa);
	}
	ck_assert_uint_eq(len, 77);
	ck_assert_int_eq(
	    packet_seal(key, &head, nonce, pdu, PDU_LEN, d, cap, &len), 0);
	ck_assert_uint_eq(len, cap);
	ck_assert_uint_eq(d[len], 0xaa);
	/* 1200 bytes are the most, however large the buffer is. */
	ck_assert_int_eq(
	    packet_seal(key, &head, nonce, pdu, most + 1, d, sizeof d, &len),
	    RLA_ETOOBIG);
	ck_assert_int_eq(
	    packet_seal(key, &head, nonce, pdu, SIZE_MAX, d, sizeof d, &len),
	    RLA_ETOOBIG);
	ck_assert_int_eq(
	    packet_seal(key, &head, nonce, pdu, most, d, sizeof d, &len), 0);
	ck_assert_uint_eq(len, PACKET_MAX);
	ck_assert_uint_eq(d[PACKET_MAX], 0xaa);
	ck_assert_int_eq(packet_peek(d, len, &v), 0);
	ck_assert_int_eq(
	    packet_open(key, &v, scratch, most - 1, &got, &pdu_len),
	    auth == AUTH_AES ? RLA_ETOOBIG : 0);
	ck_assert_int_eq(
	    packet_open(key, &v, scratch, most, &got, &pdu_len), 0);
	ck_assert_uint_eq(pdu_len, most);
	packet_key_free(key);
}
END_TEST

/* One context per direction: interleaved use does not mix them up. */
START_TEST(contexts_are_reused)
{
	uint64_t seed = harness_seed();
	struct packet_key *key = key_of(AUTH_AES, 7);
	uint8_t pdu[600], n[NONCE_LEN], d[2][PACKET_MAX], out[PACKET_MAX];
	struct packet_view v;
	const uint8_t *got;
	size_t len[2], pdu_len, got_len;
	int i, j;

	for (i = 0; i < 2000; i++) {
		pdu_len = harness_below(&seed, sizeof pdu);
		harness_fill(&seed, pdu, sizeof pdu);
		for (j = 0; j < 2; j++) {
			harness_fill(&seed, n, sizeof n);
			ck_assert_int_eq(
			    packet_seal(key, &head, n, pdu, pdu_len, d[j],
				PACKET_MAX, &len[j]),
			    0);
		}
		for (j = 0; j < 2; j++) {
			ck_assert_int_eq(packet_peek(d[j], len[j], &v), 0);
			ck_assert_int_eq(packet_open(key, &v, out, sizeof out,
					     &got, &got_len),
			    0);
			ck_assert_uint_eq(got_len, pdu_len);
			ck_assert_int_eq(memcmp(got, pdu, pdu_len), 0);
		}
	}
	packet_key_free(key);
}
END_TEST

START_TEST(free_takes_null)
{
	packet_key_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("packet");
	TCase *tc = tcase_create("packet");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, layout, 0, 3);
	tcase_add_loop_test(tc, round_trip, 0, 3);
	tcase_add_test(tc, head_flags);
	tcase_add_loop_test(tc, every_truncation, 0, 3);
	tcase_add_loop_test(tc, every_flipped_bit, 0, 3);
	tcase_add_test(tc, unauthenticated_plaintext_is_wiped);
	tcase_add_test(tc, wrong_keys);
	tcase_add_test(tc, malformed_heads);
	tcase_add_test(tc, longer_tenant_tlv);
	tcase_add_test(tc, additional_data_ends_at_the_tag);
	tcase_add_loop_test(tc, room, 0, 3);
	tcase_add_test(tc, contexts_are_reused);
	tcase_add_test(tc, free_takes_null);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
