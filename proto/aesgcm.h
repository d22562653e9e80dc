/*
 * AES-256-GCM under one key, which is scheduled once for each direction: no
 * allocation for a message. OpenSSL does the work.
 */
#ifndef PROTO_AESGCM_H
#define PROTO_AESGCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AESGCM_KEY_LEN   32
#define AESGCM_NONCE_LEN 12
#define AESGCM_TAG_LEN   16

/* Bytes of a message that are authenticated only. */
struct aesgcm_aad {
	const uint8_t *bytes;
	size_t len;
};

struct aesgcm;

/* Copies the key. NULL without memory, or without the cipher. */
struct aesgcm *aesgcm_new(const uint8_t key[AESGCM_KEY_LEN]);
void aesgcm_free(struct aesgcm *g); /* wipes the key; takes NULL */

/* out has room for len bytes; in and out do not overlap. The nonce must be
 * fresh. False: nothing of out or tag may be sent. */
bool aesgcm_seal(struct aesgcm *g, const uint8_t nonce[AESGCM_NONCE_LEN],
    struct aesgcm_aad aad, const uint8_t *in, size_t len, uint8_t *out,
    uint8_t tag[AESGCM_TAG_LEN]);
/* False: the message is not authentic, and out must be wiped unread. */
bool aesgcm_open(struct aesgcm *g, const uint8_t nonce[AESGCM_NONCE_LEN],
    struct aesgcm_aad aad, const uint8_t *in, size_t len, uint8_t *out,
    const uint8_t tag[AESGCM_TAG_LEN]);

#endif
