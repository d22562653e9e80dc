/*
 * The slab: distinct, aligned, wholly usable slots up to the cap, used again
 * last in, first out.
 */
#include "daemon/core/slab.h"

#include <string.h>

#include "tests/unit/harness.h"

START_TEST(slots_are_aligned_and_apart)
{
	static unsigned char *slots[100];
	struct slab s;

	slab_init(&s, 17, 7, 100);
	ck_assert_uint_eq(s.size, 32);
	for (int i = 0; i < 100; i++) {
		slots[i] = slab_get(&s);
		ck_assert_ptr_nonnull(slots[i]);
		ck_assert_uint_eq((uintptr_t)slots[i] % 16, 0);
		memset(slots[i], i, 32);
	}
	/* Whoever overlaps has been written over by now. */
	for (int i = 0; i < 100; i++) {
		for (int at = 0; at < 32; at++)
			ck_assert_int_eq(slots[i][at], i);
	}
	slab_fini(&s);
}
END_TEST

START_TEST(the_cap_holds_exactly)
{
	struct slab s;
	void *last = NULL;

	slab_init(&s, 8, 4, 6); /* the second chunk is cut short */
	for (int i = 0; i < 6; i++) {
		last = slab_get(&s);
		ck_assert_ptr_nonnull(last);
	}
	ck_assert_ptr_null(slab_get(&s));
	ck_assert_uint_eq(s.in_use, 6);
	slab_put(&s, last);
	ck_assert_ptr_eq(slab_get(&s), last);
	ck_assert_ptr_null(slab_get(&s));
	slab_fini(&s);
}
END_TEST

START_TEST(a_cap_of_zero_gives_nothing)
{
	struct slab s;

	slab_init(&s, 8, 4, 0);
	ck_assert_ptr_null(slab_get(&s));
	ck_assert_ptr_null(s.chunks);
	slab_fini(&s);
}
END_TEST

START_TEST(last_in_first_out)
{
	struct slab s;
	void *a, *b;

	slab_init(&s, 64, 8, 8);
	a = slab_get(&s);
	b = slab_get(&s);
	slab_put(&s, a);
	slab_put(&s, b);
	slab_put(&s, NULL);
	ck_assert_uint_eq(s.in_use, 0);
	ck_assert_ptr_eq(slab_get(&s), b);
	ck_assert_ptr_eq(slab_get(&s), a);
	slab_fini(&s);
}
END_TEST

START_TEST(chunks_are_kept_and_used_again)
{
	static void *slots[64];
	struct slab s;
	struct slab_chunk *chunks = NULL;

	slab_init(&s, 48, 16, 64);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 64; i++)
			slots[i] = slab_get(&s);
		if (turn == 0)
			chunks = s.chunks;
		ck_assert_ptr_eq(s.chunks, chunks);
		ck_assert_uint_eq(s.in_use, 64);
		for (int i = 0; i < 64; i++)
			slab_put(&s, slots[i * 37 % 64]);
		ck_assert_uint_eq(s.in_use, 0);
	}
	slab_fini(&s);
	ck_assert_ptr_null(s.chunks);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("slab");
	TCase *tc = tcase_create("slab");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, slots_are_aligned_and_apart);
	tcase_add_test(tc, the_cap_holds_exactly);
	tcase_add_test(tc, a_cap_of_zero_gives_nothing);
	tcase_add_test(tc, last_in_first_out);
	tcase_add_test(tc, chunks_are_kept_and_used_again);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
