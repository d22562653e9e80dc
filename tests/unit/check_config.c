/*
 * Rules, trackers and the small sections: every key with good and bad values,
 * by the exact line that a bad one gives, and every default.
 */
#include "daemon/config.h"

#include "tests/unit/config_edit.h"

START_TEST(test_rules)
{
	static const struct edit edits[] = {
	    POSITIVE("rules.checkout.resources.0.limit",
		"rules.checkout.resources[0].limit"),
	    POSITIVE("rules.checkout.resources.0.window_ms",
		"rules.checkout.resources[0].window_ms"),
	    POSITIVE("rules.checkout.guards.0.below_ms",
		"rules.checkout.guards[0].below_ms"),
	    RANGE("rules.checkout.resources.0.tokens",
		"rules.checkout.resources[0].tokens", 1, 65535, 0, 65536),
	    {"rules.checkout.resources.0.bucket", NULL,
		"rules.checkout.resources[0].bucket: is missing"},
	    {"rules.checkout.guards.0.tracker", NULL,
		"rules.checkout.guards[0].tracker: is missing"},
	    {"rules.checkout.guards.0.tracker", "\"nobody\"",
		"rules.checkout.guards[0].tracker: no tracker has this name"},
	    {"rules.checkout.guards.0.tracker", "1",
		"rules.checkout.guards[0].tracker: must be a string"},
	    {"rules.checkout.guards.0.below", "1",
		"rules.checkout.guards[0].below: unknown key"},
	    {"rules.checkout.tenant", "\"nobody\"",
		"rules.checkout.tenant: no tenant has this name"},
	    {"rules.checkout.tenant", NULL,
		"rules.checkout.tenant: is missing, and there are 2 tenants"},
	    {"rules.checkout.label", "\"\"", NULL},
	    {"rules.checkout.label", "7",
		"rules.checkout.label: must be a string"},
	    {"rules.checkout.label", "\"a\\tb\"",
		"rules.checkout.label: must not hold control characters"},
	    {"rules.checkout.resources", "[]", NULL},
	    {"rules.checkout.resources", "{}",
		"rules.checkout.resources: must be an array"},
	    {"rules.checkout.resources.0", "3",
		"rules.checkout.resources[0]: must be an object"},
	    {"rules.checkout.on_failure", "\"closed\"", NULL},
	    {"rules.checkout.on_failure", "\"shut\"",
		"rules.checkout.on_failure: must be \"open\", \"closed\" or "
		"{\"local\": {}}"},
	    {"rules.checkout.mode", "\"enforce\"", NULL},
	    {"rules.checkout.mode", "\"shadow\"", NULL},
	    {"rules.checkout.mode", "\"x\"",
		"rules.checkout.mode: must be one of \"enforce\", \"shadow\""},
	    {"rules.checkout.coalesce", "false", NULL},
	    {"rules.checkout.coalesce", "true",
		"rules.checkout.coalesce: not yet supported"},
	    {"rules.checkout.coalesce", "0",
		"rules.checkout.coalesce: must be true or false"},
	    {"rules.na:me.limit", "0", "rules[\"na.me\"].limit: unknown key"},
	    {"rules", "{\"\":{\"tenant\":\"main\"}}",
		"rules[\"\"]: must be 1..255 bytes long"},
	    {"rules", "{\"a\\nb\":{\"tenant\":\"main\"}}",
		"rules[\"a\\u000ab\"]: must not hold control characters"},
	    {"rules", "{\"_a\":3,\"b\\\"\\\\\":{\"x\":1}}",
		"rules[\"b\\\"\\\\\"].x: unknown key"},
	    {"rules", "[]", "rules: must be an object"},
	};

	RUN(edits);
}
END_TEST

