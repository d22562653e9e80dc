/*
 * The in-flight table: what was inserted is found until it is removed,
 * through growth, long probe runs around the end of the array, and deletions
 * in their middle.
 */
#include "daemon/core/table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/core/siphash.h"
#include "tests/unit/harness.h"

#define MANY 2000

static uint64_t seed;
static uint64_t state;
static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static struct table_entry entries[MANY];
static bool in[MANY];

static uint32_t
pick(uint32_t bound)
{
	return harness_below(&state, bound);
}

static void
setup(void)
{
	uint32_t n;

	state = seed;
	memset(in, 0, sizeof(in));
	for (uint32_t i = 0; i < MANY; i++) {
		memset(entries[i].key, 0, TABLE_KEY_LEN);
		n = i; /* close together, as a peer might choose them */
		memcpy(entries[i].key + i % 13, &n, sizeof(n));
		entries[i].key[15] = (uint8_t)(i % 13);
	}
}

/* No hole between an entry's own probe path and the entry. */
static void
check_all_found(struct table *t)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		const struct table_entry *e = table_find(t, entries[i].key);

		if (in[i])
			ck_assert_ptr_eq(e, &entries[i]);
		else
			ck_assert_ptr_null(e);
		count += in[i];
	}
	ck_assert_uint_eq(t->count, count);
}

START_TEST(empty_finds_nothing)
{
	struct table t;

	table_init(&t, secret);
	ck_assert_ptr_null(table_find(&t, entries[0].key));
	ck_assert_int_eq(table_insert(&t, &entries[0]), 0);
	table_remove(&t, &entries[0]);
	ck_assert_ptr_null(table_find(&t, entries[0].key));
	table_fini(&t);
}
END_TEST

START_TEST(every_key_byte_counts)
{
	struct table t;
	struct table_entry e[TABLE_KEY_LEN];
	uint8_t other[TABLE_KEY_LEN] = {0};

	table_init(&t, secret);
	memset(e, 0, sizeof(e));
	for (int i = 0; i < TABLE_KEY_LEN; i++) {
		e[i].key[i] = 1;
		ck_assert_int_eq(table_insert(&t, &e[i]), 0);
	}
	for (int i = 0; i < TABLE_KEY_LEN; i++)
		ck_assert_ptr_eq(table_find(&t, e[i].key), &e[i]);
	ck_assert_ptr_null(table_find(&t, other));
	table_fini(&t);
}
END_TEST

START_TEST(stays_at_most_three_quarters_full)
{
	struct table t;

	table_init(&t, secret);
	for (uint32_t i = 0; i < MANY; i++) {
		ck_assert_int_eq(table_insert(&t, &entries[i]), 0);
		in[i] = true;
		ck_assert_uint_le(t.count, t.cap / 4 * 3);
		ck_assert_uint_eq(t.cap & (t.cap - 1), 0);
	}
	check_all_found(&t);
	table_fini(&t);
}
END_TEST

/* Having held that many once, it holds them again without an allocation. */
START_TEST(what_it_held_it_has_room_for)
{
	struct table t;
	const struct table_slot *slots;

	table_init(&t, secret);
	for (uint32_t i = 0; i < MANY; i++)
		ck_assert_int_eq(table_insert(&t, &entries[i]), 0);
	slots = t.slots;
	for (uint32_t i = 0; i < MANY; i++)
		table_remove(&t, &entries[i]);
	for (uint32_t i = 0; i < MANY; i++)
		ck_assert_int_eq(table_insert(&t, &entries[i]), 0);
	ck_assert_ptr_eq(t.slots, slots);
	table_fini(&t);
}
END_TEST

/* At half full, runs are long and wrap; removals hit them anywhere. */
START_TEST(random_churn_loses_nothing)
{
	struct table t;
	uint32_t i;

	table_init(&t, secret);
	for (int turn = 0; turn < 100000; turn++) {
		/* Few at first, so that the array is small and crowded. */
		i = pick(turn < 50000 ? 40 : MANY);
		if (in[i])
			table_remove(&t, &entries[i]);
		else
			ck_assert_int_eq(table_insert(&t, &entries[i]), 0);
		in[i] = !in[i];
		if (turn % 500 == 0 || (turn < 4000 && turn % 10 == 0))
			check_all_found(&t);
	}
	check_all_found(&t);
	table_fini(&t);
}
END_TEST

/* The order of the slots depends on the seed, or the seed is of no use. */
START_TEST(the_seed_moves_the_entries)
{
	static const uint64_t other[2] = {
	    0x0706050403020101, 0x0f0e0d0c0b0a0908};
	struct table a, b;
	uint32_t moved = 0;

	table_init(&a, secret);
	table_init(&b, other);
	for (uint32_t i = 0; i < MANY; i++) {
		table_insert(&a, &entries[i]);
		table_insert(&b, &entries[i]);
	}
	for (uint32_t i = 0; i < a.cap; i++)
		moved += a.slots[i].hash != 0 &&
			 a.slots[i].entry != b.slots[i].entry;
	ck_assert_uint_gt(moved, MANY * 9 / 10);
	table_fini(&a);
	table_fini(&b);
}
END_TEST

