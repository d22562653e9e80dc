/*
 * Linear hashing with chains: a new instance adds one bucket and splits
 * another, so no single call moves the whole table. Each instance is in one of
 * two heaps: the busy ones by the time at which that is over, the others by
 * their last use, which is counted, as many happen in one microsecond. Both
 * heaps and the buckets have room for every instance before it is made:
 * nothing fails afterwards.
 */
#include "daemon/core/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/container.h"
#include "daemon/core/heap.h"
#include "daemon/core/siphash.h"
#include "daemon/core/slab.h"

#define ALIGN 16
/* The most that one call makes idle, and that it evicts, for others. */
#define BATCH       16
#define BUCKETS_MIN 64

struct entry {
	struct entry *next; /* of its bucket */
	uint64_t hash;
	int64_t used;         /* which use was its last */
	struct heap_entry at; /* of registry.busy when busy, else .idle */
	bool busy;
	uint8_t length; /* class of its slot */
	uint16_t key_len;
	_Alignas(ALIGN) unsigned char bytes[]; /* the instance, then the key */
};

/* Slots by the room they have for a key. */
static const struct {
	size_t key_max;
	uint32_t per_chunk;
} lengths[] = {{32, 64}, {256, 32}, {REGISTRY_KEY_MAX, 16}};
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

struct registry {
	size_t size; /* of an instance */
	uint32_t cap;
	uint32_t count;
	uint64_t seed[2];
	uint64_t evictions;
	int64_t now;  /* the latest that was told */
	int64_t uses; /* so far */
	struct heap busy;
	struct heap idle;
	struct slab slabs[LENGTHS];
	struct entry **buckets;
	uint32_t bucket_count;
	uint32_t bucket_room;
	uint64_t mask; /* the smallest 2^n - 1 that no bucket is beyond */
};

static int
reserve_buckets(struct registry *r, uint32_t count)
{
	struct entry **buckets;
	uint32_t room = r->bucket_room > 0 ? r->bucket_room : BUCKETS_MIN;

	if (count <= r->bucket_room)
		return 0;
	while (room < count)
		room *= 2;
	buckets = realloc(r->buckets, room * sizeof(*buckets));
	if (buckets == NULL)
		return -1;
	r->buckets = buckets;
	r->bucket_room = room;
	if (r->bucket_count == 0)
		r->buckets[r->bucket_count++] = NULL;
	return 0;
}

struct registry *
registry_new(size_t size, uint32_t cap, const uint64_t seed[2])
{
	struct registry *r = calloc(1, sizeof(*r));

	assert(size > 0 && cap > 0);
	if (r == NULL)
		return NULL;
	r->size = size;
	r->cap = cap;
	r->seed[0] = seed[0];
	r->seed[1] = seed[1];
	r->now = INT64_MIN;
	heap_init(&r->busy);
	heap_init(&r->idle);
	for (size_t i = 0; i < LENGTHS; i++)
		slab_init(&r->slabs[i],
		    sizeof(struct entry) + size + lengths[i].key_max,
		    lengths[i].per_chunk, UINT32_MAX);
	return r;
}

void
registry_free(struct registry *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < LENGTHS; i++)
		slab_fini(&r->slabs[i]);
	heap_fini(&r->busy);
	heap_fini(&r->idle);
	free(r->buckets);
	free(r);
}

void
registry_set_cap(struct registry *r, uint32_t cap)
{
	assert(cap > 0);
	r->cap = cap;
}

static struct entry *
entry_of(void *instance)
{
	return container_of(instance, struct entry, bytes);
}

static struct entry **
bucket(const struct registry *r, uint64_t hash)
{
	uint64_t i = hash & r->mask;

	/* Not there yet: still in the one that it will be split from. */
	if (i >= r->bucket_count)
		i &= r->mask >> 1;
	return &r->buckets[i];
}

static void
unlink_entry(struct registry *r, const struct entry *e)
{
	struct entry **at = bucket(r, e->hash);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
}

/* One more bucket, with what is its own of the one that it splits. */
static void
add_bucket(struct registry *r)
{
	const uint32_t fresh = r->bucket_count;
	struct entry **from, **to, *e;

	assert(fresh < r->bucket_room);
	if (fresh > r->mask)
		r->mask = r->mask * 2 + 1;
	from = &r->buckets[fresh & r->mask >> 1];
	to = &r->buckets[fresh];
	while ((e = *from) != NULL) {
		if ((e->hash & r->mask) == fresh) {
			*from = e->next;
			*to = e;
			to = &e->next;
		} else {
			from = &e->next;
		}
	}
	*to = NULL;
	r->bucket_count++;
}

