/*
 * AES-256-GCM: the published test cases, the library's EVP layer as a second
 * opinion, and what is refused.
 */
#include "proto/aesgcm.h"

#include <openssl/evp.h>
#include <string.h>

#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"

#define LONGEST 1200

/* Test cases 13, 14 and 16 of the GCM specification (McGrew, Viega). */
static const struct {
	const char *key, *nonce, *aad, *plain, *sealed, *tag;
	size_t aad_len, len;
} cases[] = {
    {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
	"\0\0\0\0\0\0\0\0\0\0\0", "", "", "",
	"\x53\x0f\x8a\xfb\xc7\x45\x36\xb9\xa9\x63\xb4\xf1\xc4\xcb\x73\x8b", 0,
	0},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
	"\0\0\0\0\0\0\0\0\0\0\0", "", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
	"\xce\xa7\x40\x3d\x4d\x60\x6b\x6e\x07\x4e\xc5\xd3\xba\xf3\x9d\x18",
	"\xd0\xd1\xc8\xa7\x99\x99\x6b\xf0\x26\x5b\x98\xb5\xd4\x8a\xb9\x19", 0,
	16},
    {"\xfe\xff\xe9\x92\x86\x65\x73\x1c\x6d\x6a\x8f\x94\x67\x30\x83\x08"
     "\xfe\xff\xe9\x92\x86\x65\x73\x1c\x6d\x6a\x8f\x94\x67\x30\x83\x08",
	"\xca\xfe\xba\xbe\xfa\xce\xdb\xad\xde\xca\xf8\x88",
	"\xfe\xed\xfa\xce\xde\xad\xbe\xef\xfe\xed\xfa\xce\xde\xad\xbe\xef"
	"\xab\xad\xda\xd2",
	"\xd9\x31\x32\x25\xf8\x84\x06\xe5\xa5\x59\x09\xc5\xaf\xf5\x26\x9a"
	"\x86\xa7\xa9\x53\x15\x34\xf7\xda\x2e\x4c\x30\x3d\x8a\x31\x8a\x72"
	"\x1c\x3c\x0c\x95\x95\x68\x09\x53\x2f\xcf\x0e\x24\x49\xa6\xb5\x25"
	"\xb1\x6a\xed\xf5\xaa\x0d\xe6\x57\xba\x63\x7b\x39",
	"\x52\x2d\xc1\xf0\x99\x56\x7d\x07\xf4\x7f\x37\xa3\x2a\x84\x42\x7d"
	"\x64\x3a\x8c\xdc\xbf\xe5\xc0\xc9\x75\x98\xa2\xbd\x25\x55\xd1\xaa"
	"\x8c\xb0\x8e\x48\x59\x0d\xbb\x3d\xa7\xb0\x8b\x10\x56\x82\x88\x38"
	"\xc5\xf6\x1e\x63\x93\xba\x7a\x0a\xbc\xc9\xf6\x62",
	"\x76\xfc\x6e\xce\x0f\x4e\x17\x68\xcd\xdf\x88\x53\xbb\x2d\x55\x1b", 20,
	60},
};
#define CASES ((int)(sizeof cases / sizeof *cases))

static const uint8_t *
bytes(const char *text)
{
	return (const uint8_t *)text;
}

START_TEST(published)
{
	struct aesgcm *g = aesgcm_new(bytes(cases[_i].key));
	const struct aesgcm_aad aad = {bytes(cases[_i].aad), cases[_i].aad_len};
	const size_t len = cases[_i].len;
	uint8_t out[64], back[64], tag[AESGCM_TAG_LEN];

	ck_assert_ptr_nonnull(g);
	ck_assert(aesgcm_seal(g, bytes(cases[_i].nonce), aad,
	    bytes(cases[_i].plain), len, out, tag));
	ck_assert_int_eq(memcmp(out, cases[_i].sealed, len), 0);
	ck_assert_mem_eq(tag, cases[_i].tag, sizeof tag);
	ck_assert(
	    aesgcm_open(g, bytes(cases[_i].nonce), aad, out, len, back, tag));
	ck_assert_int_eq(memcmp(back, cases[_i].plain, len), 0);
	aesgcm_free(g);
}
END_TEST

/* What a message is made of. */
struct message {
	uint8_t nonce[AESGCM_NONCE_LEN];
	uint8_t aad[LONGEST], plain[LONGEST];
	size_t aad_len, len;
};

static bool
evp_seal(EVP_CIPHER_CTX *ctx, const uint8_t *key, const struct message *m,
    uint8_t *out, uint8_t tag[AESGCM_TAG_LEN])
{
	int n;

	return EVP_EncryptInit_ex2(
		   ctx, EVP_aes_256_gcm(), key, m->nonce, NULL) == 1 &&
	       EVP_EncryptUpdate(ctx, NULL, &n, m->aad, (int)m->aad_len) == 1 &&
	       EVP_EncryptUpdate(ctx, out, &n, m->plain, (int)m->len) == 1 &&
	       EVP_EncryptFinal_ex(ctx, out + m->len, &n) == 1 &&
	       EVP_CIPHER_CTX_ctrl(
		   ctx, EVP_CTRL_AEAD_GET_TAG, AESGCM_TAG_LEN, tag) == 1;
}

static void
fill_message(struct message *m, uint64_t *seed)
{
	m->aad_len = harness_below(seed, 100);
	m->len = harness_below(seed, LONGEST + 1);
	harness_fill(seed, m->nonce, sizeof m->nonce);
	harness_fill(seed, m->aad, m->aad_len);
	harness_fill(seed, m->plain, m->len);
}

