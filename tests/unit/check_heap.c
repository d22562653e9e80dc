/*
 * The deadline heap: order, moves and removals against a plain array that is
 * searched from end to end.
 */
#include "daemon/core/heap.h"

#include <inttypes.h>

#include "tests/unit/harness.h"

#define MANY 300

static uint64_t seed;
static uint64_t state;

static uint32_t
pick(uint32_t bound)
{
	return harness_below(&state, bound);
}

/* Every slot knows itself, and no parent is later than its child. */
static void
check_shape(const struct heap *h)
{
	for (uint32_t i = 0; i < h->count; i++) {
		ck_assert_uint_eq(h->slots[i]->slot, i);
		if (i > 0)
			ck_assert_int_le(
			    h->slots[(i - 1) / 4]->when, h->slots[i]->when);
	}
}

START_TEST(empty_has_no_first)
{
	struct heap h;
	struct heap_entry e;

	heap_init(&h);
	heap_entry_init(&e);
	ck_assert_ptr_null(heap_first(&h));
	heap_remove(&h, &e); /* not in: nothing happens */
	ck_assert_uint_eq(e.slot, HEAP_OUT);
	heap_fini(&h);
}
END_TEST

START_TEST(the_only_entry_comes_and_goes)
{
	struct heap h;
	struct heap_entry e;

	heap_init(&h);
	heap_entry_init(&e);
	ck_assert_int_eq(heap_set(&h, &e, 5), 0);
	ck_assert_ptr_eq(heap_first(&h), &e);
	ck_assert_int_eq(heap_set(&h, &e, -5), 0);
	ck_assert_uint_eq(h.count, 1);
	ck_assert_int_eq(heap_first(&h)->when, -5);
	heap_remove(&h, &e);
	heap_remove(&h, &e);
	ck_assert_ptr_null(heap_first(&h));
	ck_assert_uint_eq(e.slot, HEAP_OUT);
	heap_fini(&h);
}
END_TEST

START_TEST(comes_out_in_order)
{
	static struct heap_entry e[MANY];
	struct heap h;
	int64_t last = INT64_MIN;

	heap_init(&h);
	for (int i = 0; i < MANY; i++) {
		heap_entry_init(&e[i]);
		/* Equal times and both ends of the range among them. */
		ck_assert_int_eq(heap_set(&h, &e[i], i * 7919 % 101), 0);
	}
	heap_set(&h, &e[17], INT64_MAX);
	heap_set(&h, &e[18], INT64_MIN);
	check_shape(&h);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_le(last, heap_first(&h)->when);
		last = heap_first(&h)->when;
		heap_remove(&h, heap_first(&h));
		check_shape(&h);
	}
	ck_assert_int_eq(last, INT64_MAX);
	ck_assert_ptr_null(heap_first(&h));
	heap_fini(&h);
}
END_TEST

START_TEST(a_reserved_heap_never_allocates)
{
	static struct heap_entry e[MANY];
	struct heap h;
	struct heap_entry **slots;

	heap_init(&h);
	ck_assert_int_eq(heap_reserve(&h, MANY), 0);
	slots = h.slots;
	for (int i = 0; i < MANY; i++) {
		heap_entry_init(&e[i]);
		ck_assert_int_eq(heap_set(&h, &e[i], MANY - i), 0);
	}
	for (int i = 0; i < MANY; i++)
		heap_remove(&h, &e[i]);
	ck_assert_ptr_eq(h.slots, slots);
	ck_assert_int_eq(heap_reserve(&h, 1), 0);
	ck_assert_ptr_eq(h.slots, slots);
	ck_assert_int_eq(heap_reserve(&h, UINT32_MAX), -1);
	ck_assert_ptr_eq(h.slots, slots);
	heap_fini(&h);
}
END_TEST

static const struct heap_entry *
earliest(const struct heap_entry *e, int count)
{
	const struct heap_entry *best = NULL;

	for (int i = 0; i < count; i++) {
		if (e[i].slot != HEAP_OUT &&
		    (best == NULL || e[i].when < best->when))
			best = &e[i];
	}
	return best;
}

START_TEST(random_moves_agree_with_a_search)
{
	static struct heap_entry e[MANY];
	struct heap h;
	const struct heap_entry *best;
	uint32_t in = 0, i;

	state = seed;
	heap_init(&h);
	for (i = 0; i < MANY; i++)
		heap_entry_init(&e[i]);
	for (int turn = 0; turn < 20000; turn++) {
		i = pick(MANY);
		if (pick(3) > 0) {
			in += e[i].slot == HEAP_OUT;
			ck_assert_int_eq(heap_set(&h, &e[i], pick(500)), 0);
		} else {
			in -= e[i].slot != HEAP_OUT;
			heap_remove(&h, &e[i]);
			ck_assert_uint_eq(e[i].slot, HEAP_OUT);
		}
		ck_assert_uint_eq(h.count, in);
		best = earliest(e, MANY);
		if (best == NULL)
			ck_assert_ptr_null(heap_first(&h));
		else
			ck_assert_int_eq(heap_first(&h)->when, best->when);
		if (turn % 64 == 0)
			check_shape(&h);
	}
	heap_fini(&h);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("heap");
	TCase *tc = tcase_create("heap");

	seed = harness_seed();
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, empty_has_no_first);
	tcase_add_test(tc, the_only_entry_comes_and_goes);
	tcase_add_test(tc, comes_out_in_order);
	tcase_add_test(tc, a_reserved_heap_never_allocates);
	tcase_add_test(tc, random_moves_agree_with_a_search);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
