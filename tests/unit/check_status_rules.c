/*
 * The documents of RULES and EXPLAIN: every field, as the configuration has
 * it or as a check would be sent, for whoever asks and whatever is wrong.
 */
#include "daemon/status_rules.h"

#include <jansson.h>
#include <stdio.h>

#include "tests/unit/config_fixture.h"
#include "tests/unit/harness.h"

#define CHECKOUT_ID  "f5cf3ad8b8406854b596ba3614f16eff"
#define INVENTORY_V1 "0320bf15b884bda367a17e5ffb650441"
#define INVENTORY_V2 "6a17d07a424568304e50d28540f76e67"

#define TENANT(name, key, server) \
	"\"" name "\":{\"key\":" ENV(key) ",\"servers\":[" server "]}"
#define SERVER(id)   "{\"id\":\"" id "\",\"address\":\"[::1]:9\"}"
#define BUCKET(name) "{\"bucket\":\"" name "\"}"
#define GUARD        "{\"tracker\":\"big\"}"
#define FOUR         GUARD "," GUARD "," GUARD "," GUARD

/* Rules are sorted by name. */
enum { ALL, BARE, BIG, MANY, MOST, V2 };

static const char text_all[] = "{\"tenants\":{" TENANT("one",
    "RATELIMITLY_AUTH_KEY",
    SERVER("7") "," SERVER("8")) "," TENANT("two", "RLA_TEST_WINDOW",
    SERVER(
	"9")) "},"
	      "\"trackers\":{\"inventory-backend\":{},\"inventory-{key}\":{"
	      "\"ttl_ms\":10001,\"max_samples\":101,\"buffer_size\":33,"
	      "\"min_samples\":6},\"big\":{\"buffer_size\":65}},"
	      "\"rules\":{"
	      "\"all\":{\"tenant\":\"one\",\"label\":\"d\u00e9p\u00f4t\","
	      "\"resources\":[" BUCKET(
		  "checkout") ",{\"bucket\":\"{uid}:{key}\","
			      "\"window_ms\":60000,\"limit\":5,\"tokens\":3}],"
			      "\"guards\":[{\"tracker\":\"inventory-backend\"},"
			      "{\"tracker\":\"inventory-{key}\",\"below_ms\":250}]},"
			      "\"bare\":{\"tenant\":\"one\"},"
			      "\"big\":{\"tenant\":\"one\",\"guards\":[" GUARD
			      "]},"
			      "\"many\":{\"tenant\":\"one\",\"guards\":[" FOUR
			      "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR
			      "," FOUR "]},"
			      "\"most\":{\"tenant\":\"one\",\"guards\":[" FOUR
			      "," FOUR "," FOUR "," FOUR "," FOUR "," FOUR
			      "," FOUR
			      "],\"resources\":[" BUCKET("a") "," BUCKET("b") "," BUCKET("c") "," BUCKET("d") "," BUCKET("e") "," BUCKET("f") "," BUCKET("g") "," BUCKET(
				  "h") "," BUCKET("i") "," BUCKET("j") "," BUCKET("k") "," BUCKET("l") "," BUCKET("m") "]},"
														       "\"v2\":{\"tenant\":\"two\",\"resources\":[" BUCKET(
															   "checkout") "],"
																       "\"guards\":[{\"tracker\":\"inventory-backend\"}]}},"
																       "\"listeners\":{\"main\":{\"path\":\"/nowhere/a.sock\"},"
																       "\"some\":{\"path\":\"/nowhere/b.sock\",\"rules\":[\"b*\"]}}}";

static struct loop *loop;
static struct random_pool *randoms;
static struct setup setup;
static struct tenant *tenants[2];
static struct rule_counters counts[8];
static struct rules_caller caller;
static json_t *root;

static void
start(void)
{
	char err[CONFIG_ERR_MAX];

	fixture_keys();
	loop = loop_new();
	randoms = random_pool_new();
	setup.generation = 3;
	setup.config = fixture_parse(text_all, err);
	ck_assert_msg(setup.config != NULL, "%s", err);
	setup.rules = rules_new(setup.config);
	ck_assert_ptr_nonnull(setup.rules);
	setup.tenants = tenants;
	setup.counters = counts;
	for (size_t i = 0; i < 2; i++) {
		tenants[i] = tenant_new(
		    loop, randoms, &setup.config->tenants[i], 16, err);
		ck_assert_msg(tenants[i] != NULL, "%s", err);
	}
	caller =
	    (struct rules_caller){.uid = 1000, .gid = 1000, .listener = "main"};
}

