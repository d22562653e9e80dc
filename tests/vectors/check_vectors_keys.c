/*
 * Runs the key and id sections of wire.json against proto/. Where a public
 * client's verdict is not this project's, the vector's runner says so.
 */
#include "tests/vectors/vectors.h"

#include <string.h>

#include "proto/credential.h"
#include "proto/err.h"
#include "proto/id.h"
#include "tests/unit/harness.h"

static struct id_hash *hash;

static void
assert_hex(const json_t *v, const char *name, const void *bytes, size_t len)
{
	uint8_t want[256];
	size_t want_len = vectors_hex(v, name, want, sizeof want);

	ck_assert_uint_eq(len, want_len);
	ck_assert_mem_eq(bytes, want, len);
}

static void
parse_key(const json_t *v, struct credential *cred)
{
	const char *text = vectors_str(v, "bech32");

	ck_assert_int_eq(credential_parse(text, strlen(text), cred), 0);
}

static void
check_valid_key(const json_t *v, enum key_format format)
{
	const json_t *d = vectors_get(v, "decoded");
	const json_t *q = vectors_get(d, "quotas");
	char text[CREDENTIAL_TEXT_MAX];
	struct credential c;

	parse_key(v, &c);
	ck_assert_str_eq(credential_auth_name(c.auth), vectors_str(d, "auth"));
	ck_assert_int_eq(c.format, format);
	ck_assert(c.key_id == vectors_u64(d, "key_id"));
	assert_hex(d, "secret_hex", c.secret,
	    c.auth == AUTH_NONE ? 0 : sizeof c.secret);
	ck_assert_uint_eq(
	    c.quotas.rate_buckets, vectors_u32(q, "rate_buckets_max"));
	ck_assert_uint_eq(
	    c.quotas.latency_trackers, vectors_u32(q, "latency_services_max"));
	ck_assert_uint_eq(
	    c.quotas.metrics_labels, vectors_u32(q, "metrics_labels_max"));
	ck_assert_uint_eq(
	    c.quotas.latency_buffer, vectors_u32(q, "latency_buffer_size_max"));
	ck_assert_uint_eq(
	    c.quotas.dedup_ttl_ms, vectors_u32(q, "dedup_ttl_ms_max"));
	ck_assert_uint_eq(c.quotas.rate_window_ms,
	    format == KEY_FORMAT_1 ? vectors_u32(q, "rate_window_size_ms_max")
				   : UINT32_MAX);
	ck_assert_int_eq(credential_format(&c, text, sizeof text), 0);
	ck_assert_str_eq(text, vectors_str(v, "bech32"));
}

static size_t
run_keys_valid(const json_t *section, const json_t *root)
{
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const json_t *d = vectors_get(v, "decoded");

		ck_assert_uint_eq(vectors_u32(d, "format_version"), 1);
		check_valid_key(v, KEY_FORMAT_1);
	}
	return i;
}

static size_t
run_keys_unversioned(const json_t *section, const json_t *root)
{
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v) check_valid_key(v, KEY_UNVERSIONED);
	return i;
}

static size_t
run_keys_invalid(const json_t *section, const json_t *root)
{
	struct credential c;
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *text = vectors_str(v, "bech32");
		const char *why = vectors_str(v, "reject_because");
		int rc = credential_parse(text, strlen(text), &c);

		if (strcmp(vectors_str(v, "name"), "legacy_unversioned_aes") ==
		    0) {
			/* Deviation: a client of format 1 alone refuses it;
			 * here the unversioned format is a format. */
			ck_assert_int_eq(rc, 0);
			ck_assert_int_eq(c.format, KEY_UNVERSIONED);
			ck_assert_uint_eq(c.quotas.dedup_ttl_ms, 0);
			ck_assert(credential_allows_ttl(&c, UINT32_MAX));
		} else if (strcmp(why, "quota") == 0) {
			ck_assert_int_eq(rc, RLA_EKEYQUOTA);
		} else {
			ck_assert(strcmp(why, "version") == 0 ||
				  strcmp(why, "length/hrp") == 0);
			ck_assert_int_eq(rc, RLA_EKEYFORMAT);
		}
	}
	return i;
}

static size_t
run_bucket_ids(const json_t *section, const json_t *root)
{
	uint8_t name[256], id[ID_LEN];
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(section, i, v)
	{
		len = vectors_hex(v, "name_hex", name, sizeof name);
		ck_assert_int_eq(
		    id_bucket(hash, name, len, vectors_u32(v, "window_size_ms"),
			vectors_u32(v, "rate_limit"), id),
		    0);
		assert_hex(v, "id", id, ID_LEN);
	}
	return i;
}

/* The id of a vector's tracker; v2 vectors have no buffer_size. */
static void
tracker_of(const json_t *v, enum profile profile, uint32_t buffer_size,
    uint8_t id[ID_LEN])
{
	uint8_t name[256];
	size_t len = vectors_hex(v, "name_hex", name, sizeof name);

	ck_assert_int_eq(
	    id_tracker(hash, profile, name, len, vectors_u32(v, "ttl_ms"),
		vectors_u32(v, "max_samples"), buffer_size,
		vectors_u32(v, "min_sample_threshold"), id),
	    0);
}

