/*
 * Remembered ids: always what a fresh hash gives, whatever was remembered
 * before, and hashed once only while there is room.
 */
#include "daemon/rules_ids.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"

#define LONGEST 255 /* of a name that is filled in */
#define KEPT    94  /* of a name that is remembered */

static struct rules_ids *ids;
static struct id_hash *hash;

static void
set_up(void)
{
	ids = rules_ids_new();
	hash = id_hash_new();
	ck_assert(ids != NULL && hash != NULL);
}

static void
tear_down(void)
{
	rules_ids_free(ids);
	rules_ids_free(NULL);
	id_hash_free(hash);
}

static struct ipc_str
str(const void *bytes, size_t len)
{
	return (struct ipc_str){bytes, (uint16_t)len};
}

static void
check_bucket(struct ipc_str name, uint32_t window_ms, uint32_t limit)
{
	uint8_t id[ID_LEN], want[ID_LEN];

	if (rules_ids_bucket(ids, window_ms, limit, &name, id) != 0 ||
	    id_bucket(hash, name.bytes, name.len, window_ms, limit, want) !=
		0 ||
	    memcmp(id, want, ID_LEN) != 0)
		ck_abort_msg(
		    "bucket of %u bytes, %u, %u", name.len, window_ms, limit);
}

static void
check_tracker(
    struct ipc_str name, enum profile profile, const struct rules_tracker *t)
{
	uint8_t id[ID_LEN], want[ID_LEN];

	if (rules_ids_tracker(ids, profile, t, &name, id) != 0 ||
	    id_tracker(hash, profile, name.bytes, name.len, t->ttl_ms,
		t->max_samples, t->buffer_size, t->min_samples, want) != 0 ||
	    memcmp(id, want, ID_LEN) != 0)
		ck_abort_msg(
		    "tracker of %u bytes, profile %d", name.len, (int)profile);
}

static uint64_t
hashed_since(uint64_t before)
{
	return rules_ids_hashed(ids) - before;
}

START_TEST(test_once)
{
	const struct rules_tracker t = {4, 3, 2, 1};
	const struct ipc_str name = str("checkout:alice", 14);
	uint64_t before;
	int i;

	for (i = 0; i < 100; i++) {
		check_bucket(name, 1000, 100);
		check_tracker(name, PROFILE_V1, &t);
		check_tracker(name, PROFILE_V2, &t);
	}
	/* Once in a thousand runs two of them fall on one slot. */
	ck_assert_uint_ge(rules_ids_hashed(ids), 3);
	before = rules_ids_hashed(ids);
	for (i = 0; i < 100; i++)
		check_bucket(name, 1000, 100);
	ck_assert_uint_le(hashed_since(before), 1);
}
END_TEST

/* One name, each setting changed in turn, and swapped. */
START_TEST(test_settings_do_not_mix)
{
	const struct ipc_str name = str("name", 4);
	const struct rules_tracker base = {1000, 100, 7, 9};
	struct rules_tracker t;
	int round;

	for (round = 0; round < 2; round++) {
		check_bucket(name, 1000, 100);
		check_bucket(name, 100, 1000);
		check_bucket(name, 1001, 100);
		check_bucket(name, 1000, 101);
		check_tracker(name, PROFILE_V1, &base);
		check_tracker(name, PROFILE_V2, &base);
		t = base;
		t.buffer_size = 8;
		check_tracker(name, PROFILE_V1, &t);
		check_tracker(name, PROFILE_V2, &t);
		t = base;
		t.min_samples = 7;
		check_tracker(name, PROFILE_V1, &t);
		check_tracker(name, PROFILE_V2, &t);
		/* What a bucket of the same numbers would be. */
		t = (struct rules_tracker){1000, 100, 0, 0};
		check_tracker(name, PROFILE_V1, &t);
		check_tracker(name, PROFILE_V2, &t);
	}
}
END_TEST

/* A prefix, NUL bytes, and names that differ in their last byte only. */
START_TEST(test_names_do_not_mix)
{
	uint8_t name[LONGEST];
	size_t len;
	int round;

	memset(name, 'n', sizeof(name));
	for (round = 0; round < 2; round++) {
		for (len = 0; len <= LONGEST; len++) {
			check_bucket(str(name, len), 1, 1);
			if (len == 0)
				continue;
			name[len - 1] = '\0';
			check_bucket(str(name, len), 1, 1);
			name[len - 1] = 'n';
		}
	}
}
END_TEST

