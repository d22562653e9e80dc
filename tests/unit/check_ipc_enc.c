/* The agent's encoders (proto/ipc_enc.c), against proto/vectors/ipc.json. */
#include "proto/ipc.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"
#include "tests/unit/ipc_vectors.h"

static void
read_welcome(struct ipc_welcome *out, const json_t *fields)
{
	out->version = (uint16_t)vec_number(fields, "version");
	out->max_frame = (uint32_t)vec_number(fields, "max_frame");
	out->max_inflight = (uint32_t)vec_number(fields, "max_inflight");
	out->default_deadline_ms =
	    (uint32_t)vec_number(fields, "default_deadline_ms");
	vec_unhex(vec_text(fields, "config_hash"), out->config_hash);
	out->generation = vec_number(fields, "generation");
	out->agent = vec_str(fields, "agent");
}

static void
read_parts(struct ipc_decision *out, const json_t *fields)
{
	const json_t *guards = vec_member(fields, "guards");
	const json_t *resources = vec_member(fields, "resources");
	const json_t *part;
	size_t i;

	out->guard_count = (uint16_t)json_array_size(guards);
	out->resource_count = (uint16_t)json_array_size(resources);
	json_array_foreach(guards, i, part)
	{
		out->guards[i].below_ms =
		    (uint32_t)vec_number(part, "below_ms");
		out->guards[i].current_ms =
		    (uint32_t)vec_number(part, "current_ms");
		out->guards[i].passed = (uint8_t)vec_number(part, "passed");
		out->guards[i].name = vec_str(part, "name");
	}
	json_array_foreach(resources, i, part)
	{
		out->resources[i].window_ms =
		    (uint32_t)vec_number(part, "window_ms");
		out->resources[i].limit = (uint32_t)vec_number(part, "limit");
		out->resources[i].tokens = (uint32_t)vec_number(part, "tokens");
		out->resources[i].deficit =
		    (uint32_t)vec_number(part, "deficit");
		out->resources[i].actual_rate =
		    (uint32_t)vec_number(part, "actual_rate");
		out->resources[i].name = vec_str(part, "name");
	}
}

static void
read_decision(struct ipc_decision *out, const json_t *fields)
{
	out->outcome = (uint8_t)vec_number(fields, "outcome");
	out->permit = (uint8_t)vec_number(fields, "permit");
	out->source = (uint8_t)vec_number(fields, "source");
	out->reason = (uint8_t)vec_number(fields, "reason");
	out->round = (uint16_t)vec_number(fields, "round");
	out->has = (uint16_t)vec_number(fields, "has");
	out->retry_after_ms = (uint32_t)vec_number(fields, "retry_after_ms");
	out->server_id = vec_number(fields, "server_id");
	out->elapsed_us = vec_number(fields, "elapsed_us");
	out->limit = vec_str(fields, "limit");
	out->text = vec_str(fields, "text");
	read_parts(out, fields);
}

/* Encodes a vector's fields into w; what the encoder returned. */
static int
encode(struct writer *w, const json_t *vector)
{
	static struct ipc_decision decision;
	const json_t *fields = vec_member(vector, "fields");
	const char *type = vec_text(vector, "type");
	uint64_t id = vec_number(vector, "id");
	struct ipc_welcome welcome;
	struct ipc_reported reported;
	struct ipc_ping pong;
	struct ipc_str text;
	struct ipc_done done;
	struct ipc_error error;
	struct ipc_go_away go_away;
	struct ipc_delay delay;

	if (strcmp(type, "welcome") == 0) {
		read_welcome(&welcome, fields);
		return ipc_enc_welcome(w, id, &welcome);
	}
	if (strcmp(type, "decision") == 0) {
		read_decision(&decision, fields);
		return ipc_enc_decision(w, id, &decision);
	}
	if (strcmp(type, "reported") == 0) {
		reported.reason = (uint8_t)vec_number(fields, "reason");
		reported.sent = (uint8_t)vec_number(fields, "sent");
		reported.text = vec_str(fields, "text");
		return ipc_enc_reported(w, id, &reported);
	}
	if (strcmp(type, "pong") == 0) {
		pong.bytes = vec_str(fields, "bytes");
		return ipc_enc_pong(w, id, &pong);
	}
	if (strcmp(type, "document") == 0) {
		text = vec_str(fields, "json");
		return ipc_enc_document(w, id, text.bytes, text.len,
		    (vec_number(vector, "flags") & IPC_FLAG_MORE) != 0);
	}
	if (strcmp(type, "go-away") == 0) {
		go_away.last_id = vec_number(fields, "last_id");
		go_away.text = vec_str(fields, "text");
		return ipc_enc_go_away(w, id, &go_away);
	}
	if (strcmp(type, "delay") == 0) {
		delay.reason = (uint16_t)vec_number(fields, "reason");
		delay.wait_us = vec_number(fields, "wait_us");
		delay.text = vec_str(fields, "text");
		return ipc_enc_delay(w, id, &delay);
	}
	if (strcmp(type, "done") == 0) {
		done.reason = (uint16_t)vec_number(fields, "reason");
		done.text = vec_str(fields, "text");
		return ipc_enc_done(w, id, &done);
	}
	ck_assert_str_eq(type, "error");
	error.code = (uint16_t)vec_number(fields, "code");
	error.text = vec_str(fields, "text");
	return ipc_enc_error(w, id, &error);
}

