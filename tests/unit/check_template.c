/*
 * The scanner of names with placeholders: what it takes apart, put together
 * again, is the name.
 */
#include "daemon/template.h"

#include <string.h>

#include "tests/unit/harness.h"

/* The parts as a text: pieces as they are, placeholders as letters. */
static void
scan(const char *name, const char *expected, bool fixed)
{
	char out[256] = "";
	const char *at = name, *text = NULL;
	size_t len = 0;
	enum template_part part;

	do {
		part = template_next(&at, &text, &len);
		switch (part) {
		case TEMPLATE_TEXT:
			strncat(out, text, len);
			break;
		case TEMPLATE_KEY:
			strcat(out, "<K>");
			break;
		case TEMPLATE_UID:
			strcat(out, "<U>");
			break;
		case TEMPLATE_GID:
			strcat(out, "<G>");
			break;
		case TEMPLATE_LISTENER:
			strcat(out, "<L>");
			break;
		case TEMPLATE_BAD:
			strcat(out, "<bad>");
			strcat(out, at);
			break;
		case TEMPLATE_END:
			break;
		}
	} while (part != TEMPLATE_END && part != TEMPLATE_BAD);
	ck_assert_str_eq(out, expected);
	ck_assert_int_eq(template_fixed(name), fixed);
}

START_TEST(test_parts)
{
	scan("", "", true);
	scan("plain", "plain", true);
	scan("{key}", "<K>", false);
	scan("a{uid}b{gid}c{listener}d", "a<U>b<G>c<L>d", false);
	scan("{key}{key}", "<K><K>", false);
	scan("{{key}}", "{key}", true);
	scan("{{{key}}}", "{<K>}", false);
	scan("{{{{", "{{", true);
	scan("caf\xc3\xa9{{", "caf\xc3\xa9{", true);
}
END_TEST

START_TEST(test_bad)
{
	scan("{", "<bad>{", false);
	scan("a}b", "a<bad>}b", false);
	scan("a{keys}", "a<bad>{keys}", false);
	scan("{Key}", "<bad>{Key}", false);
	scan("{{}", "{<bad>}", false);
	scan("{}", "<bad>{}", false);
	scan("{key", "<bad>{key", false);
	scan("{ key}", "<bad>{ key}", false);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("template");
	TCase *tc = tcase_create("template");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_parts);
	tcase_add_test(tc, test_bad);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
