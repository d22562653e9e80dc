/*
 * Fields of the log: whatever a value holds, the line is read back to it by a
 * reader that knows nothing but the grammar of rl-agent(8), and wherever a line
 * is cut, what is left is whole.
 */
#include "daemon/log_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

#define FIELDS_MAX 8

static char out[4096];

struct field {
	char name[32];
	char value[1024];
	size_t len;
	bool quoted;
};

static struct field fields[FIELDS_MAX];

__attribute__((format(printf, 2, 3))) static const char *
format(size_t cap, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	memset(out, 'x', sizeof(out));
	va_start(ap, fmt);
	len = log_vformat(out, cap, fmt, ap);
	va_end(ap);
	ck_assert_uint_lt(len, cap);
	ck_assert_uint_eq(len, strlen(out));
	ck_assert_int_eq(out[cap], 'x');
	return out;
}

static int
hex(char c)
{
	ck_assert_ptr_nonnull(c != '\0' ? strchr("0123456789abcdef", c) : NULL);
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* What is in quotes; returns what follows. */
static const char *
read_quoted(const char *p, struct field *f)
{
	while (*p != '"') {
		ck_assert_uint_ge((unsigned char)*p, ' ');
		if (*p != '\\') {
			f->value[f->len++] = *p++;
		} else if (p[1] == 'x') {
			f->value[f->len++] = (char)(hex(p[2]) * 16 + hex(p[3]));
			p += 4;
		} else {
			ck_assert(p[1] == '"' || p[1] == '\\');
			f->value[f->len++] = p[1];
			p += 2;
		}
	}
	return p + 1;
}

/* NAME=VALUE, one blank between two; how many. */
static size_t
read_back(const char *p)
{
	size_t count = 0, n;

	memset(fields, 0, sizeof(fields));
	while (*p != '\0') {
		struct field *f = &fields[count++];

		ck_assert_uint_le(count, FIELDS_MAX);
		n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
		ck_assert_uint_gt(n, 0);
		memcpy(f->name, p, n);
		ck_assert_int_eq(p[n], '=');
		p += n + 1;
		f->quoted = *p == '"';
		if (f->quoted) {
			p = read_quoted(p + 1, f);
		} else {
			f->len = strcspn(p, " \"\\=");
			ck_assert_uint_gt(f->len, 0);
			memcpy(f->value, p, f->len);
			p += f->len;
		}
		ck_assert(*p == '\0' || (*p == ' ' && p[1] != '\0'));
		p += *p == ' ';
	}
	return count;
}

START_TEST(conversions)
{
	ck_assert_str_eq(format(99, "a=%d b=%u c=%zu d=%" PRIu64 " e=%" PRId64,
			     -1, 4294967295U, (size_t)7, UINT64_MAX, INT64_MIN),
	    "a=-1 b=4294967295 c=7 d=18446744073709551615 "
	    "e=-9223372036854775808");
	ck_assert_str_eq(format(99, "f=%.15g g=%.15g h=5%%", 0.1, 1e300),
	    "f=0.1 g=1e+300 h=5%");
	errno = ENOENT;
	ck_assert_str_eq(format(99, "e=%m i=\"%m\""),
	    "e=\"No such file or directory\" "
	    "i=\"No such file or directory\"");
	ck_assert_str_eq(
	    format(99, "e=\"%s, see %s\"", "a", "b\""), "e=\"a, see b\\\"\"");
}
END_TEST

START_TEST(words_stand_alone)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
	    {"yes", "v=yes"},
	    {"a.b/c:d-1", "v=a.b/c:d-1"},
	    {"", "v=\"\""},
	    {"a b", "v=\"a b\""},
	    {"a=b", "v=\"a=b\""},
	    {"a\"b", "v=\"a\\\"b\""},
	    {"a\\b", "v=\"a\\\\b\""},
	    {"a\nb", "v=\"a\\x0ab\""},
	    {"\x7f", "v=\"\\x7f\""},
	    {"\xc2\x9b", "v=\"\\xc2\\x9b\""},
	    {"\xff", "v=\"\\xff\""},
	    {"gr\xc3\xbc\xc3\x9f", "v=\"gr\xc3\xbc\xc3\x9f\""},
	};

	const char *volatile none = NULL; /* the compiler warns of NULL */

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_str_eq(format(99, "v=%s", rows[i].in), rows[i].out);
	ck_assert_str_eq(format(99, "v=\"%s\"", "yes"), "v=\"yes\"");
	ck_assert_str_eq(
	    format(99, "v=\"%s\" w=%s x=%.*s", none, none, 3, none),
	    "v=\"\" w=\"\" x=\"\"");
}
END_TEST

