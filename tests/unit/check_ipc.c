/*
 * The agent's half of the application protocol against ipc.json, whose bytes
 * come from an encoder of their own (tests/vectors/make_ipc.py): decoders by
 * their fields, faults by name (encoders: check_ipc_enc.c). Then what vectors
 * cannot hold: every truncation, mutations, and the ends of buffers.
 */
#include "proto/ipc.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"
#include "tests/unit/ipc_vectors.h"

/* ---- what clients send ---- */

union decoded {
	struct ipc_hello hello;
	struct ipc_check check;
	struct ipc_check_adhoc adhoc;
	struct ipc_report report;
	struct ipc_report_adhoc report_adhoc;
	struct ipc_report_rule report_rule;
	struct ipc_ping ping;
	struct ipc_wait wait;
	struct ipc_explain explain;
	struct ipc_acquire acquire;
	struct ipc_try_acquire try_acquire;
	struct ipc_error_control error_control;
	struct ipc_set_rate set_rate;
};

/* RLA_EINVAL for a type that clients do not send. */
static int
decode(uint16_t type, struct reader *r, union decoded *out)
{
	switch (type) {
	case IPC_HELLO:
		return ipc_dec_hello(r, &out->hello);
	case IPC_CHECK:
		return ipc_dec_check(r, &out->check);
	case IPC_CHECK_ADHOC:
		return ipc_dec_check_adhoc(r, &out->adhoc);
	case IPC_REPORT:
		return ipc_dec_report(r, &out->report);
	case IPC_REPORT_ADHOC:
		return ipc_dec_report_adhoc(r, &out->report_adhoc);
	case IPC_REPORT_RULE:
		return ipc_dec_report_rule(r, &out->report_rule);
	case IPC_PING:
		return ipc_dec_ping(r, &out->ping);
	case IPC_WAIT:
		return ipc_dec_wait(r, &out->wait);
	case IPC_EXPLAIN:
		return ipc_dec_explain(r, &out->explain);
	case IPC_ACQUIRE:
		return ipc_dec_acquire(r, &out->acquire);
	case IPC_TRY_ACQUIRE:
		return ipc_dec_try_acquire(r, &out->try_acquire);
	case IPC_ERROR_BEGIN:
	case IPC_ERROR_SUCCESS:
		return ipc_dec_error_control(r, &out->error_control);
	case IPC_SET_RATE:
		return ipc_dec_set_rate(r, &out->set_rate);
	case IPC_CANCEL:
	case IPC_STATUS:
	case IPC_SERVERS:
	case IPC_POLICY:
	case IPC_RULES:
	case IPC_LIMITERS:
	case IPC_METRICS:
	case IPC_TOP:
	case IPC_QUIT:
	case IPC_RELOAD:
	case IPC_DRAIN:
		return ipc_dec_empty(r);
	default:
		return RLA_EINVAL;
	}
}

static void
same_str(const struct ipc_str *got, const json_t *fields, const char *key)
{
	struct ipc_str want = vec_str(fields, key);

	ck_assert_msg(got->len == want.len, "%s: %u bytes, not %u", key,
	    got->len, want.len);
	ck_assert_msg(
	    memcmp(got->bytes, want.bytes, want.len) == 0, "%s differs", key);
}

static void
same_bytes(const uint8_t *got, const json_t *fields, const char *key)
{
	uint8_t want[IPC_ID_LEN];

	ck_assert_uint_eq(vec_unhex(vec_text(fields, key), want), IPC_ID_LEN);
	ck_assert_mem_eq(got, want, IPC_ID_LEN);
}

