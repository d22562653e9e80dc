/*
 * Bech32 (BIP 173, checksum constant 1) without its 90-character limit: a
 * human-readable part, the last '1', then 5-bit groups. Mixed case, other
 * characters and non-zero padding bits are refused.
 */
#ifndef PROTO_BECH32_H
#define PROTO_BECH32_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the lower-cased human-readable part with its NUL and the bytes.
 * Returns 0, RLA_EKEYTEXT, or RLA_ETOOBIG when out or hrp is too small.
 */
int bech32_decode(const char *text, size_t len, char *hrp, size_t hrp_cap,
    uint8_t *out, size_t cap, size_t *out_len);

/* Writes the lower-case text and its NUL. Returns 0 or RLA_ETOOBIG. */
int bech32_encode(
    const char *hrp, const uint8_t *bytes, size_t len, char *out, size_t cap);

#endif
