/* Key files to credentials; no error text ever quotes a key. */
#include "sandbox/keyring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/err.h"
#include "proto/nonce.h"
#include "proto/packet.h"

void
keyring_init(struct keyring *ring)
{
	memset(ring, 0, sizeof(*ring));
}

void
keyring_fini(struct keyring *ring)
{
	size_t i;

	for (i = 0; i < ring->count; i++) {
		packet_key_free(ring->keys[i].packet);
		nonce_free(ring->keys[i].nonce);
		credential_wipe(&ring->keys[i].cred);
	}
	ring->count = 0;
}

int
keyring_add(struct keyring *ring, const struct credential *cred,
    const enum profile *forced)
{
	struct key *key = &ring->keys[ring->count];

	if (ring->count == KEYRING_MAX || keyring_find(ring, cred->key_id) >= 0)
		return RLA_EBUSY;
	key->packet = packet_key_new(cred);
	key->nonce = nonce_new();
	if (key->packet == NULL || key->nonce == NULL) {
		packet_key_free(key->packet);
		nonce_free(key->nonce);
		return RLA_ECRYPTO;
	}
	key->cred = *cred;
	key->profile = forced != NULL ? *forced : credential_profile(cred);
	ring->count++;
	return 0;
}

/* The text without the end of its line; -1 when reading fails. */
static int
read_text(const char *path, char *text, size_t cap, size_t *len)
{
	FILE *f = fopen(path, "re");
	int err;

	if (f == NULL)
		return -1;
	setvbuf(f, NULL, _IONBF, 0); /* no second copy of the secret */
	errno = 0;
	*len = fread(text, 1, cap, f);
	err = ferror(f) != 0 ? errno : 0;
	fclose(f);
	errno = err;
	while (*len > 0 && (text[*len - 1] == '\n' || text[*len - 1] == '\r'))
		--*len;
	return err == 0 ? 0 : -1;
}

int
keyring_load(struct keyring *ring, const char *path, const enum profile *forced,
    char why[KEYRING_WHY])
{
	char text[CREDENTIAL_TEXT_MAX + 3];
	struct credential cred;
	size_t len;
	int rc;

	if (read_text(path, text, sizeof(text), &len) < 0) {
		snprintf(why, KEYRING_WHY, "%s: %s", path, strerror(errno));
		return RLA_ESYS;
	}
	memset(&cred, 0, sizeof(cred));
	rc = credential_parse(text, len, &cred);
	if (rc == 0)
		rc = keyring_add(ring, &cred, forced);
	if (rc == RLA_EBUSY)
		snprintf(why, KEYRING_WHY,
		    "%s: a key with this id is there already, or more than "
		    "%d keys",
		    path, KEYRING_MAX);
	else if (rc < 0)
		snprintf(why, KEYRING_WHY, "%s: %s", path,
		    err_str((enum rla_err)rc));
	explicit_bzero(text, sizeof(text));
	credential_wipe(&cred);
	return rc;
}

int
keyring_find(const struct keyring *ring, uint64_t key_id)
{
	size_t i;

	for (i = 0; i < ring->count; i++)
		if (ring->keys[i].cred.key_id == key_id)
			return (int)i;
	return -1;
}
