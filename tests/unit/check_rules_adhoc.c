/*
 * Ad-hoc checks and reports: every id of the vectors, every bound, and the
 * capacity of a datagram for each key type and profile, to the block.
 */
#include "daemon/rules.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "proto/err.h"
#include "proto/packet.h"
#include "tests/unit/config_fixture.h"
#include "tests/unit/harness.h"
#include "tests/vectors/vectors.h"

/* The tenants cross three key types with both profiles. */
#define TENANT(name, key, profile) \
	"\"" name "\":{\"key\":" ENV(key) ",\"profile\":\"" profile "\"}"

static const char config_text[] = "{\"tenants\":{" TENANT(
    "none v1", "RLA_TEST_NONE", "v1") "," TENANT("none v2", "RLA_TEST_NONE",
    "v2") "," TENANT("cookie v1", "RATELIMITLY_AUTH_KEY",
    "v1") "," TENANT("cookie v2", "RATELIMITLY_AUTH_KEY",
    "v2") "," TENANT("aes v1", "RLA_TEST_AES", "v1") "," TENANT("aes v2",
    "RLA_TEST_AES", "v2") "," TENANT("window", "RLA_TEST_WINDOW", "v2") "}}";

static struct config *config;
static struct rules *rules;
static struct rules_request request;
static struct ipc_check_adhoc check;
static struct ipc_report_adhoc report;
static struct pdu_sample sample;
static char text[RULES_TEXT_MAX];
static json_t *vectors;

#define STR(s) ((struct ipc_str){(const uint8_t *)(s), sizeof(s) - 1})

static const struct ipc_guard good_guard = {.ttl_ms = 10000,
    .max_samples = 100,
    .buffer_size = 32,
    .min_samples = 5,
    .below_ms = 100,
    .name = STR("inventory-backend")};
static const struct ipc_resource good_resource = {
    .window_ms = 1000, .limit = 100, .tokens = 1, .name = STR("checkout")};

static void
setup(void)
{
	char err[CONFIG_ERR_MAX];

	fixture_keys();
	config = fixture_parse(config_text, err);
	ck_assert_msg(config != NULL, "%s", err);
	rules = rules_new(config);
	ck_assert_ptr_nonnull(rules);
	vectors = vectors_load("wire.json");
	memset(&check, 0, sizeof(check));
	check.base.tokens = 1;
	report = (struct ipc_report_adhoc){.latency_ms = 7,
	    .ttl_ms = 10000,
	    .max_samples = 100,
	    .buffer_size = 32,
	    .min_samples = 5,
	    .tracker = STR("inventory-backend")};
}

static void
teardown(void)
{
	json_decref(vectors);
	rules_free(rules);
	config_unref(config);
}

static const struct config_tenant *
tenant(const char *name)
{
	const struct config_tenant *t =
	    config_tenant(config, name, strlen(name));

	ck_assert_msg(t != NULL, "no tenant %s", name);
	return t;
}

static int
build(const char *name)
{
	return rules_build_adhoc(rules, tenant(name), &check, &request, text);
}

static int
build_report(const char *name)
{
	return rules_build_report_adhoc(
	    rules, tenant(name), &report, &sample, text);
}

START_TEST(test_bucket_vectors)
{
	json_t *list = json_object_get(vectors, "bucket_ids"), *v;
	uint8_t name[256], id[64];
	size_t i;

	ck_assert_uint_gt(json_array_size(list), 0);
	json_array_foreach(list, i, v)
	{
		check.resource_count = 1;
		check.resources[0] = (struct ipc_resource){
		    .window_ms = vectors_u32(v, "window_size_ms"),
		    .limit = vectors_u32(v, "rate_limit"),
		    .tokens = 2,
		    .name = {name, (uint16_t)vectors_hex(
				       v, "name_hex", name, sizeof(name))}};
		check.base.tokens = 3;
		ck_assert_int_eq(build("cookie v1"), 0);
		ck_assert_uint_eq(vectors_hex(v, "id", id, sizeof(id)), ID_LEN);
		ck_assert_mem_eq(request.rate.resources[0].id, id, ID_LEN);
		ck_assert_uint_eq(request.rate.resources[0].tokens, 6);
		ck_assert_mem_eq(request.resource_names[0].bytes, name,
		    check.resources[0].name.len);
	}
}
END_TEST

