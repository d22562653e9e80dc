/*
 * Runs official-v1.json, inputs and outputs of the public C client 0.5.1
 * (profile v1), against proto/. Its verdicts on responses are compared with
 * those of a small client below; the deviations are documented ones and each
 * stands in the table of deviations with its reason.
 */
#include "tests/vectors/vectors.h"

#include <string.h>

#include "proto/credential.h"
#include "proto/err.h"
#include "proto/id.h"
#include "proto/packet.h"
#include "proto/pdu.h"
#include "tests/unit/harness.h"

#define RC_PROTOCOL (-3)
#define RC_CONFIG   (-6)

static struct id_hash *hash;

/* A vector's return code of the public client, which may be negative. */
static int
code(const json_t *v, const char *name)
{
	const json_t *value = vectors_get(v, name);

	ck_assert(json_is_integer(value));
	return (int)json_integer_value(value);
}

static void
assert_hex(const json_t *v, const char *name, const void *bytes, size_t len)
{
	uint8_t want[2 * PACKET_MAX];
	size_t want_len = vectors_hex(v, name, want, sizeof want);

	ck_assert_uint_eq(len, want_len);
	ck_assert_msg(memcmp(bytes, want, len) == 0, "%s differs in %s", name,
	    vectors_str(v, "desc"));
}

static struct packet_key *
key_of(const json_t *v, struct credential *cred)
{
	const char *text = vectors_str(v, "key");
	struct packet_key *key;

	ck_assert_int_eq(credential_parse(text, strlen(text), cred), 0);
	ck_assert_str_eq(
	    credential_auth_name(cred->auth), vectors_str(v, "auth"));
	ck_assert_int_eq(credential_profile(cred), PROFILE_V1);
	key = packet_key_new(cred);
	ck_assert_ptr_nonnull(key);
	return key;
}

static size_t
run_bucket_ids(const json_t *section, const json_t *root)
{
	uint8_t name[256], id[ID_LEN];
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(vectors_get(section, "vectors"), i, v)
	{
		len = vectors_hex(v, "name", name, sizeof name);
		ck_assert_int_eq(
		    id_bucket(hash, name, len, vectors_u32(v, "window_size_ms"),
			vectors_u32(v, "rate_limit"), id),
		    0);
		assert_hex(v, "id", id, ID_LEN);
	}
	return i;
}

static size_t
run_tracker_ids(const json_t *section, const json_t *root)
{
	uint8_t name[256], id[ID_LEN];
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(vectors_get(section, "vectors"), i, v)
	{
		len = vectors_hex(v, "name", name, sizeof name);
		ck_assert_int_eq(
		    id_tracker(hash, PROFILE_V1, name, len,
			vectors_u32(v, "ttl_ms"), vectors_u32(v, "max_samples"),
			vectors_u32(v, "buffer_size"),
			vectors_u32(v, "min_sample_threshold"), id),
		    0);
		assert_hex(v, "id", id, ID_LEN);
	}
	return i;
}

static void
check_valid_key(const json_t *v)
{
	char text[CREDENTIAL_TEXT_MAX], again[CREDENTIAL_TEXT_MAX];
	struct credential c;
	size_t len, i;

	ck_assert_int_eq(code(v, "rc"), 0);
	len = vectors_hex(v, "encoded", text, sizeof text);
	ck_assert_int_eq(credential_parse(text, len, &c), 0);
	ck_assert_str_eq(credential_auth_name(c.auth), vectors_str(v, "type"));
	ck_assert(c.key_id == vectors_u64(v, "key_id"));
	assert_hex(v, "secret", c.secret, sizeof c.secret);
	ck_assert_uint_eq(
	    c.quotas.rate_buckets, vectors_u32(v, "rate_buckets_max"));
	ck_assert_uint_eq(
	    c.quotas.latency_trackers, vectors_u32(v, "latency_services_max"));
	ck_assert_uint_eq(
	    c.quotas.metrics_labels, vectors_u32(v, "metrics_labels_max"));
	ck_assert_uint_eq(
	    c.quotas.latency_buffer, vectors_u32(v, "latency_buffer_size_max"));
	ck_assert_uint_eq(
	    c.quotas.dedup_ttl_ms, vectors_u32(v, "dedup_ttl_ms_max"));
	ck_assert_int_eq(credential_format(&c, again, sizeof again), 0);
	for (i = 0; i < len; i++) {
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] += 'a' - 'A';
	}
	ck_assert_uint_eq(strlen(again), len);
	ck_assert_mem_eq(again, text, len);
}

