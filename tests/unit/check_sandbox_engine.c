/*
 * Datagrams in, answers out: every class of silence, deduplication, all
 * authentication types and both profiles, and requests that public clients
 * have sent (tests/vectors/wire.json).
 */
#include "sandbox/engine.h"

#include <jansson.h>
#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"

#define SERVER_ID UINT64_C(0x1122334455667788)
#define WALL      INT64_C(1800000000000)
#define TOLERANCE 30000

static struct keyring ring;
static struct engine *engine;
static struct engine_result result;
static struct pdu_rate req;
static int64_t now_ms;
static uint64_t stamp;
static uint8_t unique[16];
static bool mgmt;
static struct fault_plan plan; /* of every datagram */

static struct credential
credential_of(uint64_t key_id, enum auth_type auth, enum key_format format)
{
	struct credential cred = {.auth = auth,
	    .format = format,
	    .key_id = key_id,
	    .quotas = {16, 16, 16, 16, 300, UINT32_MAX}};

	if (auth != AUTH_NONE)
		memset(cred.secret, (int)key_id, sizeof cred.secret);
	return cred;
}

static void
setup(void)
{
	struct credential cred;

	keyring_init(&ring);
	cred = credential_of(1, AUTH_NONE, KEY_FORMAT_1);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), 0);
	cred = credential_of(2, AUTH_COOKIE, KEY_UNVERSIONED);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), 0);
	cred = credential_of(3, AUTH_AES, KEY_FORMAT_1);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), 0);
	engine = engine_new(&ring, SERVER_ID, 42, TOLERANCE);
	ck_assert_ptr_nonnull(engine);
	memset(&req, 0, sizeof req);
	req.dedup_ttl_ms = 60;
	req.resource_count = 1;
	memset(req.resources[0].id, 0xB1, ID_LEN);
	req.resources[0].window_ms = 1000;
	req.resources[0].limit = 10;
	req.resources[0].tokens = 4;
	memset(unique, 0xC2, sizeof unique);
	stamp = WALL;
	now_ms = 0;
	mgmt = false;
	plan = (struct fault_plan){0};
}

static void
teardown(void)
{
	engine_free(engine);
	keyring_fini(&ring);
}

static uint64_t
counted(enum counter c)
{
	return engine_counters(engine)->values[c];
}

static void
handle(const uint8_t *bytes, size_t len)
{
	struct engine_input in = {bytes, len, now_ms, WALL, plan};

	engine_handle(engine, &in, &result);
}

static size_t
seal_pdu(int k, const uint8_t *pdu, size_t pdu_len, uint8_t out[PACKET_MAX])
{
	static uint8_t nonce[NONCE_LEN];
	struct packet_head head = {.key_id = ring.keys[k].cred.key_id,
	    .time_stamp = stamp,
	    .mgmt = mgmt};
	size_t len;

	nonce[0]++;
	memcpy(head.unique_id, unique, sizeof unique);
	ck_assert_int_eq(packet_seal(ring.keys[k].packet, &head, nonce, pdu,
			     pdu_len, out, PACKET_MAX, &len),
	    0);
	return len;
}

static size_t
make_request(int k, uint8_t out[PACKET_MAX])
{
	uint8_t pdu[PACKET_MAX];
	size_t len;

	ck_assert_int_eq(pdu_encode_request(
			     ring.keys[k].profile, &req, pdu, sizeof pdu, &len),
	    0);
	return seal_pdu(k, pdu, len, out);
}

/* The label of the result borrows the datagram. */
static void
send_request(int k)
{
	static uint8_t bytes[PACKET_MAX];

	handle(bytes, make_request(k, bytes));
}

/* Opens the answer as a client would. */
static struct pdu_rate
open_answer(int k)
{
	static uint8_t scratch[PACKET_MAX];
	struct packet_view view;
	struct pdu_rate out;
	const uint8_t *pdu;
	size_t len;

	ck_assert_uint_gt(result.answer_len, 0);
	ck_assert_int_eq(
	    packet_peek(result.answer, result.answer_len, &view), 0);
	ck_assert_uint_eq(view.head.key_id, SERVER_ID ^ plan.wrong_id);
	ck_assert_uint_eq(view.head.key_id, result.answer_id);
	ck_assert_mem_eq(view.head.unique_id, unique, sizeof unique);
	ck_assert_uint_eq(view.head.time_stamp, WALL);
	ck_assert_int_eq(view.head.keep_port, !plan.rebind);
	ck_assert(!view.head.mgmt);
	ck_assert_int_eq(packet_open(ring.keys[k].packet, &view, scratch,
			     sizeof scratch, &pdu, &len),
	    0);
	ck_assert_int_eq(
	    pdu_decode_response(ring.keys[k].profile, pdu, len, &out), 0);
	return out;
}