/* A guard on the tracker of report. */
static void
guard_of_report(void)
{
	check.guard_count = 1;
	check.guards[0] = (struct ipc_guard){report.ttl_ms, report.max_samples,
	    report.buffer_size, report.min_samples, 1, report.tracker};
}

static void
run_tracker_vectors(const char *section, const char *name_of_tenant)
{
	json_t *list = json_object_get(vectors, section), *v;
	uint8_t name[256], id[64];
	size_t i, run = 0;

	json_array_foreach(list, i, v)
	{
		bool v1 = json_object_get(v, "buffer_size") != NULL;
		uint32_t buffer = v1 ? vectors_u32(v, "buffer_size") : 0;

		report.ttl_ms = vectors_u32(v, "ttl_ms");
		report.max_samples = vectors_u32(v, "max_samples");
		report.buffer_size = buffer;
		report.min_samples = vectors_u32(v, "min_sample_threshold");
		report.tracker.bytes = name;
		report.tracker.len =
		    (uint16_t)vectors_hex(v, "name_hex", name, sizeof(name));
		/* No key has so large a buffer: refused before it is hashed. */
		if (v1 && buffer > 64) {
			ck_assert_int_eq(
			    build_report(name_of_tenant), RLA_EQUOTA);
			continue;
		}
		ck_assert_int_eq(build_report(name_of_tenant), 0);
		ck_assert_uint_eq(vectors_hex(v, "id", id, sizeof(id)), ID_LEN);
		ck_assert_mem_eq(sample.id, id, ID_LEN);
		ck_assert_uint_eq(sample.observed_ms, 7);

		guard_of_report();
		ck_assert_int_eq(build(name_of_tenant), 0);
		ck_assert_mem_eq(request.rate.guards[0].id, id, ID_LEN);
		run++;
	}
	ck_assert_uint_gt(run, 1);
}

START_TEST(test_tracker_vectors)
{
	run_tracker_vectors("tracker_ids_v1_legacy", "cookie v1");
	run_tracker_vectors("tracker_ids_v2", "cookie v2");
}
END_TEST

static void
fill(size_t guards, size_t resources)
{
	check.guard_count = (uint16_t)guards;
	check.resource_count = (uint16_t)resources;
	for (size_t i = 0; i < guards && i < IPC_MAX_GUARDS; i++)
		check.guards[i] = good_guard;
	for (size_t i = 0; i < resources && i < IPC_MAX_RESOURCES; i++)
		check.resources[i] = good_resource;
}

/* It builds, and its datagram is what the encoder makes of it. */
static void
assert_fits(const char *name)
{
	uint8_t pdu[PACKET_MAX];
	size_t len;
	const struct config_tenant *t = tenant(name);

	ck_assert_msg(build(name) == 0, "%s: %s", name, text);
	ck_assert_int_eq(pdu_encode_request(t->profile, &request.rate, pdu,
			     PACKET_MAX - packet_overhead(t->cred.auth), &len),
	    0);
	ck_assert_uint_eq(packet_overhead(t->cred.auth) + len,
	    config_request_size(t, request.rate.guard_count,
		request.rate.resource_count, request.rate.label_len));
}

