/*
 * Instances by key: found again, bounded, forgotten in the right order, without
 * an allocation once there are enough.
 */
#include "daemon/core/registry.h"

#include <inttypes.h>
#include <string.h>

#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"

static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

/* What the tests keep as an instance. */
struct thing {
	uint64_t number;
	char rest[24];
};

static struct registry *r;
static int64_t now;
static bool fresh;

static void
open_registry(uint32_t cap)
{
	registry_free(r);
	r = registry_new(sizeof(struct thing), cap, secret);
	ck_assert_ptr_nonnull(r);
	now = 0;
}

static void
teardown(void)
{
	registry_free(r);
	r = NULL;
}

static struct thing *
get(const char *key)
{
	return registry_get(r, key, strlen(key), now, &fresh);
}

static bool
has(const char *key)
{
	return registry_find(r, key, strlen(key)) != NULL;
}

static void
get_busy(const char *key, int64_t until)
{
	struct thing *t = get(key);

	ck_assert_ptr_nonnull(t);
	registry_busy(r, t, until);
}

START_TEST(made_once_and_found_again)
{
	static const struct thing zero;
	struct thing *a, *b;

	open_registry(10);
	ck_assert(!has("a"));
	a = get("a");
	ck_assert(fresh);
	ck_assert_mem_eq(a, &zero, sizeof(zero));
	ck_assert_uint_eq((uintptr_t)a % 16, 0);
	memset(a, 0xa5, sizeof(*a));
	b = get("b");
	ck_assert(fresh);
	ck_assert_mem_eq(b, &zero, sizeof(zero));
	memset(b, 0x5a, sizeof(*b));
	ck_assert_ptr_eq(get("a"), a);
	ck_assert(!fresh);
	ck_assert_ptr_eq(registry_find(r, "b", 1), b);
	ck_assert_uint_eq(a->number, UINT64_C(0xa5a5a5a5a5a5a5a5));
	ck_assert_uint_eq(registry_count(r), 2);
	ck_assert_uint_eq(registry_evictions(r), 0);
}
END_TEST

/* One that took the place of another has nothing of it. */
START_TEST(a_fresh_one_is_zero)
{
	static const struct thing zero;

	open_registry(1);
	memset(get("a"), 0xff, sizeof(zero));
	ck_assert_mem_eq(get("b"), &zero, sizeof(zero));
	ck_assert(fresh);
}
END_TEST

/* Any bytes of any length are a key of their own. */
START_TEST(every_byte_and_the_length_count)
{
	uint8_t key[REGISTRY_KEY_MAX] = {0};
	size_t len;

	open_registry(4 * REGISTRY_KEY_MAX);
	for (len = 0; len <= sizeof(key); len++) {
		registry_get(r, key, len, now, &fresh);
		ck_assert_msg(fresh, "%zu", len);
	}
	for (len = 0; len < sizeof(key); len++) {
		key[len] = 1;
		registry_get(r, key, sizeof(key), now, &fresh);
		ck_assert_msg(fresh, "%zu", len);
		registry_get(r, key, len + 1, now, &fresh);
		ck_assert_msg(fresh == (len + 1 < sizeof(key)), "%zu", len);
		key[len] = 0;
	}
	ck_assert_ptr_eq(
	    registry_get(r, NULL, 0, now, &fresh), registry_find(r, "", 0));
	ck_assert(!fresh);
	ck_assert_uint_eq(registry_count(r), 3 * REGISTRY_KEY_MAX);
}
END_TEST

START_TEST(the_least_recently_used_goes)
{
	open_registry(3);
	get("a");
	get("b");
	get("c");
	get("a");
	ck_assert(has("b")); /* no use */
	get("d");
	ck_assert(!has("b"));
	ck_assert(has("a") && has("c"));
	get("e");
	ck_assert(!has("c"));
	get("f");
	ck_assert(!has("a"));
	ck_assert(has("d") && has("e") && has("f"));
	ck_assert_uint_eq(registry_count(r), 3);
	ck_assert_uint_eq(registry_evictions(r), 3);
}
END_TEST

