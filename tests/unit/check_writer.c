/* The encoder's cursor: byte order, the bound, patching, reader and back. */
#include "proto/writer.h"

#include <string.h>

#include "proto/reader.h"
#include "tests/unit/harness.h"

START_TEST(little_endian)
{
	uint8_t buf[32];
	struct writer w;

	writer_init(&w, buf, sizeof buf);
	writer_u8(&w, 0x01);
	writer_u16(&w, 0x0203);
	writer_u32(&w, 0x84050607);
	writer_u64(&w, UINT64_C(0xf807060504030201));
	writer_bytes(&w, "ab", 2);
	writer_zeros(&w, 3);
	ck_assert(writer_ok(&w));
	ck_assert_uint_eq(writer_len(&w), 20);
	ck_assert_mem_eq(buf,
	    "\x01\x03\x02\x07\x06\x05\x84\x01\x02\x03\x04\x05\x06\x07\xf8"
	    "ab\0\0\0",
	    20);
}
END_TEST

START_TEST(exact_fit)
{
	uint8_t buf[8];
	struct writer w;

	writer_init(&w, buf, sizeof buf);
	writer_u64(&w, 1);
	ck_assert(writer_ok(&w));
	/* Nothing more fits, but nothing is not more. */
	writer_bytes(&w, NULL, 0);
	writer_zeros(&w, 0);
	ck_assert(writer_ok(&w));
	writer_u8(&w, 1);
	ck_assert(!writer_ok(&w));
	ck_assert_uint_eq(writer_len(&w), 8);
}
END_TEST

/* The overflowing write leaves no part of itself, nor do later ones. */
START_TEST(overflow_is_sticky)
{
	uint8_t buf[8];
	struct writer w;

	memset(buf, 0xaa, sizeof buf);
	writer_init(&w, buf, 6);
	writer_u32(&w, 0);
	writer_u32(&w, 0);
	ck_assert(!writer_ok(&w));
	writer_u8(&w, 0);
	writer_u16(&w, 0);
	writer_bytes(&w, "xy", 2);
	writer_zeros(&w, 1);
	ck_assert_ptr_null(writer_space(&w, 0));
	ck_assert_uint_eq(writer_len(&w), 4);
	ck_assert_mem_eq(buf, "\0\0\0\0\xaa\xaa\xaa\xaa", 8);
}
END_TEST

START_TEST(huge_length)
{
	uint8_t buf[8];
	struct writer w;

	writer_init(&w, buf, sizeof buf);
	ck_assert_ptr_null(writer_space(&w, SIZE_MAX));
	ck_assert(!writer_ok(&w));
}
END_TEST

START_TEST(patching)
{
	uint8_t buf[12];
	struct writer w;

	memset(buf, 0xaa, sizeof buf);
	writer_init(&w, buf, 10);
	writer_zeros(&w, 8);
	writer_patch_u16(&w, 6, 0x0102);
	writer_patch_u32(&w, 1, 0x03040506);
	ck_assert_mem_eq(buf, "\0\x06\x05\x04\x03\0\x02\x01\xaa\xaa", 10);
	ck_assert_uint_eq(writer_len(&w), 8);
	/* After an overflow there is no message to patch. */
	writer_u64(&w, 0);
	writer_patch_u16(&w, 0, 0xffff);
	writer_patch_u32(&w, 0, 0xffffffff);
	ck_assert_mem_eq(buf, "\0\x06\x05\x04\x03\0\x02\x01\xaa\xaa", 10);
}
END_TEST

START_TEST(space)
{
	uint8_t buf[4];
	struct writer w;

	writer_init(&w, buf, sizeof buf);
	ck_assert_ptr_eq(writer_space(&w, 3), buf);
	ck_assert_ptr_eq(writer_space(&w, 1), buf + 3);
	ck_assert_ptr_null(writer_space(&w, 1));
}
END_TEST

/* An encoder that gives up: what was written counts, nothing follows. */
START_TEST(an_encoder_fails_it)
{
	uint8_t buf[8];
	struct writer w;

	memset(buf, 0xaa, sizeof buf);
	writer_init(&w, buf, sizeof buf);
	writer_u16(&w, 0);
	writer_fail(&w);
	ck_assert(!writer_ok(&w));
	writer_u8(&w, 0);
	writer_u16(&w, 0);
	writer_u32(&w, 0);
	writer_bytes(&w, "x", 1);
	ck_assert_ptr_null(writer_space(&w, 0));
	writer_patch_u16(&w, 0, 0x0102);
	ck_assert_uint_eq(writer_len(&w), 2);
	ck_assert_mem_eq(buf, "\0\0\xaa\xaa\xaa\xaa\xaa\xaa", 8);
}
END_TEST

/* The reader gives back what the writer took, for any sequence of widths. */
START_TEST(reader_inverts)
{
	uint64_t seed = harness_seed(), values[64];
	int widths[64], round, i, n;
	uint8_t buf[512];
	struct writer w;
	struct reader r;

	for (round = 0; round < 2000; round++) {
		n = (int)harness_below(&seed, 64);
		writer_init(&w, buf, sizeof buf);
		for (i = 0; i < n; i++) {
			values[i] = harness_random(&seed);
			widths[i] = (int)harness_below(&seed, 4);
			if (widths[i] == 0)
				writer_u8(&w, (uint8_t)values[i]);
			else if (widths[i] == 1)
				writer_u16(&w, (uint16_t)values[i]);
			else if (widths[i] == 2)
				writer_u32(&w, (uint32_t)values[i]);
			else
				writer_u64(&w, values[i]);
		}
		reader_init(&r, buf, writer_len(&w));
		for (i = 0; i < n; i++) {
			if (widths[i] == 0)
				ck_assert_uint_eq(
				    reader_u8(&r), (uint8_t)values[i]);
			else if (widths[i] == 1)
				ck_assert_uint_eq(
				    reader_u16(&r), (uint16_t)values[i]);
			else if (widths[i] == 2)
				ck_assert_uint_eq(
				    reader_u32(&r), (uint32_t)values[i]);
			else
				ck_assert(reader_u64(&r) == values[i]);
		}
		ck_assert(reader_done(&r));
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("writer");
	TCase *tc = tcase_create("writer");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, little_endian);
	tcase_add_test(tc, exact_fit);
	tcase_add_test(tc, overflow_is_sticky);
	tcase_add_test(tc, huge_length);
	tcase_add_test(tc, patching);
	tcase_add_test(tc, space);
	tcase_add_test(tc, an_encoder_fails_it);
	tcase_add_test(tc, reader_inverts);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
