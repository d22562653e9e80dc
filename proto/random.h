/*
 * Random bytes from the crypto library, drawn in bulk: RAND_bytes costs about
 * a microsecond, a request id may not.
 */
#ifndef PROTO_RANDOM_H
#define PROTO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_pool;

struct random_pool *random_pool_new(void);
/* Wipes what is left. */
void random_pool_free(struct random_pool *pool);
/* Returns 0 or RLA_ECRYPTO. */
int random_bytes(struct random_pool *pool, void *out, size_t len);
/* A UUIDv4: random with the version and variant bits. 0 or RLA_ECRYPTO. */
int random_uuid(struct random_pool *pool, uint8_t out[16]);

#endif
