/*
 * Names to wire requests: ids against the vectors, placeholders, token
 * arithmetic, what the key and a datagram allow, to the block.
 */
#include "daemon/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "tests/unit/config_fixture.h"
#include "tests/unit/harness.h"

#define CHECKOUT_ID  "f5cf3ad8b8406854b596ba3614f16eff"
#define INVENTORY_V1 "0320bf15b884bda367a17e5ffb650441"
#define INVENTORY_V2 "6a17d07a424568304e50d28540f76e67"

#define GUARD "{\"tracker\":\"other\"}"
#define FOUR  GUARD "," GUARD "," GUARD "," GUARD

static const char text_v1[] = "{\"tenants\":{\"v1\":{\"key\":" ENV(
    "RATELIMITLY_AUTH_KEY") "},"
			    "\"v2\":{\"key\":" ENV(
				"RLA_TEST_WINDOW") "}},"
						   "\"trackers\":{\"inventory-backend\":{},\"big\":{\"buffer_size\":65},"
						   "\"inventory-{key}\":{},\"other\":{}},"
						   "\"rules\":{"
						   "\"fixed\":{\"tenant\":\"v1\",\"label\":\"api\",\"resources\":["
						   "{\"bucket\":\"checkout\"}],"
						   "\"guards\":[{\"tracker\":\"inventory-backend\"}]},"
						   "\"v2\":{\"tenant\":\"v2\",\"resources\":[{\"bucket\":\"checkout\"}],"
						   "\"guards\":[{\"tracker\":\"inventory-backend\"},"
						   "{\"tracker\":\"big\"}]},"
						   "\"keyed\":{\"tenant\":\"v1\",\"resources\":["
						   "{\"bucket\":\"check{key}\",\"tokens\":3}],"
						   "\"guards\":[{\"tracker\":\"inventory-{key}\"}]},"
						   "\"kernel\":{\"tenant\":\"v1\",\"resources\":["
						   "{\"bucket\":\"{uid}/{gid}/{listener}/{{{key}}}\"}]},"
						   "\"braces\":{\"tenant\":\"v1\",\"resources\":["
						   "{\"bucket\":\"a{{b}}\"},{\"bucket\":\"{key}\"}]},"
						   "\"big\":{\"tenant\":\"v1\",\"guards\":[{\"tracker\":\"big\"}]},"
						   "\"window\":{\"tenant\":\"v2\",\"resources\":["
						   "{\"bucket\":\"a\",\"window_ms\":1025}]},"
						   "\"twice\":{\"tenant\":\"v1\",\"guards\":["
						   "{\"tracker\":\"inventory-backend\"},"
						   "{\"tracker\":\"inventory-{key}\"},"
						   "{\"tracker\":\"inventory-backend\",\"below_ms\":5},"
						   "{\"tracker\":\"other\"}]},"
						   "\"large\":{\"tenant\":\"v1\",\"guards\":[" FOUR
						   "," FOUR "," FOUR "," FOUR
						   "," FOUR "," FOUR "," FOUR
						   "]},"
						   "\"empty\":{\"tenant\":\"v1\"}}}";

static struct config *config;
static struct rules *rules;
static struct rules_request request;
static char text[RULES_TEXT_MAX];
static struct rules_caller caller;

static void
setup(void)
{
	char err[CONFIG_ERR_MAX];

	fixture_keys();
	config = fixture_parse(text_v1, err);
	ck_assert_msg(config != NULL, "%s", err);
	rules = rules_new(config);
	ck_assert_ptr_nonnull(rules);
	memset(&request, 0xAA, sizeof(request));
	caller = (struct rules_caller){
	    .uid = 1000, .gid = 4294967294u, .listener = "main"};
	text[0] = '\0';
}

static void
teardown(void)
{
	rules_free(rules);
	rules_free(NULL);
	config_unref(config);
}

static void
use_key(const char *key)
{
	caller.key = (const uint8_t *)key;
	caller.key_len = strlen(key);
}

static int
build(const char *rule, uint32_t tokens)
{
	return rules_build(rules, config_rule(config, rule, strlen(rule)),
	    &caller, tokens, &request, text);
}

static void
assert_id(const uint8_t id[ID_LEN], const char *hex)
{
	char shown[2 * ID_LEN + 1];

	for (size_t i = 0; i < ID_LEN; i++)
		snprintf(shown + 2 * i, 3, "%02x", id[i]);
	ck_assert_str_eq(shown, hex);
}