START_TEST(what_is_busy_stays)
{
	open_registry(3);
	get_busy("a", 100);
	get("b");
	get("c");
	get("d");
	ck_assert(has("a") && !has("b"));
	get_busy("c", 50);
	get_busy("d", 60);
	now = 49;
	ck_assert_ptr_null(get("e"));
	ck_assert_uint_eq(registry_count(r), 3);
	ck_assert_ptr_nonnull(get("a")); /* what there is, is there */
	now = 50;
	ck_assert_ptr_nonnull(get("e"));
	ck_assert(fresh && !has("c"));
	ck_assert(has("a") && has("d"));
	ck_assert_uint_eq(registry_evictions(r), 2);
}
END_TEST

/* Of those that are over, the one that was used first: not who ended first. */
START_TEST(once_over_the_last_use_counts)
{
	open_registry(3);
	get_busy("a", 30);
	get_busy("b", 20);
	get_busy("c", 10);
	now = 5;
	get("a"); /* used again, busy as before */
	now = 40;
	get("d");
	ck_assert(!has("b"));
	get("e");
	ck_assert(!has("c"));
	ck_assert(has("a"));
}
END_TEST

START_TEST(busy_for_longer_or_not_any_more)
{
	open_registry(2);
	get_busy("a", 100);
	get_busy("b", 100);
	now = 10;
	get_busy("a", 200);
	now = 150;
	get("c");
	ck_assert(has("a") && !has("b"));
	get_busy("c", 300);
	ck_assert_ptr_null(get("d"));
	get_busy("a", 150); /* that is now: over */
	get("d");
	ck_assert(!has("a") && has("c"));
	registry_busy(r, get("d"), 100); /* as if it had never been */
	get("e");
	ck_assert(!has("d"));
}
END_TEST

/* Who tells an earlier time than another before makes nobody busy again. */
START_TEST(time_goes_forward_only)
{
	open_registry(1);
	get_busy("a", 100);
	now = 100;
	get("a");
	now = 50;
	ck_assert_ptr_nonnull(get("b"));
	get_busy("b", 90);
	ck_assert_ptr_nonnull(get("c"));
}
END_TEST

START_TEST(more_room_at_once)
{
	open_registry(1);
	get_busy("a", 10);
	ck_assert_ptr_null(get("b"));
	registry_set_cap(r, 2);
	get_busy("b", 10);
	ck_assert_ptr_null(get("c"));
	ck_assert(has("a"));
	ck_assert_uint_eq(registry_evictions(r), 0);
}
END_TEST

static const char *
name(uint32_t i)
{
	static char text[16];

	snprintf(text, sizeof(text), "%" PRIu32, i);
	return text;
}