START_TEST(encodes_the_vectors)
{
	static uint8_t buf[IPC_MAX_FRAME + 7];
	const json_t *vector;
	struct writer w;
	uint8_t *frame;
	size_t i, len, seen = 0;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (vec_from_client(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		/* Not at the buffer's start: frames are queued in one. */
		writer_init(&w, buf, sizeof(buf));
		writer_zeros(&w, 7);
		ck_assert_msg(encode(&w, vector) == 0, "%s does not encode",
		    vec_text(vector, "name"));
		ck_assert_uint_eq(writer_len(&w), 7 + len);
		ck_assert_msg(memcmp(buf + 7, frame, len) == 0,
		    "%s: other bytes", vec_text(vector, "name"));
		seen++;
	}
	ck_assert_uint_gt(seen, 20);
}
END_TEST

/* With any room too small, nothing is written and the writer goes on. */
START_TEST(encoders_need_their_room)
{
	static uint8_t buf[IPC_MAX_FRAME];
	const json_t *vector;
	struct writer w;
	uint8_t *frame;
	size_t i, room, len;

	json_array_foreach(vec_member(vectors, "messages"), i, vector)
	{
		if (vec_from_client(vector))
			continue;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		for (room = len > 700 ? len - 700 : 0; room < len; room++) {
			vec_used = len;
			writer_init(&w, buf, room);
			if (encode(&w, vector) != RLA_ETOOBIG ||
			    !writer_ok(&w) || writer_len(&w) != 0)
				ck_abort_msg("%s in %zu bytes",
				    vec_text(vector, "name"), room);
		}
	}
}
END_TEST

static struct ipc_str
filler(size_t len)
{
	struct ipc_str s = {vec_take(len), (uint16_t)len};

	memset(vec_pool, 'x', vec_used);
	return s;
}

START_TEST(encoders_keep_the_maxima)
{
	static uint8_t buf[2 * IPC_MAX_FRAME];
	static struct ipc_decision decision;
	static uint8_t json[IPC_MAX_FRAME];
	struct ipc_ping pong;
	struct ipc_delay delay = {0, 0, {NULL, 0}};
	struct ipc_done done = {0, {NULL, 0}};
	struct writer w;
	size_t i;

	vec_used = 0;
	writer_init(&w, buf, sizeof(buf));
	pong.bytes = filler(IPC_MAX_PING + 1);
	ck_assert_int_eq(ipc_enc_pong(&w, 1, &pong), RLA_ETOOBIG);
	done.text = filler(IPC_MAX_TEXT + 1);
	ck_assert_int_eq(ipc_enc_done(&w, 1, &done), RLA_ETOOBIG);
	delay.text = done.text;
	ck_assert_int_eq(ipc_enc_delay(&w, 1, &delay), RLA_ETOOBIG);
	ck_assert_int_eq(ipc_enc_document(&w, 1, json,
			     sizeof(json) - IPC_HEAD_LEN + 1, false),
	    RLA_ETOOBIG);
	decision.limit = filler(IPC_MAX_NAME + 1);
	ck_assert_int_eq(ipc_enc_decision(&w, 1, &decision), RLA_ETOOBIG);
	decision.limit.len = 0;
	decision.has = IPC_HAS_DETAIL;
	decision.guard_count = IPC_MAX_GUARDS + 1;
	ck_assert_int_eq(ipc_enc_decision(&w, 1, &decision), RLA_ETOOBIG);
	/* Names of the greatest length everywhere: more than a frame. */
	decision.guard_count = IPC_MAX_GUARDS;
	decision.resource_count = IPC_MAX_RESOURCES;
	for (i = 0; i < IPC_MAX_GUARDS; i++)
		decision.guards[i].name = filler(IPC_MAX_NAME);
	for (i = 0; i < IPC_MAX_RESOURCES; i++)
		decision.resources[i].name = filler(IPC_MAX_NAME);
	ck_assert_int_eq(ipc_enc_decision(&w, 1, &decision), RLA_ETOOBIG);
	ck_assert(writer_ok(&w));
	ck_assert_uint_eq(writer_len(&w), 0);
	/* The longest document fits, and the writer is still usable. */
	ck_assert_int_eq(
	    ipc_enc_document(&w, 1, json, sizeof(json) - IPC_HEAD_LEN, false),
	    0);
	ck_assert_uint_eq(writer_len(&w), IPC_MAX_FRAME);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("ipc_enc");
	TCase *tc = tcase_create("ipc_enc");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, vec_load, vec_free);
	tcase_add_test(tc, encodes_the_vectors);
	tcase_add_test(tc, encoders_need_their_room);
	tcase_add_test(tc, encoders_keep_the_maxima);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
