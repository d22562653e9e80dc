/*
 * API keys: both formats against payloads written out by hand, each reason to
 * refuse, and the inverse over random credentials. Keys from outside are in
 * tests/vectors.
 */
#include "proto/credential.h"

#include <string.h>

#include "proto/bech32.h"
#include "proto/err.h"
#include "tests/unit/harness.h"

/* Quota word: exponents 16, 10, 12, 5; dedup 30 * 10 ms; window 2^27. */
#define QUOTA         "\x50\xb1\xf2\xd8"
#define KEY_ID        "\x08\x07\x06\x05\x04\x03\x02\x01"
#define SECRET        "0123456789abcdefghijklmnopqrstuv"
#define FORMAT_1      "\x01" KEY_ID SECRET QUOTA
#define FORMAT_1_NONE "\x01" KEY_ID QUOTA
#define UNVERSIONED \
	KEY_ID SECRET "\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\0\0\0"

static int
parse_payload(
    const char *hrp, const void *payload, size_t len, struct credential *cred)
{
	char text[CREDENTIAL_TEXT_MAX + 64];

	ck_assert_int_eq(
	    bech32_encode(hrp, payload, len, text, sizeof text), 0);
	return credential_parse(text, strlen(text), cred);
}

START_TEST(format_1)
{
	struct credential c;

	ck_assert_int_eq(parse_payload("rl-aes", FORMAT_1, 45, &c), 0);
	ck_assert_int_eq(c.auth, AUTH_AES);
	ck_assert_int_eq(c.format, KEY_FORMAT_1);
	ck_assert(c.key_id == UINT64_C(0x0102030405060708));
	ck_assert_mem_eq(c.secret, SECRET, 32);
	ck_assert_uint_eq(c.quotas.rate_buckets, 65536);
	ck_assert_uint_eq(c.quotas.latency_trackers, 1024);
	ck_assert_uint_eq(c.quotas.metrics_labels, 4096);
	ck_assert_uint_eq(c.quotas.latency_buffer, 32);
	ck_assert_uint_eq(c.quotas.dedup_ttl_ms, 300);
	ck_assert_uint_eq(c.quotas.rate_window_ms, 1u << 27);
	ck_assert_int_eq(credential_profile(&c), PROFILE_V2);
	ck_assert_int_eq(parse_payload("rl-cookie", FORMAT_1, 45, &c), 0);
	ck_assert_int_eq(c.auth, AUTH_COOKIE);
	ck_assert_mem_eq(c.secret, SECRET, 32);
}
END_TEST

START_TEST(format_1_none)
{
	static const uint8_t zeros[32];
	struct credential c;

	memset(&c, 0xaa, sizeof c);
	ck_assert_int_eq(parse_payload("rl-none", FORMAT_1_NONE, 13, &c), 0);
	ck_assert_int_eq(c.auth, AUTH_NONE);
	ck_assert(c.key_id == UINT64_C(0x0102030405060708));
	ck_assert_mem_eq(c.secret, zeros, 32);
	ck_assert_uint_eq(c.quotas.latency_buffer, 32);
}
END_TEST

START_TEST(unversioned)
{
	struct credential c;

	ck_assert_int_eq(parse_payload("rl-cookie", UNVERSIONED, 60, &c), 0);
	ck_assert_int_eq(c.auth, AUTH_COOKIE);
	ck_assert_int_eq(c.format, KEY_UNVERSIONED);
	ck_assert(c.key_id == UINT64_C(0x0102030405060708));
	ck_assert_mem_eq(c.secret, SECRET, 32);
	ck_assert_uint_eq(c.quotas.rate_buckets, 1);
	ck_assert_uint_eq(c.quotas.latency_trackers, 2);
	ck_assert_uint_eq(c.quotas.metrics_labels, 3);
	ck_assert_uint_eq(c.quotas.latency_buffer, 4);
	ck_assert_uint_eq(c.quotas.dedup_ttl_ms, 5);
	ck_assert_uint_eq(c.quotas.rate_window_ms, UINT32_MAX);
	ck_assert_int_eq(credential_profile(&c), PROFILE_V1);
	/* The first byte of a key id is no version: 1 is as good as any. */
	ck_assert_int_eq(
	    parse_payload("rl-aes", "\x01" UNVERSIONED, 60, &c), 0);
	ck_assert_int_eq(c.format, KEY_UNVERSIONED);
}
END_TEST

