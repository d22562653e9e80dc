/*
 * The keys counted most often, by hand: what is kept, what makes room, what is
 * shown of either, and how it fades.
 */
#include "daemon/core/topk.h"

#include <string.h>

#include "tests/unit/harness.h"

#define NEAR 1e-9

static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
static struct topk *t;
static struct topk_key list[64];
static int64_t now;

static void
start(void)
{
	now = INT64_C(5000000000);
	t = topk_new(3, secret);
	ck_assert_ptr_nonnull(t);
}

static void
stop(void)
{
	topk_free(t);
}

static void
add(const char *key, unsigned int times)
{
	while (times-- > 0)
		topk_add(t, key, strlen(key), now);
}

/* Entry i of what is listed. */
static void
expect(uint32_t i, const char *key, double count, double error)
{
	ck_assert_uint_eq(list[i].len, strlen(key));
	ck_assert_mem_eq(list[i].bytes, key, list[i].len);
	ck_assert_double_eq_tol(list[i].count, count, NEAR);
	ck_assert_double_eq_tol(list[i].error, error, NEAR);
}

START_TEST(exact_while_there_is_room)
{
	ck_assert_uint_eq(topk_size(t), 3);
	ck_assert_uint_eq(topk_list(t, list, now), 0);
	ck_assert_double_eq(topk_total(t, now), 0);
	add("b", 2);
	add("a", 5);
	add("", 1);
	add("b", 1);
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(0, "a", 5, 0);
	expect(1, "b", 3, 0);
	expect(2, "", 1, 0);
	ck_assert_double_eq_tol(topk_total(t, now), 9, NEAR);
}
END_TEST

START_TEST(the_least_makes_room)
{
	add("a", 5);
	add("b", 3);
	add("c", 2);
	add("d", 1); /* takes the place of c */
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(0, "a", 5, 0);
	expect(1, "b", 3, 0);
	expect(2, "d", 3, 2);
	add("e", 2); /* b and d are the least; who goes is the heap's to say */
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(0, "a", 5, 0);
	expect(1, "e", 5, 3);
	ck_assert_double_eq_tol(list[2].count, 3, NEAR);
	ck_assert_double_eq_tol(topk_total(t, now), 13, NEAR);
}
END_TEST

START_TEST(a_key_that_comes_back_is_new)
{
	add("a", 1);
	add("b", 2);
	add("c", 3);
	add("d", 9); /* for a */
	add("a", 1); /* for b */
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(0, "d", 10, 1);
	expect(1, "a", 3, 2);
	expect(2, "c", 3, 0);
}
END_TEST

/* Bytes are not text, and a key is no part of a longer one. */
START_TEST(keys_are_any_bytes)
{
	uint8_t longest[TOPK_KEY_MAX];

	memset(longest, 0xff, sizeof(longest));
	topk_add(t, longest, sizeof(longest), now);
	topk_add(t, longest, sizeof(longest), now);
	topk_add(t, longest, sizeof(longest) - 1, now);
	topk_add(t, "a\0b", 3, now);
	topk_add(t, "a\0b", 3, now);
	topk_add(t, "a\0b", 3, now);
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	ck_assert_uint_eq(list[0].len, 3);
	ck_assert_mem_eq(list[0].bytes, "a\0b", 3);
	ck_assert_uint_eq(list[1].len, TOPK_KEY_MAX);
	ck_assert_mem_eq(list[1].bytes, longest, TOPK_KEY_MAX);
	ck_assert_uint_eq(list[2].len, TOPK_KEY_MAX - 1);
	topk_add(t, NULL, 0, now);
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(1, "", 2, 1);
}
END_TEST

START_TEST(the_smallest)
{
	topk_free(t);
	t = topk_new(1, secret);
	add("a", 3);
	add("b", 1);
	ck_assert_uint_eq(topk_list(t, list, now), 1);
	expect(0, "b", 4, 3);
}
END_TEST

