/*
 * The expiring map: finds, moves and expiry against a plain array that is
 * searched from end to end.
 */
#include "sandbox/expmap.h"

#include <string.h>

#include "tests/unit/harness.h"

#define MANY  500
#define STEPS 20000

static void
make_key(uint32_t n, uint8_t key[EXPMAP_KEY_LEN])
{
	memset(key, 0, EXPMAP_KEY_LEN);
	memcpy(key, &n, sizeof n);
}

START_TEST(empty_map)
{
	struct expmap m;
	uint8_t key[EXPMAP_KEY_LEN] = {0};

	expmap_init(&m, 1);
	ck_assert_ptr_null(expmap_find(&m, key));
	ck_assert_ptr_null(expmap_first(&m));
	ck_assert_ptr_null(expmap_due(&m, INT64_MAX));
	expmap_fini(&m);
}
END_TEST

START_TEST(due_at_its_time_and_not_before)
{
	struct expmap m;
	struct expmap_entry e;
	uint8_t key[EXPMAP_KEY_LEN] = {7};

	expmap_init(&m, 1);
	ck_assert_int_eq(expmap_insert(&m, &e, key, 100), 0);
	ck_assert_ptr_null(expmap_due(&m, 99));
	ck_assert_ptr_eq(expmap_due(&m, 100), &e);
	ck_assert_ptr_eq(expmap_find(&m, key), &e);
	expmap_move(&m, &e, EXPMAP_NEVER);
	ck_assert_ptr_null(expmap_due(&m, EXPMAP_NEVER - 1));
	expmap_remove(&m, &e);
	ck_assert_ptr_null(expmap_find(&m, key));
	ck_assert_uint_eq(m.count, 0);
	expmap_fini(&m);
}
END_TEST

/* The whole key counts, its last byte too. */
START_TEST(keys_differ_in_any_byte)
{
	struct expmap m;
	struct expmap_entry entries[EXPMAP_KEY_LEN + 1];
	uint8_t key[EXPMAP_KEY_LEN];
	int i;

	expmap_init(&m, 99);
	for (i = 0; i <= EXPMAP_KEY_LEN; i++) {
		memset(key, 0, sizeof key);
		if (i < EXPMAP_KEY_LEN)
			key[i] = 1;
		ck_assert_ptr_null(expmap_find(&m, key));
		ck_assert_int_eq(expmap_insert(&m, &entries[i], key, i), 0);
		ck_assert_ptr_eq(expmap_find(&m, key), &entries[i]);
	}
	expmap_fini(&m);
}
END_TEST

struct model {
	struct expmap_entry entry;
	bool in;
	int64_t when;
};

static void
compare(const struct expmap *m, struct model *all)
{
	uint8_t key[EXPMAP_KEY_LEN];
	int64_t first = INT64_MAX;
	uint32_t i, count = 0;

	for (i = 0; i < MANY; i++) {
		make_key(i, key);
		ck_assert_ptr_eq(
		    expmap_find(m, key), all[i].in ? &all[i].entry : NULL);
		if (!all[i].in)
			continue;
		count++;
		if (all[i].when < first)
			first = all[i].when;
	}
	ck_assert_uint_eq(m->count, count);
	if (count > 0)
		ck_assert_int_eq(expmap_first(m)->when, first);
}

START_TEST(agrees_with_a_plain_array)
{
	static struct model all[MANY];
	uint64_t state = harness_seed();
	uint8_t key[EXPMAP_KEY_LEN];
	struct expmap m;
	int step;

	expmap_init(&m, state);
	for (step = 0; step < STEPS; step++) {
		struct model *it = &all[harness_below(&state, MANY)];
		int64_t when = harness_below(&state, 1000);

		make_key((uint32_t)(it - all), key);
		if (!it->in) {
			ck_assert_int_eq(
			    expmap_insert(&m, &it->entry, key, when), 0);
			it->in = true;
		} else if (harness_below(&state, 2) == 0) {
			expmap_remove(&m, &it->entry);
			it->in = false;
		} else {
			expmap_move(&m, &it->entry, when);
		}
		it->when = when;
		if (step % 500 == 0)
			compare(&m, all);
	}
	compare(&m, all);
	/* What is left comes out by its time. */
	for (int64_t last = 0; m.count > 0;) {
		struct expmap_entry *e = expmap_due(&m, INT64_MAX);

		ck_assert_int_ge(e->when, last);
		last = e->when;
		expmap_remove(&m, e);
	}
	expmap_fini(&m);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_expmap");
	TCase *tc = tcase_create("expmap");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, empty_map);
	tcase_add_test(tc, due_at_its_time_and_not_before);
	tcase_add_test(tc, keys_differ_in_any_byte);
	tcase_add_test(tc, agrees_with_a_plain_array);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