static void
assert_name(const struct ipc_str *name, const char *expected)
{
	ck_assert_uint_eq(name->len, strlen(expected));
	ck_assert_mem_eq(name->bytes, expected, name->len);
}

START_TEST(test_fixed_ids)
{
	const struct pdu_guard *g = request.rate.guards;

	ck_assert_int_eq(build("fixed", 1), 0);
	ck_assert_uint_eq(request.rate.resource_count, 1);
	ck_assert_uint_eq(request.rate.guard_count, 1);
	assert_id(request.rate.resources[0].id, CHECKOUT_ID);
	ck_assert_uint_eq(request.rate.resources[0].window_ms, 1000);
	ck_assert_uint_eq(request.rate.resources[0].limit, 100);
	ck_assert_uint_eq(request.rate.resources[0].tokens, 1);
	assert_id(g->id, INVENTORY_V1);
	ck_assert_uint_eq(g->ttl_ms, 10000);
	ck_assert_uint_eq(g->max_samples, 100);
	ck_assert_uint_eq(g->buffer_size, 32);
	ck_assert_uint_eq(g->min_samples, 5);
	ck_assert_uint_eq(g->threshold_ms, 100);
	ck_assert_uint_eq(g->current_ms, 0);
	ck_assert_mem_eq(request.rate.label, "api", 3);
	ck_assert_uint_eq(request.rate.label_len, 3);
	assert_name(&request.resource_names[0], "checkout");
	assert_name(&request.guard_names[0], "inventory-backend");

	/* The other profile: another id, no limit on buffer_size. */
	ck_assert_int_eq(build("v2", 1), 0);
	assert_id(request.rate.resources[0].id, CHECKOUT_ID);
	assert_id(g->id, INVENTORY_V2);

	ck_assert_int_eq(build("empty", 1), 0);
	ck_assert_uint_eq(request.rate.resource_count, 0);
	ck_assert_uint_eq(request.rate.guard_count, 0);
}
END_TEST

/* What is filled in has the id of the same name written out. */
START_TEST(test_keyed_ids)
{
	use_key("out");
	ck_assert_int_eq(build("keyed", 7), 0);
	assert_id(request.rate.resources[0].id, CHECKOUT_ID);
	ck_assert_uint_eq(request.rate.resources[0].tokens, 21);
	assert_name(&request.resource_names[0], "checkout");
	use_key("backend");
	ck_assert_int_eq(build("keyed", 1), 0);
	assert_id(request.rate.guards[0].id, INVENTORY_V1);
	assert_name(&request.guard_names[0], "inventory-backend");
	assert_name(&request.resource_names[0], "checkbackend");
}
END_TEST

START_TEST(test_placeholders)
{
	ck_assert_int_eq(build("kernel", 1), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "bucket \"{uid}/{gid}/{listener}/{{{key}}}\" needs a key");
	use_key("k{uid}");
	ck_assert_int_eq(build("kernel", 1), 0);
	assert_name(
	    &request.resource_names[0], "1000/4294967294/main/{k{uid}}");
	ck_assert_int_eq(build("braces", 1), 0);
	assert_name(&request.resource_names[0], "a{b}");
	assert_name(&request.resource_names[1], "k{uid}");

	/* Any bytes are a key; an empty one is one, too. */
	caller.key = (const uint8_t *)"a\0b";
	caller.key_len = 3;
	ck_assert_int_eq(build("braces", 1), 0);
	ck_assert_uint_eq(request.resource_names[1].len, 3);
	ck_assert_mem_eq(request.resource_names[1].bytes, "a\0b", 3);
	use_key("");
	ck_assert_int_eq(build("kernel", 1), 0);
	assert_name(&request.resource_names[0], "1000/4294967294/main/{}");
	ck_assert_int_eq(build("braces", 1), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "bucket \"{key}\" is empty with its placeholders filled in");
}
END_TEST

START_TEST(test_expanded_length)
{
	static uint8_t key[300];

	memset(key, 'k', sizeof(key));
	caller.key = key;
	caller.key_len = 255 - strlen("inventory-");
	ck_assert_int_eq(build("keyed", 1), 0);
	ck_assert_uint_eq(request.guard_names[0].len, 255);
	caller.key_len++;
	ck_assert_int_eq(build("keyed", 1), RLA_EINVAL);
	ck_assert_str_eq(text,
	    "tracker \"inventory-{key}\" is longer than 255 bytes with its "
	    "placeholders filled in");
	caller.key_len = sizeof(key);
	ck_assert_int_eq(build("keyed", 1), RLA_EINVAL);
}
END_TEST