/* Chosen-looking keys spread like random ones: probe runs stay short. */
START_TEST(close_keys_do_not_cluster)
{
	struct table t;
	uint32_t run = 0, longest = 0;

	table_init(&t, secret);
	for (uint32_t i = 0; i < MANY; i++)
		table_insert(&t, &entries[i]);
	for (uint32_t i = 0; i < t.cap; i++) {
		run = t.slots[i].hash != 0 ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	ck_assert_uint_lt(longest, 64);
	table_fini(&t);
}
END_TEST

/*
 * Only what has the hash that is wanted is looked at. With all others made to
 * look like the one that is searched for, it is found still, though its run
 * holds others, others are removed, and the table grows.
 */
START_TEST(others_are_not_looked_at)
{
	uint8_t key[TABLE_KEY_LEN];
	struct table t;
	uint32_t cap;

	table_init(&t, secret);
	for (uint32_t i = 0; i < MANY - 1; i++)
		table_insert(&t, &entries[i]);
	cap = t.cap;
	memcpy(key, entries[_i].key, sizeof(key));
	for (uint32_t i = 0; i < MANY; i++)
		memcpy(entries[i].key, key, sizeof(key));
	ck_assert_ptr_eq(table_find(&t, key), &entries[_i]);
	for (uint32_t i = 0; i < MANY - 1; i++) {
		if ((int)i == _i)
			continue;
		table_remove(&t, &entries[i]);
		ck_assert_ptr_eq(table_find(&t, key), &entries[_i]);
	}
	ck_assert_uint_eq(t.count, 1);
	ck_assert_uint_eq(t.cap, cap);
	table_fini(&t);
}
END_TEST

START_TEST(growing_looks_at_no_entry)
{
	static struct table_entry more[MANY];
	uint8_t keys[100][TABLE_KEY_LEN];
	struct table t;
	uint32_t cap;

	table_init(&t, secret);
	for (uint32_t i = 0; i < 100; i++) {
		table_insert(&t, &entries[i]);
		memcpy(keys[i], entries[i].key, TABLE_KEY_LEN);
		memset(entries[i].key, 0xee, TABLE_KEY_LEN);
	}
	cap = t.cap;
	for (uint32_t i = 0; i < MANY; i++) {
		memset(more[i].key, 0xdd, TABLE_KEY_LEN);
		memcpy(more[i].key, &i, sizeof(i));
		ck_assert_int_eq(table_insert(&t, &more[i]), 0);
	}
	ck_assert_uint_gt(t.cap, cap);
	for (uint32_t i = 0; i < 100; i++) {
		memcpy(entries[i].key, keys[i], TABLE_KEY_LEN);
		ck_assert_ptr_eq(table_find(&t, keys[i]), &entries[i]);
	}
	table_fini(&t);
}
END_TEST

/* The hash of the key that was asked for last serves that key alone. */
START_TEST(asks_for_one_and_inserts_another)
{
	struct table t;

	table_init(&t, secret);
	for (uint32_t i = 0; i + 1 < MANY; i++) {
		ck_assert_ptr_null(table_find(&t, entries[i + 1].key));
		ck_assert_int_eq(table_insert(&t, &entries[i]), 0);
		in[i] = true;
		ck_assert_ptr_eq(table_find(&t, entries[i].key), &entries[i]);
		ck_assert_ptr_null(table_find(&t, entries[i + 1].key));
	}
	check_all_found(&t);
	table_fini(&t);
}
END_TEST

/* A key that is looked for, inserted and removed is hashed once. */
START_TEST(hashes_once)
{
	struct table t;
	uint32_t hash =
	    (uint32_t)siphash(secret, entries[1].key, TABLE_KEY_LEN);

	table_init(&t, secret);
	table_insert(&t, &entries[0]);
	ck_assert_ptr_null(table_find(&t, entries[1].key));
	t.seed[0] = t.seed[1] = 0; /* from here on hashes would be wrong */
	table_insert(&t, &entries[1]);
	ck_assert_uint_eq(entries[1].hash << 1, hash << 1);
	ck_assert_ptr_eq(table_find(&t, entries[1].key), &entries[1]);
	table_remove(&t, &entries[0]);
	table_remove(&t, &entries[1]);
	ck_assert_uint_eq(t.count, 0);
	table_fini(&t);
}
END_TEST

/* The low half of this key's hash is 0, which must not look like no entry. */
START_TEST(a_hash_of_zero)
{
	struct table t;
	struct table_entry e = {.key = {0x88, 0x95, 0xd1, 0x4f}};

	ck_assert_uint_eq((uint32_t)siphash(secret, e.key, TABLE_KEY_LEN), 0);
	table_init(&t, secret);
	ck_assert_int_eq(table_insert(&t, &e), 0);
	ck_assert_ptr_eq(table_find(&t, e.key), &e);
	table_remove(&t, &e);
	ck_assert_ptr_null(table_find(&t, e.key));
	table_fini(&t);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("table");
	TCase *tc = tcase_create("table");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, empty_finds_nothing);
	tcase_add_test(tc, every_key_byte_counts);
	tcase_add_test(tc, stays_at_most_three_quarters_full);
	tcase_add_test(tc, what_it_held_it_has_room_for);
	tcase_add_test(tc, random_churn_loses_nothing);
	tcase_add_test(tc, the_seed_moves_the_entries);
	tcase_add_test(tc, close_keys_do_not_cluster);
	tcase_add_loop_test(tc, others_are_not_looked_at, 700, 710);
	tcase_add_test(tc, growing_looks_at_no_entry);
	tcase_add_test(tc, asks_for_one_and_inserts_another);
	tcase_add_test(tc, hashes_once);
	tcase_add_test(tc, a_hash_of_zero);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