/* Every payload length of every type: only the documented ones pass. */
START_TEST(lengths)
{
	static const char *const hrps[] = {"rl-aes", "rl-cookie", "rl-none"};
	uint8_t payload[128] = FORMAT_1;
	struct credential c;
	size_t len, i;

	for (i = 0; i < 3; i++) {
		for (len = 0; len <= sizeof payload; len++) {
			bool good = i < 2 ? len == 45 || len == 60 : len == 13;
			int want = good ? 0 : RLA_EKEYFORMAT;

			/* The last four of thirteen are the quota word. */
			if (i == 2 && len == 13)
				memcpy(payload + 9, QUOTA, 4);
			ck_assert_int_eq(
			    parse_payload(hrps[i], payload, len, &c), want);
		}
	}
}
END_TEST

START_TEST(versions)
{
	uint8_t payload[46] = FORMAT_1;
	struct credential c;
	int v;

	for (v = 0; v < 256; v++) {
		payload[0] = (uint8_t)v;
		ck_assert_int_eq(parse_payload("rl-aes", payload, 45, &c),
		    v == 1 ? 0 : RLA_EKEYFORMAT);
	}
}
END_TEST

START_TEST(types)
{
	struct credential c, untouched;

	memset(&c, 0xaa, sizeof c);
	memset(&untouched, 0xaa, sizeof untouched);
	ck_assert_int_eq(
	    parse_payload("rl-secret", FORMAT_1, 45, &c), RLA_EKEYMGMT);
	ck_assert_int_eq(parse_payload("rl", FORMAT_1, 45, &c), RLA_EKEYTYPE);
	ck_assert_int_eq(
	    parse_payload("rl-aes2", FORMAT_1, 45, &c), RLA_EKEYTYPE);
	ck_assert_int_eq(parse_payload("bc", FORMAT_1, 45, &c), RLA_EKEYTYPE);
	/* The type is told before the payload is looked at. */
	ck_assert_int_eq(parse_payload("rl-secret", "", 0, &c), RLA_EKEYMGMT);
	ck_assert_int_eq(memcmp(&c, &untouched, sizeof c), 0);
}
END_TEST

/* All 2^5, 2^4 and 2^8 codes of each field, the others being fixed. */
START_TEST(quota_codes)
{
	static const struct {
		unsigned int shift, codes, min, max;
	} fields[] = {{0, 32, 0, 24}, {5, 32, 0, 24}, {10, 32, 0, 31},
	    {15, 16, 0, 15}, {19, 256, 1, 200}, {27, 32, 0, 31}};
	uint8_t payload[14] = FORMAT_1_NONE;
	uint32_t base = UINT32_C(0xd8f2b150), word, value[6], want;
	unsigned int code, f;
	struct credential c;

	for (f = 0; f < 6; f++) {
		for (code = 0; code < fields[f].codes; code++) {
			bool good =
			    code >= fields[f].min && code <= fields[f].max;

			word =
			    base & ~((fields[f].codes - 1) << fields[f].shift);
			word |= code << fields[f].shift;
			payload[9] = (uint8_t)word;
			payload[10] = (uint8_t)(word >> 8);
			payload[11] = (uint8_t)(word >> 16);
			payload[12] = (uint8_t)(word >> 24);
			ck_assert_int_eq(
			    parse_payload("rl-none", payload, 13, &c),
			    good ? 0 : RLA_EKEYQUOTA);
			if (!good)
				continue;
			value[0] = c.quotas.rate_buckets;
			value[1] = c.quotas.latency_trackers;
			value[2] = c.quotas.metrics_labels;
			value[3] = c.quotas.latency_buffer;
			value[4] = c.quotas.dedup_ttl_ms;
			value[5] = c.quotas.rate_window_ms;
			want = f == 4                 ? code * 10
			       : f == 5 && code == 31 ? UINT32_MAX
						      : UINT32_C(1) << code;
			ck_assert_uint_eq(value[f], want);
		}
	}
}
END_TEST