START_TEST(test_tokens)
{
	use_key("k");
	ck_assert_int_eq(build("keyed", 0), RLA_EINVAL);
	ck_assert_str_eq(text, "tokens must be 1..65535, not 0");
	ck_assert_int_eq(build("keyed", 65536), RLA_EINVAL);
	ck_assert_str_eq(text, "tokens must be 1..65535, not 65536");
	ck_assert_int_eq(build("keyed", UINT32_MAX), RLA_EINVAL);
	ck_assert_int_eq(build("keyed", 21845), 0); /* times 3: 65535 */
	ck_assert_uint_eq(request.rate.resources[0].tokens, 65535);
	ck_assert_int_eq(build("keyed", 21846), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "resources[0].tokens: 21846 times 3 tokens is over 65535");
	ck_assert_int_eq(build("fixed", 65535), 0);
}
END_TEST

START_TEST(test_quotas)
{
	ck_assert_int_eq(build("big", 1), RLA_EQUOTA);
	ck_assert_str_eq(text,
	    "guards[0]: its tracker's buffer_size of 65 is over the key's "
	    "limit of 64");
	ck_assert_int_eq(build("window", 1), RLA_EQUOTA);
	ck_assert_str_eq(text,
	    "resources[0]: its window_ms of 1025 is over the key's limit of "
	    "1024");
}
END_TEST

START_TEST(test_reports)
{
	const struct config_tenant *v1 = config_tenant(config, "v1", 2);
	const struct config_tenant *v2 = config_tenant(config, "v2", 2);
	const struct config_tracker *t =
	    config_tracker(config, "inventory-backend", 17);
	struct pdu_sample sample;

	ck_assert_int_eq(
	    rules_build_report(rules, v1, t, &caller, 18, &sample, text), 0);
	assert_id(sample.id, INVENTORY_V1);
	ck_assert_uint_eq(sample.buffer_size, 32);
	ck_assert_uint_eq(sample.observed_ms, 18);
	ck_assert_int_eq(
	    rules_build_report(rules, v2, t, &caller, 0, &sample, text), 0);
	assert_id(sample.id, INVENTORY_V2);
	ck_assert_uint_eq(sample.observed_ms, 0);

	t = config_tracker(config, "inventory-{key}", 15);
	ck_assert_int_eq(
	    rules_build_report(rules, v1, t, &caller, 1, &sample, text),
	    RLA_EINVAL);
	ck_assert_str_eq(text, "tracker \"inventory-{key}\" needs a key");
	use_key("backend");
	ck_assert_int_eq(
	    rules_build_report(rules, v1, t, &caller, 1, &sample, text), 0);
	assert_id(sample.id, INVENTORY_V1);

	t = config_tracker(config, "big", 3);
	ck_assert_int_eq(
	    rules_build_report(rules, v1, t, &caller, 1, &sample, text),
	    RLA_EQUOTA);
	ck_assert_str_eq(text,
	    "tracker \"big\": its buffer_size of 65 is over the key's limit "
	    "of 64");
	ck_assert_int_eq(
	    rules_build_report(rules, v2, t, &caller, 1, &sample, text), 0);
}
END_TEST

/* Of each rule that builds: the same names and numbers, without ids. */
START_TEST(test_names)
{
	static const char *const names[] = {
	    "fixed", "keyed", "braces", "empty"};
	static const uint8_t none[ID_LEN];
	static struct rules_request again;

	use_key("k");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct config_rule *rule =
		    config_rule(config, names[i], strlen(names[i]));

		ck_assert_int_eq(build(names[i], 7), 0);
		memset(&again, 0xAA, sizeof(again));
		ck_assert_int_eq(
		    rules_names(rules, rule, &caller, 7, &again), 0);
		ck_assert_uint_eq(
		    again.rate.guard_count, request.rate.guard_count);
		ck_assert_uint_eq(
		    again.rate.resource_count, request.rate.resource_count);
		for (size_t k = 0; k < rule->guard_count; k++) {
			struct pdu_guard *g = &request.rate.guards[k];

			ck_assert_uint_eq(
			    again.rate.guards[k].threshold_ms, g->threshold_ms);
			ck_assert_mem_eq(again.rate.guards[k].id, none, ID_LEN);
			ck_assert_uint_eq(again.guard_names[k].len,
			    request.guard_names[k].len);
			ck_assert_mem_eq(again.guard_names[k].bytes,
			    request.guard_names[k].bytes,
			    request.guard_names[k].len);
		}
		for (size_t k = 0; k < rule->resource_count; k++) {
			struct pdu_resource *r = &request.rate.resources[k];

			ck_assert_uint_eq(
			    again.rate.resources[k].window_ms, r->window_ms);
			ck_assert_uint_eq(
			    again.rate.resources[k].limit, r->limit);
			ck_assert_uint_eq(
			    again.rate.resources[k].tokens, r->tokens);
			ck_assert_mem_eq(
			    again.rate.resources[k].id, none, ID_LEN);
			ck_assert_uint_eq(again.resource_names[k].len,
			    request.resource_names[k].len);
			ck_assert_mem_eq(again.resource_names[k].bytes,
			    request.resource_names[k].bytes,
			    request.resource_names[k].len);
		}
	}
	/* What never was built: no key for its placeholder. */
	caller.key = NULL;
	ck_assert_int_eq(rules_names(rules, config_rule(config, "keyed", 5),
			     &caller, 7, &again),
	    RLA_EINVAL);
}
END_TEST

