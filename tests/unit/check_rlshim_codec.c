/*
 * The client's half of the codec, which is static in rlshim.c and so is
 * included as a whole: requests byte for byte as ipc.json has them, answers
 * by their fields, faults refused; truncations and mutations. And the
 * numbers and words that the shim repeats from ipc.h, which it cannot
 * include.
 */
#include "client-shim/rlshim.c"

#include <check.h>

#include "tests/unit/harness.h"
#include "tests/unit/ipc_vectors.h"

/* ---- requests ---- */

/* A C string of a vector's field. */
static const char *
c_string(const json_t *fields, const char *key)
{
	struct ipc_str s = vec_str(fields, key);
	char *copy = (char *)vec_take(s.len + 1u);

	ck_assert_ptr_null(memchr(s.bytes, '\0', s.len));
	memcpy(copy, s.bytes, s.len);
	copy[s.len] = '\0';
	return copy;
}

static const char *
bytes_of(const json_t *fields, const char *key, size_t *len)
{
	struct ipc_str s = vec_str(fields, key);

	*len = s.len;
	return (const char *)s.bytes;
}

static uint32_t
u32_of(const json_t *fields, const char *key)
{
	uint64_t v = vec_number(fields, key);

	ck_assert_uint_le(v, UINT32_MAX);
	return (uint32_t)v;
}

/* Into the place that the encoder left for it. */
static void
stamp_check(uint8_t *buf, const json_t *fields)
{
	struct put p = {buf, buf + HEAD_LEN, buf + HEAD_LEN + STAMP_LEN, false};
	struct stamp stamp;

	vec_unhex(vec_text(fields, "operation_id"), stamp.operation_id);
	vec_unhex(vec_text(fields, "config_hash"), stamp.config_hash);
	stamp.age_us = vec_number(fields, "age_us");
	stamp.deadline_ms = u32_of(fields, "deadline_ms");
	put_stamp(&p, &stamp);
	ck_assert(!p.full && p.at == p.end);
}

static struct rl_guard
read_guard(const json_t *fields, const char *name)
{
	struct rl_guard guard = {.ttl_ms = u32_of(fields, "ttl_ms"),
	    .max_samples = u32_of(fields, "max_samples"),
	    .buffer_size = u32_of(fields, "buffer_size"),
	    .min_samples = u32_of(fields, "min_samples")};

	guard.tracker = bytes_of(fields, name, &guard.tracker_len);
	return guard;
}

static size_t
send_check(uint8_t *buf, uint64_t id, const json_t *fields)
{
	struct rl_check check = {0};
	uint32_t options = u32_of(fields, "options");

	check.rule = c_string(fields, "rule");
	check.tokens = u32_of(fields, "tokens");
	if ((options & IPC_OPT_KEY) != 0)
		check.key = bytes_of(fields, "key", &check.key_len);
	return enc_check(buf, id, &check, (options & IPC_OPT_DETAIL) != 0);
}

static size_t
send_adhoc(uint8_t *buf, uint64_t id, const json_t *fields)
{
	struct rl_guard guards[RL_MAX_GUARDS];
	struct rl_resource resources[RL_MAX_RESOURCES];
	struct rl_check check = {.guards = guards, .resources = resources};
	const json_t *part;
	size_t i;

	check.tokens = u32_of(fields, "tokens");
	check.tenant = c_string(fields, "tenant");
	check.label = c_string(fields, "label");
	check.guard_count = json_array_size(vec_member(fields, "guards"));
	check.resource_count = json_array_size(vec_member(fields, "resources"));
	json_array_foreach(vec_member(fields, "guards"), i, part)
	{
		guards[i] = read_guard(part, "name");
		guards[i].below_ms = u32_of(part, "below_ms");
	}
	json_array_foreach(vec_member(fields, "resources"), i, part)
	{
		resources[i].window_ms = u32_of(part, "window_ms");
		resources[i].limit = u32_of(part, "limit");
		resources[i].tokens = u32_of(part, "tokens");
		resources[i].bucket =
		    bytes_of(part, "name", &resources[i].bucket_len);
	}
	return enc_check(
	    buf, id, &check, (u32_of(fields, "options") & IPC_OPT_DETAIL) != 0);
}

