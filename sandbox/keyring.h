/*
 * The keys that the sandbox serves, each with its cipher contexts and its
 * nonces. All servers of a cluster share one keyring. Owns the secrets.
 */
#ifndef SANDBOX_KEYRING_H
#define SANDBOX_KEYRING_H

#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"

#define KEYRING_MAX 16
#define KEYRING_WHY 256

struct nonce;
struct packet_key;

struct key {
	struct credential cred;
	struct packet_key *packet;
	struct nonce *nonce;
	enum profile profile;
};

struct keyring {
	size_t count;
	struct key keys[KEYRING_MAX];
};

void keyring_init(struct keyring *ring);
/* Wipes every secret. */
void keyring_fini(struct keyring *ring);
/*
 * Adds a copy of the key; forced is the profile to speak, NULL the one that
 * its format means. Returns 0, RLA_EBUSY (too many, or its id is taken),
 * RLA_ECRYPTO.
 */
int keyring_add(struct keyring *ring, const struct credential *cred,
    const enum profile *forced);
/*
 * Adds the key in this file, one line of text. On failure returns a negative
 * error and writes a line for people, with the path and without the key.
 */
int keyring_load(struct keyring *ring, const char *path,
    const enum profile *forced, char why[KEYRING_WHY]);
/* The index of the key, or -1. */
int keyring_find(const struct keyring *ring, uint64_t key_id);

#endif
