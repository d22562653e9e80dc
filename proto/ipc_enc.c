/*
 * Encoders for what the agent answers: a whole frame, or nothing. Section
 * numbers are those of proto/IPC.md.
 */
#include "proto/ipc.h"

#include <stddef.h>

#include "proto/err.h"

/* A frame being written, and the writer to go back to when it fails. */
struct frame {
	struct writer *w;
	struct writer before;
};

static struct frame
enc_begin(struct writer *w, enum ipc_type type, uint16_t flags, uint64_t id)
{
	struct frame f = {w, *w};

	writer_u32(w, 0); /* the length; enc_end() knows it */
	writer_u16(w, (uint16_t)type);
	writer_u16(w, flags);
	writer_u64(w, id);
	return f;
}

static int
enc_end(struct frame *f)
{
	size_t start = writer_len(&f->before);
	size_t len = writer_len(f->w) - start;

	if (!writer_ok(f->w) || len > IPC_MAX_FRAME) {
		*f->w = f->before;
		return RLA_ETOOBIG;
	}
	writer_patch_u32(f->w, start, (uint32_t)len);
	return 0;
}

/* A string over its maximum fails the frame, as lack of room would. */
static void
enc_str(struct writer *w, const struct ipc_str *s, size_t max)
{
	if (s->len > max) {
		writer_fail(w);
		return;
	}
	writer_u16(w, s->len);
	writer_bytes(w, s->bytes, s->len);
}

/*
 * 4.2 WELCOME
 *
 *   0       2    4         8            12               16
 *   +-------+----+---------+------------+----------------+-----
 *   |version| 0  |max_frame|max_inflight|default_deadline| ...
 *   +-------+----+---------+------------+----------------+-----
 *       16            32         40
 *   ... | config_hash | generation | str agent
 */
int
ipc_enc_welcome(struct writer *w, uint64_t id, const struct ipc_welcome *in)
{
	struct frame f = enc_begin(w, IPC_WELCOME, 0, id);

	writer_u16(w, in->version);
	writer_u16(w, 0);
	writer_u32(w, in->max_frame);
	writer_u32(w, in->max_inflight);
	writer_u32(w, in->default_deadline_ms);
	writer_bytes(w, in->config_hash, IPC_HASH_LEN);
	writer_u64(w, in->generation);
	enc_str(w, &in->agent, IPC_MAX_TEXT);
	return enc_end(&f);
}

/* 4.6 The detail: u16 guards | u16 resources | guards | resources */
static void
enc_detail(struct writer *w, const struct ipc_decision *in)
{
	size_t i;

	if (in->guard_count > IPC_MAX_GUARDS ||
	    in->resource_count > IPC_MAX_RESOURCES) {
		writer_fail(w);
		return;
	}
	writer_u16(w, in->guard_count);
	writer_u16(w, in->resource_count);
	for (i = 0; i < in->guard_count; i++) {
		writer_u32(w, in->guards[i].below_ms);
		writer_u32(w, in->guards[i].current_ms);
		writer_u8(w, in->guards[i].passed);
		enc_str(w, &in->guards[i].name, IPC_MAX_NAME);
	}
	for (i = 0; i < in->resource_count; i++) {
		writer_u32(w, in->resources[i].window_ms);
		writer_u32(w, in->resources[i].limit);
		writer_u32(w, in->resources[i].tokens);
		writer_u32(w, in->resources[i].deficit);
		writer_u32(w, in->resources[i].actual_rate);
		enc_str(w, &in->resources[i].name, IPC_MAX_NAME);
	}
}

/*
 * 4.6 DECISION
 *
 *   0       1      2      3      4     6     8             12
 *   +-------+------+------+------+-----+-----+-------------+-----
 *   |outcome|permit|source|reason|round| has | retry_after | ...
 *   +-------+------+------+------+-----+-----+-------------+-----
 *       12          20           28
 *   ... | server_id | elapsed_us | str limit | str text | detail
 */
int
ipc_enc_decision(struct writer *w, uint64_t id, const struct ipc_decision *in)
{
	struct frame f = enc_begin(w, IPC_DECISION, 0, id);

	writer_u8(w, in->outcome);
	writer_u8(w, in->permit);
	writer_u8(w, in->source);
	writer_u8(w, in->reason);
	writer_u16(w, in->round);
	writer_u16(w, in->has);
	writer_u32(w, in->retry_after_ms);
	writer_u64(w, in->server_id);
	writer_u64(w, in->elapsed_us);
	enc_str(w, &in->limit, IPC_MAX_NAME);
	enc_str(w, &in->text, IPC_MAX_TEXT);
	if ((in->has & IPC_HAS_DETAIL) != 0)
		enc_detail(w, in);
	return enc_end(&f);
}

/* 4.11 REPORTED: u8 reason | u8 sent | u16 zero | str text */
int
ipc_enc_reported(struct writer *w, uint64_t id, const struct ipc_reported *in)
{
	struct frame f = enc_begin(w, IPC_REPORTED, 0, id);

	writer_u8(w, in->reason);
	writer_u8(w, in->sent);
	writer_u16(w, 0);
	enc_str(w, &in->text, IPC_MAX_TEXT);
	return enc_end(&f);
}

/* 4.12 PONG: the payload of the PING */
int
ipc_enc_pong(struct writer *w, uint64_t id, const struct ipc_ping *in)
{
	struct frame f = enc_begin(w, IPC_PONG, 0, id);

	if (in->bytes.len > IPC_MAX_PING)
		writer_fail(w);
	writer_bytes(w, in->bytes.bytes, in->bytes.len);
	return enc_end(&f);
}

/* 4.16 DOCUMENT: the payload is a piece of JSON text */
int
ipc_enc_document(
    struct writer *w, uint64_t id, const void *json, size_t len, bool more)
{
	struct frame f =
	    enc_begin(w, IPC_DOCUMENT, more ? IPC_FLAG_MORE : 0, id);

	writer_bytes(w, json, len);
	return enc_end(&f);
}

/* 4.23 GO_AWAY: u64 last_id | str text */
int
ipc_enc_go_away(struct writer *w, uint64_t id, const struct ipc_go_away *in)
{
	struct frame f = enc_begin(w, IPC_GO_AWAY, 0, id);

	writer_u64(w, in->last_id);
	enc_str(w, &in->text, IPC_MAX_TEXT);
	return enc_end(&f);
}

/* 4.20 DELAY: u16 reason | u16 zero | u64 wait_us | str text */
int
ipc_enc_delay(struct writer *w, uint64_t id, const struct ipc_delay *in)
{
	struct frame f = enc_begin(w, IPC_DELAY, 0, id);

	writer_u16(w, in->reason);
	writer_u16(w, 0);
	writer_u64(w, in->wait_us);
	enc_str(w, &in->text, IPC_MAX_TEXT);
	return enc_end(&f);
}

/* 4.24 DONE and 4.25 ERROR alike: u16 number | u16 zero | str text */
static int
enc_verdict(struct writer *w, enum ipc_type type, uint64_t id, uint16_t number,
    const struct ipc_str *text)
{
	struct frame f = enc_begin(w, type, 0, id);

	writer_u16(w, number);
	writer_u16(w, 0);
	enc_str(w, text, IPC_MAX_TEXT);
	return enc_end(&f);
}

int
ipc_enc_done(struct writer *w, uint64_t id, const struct ipc_done *in)
{
	return enc_verdict(w, IPC_DONE, id, in->reason, &in->text);
}

int
ipc_enc_error(struct writer *w, uint64_t id, const struct ipc_error *in)
{
	return enc_verdict(w, IPC_ERROR, id, in->code, &in->text);
}
