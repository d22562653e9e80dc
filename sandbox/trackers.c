/* The map of trackers; what one of them computes is in tracker.c. */
#include "sandbox/trackers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

_Static_assert(PDU_MAX_GUARDS <= TRACKERS_MAX_BLOCKS, "guards fit blocks");

static void
drop(struct trackers *t, struct expmap_entry *e)
{
	struct trackers_slot *slot = (struct trackers_slot *)e;

	expmap_remove(&t->map, e);
	tracker_fini(&slot->tracker, &t->samples_left);
	free(slot);
}

void
trackers_init(
    struct trackers *t, enum profile profile, uint32_t buffer, uint64_t seed)
{
	expmap_init(&t->map, seed);
	t->profile = profile;
	t->buffer = buffer;
	t->samples_left = TRACKERS_MAX_SAMPLES;
}

void
trackers_fini(struct trackers *t)
{
	struct expmap_entry *e;

	while ((e = expmap_first(&t->map)) != NULL)
		drop(t, e);
	expmap_fini(&t->map);
}

void
trackers_reap(struct trackers *t, int64_t now_ms)
{
	struct expmap_entry *e;

	while ((e = expmap_due(&t->map, now_ms)) != NULL)
		drop(t, e);
}

void
trackers_of_guards(const struct pdu_rate *rate, struct trackers_blocks *out)
{
	size_t i;

	out->count = rate->guard_count;
	for (i = 0; i < out->count; i++) {
		const struct pdu_guard *g = &rate->guards[i];

		out->ids[i] = g->id;
		out->defs[i] = (struct tracker_def){
		    g->ttl_ms, g->max_samples, g->buffer_size, g->min_samples};
	}
}

void
trackers_of_report(const struct pdu_report *report, struct trackers_blocks *out)
{
	size_t i;

	out->count = report->count;
	for (i = 0; i < out->count; i++) {
		const struct pdu_sample *p = &report->samples[i];

		out->ids[i] = p->id;
		out->defs[i] = (struct tracker_def){
		    p->ttl_ms, p->max_samples, p->buffer_size, p->min_samples};
	}
}

static bool
same_def(const struct tracker_def *a, const struct tracker_def *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Does block i agree with what is live, and with those before it? */
static bool
agrees(const struct trackers *t, const struct trackers_blocks *blocks, size_t i,
    uint32_t *fresh)
{
	const struct trackers_slot *slot;
	size_t k;

	slot =
	    (const struct trackers_slot *)expmap_find(&t->map, blocks->ids[i]);
	if (slot != NULL)
		return tracker_matches(&slot->tracker, &blocks->defs[i]);
	for (k = 0; k < i; k++)
		if (memcmp(blocks->ids[k], blocks->ids[i], ID_LEN) == 0)
			return same_def(&blocks->defs[k], &blocks->defs[i]);
	++*fresh;
	return true;
}

int
trackers_judge(const struct trackers *t, const struct trackers_blocks *blocks,
    uint32_t *fresh)
{
	size_t i;

	*fresh = 0;
	for (i = 0; i < blocks->count; i++)
		if (!agrees(t, blocks, i, fresh))
			return RLA_EMISMATCH;
	for (i = 0; i < blocks->count; i++)
		if (t->profile == PROFILE_V1 &&
		    blocks->defs[i].buffer_size > t->buffer)
			return RLA_EQUOTA;
	return 0;
}

static struct trackers_slot *
use_one(struct trackers *t, int64_t now_ms, const uint8_t id[ID_LEN],
    const struct tracker_def *def)
{
	struct expmap_entry *e = expmap_find(&t->map, id);
	struct trackers_slot *slot = (struct trackers_slot *)e;
	int64_t when = now_ms + def->ttl_ms;

	if (slot != NULL) {
		expmap_move(&t->map, e, when);
		return slot;
	}
	slot = malloc(sizeof(*slot));
	if (slot == NULL)
		return NULL;
	tracker_init(&slot->tracker, def,
	    t->profile == PROFILE_V1 ? def->buffer_size : t->buffer);
	if (expmap_insert(&t->map, &slot->entry, id, when) < 0) {
		free(slot);
		return NULL;
	}
	return slot;
}

int
trackers_use(struct trackers *t, int64_t now_ms,
    const struct trackers_blocks *blocks,
    struct trackers_slot *slots[TRACKERS_MAX_BLOCKS])
{
	size_t i;

	for (i = 0; i < blocks->count; i++) {
		slots[i] = use_one(t, now_ms, blocks->ids[i], &blocks->defs[i]);
		if (slots[i] == NULL)
			return RLA_ENOMEM;
	}
	return 0;
}
