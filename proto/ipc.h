/*
 * The frames between applications and the agent; proto/IPC.md is the contract
 * for other languages, proto/vectors/ipc.json holds bytes for each. This is
 * the agent's codec, ipc_dec.c and ipc_enc.c over ipc.c: no I/O and no crypto.
 * rlshim.c carries its own client half, held to the same vectors.
 *
 * A frame is a 16-byte head and a payload, little-endian, no padding:
 *
 *   0  u32  length of the whole frame, 16..16384
 *   4  u16  type
 *   6  u16  flags
 *   8  u64  request id, chosen by the client, echoed in every reply
 *
 * A string is a u16 length and that many bytes (any bytes unless said).
 */
#ifndef PROTO_IPC_H
#define PROTO_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/reader.h"
#include "proto/writer.h"

#define IPC_MAGIC         0x50494C52u /* "RLIP" */
#define IPC_VERSION       1
#define IPC_HEAD_LEN      16
#define IPC_MAX_FRAME     16384
#define IPC_MAX_NAME      255 /* rule, tenant, tracker, key, bucket name */
#define IPC_MAX_LABEL     256
#define IPC_MAX_TEXT      512 /* longest text that the agent sends */
#define IPC_MAX_PING      64
#define IPC_MAX_GUARDS    31
#define IPC_MAX_RESOURCES 40
#define IPC_ID_LEN        16
#define IPC_HASH_LEN      16

/* Client to agent below 0x8000, agent to client above. */
enum ipc_type {
	IPC_HELLO = 0x0001,
	IPC_CHECK = 0x0010,
	IPC_CHECK_ADHOC = 0x0011,
	IPC_CANCEL = 0x0012, /* head.id names the check; no reply of its own */
	IPC_REPORT = 0x0020,
	IPC_REPORT_ADHOC = 0x0021,
	IPC_REPORT_RULE = 0x0022,
	IPC_PING = 0x0030,
	IPC_WAIT = 0x0040,
	IPC_STATUS = 0x0041,
	IPC_SERVERS = 0x0042,
	IPC_POLICY = 0x0043,
	IPC_RULES = 0x0044,
	IPC_EXPLAIN = 0x0045,
	IPC_LIMITERS = 0x0046,
	IPC_METRICS = 0x0047,
	IPC_TOP = 0x0048, /* control socket only */
	IPC_ACQUIRE = 0x0050,
	IPC_TRY_ACQUIRE = 0x0051,
	IPC_ERROR_BEGIN = 0x0052,
	IPC_ERROR_SUCCESS = 0x0053,
	IPC_QUIT = 0x0060, /* this and the next three: control socket only */
	IPC_RELOAD = 0x0061,
	IPC_DRAIN = 0x0062,
	IPC_SET_RATE = 0x0063,
	IPC_WELCOME = 0x8001, /* again with head.id 0 after a reload */
	IPC_DECISION = 0x8010,
	IPC_REPORTED = 0x8020,
	IPC_PONG = 0x8030,
	IPC_DOCUMENT =
	    0x8041, /* text, mostly JSON; IPC_FLAG_MORE: more frames */
	IPC_GO_AWAY = 0x8050,
	IPC_DELAY = 0x8051,
	IPC_DONE = 0x8060,
	IPC_ERROR = 0x807F, /* head.id 0 or the request's; then close */
};

#define IPC_FLAG_MORE 0x0001

struct ipc_head {
	uint32_t length;
	uint16_t type;
	uint16_t flags;
	uint64_t id;
};

struct ipc_str {
	const uint8_t *bytes; /* borrows the frame */
	uint16_t len;
};

enum ipc_outcome {
	IPC_ALLOWED = 0,
	IPC_DENIED = 1,
	IPC_FAILED = 2,
	IPC_CANCELLED = 3,
};

enum ipc_source {
	IPC_SOURCE_SERVER = 0,
	IPC_SOURCE_EMPTY = 1,
	IPC_SOURCE_POLICY = 2,
	IPC_SOURCE_LOCAL = 3,
	IPC_SOURCE_SHADOW = 4,
};