static size_t
send_report(uint8_t *buf, uint64_t id, const json_t *fields)
{
	struct rl_guard tracker = {0};
	struct sample sample = {
	    .latency_ms = u32_of(fields, "latency_ms"),
	    .tenant = c_string(fields, "tenant"),
	    .tracker = &tracker,
	};

	tracker.tracker = bytes_of(fields, "tracker", &tracker.tracker_len);
	if ((u32_of(fields, "options") & IPC_OPT_KEY) != 0)
		sample.key = bytes_of(fields, "key", &sample.key_len);
	return enc_report(buf, id, &sample);
}

static size_t
send_report_adhoc(uint8_t *buf, uint64_t id, const json_t *fields)
{
	const struct rl_guard tracker = read_guard(fields, "tracker");
	const struct sample sample = {
	    .latency_ms = u32_of(fields, "latency_ms"),
	    .tenant = c_string(fields, "tenant"),
	    .tracker = &tracker,
	};

	return enc_report_adhoc(buf, id, &sample);
}

static size_t
send_report_rule(uint8_t *buf, uint64_t id, const json_t *fields)
{
	struct sample sample = {
	    .latency_ms = u32_of(fields, "latency_ms"),
	    .rule = c_string(fields, "rule"),
	};

	if ((u32_of(fields, "options") & IPC_OPT_KEY) != 0)
		sample.key = bytes_of(fields, "key", &sample.key_len);
	return enc_report(buf, id, &sample);
}

static size_t
send_explain(uint8_t *buf, uint64_t id, const json_t *fields)
{
	struct rl_check check = {
	    .rule = c_string(fields, "rule"),
	    .tokens = u32_of(fields, "tokens"),
	};

	if ((u32_of(fields, "options") & IPC_OPT_KEY) != 0)
		check.key = bytes_of(fields, "key", &check.key_len);
	return enc_explain(buf, id, &check);
}

static size_t
send_acquire(uint8_t *buf, uint64_t id, const json_t *fields, bool no_longer)
{
	struct rl_acquire acquire = {
	    .limiter = c_string(fields, "limiter"),
	    .permits = u32_of(fields, "permits"),
	    .no_longer = no_longer,
	};

	if (no_longer)
		acquire.max_wait_us = vec_number(fields, "max_wait_us");
	if ((u32_of(fields, "options") & IPC_OPT_KEY) != 0)
		acquire.key = bytes_of(fields, "key", &acquire.key_len);
	return enc_acquire(buf, id, &acquire);
}

static size_t
send_error(uint8_t *buf, uint64_t id, const json_t *fields, enum wire_type type)
{
	struct rl_error_control control = {
	    .control = c_string(fields, "control"),
	};

	if ((u32_of(fields, "options") & IPC_OPT_KEY) != 0)
		control.key = bytes_of(fields, "key", &control.key_len);
	return enc_error_control(buf, type, id, &control);
}

/* Requests to limiters and error controls; 0: of another type. */
static size_t
send_limiting(uint8_t *buf, uint64_t id, const char *type, const json_t *fields)
{
	if (strcmp(type, "acquire") == 0)
		return send_acquire(buf, id, fields, false);
	if (strcmp(type, "try-acquire") == 0)
		return send_acquire(buf, id, fields, true);
	if (strcmp(type, "error-begin") == 0)
		return send_error(buf, id, fields, W_ERROR_BEGIN);
	if (strcmp(type, "error-success") == 0)
		return send_error(buf, id, fields, W_ERROR_SUCCESS);
	if (strcmp(type, "set-rate") == 0)
		return enc_set_rate(buf, id, vec_number(fields, "rate"),
		    c_string(fields, "limiter"));
	return 0;
}

/* A request without a payload. */
static enum wire_type
bare_type(const char *type)
{
	static const struct {
		const char *name;
		enum wire_type type;
	} rows[] = {{"cancel", W_CANCEL}, {"status", W_STATUS},
	    {"servers", W_SERVERS}, {"policy", W_POLICY}, {"rules", W_RULES},
	    {"limiters", W_LIMITERS}, {"metrics", W_METRICS}, {"top", W_TOP},
	    {"reload", W_RELOAD}, {"drain", W_DRAIN}, {"quit", W_QUIT}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(type, rows[i].name) == 0)
			return rows[i].type;
	ck_abort_msg("a vector of type %s", type);
}

