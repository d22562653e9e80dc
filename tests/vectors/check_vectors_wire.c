/*
 * Runs the PDU and datagram sections of wire.json against proto/: bytes that
 * public clients produced or accepted, in both profiles and directions.
 */
#include "tests/vectors/vectors.h"

#include <string.h>

#include "proto/credential.h"
#include "proto/err.h"
#include "proto/id.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "tests/unit/harness.h"

static struct id_hash *hash;

static void
assert_hex(const json_t *v, const char *name, const void *bytes, size_t len)
{
	uint8_t want[2 * PACKET_MAX];
	size_t want_len = vectors_hex(v, name, want, sizeof want);

	ck_assert_uint_eq(len, want_len);
	ck_assert_mem_eq(bytes, want, len);
}

/* A key by the name it has in either list. */
static void
find_key(const json_t *root, const char *name, struct credential *cred)
{
	static const char *const lists[] = {
	    "api_keys_format1_valid", "api_keys_legacy_unversioned"};
	size_t i, j;
	json_t *v;

	for (i = 0; i < 2; i++) {
		json_array_foreach(vectors_get(root, lists[i]), j, v)
		{
			if (strcmp(vectors_str(v, "name"), name) == 0) {
				const char *text = vectors_str(v, "bech32");

				ck_assert_int_eq(
				    credential_parse(text, strlen(text), cred),
				    0);
				return;
			}
		}
	}
	ck_abort_msg("no key %s", name);
}

static size_t
run_labels(const json_t *section, const json_t *root)
{
	struct pdu_rate rate = {0}, back;
	uint8_t out[512];
	json_t *v;
	size_t i, len;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *label = vectors_str(v, "label");

		rate.label = (const uint8_t *)label;
		rate.label_len = strlen(label);
		ck_assert_int_eq(pdu_encode_request(
				     PROFILE_V2, &rate, out, sizeof out, &len),
		    0);
		assert_hex(v, "hex", out + 12, len - 12);
		ck_assert_int_eq(
		    pdu_decode_request(PROFILE_V2, out, len, &back), 0);
		ck_assert_uint_eq(back.label_len, rate.label_len);
		ck_assert_mem_eq(back.label, label, back.label_len);
	}
	return i;
}

/* The inputs of the request body in the list, which gives bytes alone. */
static void
v2_request(struct pdu_rate *rate)
{
	memset(rate, 0, sizeof *rate);
	rate->guard_count = rate->resource_count = 1;
	memset(rate->guards[0].id, 1, ID_LEN);
	rate->guards[0].ttl_ms = 1000;
	rate->guards[0].max_samples = 10;
	rate->guards[0].min_samples = 2;
	rate->guards[0].threshold_ms = 50;
	memset(rate->resources[0].id, 2, ID_LEN);
	rate->resources[0].window_ms = 60000;
	rate->resources[0].limit = 100;
	rate->resources[0].tokens = 3;
	rate->label = (const uint8_t *)"api";
	rate->label_len = 3;
}

static size_t
encode_named_pdu(const char *name, uint8_t *out, size_t cap)
{
	struct pdu_report report = {.count = 1,
	    .samples = {{.id = "svc",
		.ttl_ms = 1000,
		.max_samples = 10,
		.min_samples = 1,
		.observed_ms = 25}}};
	struct pdu_rate rate = {0};
	size_t len = 0;

	if (strcmp(name, "rate_request_body") == 0)
		v2_request(&rate);
	else if (strcmp(name, "rate_request_pdu_ttl60_empty_body") == 0)
		rate.dedup_ttl_ms = 60;
	else if (strcmp(name, "rate_request_pdu_prefix_ttl300") == 0)
		rate.dedup_ttl_ms = 300;
	else if (strncmp(name, "latency_report", 14) == 0) {
		ck_assert_int_eq(
		    pdu_encode_report(PROFILE_V2, &report, out, cap, &len), 0);
		return len;
	} else
		ck_assert_str_eq(name, "rate_request_body_empty");
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &rate, out, cap, &len), 0);
	return len;
}

