/*
 * Rules, trackers, listeners and the small sections: every key with good and
 * bad values, by the exact line that a bad one gives, and every default.
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
		"rules.checkout.on_failure: must be one of \"open\", "
		"\"closed\""},
	    {"rules.checkout.on_failure",
		"{\"local\":{\"permits_per_second\":1}}",
		"rules.checkout.on_failure.local: not yet supported"},
	    {"rules.checkout.on_failure", "{\"locall\":1}",
		"rules.checkout.on_failure.locall: unknown key"},
	    {"rules.checkout.mode", "\"enforce\"", NULL},
	    {"rules.checkout.mode", "\"shadow\"",
		"rules.checkout.mode: not yet supported"},
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

#define L "listeners.main"

/* 100 bytes of a path. */
#define S50  "/345678901234567890123456789012345678901234567890a"
#define S100 S50 S50

START_TEST(test_listeners)
{
	static const struct edit edits[] = {
	    {"listeners", NULL, NULL},
	    {"listeners", "{}", "listeners: must have 1..64 entries, not 0"},
	    {L ".path", "null", L ".path: must be a string"},
	    {L ".path", "\"agent.sock\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"/run/x/\"",
		L ".path: must be the absolute path of a file"},
	    {L ".path", "\"" S100 "1234567\"", NULL},
	    {L ".path", "\"" S100 "12345678\"",
		L ".path: must be 2..107 bytes long"},
	    {L ".path", "\"/run/x/second.sock\"",
		"listeners.second.path: is the path of listener main, too"},
	    {L ".path", "\"/run/x/control.sock\"",
		"control.path: is the path of listener main, too"},
	    {L ".mode", "\"0600\"", NULL},
	    {L ".mode", "\"777\"", NULL},
	    {L ".mode", "660",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"0680\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"1660\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".mode", "\"66\"",
		L ".mode: must be a string of octal digits, as in \"0660\""},
	    {L ".group", "null", NULL},
	    {L ".group", "\"root\"", NULL},
	    {L ".group", "\"no-such-group-here\"",
		L ".group: no group has this name"},
	    {L ".group", "0", L ".group: must be a string"},
	    {L ".rules", "[]", NULL},
	    {L ".rules", "[\"a*\",\"b\"]", NULL},
	    {L ".rules", "\"*\"", L ".rules: must be an array"},
	    {L ".rules", "[\"a\",\"\"]",
		L ".rules[1]: must be 1..255 bytes long"},
	    {L ".trackers", "[1]", L ".trackers[0]: must be a string"},
	    {L ".limiters", "[\"*\"]", NULL},
	    {L ".limiters", "[]", L ".limiters: not yet supported"},
	    {L ".limiters", "[7]", L ".limiters[0]: must be a string"},
	    {L ".error_controls", "[\"a\"]",
		L ".error_controls: not yet supported"},
	    BOOLEAN(L ".adhoc", L ".adhoc"),
	    {L ".uids", "[0,4294967294]", NULL},
	    {L ".uids", "[0,4294967295]",
		L ".uids[1]: must be 0..4294967294, not 4294967295"},
	    {L ".gids", "[\"wheel\"]", L ".gids[0]: must be an integer"},
	    RANGE(
		L ".max_connections", L ".max_connections", 1, 65536, 0, 65537),
	    RANGE(L ".max_inflight", L ".max_inflight", 1, 1048576, 0, 1048577),
	    {L ".backlog", "1", L ".backlog: unknown key"},
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
	    {"limiters", "{}", NULL},
	    {"limiters", "{\"_mail\":{}}", NULL},
	    {"limiters", "{\"mail\":{}}", "limiters: not yet supported"},
	    {"limiters", "[]", "limiters: must be an object"},
	    {"error_controls", "{\"smtp\":{}}",
		"error_controls: not yet supported"},
	    {"gateway", "{}", NULL},
	    {"gateway", "{\"front\":{}}", "gateway: not yet supported"},
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
	ck_assert_uint_eq(config_max_horizon_ms(c), 60);
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

START_TEST(test_default_listener)
{
	char err[CONFIG_ERR_MAX];
	struct config *c = fixture_parse(
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},\"rules\":{\"r\":{}}}",
	    err);
	const struct config_listener *l;

	ck_assert_msg(c != NULL, "%s", err);
	ck_assert_uint_eq(c->listener_count, 1);
	l = c->listeners;
	ck_assert_str_eq(l->name, "main");
	ck_assert_str_eq(l->path, "/run/rl-agent/agent.sock");
	ck_assert_uint_eq(l->mode, 0660);
	ck_assert_ptr_null(l->group);
	ck_assert(l->adhoc);
	ck_assert_uint_eq(l->uid_count + l->gid_count, 0);
	ck_assert_uint_eq(l->max_connections, 1024);
	ck_assert_uint_eq(l->max_inflight, 16384);
	ck_assert(config_allows(&l->rules, "r", 1));
	ck_assert(config_allows(&l->trackers, "a\0b", 3));
	ck_assert_str_eq(c->control.path, "/run/rl-agent/control.sock");
	/* With one tenant a rule need not name it, nor hold anything. */
	ck_assert_uint_eq(c->rules[0].tenant, 0);
	ck_assert_uint_eq(c->rules[0].resource_count, 0);
	config_unref(c);
}
END_TEST

START_TEST(test_patterns)
{
	char *list[] = {
	    (char *)"mail-*", (char *)"a[0-9]", (char *)"caf\u00e9"};
	struct config_patterns p = {3, list};

	ck_assert(config_allows(&p, "mail-in", 7));
	ck_assert(config_allows(&p, "mail-", 5));
	ck_assert(!config_allows(&p, "mail", 4));
	ck_assert(config_allows(&p, "a7", 2));
	ck_assert(!config_allows(&p, "a77", 3));
	ck_assert(!config_allows(&p, "mail-\0", 6));
	ck_assert(!config_allows(&p, "", 0));
	p.count = 0;
	ck_assert(!config_allows(&p, "mail-in", 7));
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
	tcase_add_test(tc, test_names_with_placeholders);
	tcase_add_test(tc, test_trackers);
	tcase_add_test(tc, test_listeners);
	tcase_add_test(tc, test_sections);
	tcase_add_test(tc, test_tables_are_sorted_and_whole);
	tcase_add_test(tc, test_order);
	tcase_add_test(tc, test_default_listener);
	tcase_add_test(tc, test_patterns);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