static void
ignored_as(enum counter reason)
{
	ck_assert_int_eq(result.event, ENGINE_IGNORED);
	ck_assert_str_eq(counter_name(result.reason), counter_name(reason));
	ck_assert_uint_eq(result.answer_len, 0);
	ck_assert_uint_eq(counted(reason), 1);
}

/* One token less in the bucket than a silent server must have left. */
static void
nothing_was_consumed(int k)
{
	unique[0]++;
	stamp = WALL;
	mgmt = false;
	plan = (struct fault_plan){0};
	send_request(k);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert_uint_eq(open_answer(k).resources[0].limit, 4);
}

/* Guards too, in the form of each key's profile. */
START_TEST(answers_every_kind_of_key)
{
	struct pdu_rate answer;

	req.guard_count = 1;
	memset(req.guards[0].id, 0xAA, ID_LEN);
	req.guards[0].ttl_ms = 1000;
	req.guards[0].max_samples = 10;
	req.guards[0].threshold_ms = 5;
	if (ring.keys[_i].profile == PROFILE_V1)
		req.guards[0].buffer_size = 16;
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert(result.allowed);
	answer = open_answer(_i);
	ck_assert_uint_eq(answer.guard_count, 1);
	ck_assert_uint_eq(answer.resource_count, 1);
	ck_assert_mem_eq(answer.guards[0].id, req.guards[0].id, ID_LEN);
	ck_assert_uint_eq(
	    answer.guards[0].buffer_size, req.guards[0].buffer_size);
	ck_assert_uint_eq(answer.resources[0].limit, 4);
	ck_assert_uint_eq(answer.resources[0].tokens, 0);
	ck_assert_uint_eq(counted(COUNT_ALLOWED), 1);
}
END_TEST

START_TEST(profiles_follow_formats_unless_forced)
{
	struct credential cred = credential_of(9, AUTH_NONE, KEY_FORMAT_1);
	enum profile v1 = PROFILE_V1;

	ck_assert_int_eq(ring.keys[0].profile, PROFILE_V2);
	ck_assert_int_eq(ring.keys[1].profile, PROFILE_V1);
	ck_assert_int_eq(keyring_add(&ring, &cred, &v1), 0);
	ck_assert_int_eq(ring.keys[3].profile, PROFILE_V1);
	ck_assert_int_eq(keyring_add(&ring, &cred, NULL), RLA_EBUSY);
}
END_TEST

START_TEST(a_replay_gets_the_remembered_answer)
{
	uint8_t first[PACKET_MAX];
	size_t first_len;

	req.resources[0].tokens = 10;
	send_request(_i);
	ck_assert(result.allowed);
	first_len = result.answer_len;
	memcpy(first, result.answer, first_len);
	now_ms = 59;
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_DUPLICATE);
	ck_assert(result.allowed);
	ck_assert_uint_eq(open_answer(_i).resources[0].tokens, 0);
	ck_assert_uint_eq(open_answer(_i).resources[0].limit, 10);
	ck_assert_uint_eq(result.answer_len, first_len);
	/* The same content under a nonce of its own. */
	if (ring.keys[_i].cred.auth == AUTH_AES)
		ck_assert_mem_ne(first, result.answer, first_len);
	else
		ck_assert_mem_eq(first, result.answer, first_len);
	ck_assert_uint_eq(counted(COUNT_REQUEST), 1);
	ck_assert_uint_eq(counted(COUNT_DUPLICATE), 1);
	now_ms = 60;
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert(!result.allowed);
	ck_assert_uint_eq(open_answer(_i).resources[0].tokens, 10);
}
END_TEST

START_TEST(deduplication_is_by_key_and_id)
{
	send_request(0);
	send_request(1);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert_uint_eq(open_answer(1).resources[0].limit, 4);
	unique[15] ^= 1;
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert_uint_eq(open_answer(0).resources[0].limit, 8);
}
END_TEST