START_TEST(test_long_names_are_hashed)
{
	uint8_t name[LONGEST] = {'x'};
	uint64_t before;

	check_bucket(str(name, KEPT), 1, 1);
	before = rules_ids_hashed(ids);
	check_bucket(str(name, KEPT), 1, 1);
	ck_assert_uint_eq(hashed_since(before), 0);
	check_bucket(str(name, KEPT + 1), 1, 1);
	check_bucket(str(name, KEPT + 1), 1, 1);
	check_bucket(str(name, LONGEST), 1, 1);
	ck_assert_uint_eq(hashed_since(before), 3);
	check_bucket(str(name, KEPT), 1, 1);
	ck_assert_uint_eq(hashed_since(before), 3);
}
END_TEST

static void
check_number(unsigned n)
{
	char name[32];
	int len = snprintf(name, sizeof(name), "user-%u", n);

	check_bucket(str(name, (size_t)len), 1000, 100);
}

/* Far more than there is room for push each other out. */
START_TEST(test_bounded)
{
	uint64_t before;
	unsigned n, round;

	for (round = 0; round < 3; round++) {
		before = rules_ids_hashed(ids);
		for (n = 0; n < 50000; n++)
			check_number(n);
		ck_assert_uint_ge(hashed_since(before), 45000);
	}
	/* The last one is there, the first is most likely not. */
	before = rules_ids_hashed(ids);
	check_number(49999);
	ck_assert_uint_eq(hashed_since(before), 0);
}
END_TEST

/* A few hundred at a time stay, but for some that share a slot. */
START_TEST(test_working_set)
{
	uint64_t before;
	unsigned n, round;

	for (n = 0; n < 500; n++)
		check_number(n);
	before = rules_ids_hashed(ids);
	for (round = 0; round < 10; round++) {
		for (n = 0; n < 500; n++)
			check_number(n);
	}
	ck_assert_uint_le(hashed_since(before), 5000 / 3);
}
END_TEST

START_TEST(test_random_definitions)
{
	uint64_t seed = harness_seed();
	uint8_t name[LONGEST];
	struct rules_tracker t;
	size_t len;
	int i;

	for (i = 0; i < 30000; i++) {
		/* Few bytes and small numbers: many come again. */
		len = harness_below(&seed, 10) == 0
			  ? harness_below(&seed, LONGEST + 1)
			  : 1 + harness_below(&seed, 2);
		memset(name, 'a' + (int)harness_below(&seed, 2), sizeof(name));
		t = (struct rules_tracker){harness_below(&seed, 3),
		    harness_below(&seed, 3), harness_below(&seed, 3),
		    harness_below(&seed, 3)};
		switch (harness_below(&seed, 3)) {
		case 0:
			check_bucket(str(name, len), t.ttl_ms, t.max_samples);
			break;
		case 1:
			check_tracker(str(name, len), PROFILE_V1, &t);
			break;
		default:
			check_tracker(str(name, len), PROFILE_V2, &t);
		}
	}
	ck_assert_uint_lt(rules_ids_hashed(ids), 30000 / 2);
}
END_TEST

/* Two configurations' ids know nothing of one another. */
START_TEST(test_owned)
{
	struct rules_ids *other = rules_ids_new();
	const struct ipc_str name = str("name", 4);
	uint8_t id[ID_LEN];

	ck_assert_ptr_nonnull(other);
	check_bucket(name, 1, 1);
	ck_assert_uint_eq(rules_ids_hashed(other), 0);
	ck_assert_int_eq(rules_ids_bucket(other, 1, 1, &name, id), 0);
	ck_assert_uint_eq(rules_ids_hashed(other), 1);
	rules_ids_free(other);
	check_bucket(name, 1, 1);
	ck_assert_uint_eq(rules_ids_hashed(ids), 1);
}
END_TEST

START_TEST(test_no_allocation)
{
	unsigned long before = allocations, after;
	unsigned n;

	for (n = 0; n < 10000; n++)
		check_number(n);
	after = allocations;
	ck_assert_uint_eq(after, before);
	ck_assert(before > 0 || !allocations_are_counted);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rules_ids");
	TCase *tc = tcase_create("rules_ids");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, test_once);
	tcase_add_test(tc, test_settings_do_not_mix);
	tcase_add_test(tc, test_names_do_not_mix);
	tcase_add_test(tc, test_long_names_are_hashed);
	tcase_add_test(tc, test_bounded);
	tcase_add_test(tc, test_working_set);
	tcase_add_test(tc, test_random_definitions);
	tcase_add_test(tc, test_owned);
	tcase_add_test(tc, test_no_allocation);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