static void
stop(void)
{
	json_decref(root);
	root = NULL;
	for (size_t i = 0; i < 2; i++)
		tenant_free(tenants[i]);
	rules_free(setup.rules);
	config_unref(setup.config);
	random_pool_free(randoms);
	loop_free(loop);
}

static json_t *
parsed(char *text)
{
	json_error_t error;

	ck_assert_ptr_nonnull(text);
	json_decref(root);
	root =
	    json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	ck_assert_msg(root != NULL, "%s: %s", error.text, text);
	ck_assert_ptr_null(strstr(text, "rl-cookie"));
	free(text);
	return root;
}

/* The value of a name, or the whole with NULL, is this JSON, in this order. */
static void
same(const json_t *from, const char *name, const char *want)
{
	char *got =
	    json_dumps(name != NULL ? json_object_get(from, name) : from,
		JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

	ck_assert_msg(got != NULL, "no %s", name);
	ck_assert_str_eq(got, want);
	free(got);
}

static const struct config_listener *
listener(size_t i)
{
	return &setup.config->listeners[i];
}

static void
use_key(const char *key)
{
	caller.key = (const uint8_t *)key;
	caller.key_len = strlen(key);
}

static json_t *
explain(const struct config_listener *by, size_t rule, uint32_t tokens)
{
	return parsed(status_explain(
	    &setup, by, &setup.config->rules[rule], &caller, tokens));
}

static json_t *
block(const char *list, size_t i)
{
	return json_array_get(json_object_get(root, list), i);
}

static json_t *
rule(const struct config_listener *by, size_t i)
{
	return json_array_get(
	    json_object_get(parsed(status_rules(&setup, by)), "rules"), i);
}

START_TEST(rules)
{
	char hash[2 * CONFIG_HASH_LEN + 3] = "\"";

	counts[ALL].checks = 12;
	counts[ALL].would_deny = 1;
	counts[V2].reports = UINT32_MAX;
	same(rule(NULL, ALL), NULL,
	    "{\"name\":\"all\",\"tenant\":\"one\","
	    "\"label\":\"d\u00e9p\u00f4t\",\"mode\":\"enforce\","
	    "\"on_failure\":\"open\",\"offered\":null,\"resources\":["
	    "{\"bucket\":\"checkout\",\"window_ms\":1000,\"limit\":100,"
	    "\"tokens\":1},{\"bucket\":\"{uid}:{key}\",\"window_ms\":60000,"
	    "\"limit\":5,\"tokens\":3}],\"guards\":["
	    "{\"tracker\":\"inventory-backend\",\"below_ms\":100},"
	    "{\"tracker\":\"inventory-{key}\",\"below_ms\":250}],"
	    "\"counters\":{\"checks\":12,\"allowed\":0,\"denied\":0,"
	    "\"failed\":0,\"cancelled\":0,\"permitted\":0,\"would_deny\":1,"
	    "\"local\":0,\"reports\":0}}");
	ck_assert_uint_eq(json_object_size(root), 3);
	same(root, "generation", "3");
	for (size_t i = 0; i < CONFIG_HASH_LEN; i++)
		sprintf(hash + 1 + 2 * i, "%02x\"", setup.config->hash[i]);
	same(root, "config_hash", hash);
	ck_assert_uint_eq(json_array_size(json_object_get(root, "rules")), 6);
	same(json_object_get(rule(NULL, V2), "counters"), "reports",
	    "4294967295");
	same(rule(NULL, V2), "tenant", "\"two\"");
	same(rule(NULL, BARE), "guards", "[]");
	same(rule(NULL, BARE), "label", "\"\"");
}
END_TEST

START_TEST(what_a_rule_does_when_it_fails)
{
	struct config_rule *r = &setup.config->rules[ALL];

	r->shadow = true;
	r->on_failure = FAILURE_LOCAL;
	r->local = (struct config_rate){100000000000, 250000, 7};
	same(rule(NULL, ALL), "mode", "\"shadow\"");
	same(rule(NULL, ALL), "on_failure",
	    "{\"local\":{\"permits_per_second\":0.1,"
	    "\"max_burst_seconds\":0.25,\"max_keys\":7}}");
	explain(NULL, ALL, 1);
	same(root, "mode", "\"shadow\"");
	same(root, "on_failure",
	    "{\"local\":{\"permits_per_second\":0.1,"
	    "\"max_burst_seconds\":0.25,\"max_keys\":7}}");
	r->on_failure = FAILURE_CLOSED;
	same(rule(NULL, ALL), "on_failure", "\"closed\"");
}
END_TEST

START_TEST(who_is_offered_it)
{
	same(rule(listener(0), ALL), "offered", "true");
	same(rule(listener(1), ALL), "offered", "false");
	same(rule(listener(1), BARE), "offered", "true");
	use_key("k");
	same(explain(listener(0), ALL, 1), "offered", "true");
	same(root, "error", "null");
	same(explain(listener(1), ALL, 1), "offered", "false");
	same(root, "error",
	    "{\"reason\":\"unauthorised\","
	    "\"text\":\"this listener does not offer the rule\"}");
	same(block("resources", 0), "id", "\"" CHECKOUT_ID "\"");
	/* Before anything else that is wrong, as a check has it. */
	caller.key = NULL;
	same(json_object_get(explain(listener(1), ALL, 0), "error"), "reason",
	    "\"unauthorised\"");
	same(explain(NULL, ALL, 1), "offered", "null");
}
END_TEST

START_TEST(all_of_a_check)
{
	for (int i = 0; i < 4; i++)
		loop_turn(loop); /* static servers are reported in one */
	use_key("backend");
	same(explain(NULL, ALL, 7), NULL,
	    "{\"rule\":\"all\",\"tenant\":\"one\",\"key_id\":\"2\","
	    "\"profile\":\"v1\",\"label\":\"d\u00e9p\u00f4t\","
	    "\"mode\":\"enforce\",\"on_failure\":\"open\",\"offered\":null,"
	    "\"error\":null,\"resources\":["
	    "{\"bucket\":\"checkout\",\"window_ms\":1000,\"limit\":100,"
	    "\"tokens\":7,\"name\":\"checkout\",\"id\":\"" CHECKOUT_ID "\"},"
	    "{\"bucket\":\"{uid}:{key}\",\"window_ms\":60000,\"limit\":5,"
	    "\"tokens\":21,\"name\":\"1000:backend\","
	    "\"id\":\"891a82c93b8a1ea3b1de17ef08ee06c8\"}],"
	    "\"guards\":[{\"tracker\":\"inventory-backend\","
	    "\"below_ms\":100,\"name\":\"inventory-backend\","
	    "\"id\":\"" INVENTORY_V1 "\",\"ttl_ms\":10000,"
	    "\"max_samples\":100,\"buffer_size\":32,\"min_samples\":5},"
	    "{\"tracker\":\"inventory-{key}\",\"below_ms\":250,"
	    "\"name\":\"inventory-backend\","
	    "\"id\":\"81d060e2fe8972a487225f6128c3c256\",\"ttl_ms\":10001,"
	    "\"max_samples\":101,\"buffer_size\":33,\"min_samples\":6}],"
	    "\"datagram_bytes\":240,\"datagram_max\":1200,\"servers\":2,"
	    "\"dedup_ttl_ms\":60,\"default_deadline_ms\":1060,"
	    "\"policy\":{\"unit_ms\":20,\"replay_count\":1,\"replay_gap\":{"
	    "\"fixed\":1},\"preference\":{\"fixed\":1},"
	    "\"final_receive_units\":1,\"final_preference_units\":0,"
	    "\"completion_delivery\":true,\"suspect_after\":0}}");
	explain(NULL, V2, 1);
	same(root, "profile", "\"v2\"");
	same(root, "servers", "1");
	same(block("guards", 0), "id", "\"" INVENTORY_V2 "\"");
	same(block("resources", 0), "id", "\"" CHECKOUT_ID "\"");
}
END_TEST

START_TEST(without_the_key_that_a_name_needs)
{
	explain(listener(0), ALL, 2);
	same(root, "error",
	    "{\"reason\":\"validation\",\"text\":"
	    "\"tracker \\\"inventory-{key}\\\" needs a key\"}");
	same(block("resources", 0), "name", "\"checkout\"");
	same(block("resources", 0), "tokens", "2");
	same(block("resources", 1), "name", "null");
	same(block("resources", 1), "id", "null");
	same(block("resources", 1), "tokens", "6");
	same(block("resources", 1), "bucket", "\"{uid}:{key}\"");
	same(block("guards", 0), "id", "\"" INVENTORY_V1 "\"");
	same(block("guards", 1), "name", "null");
	same(block("guards", 1), "id", "null");
	same(block("guards", 1), "min_samples", "6");
}
END_TEST

/* JSON carries UTF-8 only. */
START_TEST(keys_of_any_bytes)
{
	caller.key = (const uint8_t *)"\xff\0~\x7f";
	caller.key_len = 4;
	explain(NULL, ALL, 1);
	same(root, "error", "null");
	same(block("resources", 1), "name", "\"1000:\\\\xff\\\\x00~\\\\x7f\"");
	caller.key = (const uint8_t *)"\xc3\xa9\0";
	caller.key_len = 3;
	explain(NULL, ALL, 1);
	same(block("resources", 1), "name", "\"1000:\u00e9\\u0000\"");
	use_key("");
	explain(NULL, ALL, 1);
	same(block("resources", 1), "name", "\"1000:\"");

	/* The longest, each byte of which takes four. */
	static uint8_t longest[CONFIG_NAME_MAX - 5];
	char want[4 * CONFIG_NAME_MAX];

	memset(longest, 0xFE, sizeof(longest));
	caller.key = longest;
	caller.key_len = sizeof(longest);
	explain(NULL, ALL, 1);
	strcpy(want, "1000:");
	for (size_t i = 0; i < sizeof(longest); i++)
		strcat(want, "\\xfe");
	ck_assert_str_eq(
	    json_string_value(json_object_get(block("resources", 1), "name")),
	    want);
	/* Too long for a tracker's name. */
	same(block("guards", 1), "name", "null");
}
END_TEST

/* Names and ids are there where nothing is wrong with them. */
START_TEST(what_else_a_check_fails_by)
{
	use_key("k");
	explain(NULL, ALL, 0);
	same(root, "error",
	    "{\"reason\":\"validation\","
	    "\"text\":\"tokens must be 1..65535, not 0\"}");
	same(block("resources", 0), "tokens", "0");
	same(block("resources", 1), "name", "\"1000:k\"");
	explain(NULL, ALL, UINT32_MAX);
	same(block("resources", 1), "tokens", "12884901885");
	explain(NULL, ALL, 65535);
	same(json_object_get(root, "error"), "text",
	    "\"resources[1].tokens: 65535 times 3 tokens is over 65535\"");

	explain(NULL, BIG, 1);
	same(json_object_get(root, "error"), "reason", "\"validation\"");
	same(block("guards", 0), "name", "\"big\"");
	same(block("guards", 0), "buffer_size", "65");
	explain(NULL, MANY, 1);
	same(root, "datagram_bytes", "1208");
	same(json_object_get(root, "error"), "text",
	    "\"the request of 1208 bytes does not fit a datagram of 1200\"");
	explain(NULL, MOST, 1);
	same(root, "datagram_bytes", "null");
	same(json_object_get(root, "error"), "reason", "\"validation\"");
	same(block("resources", 12), "name", "\"m\"");
}
END_TEST

START_TEST(a_check_that_asks_for_nothing)
{
	explain(NULL, BARE, 1);
	same(root, "error", "null");
	same(root, "resources", "[]");
	same(root, "guards", "[]");
	same(root, "datagram_bytes", "0");
	same(root, "servers", "0"); /* not known yet */
}
END_TEST

START_TEST(the_longest_deadline)
{
	setup.config->tenants[1].plan.ttl_ms = UINT32_MAX - 999;
	same(explain(NULL, BARE, 1), "default_deadline_ms", "4294967295");
	setup.config->tenants[1].plan.ttl_ms = UINT32_MAX - 1001;
	same(explain(NULL, BARE, 1), "default_deadline_ms", "4294967294");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("status_rules");
	TCase *tc = tcase_create("rules");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, start, stop);
	tcase_add_test(tc, rules);
	tcase_add_test(tc, what_a_rule_does_when_it_fails);
	tcase_add_test(tc, who_is_offered_it);
	tcase_add_test(tc, all_of_a_check);
	tcase_add_test(tc, without_the_key_that_a_name_needs);
	tcase_add_test(tc, keys_of_any_bytes);
	tcase_add_test(tc, what_else_a_check_fails_by);
	tcase_add_test(tc, a_check_that_asks_for_nothing);
	tcase_add_test(tc, the_longest_deadline);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