enum ipc_reason {
	IPC_REASON_OK = 0,
	IPC_REASON_RESOURCE = 1,
	IPC_REASON_GUARD = 2,
	IPC_REASON_RESOURCE_GUARD = 3,
	IPC_REASON_VALIDATION = 4,
	IPC_REASON_UNKNOWN_RULE = 5,
	IPC_REASON_UNAUTHORISED = 6,
	IPC_REASON_DISCOVERY = 7,
	IPC_REASON_TRANSPORT = 8,
	IPC_REASON_TIMEOUT = 9,
	IPC_REASON_OVERLOADED = 10,
	IPC_REASON_DRAINING = 11,
	IPC_REASON_INTERRUPTED = 12,
	IPC_REASON_UNAVAILABLE = 13,
	IPC_REASON_CANCELLED = 14,
};

enum ipc_error_code {
	IPC_ERR_VERSION = 1,   /* no common version */
	IPC_ERR_MALFORMED = 2, /* length, payload or magic */
	IPC_ERR_TYPE = 3, /* unknown type, or one that clients do not send */
	IPC_ERR_GREETING = 4, /* no HELLO first, or a second one */
	IPC_ERR_BUSY = 5,     /* too many connections */
	IPC_ERR_SLOW = 6,     /* a started frame was not finished in time */
	IPC_ERR_ID = 7, /* the request id is in flight on this connection */
	IPC_ERR_UNAUTHORISED = 8, /* this peer may not use this listener */
};

/* HELLO: u32 magic, u16 lowest, u16 highest version, str client name. */
struct ipc_hello {
	uint16_t version_min;
	uint16_t version_max;
	struct ipc_str client;
};

/*
 * WELCOME: u16 version, u16 zero, u32 max_frame, u32 max_inflight of the
 * listener, u32 default_deadline_ms (the longest horizon plus one second),
 * 16 config_hash, u64 generation, str agent version text.
 */
struct ipc_welcome {
	uint16_t version;
	uint32_t max_frame;
	uint32_t max_inflight;
	uint32_t default_deadline_ms;
	uint8_t config_hash[IPC_HASH_LEN];
	uint64_t generation;
	struct ipc_str agent;
};

#define IPC_OPT_DETAIL 0x1u /* send guards and resources with the decision */
#define IPC_OPT_KEY    0x2u /* a key is present, maybe an empty one */

#define IPC_CHECK_BASE_LEN 52 /* bytes of it in a payload */

/* The common start of CHECK and CHECK_ADHOC. */
struct ipc_check_base {
	uint8_t operation_id[IPC_ID_LEN];  /* UUIDv4 */
	uint8_t config_hash[IPC_HASH_LEN]; /* zeros when first sent; else
					    * what it was first sent under */
	uint64_t age_us;      /* since the client first wrote it; 0 then */
	uint32_t deadline_ms; /* from that first write; 0: the default */
	uint32_t options;
	uint32_t tokens; /* multiplies every resource's tokens; 1..65535 */
};

/* CHECK: the base (in that order), str rule, str key. */
struct ipc_check {
	struct ipc_check_base base;
	struct ipc_str rule;
	struct ipc_str key;
};

struct ipc_guard {
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size;
	uint32_t min_samples;
	uint32_t below_ms;
	struct ipc_str name;
};

struct ipc_resource {
	uint32_t window_ms;
	uint32_t limit;
	uint32_t tokens;
	struct ipc_str name;
};

/*
 * CHECK_ADHOC: the base, str tenant (empty: the only one), str label, u16
 * guards, u16 resources, then the guards (five u32, str) and the resources
 * (three u32, str).
 */
struct ipc_check_adhoc {
	struct ipc_check_base base;
	struct ipc_str tenant;
	struct ipc_str label;
	uint16_t guard_count;
	uint16_t resource_count;
	struct ipc_guard guards[IPC_MAX_GUARDS];
	struct ipc_resource resources[IPC_MAX_RESOURCES];
};

#define IPC_HAS_DETAIL 0x1u
#define IPC_HAS_SERVER 0x2u /* server_id and round mean something */

struct ipc_guard_result {
	uint32_t below_ms;
	uint32_t current_ms;
	uint8_t passed; /* 0 or 1 */
	struct ipc_str name;
};

