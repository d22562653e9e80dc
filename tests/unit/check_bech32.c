/*
 * Bech32: the examples of BIP 173, each rule that can be broken, and the
 * inverse. Texts with broken padding are made with a checksum of the test's
 * own, since bech32_encode() cannot make them.
 */
#include "proto/bech32.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"

static const char charset[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static int
decode(const char *text, char hrp[128], uint8_t out[128], size_t *len)
{
	return bech32_decode(text, strlen(text), hrp, 128, out, 128, len);
}

/* BIP 173's own description of the checksum, on an array of 5-bit values. */
static uint32_t
polymod(const uint8_t *v, size_t n)
{
	uint32_t c = 1;
	size_t i;

	for (i = 0; i < n; i++) {
		uint8_t c0 = (uint8_t)(c >> 25);

		c = ((c & 0x1ffffff) << 5) ^ v[i];
		c ^= (c0 & 1 ? 0x3b6a57b2 : 0) ^ (c0 & 2 ? 0x26508e6d : 0) ^
		     (c0 & 4 ? 0x1ea119fa : 0) ^ (c0 & 8 ? 0x3d4233dd : 0) ^
		     (c0 & 16 ? 0x2a1462b3 : 0);
	}
	return c;
}

/* "k1" and the groups with their checksum, xor-ed with constant. */
static void
make(const uint8_t *groups, size_t n, uint32_t constant, char *out)
{
	uint8_t v[128] = {'k' >> 5, 0, 'k' & 31};
	uint32_t sum;
	size_t i;

	memcpy(v + 3, groups, n);
	sum = polymod(v, 3 + n + 6) ^ constant;
	*out++ = 'k';
	*out++ = '1';
	for (i = 0; i < n; i++)
		*out++ = charset[groups[i]];
	for (i = 0; i < 6; i++)
		*out++ = charset[sum >> 5 * (5 - i) & 31];
	*out = '\0';
}

START_TEST(bip173_valid)
{
	/* The last but one is over 90 characters: no limit here. */
	static const struct {
		const char *text, *hrp;
		size_t len;
	} rows[] = {
	    {"A12UEL5L", "a", 0},
	    {"a12uel5l", "a", 0},
	    {"an83characterlonghumanreadablepartthatcontainsthenumber1and"
	     "theexcludedcharactersbio1tt5tgs",
		"an83characterlonghumanreadablepartthatcontainsthenumber1andth"
		"eexcludedcharactersbio",
		0},
	    {"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw", "abcdef", 20},
	    {"11qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"
	     "qqqqqqqqqqqqqqqqqqqqqqc8247j",
		"1", 51},
	    {"split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
		"split", 30},
	    {"an84characterslonghumanreadablepartthatcontainsthenumber1and"
	     "theexcludedcharactersbio1569pvx",
		"an84characterslonghumanreadablepartthatcontainsthenumber1andt"
		"heexcludedcharactersbio",
		0},
	    {"?1ezyfcl", "?", 0},
	};
	char hrp[128];
	uint8_t out[128];
	size_t i, len;

	for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		ck_assert_msg(decode(rows[i].text, hrp, out, &len) == 0,
		    "refused: %s", rows[i].text);
		ck_assert_str_eq(hrp, rows[i].hrp);
		ck_assert_uint_eq(len, rows[i].len);
	}
	ck_assert_int_eq(decode(rows[3].text, hrp, out, &len), 0);
	ck_assert_mem_eq(out,
	    "\x00\x44\x32\x14\xc7\x42\x54\xb6\x35\xcf\x84\x65\x3a\x56\xd7\xc6"
	    "\x75\xbe\x77\xdf",
	    20);
}
END_TEST

START_TEST(bip173_invalid)
{
	static const char *const rows[] = {
	    "\x20"
	    "1nwldj5", /* character below 33 */
	    "\x7f"
	    "1axkwrx", /* above 126 */
	    "\x80"
	    "1eym55h",
	    "pzry9x0s0muk",  /* no separator */
	    "1pzry9x0s0muk", /* empty human-readable part */
	    "10a06t8",
	    "1qzzfhee",
	    "x1b4n0q5v", /* data character outside the set */
	    "li1dgmt3",  /* checksum too short */
	    "de1lg7wt\xff",
	    "A1G7SGD8", /* checksum made over an upper-case part */
	    "A12uel5l", /* mixed case */
	    "a12UEL5L",
	    "a12uel5L",
	    "",
	    "1",
	    "a1",
	    "a12uel5",
	    "a12uel5m",
	};
	char hrp[128];
	uint8_t out[128];
	size_t i, len;

	for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ck_assert_msg(decode(rows[i], hrp, out, &len) == RLA_EKEYTEXT,
		    "row %zu accepted", i);
	ck_assert_int_eq(
	    bech32_decode("a1\0002uel5l", 9, hrp, 128, out, 128, &len),
	    RLA_EKEYTEXT);
}
END_TEST

