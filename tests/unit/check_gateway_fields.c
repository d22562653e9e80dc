/*
 * RateLimit-Policy and RateLimit, byte for byte; what structured fields cannot
 * hold, and what does not fit.
 */
#include "daemon/gateway_fields.h"

#include <string.h>

#include "tests/unit/harness.h"

static char out[GATEWAY_FIELD_MAX];
static struct ipc_decision d;

static struct config_resource resources[] = {
    {.bucket = "secret:{key}", .window_ms = 60000, .limit = 100, .tokens = 1},
    {.bucket = "b", .window_ms = 1500, .limit = UINT32_MAX, .tokens = 1},
    {.bucket = "c", .window_ms = 1000, .limit = 5, .tokens = 1},
};

static struct config_rule rule = {
    .name = "checkout",
    .label = "shop",
    .resource_count = 3,
    .resources = resources,
};

START_TEST(test_policy)
{
	struct config_rule none = {.name = "none"};

	gateway_fields_policy(&rule, out);
	ck_assert_str_eq(out,
	    "\"checkout.0\";q=100;w=60, \"checkout.1\";q=4294967295, "
	    "\"checkout.2\";q=5;w=1");
	gateway_fields_policy(&none, out);
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(test_limit)
{
	d.has = IPC_HAS_DETAIL | IPC_HAS_SERVER;
	d.resource_count = 3;
	d.resources[0] = (struct ipc_resource_result){
	    .window_ms = 60000, .limit = 100, .tokens = 1, .actual_rate = 58};
	d.resources[1] = (struct ipc_resource_result){
	    .window_ms = 1500, .limit = 10, .tokens = 1, .actual_rate = 11};
	d.resources[2] = (struct ipc_resource_result){.window_ms = 10000,
	    .limit = 5,
	    .tokens = 1,
	    .actual_rate = 5,
	    .deficit = 1};
	gateway_fields_limit(&rule, &d, out);
	ck_assert_str_eq(out,
	    "\"checkout.0\";r=42, \"checkout.1\";r=0, \"checkout.2\";r=0;t=2");
	/* It can never be granted: nothing to wait for. */
	d.resources[2].tokens = 6;
	gateway_fields_limit(&rule, &d, out);
	ck_assert_ptr_nonnull(strstr(out, "\"checkout.2\";r=0"));
	ck_assert_ptr_null(strstr(out, ";t="));
	/* Nobody has counted. */
	d.has = 0;
	gateway_fields_limit(&rule, &d, out);
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(test_names)
{
	static const struct {
		const char *name, *item;
	} cases[] = {
	    {"a b~", "\"a b~.0\";q=5;w=1"},
	    {"a\"b\\c", "\"a\\\"b\\\\c.0\";q=5;w=1"},
	    {"h\xc3\xa9%", "\"h%C3%A9%25.0\";q=5;w=1"},
	    {"a\x7f\n", "\"a%7F%0A.0\";q=5;w=1"},
	};
	struct config_rule named = {
	    .resource_count = 1, .resources = &resources[2]};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		named.name = (char *)(uintptr_t)cases[i].name;
		gateway_fields_policy(&named, out);
		ck_assert_str_eq(out, cases[i].item);
	}
}
END_TEST

/* Whole items, as many as there is room for. */
START_TEST(test_room)
{
	struct config_resource many[40];
	char name[CONFIG_NAME_MAX + 1];
	struct config_rule large = {
	    .name = name, .resource_count = 40, .resources = many};
	size_t items = 1;

	for (size_t i = 0; i < 40; i++)
		many[i] = resources[0];
	memset(name, 0xc3, CONFIG_NAME_MAX);
	name[CONFIG_NAME_MAX] = '\0';
	gateway_fields_policy(&large, out);
	ck_assert_uint_lt(strlen(out), GATEWAY_FIELD_MAX);
	for (const char *at = out; (at = strstr(at, ", ")) != NULL; at++)
		items++;
	ck_assert_uint_eq(items, 5);
	ck_assert_str_eq(out + strlen(out) - 14, ".4\";q=100;w=60");
	strcpy(name, "x");
	gateway_fields_policy(&large, out);
	ck_assert_ptr_nonnull(strstr(out, "\"x.39\";q=100;w=60"));
}
END_TEST

START_TEST(test_seconds)
{
	ck_assert_uint_eq(gateway_fields_seconds(0), 0);
	ck_assert_uint_eq(gateway_fields_seconds(1), 1);
	ck_assert_uint_eq(gateway_fields_seconds(1000), 1);
	ck_assert_uint_eq(gateway_fields_seconds(1001), 2);
	ck_assert_uint_eq(gateway_fields_seconds(UINT32_MAX), 4294968);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("gateway_fields");
	TCase *tc = tcase_create("fields");

	tcase_add_test(tc, test_policy);
	tcase_add_test(tc, test_limit);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_room);
	tcase_add_test(tc, test_seconds);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