static struct entry *
find(const struct registry *r, const void *key, size_t len, uint64_t hash)
{
	struct entry *e;

	if (r->count == 0)
		return NULL;
	for (e = *bucket(r, hash); e != NULL; e = e->next) {
		if (e->hash == hash && e->key_len == len &&
		    (len == 0 || memcmp(e->bytes + r->size, key, len) == 0))
			break;
	}
	return e;
}

/* A heap that has room for every entry. */
static void
place(struct heap *h, struct entry *e, int64_t when)
{
	int rc = heap_set(h, &e->at, when);

	assert(rc == 0);
	(void)rc;
}

static void
make_idle(struct registry *r, struct entry *e)
{
	heap_remove(&r->busy, &e->at);
	e->busy = false;
	place(&r->idle, e, e->used);
}

/* Those that are not busy any more, the first ones first. Every call makes at
 * most one busy, so this falls behind only when many end in one silence. */
static void
settle(struct registry *r)
{
	struct heap_entry *first;

	for (int n = 0; n < BATCH; n++) {
		first = heap_first(&r->busy);
		if (first == NULL || first->when > r->now)
			break;
		make_idle(r, container_of(first, struct entry, at));
	}
}

static void
evict(struct registry *r, struct entry *e)
{
	heap_remove(&r->idle, &e->at);
	unlink_entry(r, e);
	slab_put(&r->slabs[e->length], e);
	r->count--;
	r->evictions++;
}

/* For one more. Over a cap that became smaller, more go than come. */
static bool
make_room(struct registry *r)
{
	struct heap_entry *first;
	int n;

	for (n = 0; r->count >= r->cap && n < BATCH; n++) {
		first = heap_first(&r->idle);
		if (first == NULL)
			break;
		evict(r, container_of(first, struct entry, at));
	}
	return r->count < r->cap || n > 1;
}

static int
reserve(struct registry *r)
{
	const uint32_t count = r->count < r->cap ? r->count + 1 : r->count;

	if (heap_reserve(&r->busy, count) != 0 ||
	    heap_reserve(&r->idle, count) != 0)
		return -1;
	return reserve_buckets(r, count);
}

static struct entry *
make(struct registry *r, const void *key, size_t len, uint64_t hash)
{
	struct entry *e, **at;
	uint8_t length = 0;

	while (lengths[length].key_max < len)
		length++;
	if (reserve(r) != 0 || !make_room(r))
		return NULL;
	e = slab_get(&r->slabs[length]);
	if (e == NULL)
		return NULL;
	*e = (struct entry){
	    .hash = hash, .length = length, .key_len = (uint16_t)len};
	heap_entry_init(&e->at);
	memset(e->bytes, 0, r->size);
	if (len > 0)
		memcpy(e->bytes + r->size, key, len);
	if (r->count++ >= r->bucket_count)
		add_bucket(r);
	at = bucket(r, hash);
	e->next = *at;
	*at = e;
	return e;
}

void *
registry_get(
    struct registry *r, const void *key, size_t len, int64_t now, bool *fresh)
{
	const uint64_t hash = siphash(r->seed, key, len);
	struct entry *e;

	assert(len <= REGISTRY_KEY_MAX);
	if (now > r->now)
		r->now = now;
	settle(r);
	e = find(r, key, len, hash);
	*fresh = e == NULL;
	if (e == NULL)
		e = make(r, key, len, hash);
	if (e == NULL)
		return NULL;
	e->used = ++r->uses;
	if (!e->busy)
		place(&r->idle, e, e->used);
	return e->bytes;
}

void *
registry_find(const struct registry *r, const void *key, size_t len)
{
	struct entry *e = find(r, key, len, siphash(r->seed, key, len));

	return e != NULL ? e->bytes : NULL;
}

void
registry_busy(struct registry *r, void *instance, int64_t until)
{
	struct entry *e = entry_of(instance);

	if (until > r->now) {
		if (!e->busy)
			heap_remove(&r->idle, &e->at);
		e->busy = true;
		place(&r->busy, e, until);
	} else if (e->busy) {
		make_idle(r, e);
	}
}

uint32_t
registry_count(const struct registry *r)
{
	return r->count;
}

uint64_t
registry_evictions(const struct registry *r)
{
	return r->evictions;
}
