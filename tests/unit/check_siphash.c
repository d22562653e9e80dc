/*
 * The hash against the values of its authors: key 00 01 .. 0f, message 00 01
 * and so on. The one of 15 bytes is the example in their paper.
 */
#include "daemon/core/siphash.h"

#include <string.h>

#include "tests/unit/harness.h"

static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

static const struct {
	size_t len;
	uint64_t hash;
} official[] = {
    {0, 0x726fdb47dd0e0e31},
    {1, 0x74f839c593dc67fd},
    {2, 0x0d6c8009d9a94f5a},
    {3, 0x85676696d7fb7e2d},
    {4, 0xcf2794e0277187b7},
    {5, 0x18765564cd99a68d},
    {6, 0xcbc9466e58fee3ce},
    {7, 0xab0200f58b01d137},
    {8, 0x93f5f5799a932462},
    {9, 0x9e0082df0ba9e4b0},
    {10, 0x7a5dbbc594ddb9f3},
    {11, 0xf4b32f46226bada7},
    {12, 0x751e8fbc860ee5fb},
    {13, 0x14ea5627c0843d90},
    {14, 0xf723ca908e7af2ee},
    {15, 0xa129ca6149be45e5},
    {16, 0x3f2acc7f57c29bdb},
    {17, 0x699ae9f52cbe4794},
    {31, 0x32d892fad841c342},
    {32, 0x7127512f72f27cce},
    {63, 0x958a324ceb064572},
};

START_TEST(as_its_authors_have_it)
{
	uint8_t message[64];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	ck_assert_uint_eq(
	    siphash(key, message, official[_i].len), official[_i].hash);
}
END_TEST

START_TEST(of_nothing)
{
	ck_assert_uint_eq(siphash(key, NULL, 0), official[0].hash);
}
END_TEST

/* Where the bytes lie is no part of it. */
START_TEST(at_any_address)
{
	uint8_t room[40];

	for (size_t at = 0; at < 8; at++) {
		for (size_t i = 0; i < 31; i++)
			room[at + i] = (uint8_t)i;
		ck_assert_uint_eq(
		    siphash(key, room + at, 31), UINT64_C(0x32d892fad841c342));
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("siphash");
	TCase *tc = tcase_create("siphash");

	tcase_add_loop_test(tc, as_its_authors_have_it, 0,
	    sizeof(official) / sizeof(*official));
	tcase_add_test(tc, of_nothing);
	tcase_add_test(tc, at_any_address);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