/* The shim's bytes for a vector. */
static size_t
send_vector(uint8_t *buf, const json_t *vector)
{
	const json_t *fields = vec_member(vector, "fields");
	const char *type = vec_text(vector, "type");
	uint64_t id = vec_number(vector, "id");
	struct put wait = {buf, buf + HEAD_LEN, buf + HEAD_LEN + 4, false};
	struct ipc_str bytes;
	size_t len;

	if (strcmp(type, "hello") == 0)
		return enc_hello(buf, id, c_string(fields, "client"));
	if (strncmp(type, "check", 5) == 0) {
		len = type[5] == '\0' ? send_check(buf, id, fields)
				      : send_adhoc(buf, id, fields);
		stamp_check(buf, fields);
		return len;
	}
	if (strcmp(type, "report") == 0)
		return send_report(buf, id, fields);
	if (strcmp(type, "report-adhoc") == 0)
		return send_report_adhoc(buf, id, fields);
	if (strcmp(type, "report-rule") == 0)
		return send_report_rule(buf, id, fields);
	if (strcmp(type, "explain") == 0)
		return send_explain(buf, id, fields);
	if (strcmp(type, "ping") == 0) {
		bytes = vec_str(fields, "bytes");
		len = enc_plain(buf, W_PING, id, bytes.len);
		memcpy(buf + HEAD_LEN, bytes.bytes, bytes.len);
		return len;
	}
	if (strcmp(type, "wait") == 0) {
		len = enc_plain(buf, W_WAIT, id, 4);
		put_u32(&wait, u32_of(fields, "timeout_ms"));
		return len;
	}
	len = send_limiting(buf, id, type, fields);
	return len != 0 ? len : enc_plain(buf, bare_type(type), id, 0);
}

/* Vectors of what another client could send, but this one never does. */
static bool
not_ours(const json_t *vector)
{
	static const char *const names[] = {"hello-range",
	    "hello-none-in-common", "check-tokens-zero",
	    "report-unknown-options", "report-rule-unknown-options",
	    "explain-unknown-options", "explain-tokens-zero",
	    "acquire-permits-zero", "acquire-unknown-options",
	    "try-acquire-unknown-options", "error-begin-unknown-options",
	    "error-success-unknown-options", "set-rate-highest",
	    "status-unknown-flags"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(vec_text(vector, "name"), names[i]) == 0)
			return true;
	return false;
}

START_TEST(encodes_the_vectors)
{
	static uint8_t buf[WIRE_FRAME];
	const json_t *vector;
	uint8_t *frame;
	size_t i, len, seen = 0;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (!vec_from_client(vector) || not_ours(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		ck_assert_msg(send_vector(buf, vector) == len,
		    "%s: another length", vec_text(vector, "name"));
		ck_assert_msg(memcmp(buf, frame, len) == 0, "%s: other bytes",
		    vec_text(vector, "name"));
		seen++;
	}
	ck_assert_uint_gt(seen, 20);
}
END_TEST

START_TEST(a_frame_that_does_not_fit)
{
	static uint8_t buf[WIRE_FRAME];
	static const char name[RL_NAME_MAX];
	struct rl_resource resources[RL_MAX_RESOURCES];
	struct rl_guard guards[RL_MAX_GUARDS] = {{0}};
	struct rl_check check = {.resources = resources,
	    .resource_count = RL_MAX_RESOURCES,
	    .guards = guards,
	    .guard_count = RL_MAX_GUARDS};
	size_t i;

	for (i = 0; i < RL_MAX_RESOURCES; i++)
		resources[i] = (struct rl_resource){name, RL_NAME_MAX, 1, 1, 1};
	for (i = 0; i < RL_MAX_GUARDS; i++) {
		guards[i].tracker = name;
		guards[i].tracker_len = RL_NAME_MAX;
	}
	ck_assert_uint_eq(enc_check(buf, 1, &check, false), 0);
}
END_TEST

/* ---- answers ---- */

static struct rl_decision decision;
static struct rl_detail detail;
static struct welcome welcome;
static struct delay delay;
static enum rl_reason verdict;
static uint64_t last_id;
static uint16_t code;
static char text[RL_TEXT_MAX + 1];

/* Decodes the payload of a frame; unknown types are refused. */
static bool
receive(uint16_t type, const uint8_t *payload, size_t len)
{
	struct get g = {payload, payload + len, false};

	switch (type) {
	case W_WELCOME:
		return dec_welcome(&g, &welcome);
	case W_DECISION:
		return dec_decision(&g, &decision, &detail);
	case W_REPORTED:
		return dec_verdict(&g, 1, &verdict, text);
	case W_DONE:
		return dec_verdict(&g, 2, &verdict, text);
	case W_GO_AWAY:
		return dec_go_away(&g, &last_id, text);
	case W_DELAY:
		return dec_delay(&g, &delay);
	case W_ERROR:
		return dec_error(&g, &code, text);
	default:
		return false;
	}
}

/* The same on a heap copy, so that a sanitizer sees one read too many. */
static bool
receive_copy(uint16_t type, const uint8_t *payload, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);
	bool ok;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, payload, len);
	ok = receive(type, copy, len);
	free(copy);
	return ok;
}

