/*
 * The agent's half of the application protocol: total decoders for what
 * clients send, encoders for what the agent answers. proto/IPC.md is the
 * specification; section numbers below are its. Decoded strings borrow the
 * frame. The first fault in a payload decides its error, and after it
 * nothing more is read.
 */
#include "proto/ipc.h"

#include <string.h>

#include <stddef.h>

#include "proto/err.h"

/* Every message, one row; the top bit of the type is its direction. */
static const struct message {
	uint16_t type;
	const char *name;
} messages[] = {
    {IPC_HELLO, "hello"},
    {IPC_CHECK, "check"},
    {IPC_CHECK_ADHOC, "check-adhoc"},
    {IPC_CANCEL, "cancel"},
    {IPC_REPORT, "report"},
    {IPC_REPORT_ADHOC, "report-adhoc"},
    {IPC_REPORT_RULE, "report-rule"},
    {IPC_PING, "ping"},
    {IPC_WAIT, "wait"},
    {IPC_STATUS, "status"},
    {IPC_SERVERS, "servers"},
    {IPC_POLICY, "policy"},
    {IPC_RULES, "rules"},
    {IPC_EXPLAIN, "explain"},
    {IPC_QUIT, "quit"},
    {IPC_RELOAD, "reload"},
    {IPC_DRAIN, "drain"},

    {IPC_WELCOME, "welcome"},
    {IPC_DECISION, "decision"},
    {IPC_REPORTED, "reported"},
    {IPC_PONG, "pong"},
    {IPC_DOCUMENT, "document"},
    {IPC_GO_AWAY, "go-away"},
    {IPC_DONE, "done"},
    {IPC_ERROR, "error"},
};

const char *
ipc_type_name(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		if (messages[i].type == type)
			return messages[i].name;
	return NULL;
}

/*
 * 2.1 The head
 *
 *   0      4      6      8                16
 *   +------+------+------+----------------+----------
 *   |length| type |flags |       id       | payload
 *   +------+------+------+----------------+----------
 */
enum ipc_framing
ipc_frame(const uint8_t *bytes, size_t len, struct ipc_head *head,
    struct reader *payload)
{
	struct reader r;

	reader_init(&r, bytes, len);
	if (len < sizeof(head->length))
		return IPC_NEED_MORE;
	head->length = reader_u32(&r);
	if (head->length < IPC_HEAD_LEN || head->length > IPC_MAX_FRAME)
		return IPC_BAD;
	if (len < head->length)
		return IPC_NEED_MORE;
	head->type = reader_u16(&r);
	head->flags = reader_u16(&r);
	head->id = reader_u64(&r);
	*payload = reader_sub(&r, head->length - IPC_HEAD_LEN);
	return IPC_MESSAGE;
}

/* 2.2 A string: u16 length, bytes. Stops the reader when over its maximum. */
static struct ipc_str
dec_str(struct reader *r, size_t max, bool *big)
{
	struct ipc_str s;

	s.len = reader_u16(r);
	if (s.len > max) {
		*big = true;
		r->bad = true;
	}
	s.bytes = reader_bytes(r, s.len);
	if (s.bytes == NULL)
		s.len = 0;
	return s;
}

/* A count of entries that follow; zero when it is over its maximum. */
static uint16_t
dec_count(struct reader *r, size_t max, bool *big)
{
	uint16_t n = reader_u16(r);

	if (n > max) {
		*big = true;
		r->bad = true;
		return 0;
	}
	return n;
}

static int
dec_end(const struct reader *r, bool big)
{
	if (big)
		return RLA_ETOOBIG;
	if (!reader_ok(r))
		return RLA_ESHORT;
	return reader_done(r) ? 0 : RLA_EMALFORMED;
}

/*
 * 4.1 HELLO
 *
 *   0       4      6      8
 *   +-------+------+------+------------
 *   | magic | min  | max  | str client
 *   +-------+------+------+------------
 */