static size_t
run_tracker_ids_v2(const json_t *section, const json_t *root)
{
	uint8_t id[ID_LEN];
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		tracker_of(v, PROFILE_V2, 32, id);
		assert_hex(v, "id", id, ID_LEN);
	}
	return i;
}

static size_t
run_tracker_ids_v1(const json_t *section, const json_t *root)
{
	uint8_t id[ID_LEN];
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		tracker_of(v, PROFILE_V1, vectors_u32(v, "buffer_size"), id);
		assert_hex(v, "id", id, ID_LEN);
	}
	return i;
}

static void
assert_not_hex(const json_t *v, const char *name, const uint8_t id[ID_LEN])
{
	uint8_t other[ID_LEN];

	ck_assert_uint_eq(vectors_hex(v, name, other, ID_LEN), ID_LEN);
	ck_assert_mem_ne(id, other, ID_LEN);
}

/*
 * An abandoned construction: the v1 domain, without buffer_size. It is made
 * here to see that the vector is what it says, and that ours differs.
 */
static void
check_intermediate_tracker(const json_t *v)
{
	static const uint32_t buffers[] = {0, 1, 32, UINT32_MAX};
	uint8_t text[512] = "ratelimitly.latency-tracker.v1", id[ID_LEN];
	size_t at = strlen((char *)text) + 1, len, i, k;
	uint32_t words[4];

	len = vectors_hex(v, "name_hex", text + at + 4, 256);
	words[0] = (uint32_t)len;
	words[1] = vectors_u32(v, "ttl_ms");
	words[2] = vectors_u32(v, "max_samples");
	words[3] = vectors_u32(v, "min_sample_threshold");
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 4; k++)
			text[at++] = (uint8_t)(words[i] >> 8 * k);
		at += i == 0 ? len : 0;
	}
	ck_assert_int_eq(id_digest(hash, text, at, id), 0);
	assert_hex(v, "id", id, ID_LEN);
	for (i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
		tracker_of(v, PROFILE_V1, buffers[i], id);
		assert_not_hex(v, "id", id);
	}
	tracker_of(v, PROFILE_V2, 0, id);
	assert_not_hex(v, "id", id);
}

static size_t
run_must_not_match(const json_t *section, const json_t *root)
{
	uint8_t id[ID_LEN];
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *text =
		    json_string_value(json_object_get(v, "text"));

		if (text == NULL) {
			check_intermediate_tracker(v);
			continue;
		}
		/* Old plain-text hashes of buckets. */
		ck_assert_int_eq(
		    id_bucket(hash, text, strlen(text), 1000, 10000, id), 0);
		assert_not_hex(v, "id", id);
		ck_assert_int_eq(
		    id_bucket(hash, "checkout", 8, 1000, 100, id), 0);
		assert_not_hex(v, "id", id);
		ck_assert_int_eq(id_digest(hash, text, strlen(text), id), 0);
		if (strstr(vectors_str(v, "why"), "parameterised") == NULL)
			assert_hex(v, "id", id, ID_LEN);
		else /* 256 bits cut to 128 are not a digest of 128 bits */
			assert_not_hex(v, "id", id);
	}
	return i;
}

static size_t
run_primitives(const json_t *section, const json_t *root)
{
	uint8_t id[ID_LEN], want[32];
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		ck_assert_str_eq(
		    vectors_str(v, "name"), "blake2s-256 of empty");
		ck_assert_uint_eq(vectors_hex(v, "hex", want, 32), 32);
		ck_assert_int_eq(id_digest(hash, "", 0, id), 0);
		ck_assert_mem_eq(id, want, ID_LEN);
	}
	return i;
}

static size_t
run_default_dns(const json_t *section, const json_t *root)
{
	char name[CREDENTIAL_DNS_MAX];
	struct credential c = {0};
	json_t *v;
	size_t i;

	(void)root;
	json_array_foreach(section, i, v)
	{
		c.key_id = vectors_u64(v, "key_id");
		credential_dns_name(&c, name);
		ck_assert_str_eq(name, vectors_str(v, "name"));
	}
	return i;
}

static const struct vectors_job jobs[] = {
    {"api_keys_format1_valid", run_keys_valid},
    {"api_keys_format1_invalid", run_keys_invalid},
    {"api_keys_legacy_unversioned", run_keys_unversioned},
    {"bucket_ids", run_bucket_ids},
    {"tracker_ids_v2", run_tracker_ids_v2},
    {"tracker_ids_v1_legacy", run_tracker_ids_v1},
    {"tracker_ids_must_not_match", run_must_not_match},
    {"primitives", run_primitives},
    {"default_dns", run_default_dns},
};
#define JOBS (sizeof jobs / sizeof jobs[0])

static json_t *root;

static void
set_up(void)
{
	root = vectors_load("wire.json");
	hash = id_hash_new();
	ck_assert_ptr_nonnull(hash);
}

static void
tear_down(void)
{
	id_hash_free(hash);
	json_decref(root);
}

START_TEST(every_section_has_an_owner)
{
	vectors_check_wire_jobs(root, VECTORS_KEYS, jobs, JOBS);
}
END_TEST

START_TEST(section)
{
	vectors_run(root, &jobs[_i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vectors_keys");
	TCase *tc = tcase_create("keys");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_section_has_an_owner);
	tcase_add_loop_test(tc, section, 0, JOBS);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