START_TEST(text_edges)
{
	struct credential c;
	char text[1024];
	size_t len;

	ck_assert_int_eq(
	    bech32_encode("rl-aes", (const uint8_t *)FORMAT_1, 45, text, 1000),
	    0);
	len = strlen(text);
	ck_assert_int_eq(credential_parse(text, len, &c), 0);
	ck_assert_int_eq(credential_parse(text, len - 1, &c), RLA_EKEYTEXT);
	/* The length rules: the NUL would be a character of the key. */
	ck_assert_int_eq(credential_parse(text, len + 1, &c), RLA_EKEYTEXT);
	memcpy(text + len, "\n", 2);
	ck_assert_int_eq(credential_parse(text, len + 1, &c), RLA_EKEYTEXT);
	ck_assert_int_eq(credential_parse("", 0, &c), RLA_EKEYTEXT);
	text[1] = 'L';
	ck_assert_int_eq(credential_parse(text, len, &c), RLA_EKEYTEXT);
}
END_TEST

/* Good Bech32 up to the cap has an unknown length; past it nobody looks. */
START_TEST(longest_text)
{
	static uint8_t payload[400];
	struct credential c;
	char text[1024];
	size_t len = 0, n;

	for (n = 300; len < CREDENTIAL_TEXT_MAX; n++) {
		ck_assert_int_eq(
		    bech32_encode("rl-aes", payload, n, text, 1000), 0);
		len = strlen(text);
		ck_assert_int_eq(credential_parse(text, len, &c),
		    len <= CREDENTIAL_TEXT_MAX ? RLA_EKEYFORMAT : RLA_EKEYTEXT);
	}
}
END_TEST

static uint32_t
power(uint64_t *seed, uint32_t max)
{
	return UINT32_C(1) << harness_below(seed, max + 1);
}

static void
random_credential(uint64_t *seed, struct credential *c)
{
	memset(c, 0, sizeof *c);
	c->key_id = harness_random(seed);
	c->format = harness_below(seed, 2) ? KEY_FORMAT_1 : KEY_UNVERSIONED;
	c->auth = (enum auth_type)harness_below(seed, 3);
	if (c->format == KEY_UNVERSIONED && c->auth == AUTH_NONE)
		c->auth = AUTH_AES;
	if (c->auth != AUTH_NONE)
		harness_fill(seed, c->secret, sizeof c->secret);
	if (c->format == KEY_UNVERSIONED) {
		harness_fill(seed, &c->quotas, sizeof c->quotas);
		c->quotas.rate_window_ms = UINT32_MAX;
		return;
	}
	c->quotas.rate_buckets = power(seed, 24);
	c->quotas.latency_trackers = power(seed, 24);
	c->quotas.metrics_labels = power(seed, 31);
	c->quotas.latency_buffer = power(seed, 15);
	c->quotas.dedup_ttl_ms = 10 * (1 + harness_below(seed, 200));
	c->quotas.rate_window_ms =
	    harness_below(seed, 8) == 0 ? UINT32_MAX : power(seed, 30);
}

static void
assert_same(const struct credential *a, const struct credential *b)
{
	ck_assert_int_eq(a->auth, b->auth);
	ck_assert_int_eq(a->format, b->format);
	ck_assert(a->key_id == b->key_id);
	ck_assert_mem_eq(a->secret, b->secret, sizeof a->secret);
	ck_assert_int_eq(memcmp(&a->quotas, &b->quotas, sizeof a->quotas), 0);
}

START_TEST(format_inverts_parse)
{
	uint64_t seed = harness_seed();
	struct credential c, back;
	char text[CREDENTIAL_TEXT_MAX], again[CREDENTIAL_TEXT_MAX];
	size_t len;
	int round;

	for (round = 0; round < 3000; round++) {
		random_credential(&seed, &c);
		ck_assert_int_eq(credential_format(&c, text, sizeof text), 0);
		len = strlen(text);
		ck_assert_int_eq(credential_parse(text, len, &back), 0);
		assert_same(&c, &back);
		/* Exactly enough room, and one byte less. */
		ck_assert_int_eq(credential_format(&back, again, len + 1), 0);
		ck_assert_str_eq(again, text);
		ck_assert_int_eq(
		    credential_format(&back, again, len), RLA_ETOOBIG);
	}
}
END_TEST