START_TEST(without_a_ttl_nothing_is_remembered)
{
	req.dedup_ttl_ms = 0;
	send_request(0);
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert_uint_eq(open_answer(0).resources[0].limit, 8);
}
END_TEST

START_TEST(a_quota_breach_is_answered_and_remembered)
{
	req.dedup_ttl_ms = 301;
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert(!result.allowed);
	ck_assert_int_eq(result.state.quota, QUOTA_DEDUP_TTL);
	ck_assert_uint_eq(open_answer(0).resources[0].tokens, 4);
	ck_assert_uint_eq(counted(COUNT_QUOTA), 1);
	now_ms = 299;
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_DUPLICATE);
	now_ms = 300;
	req.dedup_ttl_ms = 300;
	nothing_was_consumed(0);
}
END_TEST

START_TEST(an_unknown_key_is_ignored)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = make_request(_i, bytes);

	bytes[4] = 99;
	handle(bytes, len);
	ignored_as(COUNT_UNKNOWN_KEY);
	ck_assert_uint_eq(result.head.key_id, 99);
	nothing_was_consumed(_i);
}
END_TEST

/* A flipped bit anywhere past the tenant's names changes nothing. */
START_TEST(bad_authentication_is_ignored)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = make_request(_i, bytes), at;
	uint64_t auth = 0;

	for (at = 12; at < len; at++) {
		if (ring.keys[_i].cred.auth == AUTH_COOKIE &&
		    (at < 44 || at >= 76))
			continue;
		bytes[at] ^= 0x20;
		handle(bytes, len);
		bytes[at] ^= 0x20;
		ck_assert_int_eq(result.event, ENGINE_IGNORED);
		if (result.reason == COUNT_AUTH)
			auth++;
		else /* the type and size of the auth TLV */
			ck_assert_int_eq(result.reason, COUNT_MALFORMED);
	}
	ck_assert_uint_eq(counted(COUNT_AUTH), auth);
	ck_assert_uint_gt(auth, 30);
	ck_assert_uint_le(counted(COUNT_MALFORMED), 4);
	nothing_was_consumed(_i);
}
END_TEST

START_TEST(another_auth_type_is_bad_authentication)
{
	uint8_t bytes[PACKET_MAX];
	size_t len = make_request(0, bytes);

	bytes[4] = 3; /* the AES key's id in a datagram without any */
	handle(bytes, len);
	ignored_as(COUNT_AUTH);
}
END_TEST

START_TEST(a_stale_time_is_ignored)
{
	static const int64_t offsets[] = {
	    TOLERANCE + 1, -TOLERANCE - 1, INT64_MIN / 2, -WALL};

	stamp = (uint64_t)(WALL + offsets[_i]);
	send_request(2);
	ignored_as(COUNT_STALE);
	nothing_was_consumed(2);
}
END_TEST

START_TEST(a_time_within_the_tolerance_is_fine)
{
	stamp = (uint64_t)(WALL + TOLERANCE);
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	unique[0]++;
	stamp = (uint64_t)(WALL - TOLERANCE);
	send_request(0);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
}
END_TEST

START_TEST(a_management_flag_is_ignored)
{
	mgmt = true;
	send_request(2);
	ignored_as(COUNT_MGMT);
	nothing_was_consumed(2);
}
END_TEST

START_TEST(a_lost_datagram_changes_nothing)
{
	plan.lose = true;
	plan.corrupt = plan.rebind = true; /* of an answer that is not */
	plan.wrong_id = 1;
	send_request(2);
	ignored_as(COUNT_DROPPED);
	ck_assert_uint_eq(counted(COUNT_CORRUPTED), 0);
	ck_assert_uint_eq(counted(COUNT_REBIND_ASKED), 0);
	ck_assert_uint_eq(counted(COUNT_WRONG_ID), 0);
	nothing_was_consumed(2);
}
END_TEST

/*
 * A faulty answer to a first request and to its replay; what the request did
 * is done, once.
 */
