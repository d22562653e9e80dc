/*
 * API keys: the Bech32 text of both formats to a struct and back. A
 * credential holds a secret: whoever owns one calls credential_wipe().
 */
#ifndef PROTO_CREDENTIAL_H
#define PROTO_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CREDENTIAL_SECRET_LEN 32
/* Longest text that credential_parse() looks at, in bytes. */
#define CREDENTIAL_TEXT_MAX 512
/* Room for "c-<u64>.p0.ratelimitly.com" and its NUL. */
#define CREDENTIAL_DNS_MAX 48

enum auth_type { AUTH_NONE, AUTH_COOKIE, AUTH_AES };

/* Which block layouts and tracker ids a tenant speaks. */
enum profile { PROFILE_V1, PROFILE_V2 };

enum key_format { KEY_UNVERSIONED = 0, KEY_FORMAT_1 = 1 };

/* Maxima as numbers, not exponents. UINT32_MAX where there is no limit. */
struct quotas {
	uint32_t rate_buckets;
	uint32_t latency_trackers;
	uint32_t metrics_labels;
	uint32_t latency_buffer;
	uint32_t dedup_ttl_ms;   /* 0 in the unversioned format: no limit */
	uint32_t rate_window_ms; /* unversioned: UINT32_MAX */
};

struct credential {
	enum auth_type auth;
	enum key_format format;
	uint64_t key_id;
	uint8_t secret[CREDENTIAL_SECRET_LEN]; /* zeros for AUTH_NONE */
	struct quotas quotas;
};

/*
 * Parses exactly len bytes, no whitespace allowed. Returns 0, RLA_EKEYTEXT,
 * RLA_EKEYTYPE, RLA_EKEYMGMT, RLA_EKEYFORMAT or RLA_EKEYQUOTA; *out is
 * written on success only.
 */
int credential_parse(const char *text, size_t len, struct credential *out);

/*
 * Writes the lower-case text and a NUL. Format 1 needs quotas that its codes
 * can express (powers of two; the dedup TTL a multiple of 10 ms in 10..2000).
 * Returns 0, RLA_EKEYQUOTA, RLA_EINVAL (an unversioned rl-none) or
 * RLA_ETOOBIG.
 */
int credential_format(const struct credential *cred, char *out, size_t cap);

/* The profile that "auto" means: unversioned is v1, format 1 is v2. */
enum profile credential_profile(const struct credential *cred);

/* "aes", "cookie" or "none". */
const char *credential_auth_name(enum auth_type auth);

/* The default tenant name, c-<key_id>.p0.ratelimitly.com. */
void credential_dns_name(
    const struct credential *cred, char out[CREDENTIAL_DNS_MAX]);

/* May an operation ask for this dedup TTL? Only unversioned 0 is no limit. */
bool credential_allows_ttl(const struct credential *cred, uint64_t ttl_ms);

/* Overwrites everything, in a way that the compiler keeps. */
void credential_wipe(struct credential *cred);

#endif