START_TEST(as_evp)
{
	uint64_t seed = harness_seed();
	uint8_t key[AESGCM_KEY_LEN], tag[16], want_tag[16];
	uint8_t out[LONGEST], want[LONGEST + 16], back[LONGEST];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	struct message m;
	struct aesgcm *g;

	harness_fill(&seed, key, sizeof key);
	g = aesgcm_new(key);
	ck_assert(g != NULL && ctx != NULL);
	for (int i = 0; i < 2000; i++) {
		fill_message(&m, &seed);
		const struct aesgcm_aad aad = {m.aad, m.aad_len};

		if (!evp_seal(ctx, key, &m, want, want_tag) ||
		    !aesgcm_seal(g, m.nonce, aad, m.plain, m.len, out, tag) ||
		    memcmp(out, want, m.len) != 0 ||
		    memcmp(tag, want_tag, sizeof tag) != 0)
			ck_abort_msg("sealed %zu, %zu", m.aad_len, m.len);
		if (!aesgcm_open(g, m.nonce, aad, out, m.len, back, tag) ||
		    memcmp(back, m.plain, m.len) != 0)
			ck_abort_msg("opened %zu, %zu", m.aad_len, m.len);
	}
	aesgcm_free(g);
	EVP_CIPHER_CTX_free(ctx);
}
END_TEST

/* Each bit of all that is authenticated; after each, the context still opens
 * what is authentic. */
START_TEST(every_flipped_bit)
{
	static const uint8_t key[AESGCM_KEY_LEN] =
	    "a key of exactly 32 bytes here.";
	uint8_t nonce[AESGCM_NONCE_LEN] = "nonce 12 by.", aad[5] = "aad.";
	uint8_t out[7], tag[AESGCM_TAG_LEN], back[7];
	struct aesgcm *g = aesgcm_new(key);
	const struct aesgcm_aad a = {aad, sizeof aad};
	struct {
		uint8_t *at;
		size_t len;
	} parts[] = {{nonce, sizeof nonce}, {aad, sizeof aad},
	    {out, sizeof out}, {tag, sizeof tag}};

	ck_assert_ptr_nonnull(g);
	ck_assert(aesgcm_seal(g, nonce, a, bytes("message"), 7, out, tag));
	for (size_t p = 0; p < 4; p++) {
		for (size_t bit = 0; bit < 8 * parts[p].len; bit++) {
			uint8_t *at = parts[p].at + bit / 8;
			const uint8_t mask = (uint8_t)(1U << bit % 8);

			*at ^= mask;
			if (aesgcm_open(g, nonce, a, out, 7, back, tag))
				ck_abort_msg("part %zu, bit %zu", p, bit);
			*at ^= mask;
			if (!aesgcm_open(g, nonce, a, out, 7, back, tag))
				ck_abort_msg("after %zu, bit %zu", p, bit);
		}
	}
	ck_assert_mem_eq(back, "message", 7);
	aesgcm_free(g);
}
END_TEST

/* Nothing past the message is written, in either direction. */
START_TEST(room)
{
	static const uint8_t key[AESGCM_KEY_LEN];
	static const uint8_t nonce[AESGCM_NONCE_LEN];
	struct aesgcm *g = aesgcm_new(key);
	const struct aesgcm_aad aad = {key, sizeof key};
	uint8_t out[70], back[70], tag[AESGCM_TAG_LEN + 1];

	ck_assert_ptr_nonnull(g);
	for (size_t len = 0; len < 64; len++) {
		memset(out, 0xaa, sizeof out);
		memset(back, 0xaa, sizeof back);
		tag[AESGCM_TAG_LEN] = 0xaa;
		ck_assert(aesgcm_seal(g, nonce, aad,
		    bytes("the quick brown fox jumps over the lazy dog, and "
			  "runs home now."),
		    len, out, tag));
		ck_assert(aesgcm_open(g, nonce, aad, out, len, back, tag));
		ck_assert(out[len] == 0xaa && back[len] == 0xaa &&
			  tag[AESGCM_TAG_LEN] == 0xaa);
	}
	aesgcm_free(g);
}
END_TEST

START_TEST(no_allocation)
{
	static const uint8_t key[AESGCM_KEY_LEN];
	struct aesgcm *g = aesgcm_new(key);
	const struct aesgcm_aad aad = {key, sizeof key};
	uint8_t nonce[AESGCM_NONCE_LEN] = "", out[32], back[32], tag[16];
	unsigned long before = allocations, after;
	bool ok = g != NULL;

	for (int i = 0; i < 1000 && ok; i++) {
		nonce[i % 12]++;
		ok = aesgcm_seal(g, nonce, aad, key, sizeof out, out, tag) &&
		     aesgcm_open(g, nonce, aad, out, sizeof out, back, tag);
		tag[0] ^= 1;
		ok = ok &&
		     !aesgcm_open(g, nonce, aad, out, sizeof out, back, tag);
	}
	after = allocations;
	ck_assert_uint_eq(after, before);
	ck_assert(before > 0 || !allocations_are_counted);
	ck_assert(ok);
	aesgcm_free(g);
	aesgcm_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("aesgcm");
	TCase *tc = tcase_create("aesgcm");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, published, 0, CASES);
	tcase_add_test(tc, as_evp);
	tcase_add_test(tc, every_flipped_bit);
	tcase_add_test(tc, room);
	tcase_add_test(tc, no_allocation);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