static size_t
run_bodies(const json_t *section, const json_t *root)
{
	uint8_t out[512];
	struct pdu_rate rate;
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(section, i, v)
	{
		const char *name = vectors_str(v, "name");

		len = encode_named_pdu(name, out, sizeof out);
		if (strstr(name, "prefix") != NULL) {
			/* Eight bytes that declare twelve. */
			assert_hex(v, "hex", out, 8);
			ck_assert_int_eq(
			    pdu_decode_request(PROFILE_V2, out, 8, &rate),
			    RLA_ESHORT);
		} else if (strstr(name, "_pdu") != NULL)
			assert_hex(v, "hex", out, len);
		else
			assert_hex(v, "hex", out + 8, len - 8);
	}
	return i;
}

/* Decodes what was opened and encodes it again. */
static size_t
recode(enum profile profile, const uint8_t *pdu, size_t len, uint8_t *out,
    struct pdu_rate *rate, struct pdu_report *report)
{
	size_t n = 0;

	switch ((enum pdu_type)pdu_type(pdu, len)) {
	case PDU_RATE_REQUEST:
		ck_assert_int_eq(
		    pdu_decode_request(profile, pdu, len, rate), 0);
		ck_assert_int_eq(
		    pdu_encode_request(profile, rate, out, PACKET_MAX, &n), 0);
		break;
	case PDU_RATE_RESPONSE:
		ck_assert_int_eq(
		    pdu_decode_response(profile, pdu, len, rate), 0);
		ck_assert_int_eq(
		    pdu_encode_response(profile, rate, out, PACKET_MAX, &n), 0);
		break;
	case PDU_LATENCY_REPORT:
		ck_assert_int_eq(
		    pdu_decode_report(profile, pdu, len, report), 0);
		ck_assert_int_eq(
		    pdu_encode_report(profile, report, out, PACKET_MAX, &n), 0);
		break;
	}
	return n;
}

/* What the captured v1 requests and reports were made from. */
static void
check_v1_inputs(const char *name, const struct pdu_rate *rate,
    const struct pdu_report *report)
{
	uint8_t bucket[ID_LEN], tracker[ID_LEN];

	ck_assert_int_eq(id_bucket(hash, "checkout", 8, 1000, 100, bucket), 0);
	ck_assert_int_eq(id_tracker(hash, PROFILE_V1, "inventory-backend", 17,
			     10000, 100, 32, 5, tracker),
	    0);
	if (strstr(name, "request") != NULL) {
		ck_assert_uint_eq(rate->dedup_ttl_ms, 60);
		ck_assert_mem_eq(rate->resources[0].id, bucket, ID_LEN);
		ck_assert_uint_eq(rate->resources[0].tokens, 1);
		ck_assert_mem_eq(rate->guards[0].id, tracker, ID_LEN);
		ck_assert_uint_eq(rate->guards[0].buffer_size, 32);
		ck_assert_uint_eq(rate->guards[0].threshold_ms, 100);
		ck_assert_uint_eq(rate->label_len, 3);
	} else if (strstr(name, "report") != NULL) {
		ck_assert_mem_eq(report->samples[0].id, tracker, ID_LEN);
		ck_assert_uint_eq(report->samples[0].observed_ms, 18);
	} else {
		/* An empty answer is well formed; that it answers nothing
		 * that was asked is for whoever compares the counts. */
		ck_assert_uint_eq(rate->guard_count, 0);
		ck_assert_uint_eq(rate->resource_count, 0);
	}
}

