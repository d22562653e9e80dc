/*
 * Lines for people: one line, UTF-8, cut between characters, no key in it,
 * whatever bytes went in.
 */
#include "daemon/message.h"

#include <string.h>

#include "tests/unit/harness.h"

static char out[64];

START_TEST(bytes)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
	    {"", ""}, {"plain ~", "plain ~"}, {"\x01\n\r\t\x1f\x7f", "??????"},
	    {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
	    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, /* the last one */
	    {"a\x80z", "a?z"},                        /* a lone tail */
	    {"a\xffz", "a?z"}, {"a\xc3z", "a?z"},     /* a lone head */
	    {"a\xe2\x82z", "a??z"},                   /* half of one */
	    {"\xc0\xaf", "??"},                       /* overlong */
	    {"\xe0\x80\xaf", "???"},                  /* overlong */
	    {"\xf0\x80\x80\xaf", "????"},
	    {"\xed\xa0\x80", "???"},      /* a surrogate */
	    {"\xf4\x90\x80\x80", "????"}, /* past the last */
	    {"\xf5\x80\x80\x80", "????"},
	    {"a\xc2\x80\xc2\x9f\xc2\xa0z", "a??\xc2\xa0z"}, /* C1 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		message_format(out, sizeof(out), "%s", rows[i].in);
		ck_assert_str_eq(out, rows[i].out);
	}
}
END_TEST

START_TEST(a_cut_is_between_characters)
{
	char room[8];

	for (size_t cap = 1; cap <= sizeof(room); cap++) {
		message_format(room, cap,
		    "\xe2\x82\xac\xe2\x82\xac"
		    "ab");
		ck_assert_str_eq(room, cap < 4   ? ""
				       : cap < 7 ? "\xe2\x82\xac"
				       : cap < 8 ? "\xe2\x82\xac\xe2\x82\xac"
						 : "\xe2\x82\xac\xe2\x82\xac"
						   "a");
	}
	room[0] = 'x';
	message_format(room, 0, "y");
	ck_assert_int_eq(room[0], 'x');
}
END_TEST

START_TEST(keys_are_hidden)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
	    {"rl-aes1qqqq", "rl-aes1..."},
	    {"x RL-COOKIE1QQ'y", "x RL-COOKIE1..'y"},
	    {"\"rl-none1abcd\" rl-secret1abcd.", "\"rl-none1...\" "
						 "rl-secret1..."},
	    {"rl-aes", "rl-aes"},
	    /* A control character in the middle parts nothing. */
	    {"rl-aes1qq\nqq", "rl-aes1..."},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		message_format(out, sizeof(out), "%s", rows[i].in);
		ck_assert_str_eq(out, rows[i].out);
	}
}
END_TEST

START_TEST(any_bytes_give_one_clean_line)
{
	uint64_t seed = harness_seed();
	char in[48];

	for (int n = 0; n < 20000; n++) {
		harness_fill(&seed, in, sizeof(in) - 1);
		in[sizeof(in) - 1] = '\0';
		message_format(
		    out, 1 + harness_below(&seed, sizeof(out)), "%s", in);
		for (const char *p = out; *p != '\0'; p++)
			ck_assert((unsigned char)*p >= 0x20 && *p != 0x7f);
		/* What was cleaned is clean. */
		strcpy(in, out);
		message_format(out, sizeof(out), "%s", in);
		ck_assert_str_eq(out, in);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("message");
	TCase *tc = tcase_create("message");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, bytes);
	tcase_add_test(tc, a_cut_is_between_characters);
	tcase_add_test(tc, keys_are_hidden);
	tcase_add_test(tc, any_bytes_give_one_clean_line);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