static int
build_report(const char *rule, struct pdu_report *report)
{
	memset(report, 0xAA, sizeof(*report));
	return rules_build_report_rule(rules,
	    config_rule(config, rule, strlen(rule)), &caller, 18, report, text);
}

/* The ids and numbers that a check's guards have; a tracker that two guards
 * share is one. */
START_TEST(test_report_of_a_rule)
{
	static struct pdu_report report;
	const struct pdu_sample *s = report.samples;

	ck_assert_int_eq(build_report("v2", &report), 0);
	ck_assert_int_eq(build("v2", 1), 0);
	ck_assert_uint_eq(report.count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct pdu_guard *g = &request.rate.guards[i];

		ck_assert_mem_eq(s[i].id, g->id, ID_LEN);
		ck_assert_uint_eq(s[i].ttl_ms, g->ttl_ms);
		ck_assert_uint_eq(s[i].max_samples, g->max_samples);
		ck_assert_uint_eq(s[i].buffer_size, g->buffer_size);
		ck_assert_uint_eq(s[i].min_samples, g->min_samples);
		ck_assert_uint_eq(s[i].observed_ms, 18);
	}
	ck_assert_uint_eq(s[1].buffer_size, 65);

	ck_assert_int_eq(build_report("fixed", &report), 0);
	ck_assert_uint_eq(report.count, 1);
	assert_id(s[0].id, INVENTORY_V1);
	ck_assert_int_eq(build_report("empty", &report), 0);
	ck_assert_uint_eq(report.count, 0);
	ck_assert_int_eq(build_report("kernel", &report), 0); /* no guards */
	ck_assert_uint_eq(report.count, 0);

	use_key("backend");
	ck_assert_int_eq(build_report("keyed", &report), 0);
	ck_assert_uint_eq(report.count, 1);
	assert_id(s[0].id, INVENTORY_V1);
	ck_assert_int_eq(build_report("twice", &report), 0);
	ck_assert_uint_eq(report.count, 2);
	assert_id(s[0].id, INVENTORY_V1);
	use_key("other");
	ck_assert_int_eq(build_report("twice", &report), 0);
	ck_assert_uint_eq(report.count, 3);
}
END_TEST

/* What a check is refused for, where it is about guards or the whole. */
START_TEST(test_report_of_a_rule_refused)
{
	static struct pdu_report report;

	ck_assert_int_eq(build_report("keyed", &report), RLA_EINVAL);
	ck_assert_str_eq(text, "tracker \"inventory-{key}\" needs a key");
	ck_assert_int_eq(build_report("big", &report), RLA_EQUOTA);
	ck_assert_str_eq(text,
	    "guards[0]: its tracker's buffer_size of 65 is over the key's "
	    "limit of 64");
	ck_assert_int_eq(build_report("large", &report), RLA_ETOOBIG);
	ck_assert_str_eq(
	    text, "the request of 1208 bytes does not fit a datagram of 1200");
}
END_TEST