/* The public client has one code for all of these; ours say more. */
static int
key_error(const char *desc)
{
	if (strcmp(desc, "wrong hrp bc") == 0)
		return RLA_EKEYTYPE;
	if (strcmp(desc, "short payload 59 bytes") == 0 ||
	    strcmp(desc, "payload 40 bytes (no quotas)") == 0)
		return RLA_EKEYFORMAT;
	return RLA_EKEYTEXT;
}

static size_t
run_keys(const json_t *section, const json_t *root)
{
	char text[CREDENTIAL_TEXT_MAX];
	struct credential c;
	size_t i, n, len;
	json_t *v;

	(void)root;
	json_array_foreach(vectors_get(section, "valid"), n, v)
	    check_valid_key(v);
	json_array_foreach(vectors_get(section, "invalid"), i, v)
	{
		ck_assert_int_eq(code(v, "rc"), RC_CONFIG);
		len = vectors_hex(v, "encoded", text, sizeof text);
		ck_assert_int_eq(credential_parse(text, len, &c),
		    key_error(vectors_str(v, "desc")));
	}
	return n + i;
}

static void
read_rate(const json_t *v, struct pdu_rate *rate, uint8_t label[PDU_LABEL_MAX])
{
	json_t *b;
	size_t i;

	memset(rate, 0, sizeof *rate);
	rate->dedup_ttl_ms = vectors_u32(v, "dedup_ttl_ms");
	json_array_foreach(vectors_get(v, "guards"), i, b)
	{
		struct pdu_guard *g = &rate->guards[i];

		ck_assert_uint_lt(i, PDU_MAX_GUARDS);
		vectors_hex(b, "id", g->id, ID_LEN);
		g->threshold_ms = vectors_u32(b, "threshold_ms");
		g->ttl_ms = vectors_u32(b, "ttl_ms");
		g->max_samples = vectors_u32(b, "max_samples");
		g->buffer_size = vectors_u32(b, "buffer_size");
		g->min_samples = vectors_u32(b, "min_sample_threshold");
	}
	rate->guard_count = i;
	json_array_foreach(vectors_get(v, "resources"), i, b)
	{
		struct pdu_resource *r = &rate->resources[i];

		ck_assert_uint_lt(i, PDU_MAX_RESOURCES);
		vectors_hex(b, "id", r->id, ID_LEN);
		r->window_ms = vectors_u32(b, "window_size_ms");
		r->limit = vectors_u32(b, "rate_limit");
		r->tokens = (uint16_t)vectors_u32(b, "tokens_requested");
	}
	rate->resource_count = i;
	rate->label_len = vectors_hex(v, "label", label, PDU_LABEL_MAX);
	rate->label = label;
}

static void
read_head(
    const json_t *v, const struct credential *cred, struct packet_head *head)
{
	memset(head, 0, sizeof *head);
	head->key_id = cred->key_id;
	ck_assert_uint_eq(
	    vectors_hex(v, "unique_id", head->unique_id, PACKET_UNIQUE_LEN),
	    PACKET_UNIQUE_LEN);
	head->time_stamp = vectors_u64(v, "time_stamp");
	/* unique_id carries the version and variant of a UUIDv4. */
	ck_assert_uint_eq(head->unique_id[6] >> 4, 4);
	ck_assert_uint_eq(head->unique_id[8] >> 6, 2);
}

