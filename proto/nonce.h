/*
 * AES-GCM nonces, unique per key over agents, restarts and forks: a random
 * 64-bit prefix, drawn afresh at creation and before its 32-bit counter
 * wraps, never persisted. The state lives in memory that a forked child sees
 * as zeros, so a child draws its own prefix. One generator per key.
 */
#ifndef PROTO_NONCE_H
#define PROTO_NONCE_H

#include <stdint.h>

#define NONCE_LEN 12

struct nonce;

/* NULL when memory or randomness cannot be had. */
struct nonce *nonce_new(void);
void nonce_free(struct nonce *n);
/* Returns 0 or RLA_ECRYPTO: then nothing may be sealed. */
int nonce_next(struct nonce *n, uint8_t out[NONCE_LEN]);
/* For tests: the counter to go on from. */
void nonce_seek(struct nonce *n, uint32_t counter);

#endif
