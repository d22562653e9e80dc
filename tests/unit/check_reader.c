/* The bounded cursor: widths, the end, the sticky error, sub-readers. */
#include "proto/reader.h"

#include <string.h>

#include "tests/unit/harness.h"

static const uint8_t bytes[] = {
    0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x84, 1, 2, 3, 4, 5, 6, 7, 0xf8, 'x'};

START_TEST(little_endian)
{
	struct reader r;

	reader_init(&r, bytes, sizeof bytes);
	ck_assert_uint_eq(reader_u8(&r), 0x01);
	ck_assert_uint_eq(reader_u16(&r), 0x0203);
	ck_assert_uint_eq(reader_u32(&r), 0x84050607);
	ck_assert(reader_u64(&r) == UINT64_C(0xf807060504030201));
	ck_assert_uint_eq(reader_left(&r), 1);
	ck_assert(reader_ok(&r) && !reader_done(&r));
	ck_assert_uint_eq(reader_u8(&r), 'x');
	ck_assert(reader_done(&r));
}
END_TEST

/* One byte short of every width: zero, bad, and bad for ever after. */
START_TEST(one_short_is_sticky)
{
	struct reader r;
	uint8_t copy[8];

	reader_init(&r, bytes, 0);
	ck_assert_uint_eq(reader_u8(&r), 0);
	ck_assert(!reader_ok(&r));
	reader_init(&r, bytes, 1);
	ck_assert_uint_eq(reader_u16(&r), 0);
	/* The byte that is there stays unread: nothing resynchronises. */
	ck_assert_uint_eq(reader_u8(&r), 0);
	reader_init(&r, bytes, 3);
	ck_assert_uint_eq(reader_u32(&r), 0);
	ck_assert_uint_eq(reader_left(&r), 0);
	reader_init(&r, bytes, 7);
	ck_assert(reader_u64(&r) == 0);
	ck_assert_ptr_null(reader_bytes(&r, 0));
	memset(copy, 0xaa, sizeof copy);
	reader_copy(&r, copy, 4);
	ck_assert_mem_eq(copy, "\0\0\0\0\xaa\xaa\xaa\xaa", 8);
	ck_assert(!reader_ok(&r) && !reader_done(&r));
}
END_TEST

START_TEST(borrowed_bytes)
{
	struct reader r;

	reader_init(&r, bytes, 4);
	ck_assert_ptr_eq(reader_bytes(&r, 4), bytes);
	ck_assert_ptr_eq(reader_bytes(&r, 0), bytes + 4);
	ck_assert(reader_done(&r));
	ck_assert_ptr_null(reader_bytes(&r, 1));
	reader_init(&r, bytes, 4);
	ck_assert_ptr_null(reader_bytes(&r, SIZE_MAX));
	ck_assert(!reader_ok(&r));
}
END_TEST

START_TEST(copies)
{
	struct reader r;
	uint8_t out[4] = {9, 9, 9, 9};

	reader_init(&r, bytes, 5);
	reader_copy(&r, out, 3);
	ck_assert_mem_eq(out, "\x01\x03\x02\x09", 4);
	reader_copy(&r, out, 3);
	ck_assert_mem_eq(out, "\0\0\0\x09", 4);
	ck_assert(!reader_ok(&r));
}
END_TEST

START_TEST(sub_reader_is_bounded)
{
	struct reader r, sub;

	reader_init(&r, bytes, 6);
	sub = reader_sub(&r, 4);
	ck_assert_uint_eq(reader_left(&sub), 4);
	ck_assert_uint_eq(reader_left(&r), 2);
	/* What the sub-reader does wrong leaves the outer one alone. */
	ck_assert(reader_u64(&sub) == 0);
	ck_assert(!reader_ok(&sub) && reader_ok(&r));
	ck_assert_uint_eq(reader_u16(&r), 0x0506);
	/* And a sub-reader that does not fit spoils both. */
	sub = reader_sub(&r, 1);
	ck_assert(!reader_ok(&sub) && !reader_ok(&r));
	ck_assert_uint_eq(reader_left(&sub), 0);
	reader_init(&r, bytes, 0);
	sub = reader_sub(&r, 0);
	ck_assert(reader_done(&sub) && reader_done(&r));
}
END_TEST

START_TEST(no_bytes_at_all)
{
	struct reader r;

	reader_init(&r, NULL, 0);
	ck_assert(reader_done(&r));
	ck_assert_ptr_nonnull(reader_bytes(&r, 0));
	reader_init(&r, NULL, 3);
	ck_assert(!reader_ok(&r));
	ck_assert_uint_eq(reader_u8(&r), 0);
}
END_TEST

/* A decoder that rejects what it read ends the bytes for itself and others. */
START_TEST(a_decoder_fails_it)
{
	struct reader r, sub;

	reader_init(&r, bytes, sizeof bytes);
	reader_u16(&r);
	reader_fail(&r);
	ck_assert(!reader_ok(&r) && !reader_done(&r));
	ck_assert_uint_eq(reader_left(&r), 0);
	ck_assert_uint_eq(reader_u8(&r), 0);
	ck_assert_ptr_null(reader_bytes(&r, 0));
	ck_assert_ptr_null(reader_bytes(&r, 1));
	sub = reader_sub(&r, 0);
	ck_assert(!reader_ok(&sub) && reader_left(&sub) == 0);
}
END_TEST

/* Whatever is asked for, the cursor stays inside and counts exactly. */
START_TEST(random_walk)
{
	uint64_t seed = harness_seed();
	uint8_t *heap;
	int round;

	for (round = 0; round < 2000; round++) {
		size_t len = harness_below(&seed, 64), used = 0;
		struct reader r;
		bool bad = false;

		heap = malloc(len + 1); /* of the exact size, for ASan */
		ck_assert_ptr_nonnull(heap);
		harness_fill(&seed, heap, len);
		reader_init(&r, heap, len);
		while (!bad) {
			size_t want = harness_below(&seed, 17);
			const uint8_t *p = reader_bytes(&r, want);

			bad = want > len - used;
			ck_assert_int_eq(p == NULL, bad);
			ck_assert_int_eq(reader_ok(&r), !bad);
			if (!bad) {
				ck_assert_ptr_eq(p, heap + used);
				used += want;
				ck_assert_uint_eq(reader_left(&r), len - used);
			}
		}
		free(heap);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("reader");
	TCase *tc = tcase_create("reader");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, little_endian);
	tcase_add_test(tc, one_short_is_sticky);
	tcase_add_test(tc, borrowed_bytes);
	tcase_add_test(tc, copies);
	tcase_add_test(tc, sub_reader_is_bounded);
	tcase_add_test(tc, no_bytes_at_all);
	tcase_add_test(tc, a_decoder_fails_it);
	tcase_add_test(tc, random_walk);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