/* The parts of an AES datagram, as the vector names them. */
static void
check_parts(const json_t *v, const uint8_t *d, size_t len, const uint8_t *pdu,
    size_t pdu_len)
{
	assert_hex(v, "aad", d, 56);
	assert_hex(v, "nonce", d + 44, NONCE_LEN);
	assert_hex(v, "tag", d + 56, 16);
	assert_hex(v, "cipher", d + 72, len - 72);
	assert_hex(v, "pdu", pdu, pdu_len);
}

/* Seals the PDU as the vector did; the datagram must be the same. */
static void
check_sealed(const json_t *v, const uint8_t *pdu, size_t pdu_len)
{
	uint8_t nonce[NONCE_LEN] = {0}, d[PACKET_MAX], scratch[PACKET_MAX];
	struct credential cred;
	struct packet_key *key = key_of(v, &cred);
	struct packet_view view;
	struct packet_head head;
	const uint8_t *plain;
	size_t len, plain_len;

	read_head(v, &cred, &head);
	if (cred.auth == AUTH_AES) {
		vectors_hex(v, "nonce", nonce, sizeof nonce);
		assert_hex(v, "aes_key", cred.secret, sizeof cred.secret);
	}
	ck_assert_int_eq(
	    packet_seal(key, &head, nonce, pdu, pdu_len, d, sizeof d, &len), 0);
	ck_assert_uint_eq(len, vectors_u64(v, "len"));
	assert_hex(v, "datagram", d, len);
	if (cred.auth == AUTH_AES)
		check_parts(v, d, len, pdu, pdu_len);
	ck_assert_int_eq(packet_peek(d, len, &view), 0);
	ck_assert_int_eq(packet_open(key, &view, scratch, sizeof scratch,
			     &plain, &plain_len),
	    0);
	ck_assert_uint_eq(plain_len, pdu_len);
	ck_assert_mem_eq(plain, pdu, pdu_len);
	packet_key_free(key);
}

/*
 * Deviation: the public client drops a label that starts with NUL; here it is
 * sent like any other. Without it the bytes are the vector's, and with it the
 * TLV is what the layout demands.
 */
static void
check_nul_label(const json_t *v, struct pdu_rate *rate)
{
	static const uint8_t tlv[12] = "ML\x0c\0\x03\0\0ab\0\0\0";
	uint8_t bare[PACKET_MAX], pdu[PACKET_MAX];
	size_t bare_len, len, label_len = rate->label_len;

	rate->label_len = 0;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V1, rate, bare, sizeof bare, &bare_len),
	    0);
	check_sealed(v, bare, bare_len);
	rate->label_len = label_len;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V1, rate, pdu, sizeof pdu, &len), 0);
	ck_assert_uint_eq(len, bare_len + sizeof tlv);
	ck_assert_uint_eq(pdu[2], len);
	ck_assert_mem_eq(pdu + 4, bare + 4, bare_len - 4);
	ck_assert_mem_eq(pdu + bare_len, tlv, sizeof tlv);
}

/* Refused by the public client: too large, or over a quota of the key. */
static void
check_refused_request(const json_t *v, const struct pdu_rate *rate)
{
	struct credential cred;
	uint8_t pdu[PACKET_MAX];
	size_t len, i;
	bool over = false;

	ck_assert_int_eq(code(v, "rc"), RC_PROTOCOL);
	packet_key_free(key_of(v, &cred));
	/* Quotas are enforced by whoever builds the request; the codec lets
	 * any number through, so the breach itself is what is asserted. */
	for (i = 0; i < rate->guard_count; i++)
		over |=
		    rate->guards[i].buffer_size > cred.quotas.latency_buffer;
	ck_assert_int_eq(pdu_encode_request(PROFILE_V1, rate, pdu,
			     PACKET_MAX - packet_overhead(cred.auth), &len),
	    over ? 0 : RLA_ETOOBIG);
}

