/* Reservations never expire; commit gives them their time. */
#include "sandbox/dedup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void
drop(struct dedup *d, struct expmap_entry *e)
{
	expmap_remove(&d->map, e);
	free(e); /* the entry is the first member */
}

void
dedup_init(struct dedup *d, uint32_t max, uint64_t seed)
{
	expmap_init(&d->map, seed);
	d->max = max;
}

void
dedup_fini(struct dedup *d)
{
	struct expmap_entry *e;

	while ((e = expmap_first(&d->map)) != NULL)
		drop(d, e);
	expmap_fini(&d->map);
}

void
dedup_reap(struct dedup *d, int64_t now_ms)
{
	struct expmap_entry *e;

	while ((e = expmap_due(&d->map, now_ms)) != NULL)
		drop(d, e);
}

const struct dedup_entry *
dedup_find(struct dedup *d, int64_t now_ms, const uint8_t unique_id[16])
{
	dedup_reap(d, now_ms);
	return (const struct dedup_entry *)expmap_find(&d->map, unique_id);
}

struct dedup_entry *
dedup_reserve(struct dedup *d, const uint8_t unique_id[16], size_t cap)
{
	struct dedup_entry *e;

	if (d->map.count >= d->max)
		return NULL;
	e = malloc(sizeof(*e) + cap);
	if (e == NULL)
		return NULL;
	e->cap = cap;
	e->len = 0;
	e->allowed = false;
	if (expmap_insert(&d->map, &e->entry, unique_id, EXPMAP_NEVER) < 0) {
		free(e);
		return NULL;
	}
	return e;
}

void
dedup_commit(struct dedup *d, struct dedup_entry *e, int64_t now_ms,
    uint32_t ttl_ms, const uint8_t *pdu, size_t len, bool allowed)
{
	assert(len <= e->cap);
	memcpy(e->pdu, pdu, len);
	e->len = len;
	e->allowed = allowed;
	expmap_move(&d->map, &e->entry, now_ms + ttl_ms);
}

void
dedup_abandon(struct dedup *d, struct dedup_entry *e)
{
	if (e != NULL)
		drop(d, &e->entry);
}