static void
same_name(const char *got, size_t len, const json_t *fields, const char *key)
{
	struct ipc_str want = vec_str(fields, key);

	ck_assert_uint_eq(len, want.len);
	ck_assert_mem_eq(got, want.bytes, want.len);
	ck_assert_int_eq(got[len], '\0');
}

/* A text of 512 bytes loses its last one. */
static void
same_text(const char *got, const json_t *fields)
{
	struct ipc_str want = vec_str(fields, "text");
	size_t len = want.len > RL_TEXT_MAX ? RL_TEXT_MAX : want.len;

	ck_assert_uint_eq(strlen(got), len);
	ck_assert_mem_eq(got, want.bytes, len);
}

#define SAME(got, fields, key) \
	ck_assert_uint_eq((got).key, vec_number(fields, #key))

static void
same_detail(const json_t *fields)
{
	const json_t *guards = vec_member(fields, "guards");
	const json_t *resources = vec_member(fields, "resources");
	const json_t *part;
	size_t i;

	ck_assert_uint_eq(detail.guard_count, json_array_size(guards));
	ck_assert_uint_eq(detail.resource_count, json_array_size(resources));
	json_array_foreach(guards, i, part)
	{
		SAME(detail.guards[i], part, below_ms);
		SAME(detail.guards[i], part, current_ms);
		SAME(detail.guards[i], part, passed);
		same_name(detail.guards[i].tracker,
		    detail.guards[i].tracker_len, part, "name");
	}
	json_array_foreach(resources, i, part)
	{
		SAME(detail.resources[i], part, window_ms);
		SAME(detail.resources[i], part, limit);
		SAME(detail.resources[i], part, tokens);
		SAME(detail.resources[i], part, deficit);
		SAME(detail.resources[i], part, actual_rate);
		same_name(detail.resources[i].bucket,
		    detail.resources[i].bucket_len, part, "name");
	}
}

static void
same_decision(const json_t *fields)
{
	SAME(decision, fields, outcome);
	SAME(decision, fields, permit);
	SAME(decision, fields, source);
	SAME(decision, fields, reason);
	SAME(decision, fields, round);
	SAME(decision, fields, retry_after_ms);
	SAME(decision, fields, server_id);
	SAME(decision, fields, elapsed_us);
	ck_assert_int_eq(decision.has_server,
	    (vec_number(fields, "has") & IPC_HAS_SERVER) != 0);
	same_name(decision.limit, decision.limit_len, fields, "limit");
	same_text(decision.text, fields);
	same_detail(fields);
}

static void
same_answer(uint16_t type, const json_t *fields)
{
	uint8_t hash[WIRE_ID];

	switch (type) {
	case W_WELCOME:
		SAME(welcome, fields, max_frame);
		SAME(welcome, fields, default_deadline_ms);
		vec_unhex(vec_text(fields, "config_hash"), hash);
		ck_assert_mem_eq(welcome.config_hash, hash, WIRE_ID);
		break;
	case W_DECISION:
		same_decision(fields);
		break;
	case W_REPORTED:
	case W_DONE:
		ck_assert_uint_eq(verdict, vec_number(fields, "reason"));
		same_text(text, fields);
		break;
	case W_GO_AWAY:
		ck_assert_uint_eq(last_id, vec_number(fields, "last_id"));
		same_text(text, fields);
		break;
	case W_DELAY:
		SAME(delay, fields, reason);
		SAME(delay, fields, wait_us);
		same_text(delay.text, fields);
		break;
	case W_ERROR:
		ck_assert_uint_eq(code, vec_number(fields, "code"));
		same_text(text, fields);
		break;
	default:
		ck_abort_msg("type %#x", type);
	}
}

/* PONG and DOCUMENT have no form of their own; check_rlshim.c has them. */
static bool
formless(uint16_t type)
{
	return type == W_PONG || type == W_DOCUMENT;
}

static uint16_t
type_of(const uint8_t *frame)
{
	return (uint16_t)(frame[4] | frame[5] << 8);
}

START_TEST(decodes_the_vectors)
{
	const json_t *vector;
	uint8_t *frame;
	size_t i, len, cut, seen = 0;
	uint16_t type;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		vec_used = 0;
		len = vec_frame(vector, &frame);
		type = type_of(frame);
		if (vec_from_client(vector) || formless(type))
			continue;
		for (cut = HEAD_LEN; cut < len; cut++)
			ck_assert_msg(!receive_copy(type, frame + HEAD_LEN,
					  cut - HEAD_LEN),
			    "%s cut at %zu", vec_text(vector, "name"), cut);
		ck_assert_msg(
		    receive_copy(type, frame + HEAD_LEN, len - HEAD_LEN),
		    "%s does not decode", vec_text(vector, "name"));
		same_answer(type, vec_member(vector, "fields"));
		seen++;
	}
	ck_assert_uint_gt(seen, 20);
}
END_TEST

START_TEST(refuses_the_malformed)
{
	const json_t *vector;
	uint8_t *frame;
	size_t i, len, seen = 0;

	json_array_foreach(vec_member(vectors, "malformed"), i, vector)
	{
		if (vec_from_client(vector) ||
		    strcmp(vec_text(vector, "fault"), "framing") == 0)
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		ck_assert_msg(!receive_copy(type_of(frame), frame + HEAD_LEN,
				  len - HEAD_LEN),
		    "%s decodes", vec_text(vector, "name"));
		seen++;
	}
	ck_assert_uint_gt(seen, 20);
}
END_TEST

static void
decision_is_bounded(void)
{
	ck_assert_int_le(decision.outcome, RL_CANCELLED);
	ck_assert_int_le(decision.source, RL_SOURCE_SHADOW);
	ck_assert_int_le(decision.reason, RL_REASON_CANCELLED);
	ck_assert_uint_le(decision.limit_len, RL_NAME_MAX);
	ck_assert_uint_le(strlen(decision.text), RL_TEXT_MAX);
	ck_assert_uint_le(detail.guard_count, RL_MAX_GUARDS);
	ck_assert_uint_le(detail.resource_count, RL_MAX_RESOURCES);
}

static void
delay_is_bounded(void)
{
	ck_assert_int_le(delay.reason, RL_REASON_CANCELLED);
	ck_assert_uint_le(strlen(delay.text), RL_TEXT_MAX);
	if (delay.reason == RL_REASON_OK)
		ck_assert_uint_le(delay.wait_us, 31536000000000u);
}

/* What still decodes is within the enumerations and bounds of rlshim.h. */
START_TEST(random_mutations)
{
	uint64_t state = harness_seed();
	const json_t *vector;
	uint8_t *frame;
	size_t i, n, len, round;
	uint16_t type;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		vec_used = 0;
		len = vec_frame(vector, &frame);
		type = type_of(frame);
		if (type != W_DECISION && type != W_DELAY)
			continue;
		for (round = 0; round < 400; round++) {
			n = HEAD_LEN +
			    harness_below(&state, (uint32_t)(len - HEAD_LEN));
			frame[n] = (uint8_t)harness_random(&state);
			if (!receive_copy(
				type, frame + HEAD_LEN, len - HEAD_LEN))
				continue;
			if (type == W_DECISION)
				decision_is_bounded();
			else
				delay_is_bounded();
		}
	}
}
END_TEST

