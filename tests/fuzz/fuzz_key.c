/*
 * Bytes as an API key. The first one says whether the rest is text ('0') or a
 * payload under one of the human-readable parts, so that a mutation need not
 * find a checksum. What parses must format to the same text, and back.
 */
#include "proto/bech32.h"
#include "proto/credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_MAX 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "key: does not hold: %s\n", what);
		abort();
	}
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static void
require_lower_of(const char *got, const char *text, size_t len)
{
	size_t i;

	require(strlen(got) == len, "the text keeps its length");
	for (i = 0; i < len; i++)
		require(got[i] == lower(text[i]), "the text comes back");
}

static int
same(const struct credential *a, const struct credential *b)
{
	return a->auth == b->auth && a->format == b->format &&
	       a->key_id == b->key_id &&
	       memcmp(a->secret, b->secret, sizeof a->secret) == 0 &&
	       memcmp(&a->quotas, &b->quotas, sizeof a->quotas) == 0;
}

static void
check_bech32(const char *text, size_t len)
{
	char hrp[PAYLOAD_MAX], again[1024];
	uint8_t bytes[PAYLOAD_MAX];
	size_t n = 0;

	if (bech32_decode(
		text, len, hrp, sizeof hrp, bytes, sizeof bytes, &n) != 0)
		return;
	require(bech32_encode(hrp, bytes, n, again, sizeof again) == 0,
	    "decoded text encodes");
	require_lower_of(again, text, len);
}

static void
check_text(const char *text, size_t len)
{
	char again[CREDENTIAL_TEXT_MAX + 1], dns[CREDENTIAL_DNS_MAX];
	struct credential cred, back;

	check_bech32(text, len);
	if (credential_parse(text, len, &cred) != 0)
		return;
	require(credential_format(&cred, again, sizeof again) == 0,
	    "a parsed key formats");
	require_lower_of(again, text, len);
	require(credential_parse(again, strlen(again), &back) == 0 &&
		    same(&cred, &back),
	    "and parses to the same");
	require(credential_allows_ttl(&cred, 0), "no TTL is within any limit");
	require((credential_profile(&cred) == PROFILE_V1) ==
		    (cred.format == KEY_UNVERSIONED),
	    "the format chooses the profile");
	credential_dns_name(&cred, dns);
	require(strlen(dns) < sizeof dns - 1, "the name has room");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const hrps[] = {
	    NULL, "rl-aes", "rl-cookie", "rl-none", "rl-secret"};
	char text[1024];
	int what;

	if (size == 0)
		return 0;
	what = data[0] - '0';
	data++;
	size--;
	if (what < 1 || what > 4) {
		check_text((const char *)data, size);
		return 0;
	}
	if (size > PAYLOAD_MAX)
		return 0;
	require(bech32_encode(hrps[what], data, size, text, sizeof text) == 0,
	    "a payload encodes");
	check_text(text, strlen(text));
	return 0;
}