static void
check_v2_contents(const json_t *v, const struct pdu_rate *rate)
{
	const json_t *e = json_object_get(v, "expect");
	struct pdu_rate want;

	if (e != NULL) {
		ck_assert_uint_eq(rate->guards[0].current_ms,
		    vectors_u32(e, "guard_current"));
		ck_assert_uint_eq(
		    rate->resources[0].limit, vectors_u32(e, "actual_rate"));
		ck_assert_uint_eq(
		    rate->resources[0].tokens, vectors_u32(e, "deficit"));
		ck_assert_int_eq(vectors_bool(e, "success"),
		    rate->guards[0].current_ms < rate->guards[0].threshold_ms &&
			rate->resources[0].tokens == 0);
	} else if (json_object_get(v, "dedup_ttl_ms") != NULL) {
		v2_request(&want);
		ck_assert_uint_eq(
		    rate->dedup_ttl_ms, vectors_u32(v, "dedup_ttl_ms"));
		ck_assert_int_eq(
		    memcmp(rate->guards, want.guards, sizeof want.guards[0]),
		    0);
		ck_assert_int_eq(memcmp(rate->resources, want.resources,
				     sizeof want.resources[0]),
		    0);
		ck_assert_uint_eq(rate->label_len, want.label_len);
	}
}

static void
check_head(const json_t *v, const struct credential *cred,
    const struct packet_head *head)
{
	const char *name = vectors_str(v, "name");
	bool response = strstr(name, "response") != NULL;

	assert_hex(v, "request_id", head->unique_id, PACKET_UNIQUE_LEN);
	ck_assert(head->time_stamp == vectors_u64(v, "time_stamp"));
	ck_assert(!head->mgmt);
	if (!response) {
		ck_assert(head->key_id == cred->key_id);
		ck_assert(!head->keep_port);
	} else if (json_object_get(v, "server_id") != NULL) {
		ck_assert(head->key_id == vectors_u64(v, "server_id"));
		ck_assert_int_eq(
		    head->keep_port, vectors_u32(v, "steering") != 0);
	} else /* of the responder that the list describes */
		ck_assert(head->key_id == 83886081 && head->keep_port);
}

/* Opens, decodes, encodes, seals: every byte comes back. */
static void
check_datagram(const json_t *v, const json_t *root, enum profile profile)
{
	uint8_t d[PACKET_MAX], scratch[PACKET_MAX], out[PACKET_MAX];
	uint8_t sealed[PACKET_MAX];
	size_t len = vectors_hex(v, "hex", d, sizeof d), pdu_len, n;
	struct pdu_report report = {0};
	struct pdu_rate rate = {0};
	struct credential cred;
	struct packet_view view;
	struct packet_key *key;
	const uint8_t *pdu;

	find_key(root, vectors_str(v, "key"), &cred);
	key = packet_key_new(&cred);
	ck_assert_ptr_nonnull(key);
	ck_assert_int_eq(packet_peek(d, len, &view), 0);
	ck_assert_int_eq(view.auth, cred.auth);
	check_head(v, &cred, &view.head);
	if (json_object_get(v, "aad_hex") != NULL)
		assert_hex(v, "aad_hex", view.aad, view.aad_len);
	if (json_object_get(v, "nonce") != NULL)
		assert_hex(v, "nonce", view.secret, NONCE_LEN);
	ck_assert_int_eq(
	    packet_open(key, &view, scratch, sizeof scratch, &pdu, &pdu_len),
	    0);
	if (json_object_get(v, "plaintext_hex") != NULL)
		assert_hex(v, "plaintext_hex", pdu, pdu_len);
	if (profile == PROFILE_V1)
		assert_hex(v, "plaintext_pdu_hex", pdu, pdu_len);
	n = recode(profile, pdu, pdu_len, out, &rate, &report);
	ck_assert_uint_eq(n, pdu_len);
	ck_assert_mem_eq(out, pdu, n);
	if (profile == PROFILE_V1)
		check_v1_inputs(vectors_str(v, "name"), &rate, &report);
	else
		check_v2_contents(v, &rate);
	ck_assert_int_eq(packet_seal(key, &view.head, view.secret, out, n,
			     sealed, sizeof sealed, &n),
	    0);
	ck_assert_uint_eq(n, len);
	ck_assert_mem_eq(sealed, d, len);
	/* The list's own example of tampering. */
	d[4] ^= 1;
	ck_assert_int_eq(packet_peek(d, len, &view), 0);
	ck_assert_int_eq(
	    packet_open(key, &view, scratch, sizeof scratch, &pdu, &pdu_len),
	    cred.auth == AUTH_AES ? RLA_EAUTH : 0);
	packet_key_free(key);
}