START_TEST(a_wrong_id_is_well_authenticated)
{
	plan.wrong_id = 0x2A0001;
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
	ck_assert_uint_eq(result.answer_id, SERVER_ID ^ 0x2A0001);
	ck_assert_uint_eq(open_answer(_i).resources[0].limit, 4);
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_DUPLICATE);
	ck_assert_uint_eq(open_answer(_i).resources[0].limit, 4);
	ck_assert_uint_eq(counted(COUNT_WRONG_ID), 2);
	plan.wrong_id = 0;
	send_request(_i);
	ck_assert_uint_eq(result.answer_id, SERVER_ID);
	ck_assert_uint_eq(open_answer(_i).resources[0].limit, 4);
	ck_assert_uint_eq(counted(COUNT_WRONG_ID), 2);
	ck_assert_uint_eq(counted(COUNT_REQUEST), 1);
}
END_TEST

START_TEST(a_rebind_is_asked_for)
{
	plan.rebind = true;
	send_request(_i);
	ck_assert_uint_eq(open_answer(_i).resources[0].limit, 4);
	send_request(_i);
	ck_assert_int_eq(result.event, ENGINE_DUPLICATE);
	(void)open_answer(_i);
	ck_assert_uint_eq(counted(COUNT_REBIND_ASKED), 2);
	plan.rebind = false;
	send_request(_i);
	(void)open_answer(_i);
	ck_assert_uint_eq(counted(COUNT_REBIND_ASKED), 2);
}
END_TEST

/* Damage is done to what is sent, never to what is remembered. */
START_TEST(a_corrupt_answer_is_remembered_whole)
{
	uint8_t first[PACKET_MAX];
	size_t first_len;

	for (plan.damage = 0; plan.damage < 100; plan.damage++) {
		unique[1]++;
		req.resources[0].limit = 1000;
		plan.corrupt = true;
		send_request(_i);
		ck_assert_int_eq(result.event, ENGINE_REQUEST);
		first_len = result.answer_len;
		memcpy(first, result.answer, first_len);
		plan.corrupt = false;
		send_request(_i);
		ck_assert_int_eq(result.event, ENGINE_DUPLICATE);
		ck_assert_uint_eq(
		    open_answer(_i).resources[0].limit, 4 * (plan.damage + 1));
		ck_assert(first_len != result.answer_len ||
			  memcmp(first, result.answer, first_len) != 0);
	}
	ck_assert_uint_eq(counted(COUNT_CORRUPTED), 100);
	ck_assert_uint_eq(counted(COUNT_REQUEST), 100);
}
END_TEST

START_TEST(zero_tokens_are_malformed)
{
	req.resources[0].tokens = 0;
	send_request(2);
	ignored_as(COUNT_MALFORMED);
	req.resources[0].tokens = 4;
	nothing_was_consumed(2);
}
END_TEST

START_TEST(a_mismatch_is_ignored_and_not_remembered)
{
	send_request(0);
	unique[0]++;
	req.resources[0].limit = 11;
	send_request(0);
	ignored_as(COUNT_MISMATCH);
	req.resources[0].limit = 10;
	send_request(0); /* the same id again: not a duplicate */
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
}
END_TEST