START_TEST(it_fades)
{
	const int64_t began = now - now % TOPK_STEP_US;

	now = began;
	add("a", 8);
	now = began + TOPK_STEP_US - 1; /* the same step */
	ck_assert_double_eq_tol(topk_total(t, now), 8, NEAR);
	now = began + TOPK_STEP_US;
	ck_assert_double_eq_tol(
	    topk_total(t, now), 8 / 1.0352649238413776, NEAR);
	now = began + TOPK_HALF_US;
	add("b", 5);
	ck_assert_uint_eq(topk_list(t, list, now), 2);
	expect(0, "b", 5, 0);
	expect(1, "a", 4, 0);
	now = began + 3 * TOPK_HALF_US;
	ck_assert_uint_eq(topk_list(t, list, now), 2);
	expect(0, "b", 1.25, 0);
	expect(1, "a", 1, 0);
	ck_assert_double_eq_tol(topk_total(t, now), 2.25, NEAR);
}
END_TEST

/* An error fades with the count that it is a part of. */
START_TEST(errors_fade)
{
	add("a", 4);
	add("b", 8);
	add("c", 8);
	add("d", 4); /* for a */
	now += TOPK_HALF_US;
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	expect(0, "b", 4, 0);
	expect(1, "c", 4, 0);
	expect(2, "d", 4, 2);
}
END_TEST

/* Past the moment at which all counts are scaled, time and again. */
START_TEST(for_years)
{
	for (unsigned int i = 0; i < 5000; i++) {
		add("a", 4);
		add("b", 1);
		now += TOPK_HALF_US;
	}
	ck_assert_uint_eq(topk_list(t, list, now), 2);
	expect(0, "a", 4, 0); /* 2 + 1 + 1/2 ... */
	expect(1, "b", 1, 0);
	now += 200 * TOPK_HALF_US;
	ck_assert_uint_eq(topk_list(t, list, now), 2);
	ck_assert_double_lt(list[0].count, 1e-50);
	add("c", 1);
	ck_assert_uint_eq(topk_list(t, list, now), 3);
	ck_assert_mem_eq(list[0].bytes, "c", 1);
	ck_assert_mem_eq(list[1].bytes, "a", 1);
}
END_TEST

/* After a day nothing of it is left, the keys neither. */
START_TEST(all_is_forgotten_at_last)
{
	add("a", 4);
	now += 300 * TOPK_HALF_US;
	ck_assert_double_eq(topk_total(t, now), 0);
	ck_assert_uint_eq(topk_list(t, list, now), 0);
	add("b", 2);
	ck_assert_uint_eq(topk_list(t, list, now), 1);
	expect(0, "b", 2, 0);
}
END_TEST

START_TEST(time_that_goes_back_stands_still)
{
	add("a", 2);
	now += TOPK_HALF_US;
	add("a", 2);
	topk_add(t, "a", 1, now - TOPK_HALF_US);
	topk_add(t, "a", 1, 0);
	ck_assert_double_eq_tol(topk_total(t, now - TOPK_HALF_US), 5, NEAR);
	ck_assert_uint_eq(topk_list(t, list, 0), 1);
	expect(0, "a", 5, 0);
}
END_TEST

START_TEST(frees_nothing)
{
	topk_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("topk");
	TCase *tc = tcase_create("topk");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, start, stop);
	tcase_add_test(tc, exact_while_there_is_room);
	tcase_add_test(tc, the_least_makes_room);
	tcase_add_test(tc, a_key_that_comes_back_is_new);
	tcase_add_test(tc, keys_are_any_bytes);
	tcase_add_test(tc, the_smallest);
	tcase_add_test(tc, it_fades);
	tcase_add_test(tc, errors_fade);
	tcase_add_test(tc, for_years);
	tcase_add_test(tc, all_is_forgotten_at_last);
	tcase_add_test(tc, time_that_goes_back_stands_still);
	tcase_add_test(tc, frees_nothing);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
