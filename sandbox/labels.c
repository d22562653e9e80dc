/* Labels are kept as digests, which all have one length. */
#include "sandbox/labels.h"

#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "proto/id.h"

#define OVERFLOW "overflow"

int
labels_init(struct labels *l, uint32_t max, uint64_t seed)
{
	expmap_init(&l->seen, seed);
	l->max = max;
	l->hash = id_hash_new();
	return l->hash != NULL ? 0 : RLA_ECRYPTO;
}

void
labels_fini(struct labels *l)
{
	struct expmap_entry *e;

	while ((e = expmap_first(&l->seen)) != NULL) {
		expmap_remove(&l->seen, e);
		free(e);
	}
	expmap_fini(&l->seen);
	id_hash_free(l->hash);
}

bool
labels_overflow(struct labels *l, const uint8_t *label, size_t len)
{
	struct expmap_entry *e;
	uint8_t digest[ID_LEN];

	if (len == 0 ||
	    (len == strlen(OVERFLOW) && memcmp(label, OVERFLOW, len) == 0))
		return false;
	if (id_digest(l->hash, label, len, digest) < 0)
		return true;
	if (expmap_find(&l->seen, digest) != NULL)
		return false;
	if (l->seen.count >= l->max)
		return true;
	e = malloc(sizeof(*e));
	if (e == NULL)
		return true;
	if (expmap_insert(&l->seen, e, digest, EXPMAP_NEVER) < 0) {
		free(e);
		return true;
	}
	return false;
}