START_TEST(other_pdus_are_malformed)
{
	static const uint8_t response[] = {
	    0x52, 0x52, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	uint8_t bytes[PACKET_MAX];

	handle(bytes, seal_pdu(0, response, sizeof response, bytes));
	ignored_as(COUNT_MALFORMED);
	handle(bytes, seal_pdu(0, response, 0, bytes));
	ck_assert_uint_eq(counted(COUNT_MALFORMED), 2);
}
END_TEST

START_TEST(truncations_and_long_datagrams_are_malformed)
{
	uint8_t bytes[PACKET_MAX + 1] = {0};
	size_t len = make_request(0, bytes), i;

	for (i = 0; i < len; i++) {
		handle(bytes, i);
		ck_assert_int_eq(result.event, ENGINE_IGNORED);
		ck_assert_int_eq(result.reason, COUNT_MALFORMED);
	}
	handle(bytes, PACKET_MAX + 1);
	ck_assert_int_eq(result.reason, COUNT_MALFORMED);
	handle(bytes, PACKET_MAX); /* bytes after the PDU are ignored */
	ck_assert_int_eq(result.event, ENGINE_REQUEST);
}
END_TEST

START_TEST(noise_never_gets_an_answer)
{
	uint64_t state = harness_seed();
	uint8_t bytes[PACKET_MAX], noise[PACKET_MAX];
	size_t len = make_request(2, bytes);
	int i, k;

	for (i = 0; i < 20000; i++) {
		memcpy(noise, bytes, len);
		for (k = harness_below(&state, 8); k >= 0; k--)
			noise[4 + harness_below(&state, (uint32_t)len - 4)] =
			    (uint8_t)harness_random(&state);
		if (memcmp(noise, bytes, len) == 0)
			continue;
		handle(noise, harness_below(&state, 4) == 0
				  ? harness_below(&state, (uint32_t)len)
				  : len);
		ck_assert_int_eq(result.event, ENGINE_IGNORED);
		ck_assert_uint_eq(result.answer_len, 0);
	}
}
END_TEST

/* A report counts once for each datagram, and guards see it. */
START_TEST(reports_reach_guards)
{
	struct pdu_report report = {.count = 1};
	uint8_t pdu[PACKET_MAX], bytes[PACKET_MAX];
	size_t len;

	memset(report.samples[0].id, 0xAA, ID_LEN);
	report.samples[0].ttl_ms = 1000;
	report.samples[0].max_samples = 10;
	report.samples[0].observed_ms = 250;
	ck_assert_int_eq(pdu_encode_report(ring.keys[2].profile, &report, pdu,
			     sizeof pdu, &len),
	    0);
	handle(bytes, seal_pdu(2, pdu, len, bytes));
	ck_assert_int_eq(result.event, ENGINE_REPORT);
	ck_assert_uint_eq(result.answer_len, 0);
	req.guard_count = 1;
	memset(req.guards[0].id, 0xAA, ID_LEN);
	req.guards[0].ttl_ms = 1000;
	req.guards[0].max_samples = 10;
	req.guards[0].threshold_ms = 250;
	send_request(2);
	ck_assert(!result.allowed);
	ck_assert_uint_eq(open_answer(2).guards[0].current_ms, 250);
	ck_assert_uint_eq(counted(COUNT_DENIED), 1);
	plan.lose = true;
	handle(bytes, seal_pdu(2, pdu, len, bytes));
	ck_assert_int_eq(result.reason, COUNT_DROPPED);
}
END_TEST

/* The most blocks that fit are answered, with every kind of key. */
START_TEST(full_requests_are_answered)
{
	size_t room = PACKET_MAX - packet_overhead(ring.keys[_i].cred.auth);
	size_t i;

	req.resource_count = (room - 12) / 28;
	if (req.resource_count > 16)
		req.resource_count = 16; /* the quota of buckets */
	for (i = 0; i < req.resource_count; i++) {
		req.resources[i] = req.resources[0];
		req.resources[i].id[0] = (uint8_t)i;
	}
	req.label = (const uint8_t *)"label";
	req.label_len = 5;
	send_request(_i);
	ck_assert(result.allowed);
	ck_assert_uint_eq(open_answer(_i).resource_count, req.resource_count);
	ck_assert_mem_eq(result.rate.label, "label", 5);
}
END_TEST

static json_t *
vectors(void)
{
	const char *srcdir = getenv("srcdir");
	char path[1024];
	json_error_t error;
	json_t *all;

	snprintf(path, sizeof path, "%s/tests/vectors/wire.json",
	    srcdir != NULL ? srcdir : ".");
	/* Some of its numbers need all of 64 bits. */
	all = json_load_file(
	    path, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
	ck_assert_msg(all != NULL, "%s:%d: %s", path, error.line, error.text);
	return all;
}

static const char *
field(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	ck_assert_msg(text != NULL, "%s is missing", name);
	return text;
}

static const json_t *
named(const json_t *list, const char *name)
{
	const json_t *it;
	size_t i;

	json_array_foreach(list, i, it)
	{
		if (strcmp(field(it, "name"), name) == 0)
			return it;
	}
	return NULL;
}

static size_t
unhex(const char *text, uint8_t *out, size_t cap)
{
	size_t len = strlen(text) / 2, i;
	unsigned int byte;

	ck_assert_uint_le(len, cap);
	for (i = 0; i < len; i++) {
		ck_assert_int_eq(sscanf(text + 2 * i, "%2x", &byte), 1);
		out[i] = (uint8_t)byte;
	}
	return len;
}

/* The key of a datagram, from either list of keys. */
static const char *
key_text(const json_t *all, const char *name)
{
	const json_t *key;

	key = named(json_object_get(all, "api_keys_legacy_unversioned"), name);
	if (key == NULL)
		key =
		    named(json_object_get(all, "api_keys_format1_valid"), name);
	return key != NULL ? field(key, "bech32") : NULL;
}

/*
 * Every request and report in a list of the vectors, at the time when it was
 * sent. Returns how many there were.
 */
static int
replay(const json_t *all, const char *list, enum profile profile)
{
	const json_t *it;
	uint8_t bytes[PACKET_MAX];
	struct credential cred;
	const char *name, *text;
	size_t i, len;
	int n = 0;

	json_array_foreach(json_object_get(all, list), i, it)
	{
		struct engine_input in = {.bytes = bytes};

		name = field(it, "name");
		text = key_text(all, field(it, "key"));
		if (strstr(name, "response") != NULL || text == NULL)
			continue;
		teardown();
		keyring_init(&ring);
		ck_assert_int_eq(
		    credential_parse(text, strlen(text), &cred), 0);
		ck_assert_int_eq(keyring_add(&ring, &cred, &profile), 0);
		engine = engine_new(&ring, SERVER_ID, 1, 0);
		len = unhex(field(it, "hex"), bytes, sizeof bytes);
		in.len = len;
		in.wall_ms = (int64_t)json_number_value(
		    json_object_get(it, "time_stamp"));
		engine_handle(engine, &in, &result);
		ck_assert_msg(result.event == (strstr(name, "report") != NULL
						      ? ENGINE_REPORT
						      : ENGINE_REQUEST),
		    "%s: %s", name, counter_name(result.reason));
		n++;
		if (result.event != ENGINE_REQUEST)
			continue;
		ck_assert_uint_eq(result.rate.label_len, 3);
		ck_assert_mem_eq(result.rate.label, "api", 3);
		ck_assert(result.allowed);
		/* The clock of the peer may not be off by anything here. */
		in.wall_ms++;
		engine_handle(engine, &in, &result);
		ck_assert_int_eq(result.reason, COUNT_STALE);
	}
	return n;
}

START_TEST(public_clients_are_understood)
{
	json_t *all = vectors();

	ck_assert_int_eq(replay(all, "datagrams_v1", PROFILE_V1), 4);
	ck_assert_int_eq(replay(all, "datagrams_v2", PROFILE_V2), 1);
	json_decref(all);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_engine");
	TCase *tc = tcase_create("engine");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, answers_every_kind_of_key, 0, 3);
	tcase_add_test(tc, profiles_follow_formats_unless_forced);
	tcase_add_loop_test(tc, a_replay_gets_the_remembered_answer, 0, 3);
	tcase_add_test(tc, deduplication_is_by_key_and_id);
	tcase_add_test(tc, without_a_ttl_nothing_is_remembered);
	tcase_add_test(tc, a_quota_breach_is_answered_and_remembered);
	tcase_add_loop_test(tc, an_unknown_key_is_ignored, 0, 3);
	tcase_add_loop_test(tc, bad_authentication_is_ignored, 1, 3);
	tcase_add_test(tc, another_auth_type_is_bad_authentication);
	tcase_add_loop_test(tc, a_stale_time_is_ignored, 0, 4);
	tcase_add_test(tc, a_time_within_the_tolerance_is_fine);
	tcase_add_test(tc, a_management_flag_is_ignored);
	tcase_add_test(tc, a_lost_datagram_changes_nothing);
	tcase_add_loop_test(tc, a_wrong_id_is_well_authenticated, 0, 3);
	tcase_add_loop_test(tc, a_rebind_is_asked_for, 0, 3);
	tcase_add_loop_test(tc, a_corrupt_answer_is_remembered_whole, 0, 3);
	tcase_add_test(tc, zero_tokens_are_malformed);
	tcase_add_test(tc, a_mismatch_is_ignored_and_not_remembered);
	tcase_add_test(tc, other_pdus_are_malformed);
	tcase_add_test(tc, truncations_and_long_datagrams_are_malformed);
	tcase_add_test(tc, noise_never_gets_an_answer);
	tcase_add_test(tc, reports_reach_guards);
	tcase_add_loop_test(tc, full_requests_are_answered, 0, 3);
	tcase_add_test(tc, public_clients_are_understood);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
