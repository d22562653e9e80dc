/*
 * Content-defined ids: expected values from public clients, and what is and
 * is not part of an identity. The full lists are in tests/vectors.
 */
#include "proto/id.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct id_hash *hash;

static void
set_up(void)
{
	hash = id_hash_new();
	ck_assert_ptr_nonnull(hash);
}

static void
tear_down(void)
{
	id_hash_free(hash);
}

static void
bucket(const char *name, size_t len, uint32_t window, uint32_t limit,
    uint8_t out[ID_LEN])
{
	ck_assert_int_eq(id_bucket(hash, name, len, window, limit, out), 0);
}

START_TEST(known_bucket)
{
	uint8_t id[ID_LEN];

	bucket("checkout", 8, 1000, 100, id);
	ck_assert_mem_eq(id,
	    "\xf5\xcf\x3a\xd8\xb8\x40\x68\x54\xb5\x96\xba\x36\x14\xf1\x6e\xff",
	    ID_LEN);
}
END_TEST

START_TEST(known_trackers)
{
	static const char name[] = "inventory-backend";
	uint8_t id[ID_LEN];

	/* Fields that are all alike would hide a wrong order. */
	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V1, name, 17, 4, 3, 2, 1, id), 0);
	ck_assert_mem_eq(id,
	    "\x30\xf8\xe4\x0f\x9c\xdf\xea\xcc\x54\xa4\x6b\xc7\xcd\x67\xff\xb1",
	    ID_LEN);
	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V2, name, 17, 10000, 100, 32, 5, id), 0);
	ck_assert_mem_eq(id,
	    "\x6a\x17\xd0\x7a\x42\x45\x68\x30\x4e\x50\xd2\x85\x40\xf7\x6e\x67",
	    ID_LEN);
}
END_TEST

START_TEST(known_digest)
{
	uint8_t id[ID_LEN];

	ck_assert_int_eq(id_digest(hash, "", 0, id), 0);
	ck_assert_mem_eq(id,
	    "\x69\x21\x7a\x30\x79\x90\x80\x94\xe1\x11\x21\xd0\x42\x35\x4a\x7c",
	    ID_LEN);
	ck_assert_int_eq(id_digest(hash, NULL, 0, id), 0);
	ck_assert_mem_eq(id, "\x69\x21\x7a\x30", 4);
}
END_TEST

START_TEST(every_setting_counts)
{
	uint8_t base[ID_LEN], id[ID_LEN];

	bucket("name", 4, 1000, 100, base);
	bucket("name", 4, 1001, 100, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	bucket("name", 4, 1000, 101, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	bucket("nam", 3, 1000, 100, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	bucket("name\0", 5, 1000, 100, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	bucket("", 0, 1000, 100, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	/* Swapped settings are another definition. */
	bucket("name", 4, 100, 1000, id);
	ck_assert_mem_ne(id, base, ID_LEN);
	bucket("name", 4, 1000, 100, id);
	ck_assert_mem_eq(id, base, ID_LEN);
}
END_TEST

START_TEST(buffer_size_is_of_v1)
{
	uint8_t a[ID_LEN], b[ID_LEN];

	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V2, "t", 1, 1, 2, 3, 4, a), 0);
	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V2, "t", 1, 1, 2, 9, 4, b), 0);
	ck_assert_mem_eq(a, b, ID_LEN);
	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V1, "t", 1, 1, 2, 3, 4, b), 0);
	ck_assert_mem_ne(a, b, ID_LEN);
	ck_assert_int_eq(
	    id_tracker(hash, PROFILE_V1, "t", 1, 1, 2, 9, 4, a), 0);
	ck_assert_mem_ne(a, b, ID_LEN);
}
END_TEST

/* The context keeps nothing of the hash before, whatever its length. */
START_TEST(context_reuse)
{
	uint64_t seed = harness_seed();
	uint8_t name[300], base[ID_LEN], id[ID_LEN];
	int round;

	bucket("checkout", 8, 1000, 100, base);
	for (round = 0; round < 500; round++) {
		harness_fill(&seed, name, sizeof name);
		ck_assert_int_eq(id_digest(hash, name,
				     harness_below(&seed, sizeof name), id),
		    0);
		bucket("checkout", 8, 1000, 100, id);
		ck_assert_mem_eq(id, base, ID_LEN);
	}
}
END_TEST

START_TEST(free_takes_null)
{
	id_hash_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("id");
	TCase *tc = tcase_create("id");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, known_bucket);
	tcase_add_test(tc, known_trackers);
	tcase_add_test(tc, known_digest);
	tcase_add_test(tc, every_setting_counts);
	tcase_add_test(tc, buffer_size_is_of_v1);
	tcase_add_test(tc, context_reuse);
	tcase_add_test(tc, free_takes_null);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
