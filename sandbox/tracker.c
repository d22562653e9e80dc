/*
 * The ring starts small and doubles up to its cap, since most trackers see
 * far fewer samples than their buffer holds.
 */
#include "sandbox/tracker.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 8

/* The i-th sample, the oldest being 0. */
static struct tracker_sample *
sample_at(const struct tracker *t, uint32_t i)
{
	return &t->ring[(t->oldest + i) % t->size];
}

static void
expire(struct tracker *t, int64_t now_ms)
{
	while (
	    t->count > 0 && now_ms - sample_at(t, 0)->at_ms >= t->def.ttl_ms) {
		t->oldest = (t->oldest + 1) % t->size;
		t->count--;
	}
}

static void
grow(struct tracker *t, uint32_t *budget)
{
	uint32_t size = t->size > 0 ? t->size * 2 : FIRST_SIZE;
	struct tracker_sample *ring;
	uint32_t i;

	if (size > t->cap)
		size = t->cap;
	if (size == t->size || size - t->size > *budget)
		return;
	ring = calloc(size, sizeof(*ring));
	if (ring == NULL)
		return;
	for (i = 0; i < t->count; i++)
		ring[i] = *sample_at(t, i);
	free(t->ring);
	*budget -= size - t->size;
	t->ring = ring;
	t->size = size;
	t->oldest = 0;
}

void
tracker_init(struct tracker *t, const struct tracker_def *def, uint32_t cap)
{
	memset(t, 0, sizeof(*t));
	t->def = *def;
	t->cap = cap < TRACKER_RING_MAX ? cap : TRACKER_RING_MAX;
}

void
tracker_fini(struct tracker *t, uint32_t *budget)
{
	*budget += t->size;
	free(t->ring);
	memset(t, 0, sizeof(*t));
}

bool
tracker_matches(const struct tracker *t, const struct tracker_def *def)
{
	return t->def.ttl_ms == def->ttl_ms &&
	       t->def.max_samples == def->max_samples &&
	       t->def.buffer_size == def->buffer_size &&
	       t->def.min_samples == def->min_samples;
}

void
tracker_add(struct tracker *t, int64_t now_ms, uint32_t ms, uint32_t *budget)
{
	expire(t, now_ms);
	if (t->count == t->size)
		grow(t, budget);
	if (t->size == 0)
		return;
	if (t->count == t->size) {
		t->oldest = (t->oldest + 1) % t->size;
		t->count--;
	}
	*sample_at(t, t->count) = (struct tracker_sample){now_ms, ms};
	t->count++;
}

uint32_t
tracker_latency(struct tracker *t, int64_t now_ms)
{
	uint64_t sum = 0;
	uint32_t used, i;

	expire(t, now_ms);
	if (t->count == 0 || t->count < t->def.min_samples)
		return 0;
	used = t->count < t->def.max_samples ? t->count : t->def.max_samples;
	if (used == 0)
		return 0;
	for (i = t->count - used; i < t->count; i++)
		sum += sample_at(t, i)->ms;
	return (uint32_t)(sum / used);
}