static size_t
run_datagrams_v1(const json_t *section, const json_t *root)
{
	json_t *v;
	size_t i;

	json_array_foreach(section, i, v) check_datagram(v, root, PROFILE_V1);
	return i;
}

static size_t
run_datagrams_v2(const json_t *section, const json_t *root)
{
	json_t *v;
	size_t i;

	json_array_foreach(section, i, v) check_datagram(v, root, PROFILE_V2);
	return i;
}

/* Encodes and seals n blocks of a kind as a client would. */
static int
seal_blocks(struct packet_key *key, enum auth_type auth, enum profile profile,
    const char *kind, size_t n)
{
	static const struct packet_head head;
	static const uint8_t nonce[NONCE_LEN];
	static struct pdu_report report;
	static struct pdu_rate rate;
	uint8_t pdu[PACKET_MAX], d[PACKET_MAX];
	size_t room = PACKET_MAX - packet_overhead(auth), len;
	int rc;

	report.count = n;
	rate.guard_count = strcmp(kind, "guards") == 0 ? n : 0;
	rate.resource_count = strcmp(kind, "resources") == 0 ? n : 0;
	if (strcmp(kind, "reports") == 0)
		rc = pdu_encode_report(profile, &report, pdu, room, &len);
	else
		rc = pdu_encode_request(profile, &rate, pdu, room, &len);
	if (rc != 0)
		return rc;
	return packet_seal(key, &head, nonce, pdu, len, d, sizeof d, &len);
}

static size_t
run_capacity(const json_t *section, const json_t *root)
{
	static const char *const profiles[] = {"v1", "v2"};
	size_t count = 0, most;
	int auth, profile;
	const char *kind;
	json_t *number;

	(void)root;
	for (auth = AUTH_NONE; auth <= AUTH_AES; auth++) {
		struct credential cred = {.auth = (enum auth_type)auth};
		struct packet_key *key = packet_key_new(&cred);
		const json_t *modes =
		    vectors_get(section, credential_auth_name(cred.auth));

		ck_assert_ptr_nonnull(key);
		for (profile = PROFILE_V1; profile <= PROFILE_V2; profile++) {
			json_t *kinds =
			    json_object_get(modes, profiles[profile]);

			json_object_foreach(kinds, kind, number)
			{
				most = (size_t)json_integer_value(number);
				ck_assert_int_eq(
				    seal_blocks(key, cred.auth,
					(enum profile)profile, kind, most),
				    0);
				ck_assert_int_eq(
				    seal_blocks(key, cred.auth,
					(enum profile)profile, kind, most + 1),
				    RLA_ETOOBIG);
				count++;
			}
		}
		packet_key_free(key);
	}
	return count;
}

static const struct vectors_job jobs[] = {
    {"metrics_label_tlv", run_labels},
    {"bodies_and_pdus_v2", run_bodies},
    {"datagrams_v1", run_datagrams_v1},
    {"datagrams_v2", run_datagrams_v2},
    {"capacity_1200", run_capacity},
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
	vectors_check_wire_jobs(root, VECTORS_WIRE, jobs, JOBS);
}
END_TEST

START_TEST(section)
{
	vectors_run(root, &jobs[_i]);
}
END_TEST

/*
 * How another client walks its source ports. Here the kernel chooses them,
 * so there is no code to hold to these: they are counted, and left out.
 */
START_TEST(information_is_skipped_by_design)
{
	ck_assert_int_eq(
	    vectors_wire_owner("steering_next_port"), VECTORS_INFORMATION);
	ck_assert_uint_eq(
	    vectors_count(vectors_get(root, "steering_next_port")), 4);
	printf("# steering_next_port: 4 vectors skipped by design\n");
	fflush(stdout);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vectors_wire");
	TCase *tc = tcase_create("wire");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_section_has_an_owner);
	tcase_add_loop_test(tc, section, 0, JOBS);
	tcase_add_test(tc, information_is_skipped_by_design);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