static size_t
run_requests(const json_t *section, const json_t *root)
{
	uint8_t label[PDU_LABEL_MAX], pdu[PACKET_MAX], random[16];
	struct pdu_rate rate, back;
	struct credential cred;
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(vectors_get(section, "vectors"), i, v)
	{
		read_rate(v, &rate, label);
		if (code(v, "rc") != 0) {
			check_refused_request(v, &rate);
			continue;
		}
		packet_key_free(key_of(v, &cred));
		ck_assert(credential_allows_ttl(&cred, rate.dedup_ttl_ms));
		if (rate.label_len > 0 && label[0] == 0) {
			check_nul_label(v, &rate);
			continue;
		}
		ck_assert_int_eq(pdu_encode_request(
				     PROFILE_V1, &rate, pdu, sizeof pdu, &len),
		    0);
		check_sealed(v, pdu, len);
		ck_assert_int_eq(
		    pdu_decode_request(PROFILE_V1, pdu, len, &back), 0);
		ck_assert_int_eq(memcmp(back.guards, rate.guards,
				     rate.guard_count * sizeof *rate.guards),
		    0);
		vectors_hex(v, "unique_id_random_input", random, 16);
		random[6] = (uint8_t)((random[6] & 0x0f) | 0x40);
		random[8] = (uint8_t)((random[8] & 0x3f) | 0x80);
		assert_hex(v, "unique_id", random, 16);
	}
	return i;
}

static size_t
run_reports(const json_t *section, const json_t *root)
{
	struct pdu_report report;
	struct credential cred;
	uint8_t pdu[PACKET_MAX];
	size_t i, j, len;
	json_t *v, *b;
	int rc;

	(void)root;
	json_array_foreach(vectors_get(section, "vectors"), i, v)
	{
		json_array_foreach(vectors_get(v, "reports"), j, b)
		{
			struct pdu_sample *s = &report.samples[j];

			ck_assert_uint_lt(j, PDU_MAX_REPORTS);
			vectors_hex(b, "id", s->id, ID_LEN);
			s->ttl_ms = vectors_u32(b, "ttl_ms");
			s->max_samples = vectors_u32(b, "max_samples");
			s->buffer_size = vectors_u32(b, "buffer_size");
			s->min_samples = vectors_u32(b, "min_sample_threshold");
			s->observed_ms = vectors_u32(b, "observed_latency");
		}
		report.count = j;
		packet_key_free(key_of(v, &cred));
		rc = pdu_encode_report(PROFILE_V1, &report, pdu,
		    PACKET_MAX - packet_overhead(cred.auth), &len);
		if (code(v, "rc") != 0) {
			ck_assert_int_eq(code(v, "rc"), RC_PROTOCOL);
			ck_assert_int_eq(rc, RLA_ETOOBIG);
			continue;
		}
		ck_assert_int_eq(rc, 0);
		ck_assert_uint_eq(vectors_u64(v, "datagrams"), 1);
		check_sealed(v, pdu, len);
	}
	return i;
}

/* A client with one request in flight, as far as the codec goes. */
struct asked {
	struct packet_key *key;
	uint8_t unique_id[PACKET_UNIQUE_LEN];
	uint64_t server_id;
	size_t guards, resources;
};

static bool
ids_match(const struct asked *asked, const struct pdu_rate *rate)
{
	uint8_t id[ID_LEN];
	size_t i;

	if (rate->guard_count != asked->guards ||
	    rate->resource_count != asked->resources)
		return false;
	for (i = 0; i < asked->guards; i++) {
		memset(id, (int)(0xc0 + i), ID_LEN);
		if (memcmp(rate->guards[i].id, id, ID_LEN) != 0)
			return false;
	}
	for (i = 0; i < asked->resources; i++) {
		memset(id, (int)(0xb0 + i), ID_LEN);
		if (memcmp(rate->resources[i].id, id, ID_LEN) != 0)
			return false;
	}
	return true;
}