/* A rule of these buckets, and guards of the trackers "same" and "{uid}". */
static int
local_key(const char *buckets, const char *guards, uint8_t *room, size_t *len)
{
	char json[1024], err[CONFIG_ERR_MAX];
	struct config *c;
	struct rules *r;
	int rc;

	snprintf(json, sizeof(json),
	    "{\"tenants\":{\"t\":{\"key\":" ENV(
		"RATELIMITLY_AUTH_KEY") "}},"
					"\"trackers\":{\"same\":{},\"{uid}\":{}},\"rules\":{"
					"\"a\":{\"resources\":[{\"bucket\":\"{gid}{listener}\"}]},"
					"\"r\":{\"resources\":[%s],\"guards\":[%s],"
					"\"on_failure\":{\"local\":{}}}}}",
	    buckets, guards);
	c = fixture_parse(json, err);
	ck_assert_msg(c != NULL, "%s", err);
	r = rules_new(c);
	ck_assert_ptr_nonnull(r);
	memset(room, 0xAA, RULES_LOCAL_KEY_MAX);
	*len = SIZE_MAX;
	rc = rules_local_key(r, config_rule(c, "r", 1), &caller, room, len);
	rules_free(r);
	config_unref(c);
	return rc;
}

#define B(name) "{\"bucket\":\"" name "\"}"
#define G(name) "{\"tracker\":\"" name "\"}"

/* The key is another one exactly when a value is that the buckets use. */
START_TEST(test_local_key_varies)
{
	static const struct {
		const char *buckets;
		const char *guards;
		const char *with; /* key, uid, gid, listener */
	} cases[] = {
	    {"", "", ""},
	    {B("b"), "", ""},
	    {B("{{key}}"), "", ""},
	    {B("a") "," B("{{uid}}{{listener}}"), "", ""},
	    {B("b{key}"), "", "k"},
	    {B("{{{key}}}"), "", "k"},
	    {B("{uid}"), "", "u"},
	    {B("{gid}"), "", "g"},
	    {B("{listener}"), "", "l"},
	    {B("{listener}-{key}-{listener}"), "", "kl"},
	    {B("all") "," B("{gid}") "," B("{uid}"), "", "ug"},
	    {B("{listener}{gid}{uid}{key}"), "", "kugl"},
	    {B("b"), G("{uid}"), ""},
	    {B("{key}"), G("{uid}"), "k"},
	    {"", G("same"), ""},
	    {"", G("same") "," G("{uid}"), "u"},
	};
	uint8_t key[RULES_LOCAL_KEY_MAX], other[RULES_LOCAL_KEY_MAX];
	size_t len, size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct rules_caller first = {.uid = 1,
		    .gid = 2,
		    .listener = "main",
		    .key = (const uint8_t *)"k",
		    .key_len = 1};
		const struct rules_caller others[] = {
		    {1, 2, "main", (const uint8_t *)"K", 1},
		    {3, 2, "main", (const uint8_t *)"k", 1},
		    {1, 3, "main", (const uint8_t *)"k", 1},
		    {1, 2, "mail", (const uint8_t *)"k", 1}};

		caller = first;
		ck_assert_int_eq(
		    local_key(cases[i].buckets, cases[i].guards, key, &len), 0);
		ck_assert_int_eq(len == 0, cases[i].with[0] == '\0');
		for (size_t k = 0; k < 4; k++) {
			const bool used =
			    strchr(cases[i].with, "kugl"[k]) != NULL;

			caller = others[k];
			ck_assert_int_eq(local_key(cases[i].buckets,
					     cases[i].guards, other, &size),
			    0);
			ck_assert_msg((size == len &&
					  memcmp(key, other, len) == 0) != used,
			    "%s: %c", cases[i].buckets, "kugl"[k]);
		}
	}
}
END_TEST

/* What is said in one value is not said in the next. */
START_TEST(test_local_key_is_of_one_caller)
{
	static const uint8_t expected[] = {2, 'a', 'b', 1, 'c'};
	static const struct {
		const char *key;
		size_t key_len;
		const char *listener;
	} pairs[] = {{"ab", 2, "c"}, {"a", 1, "bc"}, {"", 0, "abc"},
	    {"abc", 3, ""}, {"a\001b", 3, "c"}, {"a", 1, "b\001c"},
	    {"ab\0", 3, "c"}, {"ab\001c", 4, ""}};
	enum { COUNT = sizeof(pairs) / sizeof(*pairs) };
	static uint8_t keys[COUNT][RULES_LOCAL_KEY_MAX];
	size_t len[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		caller.key = (const uint8_t *)pairs[i].key;
		caller.key_len = pairs[i].key_len;
		caller.listener = pairs[i].listener;
		ck_assert_int_eq(
		    local_key(B("{key}{listener}"), "", keys[i], &len[i]), 0);
		for (size_t k = 0; k < i; k++)
			ck_assert(len[i] != len[k] ||
				  memcmp(keys[i], keys[k], len[i]) != 0);
	}
	ck_assert_uint_eq(len[0], sizeof(expected));
	ck_assert_mem_eq(keys[0], expected, sizeof(expected));
	/* By the values, not by how a bucket has them. */
	caller = (struct rules_caller){1, 2, "c", (const uint8_t *)"ab", 2};
	ck_assert_int_eq(
	    local_key(B("{listener}") "," B("x{key}"), "", keys[1], &len[1]),
	    0);
	ck_assert_uint_eq(len[1], sizeof(expected));
	ck_assert_mem_eq(keys[1], expected, sizeof(expected));
}
END_TEST