/* A detail that nobody wants is looked through all the same. */
START_TEST(detail_into_nothing)
{
	const json_t *vector;
	uint8_t *frame;
	struct get g;
	size_t i, len, seen = 0;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		vec_used = 0;
		len = vec_frame(vector, &frame);
		if (type_of(frame) != W_DECISION)
			continue;
		g = (struct get){frame + HEAD_LEN, frame + len, false};
		ck_assert(dec_decision(&g, &decision, NULL));
		seen++;
	}
	ck_assert_uint_gt(seen, 5);
}
END_TEST

START_TEST(texts_are_one_printable_line)
{
	uint8_t done[4 + 2 + WIRE_TEXT] = {0};
	struct get g = {done, done + sizeof(done), false};
	size_t i;

	done[5] = WIRE_TEXT >> 8;
	memset(done + 6, 'x', WIRE_TEXT);
	memcpy(done + 6, "a\nb\x1b[31m\x7f", 10);
	/* The cut would go through the last character, of three bytes. */
	memcpy(done + 6 + WIRE_TEXT - 3, "\xe2\x82\xac", 3);
	ck_assert(dec_verdict(&g, 2, &verdict, text));
	ck_assert_mem_eq(text, "a?b?[31m?", 9);
	ck_assert_uint_eq(strlen(text), WIRE_TEXT - 3);
	for (i = 10; text[i] != '\0'; i++)
		ck_assert_int_eq(text[i], 'x');
}
END_TEST