/* One step outside what the codes can express, field by field. */
START_TEST(format_refuses)
{
	static const struct quotas good = {1, 1, 1, 1, 10, 1};
	static const struct quotas bad[] = {{0, 1, 1, 1, 10, 1},
	    {3, 1, 1, 1, 10, 1}, {1 << 25, 1, 1, 1, 10, 1}, {1, 0, 1, 1, 10, 1},
	    {1, 6, 1, 1, 10, 1}, {1, 1 << 25, 1, 1, 10, 1}, {1, 1, 0, 1, 10, 1},
	    {1, 1, 7, 1, 10, 1}, {1, 1, 1, 0, 10, 1}, {1, 1, 1, 9, 10, 1},
	    {1, 1, 1, 1 << 16, 10, 1}, {1, 1, 1, 1, 0, 1}, {1, 1, 1, 1, 9, 1},
	    {1, 1, 1, 1, 11, 1}, {1, 1, 1, 1, 2010, 1}, {1, 1, 1, 1, 10, 0},
	    {1, 1, 1, 1, 10, 5}, {1, 1, 1, 1, 10, UINT32_C(1) << 31}};
	struct credential c = {.auth = AUTH_AES, .format = KEY_FORMAT_1};
	char text[CREDENTIAL_TEXT_MAX];
	size_t i;

	c.quotas = good;
	ck_assert_int_eq(credential_format(&c, text, sizeof text), 0);
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		c.quotas = bad[i];
		ck_assert_msg(
		    credential_format(&c, text, sizeof text) == RLA_EKEYQUOTA,
		    "row %zu expressed", i);
	}
	c.quotas = good;
	c.auth = AUTH_NONE;
	c.secret[31] = 1; /* has no place in rl-none */
	ck_assert_int_eq(credential_format(&c, text, sizeof text), RLA_EINVAL);
	c.secret[31] = 0;
	c.format = KEY_UNVERSIONED;
	c.quotas.rate_window_ms = UINT32_MAX;
	ck_assert_int_eq(credential_format(&c, text, sizeof text), RLA_EINVAL);
	c.auth = AUTH_COOKIE;
	ck_assert_int_eq(credential_format(&c, text, sizeof text), 0);
	c.quotas.rate_window_ms = 1000; /* not in this payload */
	ck_assert_int_eq(
	    credential_format(&c, text, sizeof text), RLA_EKEYQUOTA);
}
END_TEST

START_TEST(ttl)
{
	struct credential c = {.format = KEY_UNVERSIONED};

	ck_assert(credential_allows_ttl(&c, 1));
	ck_assert(credential_allows_ttl(&c, UINT32_MAX));
	ck_assert(!credential_allows_ttl(&c, UINT64_C(1) << 32));
	c.quotas.dedup_ttl_ms = 300;
	ck_assert(credential_allows_ttl(&c, 300));
	ck_assert(!credential_allows_ttl(&c, 301));
	ck_assert(!credential_allows_ttl(&c, (UINT64_C(1) << 32) + 1));
	c.format = KEY_FORMAT_1;
	ck_assert(credential_allows_ttl(&c, 300));
	ck_assert(!credential_allows_ttl(&c, 301));
	/* Only in the unversioned format does 0 mean no limit. */
	c.quotas.dedup_ttl_ms = 0;
	ck_assert(!credential_allows_ttl(&c, 1));
}
END_TEST

START_TEST(names)
{
	struct credential c = {.key_id = UINT64_MAX};
	char dns[CREDENTIAL_DNS_MAX];

	credential_dns_name(&c, dns);
	ck_assert_str_eq(dns, "c-18446744073709551615.p0.ratelimitly.com");
	c.key_id = 0;
	credential_dns_name(&c, dns);
	ck_assert_str_eq(dns, "c-0.p0.ratelimitly.com");
	ck_assert_str_eq(credential_auth_name(AUTH_AES), "aes");
	ck_assert_str_eq(credential_auth_name(AUTH_COOKIE), "cookie");
	ck_assert_str_eq(credential_auth_name(AUTH_NONE), "none");
}
END_TEST

START_TEST(wipe)
{
	static const struct credential zeros;
	struct credential c;

	memset(&c, 0xaa, sizeof c);
	credential_wipe(&c);
	ck_assert_int_eq(memcmp(&c, &zeros, sizeof c), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("credential");
	TCase *tc = tcase_create("credential");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, format_1);
	tcase_add_test(tc, format_1_none);
	tcase_add_test(tc, unversioned);
	tcase_add_test(tc, lengths);
	tcase_add_test(tc, versions);
	tcase_add_test(tc, types);
	tcase_add_test(tc, quota_codes);
	tcase_add_test(tc, text_edges);
	tcase_add_test(tc, longest_text);
	tcase_add_test(tc, format_inverts_parse);
	tcase_add_test(tc, format_refuses);
	tcase_add_test(tc, ttl);
	tcase_add_test(tc, names);
	tcase_add_test(tc, wipe);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
