/*
 * Chains from a table of hashes find a key, a heap finds the least count.
 * Counts are in units of the landmark's time, when one weighs 1; now it weighs
 * weight. So the order in the heap holds while time passes. Before weights grow
 * out of proportion the landmark moves, and all counts are divided by one power
 * of two, which keeps their order and loses nothing.
 *
 * Indices of slots are kept plus 1 in chains: all zero is an empty table, and
 * pages that hold no key yet are never written.
 */
#include "daemon/core/topk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/siphash.h"

/* Halves after which the landmark moves, and after which nothing is left. */
#define HALVES_MAX 32
#define HALVES_ALL 256

struct slot {
	double count;
	double error;
	uint32_t next;  /* of its chain, plus 1 */
	uint32_t place; /* in the heap */
	uint32_t hash;
	uint8_t len;
	uint8_t bytes[TOPK_KEY_MAX];
};

struct topk {
	uint32_t size;
	uint32_t used;
	uint32_t mask;
	uint64_t seed[2];
	int64_t landmark;
	int64_t until; /* weight is as it is */
	double weight;
	double total;
	uint32_t *chains; /* plus 1 */
	uint32_t *heap;   /* slots, the least count first */
	struct slot slots[];
};

/* 2^(i / TOPK_STEPS) */
static const double fractions[TOPK_STEPS] = {
    1.0,
    1.0352649238413776,
    1.0717734625362931,
    1.1095694720678451,
    1.1486983549970351,
    1.1892071150027210,
    1.2311444133449163,
    1.2745606273192622,
    1.3195079107728942,
    1.3660402567543954,
    1.4142135623730951,
    1.4640856959456254,
    1.5157165665103981,
    1.5691681957935015,
    1.6245047927124711,
    1.6817928305074290,
    1.7411011265922482,
    1.8025009252216604,
    1.8660659830736148,
    1.9318726578496910,
};

struct topk *
topk_new(uint32_t size, const uint64_t seed[2])
{
	struct topk *t;
	uint32_t chains = 1;

	assert(size > 0);
	while (chains < size)
		chains *= 2;
	t = calloc(1, sizeof(*t) + size * sizeof(*t->slots));
	if (t == NULL)
		return NULL;
	t->size = size;
	t->mask = chains - 1;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	t->weight = 1;
	t->until = TOPK_STEP_US;
	t->chains = calloc(chains, sizeof(*t->chains));
	t->heap = calloc(size, sizeof(*t->heap));
	if (t->chains != NULL && t->heap != NULL)
		return t;
	topk_free(t);
	return NULL;
}

void
topk_free(struct topk *t)
{
	if (t == NULL)
		return;
	free(t->chains);
	free(t->heap);
	free(t);
}

uint32_t
topk_size(const struct topk *t)
{
	return t->size;
}

static void
forget(struct topk *t)
{
	memset(t->chains, 0, (t->mask + 1) * sizeof(*t->chains));
	memset(t->slots, 0, t->used * sizeof(*t->slots));
	t->used = 0;
	t->total = 0;
}

static void
move_landmark(struct topk *t, int64_t halves)
{
	double by = 1;

	t->landmark += halves * TOPK_HALF_US;
	if (halves > HALVES_ALL) {
		forget(t);
		return;
	}
	while (halves-- > 0)
		by /= 2;
	for (uint32_t i = 0; i < t->used; i++) {
		t->slots[i].count *= by;
		t->slots[i].error *= by;
	}
	t->total *= by;
}

/* What one weighs now. Time that goes back stands still. */
static void
settle(struct topk *t, int64_t now)
{
	int64_t steps, halves;

	if (now < t->until)
		return;
	steps = (now - t->landmark) / TOPK_STEP_US;
	halves = steps / TOPK_STEPS;
	t->until = t->landmark + (steps + 1) * TOPK_STEP_US;
	if (halves >= HALVES_MAX) {
		move_landmark(t, halves);
		halves = 0;
	}
	t->weight = fractions[steps % TOPK_STEPS] *
		    (double)(UINT64_C(1) << (uint32_t)halves);
}

static uint32_t *
chain_of(struct topk *t, uint32_t hash)
{
	return &t->chains[hash & t->mask];
}