/* What becomes of a datagram: 0 when it answers what was asked. */
static int
receive(const struct asked *asked, const json_t *v, const uint8_t *d,
    size_t len, struct packet_head *head, struct pdu_rate *rate)
{
	uint8_t scratch[PACKET_MAX];
	struct packet_view view;
	const uint8_t *pdu;
	size_t pdu_len;
	int rc = packet_peek(d, len, &view);

	if (rc == 0)
		rc = packet_open(
		    asked->key, &view, scratch, sizeof scratch, &pdu, &pdu_len);
	if (rc != 0)
		return rc;
	if (json_object_get(v, "pdu") != NULL)
		assert_hex(v, "pdu", pdu, pdu_len);
	*head = view.head;
	rc = pdu_decode_response(PROFILE_V1, pdu, pdu_len, rate);
	if (rc != 0)
		return rc;
	if (head->key_id != asked->server_id ||
	    memcmp(head->unique_id, asked->unique_id, PACKET_UNIQUE_LEN) != 0 ||
	    !ids_match(asked, rate))
		return RLA_EMISMATCH;
	return 0;
}

/*
 * What each kind of response comes to here. It deviates where the public
 * client completes the request and this project does not.
 */
static const struct response_row {
	const char *desc;
	int want;
	bool deviates;
} response_rows[] = {
    {"allow", 0, false},
    {"deny by guard (current 101 > threshold 100)", 0, false},
    {"guard just below threshold (allowed)", 0, false},
    /* No empty response ever allows: its counts are not the request's. */
    {"zero counts (official: success with no entries)", RLA_EMISMATCH, true},
    /* Nor does one that answers more than was asked. */
    {"more entries than asked (asked 1; third has deficit)", RLA_EMISMATCH,
	true},
    {"trailing bytes after the PDU", 0, false},
    {"PDU one byte short of its size field", RLA_ESHORT, false},
    {"PDU size field one less than the blocks need", RLA_EMALFORMED, false},
    {"PDU size 7 < header", RLA_EMALFORMED, false},
    {"wrong PDU type (latency report)", RLA_EMALFORMED, false},
    {"non-zero PDU header padding", 0, false},
    {"steering_feedback 0 (rebind)", 0, false},
    {"tenant TLV size 44 with 4 extra bytes", 0, false},
    {"tenant TLV wrong type", RLA_EMALFORMED, false},
    {"server id not in membership (ignored, rc 0)", RLA_EMISMATCH, false},
    /* The type changed and the size did not: no such TLV. */
    {"auth TLV of the other kind", RLA_EMALFORMED, false},
    {"3-byte datagram", RLA_ESHORT, false},
    {"header + auth TLV, no PDU", RLA_ESHORT, false},
    {"cookie wrong in one bit", RLA_EAUTH, false},
    {"aes: nonce bit flipped", RLA_EAUTH, false},
    {"aes: AAD timestamp bit flipped", RLA_EAUTH, false},
};

static const struct response_row *
response_row(const char *desc)
{
	size_t i;

	for (i = 0; i < sizeof response_rows / sizeof response_rows[0]; i++) {
		if (strcmp(response_rows[i].desc, desc) == 0)
			return &response_rows[i];
	}
	ck_abort_msg("no expectation for response %s", desc);
	return NULL;
}

/* An AES datagram cut after its tag no longer authenticates. */
static int
rc_of(const struct response_row *row, const struct credential *cred)
{
	if (row->want == RLA_ESHORT && cred->auth == AUTH_AES &&
	    strcmp(row->desc, "header + auth TLV, no PDU") == 0)
		return RLA_EAUTH;
	return row->want;
}