START_TEST(test_capacity)
{
	static const char *const auths[] = {"none", "cookie", "aes"};
	static const char *const profiles[] = {"v1", "v2"};
	const json_t *all = json_object_get(vectors, "capacity_1200"), *c;
	char name[16];
	uint32_t guards, resources;

	for (int a = 0; a < 3; a++) {
		for (int p = 0; p < 2; p++) {
			c = json_object_get(
			    json_object_get(all, auths[a]), profiles[p]);
			guards = vectors_u32(c, "guards");
			resources = vectors_u32(c, "resources");
			snprintf(
			    name, sizeof(name), "%s %s", auths[a], profiles[p]);
			fill(guards, 0);
			assert_fits(name);
			fill(guards + 1, 0);
			ck_assert_int_eq(build(name), RLA_ETOOBIG);
			fill(0, resources);
			assert_fits(name);
			fill(0, resources + 1);
			ck_assert_int_eq(build(name), RLA_ETOOBIG);
			fill(IPC_MAX_GUARDS, IPC_MAX_RESOURCES);
			ck_assert_int_eq(build(name), RLA_ETOOBIG);
		}
	}
}
END_TEST

/* Names as long as can be in as many blocks as can be. */
START_TEST(test_longest_names)
{
	static uint8_t name[CONFIG_NAME_MAX];

	memset(name, 'n', sizeof(name));
	fill(0, 40);
	for (size_t i = 0; i < 40; i++)
		check.resources[i].name = (struct ipc_str){name, sizeof(name)};
	assert_fits("none v2");
	for (size_t i = 0; i < 40; i++) {
		ck_assert_uint_eq(request.resource_names[i].len, sizeof(name));
		ck_assert_mem_eq(
		    request.resource_names[i].bytes, name, sizeof(name));
	}
}
END_TEST

/* What an answer needs, from the frame alone, even one that never was built. */
START_TEST(test_names)
{
	static const uint8_t none[ID_LEN];

	fill(2, 3);
	check.base.tokens = 5;
	check.resources[2].tokens = 3;
	memset(&request, 0xAA, sizeof(request));
	rules_names_adhoc(&check, &request);
	ck_assert_uint_eq(request.rate.guard_count, 2);
	ck_assert_uint_eq(request.rate.resource_count, 3);
	ck_assert_uint_eq(request.rate.guards[1].threshold_ms, 100);
	ck_assert_mem_eq(request.rate.guards[1].id, none, ID_LEN);
	ck_assert_uint_eq(request.guard_names[1].len, 17);
	ck_assert_mem_eq(request.guard_names[1].bytes, "inventory-backend", 17);
	ck_assert_uint_eq(request.rate.resources[2].window_ms, 1000);
	ck_assert_uint_eq(request.rate.resources[2].limit, 100);
	ck_assert_uint_eq(request.rate.resources[2].tokens, 15);
	ck_assert_mem_eq(request.rate.resources[2].id, none, ID_LEN);
	ck_assert_uint_eq(request.resource_names[2].len, 8);
	ck_assert_mem_eq(request.resource_names[2].bytes, "checkout", 8);

	fill(IPC_MAX_GUARDS, IPC_MAX_RESOURCES);
	rules_names_adhoc(&check, &request);
	ck_assert_uint_eq(request.guard_names[IPC_MAX_GUARDS - 1].len, 17);
}
END_TEST

START_TEST(test_label)
{
	static uint8_t label[PDU_LABEL_MAX + 1];

	fill(1, 1);
	check.label = (struct ipc_str){label, PDU_LABEL_MAX};
	assert_fits("aes v1");
	check.label.len++;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(text, "label must be 0..256 bytes long, not 257");
	/* 39 resources leave 20 bytes under a cookie, 6 for the label's head.
	 */
	fill(0, 39);
	check.label.len = 14;
	assert_fits("cookie v2");
	check.label.len = 15;
	ck_assert_int_eq(build("cookie v2"), RLA_ETOOBIG);
	ck_assert_str_eq(
	    text, "the request of 1204 bytes does not fit a datagram of 1200");
}
END_TEST