/* The slot of the key, plus 1; 0: none. */
static uint32_t
find(struct topk *t, uint32_t hash, const void *bytes, size_t len)
{
	const struct slot *s;
	uint32_t at = *chain_of(t, hash);

	for (; at != 0; at = s->next) {
		s = &t->slots[at - 1];
		if (s->hash == hash && s->len == len &&
		    (len == 0 || memcmp(s->bytes, bytes, len) == 0))
			break;
	}
	return at;
}

static void
unchain(struct topk *t, uint32_t slot)
{
	uint32_t *at = chain_of(t, t->slots[slot].hash);

	while (*at != slot + 1)
		at = &t->slots[*at - 1].next;
	*at = t->slots[slot].next;
}

static double
count_at(const struct topk *t, uint32_t place)
{
	return t->slots[t->heap[place]].count;
}

static void
put(struct topk *t, uint32_t place, uint32_t slot)
{
	t->heap[place] = slot;
	t->slots[slot].place = place;
}

static void
rise(struct topk *t, uint32_t place, uint32_t slot)
{
	uint32_t parent;

	while (place > 0) {
		parent = (place - 1) / 2;
		if (count_at(t, parent) <= t->slots[slot].count)
			break;
		put(t, place, t->heap[parent]);
		place = parent;
	}
	put(t, place, slot);
}

static void
sink(struct topk *t, uint32_t place, uint32_t slot)
{
	uint32_t child;

	while ((child = 2 * place + 1) < t->used) {
		if (child + 1 < t->used &&
		    count_at(t, child + 1) < count_at(t, child))
			child++;
		if (t->slots[slot].count <= count_at(t, child))
			break;
		put(t, place, t->heap[child]);
		place = child;
	}
	put(t, place, slot);
}

/* For a new key: a free one, or that of the least, with its count. */
static uint32_t
take_slot(struct topk *t)
{
	uint32_t slot;

	if (t->used < t->size) {
		put(t, t->used, t->used);
		return t->used++;
	}
	slot = t->heap[0];
	unchain(t, slot);
	t->slots[slot].error = t->slots[slot].count;
	return slot;
}

static uint32_t
take(struct topk *t, uint32_t hash, const void *bytes, size_t len)
{
	const uint32_t slot = take_slot(t);
	struct slot *s = &t->slots[slot];
	uint32_t *chain = chain_of(t, hash);

	/* Of the key before nothing stays. */
	memset(s->bytes, 0, sizeof(s->bytes));
	if (len > 0)
		memcpy(s->bytes, bytes, len);
	s->len = (uint8_t)len;
	s->hash = hash;
	s->next = *chain;
	*chain = slot + 1;
	return slot;
}

void
topk_add(struct topk *t, const void *bytes, size_t len, int64_t now)
{
	uint32_t hash, at, slot;

	assert(len <= TOPK_KEY_MAX);
	settle(t, now);
	hash = (uint32_t)siphash(t->seed, bytes, len);
	at = find(t, hash, bytes, len);
	slot = at != 0 ? at - 1 : take(t, hash, bytes, len);
	t->slots[slot].count += t->weight;
	t->total += t->weight;
	/* It grew, but a free one was 0 and may be less than those above. */
	rise(t, t->slots[slot].place, slot);
	sink(t, t->slots[slot].place, slot);
}

double
topk_total(struct topk *t, int64_t now)
{
	settle(t, now);
	return t->total / t->weight;
}

static int
compare(const void *a, const void *b)
{
	const struct topk_key *x = a, *y = b;
	const size_t least = x->len < y->len ? x->len : y->len;
	int rc;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	rc = memcmp(x->bytes, y->bytes, least);
	return rc != 0 ? rc : (x->len > y->len) - (x->len < y->len);
}

uint32_t
topk_list(struct topk *t, struct topk_key *out, int64_t now)
{
	const struct slot *s;

	settle(t, now);
	for (uint32_t i = 0; i < t->used; i++) {
		s = &t->slots[i];
		out[i] = (struct topk_key){
		    .bytes = s->bytes,
		    .len = s->len,
		    .count = s->count / t->weight,
		    .error = s->error / t->weight,
		};
	}
	qsort(out, t->used, sizeof(*out), compare);
	return t->used;
}
