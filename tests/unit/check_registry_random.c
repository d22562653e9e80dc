/*
 * Instances by key, at random, against a plain list that is searched from end
 * to end.
 */
#include "daemon/core/registry.h"

#include <string.h>

#include "tests/unit/harness.h"

#define POOL  300 /* keys there may be */
#define BATCH 16  /* in registry.h, in words */

/* What the tests keep as an instance. */
struct thing {
	uint64_t number;
	char rest[24];
};

static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static uint64_t seed;
static uint64_t state;

static struct registry *r;
static int64_t now;
static bool fresh;

static struct {
	bool in, busy;
	int64_t until; /* no two alike */
	uint64_t used;
	uint64_t number; /* what its instance holds */
	uint8_t key[REGISTRY_KEY_MAX];
	size_t len;
} model[POOL];
static uint32_t model_count, model_cap;
static uint64_t model_evictions, model_uses;
static int64_t latest;

static uint32_t
pick(uint32_t bound)
{
	return harness_below(&state, bound);
}

static void
model_open(uint32_t cap)
{
	static const size_t lens[] = {3, 31, 32, 33, 255, 256, 257, 700, 1024};

	memset(model, 0, sizeof(model));
	for (uint32_t i = 0; i < POOL; i++) {
		/* Alike but for their number, somewhere in them. */
		const uint8_t mark[3] = {0xff, (uint8_t)i, (uint8_t)(i >> 8)};
		const size_t len = lens[i % 9];

		memcpy(model[i].key + pick((uint32_t)len - 2), mark, 3);
		model[i].len = len;
	}
	model_count = 0;
	model_cap = cap;
	model_evictions = model_uses = 0;
	latest = now = 0;
	r = registry_new(sizeof(struct thing), cap, secret);
	ck_assert_ptr_nonnull(r);
}

static void
model_settle(void)
{
	uint32_t i, best;

	for (int n = 0; n < BATCH; n++) {
		best = POOL;
		for (i = 0; i < POOL; i++) {
			if (model[i].in && model[i].busy &&
			    model[i].until <= latest &&
			    (best == POOL ||
				model[i].until < model[best].until))
				best = i;
		}
		if (best == POOL)
			break;
		model[best].busy = false;
	}
}

static bool
model_evict(void)
{
	uint32_t i, best = POOL;

	for (i = 0; i < POOL; i++) {
		if (model[i].in && !model[i].busy &&
		    (best == POOL || model[i].used < model[best].used))
			best = i;
	}
	if (best == POOL)
		return false;
	model[best].in = false;
	model_count--;
	model_evictions++;
	return true;
}

static bool
model_room(void)
{
	int n = 0;

	while (model_count >= model_cap && n < BATCH && model_evict())
		n++;
	return model_count < model_cap || n > 1;
}

static void
both_get(uint32_t i)
{
	/* Some tell an earlier time than others did before. */
	const int64_t told = pick(8) == 0 ? now - 50 * POOL : now;
	struct thing *t =
	    registry_get(r, model[i].key, model[i].len, told, &fresh);
	int64_t until;

	if (told > latest)
		latest = told;
	model_settle();
	ck_assert_int_eq(fresh, !model[i].in);
	if (!model[i].in && !model_room()) {
		ck_assert_ptr_null(t);
		return;
	}
	ck_assert_ptr_nonnull(t);
	if (!model[i].in) {
		model_count++;
		model[i].in = true;
		model[i].busy = false;
		model[i].number = 0;
	}
	ck_assert_uint_eq(t->number, model[i].number);
	t->number = model[i].number = harness_random(&state);
	memset(t->rest, 0xff, sizeof(t->rest)); /* all of it is its own */
	model[i].used = ++model_uses;
	if (pick(3) == 0)
		return;
	until = now + ((int64_t)pick(3000) - 500) * POOL + i;
	registry_busy(r, t, until);
	model[i].busy = until > latest;
	model[i].until = until;
}

static void
both_agree(void)
{
	const struct thing *t;
	uint32_t wrong = 0;

	ck_assert_uint_eq(registry_count(r), model_count);
	ck_assert_uint_eq(registry_evictions(r), model_evictions);
	for (uint32_t i = 0; i < POOL; i++) {
		t = registry_find(r, model[i].key, model[i].len);
		wrong += (t != NULL) != model[i].in ||
			 (t != NULL && t->number != model[i].number);
	}
	ck_assert_uint_eq(wrong, 0);
}

static const uint32_t caps[] = {1, 2, 17, 100, POOL};

START_TEST(random_uses_agree_with_a_search)
{
	state = seed + (uint64_t)_i;
	model_open(caps[_i]);
	for (uint32_t turn = 0; turn < 2000; turn++) {
		/* Some keys more often; bursts, and silences between them. */
		both_get(pick(2) == 0 ? pick(POOL) : pick(POOL / 10));
		if (pick(4) == 0)
			now += POOL * (pick(40) == 0 ? 4000 : pick(60));
		if (pick(200) == 0) {
			model_cap = 1 + pick(POOL);
			registry_set_cap(r, model_cap);
		}
		if (turn % 50 == 0)
			both_agree();
	}
	both_agree();
	registry_free(r);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("registry_random");
	TCase *tc = tcase_create("registry_random");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, random_uses_agree_with_a_search, 0,
	    sizeof(caps) / sizeof(*caps));
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
