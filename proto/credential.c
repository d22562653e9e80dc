/*
 * API keys in both formats (r-client specification, section 4). The text is
 * Bech32 whose human-readable part names the auth type; the payload is one of
 *
 *   format 1                               unversioned
 *    0  version, 1        1                 0  key_id             8
 *    1  key_id            8                 8  secret            32
 *    9  secret           32                40  rate buckets       4
 *   41  quota word        4                44  latency trackers   4
 *   45  (rl-none has no secret: 13)        48  metrics labels     4
 *                                          52  latency buffer     4
 *                                          56  dedup TTL, ms      4
 *                                          60  (never rl-none)
 *
 * Every copy of a secret made here is wiped before the function returns.
 */
#include "proto/credential.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "proto/bech32.h"
#include "proto/err.h"
#include "proto/reader.h"
#include "proto/writer.h"

#define FORMAT_1_LEN      45
#define FORMAT_1_NONE_LEN 13
#define UNVERSIONED_LEN   60
#define MANAGEMENT_HRP    "rl-secret"

/*
 * The quota word of format 1, from bit 0 upwards:
 *
 *    0  rate buckets      5  exponent, 0 to 24
 *    5  latency trackers  5  exponent, 0 to 24
 *   10  metrics labels    5  exponent
 *   15  latency buffer    4  exponent
 *   19  dedup TTL         8  in units of 10 ms, 1 to 200
 *   27  rate window       5  exponent, 31 meaning 2^32-1 ms
 */
#define RATE_SHIFT     0
#define LATENCY_SHIFT  5
#define METRICS_SHIFT  10
#define BUFFER_SHIFT   15
#define DEDUP_SHIFT    19
#define WINDOW_SHIFT   27
#define RATE_MAX       24
#define LATENCY_MAX    24
#define METRICS_MAX    31
#define BUFFER_MAX     15
#define DEDUP_MAX      200
#define DEDUP_UNIT_MS  10
#define WINDOW_MAX     30
#define WINDOW_NOLIMIT 31

static const char *
hrp_of(enum auth_type auth)
{
	switch (auth) {
	case AUTH_NONE:
		return "rl-none";
	case AUTH_COOKIE:
		return "rl-cookie";
	case AUTH_AES:
		return "rl-aes";
	}
	return "";
}

static int
auth_of(const char *hrp, enum auth_type *out)
{
	static const enum auth_type types[] = {
	    AUTH_NONE, AUTH_COOKIE, AUTH_AES};
	size_t i;

	for (i = 0; i < sizeof types / sizeof types[0]; i++) {
		if (strcmp(hrp, hrp_of(types[i])) == 0) {
			*out = types[i];
			return 0;
		}
	}
	return strcmp(hrp, MANAGEMENT_HRP) == 0 ? RLA_EKEYMGMT : RLA_EKEYTYPE;
}

static int
unpack_quotas(uint32_t word, struct quotas *q)
{
	uint32_t rate = word >> RATE_SHIFT & 31;
	uint32_t latency = word >> LATENCY_SHIFT & 31;
	uint32_t metrics = word >> METRICS_SHIFT & 31;
	uint32_t buffer = word >> BUFFER_SHIFT & 15;
	uint32_t dedup = word >> DEDUP_SHIFT & 255;
	uint32_t window = word >> WINDOW_SHIFT & 31;

	if (rate > RATE_MAX || latency > LATENCY_MAX || dedup == 0 ||
	    dedup > DEDUP_MAX)
		return RLA_EKEYQUOTA;
	q->rate_buckets = UINT32_C(1) << rate;
	q->latency_trackers = UINT32_C(1) << latency;
	q->metrics_labels = UINT32_C(1) << metrics;
	q->latency_buffer = UINT32_C(1) << buffer;
	q->dedup_ttl_ms = dedup * DEDUP_UNIT_MS;
	q->rate_window_ms =
	    window == WINDOW_NOLIMIT ? UINT32_MAX : UINT32_C(1) << window;
	return 0;
}

/* Adds the exponent of an exact power of two up to 2^max. */
static bool
pack_exponent(uint32_t value, uint32_t max, unsigned int shift, uint32_t *word)
{
	uint32_t exponent;

	if (value == 0 || (value & (value - 1)) != 0)
		return false;
	exponent = (uint32_t)__builtin_ctz(value);
	*word |= exponent << shift;
	return exponent <= max;
}

static int
pack_quotas(const struct quotas *q, uint32_t *out)
{
	uint32_t word = 0, dedup = q->dedup_ttl_ms / DEDUP_UNIT_MS;

	if (!pack_exponent(q->rate_buckets, RATE_MAX, RATE_SHIFT, &word) ||
	    !pack_exponent(
		q->latency_trackers, LATENCY_MAX, LATENCY_SHIFT, &word) ||
	    !pack_exponent(
		q->metrics_labels, METRICS_MAX, METRICS_SHIFT, &word) ||
	    !pack_exponent(q->latency_buffer, BUFFER_MAX, BUFFER_SHIFT, &word))
		return RLA_EKEYQUOTA;
	if (q->dedup_ttl_ms % DEDUP_UNIT_MS != 0 || dedup == 0 ||
	    dedup > DEDUP_MAX)
		return RLA_EKEYQUOTA;
	word |= dedup << DEDUP_SHIFT;
	if (q->rate_window_ms == UINT32_MAX)
		word |= (uint32_t)WINDOW_NOLIMIT << WINDOW_SHIFT;
	else if (!pack_exponent(
		     q->rate_window_ms, WINDOW_MAX, WINDOW_SHIFT, &word))
		return RLA_EKEYQUOTA;
	*out = word;
	return 0;
}

