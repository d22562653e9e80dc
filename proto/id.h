/*
 * Content-defined identifiers: the first 16 bytes of unkeyed BLAKE2s-256 over
 * the domain, the name and the defining settings (specification, sections 5.2
 * to 5.4). struct id_hash owns one reusable digest context.
 */
#ifndef PROTO_ID_H
#define PROTO_ID_H

#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"

#define ID_LEN 16

struct id_hash;

/* NULL when the crypto library has no BLAKE2S-256 (a FIPS-only provider). */
struct id_hash *id_hash_new(void);
void id_hash_free(struct id_hash *h);

/* Each returns 0 or RLA_ECRYPTO. Names are any bytes, NUL included. */
int id_bucket(struct id_hash *h, const void *name, size_t len,
    uint32_t window_ms, uint32_t limit, uint8_t out[ID_LEN]);
/* buffer_size is part of the identity in PROFILE_V1 only. */
int id_tracker(struct id_hash *h, enum profile profile, const void *name,
    size_t len, uint32_t ttl_ms, uint32_t max_samples, uint32_t buffer_size,
    uint32_t min_samples, uint8_t out[ID_LEN]);
/* Plain BLAKE2s-256 of some bytes, cut to 16; for configuration hashes. */
int id_digest(
    struct id_hash *h, const void *bytes, size_t len, uint8_t out[ID_LEN]);

#endif