START_TEST(test_local_key_bounds)
{
	uint8_t name[CONFIG_NAME_MAX + 1], room[RULES_LOCAL_KEY_MAX];
	size_t len;

	/* No key: it matters to those that use it only. */
	ck_assert_int_eq(local_key(B("{key}"), "", room, &len), RLA_EINVAL);
	ck_assert_int_eq(
	    local_key(B("{uid}") "," B("{key}"), "", room, &len), RLA_EINVAL);
	ck_assert_int_eq(local_key(B("{uid}"), "", room, &len), 0);
	memset(name, 'n', CONFIG_NAME_MAX);
	name[CONFIG_NAME_MAX] = '\0';
	caller = (struct rules_caller){
	    UINT32_MAX, UINT32_MAX, (const char *)name, name, CONFIG_NAME_MAX};
	ck_assert_int_eq(
	    local_key(B("{key}{uid}{gid}{listener}"), "", room, &len), 0);
	ck_assert_uint_le(len, RULES_LOCAL_KEY_MAX);
	ck_assert_uint_eq(len, 2 * 256 + 2 * 5);
	caller.key_len++;
	ck_assert_int_eq(local_key(B("{key}"), "", room, &len), RLA_EINVAL);
}
END_TEST

START_TEST(test_retry_after)
{
	static const struct {
		uint32_t window, limit, tokens, actual, deficit, expected;
	} cases[] = {
	    /* Granted, whatever the rate. */
	    {1000, 100, 1, 0, 0, 0},
	    {1000, 100, 1, 100, 0, 0},
	    /* The rate tells as much as the deficit. */
	    {1000, 100, 1, 100, 1, 10},
	    {1000, 100, 30, 75, 5, 50},
	    /* One that says more is right: the deficit, */
	    {1000, 100, 1, 0, 7, 70},
	    {1000, 100, 30, 75, 6, 60},
	    /* the rate. */
	    {1000, 100, 30, 90, 5, 200},
	    {1000, 3, 1, 3, 1, 334}, /* rounded up */
	    {1, UINT32_MAX, 1, UINT32_MAX, 1, 1},
	    /* After a window without traffic, anything that can be. */
	    {1000, 3, 1, 5, 3, 1000},
	    {1000, 3, 3, 3, 3, 1000},
	    {1000, 3, 1, 3, 4, 1000},
	    {1000, 100, 1, UINT32_MAX, 1, 1000},
	    {UINT32_MAX, 1, 1, 1, 1, UINT32_MAX},
	    {UINT32_MAX, 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX},
	    {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1, UINT32_MAX},
	    {UINT32_MAX, UINT32_MAX, 1, UINT32_MAX, UINT32_MAX - 1,
		UINT32_MAX - 1},
	    {UINT32_MAX, 2, 1, 2, 1, 2147483648u},
	    /* Never. */
	    {1000, 3, 4, 0, 1, 0},
	    {1000, 0, 0, 0, 1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint32_t got =
		    rules_retry_after_ms(cases[i].window, cases[i].limit,
			cases[i].tokens, cases[i].actual, cases[i].deficit);

		ck_assert_msg(got == cases[i].expected, "case %zu: %u, not %u",
		    i, got, cases[i].expected);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("rules");
	TCase *tc = tcase_create("rules");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_fixed_ids);
	tcase_add_test(tc, test_keyed_ids);
	tcase_add_test(tc, test_placeholders);
	tcase_add_test(tc, test_expanded_length);
	tcase_add_test(tc, test_tokens);
	tcase_add_test(tc, test_quotas);
	tcase_add_test(tc, test_reports);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_report_of_a_rule);
	tcase_add_test(tc, test_report_of_a_rule_refused);
	tcase_add_test(tc, test_local_key_varies);
	tcase_add_test(tc, test_local_key_is_of_one_caller);
	tcase_add_test(tc, test_local_key_bounds);
	tcase_add_test(tc, test_retry_after);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
