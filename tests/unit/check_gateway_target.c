/*
 * What a target and a form ask for: routes, escapes, parameters, and for what
 * is wrong the status and the line. Random bytes never do harm.
 */
#include "daemon/gateway_target.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct gateway_ask ask;
static char text[GATEWAY_TEXT_MAX];

static void
expect_rule(const char *rule)
{
	ck_assert_uint_eq(ask.rule_len, strlen(rule));
	ck_assert_mem_eq(ask.rule, rule, ask.rule_len);
}

static void
expect_key(const char *key)
{
	ck_assert_int_eq(ask.has_key, key != NULL);
	if (key == NULL)
		return;
	ck_assert_uint_eq(ask.key_len, strlen(key));
	ck_assert_mem_eq(ask.key, key, ask.key_len);
}

START_TEST(test_routes)
{
	static const struct {
		const char *target;
		enum gateway_route route;
	} cases[] = {
	    {"/metrics", GATEWAY_METRICS},
	    {"/metrics?name[]=x", GATEWAY_METRICS},
	    {"/healthz", GATEWAY_HEALTHZ},
	    {"/readyz", GATEWAY_READYZ},
	    {"http://host:80/readyz", GATEWAY_READYZ},
	    {"HTTPS://host/check/a", GATEWAY_CHECK},
	    {"/check/a", GATEWAY_CHECK},
	    {"/check/a?", GATEWAY_CHECK},
	    {"/check/a/", GATEWAY_ORIGINAL},
	    {"/check/a/b/c?key=x&nonsense&%zz", GATEWAY_ORIGINAL},
	    {"/check/a//", GATEWAY_ORIGINAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(
		    gateway_target_read(cases[i].target, &ask, text), 0);
		ck_assert_int_eq(ask.route, cases[i].route);
		if (ask.route == GATEWAY_CHECK || ask.route == GATEWAY_ORIGINAL)
			expect_rule("a");
		expect_key(NULL);
		ck_assert_uint_eq(ask.tokens, 1);
	}
}
END_TEST

START_TEST(test_no_route)
{
	static const char *const targets[] = {"", "/", "*", "/check", "/check/",
	    "/check?key=a", "/check//a", "/check/?key=a", "/Check/a",
	    "/metrics/", "/healthzz", "/health", "a", "check/a", "http://",
	    "http://check/a", "http:///check", "localhost:80", "/%63heck/a",
	    "//check/a", "/../check/a"};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		if (strcmp(targets[i], "http://check/a") == 0)
			continue; /* of a host called check: /a */
		ck_assert_msg(
		    gateway_target_read(targets[i], &ask, text) == 404, "%s",
		    targets[i]);
		ck_assert_str_eq(text,
		    "there are /check/RULE, /metrics, /healthz and /readyz");
	}
	ck_assert_int_eq(
	    gateway_target_read("http://check/a", &ask, text), 404);
}
END_TEST