#define SAME(got, fields, key) \
	ck_assert_uint_eq((got)->key, vec_number((fields), #key))

static void
same_base(const struct ipc_check_base *got, const json_t *fields)
{
	same_bytes(got->operation_id, fields, "operation_id");
	same_bytes(got->config_hash, fields, "config_hash");
	SAME(got, fields, age_us);
	SAME(got, fields, deadline_ms);
	SAME(got, fields, options);
	SAME(got, fields, tokens);
}

static void
same_adhoc(const struct ipc_check_adhoc *got, const json_t *fields)
{
	const json_t *guards = vec_member(fields, "guards");
	const json_t *resources = vec_member(fields, "resources");
	const json_t *part;
	size_t i;

	same_base(&got->base, fields);
	same_str(&got->tenant, fields, "tenant");
	same_str(&got->label, fields, "label");
	ck_assert_uint_eq(got->guard_count, json_array_size(guards));
	ck_assert_uint_eq(got->resource_count, json_array_size(resources));
	json_array_foreach(guards, i, part)
	{
		SAME(&got->guards[i], part, ttl_ms);
		SAME(&got->guards[i], part, max_samples);
		SAME(&got->guards[i], part, buffer_size);
		SAME(&got->guards[i], part, min_samples);
		SAME(&got->guards[i], part, below_ms);
		same_str(&got->guards[i].name, part, "name");
	}
	json_array_foreach(resources, i, part)
	{
		SAME(&got->resources[i], part, window_ms);
		SAME(&got->resources[i], part, limit);
		SAME(&got->resources[i], part, tokens);
		same_str(&got->resources[i].name, part, "name");
	}
}

static void
same_report_adhoc(const struct ipc_report_adhoc *got, const json_t *fields)
{
	SAME(got, fields, latency_ms);
	SAME(got, fields, ttl_ms);
	SAME(got, fields, max_samples);
	SAME(got, fields, buffer_size);
	SAME(got, fields, min_samples);
	same_str(&got->tenant, fields, "tenant");
	same_str(&got->tracker, fields, "tracker");
}

static void
same_report_rule(const struct ipc_report_rule *got, const json_t *fields)
{
	SAME(got, fields, latency_ms);
	SAME(got, fields, options);
	same_str(&got->rule, fields, "rule");
	same_str(&got->key, fields, "key");
}

static void
same_explain(const struct ipc_explain *got, const json_t *fields)
{
	SAME(got, fields, options);
	SAME(got, fields, tokens);
	same_str(&got->rule, fields, "rule");
	same_str(&got->key, fields, "key");
}

static void
same_acquire(const struct ipc_acquire *got, const json_t *fields)
{
	SAME(got, fields, permits);
	SAME(got, fields, options);
	same_str(&got->limiter, fields, "limiter");
	same_str(&got->key, fields, "key");
}

static void
same_error_control(const struct ipc_error_control *got, const json_t *fields)
{
	SAME(got, fields, options);
	same_str(&got->control, fields, "control");
	same_str(&got->key, fields, "key");
}

/* What is asked of limiters and error controls. */
static bool
same_limiting(uint16_t type, const union decoded *got, const json_t *fields)
{
	switch (type) {
	case IPC_ACQUIRE:
		same_acquire(&got->acquire, fields);
		return true;
	case IPC_TRY_ACQUIRE:
		SAME(&got->try_acquire, fields, max_wait_us);
		same_acquire(&got->try_acquire.acquire, fields);
		return true;
	case IPC_ERROR_BEGIN:
	case IPC_ERROR_SUCCESS:
		same_error_control(&got->error_control, fields);
		return true;
	case IPC_SET_RATE:
		SAME(&got->set_rate, fields, rate);
		same_str(&got->set_rate.limiter, fields, "limiter");
		return true;
	default:
		return false;
	}
}

static void
same_fields(uint16_t type, const union decoded *got, const json_t *fields)
{
	switch (type) {
	case IPC_HELLO:
		SAME(&got->hello, fields, version_min);
		SAME(&got->hello, fields, version_max);
		same_str(&got->hello.client, fields, "client");
		break;
	case IPC_CHECK:
		same_base(&got->check.base, fields);
		same_str(&got->check.rule, fields, "rule");
		same_str(&got->check.key, fields, "key");
		break;
	case IPC_CHECK_ADHOC:
		same_adhoc(&got->adhoc, fields);
		break;
	case IPC_REPORT:
		SAME(&got->report, fields, latency_ms);
		SAME(&got->report, fields, options);
		same_str(&got->report.tenant, fields, "tenant");
		same_str(&got->report.tracker, fields, "tracker");
		same_str(&got->report.key, fields, "key");
		break;
	case IPC_REPORT_ADHOC:
		same_report_adhoc(&got->report_adhoc, fields);
		break;
	case IPC_REPORT_RULE:
		same_report_rule(&got->report_rule, fields);
		break;
	case IPC_EXPLAIN:
		same_explain(&got->explain, fields);
		break;
	case IPC_PING:
		same_str(&got->ping.bytes, fields, "bytes");
		break;
	case IPC_WAIT:
		SAME(&got->wait, fields, timeout_ms);
		break;
	default:
		if (!same_limiting(type, got, fields))
			ck_assert_uint_eq(json_object_size(fields), 0);
	}
}

START_TEST(decodes_the_vectors)
{
	const json_t *vector;
	union decoded out;
	struct ipc_head head;
	struct reader r;
	uint8_t *frame;
	size_t i, len, seen = 0;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (!vec_from_client(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		ck_assert_int_eq(ipc_frame(frame, len, &head, &r), IPC_MESSAGE);
		ck_assert_uint_eq(head.length, len);
		ck_assert_uint_eq(head.id, vec_number(vector, "id"));
		ck_assert_uint_eq(head.flags, vec_number(vector, "flags"));
		ck_assert_str_eq(
		    ipc_type_name(head.type), vec_text(vector, "type"));
		ck_assert_msg(decode(head.type, &r, &out) == 0,
		    "%s does not decode", vec_text(vector, "name"));
		same_fields(head.type, &out, vec_member(vector, "fields"));
		seen++;
	}
	ck_assert_uint_gt(seen, 20);
}
END_TEST

/* The fault as IPC.md names it. */
static const char *
fault_of(const uint8_t *bytes, size_t len)
{
	union decoded out;
	struct ipc_head head;
	struct reader r;

	switch (ipc_frame(bytes, len, &head, &r)) {
	case IPC_NEED_MORE:
		return "need-more";
	case IPC_BAD:
		return "framing";
	case IPC_MESSAGE:
		break;
	}
	switch (decode(head.type, &r, &out)) {
	case 0:
		return "none";
	case RLA_ESHORT:
		return "short";
	case RLA_ETOOBIG:
		return "too-big";
	case RLA_EMALFORMED:
		return "malformed";
	case RLA_EINVAL:
		return "type";
	default:
		return "some other error";
	}
}

/* A copy of just these bytes, so that a sanitizer sees one read too many.
 * Called often, and each ck_assert costs a write to a file. */
static const char *
fault_of_copy(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	const char *fault;

	if (copy == NULL)
		ck_abort_msg("no memory");
	memcpy(copy, bytes, len);
	fault = fault_of(copy, len);
	free(copy);
	return fault;
}

START_TEST(names_the_faults)
{
	const json_t *vector;
	uint8_t *frame;
	size_t i, len, seen = 0;
	const char *got;

	json_array_foreach(vec_member(vectors, "malformed"), i, vector)
	{
		if (!vec_from_client(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		got = fault_of_copy(frame, len);
		ck_assert_msg(strcmp(got, vec_text(vector, "fault")) == 0,
		    "%s: %s, not %s", vec_text(vector, "name"), got,
		    vec_text(vector, "fault"));
		seen++;
	}
	ck_assert_uint_gt(seen, 30);
}
END_TEST

static void
set_length(uint8_t *frame, size_t len)
{
	frame[0] = (uint8_t)len;
	frame[1] = (uint8_t)(len >> 8);
	frame[2] = frame[3] = 0;
}

static void
truncate_all(const char *name, uint8_t *frame, size_t len)
{
	bool any_length = frame[4] == IPC_PING; /* its payload is just bytes */
	const char *got;
	size_t cut;

	for (cut = 0; cut < len; cut++) {
		got = fault_of_copy(frame, cut);
		if (strcmp(got, "need-more") != 0)
			ck_abort_msg("%s cut at %zu: %s", name, cut, got);
	}
	for (cut = IPC_HEAD_LEN; cut < len; cut++) {
		set_length(frame, cut);
		got = fault_of_copy(frame, cut);
		if (strcmp(got, any_length ? "none" : "short") != 0)
			ck_abort_msg(
			    "%s with a length of %zu: %s", name, cut, got);
	}
	set_length(frame, len);
}

START_TEST(every_truncation)
{
	const json_t *vector;
	uint8_t *frame;
	size_t i, len;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (!vec_from_client(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		truncate_all(vec_text(vector, "name"), frame, len);
	}
}
END_TEST

START_TEST(one_byte_too_many)
{
	static uint8_t longer[IPC_MAX_FRAME + 1];
	const json_t *vector;
	const char *got;
	uint8_t *frame;
	size_t i, len;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (!vec_from_client(vector) ||
		    strcmp(vec_text(vector, "type"), "ping") == 0)
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		memcpy(longer, frame, len);
		longer[len] = '\0';
		set_length(longer, len + 1);
		got = fault_of_copy(longer, len + 1);
		ck_assert_msg(strcmp(got, "malformed") == 0, "%s: %s",
		    vec_text(vector, "name"), got);
	}
}
END_TEST

/* Whatever the bytes: one of the known verdicts, within the buffer. */
START_TEST(random_mutations)
{
	uint64_t state = harness_seed();
	const json_t *vector;
	uint8_t *frame;
	size_t i, n, len, round;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		vec_used = 0;
		len = vec_frame(vector, &frame);
		for (round = 0; round < 200; round++) {
			n = 1 + harness_below(&state, 4);
			while (n-- > 0)
				frame[harness_below(&state, (uint32_t)len)] =
				    (uint8_t)harness_random(&state);
			if (round % 2 == 0)
				set_length(frame, len);
			if (strcmp(fault_of_copy(frame, len),
				"some other error") == 0)
				ck_abort_msg("%s: some other error",
				    vec_text(vector, "name"));
		}
	}
}
END_TEST

START_TEST(frames_in_a_row)
{
	static const uint8_t two[] = {16, 0, 0, 0, 0x41, 0, 0, 0, 7, 0, 0, 0, 0,
	    0, 0, 0, 18, 0, 0, 0, 0x30, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0x80, 'h',
	    'i', 16};
	struct ipc_head head;
	struct ipc_ping ping;
	struct reader r;

	ck_assert_int_eq(ipc_frame(two, sizeof(two), &head, &r), IPC_MESSAGE);
	ck_assert_uint_eq(head.type, IPC_STATUS);
	ck_assert_uint_eq(head.id, 7);
	ck_assert_int_eq(ipc_dec_empty(&r), 0);
	ck_assert_int_eq(
	    ipc_frame(two + 16, sizeof(two) - 16, &head, &r), IPC_MESSAGE);
	ck_assert_uint_eq(head.type, IPC_PING);
	ck_assert_uint_eq(head.flags, 1);
	ck_assert_uint_eq(head.id, UINT64_C(0x8000000000000008));
	ck_assert_int_eq(ipc_dec_ping(&r, &ping), 0);
	ck_assert_uint_eq(ping.bytes.len, 2);
	ck_assert_mem_eq(ping.bytes.bytes, "hi", 2);
	ck_assert_int_eq(ipc_frame(two + 34, 1, &head, &r), IPC_NEED_MORE);
}
END_TEST

/* The words of the design, in the order of the numbers on the wire. */
START_TEST(names)
{
	static const char *const outcomes[] = {
	    "allowed", "denied", "failed", "cancelled"};
	static const char *const sources[] = {
	    "server", "empty", "policy", "local", "shadow"};
	static const char *const reasons[] = {"ok", "resource", "guard",
	    "resource+guard", "validation", "unknown-rule", "unauthorised",
	    "discovery", "transport", "timeout", "overloaded", "draining",
	    "interrupted", "unavailable", "cancelled"};
	unsigned i;

	for (i = 0; i < 4; i++)
		ck_assert_str_eq(
		    ipc_outcome_name((enum ipc_outcome)i), outcomes[i]);
	for (i = 0; i < 5; i++)
		ck_assert_str_eq(
		    ipc_source_name((enum ipc_source)i), sources[i]);
	for (i = 0; i < 15; i++)
		ck_assert_str_eq(
		    ipc_reason_name((enum ipc_reason)i), reasons[i]);
	ck_assert_str_eq(ipc_reason_name((enum ipc_reason)15), "unknown");
	ck_assert_ptr_null(ipc_type_name(0));
	ck_assert_ptr_null(ipc_type_name(0x8000));
}
END_TEST

/* Each type by its name, one direction or the other: none without bytes. */
START_TEST(every_type_has_a_vector)
{
	const json_t *vector;
	size_t i, types = 0, seen;

	for (uint32_t type = 0; type <= UINT16_MAX; type++) {
		const char *name = ipc_type_name((uint16_t)type);

		if (name == NULL)
			continue;
		seen = 0;
		json_array_foreach(vec_member(vectors, "messages"), i, vector)
		{
			if (strcmp(vec_text(vector, "type"), name) == 0 &&
			    vec_from_client(vector) == (type < 0x8000))
				seen++;
		}
		ck_assert_msg(seen > 0, "no vector of %s", name);
		types++;
	}
	/* No section that nobody runs; "protocol" is its version. */
	ck_assert_uint_eq(json_object_size(vectors), 3);
	ck_assert_uint_eq(types, 34); /* as IPC.md, section 4, lists them */
}
END_TEST

static Suite *
ipc_suite(void)
{
	Suite *s = suite_create("ipc");
	TCase *tc = tcase_create("ipc");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, vec_load, vec_free);
	tcase_add_test(tc, decodes_the_vectors);
	tcase_add_test(tc, names_the_faults);
	tcase_add_test(tc, every_truncation);
	tcase_add_test(tc, one_byte_too_many);
	tcase_add_test(tc, random_mutations);
	tcase_add_test(tc, frames_in_a_row);
	tcase_add_test(tc, names);
	tcase_add_test(tc, every_type_has_a_vector);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(ipc_suite());
}