/* Bech32m differs in the constant only, and is not Bech32. */
START_TEST(checksum_constant)
{
	static const uint8_t groups[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	char text[128], hrp[128];
	uint8_t out[128];
	size_t len;

	make(groups, 8, 1, text);
	ck_assert_int_eq(decode(text, hrp, out, &len), 0);
	ck_assert_uint_eq(len, 5);
	make(groups, 8, 0x2bc830a3, text);
	ck_assert_int_eq(decode(text, hrp, out, &len), RLA_EKEYTEXT);
	make(groups, 8, 0, text);
	ck_assert_int_eq(decode(text, hrp, out, &len), RLA_EKEYTEXT);
}
END_TEST

/* Every count of groups, with every pattern in the last one. */
START_TEST(padding)
{
	uint8_t groups[16], out[128];
	char text[128], hrp[128];
	size_t n, len, bits;
	uint8_t last;

	memset(groups, 21, sizeof groups);
	for (n = 1; n <= 16; n++) {
		bits = n * 5 % 8;
		for (last = 0; last < 32; last++) {
			bool good =
			    bits < 5 && (last & ((1u << bits) - 1)) == 0;

			groups[n - 1] = last;
			make(groups, n, 1, text);
			ck_assert_int_eq(decode(text, hrp, out, &len),
			    good ? 0 : RLA_EKEYTEXT);
			if (good)
				ck_assert_uint_eq(len, n * 5 / 8);
		}
		groups[n - 1] = 21;
	}
}
END_TEST

/* A code of distance 4 finds every one and two changed characters. */
START_TEST(every_substitution_is_found)
{
	char text[128], hrp[128], keep;
	uint8_t bytes[13], out[128];
	size_t i, j, len, start;

	memset(bytes, 0x5c, sizeof bytes);
	ck_assert_int_eq(
	    bech32_encode("rl-none", bytes, sizeof bytes, text, 128), 0);
	start = strlen("rl-none1");
	for (i = start; text[i] != '\0'; i++) {
		keep = text[i];
		for (j = 0; j < 32; j++) {
			text[i] = charset[j];
			ck_assert_int_eq(decode(text, hrp, out, &len),
			    charset[j] == keep ? 0 : RLA_EKEYTEXT);
		}
		text[i] = keep;
	}
	for (i = start; text[i + 1] != '\0'; i++) {
		if (text[i] == text[i + 1])
			continue;
		keep = text[i];
		text[i] = text[i + 1];
		text[i + 1] = keep;
		ck_assert_int_eq(decode(text, hrp, out, &len), RLA_EKEYTEXT);
		text[i + 1] = text[i];
		text[i] = keep;
	}
}
END_TEST

START_TEST(room)
{
	static const char text[] =
	    "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw";
	char hrp[128], copy[64];
	uint8_t out[128];
	size_t len = 77;

	memset(out, 0xaa, sizeof out);
	memset(hrp, 'z', sizeof hrp);
	/* Too small by one: refused, and nothing written. */
	ck_assert_int_eq(
	    bech32_decode(text, strlen(text), hrp, 6, out, 20, &len),
	    RLA_ETOOBIG);
	ck_assert_int_eq(
	    bech32_decode(text, strlen(text), hrp, 7, out, 19, &len),
	    RLA_ETOOBIG);
	ck_assert_uint_eq(len, 77);
	ck_assert_uint_eq(out[0], 0xaa);
	ck_assert_int_eq(hrp[0], 'z');
	ck_assert_int_eq(
	    bech32_decode(text, strlen(text), hrp, 7, out, 20, &len), 0);
	ck_assert_uint_eq(out[20], 0xaa);
	ck_assert_int_eq(hrp[7], 'z');
	memset(copy, 'z', sizeof copy);
	ck_assert_int_eq(
	    bech32_encode("abcdef", out, 20, copy, strlen(text)), RLA_ETOOBIG);
	ck_assert_int_eq(copy[0], 'z');
	ck_assert_int_eq(
	    bech32_encode("abcdef", out, 20, copy, strlen(text) + 1), 0);
	ck_assert_str_eq(copy, text);
}
END_TEST

START_TEST(round_trip)
{
	uint64_t seed = harness_seed();
	uint8_t bytes[100], out[128];
	char text[256], hrp[128];
	size_t len, got, i;
	int round;

	for (round = 0; round < 2000; round++) {
		len = harness_below(&seed, sizeof bytes + 1);
		harness_fill(&seed, bytes, len);
		ck_assert_int_eq(
		    bech32_encode("rl-x1", bytes, len, text, sizeof text), 0);
		if (round % 2 == 1) {
			for (i = 0; text[i] != '\0'; i++) {
				if (text[i] >= 'a' && text[i] <= 'z')
					text[i] -= 'a' - 'A';
			}
		}
		ck_assert_int_eq(decode(text, hrp, out, &got), 0);
		ck_assert_str_eq(hrp, "rl-x1");
		ck_assert_uint_eq(got, len);
		ck_assert_int_eq(memcmp(out, bytes, len), 0);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("bech32");
	TCase *tc = tcase_create("bech32");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, bip173_valid);
	tcase_add_test(tc, bip173_invalid);
	tcase_add_test(tc, checksum_constant);
	tcase_add_test(tc, padding);
	tcase_add_test(tc, every_substitution_is_found);
	tcase_add_test(tc, room);
	tcase_add_test(tc, round_trip);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