START_TEST(test_values)
{
	static const struct {
		const char *target, *rule, *key;
		uint32_t tokens;
	} cases[] = {
	    {"/check/a?key=x", "a", "x", 1},
	    {"/check/a?key=", "a", "", 1},
	    {"/check/a?key=x=y", "a", "x=y", 1},
	    {"/check/a?tokens=1", "a", NULL, 1},
	    {"/check/a?tokens=65535&key=k", "a", "k", 65535},
	    {"/check/a?&&tokens=007&", "a", NULL, 7},
	    {"/check/a%2Fb%20c+d?key=%2f%41+%2B%26", "a/b c+d", "/A +&", 1},
	    {"/check/%ff%FE", "\xff\xfe", NULL, 1},
	    {"/check/a?%6bey=%c3%a9", "a", "\xc3\xa9", 1},
	    {"/check/a%3Fkey=x", "a?key=x", NULL, 1},
	    {"/check/a?key=a#b", "a", "a#b", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(
		    gateway_target_read(cases[i].target, &ask, text) == 0,
		    "%s: %s", cases[i].target, text);
		expect_rule(cases[i].rule);
		expect_key(cases[i].key);
		ck_assert_uint_eq(ask.tokens, cases[i].tokens);
	}
}
END_TEST

#define HEX   "has a % without two hexadecimal digits"
#define RANGE "tokens: must be from 1 to 65535"

START_TEST(test_bad_values)
{
	static const struct {
		const char *target, *error;
	} cases[] = {
	    {"/check/%?key=x", "rule: " HEX},
	    {"/check/a%2", "rule: " HEX},
	    {"/check/a%2g", "rule: " HEX},
	    {"/check/a%00", "rule: holds a NUL byte"},
	    {"/check/a?key=%0", "key: " HEX},
	    {"/check/a?key=%%", "key: " HEX},
	    {"/check/a?key=x%00", "key: holds a NUL byte"},
	    {"/check/a?key", "key: has no value"},
	    {"/check/a?key=a&key=a", "key: is given twice"},
	    {"/check/a?tokens=1&tokens=1", "tokens: is given twice"},
	    {"/check/a?tokens", "tokens: has no value"},
	    {"/check/a?tokens=", RANGE},
	    {"/check/a?tokens=0", RANGE},
	    {"/check/a?tokens=65536", RANGE},
	    {"/check/a?tokens=18446744073709551617", RANGE},
	    {"/check/a?tokens=-1", "tokens: must be a number"},
	    {"/check/a?tokens=+1", "tokens: must be a number"},
	    {"/check/a?tokens=1.0", "tokens: must be a number"},
	    {"/check/a?tokens=1%20", "tokens: must be a number"},
	    {"/check/a?%zz=1", "the name of a parameter: " HEX},
	    {"/check/a?%00=1", "the name of a parameter: holds a NUL byte"},
	    {"/check/a?Key=x",
		"unknown parameter \"Key\": there are key and tokens"},
	    {"/check/a?=x", "unknown parameter \"\": there are key and tokens"},
	    {"/check/a?keys=x&key=y",
		"unknown parameter \"keys\": there are key and tokens"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(
		    gateway_target_read(cases[i].target, &ask, text) == 400,
		    "%s", cases[i].target);
		ck_assert_str_eq(text, cases[i].error);
	}
}
END_TEST

/* At both ends of what fits. */
START_TEST(test_lengths)
{
	char long_text[300], target[1024];

	memset(long_text, 'k', sizeof(long_text));
	long_text[CONFIG_NAME_MAX] = '\0';
	snprintf(
	    target, sizeof(target), "/check/%s?key=%s", long_text, long_text);
	ck_assert_int_eq(gateway_target_read(target, &ask, text), 0);
	expect_rule(long_text);
	expect_key(long_text);
	long_text[CONFIG_NAME_MAX] = 'k';
	long_text[CONFIG_NAME_MAX + 1] = '\0';
	snprintf(target, sizeof(target), "/check/%s", long_text);
	ck_assert_int_eq(gateway_target_read(target, &ask, text), 400);
	ck_assert_str_eq(text, "rule: is longer than 255 bytes");
	snprintf(target, sizeof(target), "/check/a?key=%s", long_text);
	ck_assert_int_eq(gateway_target_read(target, &ask, text), 400);
	ck_assert_str_eq(text, "key: is longer than 255 bytes");
	snprintf(target, sizeof(target), "/check/a?%s=", long_text);
	ck_assert_int_eq(gateway_target_read(target, &ask, text), 400);
	ck_assert_str_eq(
	    text, "the name of a parameter: is longer than 255 bytes");
}
END_TEST

START_TEST(test_query_and_form)
{
	ck_assert_int_eq(gateway_target_read("/check/a?key=x", &ask, text), 0);
	ck_assert_int_eq(gateway_form_read("tokens=2", 8, &ask, text), 0);
	expect_key("x");
	ck_assert_uint_eq(ask.tokens, 2);
	ck_assert_int_eq(gateway_form_read("key=x", 5, &ask, text), 400);
	ck_assert_str_eq(text, "key: is given twice");
	ck_assert_int_eq(gateway_target_read("/check/a", &ask, text), 0);
	ck_assert_int_eq(gateway_form_read("key=a+b", 7, &ask, text), 0);
	expect_key("a b");
	ck_assert_int_eq(gateway_form_read("", 0, &ask, text), 0);
	ck_assert_int_eq(gateway_form_read("key=\0x", 6, &ask, text), 400);
	ck_assert_str_eq(text, "key: holds a NUL byte");
}
END_TEST

START_TEST(test_key_of_a_header)
{
	char longest[CONFIG_NAME_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	ck_assert_int_eq(
	    gateway_target_read("/check/a/b?key=c", &ask, text), 0);
	expect_key(NULL);
	ck_assert_int_eq(gateway_key_read("a+%41", 5, &ask, text), 0);
	expect_key("a+%41");
	ck_assert_int_eq(gateway_key_read("a\0b", 3, &ask, text), 400);
	ck_assert_int_eq(
	    gateway_key_read(longest, sizeof(longest), &ask, text), 400);
	ck_assert_int_eq(
	    gateway_key_read(longest, sizeof(longest) - 1, &ask, text), 0);
	ck_assert_uint_eq(ask.key_len, CONFIG_NAME_MAX);
}
END_TEST

/* Whatever comes: a route, or an error with a line. */
START_TEST(test_random)
{
	static const char *const parts[] = {"/check/", "?", "&",
	    "key=", "tokens=", "%", "%2f", "%00", "+", "=", "/", "a", "7",
	    "\xff", "http://", "#", "\x7f", "/metrics"};
	uint64_t r = harness_seed();
	char target[256];
	int status;

	for (int i = 0; i < 200000; i++) {
		target[0] = '\0';
		for (uint64_t n = harness_below(&r, 12); n > 0; n--)
			strcat(target, parts[harness_below(&r,
					   sizeof(parts) / sizeof(parts[0]))]);
		text[0] = '\0';
		status = gateway_target_read(target, &ask, text);
		ck_assert(status == 0 || status == 400 || status == 404);
		ck_assert_int_eq(status != 0, text[0] != '\0');
		ck_assert(ask.rule_len <= CONFIG_NAME_MAX);
		ck_assert(ask.tokens >= 1 && ask.tokens <= 65535);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("gateway_target");
	TCase *tc = tcase_create("target");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_routes);
	tcase_add_test(tc, test_no_route);
	tcase_add_test(tc, test_values);
	tcase_add_test(tc, test_bad_values);
	tcase_add_test(tc, test_lengths);
	tcase_add_test(tc, test_query_and_form);
	tcase_add_test(tc, test_key_of_a_header);
	tcase_add_test(tc, test_random);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
