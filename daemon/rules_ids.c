/*
 * A table of slots, each for one definition at a time: the latest that fell on
 * it. Invariant: a slot's id is that of its kind, settings and name, which are
 * compared in full, so a hit is never another definition's id.
 *
 * Where a definition falls is secret, so that nobody can choose names that
 * push out another's. A slot is two cache lines, and names of up to 30 bytes
 * are in the first: what is asked for once costs little more than its hash.
 */
#include "daemon/rules_ids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/siphash.h"
#include "proto/err.h"
#include "proto/random.h"

#define SLOTS    4096 /* a power of two; 512 KiB when all are in use */
#define NAME_MAX 94   /* longer names are hashed each time */

enum kind { EMPTY, BUCKET, TRACKER_V1, TRACKER_V2 };

/* All that an id depends on, but for the name. */
struct definition {
	enum kind kind;
	uint32_t settings[4];
};

struct slot {
	uint8_t id[ID_LEN];
	uint32_t settings[4];
	uint8_t kind; /* enum kind */
	uint8_t len;
	uint8_t name[NAME_MAX];
};

_Static_assert(sizeof(struct slot) == 128, "two cache lines");

struct rules_ids {
	struct id_hash *hash;
	uint64_t hashed;
	uint64_t seed[2];
	struct slot *slots;
	void *memory; /* of slots */
};

/* Memory that is zero without having been touched: what no name falls on is
 * not resident. The slots start where a cache line does. */
static bool
open_slots(struct rules_ids *ids)
{
	uintptr_t at;

	ids->memory = calloc(SLOTS + 1, sizeof(*ids->slots));
	at = (uintptr_t)ids->memory;
	at += sizeof(*ids->slots) - at % sizeof(*ids->slots);
	ids->slots = (struct slot *)at;
	return ids->memory != NULL;
}

struct rules_ids *
rules_ids_new(void)
{
	struct rules_ids *ids = calloc(1, sizeof(*ids));

	if (ids == NULL)
		return NULL;
	ids->hash = id_hash_new();
	if (ids->hash == NULL || !open_slots(ids) ||
	    random_fresh(ids->seed, sizeof(ids->seed)) != 0) {
		rules_ids_free(ids);
		return NULL;
	}
	return ids;
}

void
rules_ids_free(struct rules_ids *ids)
{
	if (ids == NULL)
		return;
	id_hash_free(ids->hash);
	free(ids->memory);
	free(ids);
}

static int
derive(struct rules_ids *ids, const struct definition *d,
    const struct ipc_str *name, uint8_t id[ID_LEN])
{
	struct id_hash *hash = ids->hash;
	const uint32_t *s = d->settings;

	ids->hashed++;
	switch (d->kind) {
	case BUCKET:
		return id_bucket(hash, name->bytes, name->len, s[0], s[1], id);
	case TRACKER_V1:
		return id_tracker(hash, PROFILE_V1, name->bytes, name->len,
		    s[0], s[1], s[2], s[3], id);
	case TRACKER_V2:
		return id_tracker(hash, PROFILE_V2, name->bytes, name->len,
		    s[0], s[1], s[2], s[3], id);
	case EMPTY:
		break;
	}
	return RLA_ECRYPTO;
}

/* The settings change the seed, which spreads them as well as the name. */
static struct slot *
slot_of(const struct rules_ids *ids, const struct definition *d,
    const struct ipc_str *name)
{
	const uint32_t *s = d->settings;
	const uint64_t seed[2] = {
	    ids->seed[0] ^ ((uint64_t)s[0] << 32 | s[1]),
	    ids->seed[1] ^ ((uint64_t)s[2] << 32 | s[3]),
	};

	return &ids->slots[siphash(seed, name->bytes, name->len) % SLOTS];
}

static bool
holds(const struct slot *slot, const struct definition *d,
    const struct ipc_str *name)
{
	return slot->kind == d->kind && slot->len == name->len &&
	       memcmp(slot->settings, d->settings, sizeof(d->settings)) == 0 &&
	       memcmp(slot->name, name->bytes, name->len) == 0;
}

static void
hold(struct slot *slot, const struct definition *d, const struct ipc_str *name,
    const uint8_t id[ID_LEN])
{
	memcpy(slot->id, id, ID_LEN);
	memcpy(slot->settings, d->settings, sizeof(d->settings));
	slot->kind = (uint8_t)d->kind;
	slot->len = (uint8_t)name->len;
	memcpy(slot->name, name->bytes, name->len);
}

static int
identify(struct rules_ids *ids, const struct definition *d,
    const struct ipc_str *name, uint8_t id[ID_LEN])
{
	struct slot *slot;
	int rc;

	if (name->len == 0 || name->len > NAME_MAX)
		return derive(ids, d, name, id);
	slot = slot_of(ids, d, name);
	if (holds(slot, d, name)) {
		memcpy(id, slot->id, ID_LEN);
		return 0;
	}
	rc = derive(ids, d, name, id);
	if (rc == 0)
		hold(slot, d, name, id);
	return rc;
}

int
rules_ids_tracker(struct rules_ids *ids, enum profile profile,
    const struct rules_tracker *t, const struct ipc_str *name,
    uint8_t id[ID_LEN])
{
	const bool v1 = profile == PROFILE_V1;
	const struct definition d = {
	    .kind = v1 ? TRACKER_V1 : TRACKER_V2,
	    .settings = {t->ttl_ms, t->max_samples, v1 ? t->buffer_size : 0,
		t->min_samples},
	};

	return identify(ids, &d, name, id);
}

int
rules_ids_bucket(struct rules_ids *ids, uint32_t window_ms, uint32_t limit,
    const struct ipc_str *name, uint8_t id[ID_LEN])
{
	const struct definition d = {
	    .kind = BUCKET,
	    .settings = {window_ms, limit},
	};

	return identify(ids, &d, name, id);
}

uint64_t
rules_ids_hashed(const struct rules_ids *ids)
{
	return ids->hashed;
}