/* ---- what is repeated from ipc.h ---- */

_Static_assert(WIRE_MAGIC == IPC_MAGIC, "magic");
_Static_assert(WIRE_VERSION == IPC_VERSION, "version");
_Static_assert(HEAD_LEN == IPC_HEAD_LEN, "head");
_Static_assert(WIRE_FRAME == IPC_MAX_FRAME, "frame");
_Static_assert(WIRE_LABEL == IPC_MAX_LABEL, "label");
_Static_assert(WIRE_TEXT == IPC_MAX_TEXT, "text");
_Static_assert(WIRE_ID == IPC_ID_LEN && WIRE_ID == IPC_HASH_LEN, "ids");
_Static_assert(RL_NAME_MAX == IPC_MAX_NAME, "name");
_Static_assert(RL_MAX_GUARDS == IPC_MAX_GUARDS, "guards");
_Static_assert(RL_MAX_RESOURCES == IPC_MAX_RESOURCES, "resources");
_Static_assert((int)E_UNAUTHORISED == (int)IPC_ERR_UNAUTHORISED, "errors");
_Static_assert((int)W_DELAY == (int)IPC_DELAY, "types");
_Static_assert((int)W_ERROR == (int)IPC_ERROR, "types");

START_TEST(names)
{
	unsigned i;

	for (i = 0; i <= RL_CANCELLED + 1; i++)
		ck_assert_str_eq(rl_outcome_name((enum rl_outcome)i),
		    ipc_outcome_name((enum ipc_outcome)i));
	for (i = 0; i <= RL_SOURCE_SHADOW + 1; i++)
		ck_assert_str_eq(rl_source_name((enum rl_source)i),
		    ipc_source_name((enum ipc_source)i));
	for (i = 0; i <= RL_REASON_CANCELLED + 1; i++)
		ck_assert_str_eq(rl_reason_name((enum rl_reason)i),
		    ipc_reason_name((enum ipc_reason)i));
	ck_assert_str_eq(rl_strerror(RL_OK), "success");
	ck_assert_str_eq(rl_strerror(1), "unknown status");
	for (i = 1; i <= 7; i++)
		ck_assert_str_ne(rl_strerror(-(int)i), "unknown status");
}
END_TEST

static Suite *
codec_suite(void)
{
	Suite *s = suite_create("rlshim_codec");
	TCase *tc = tcase_create("codec");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, vec_load, vec_free);
	tcase_add_test(tc, encodes_the_vectors);
	tcase_add_test(tc, a_frame_that_does_not_fit);
	tcase_add_test(tc, decodes_the_vectors);
	tcase_add_test(tc, refuses_the_malformed);
	tcase_add_test(tc, random_mutations);
	tcase_add_test(tc, detail_into_nothing);
	tcase_add_test(tc, texts_are_one_printable_line);
	tcase_add_test(tc, names);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(codec_suite());
}