struct ipc_resource_result {
	uint32_t window_ms;
	uint32_t limit;
	uint32_t tokens;      /* asked for */
	uint32_t deficit;     /* 0: granted */
	uint32_t actual_rate; /* in the window, as the server counts */
	struct ipc_str name;
};

/*
 * DECISION: u8 outcome, u8 permit, u8 source, u8 reason, u16 round, u16 has,
 * u32 retry_after_ms, u64 server_id, u64 elapsed_us, str limit, str text;
 * with IPC_HAS_DETAIL u16 guards, u16 resources, then the guards (two u32,
 * u8, str) and the resources (five u32, str).
 */
struct ipc_decision {
	uint8_t outcome;
	uint8_t permit;
	uint8_t source;
	uint8_t reason;
	uint16_t round;
	uint16_t has;
	uint32_t retry_after_ms; /* 0: no estimate */
	uint64_t server_id;
	uint64_t elapsed_us;
	struct ipc_str limit;
	struct ipc_str text; /* why, for people; UTF-8 */
	uint16_t guard_count;
	uint16_t resource_count;
	struct ipc_guard_result guards[IPC_MAX_GUARDS];
	struct ipc_resource_result resources[IPC_MAX_RESOURCES];
};

/*
 * REPORT: u32 latency_ms, u32 options (IPC_OPT_KEY), str tenant (empty: the
 * only one), str tracker, str key.
 */
struct ipc_report {
	uint32_t latency_ms;
	uint32_t options;
	struct ipc_str tenant;
	struct ipc_str tracker;
	struct ipc_str key;
};

/*
 * REPORT_ADHOC: u32 latency_ms, u32 ttl_ms, u32 max_samples, u32 buffer_size,
 * u32 min_samples, str tenant, str tracker name.
 */
struct ipc_report_adhoc {
	uint32_t latency_ms;
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size;
	uint32_t min_samples;
	struct ipc_str tenant;
	struct ipc_str tracker;
};

/*
 * REPORT_RULE: u32 latency_ms, u32 options (IPC_OPT_KEY), str rule, str key:
 * one sample for each tracker that a guard of the rule watches.
 */
struct ipc_report_rule {
	uint32_t latency_ms;
	uint32_t options;
	struct ipc_str rule;
	struct ipc_str key;
};

/* REPORTED: u8 reason (ok, validation, ...), u8 servers sent to, u16 zero,
 * str text. Nothing ever tells whether a server took it. */
struct ipc_reported {
	uint8_t reason;
	uint8_t sent;
	struct ipc_str text;
};

/* PING and PONG: up to IPC_MAX_PING bytes, echoed. */
struct ipc_ping {
	struct ipc_str bytes; /* the payload itself, no length before it */
};

/* WAIT: u32 timeout_ms, 0 returns at once. Answered by DONE. */
struct ipc_wait {
	uint32_t timeout_ms;
};

/*
 * EXPLAIN: u32 options (IPC_OPT_KEY), u32 tokens, str rule, str key. Answered
 * by DOCUMENT, or by DONE: unknown-rule, overloaded.
 */
struct ipc_explain {
	uint32_t options;
	uint32_t tokens;
	struct ipc_str rule;
	struct ipc_str key;
};

/*
 * ACQUIRE: u32 permits (1..1000000), u32 options (IPC_OPT_KEY), str limiter,
 * str key. Answered by DELAY: ok with the wait, which the caller waits itself.
 */
struct ipc_acquire {
	uint32_t permits;
	uint32_t options;
	struct ipc_str limiter;
	struct ipc_str key;
};

/*
 * TRY_ACQUIRE: u64 max_wait_us, then as ACQUIRE. DELAY with reason resource
 * and the wait that it would have been when that is longer: then no permit was
 * taken.
 */
struct ipc_try_acquire {
	uint64_t max_wait_us;
	struct ipc_acquire acquire;
};

/*
 * ERROR_BEGIN, ERROR_SUCCESS: u32 options (IPC_OPT_KEY), str error control,
 * str key. The first is answered by DELAY, the second by DONE.
 */
struct ipc_error_control {
	uint32_t options;
	struct ipc_str control;
	struct ipc_str key;
};

/* SET_RATE: u64 rate in 10^-12 permits a second, str limiter. DONE. */
struct ipc_set_rate {
	uint64_t rate;
	struct ipc_str limiter;
};