START_TEST(test_shadow)
{
	char err[CONFIG_ERR_MAX], *text;
	struct config *c;

	for (int shadow = 0; shadow < 2; shadow++) {
		text = edited(&(struct edit){"rules.checkout.mode",
		    shadow ? "\"shadow\"" : "\"enforce\"", NULL});
		c = fixture_parse(text, err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_int_eq(c->rules[0].shadow, shadow);
		ck_assert_int_eq(c->rules[0].on_failure, FAILURE_OPEN);
		ck_assert(!c->rules[1].shadow);
		ck_assert_uint_eq(c->warning_count, 0);
		config_unref(c);
		free(text);
	}
}
END_TEST

#define BRACE \
	": a brace must be part of {key}, {uid}, {gid}, {listener}, {{ or }}"

START_TEST(test_names_with_placeholders)
{
	static const char *const good[] = {"{key}", "a{uid}b{gid}c{listener}",
	    "{{}}", "{{key}}", "{{{key}", "{key}{key}", "plain", "caf\\u00e9"};
	static const char *const bad[] = {
	    "{", "}", "{k}", "{KEY}", "a{key", "key}", "{{}", "{}"};
	char value[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		snprintf(value, sizeof(value), "\"%s\"", good[i]);
		run_edits(&(struct edit){"rules.checkout.resources.0.bucket",
			      value, NULL},
		    1);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(value, sizeof(value), "\"%s\"", bad[i]);
		run_edits(
		    &(struct edit){"rules.checkout.resources.0.bucket", value,
			"rules.checkout.resources[0].bucket" BRACE},
		    1);
	}
	run_edits(&(struct edit){"trackers.a{uid}", "{}", NULL}, 1);
	run_edits(
	    &(struct edit){"trackers.a{u}", "{}", "trackers[\"a{u}\"]" BRACE},
	    1);
}
END_TEST

START_TEST(test_trackers)
{
	static const struct edit edits[] = {
	    POSITIVE("trackers.inventory.ttl_ms", "trackers.inventory.ttl_ms"),
	    POSITIVE("trackers.inventory.max_samples",
		"trackers.inventory.max_samples"),
	    POSITIVE("trackers.inventory.buffer_size",
		"trackers.inventory.buffer_size"),
	    POSITIVE("trackers.inventory.min_samples",
		"trackers.inventory.min_samples"),
	    {"trackers.inventory.min", "1",
		"trackers.inventory.min: unknown key"},
	    {"trackers.inventory", "[]",
		"trackers.inventory: must be an object"},
	};

	RUN(edits);
}
END_TEST

START_TEST(test_sections)
{
	static const struct edit edits[] = {
	    {"control", NULL, NULL},
	    {"control.path", "null", NULL},
	    {"control.path", "\"/run/y/c\"", NULL},
	    {"control.path", "\"c\"",
		"control.path: must be the absolute path of a file"},
	    {"control.path", "\"/run/x/second.sock\"",
		"control.path: is the path of listener second, too"},
	    {"control.mode", "\"rw\"",
		"control.mode: must be a string of octal digits, as in "
		"\"0660\""},
	    {"control.group", "null", "control.group: unknown key"},
	    RANGE("limits.max_inflight", "limits.max_inflight", 1, 1048576, 0,
		1048577),
	    RANGE("limits.max_inflight_per_uid", "limits.max_inflight_per_uid",
		1, 1048576, 0, 1048577),
	    RANGE("limits.max_connections_per_uid",
		"limits.max_connections_per_uid", 1, 65536, 0, 65537),
	    {"log.level", "\"error\"", NULL},
	    {"log.level", "\"debug\"", NULL},
	    {"log.level", "\"trace\"",
		"log.level: must be one of \"error\", \"warning\", "
		"\"info\", \"debug\""},
	    {"gateway", "{}", NULL},
	    {"_anything", "[1.5,{\"a\":null}]", NULL},
	    {"rules._x", "1", NULL},
	    {"rules.checkout._x", "1", NULL},
	    {"rules.checkout.resources.0._x", "1", NULL},
	    {"tenants.main.key._x", "1", NULL},
	    {"Rules", "{}", "Rules: unknown key"},
	    {"ru\tles", "{}", "[\"ru\\u0009les\"]: unknown key"},
	};

	RUN(edits);
}
END_TEST

START_TEST(test_tables_are_sorted_and_whole)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(base, err);
	const struct config_rule *rule;

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->tenant_count, 2);
	ck_assert_str_eq(c->tenants[0].name, "main");
	ck_assert_ptr_eq(config_tenant(c, "other", 5), &c->tenants[1]);
	ck_assert_ptr_null(config_tenant(c, "othe", 4));
	ck_assert_ptr_null(config_tenant(c, "other\0", 6));
	ck_assert_ptr_null(config_tenant(c, NULL, 0));
	ck_assert_ptr_eq(config_tracker(c, "inventory", 9), c->trackers);
	rule = config_rule(c, "checkout", 8);
	ck_assert_ptr_eq(rule, &c->rules[0]);
	ck_assert_uint_eq(rule->tenant, 0);
	ck_assert_uint_eq(config_rule(c, "na.me", 5)->tenant, 1);
	ck_assert_uint_eq(rule->resources[0].window_ms, 1000);
	ck_assert_uint_eq(rule->resources[0].limit, 100);
	ck_assert_uint_eq(rule->resources[0].tokens, 1);
	ck_assert_uint_eq(rule->guards[0].below_ms, 100);
	ck_assert_str_eq(rule->label, "");
	ck_assert_uint_eq(c->trackers[0].ttl_ms, 10000);
	ck_assert_uint_eq(c->trackers[0].max_samples, 100);
	ck_assert_uint_eq(c->trackers[0].buffer_size, 32);
	ck_assert_uint_eq(c->trackers[0].min_samples, 5);
	ck_assert_str_eq(c->control.path, "/run/x/control.sock");
	ck_assert_uint_eq(c->control.mode, 0600);
	ck_assert_uint_eq(c->limits.max_inflight, 65536);
	ck_assert_uint_eq(c->limits.max_inflight_per_uid, 16384);
	ck_assert_uint_eq(c->limits.max_connections_per_uid, 512);
	ck_assert_int_eq(c->level, LEVEL_INFO);
	ck_assert_uint_eq(c->top_denied_keys, 0);
	ck_assert_uint_eq(config_max_horizon_ms(c), 60);
	config_unref(c);
}
END_TEST