static void
check_result(const json_t *result, const struct packet_head *head,
    const struct pdu_rate *rate)
{
	bool success = true;
	json_t *b;
	size_t i;

	ck_assert(head->key_id == vectors_u64(result, "server_id"));
	ck_assert_int_eq(
	    head->keep_port, vectors_bool(result, "steering_keep_port"));
	json_array_foreach(vectors_get(result, "guards"), i, b)
	{
		const struct pdu_guard *g = &rate->guards[i];
		bool passed = g->current_ms < g->threshold_ms;
		uint8_t id[ID_LEN];

		vectors_hex(b, "id", id, ID_LEN);
		ck_assert_mem_eq(g->id, id, ID_LEN);
		ck_assert_uint_eq(
		    g->threshold_ms, vectors_u32(b, "threshold_ms"));
		ck_assert_uint_eq(
		    g->current_ms, vectors_u32(b, "current_latency_ms"));
		ck_assert_int_eq(passed, vectors_bool(b, "passed"));
		success &= passed;
	}
	ck_assert_uint_eq(rate->guard_count, i);
	json_array_foreach(vectors_get(result, "resources"), i, b)
	{
		const struct pdu_resource *r = &rate->resources[i];
		uint8_t id[ID_LEN];

		vectors_hex(b, "id", id, ID_LEN);
		ck_assert_mem_eq(r->id, id, ID_LEN);
		ck_assert_uint_eq(r->tokens, vectors_u32(b, "tokens_deficit"));
		ck_assert_uint_eq(r->limit, vectors_u32(b, "actual_rate"));
		success &= r->tokens == 0;
	}
	ck_assert_uint_eq(rate->resource_count, i);
	ck_assert_int_eq(success, vectors_bool(result, "success"));
}

static size_t
run_responses(const json_t *section, const json_t *root)
{
	uint8_t d[2 * PACKET_MAX];
	struct packet_head head;
	struct credential cred;
	struct pdu_rate rate;
	struct asked asked;
	size_t i, len;
	json_t *v;

	(void)root;
	json_array_foreach(vectors_get(section, "vectors"), i, v)
	{
		const char *desc = vectors_str(v, "desc");
		const struct response_row *row = response_row(desc);
		int rc, want;

		asked.key = key_of(v, &cred);
		asked.server_id = vectors_u64(v, "known_server_id");
		asked.guards = vectors_u64(v, "asked_guards");
		asked.resources = vectors_u64(v, "asked_resources");
		vectors_hex(v, "unique_id", asked.unique_id, PACKET_UNIQUE_LEN);
		len = vectors_hex(v, "datagram", d, sizeof d);
		rc = receive(&asked, v, d, len, &head, &rate);
		packet_key_free(asked.key);
		want = rc_of(row, &cred);
		ck_assert_msg(rc == want, "%s (%s): %s", desc,
		    vectors_str(v, "auth"), err_str((enum rla_err)rc));
		ck_assert_int_eq(
		    vectors_bool(v, "completed"), rc == 0 || row->deviates);
		ck_assert(rc == 0 || row->deviates ||
			  code(v, "on_datagram_rc") != 0 ||
			  rc == RLA_EMISMATCH);
		/* Also where we deviate the fields decode as they do there. */
		if (vectors_bool(v, "completed"))
			check_result(vectors_get(v, "result"), &head, &rate);
	}
	return i;
}

static const struct vectors_job jobs[] = {
    {"bucket_ids", run_bucket_ids},
    {"tracker_ids", run_tracker_ids},
    {"keys", run_keys},
    {"cookie_requests", run_requests},
    {"aes_requests", run_requests},
    {"latency_reports", run_reports},
    {"responses", run_responses},
};
#define JOBS (sizeof jobs / sizeof jobs[0])

static json_t *root;

static void
set_up(void)
{
	root = vectors_load("official-v1.json");
	hash = id_hash_new();
	ck_assert_ptr_nonnull(hash);
}

static void
tear_down(void)
{
	id_hash_free(hash);
	json_decref(root);
}

START_TEST(every_section_has_a_job)
{
	const char *section;
	json_t *value;
	size_t i;

	json_object_foreach(root, section, value)
	{
		for (i = 0; i < JOBS; i++) {
			if (strcmp(jobs[i].section, section) == 0)
				break;
		}
		ck_assert_msg(i < JOBS || strcmp(section, "about") == 0,
		    "nobody runs section %s", section);
	}
	ck_assert_uint_eq(json_object_size(root), JOBS + 1);
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
	Suite *s = suite_create("vectors_official");
	TCase *tc = tcase_create("official");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_section_has_a_job);
	tcase_add_loop_test(tc, section, 0, JOBS);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
