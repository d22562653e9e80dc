/*
 * Unkeyed BLAKE2s-256 with one context that is used again for each digest: no
 * allocation but that of the context. OpenSSL does the work.
 */
#ifndef PROTO_BLAKE2S_H
#define PROTO_BLAKE2S_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLAKE2S_LEN 32

struct blake2s;

/* NULL without memory, or when the crypto library has no BLAKE2S-256. */
struct blake2s *blake2s_new(void);
void blake2s_free(struct blake2s *b); /* takes NULL */

/* In this order, update any number of times; false: there is no digest. */
bool blake2s_begin(struct blake2s *b);
bool blake2s_update(struct blake2s *b, const void *bytes, size_t len);
bool blake2s_end(struct blake2s *b, uint8_t out[BLAKE2S_LEN]);

#endif