/* As many rules as that, with so many keys of each. */
static struct config *
with_top_keys(unsigned int rules, unsigned int keys, char *err)
{
	static char text[64 * 1024];
	size_t len = 0;

	len += (size_t)snprintf(text, sizeof(text),
	    "{\"metrics\":{\"top_denied_keys\":%u},\"tenants\":{\"t\":"
	    "{\"key\":{\"env\":\"RATELIMITLY_AUTH_KEY\"}}},\"rules\":{",
	    keys);
	for (unsigned int i = 0; i < rules; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s\"r%u\":{}", i > 0 ? "," : "", i);
	snprintf(text + len, sizeof(text) - len, "}}");
	return fixture_parse(text, err);
}

START_TEST(test_top_denied_keys)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = with_top_keys(1024, 64, err);

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->top_denied_keys, 64);
	config_unref(c);
	ck_assert_ptr_null(with_top_keys(1025, 64, err));
	ck_assert_str_eq(err,
	    "t.json: metrics.top_denied_keys: 64 keys of each of 1025 rules "
	    "are more than 65536 keys");
	c = with_top_keys(1025, 0, err);
	ck_assert_msg(c != NULL, "%s", err);
	config_unref(c);
}
END_TEST

/* Against the order of the file, comments between; listeners keep it. */
START_TEST(test_order)
{
	static const char text[] =
	    "{\"tenants\":{"
	    "\"t3\":{\"key\":{\"env\":\"RLA_TEST_AES\"},"
	    "\"on_failure\":\"closed\"},\"_\":1,"
	    "\"t1\":{\"key\":{\"env\":\"RATELIMITLY_AUTH_KEY\"}},"
	    "\"t2\":{\"key\":{\"env\":\"RLA_TEST_WINDOW\"}}},"
	    "\"trackers\":{\"z\":{\"ttl_ms\":26},\"_z\":1,"
	    "\"b\":{\"ttl_ms\":2},\"a\":{\"ttl_ms\":1}},"
	    "\"rules\":{"
	    "\"r2\":{\"tenant\":\"t2\",\"guards\":[{\"tracker\":\"z\"}]},"
	    "\"r1\":{\"tenant\":\"t1\"},\"_r\":1},"
	    "\"listeners\":{\"l2\":{\"path\":\"/run/l2/s\"},"
	    "\"l1\":{\"path\":\"/run/l1/s\"}}}";
	static const uint32_t ttls[] = {1, 2, 26};
	char err[CONFIG_ERR_MAX], name[3] = "t1";
	struct config *c = fixture_parse(text, err);

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->tenant_count, 3);
	ck_assert_uint_eq(c->tracker_count, 3);
	for (size_t i = 0; i < 3; i++) {
		name[1] = (char)('1' + i);
		ck_assert_str_eq(c->tenants[i].name, name);
		ck_assert_ptr_eq(config_tenant(c, name, 2), &c->tenants[i]);
		ck_assert_uint_eq(c->trackers[i].ttl_ms, ttls[i]);
	}
	ck_assert_int_eq(c->tenants[0].cred.auth, AUTH_COOKIE);
	ck_assert_int_eq(c->tenants[2].cred.auth, AUTH_AES);
	ck_assert_int_eq(c->tenants[2].on_failure, FAILURE_CLOSED);
	ck_assert_uint_eq(c->rule_count, 2);
	ck_assert_str_eq(c->rules[0].name, "r1");
	ck_assert_uint_eq(c->rules[1].tenant, 1);
	ck_assert_uint_eq(c->rules[1].guards[0].tracker, 2);
	ck_assert_uint_eq(c->listener_count, 2);
	ck_assert_str_eq(c->listeners[0].name, "l2");
	ck_assert_str_eq(c->control.path, "/run/l2/control.sock");
	config_unref(c);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config");
	TCase *tc = tcase_create("keys");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_rules);
	tcase_add_test(tc, test_shadow);
	tcase_add_test(tc, test_names_with_placeholders);
	tcase_add_test(tc, test_trackers);
	tcase_add_test(tc, test_sections);
	tcase_add_test(tc, test_tables_are_sorted_and_whole);
	tcase_add_test(tc, test_top_denied_keys);
	tcase_add_test(tc, test_order);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
