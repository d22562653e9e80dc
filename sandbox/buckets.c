/*
 * A bucket expires when it will be full. One that was only asked, and not
 * consumed from, is due at once, so denials do not fill the map.
 */
#include "sandbox/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

static void
drop(struct buckets *b, struct expmap_entry *e)
{
	expmap_remove(&b->map, e);
	free(e); /* the entry is the first member */
}

void
buckets_init(struct buckets *b, uint64_t seed)
{
	expmap_init(&b->map, seed);
}

void
buckets_fini(struct buckets *b)
{
	struct expmap_entry *e;

	while ((e = expmap_first(&b->map)) != NULL)
		drop(b, e);
	expmap_fini(&b->map);
}

void
buckets_reap(struct buckets *b, int64_t now_ms)
{
	struct expmap_entry *e;

	while ((e = expmap_due(&b->map, now_ms)) != NULL)
		drop(b, e);
}

/* The first resource of the same bucket, at index i at the latest. */
static size_t
first_of(const struct pdu_rate *rate, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (memcmp(rate->resources[k].id, rate->resources[i].id,
			ID_LEN) == 0)
			break;
	return k;
}

static int
judge_one(const struct buckets *b, const struct pdu_rate *rate, size_t i,
    uint32_t *fresh)
{
	const struct pdu_resource *r = &rate->resources[i], *first;
	const struct buckets_slot *slot;

	if (r->tokens == 0 || r->limit == 0 || r->window_ms == 0)
		return RLA_EMALFORMED;
	slot = (const struct buckets_slot *)expmap_find(&b->map, r->id);
	if (slot != NULL)
		return bucket_matches(&slot->bucket, r->window_ms, r->limit)
			   ? 0
			   : RLA_EMISMATCH;
	first = &rate->resources[first_of(rate, i)];
	if (first == r)
		++*fresh;
	return first->window_ms == r->window_ms && first->limit == r->limit
		   ? 0
		   : RLA_EMISMATCH;
}

int
buckets_judge(
    const struct buckets *b, const struct pdu_rate *rate, uint32_t *fresh)
{
	size_t i;
	int rc = 0;

	*fresh = 0;
	for (i = 0; i < rate->resource_count && rc == 0; i++)
		rc = judge_one(b, rate, i, fresh);
	return rc;
}

static struct buckets_slot *
use_one(struct buckets *b, int64_t now_ms, const struct pdu_resource *r)
{
	struct buckets_slot *slot;

	slot = (struct buckets_slot *)expmap_find(&b->map, r->id);
	if (slot != NULL)
		return slot;
	slot = malloc(sizeof(*slot));
	if (slot == NULL)
		return NULL;
	bucket_init(&slot->bucket, r->window_ms, r->limit, now_ms);
	if (expmap_insert(&b->map, &slot->entry, r->id, now_ms) < 0) {
		free(slot);
		return NULL;
	}
	return slot;
}

int
buckets_use(struct buckets *b, int64_t now_ms, const struct pdu_rate *rate,
    struct buckets_slot *slots[PDU_MAX_RESOURCES])
{
	size_t i;

	for (i = 0; i < rate->resource_count; i++) {
		slots[i] = use_one(b, now_ms, &rate->resources[i]);
		if (slots[i] == NULL)
			return RLA_ENOMEM;
		slots[i]->pending = 0;
	}
	return 0;
}

bool
buckets_ask(struct buckets_slot *const *slots, int64_t now_ms,
    struct pdu_rate *response)
{
	bool failed = false;
	size_t i;

	for (i = 0; i < response->resource_count; i++) {
		struct pdu_resource *r = &response->resources[i];
		struct buckets_slot *slot = slots[i];
		uint64_t missing = 0;
		uint32_t there;

		bucket_refill(&slot->bucket, now_ms);
		there = bucket_available(&slot->bucket);
		slot->pending += r->tokens;
		if (slot->pending > there)
			missing = slot->pending - there;
		r->tokens =
		    (uint16_t)(missing < UINT16_MAX ? missing : UINT16_MAX);
		failed = failed || missing > 0;
	}
	return failed;
}

void
buckets_consume(
    struct buckets *b, struct buckets_slot *const *slots, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct buckets_slot *slot = slots[i];

		bucket_take(&slot->bucket, slot->pending);
		slot->pending = 0; /* a later resource may have it again */
		expmap_move(
		    &b->map, &slot->entry, bucket_full_at(&slot->bucket));
	}
}