START_TEST(less_room_as_new_ones_come)
{
	uint32_t i;

	open_registry(100);
	for (i = 0; i < 100; i++)
		get(name(i));
	registry_set_cap(r, 10);
	ck_assert_uint_eq(registry_count(r), 100);
	for (i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(get(name(i))); /* all are there */
	for (i = 100; i < 107; i++) {
		ck_assert_ptr_nonnull(get(name(i)));
		ck_assert(fresh);
	}
	ck_assert_uint_eq(registry_count(r), 10);
	ck_assert_uint_eq(registry_evictions(r), 97);
	for (i = 97; i < 107; i++)
		ck_assert(has(name(i)));
}
END_TEST

START_TEST(less_room_waits_for_the_busy)
{
	uint32_t i;

	open_registry(10);
	for (i = 0; i < 10; i++)
		get_busy(name(i), i < 6 ? 100 : 10);
	registry_set_cap(r, 5);
	now = 10;
	ck_assert_ptr_nonnull(get("a")); /* four go, one comes */
	ck_assert_uint_eq(registry_count(r), 7);
	ck_assert_ptr_null(get("b"));
	ck_assert_uint_eq(registry_count(r), 6);
	ck_assert_ptr_null(get("b"));
	now = 100;
	ck_assert_ptr_nonnull(get("b"));
	ck_assert_uint_eq(registry_count(r), 5);
}
END_TEST

/*
 * What ends in one silence is looked at in the order of its end, a few for
 * each call, so that no call is long.
 */
START_TEST(many_that_end_at_once)
{
	uint32_t i;

	open_registry(100);
	for (i = 0; i < 100; i++)
		get_busy(name(i), 1000 - i);
	now = 2000;
	get("a");
	ck_assert(!has(name(84))); /* the first used of the first 16 */
	for (i = 0; i < 84; i++)
		ck_assert(has(name(i)));
	for (i = 0; i < 5; i++)
		get("a");
	get("b");
	ck_assert(!has("0")); /* all are known by now */
}
END_TEST

static struct thing *
get_number(uint32_t n)
{
	return registry_get(r, &n, sizeof(n), now, &fresh);
}

/* With every place taken by one that stays, being refused costs next to
 * nothing, and so does the first that comes when all are over. */
START_TEST(all_busy)
{
	const uint32_t many = 100000;
	uint32_t i, made = 0;

	open_registry(many);
	for (i = 0; i < many; i++)
		registry_busy(r, get_number(i), 10 + i % 7);
	for (i = 0; i < many; i++)
		made += get_number(many) != NULL;
	ck_assert_uint_eq(made, 0);
	ck_assert_uint_eq(registry_count(r), many);
	ck_assert_uint_eq(registry_evictions(r), 0);
	now = 20;
	for (i = 0; i < many; i++)
		made += get_number(many + i) != NULL;
	ck_assert_uint_eq(made, many);
	ck_assert_uint_eq(registry_count(r), many);
	ck_assert_uint_eq(registry_evictions(r), many);
	for (i = 0; i < many; i++)
		made -= registry_find(r, &i, sizeof(i)) == NULL;
	ck_assert_uint_eq(made, 0);
}
END_TEST

/* How many allocations a use costs; Check's own are not among them. */
static unsigned long
cost(const uint8_t *key, size_t len, bool busy)
{
	const unsigned long before = allocations;
	struct thing *t = registry_get(r, key, len, now, &fresh);

	if (busy)
		registry_busy(r, t, now + 50);
	return allocations - before;
}

START_TEST(a_churn_allocates_nothing)
{
	static const size_t len[] = {4, 32, 33, 256, 257, REGISTRY_KEY_MAX};
	const uint32_t lens = sizeof(len) / sizeof(*len), cap = 200;
	uint8_t key[REGISTRY_KEY_MAX] = {0};
	unsigned long at_first = 0, then = 0, n;

	open_registry(cap);
	for (uint32_t i = 0; i < 4 * lens * cap; i++) {
		memcpy(key, &i, sizeof(i));
		n = cost(key, len[i / cap % lens], i % 3 == 0);
		ck_assert(fresh);
		if (i < lens * cap) /* full of each length, once */
			at_first += n;
		else
			then += n;
		now++;
	}
	ck_assert_uint_eq(registry_evictions(r), (4 * lens - 1) * cap);
	ck_assert_uint_eq(then, 0);
	ck_assert(at_first > 0 || !allocations_are_counted);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("registry");
	TCase *tc = tcase_create("registry");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, made_once_and_found_again);
	tcase_add_test(tc, a_fresh_one_is_zero);
	tcase_add_test(tc, every_byte_and_the_length_count);
	tcase_add_test(tc, the_least_recently_used_goes);
	tcase_add_test(tc, what_is_busy_stays);
	tcase_add_test(tc, once_over_the_last_use_counts);
	tcase_add_test(tc, busy_for_longer_or_not_any_more);
	tcase_add_test(tc, time_goes_forward_only);
	tcase_add_test(tc, more_room_at_once);
	tcase_add_test(tc, less_room_as_new_ones_come);
	tcase_add_test(tc, less_room_waits_for_the_busy);
	tcase_add_test(tc, many_that_end_at_once);
	tcase_add_test(tc, all_busy);
	tcase_add_test(tc, a_churn_allocates_nothing);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
