/*
 * Names cut into parts: filled in, they are what the template says, at every
 * length; the fixed ones are known without a caller.
 */
#include "daemon/rules_name.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"

static const struct rules_caller nobody = {.listener = "main"};

static void
expand(const char *source, const struct rules_caller *caller, const char *want,
    bool fixed)
{
	uint8_t room[CONFIG_NAME_MAX];
	char text[RULES_TEXT_MAX] = "";
	struct rules_name n;
	struct ipc_str out;

	ck_assert_int_eq(rules_name_init(&n, "bucket", source), 0);
	ck_assert_msg(n.is_fixed == fixed, "%s", source);
	ck_assert_int_eq(rules_expand(&n, caller, room, &out, text), 0);
	ck_assert_uint_eq(out.len, strlen(want));
	ck_assert_mem_eq(out.bytes, want, out.len);
	ck_assert_ptr_eq(out.bytes, fixed ? n.fixed.bytes : room);
	rules_name_fini(&n);
}

static void
refused(const char *source, const struct rules_caller *caller, const char *want)
{
	uint8_t room[CONFIG_NAME_MAX];
	char text[RULES_TEXT_MAX] = "";
	struct rules_name n;
	struct ipc_str out;

	ck_assert_int_eq(rules_name_init(&n, "bucket", source), 0);
	ck_assert_int_eq(
	    rules_expand(&n, caller, room, &out, NULL), RLA_EINVAL);
	ck_assert_int_eq(
	    rules_expand(&n, caller, room, &out, text), RLA_EINVAL);
	ck_assert_str_eq(text, want);
	rules_name_fini(&n);
}

static struct rules_caller
caller_with(const char *key, size_t len)
{
	return (struct rules_caller){
	    .listener = "main", .key = (const uint8_t *)key, .key_len = len};
}

START_TEST(test_fixed)
{
	expand("checkout", NULL, "checkout", true);
	expand("checkout", &nobody, "checkout", true);
	expand("a{{b}}", NULL, "a{b}", true);
	expand("{{{{}}", NULL, "{{}", true);
}
END_TEST

START_TEST(test_placeholders)
{
	const struct rules_caller caller = {.uid = 1000,
	    .gid = 4294967294u,
	    .listener = "main",
	    .key = (const uint8_t *)"k",
	    .key_len = 1};
	const struct rules_caller root = {.listener = ""};

	expand("{key}", &caller, "k", false);
	expand("a{key}b{key}c", &caller, "akbkc", false);
	expand("{uid}/{gid}/{listener}/{{{key}}}", &caller,
	    "1000/4294967294/main/{k}", false);
	expand("u{uid}{listener}", &root, "u0", false);
}
END_TEST

START_TEST(test_numbers)
{
	static const struct {
		uid_t uid;
		const char *text;
	} rows[] = {{0, "0"}, {9, "9"}, {10, "10"}, {99, "99"}, {100, "100"},
	    {65534, "65534"}, {1000000000, "1000000000"},
	    {4294967294u, "4294967294"}};
	struct rules_caller caller = {.listener = "main"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		caller.uid = rows[i].uid;
		caller.gid = 7;
		expand("{uid}", &caller, rows[i].text, false);
		caller.uid = 7;
		caller.gid = rows[i].uid;
		expand("{gid}", &caller, rows[i].text, false);
	}
}
END_TEST

/* No process has the id -1: it stands for nothing being known. */
START_TEST(test_unknown_caller)
{
	const struct rules_caller unknown = {.uid = (uid_t)-1,
	    .gid = (gid_t)-1,
	    .listener = "main",
	    .key = (const uint8_t *)"k",
	    .key_len = 1};

	refused("a{uid}", &unknown,
	    "bucket \"a{uid}\" needs a caller whom the kernel knows: over TCP "
	    "there is no {uid} and no {gid}");
	refused("{key}{gid}", &unknown,
	    "bucket \"{key}{gid}\" needs a caller whom the kernel knows: over "
	    "TCP there is no {uid} and no {gid}");
	expand("{listener}/{key}", &unknown, "main/k", false);
}
END_TEST

START_TEST(test_refused)
{
	const struct rules_caller empty = caller_with("", 0);
	char key[CONFIG_NAME_MAX + 1], want[CONFIG_NAME_MAX + 1];
	struct rules_caller caller;

	refused("a{key}", &nobody, "bucket \"a{key}\" needs a key");
	refused("{key}", &empty,
	    "bucket \"{key}\" is empty with its placeholders filled in");
	expand("a{key}", &empty, "a", false);
	memset(key, 'k', sizeof(key));
	caller = caller_with(key, CONFIG_NAME_MAX);
	memset(want, 'k', CONFIG_NAME_MAX);
	want[CONFIG_NAME_MAX] = '\0';
	expand("{key}", &caller, want, false);
	refused("{key}b", &caller,
	    "bucket \"{key}b\" is longer than 255 bytes with its "
	    "placeholders filled in");
	refused("b{key}", &caller,
	    "bucket \"b{key}\" is longer than 255 bytes with its "
	    "placeholders filled in");
	caller.key_len = CONFIG_NAME_MAX - 1;
	memcpy(want + CONFIG_NAME_MAX - 1, "b", 1);
	expand("{key}b", &caller, want, false);
}
END_TEST

static uint8_t
varies(const char *source)
{
	struct rules_name n;
	uint8_t set;

	ck_assert_int_eq(rules_name_init(&n, "tracker", source), 0);
	set = rules_name_varies(&n);
	rules_name_fini(&n);
	return set;
}

START_TEST(test_varies)
{
	ck_assert_uint_eq(varies("fixed{{key}}"), 0);
	ck_assert_uint_eq(varies("{key}{key}"), 1U << TEMPLATE_KEY);
	ck_assert_uint_eq(varies("{uid}-{listener}"),
	    1U << TEMPLATE_UID | 1U << TEMPLATE_LISTENER);
	ck_assert_uint_eq(varies("{gid}"), 1U << TEMPLATE_GID);
}
END_TEST

/* Nothing that a name can be filled in to. */
START_TEST(test_empty)
{
	struct rules_name n;

	ck_assert_int_eq(rules_name_init(&n, "bucket", ""), RLA_EINVAL);
	rules_name_fini(&n);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rules_name");
	TCase *tc = tcase_create("rules_name");

	tcase_add_test(tc, test_fixed);
	tcase_add_test(tc, test_placeholders);
	tcase_add_test(tc, test_numbers);
	tcase_add_test(tc, test_unknown_caller);
	tcase_add_test(tc, test_refused);
	tcase_add_test(tc, test_varies);
	tcase_add_test(tc, test_empty);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
