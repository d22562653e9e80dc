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

/* The run is in order and linked both ways. Returns its length. */
static uint32_t
check_run(const struct heap *h)
{
	const struct heap_entry *prev = NULL;
	uint32_t n = 0;

	for (const struct heap_entry *e = h->first; e != NULL; e = e->next) {
		if (e->slot != HEAP_IN_RUN || e->prev != prev ||
		    (prev != NULL && prev->when > e->when))
			ck_abort_msg("entry %" PRIu32 " of the run", n);
		prev = e;
		n++;
	}
	ck_assert_ptr_eq(h->last, prev);
	return n;
}

/* Every slot knows itself, and no parent is later than its child. Returns how
 * many are in the heap and the run. */
static uint32_t
check_shape(const struct heap *h)
{
	for (uint32_t i = 0; i < h->count; i++) {
		ck_assert_uint_eq(h->slots[i]->slot, i);
		if (i > 0)
			ck_assert_int_le(
			    h->slots[(i - 1) / 4]->when, h->slots[i]->when);
	}
	return h->count + check_run(h);
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
	ck_assert_uint_eq(check_shape(&h), 1);
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

/* What is set in order needs no heap, in whatever order it goes. */
START_TEST(in_order_is_a_run)
{
	static struct heap_entry e[MANY];
	struct heap h;

	heap_init(&h);
	for (int i = 0; i < MANY; i++) {
		heap_entry_init(&e[i]);
		ck_assert_int_eq(heap_set(&h, &e[i], i / 2), 0);
	}
	ck_assert_uint_eq(check_run(&h), MANY);
	ck_assert_uint_eq(h.count, 0);
	ck_assert_int_eq(heap_set(&h, &e[0], 0), 0); /* as it was */
	ck_assert_ptr_eq(h.first, &e[0]);
	ck_assert_int_eq(heap_set(&h, &e[0], MANY), 0);
	ck_assert_ptr_eq(h.first, &e[1]);
	ck_assert_ptr_eq(h.last, &e[0]);
	heap_remove(&h, &e[0]);
	for (int i = 1; i < MANY; i += 2)
		heap_remove(&h, &e[i]);
	ck_assert_uint_eq(check_run(&h), MANY / 2 - 1);
	for (int i = 2; i < MANY; i += 2) {
		ck_assert_ptr_eq(heap_first(&h), &e[i]);
		heap_remove(&h, &e[i]);
	}
	ck_assert_ptr_null(heap_first(&h));
	ck_assert_uint_eq(check_run(&h), 0);
	heap_fini(&h);
}
END_TEST

/* One that is earlier than the last of the run is in the heap, until it is set
 * to a time that is not; the earlier of both comes first. */
START_TEST(the_heap_beside_the_run)
{
	struct heap_entry a, b, c;
	struct heap h;

	heap_init(&h);
	heap_entry_init(&a);
	heap_entry_init(&b);
	heap_entry_init(&c);
	heap_set(&h, &a, 10);
	heap_set(&h, &b, 30);
	heap_set(&h, &c, 20);
	ck_assert_uint_eq(h.count, 1);
	ck_assert_ptr_eq(heap_first(&h), &a);
	heap_remove(&h, &a);
	ck_assert_ptr_eq(heap_first(&h), &c);
	heap_set(&h, &b, 15); /* the last of the run: into it again */
	ck_assert_ptr_eq(heap_first(&h), &b);
	heap_set(&h, &c, 40);
	ck_assert_uint_eq(h.count, 0);
	ck_assert_ptr_eq(heap_first(&h), &b);
	ck_assert_uint_eq(check_shape(&h), 2);
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
	ck_assert_uint_eq(h.count, MANY - 1);
	ck_assert_int_eq(heap_set(&h, &e[MANY - 1], 0), 0); /* in the heap */
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
	uint32_t in = 0, i, base;

	state = seed;
	heap_init(&h);
	for (i = 0; i < MANY; i++)
		heap_entry_init(&e[i]);
	for (int turn = 0; turn < 20000; turn++) {
		i = pick(MANY);
		/* Half of the turns are those of a clock. */
		base = turn / 1000 % 2 == 0 ? (uint32_t)turn : 0;
		if (pick(3) > 0) {
			in += e[i].slot == HEAP_OUT;
			ck_assert_int_eq(
			    heap_set(&h, &e[i], base + pick(500)), 0);
		} else {
			in -= e[i].slot != HEAP_OUT;
			heap_remove(&h, &e[i]);
			ck_assert_uint_eq(e[i].slot, HEAP_OUT);
		}
		best = earliest(e, MANY);
		if (best == NULL)
			ck_assert_ptr_null(heap_first(&h));
		else
			ck_assert_int_eq(heap_first(&h)->when, best->when);
		if (turn % 64 == 0)
			ck_assert_uint_eq(check_shape(&h), in);
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
	tcase_add_test(tc, in_order_is_a_run);
	tcase_add_test(tc, the_heap_beside_the_run);
	tcase_add_test(tc, a_reserved_heap_never_allocates);
	tcase_add_test(tc, random_moves_agree_with_a_search);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