int
ipc_dec_hello(struct reader *r, struct ipc_hello *out)
{
	bool big = false;
	uint32_t magic;
	int rc;

	magic = reader_u32(r);
	out->version_min = reader_u16(r);
	out->version_max = reader_u16(r);
	out->client = dec_str(r, IPC_MAX_NAME, &big);
	rc = dec_end(r, big);
	if (rc == 0 && magic != IPC_MAGIC)
		rc = RLA_EMALFORMED;
	return rc;
}

/*
 * 4.3 The common start of both checks
 *
 *   0              16             32       40         44        48       52
 *   +--------------+--------------+--------+----------+---------+--------+
 *   | operation_id | config_hash  | age_us | deadline | options | tokens |
 *   +--------------+--------------+--------+----------+---------+--------+
 */
static void
dec_base(struct reader *r, struct ipc_check_base *out)
{
	reader_copy(r, out->operation_id, IPC_ID_LEN);
	reader_copy(r, out->config_hash, IPC_HASH_LEN);
	out->age_us = reader_u64(r);
	out->deadline_ms = reader_u32(r);
	out->options = reader_u32(r);
	out->tokens = reader_u32(r);
}

/* 4.4 CHECK: base | str rule | str key */
int
ipc_dec_check(struct reader *r, struct ipc_check *out)
{
	bool big = false;

	dec_base(r, &out->base);
	out->rule = dec_str(r, IPC_MAX_NAME, &big);
	out->key = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* One guard: ttl | max_samples | buffer_size | min_samples | below | str */
static void
dec_guard(struct reader *r, struct ipc_guard *out, bool *big)
{
	out->ttl_ms = reader_u32(r);
	out->max_samples = reader_u32(r);
	out->buffer_size = reader_u32(r);
	out->min_samples = reader_u32(r);
	out->below_ms = reader_u32(r);
	out->name = dec_str(r, IPC_MAX_NAME, big);
}

/* One resource: window | limit | tokens | str */
static void
dec_resource(struct reader *r, struct ipc_resource *out, bool *big)
{
	out->window_ms = reader_u32(r);
	out->limit = reader_u32(r);
	out->tokens = reader_u32(r);
	out->name = dec_str(r, IPC_MAX_NAME, big);
}

/*
 * 4.5 CHECK_ADHOC: base | str tenant | str label | u16 guards |
 * u16 resources | guards | resources
 */
int
ipc_dec_check_adhoc(struct reader *r, struct ipc_check_adhoc *out)
{
	bool big = false;
	size_t i;

	dec_base(r, &out->base);
	out->tenant = dec_str(r, IPC_MAX_NAME, &big);
	out->label = dec_str(r, IPC_MAX_LABEL, &big);
	out->guard_count = dec_count(r, IPC_MAX_GUARDS, &big);
	out->resource_count = dec_count(r, IPC_MAX_RESOURCES, &big);
	for (i = 0; i < out->guard_count; i++)
		dec_guard(r, &out->guards[i], &big);
	for (i = 0; i < out->resource_count; i++)
		dec_resource(r, &out->resources[i], &big);
	return dec_end(r, big);
}

/* 4.8 REPORT: u32 latency | u32 options | str tenant | str tracker | str key */
int
ipc_dec_report(struct reader *r, struct ipc_report *out)
{
	bool big = false;

	out->latency_ms = reader_u32(r);
	out->options = reader_u32(r);
	out->tenant = dec_str(r, IPC_MAX_NAME, &big);
	out->tracker = dec_str(r, IPC_MAX_NAME, &big);
	out->key = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/*
 * 4.9 REPORT_ADHOC
 *
 *   0         4     8             12            16            20
 *   +---------+-----+-------------+-------------+-------------+-----
 *   | latency | ttl | max_samples | buffer_size | min_samples | ...
 *   +---------+-----+-------------+-------------+-------------+-----
 *   ... str tenant | str tracker
 */
int
ipc_dec_report_adhoc(struct reader *r, struct ipc_report_adhoc *out)
{
	bool big = false;

	out->latency_ms = reader_u32(r);
	out->ttl_ms = reader_u32(r);
	out->max_samples = reader_u32(r);
	out->buffer_size = reader_u32(r);
	out->min_samples = reader_u32(r);
	out->tenant = dec_str(r, IPC_MAX_NAME, &big);
	out->tracker = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* 4.10 REPORT_RULE: u32 latency | u32 options | str rule | str key */
int
ipc_dec_report_rule(struct reader *r, struct ipc_report_rule *out)
{
	bool big = false;

	out->latency_ms = reader_u32(r);
	out->options = reader_u32(r);
	out->rule = dec_str(r, IPC_MAX_NAME, &big);
	out->key = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* 4.12 PING: the payload itself */
int
ipc_dec_ping(struct reader *r, struct ipc_ping *out)
{
	size_t len = reader_left(r);

	out->bytes.len = 0;
	out->bytes.bytes = NULL;
	if (len > IPC_MAX_PING)
		return RLA_ETOOBIG;
	out->bytes.len = (uint16_t)len;
	out->bytes.bytes = reader_bytes(r, len);
	return dec_end(r, false);
}

/* 4.13 WAIT: u32 timeout */
int
ipc_dec_wait(struct reader *r, struct ipc_wait *out)
{
	out->timeout_ms = reader_u32(r);
	return dec_end(r, false);
}

/* 4.15 EXPLAIN: u32 options | u32 tokens | str rule | str key */
int
ipc_dec_explain(struct reader *r, struct ipc_explain *out)
{
	bool big = false;

	out->options = reader_u32(r);
	out->tokens = reader_u32(r);
	out->rule = dec_str(r, IPC_MAX_NAME, &big);
	out->key = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* 4.7, 4.14, 4.17: no payload */
int
ipc_dec_empty(struct reader *r)
{
	return dec_end(r, false);
}

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
		w->full = true;
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
		w->full = true;
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
		w->full = true;
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

/* 4.18 GO_AWAY: u64 last_id | str text */
int
ipc_enc_go_away(struct writer *w, uint64_t id, const struct ipc_go_away *in)
{
	struct frame f = enc_begin(w, IPC_GO_AWAY, 0, id);

	writer_u64(w, in->last_id);
	enc_str(w, &in->text, IPC_MAX_TEXT);
	return enc_end(&f);
}

/* 4.19 DONE and 4.20 ERROR alike: u16 number | u16 zero | str text */
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

struct ipc_str
ipc_text(const char *text)
{
	return (struct ipc_str){
	    .bytes = (const uint8_t *)text,
	    .len = (uint16_t)strnlen(text, IPC_MAX_TEXT),
	};
}

const char *
ipc_outcome_name(enum ipc_outcome outcome)
{
	switch (outcome) {
	case IPC_ALLOWED:
		return "allowed";
	case IPC_DENIED:
		return "denied";
	case IPC_FAILED:
		return "failed";
	case IPC_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}

const char *
ipc_source_name(enum ipc_source source)
{
	switch (source) {
	case IPC_SOURCE_SERVER:
		return "server";
	case IPC_SOURCE_EMPTY:
		return "empty";
	case IPC_SOURCE_POLICY:
		return "policy";
	case IPC_SOURCE_LOCAL:
		return "local";
	case IPC_SOURCE_SHADOW:
		return "shadow";
	}
	return "unknown";
}

const char *
ipc_reason_name(enum ipc_reason reason)
{
	switch (reason) {
	case IPC_REASON_OK:
		return "ok";
	case IPC_REASON_RESOURCE:
		return "resource";
	case IPC_REASON_GUARD:
		return "guard";
	case IPC_REASON_RESOURCE_GUARD:
		return "resource+guard";
	case IPC_REASON_VALIDATION:
		return "validation";
	case IPC_REASON_UNKNOWN_RULE:
		return "unknown-rule";
	case IPC_REASON_UNAUTHORISED:
		return "unauthorised";
	case IPC_REASON_DISCOVERY:
		return "discovery";
	case IPC_REASON_TRANSPORT:
		return "transport";
	case IPC_REASON_TIMEOUT:
		return "timeout";
	case IPC_REASON_OVERLOADED:
		return "overloaded";
	case IPC_REASON_DRAINING:
		return "draining";
	case IPC_REASON_INTERRUPTED:
		return "interrupted";
	case IPC_REASON_UNAVAILABLE:
		return "unavailable";
	case IPC_REASON_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}