/* DELAY: u16 reason (ipc_reason), u16 zero, u64 wait_us (at most a year with
 * ok), str text. */
struct ipc_delay {
	uint16_t reason;
	uint64_t wait_us;
	struct ipc_str text;
};

/* DONE: u16 reason (ipc_reason), u16 zero, str text. */
struct ipc_done {
	uint16_t reason;
	struct ipc_str text;
};

/* GO_AWAY: u64 last request id accepted, str text. */
struct ipc_go_away {
	uint64_t last_id;
	struct ipc_str text;
};

/* ERROR: u16 code, u16 zero, str text. */
struct ipc_error {
	uint16_t code;
	struct ipc_str text;
};

enum ipc_framing { IPC_MESSAGE, IPC_NEED_MORE, IPC_BAD };

/*
 * Looks at the start of a byte stream. IPC_MESSAGE: head is set and payload
 * covers the frame's payload, which is all there; the next frame starts
 * head->length bytes on. IPC_BAD: the length is out of range.
 */
enum ipc_framing ipc_frame(const uint8_t *bytes, size_t len,
    struct ipc_head *head, struct reader *payload);

/*
 * Decoders: the whole payload must be used up, counts and strings within
 * their maxima. Return 0, RLA_ESHORT, RLA_EMALFORMED or RLA_ETOOBIG. Values
 * are not judged (tokens of 0 decode): that is the dispatcher's.
 */
int ipc_dec_hello(struct reader *r, struct ipc_hello *out);
int ipc_dec_check(struct reader *r, struct ipc_check *out);
int ipc_dec_check_adhoc(struct reader *r, struct ipc_check_adhoc *out);
int ipc_dec_report(struct reader *r, struct ipc_report *out);
int ipc_dec_report_adhoc(struct reader *r, struct ipc_report_adhoc *out);
int ipc_dec_report_rule(struct reader *r, struct ipc_report_rule *out);
int ipc_dec_explain(struct reader *r, struct ipc_explain *out);
int ipc_dec_acquire(struct reader *r, struct ipc_acquire *out);
int ipc_dec_try_acquire(struct reader *r, struct ipc_try_acquire *out);
int ipc_dec_error_control(struct reader *r, struct ipc_error_control *out);
int ipc_dec_set_rate(struct reader *r, struct ipc_set_rate *out);
int ipc_dec_ping(struct reader *r, struct ipc_ping *out);
int ipc_dec_wait(struct reader *r, struct ipc_wait *out);
int ipc_dec_empty(struct reader *r); /* CANCEL, STATUS, ..., DRAIN */

/*
 * Encoders write a whole frame with its head. Return 0 or RLA_ETOOBIG (the
 * writer or IPC_MAX_FRAME); on failure the writer is as before.
 */
int ipc_enc_welcome(
    struct writer *w, uint64_t id, const struct ipc_welcome *in);
int ipc_enc_decision(
    struct writer *w, uint64_t id, const struct ipc_decision *in);
int ipc_enc_reported(
    struct writer *w, uint64_t id, const struct ipc_reported *in);
int ipc_enc_pong(struct writer *w, uint64_t id, const struct ipc_ping *in);
/* One frame of a document; the caller cuts it to IPC_MAX_FRAME - 16. */
int ipc_enc_document(
    struct writer *w, uint64_t id, const void *json, size_t len, bool more);
int ipc_enc_go_away(
    struct writer *w, uint64_t id, const struct ipc_go_away *in);
int ipc_enc_delay(struct writer *w, uint64_t id, const struct ipc_delay *in);
int ipc_enc_done(struct writer *w, uint64_t id, const struct ipc_done *in);
int ipc_enc_error(struct writer *w, uint64_t id, const struct ipc_error *in);

/* A text for a message, cut to IPC_MAX_TEXT; borrows it. */
struct ipc_str ipc_text(const char *text);

/* Names as in design and JSON: "allowed", "server", "unknown-rule", ... */
const char *ipc_outcome_name(enum ipc_outcome outcome);
const char *ipc_source_name(enum ipc_source source);
const char *ipc_reason_name(enum ipc_reason reason);
const char *ipc_type_name(uint16_t type); /* NULL when unknown */

#endif