static int
read_format_1(struct reader *r, struct credential *cred)
{
	cred->format = KEY_FORMAT_1;
	if (reader_u8(r) != KEY_FORMAT_1)
		return RLA_EKEYFORMAT;
	cred->key_id = reader_u64(r);
	if (cred->auth != AUTH_NONE)
		reader_copy(r, cred->secret, sizeof cred->secret);
	return unpack_quotas(reader_u32(r), &cred->quotas);
}

static int
read_unversioned(struct reader *r, struct credential *cred)
{
	struct quotas *q = &cred->quotas;

	cred->format = KEY_UNVERSIONED;
	cred->key_id = reader_u64(r);
	reader_copy(r, cred->secret, sizeof cred->secret);
	q->rate_buckets = reader_u32(r);
	q->latency_trackers = reader_u32(r);
	q->metrics_labels = reader_u32(r);
	q->latency_buffer = reader_u32(r);
	q->dedup_ttl_ms = reader_u32(r);
	q->rate_window_ms = UINT32_MAX;
	return 0;
}

/* The length alone tells the formats apart; neither is a prefix of another. */
static int
read_payload(const uint8_t *payload, size_t len, struct credential *cred)
{
	struct reader r;
	bool none = cred->auth == AUTH_NONE;

	reader_init(&r, payload, len);
	if (len == (none ? FORMAT_1_NONE_LEN : FORMAT_1_LEN))
		return read_format_1(&r, cred);
	if (len == UNVERSIONED_LEN && !none)
		return read_unversioned(&r, cred);
	return RLA_EKEYFORMAT;
}

int
credential_parse(const char *text, size_t len, struct credential *out)
{
	char hrp[CREDENTIAL_TEXT_MAX];
	uint8_t payload[CREDENTIAL_TEXT_MAX];
	struct credential cred = {0};
	size_t payload_len = 0;
	int rc;

	if (len > CREDENTIAL_TEXT_MAX)
		return RLA_EKEYTEXT;
	rc = bech32_decode(
	    text, len, hrp, sizeof hrp, payload, sizeof payload, &payload_len);
	if (rc == 0)
		rc = auth_of(hrp, &cred.auth);
	if (rc == 0)
		rc = read_payload(payload, payload_len, &cred);
	if (rc == 0)
		*out = cred;
	OPENSSL_cleanse(payload, sizeof payload);
	credential_wipe(&cred);
	return rc;
}

static int
write_format_1(struct writer *w, const struct credential *cred)
{
	static const uint8_t no_secret[CREDENTIAL_SECRET_LEN];
	uint32_t word;
	int rc = pack_quotas(&cred->quotas, &word);

	if (rc != 0)
		return rc;
	if (cred->auth == AUTH_NONE &&
	    memcmp(cred->secret, no_secret, sizeof no_secret) != 0)
		return RLA_EINVAL;
	writer_u8(w, KEY_FORMAT_1);
	writer_u64(w, cred->key_id);
	if (cred->auth != AUTH_NONE)
		writer_bytes(w, cred->secret, sizeof cred->secret);
	writer_u32(w, word);
	return 0;
}

static int
write_unversioned(struct writer *w, const struct credential *cred)
{
	const struct quotas *q = &cred->quotas;

	if (cred->auth == AUTH_NONE)
		return RLA_EINVAL;
	if (q->rate_window_ms != UINT32_MAX)
		return RLA_EKEYQUOTA;
	writer_u64(w, cred->key_id);
	writer_bytes(w, cred->secret, sizeof cred->secret);
	writer_u32(w, q->rate_buckets);
	writer_u32(w, q->latency_trackers);
	writer_u32(w, q->metrics_labels);
	writer_u32(w, q->latency_buffer);
	writer_u32(w, q->dedup_ttl_ms);
	return 0;
}

static int
write_payload(struct writer *w, const struct credential *cred)
{
	switch (cred->format) {
	case KEY_FORMAT_1:
		return write_format_1(w, cred);
	case KEY_UNVERSIONED:
		return write_unversioned(w, cred);
	}
	return RLA_EINVAL;
}

int
credential_format(const struct credential *cred, char *out, size_t cap)
{
	uint8_t payload[UNVERSIONED_LEN];
	struct writer w;
	int rc;

	writer_init(&w, payload, sizeof payload);
	rc = write_payload(&w, cred);
	if (rc == 0)
		rc = bech32_encode(
		    hrp_of(cred->auth), payload, writer_len(&w), out, cap);
	OPENSSL_cleanse(payload, sizeof payload);
	return rc;
}

enum profile
credential_profile(const struct credential *cred)
{
	return cred->format == KEY_UNVERSIONED ? PROFILE_V1 : PROFILE_V2;
}

const char *
credential_auth_name(enum auth_type auth)
{
	switch (auth) {
	case AUTH_NONE:
		return "none";
	case AUTH_COOKIE:
		return "cookie";
	case AUTH_AES:
		return "aes";
	}
	return "unknown";
}

void
credential_dns_name(const struct credential *cred, char out[CREDENTIAL_DNS_MAX])
{
	snprintf(out, CREDENTIAL_DNS_MAX, "c-%" PRIu64 ".p0.ratelimitly.com",
	    cred->key_id);
}

bool
credential_allows_ttl(const struct credential *cred, uint64_t ttl_ms)
{
	/* Without a limit the header word of the PDU remains one. */
	if (cred->format == KEY_UNVERSIONED && cred->quotas.dedup_ttl_ms == 0)
		return ttl_ms <= UINT32_MAX;
	return ttl_ms <= cred->quotas.dedup_ttl_ms;
}

void
credential_wipe(struct credential *cred)
{
	OPENSSL_cleanse(cred, sizeof *cred);
}