START_TEST(a_key_is_no_text)
{
	static const char key[] = "rl-aes1qvqqqqqqqq";

	ck_assert_str_eq(format(99, "k=%s", key), "k=\"rl-aes1...\"");
	ck_assert_str_eq(format(99, "k=\"x%s y\"", key), "k=\"xrl-aes1... y\"");
	ck_assert_str_eq(format(99, "k=%.*s", (int)sizeof(key) - 1, key),
	    "k=\"rl-aes1...\"");
	/* No byte after the end is looked at. */
	ck_assert_str_eq(format(99, "k=%.*s", 6, key), "k=rl-aes");
	ck_assert_str_eq(format(99, "k=%.*s", 9, key), "k=\"rl-aes1..\"");
}
END_TEST

START_TEST(every_byte_comes_back)
{
	uint64_t seed = harness_seed();
	char value[256];
	size_t i, turn, len;
	int b;

	for (b = 0; b < 256; b++)
		value[b] = (char)b;
	format(4000, "a=%.*s b=\"%.*s\" c=%u", 256, value, 256, value, 5U);
	ck_assert_uint_eq(read_back(out), 3);
	for (i = 0; i < 2; i++) {
		ck_assert_uint_eq(fields[i].len, 256);
		ck_assert_mem_eq(fields[i].value, value, 256);
	}
	for (turn = 0; turn < 20000; turn++) {
		len = harness_below(&seed, 20);
		for (i = 0; i < len; i++)
			value[i] = "\"\\ =\nx\xc3\xa4\xe2\x82\xac\x9b"
				   "r"[harness_below(&seed, 12)];
		format(4000, "a=%.*s b=\"%.*s\" c=%s", (int)len, value,
		    (int)len, value, "end");
		ck_assert_uint_eq(read_back(out), 3);
		for (i = 0; i < 2; i++) {
			ck_assert_uint_eq(fields[i].len, len);
			ck_assert_mem_eq(fields[i].value, value, len);
		}
		ck_assert_str_eq(fields[2].value, "end");
	}
}
END_TEST

/* Each length that a line can have. */
START_TEST(a_cut_leaves_whole_fields)
{
	static const char a[] = "say \"a\\b\"\n\xe2\x82\xac";
	size_t cap, count, most = 0;

	for (cap = 2; cap < 100; cap++) {
		count =
		    read_back(format(cap, "n=%u a=\"%s\" w=%s b=\"%s\" z=%u",
			123456U, a, "word", "more", 99U));
		ck_assert_uint_ge(count, most);
		most = count;
		if (count > 0)
			ck_assert_str_eq(fields[0].value, "123456");
		if (count > 1)
			ck_assert_mem_eq(fields[1].value, a, fields[1].len);
		if (count > 2) {
			ck_assert_str_eq(fields[1].value, a);
			ck_assert_str_eq(fields[2].value, "word");
		}
		if (count > 3)
			ck_assert_mem_eq(
			    fields[3].value, "more", fields[3].len);
		if (count > 4) {
			ck_assert_str_eq(fields[3].value, "more");
			ck_assert_str_eq(fields[4].value, "99");
		}
	}
	ck_assert_uint_eq(most, 5);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log_format");
	TCase *tc = tcase_create("log_format");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, conversions);
	tcase_add_test(tc, words_stand_alone);
	tcase_add_test(tc, a_key_is_no_text);
	tcase_add_test(tc, every_byte_comes_back);
	tcase_add_test(tc, a_cut_leaves_whole_fields);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