/* Each field in turn is 0. */
START_TEST(test_zeros)
{
#define FIELD(list, i, field)                                  \
	{                                                      \
		&check.list[i].field, #list "[" #i "]." #field \
	}
	const struct {
		uint32_t *field;
		const char *name;
	} cases[] = {
	    FIELD(resources, 0, window_ms),
	    FIELD(resources, 1, limit),
	    FIELD(guards, 0, ttl_ms),
	    FIELD(guards, 1, max_samples),
	    FIELD(guards, 0, buffer_size),
	    FIELD(guards, 1, min_samples),
	    FIELD(guards, 0, below_ms),
	};
	char expected[RULES_TEXT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fill(2, 2);
		*cases[i].field = 0;
		ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
		snprintf(expected, sizeof(expected),
		    "%s must be 1..4294967295, not 0", cases[i].name);
		ck_assert_str_eq(text, expected);
	}
	fill(1, 0);
	check.guards[0].buffer_size = 0; /* means nothing in v2 */
	ck_assert_int_eq(build("aes v2"), 0);
}
END_TEST

START_TEST(test_tokens_and_names)
{
	fill(2, 2);
	check.resources[1].tokens = 0;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(text, "resources[1].tokens must be 1..65535, not 0");
	check.resources[1].tokens = 65536;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	check.resources[1].tokens = 65535;
	ck_assert_int_eq(build("aes v1"), 0);
	check.base.tokens = 2;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "resources[1].tokens: 2 times 65535 tokens is over 65535");
	check.base.tokens = 0;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(text, "tokens must be 1..65535, not 0");
	check.base.tokens = 65536;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);

	check.base.tokens = 1;
	fill(2, 2);
	check.guards[1].name.len = 0;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "guards[1].name must be 1..255 bytes long, not 0");
	fill(2, 2);
	check.resources[0].name.len = 256;
	ck_assert_int_eq(build("aes v1"), RLA_EINVAL);
	ck_assert_str_eq(
	    text, "resources[0].name must be 1..255 bytes long, not 256");
}
END_TEST

START_TEST(test_quotas)
{
	fill(1, 0);
	check.guards[0].buffer_size = 64;
	ck_assert_int_eq(build("aes v1"), 0);
	check.guards[0].buffer_size = 65;
	ck_assert_int_eq(build("aes v1"), RLA_EQUOTA);
	ck_assert_str_eq(
	    text, "guards[0].buffer_size of 65 is over the key's limit of 64");
	ck_assert_int_eq(build("aes v2"), 0);
	fill(0, 1);
	check.resources[0].window_ms = 1024;
	ck_assert_int_eq(build("window"), 0);
	check.resources[0].window_ms = 1025;
	ck_assert_int_eq(build("window"), RLA_EQUOTA);
	ck_assert_str_eq(text,
	    "resources[0].window_ms of 1025 is over the key's limit of 1024");
}
END_TEST

START_TEST(test_report_bounds)
{
	const struct ipc_report_adhoc good = report;
	uint32_t *const fields[] = {&report.ttl_ms, &report.max_samples,
	    &report.min_samples, &report.buffer_size};
	static const char *const names[] = {
	    "ttl_ms", "max_samples", "min_samples", "buffer_size"};
	char expected[RULES_TEXT_MAX];

	for (size_t i = 0; i < 4; i++) {
		report = good;
		*fields[i] = 0;
		ck_assert_int_eq(build_report("aes v1"), RLA_EINVAL);
		snprintf(expected, sizeof(expected),
		    "%s must be 1..4294967295, not 0", names[i]);
		ck_assert_str_eq(text, expected);
	}
	report = good;
	report.tracker.len = 0;
	ck_assert_int_eq(build_report("aes v1"), RLA_EINVAL);
	report = good;
	report.buffer_size = 65;
	ck_assert_int_eq(build_report("aes v1"), RLA_EQUOTA);
	ck_assert_str_eq(
	    text, "buffer_size of 65 is over the key's limit of 64");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("rules_adhoc");
	TCase *tc = tcase_create("adhoc");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_bucket_vectors);
	tcase_add_test(tc, test_tracker_vectors);
	tcase_add_test(tc, test_capacity);
	tcase_add_test(tc, test_longest_names);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_label);
	tcase_add_test(tc, test_zeros);
	tcase_add_test(tc, test_tokens_and_names);
	tcase_add_test(tc, test_quotas);
	tcase_add_test(tc, test_report_bounds);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
