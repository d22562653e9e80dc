/*
 * librlshim: the blocking client of rl-agent, one source on purpose so that
 * it can be dropped into a project. It needs libc and its own header only,
 * and carries the client's half of the codec that proto/IPC.md specifies,
 * held to proto/vectors/ipc.json.
 *
 * From top to bottom: names, codec, client, waiting, frames that come in,
 * connecting, one call, and the public functions. Nothing is allocated but
 * the client itself and the text of a query. A client is used by one thread
 * at a time; rl_interrupt() alone may run beside it, and touches the three
 * atomics only. Every wait is bounded by a deadline on the monotonic clock.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/* Built with -fvisibility=hidden or not: what the header names is public. */
#pragma GCC visibility push(default)
#include "rlshim.h"
#pragma GCC visibility pop

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- what IPC.md numbers ---- */

#define WIRE_MAGIC   0x50494C52u
#define WIRE_VERSION 1
#define HEAD_LEN     16
#define WIRE_FRAME   16384 /* longest frame, either way */
#define WIRE_LABEL   256
#define WIRE_TEXT    512
#define WIRE_ID      16 /* an operation id, a configuration hash */

#define OPT_DETAIL 0x1u
#define OPT_KEY    0x2u
#define HAS_DETAIL 0x1u
#define HAS_SERVER 0x2u
#define FLAG_MORE  0x0001

enum wire_type {
	W_HELLO = 0x0001,
	W_CHECK = 0x0010,
	W_CHECK_ADHOC = 0x0011,
	W_CANCEL = 0x0012,
	W_REPORT = 0x0020,
	W_REPORT_ADHOC = 0x0021,
	W_PING = 0x0030,
	W_WAIT = 0x0040,
	W_STATUS = 0x0041,
	W_SERVERS = 0x0042,
	W_POLICY = 0x0043,
	W_QUIT = 0x0060,
	W_WELCOME = 0x8001,
	W_DECISION = 0x8010,
	W_REPORTED = 0x8020,
	W_PONG = 0x8030,
	W_DOCUMENT = 0x8041,
	W_GO_AWAY = 0x8050,
	W_DONE = 0x8060,
	W_ERROR = 0x807F,
};

enum wire_error {
	E_VERSION = 1,
	E_MALFORMED = 2,
	E_TYPE = 3,
	E_GREETING = 4,
	E_BUSY = 5,
	E_SLOW = 6,
	E_ID = 7,
	E_UNAUTHORISED = 8,
};

/* ---- what this library chooses ---- */

#define MS                 INT64_C(1000) /* times are in microseconds */
#define GRACE              (100 * MS)    /* for the agent's own last word */
#define BACKOFF_MIN        (2 * MS)
#define BACKOFF_MAX        (100 * MS)
#define FIRST_TIMEOUT_MS   1000u   /* until an agent was reached */
#define DEFAULT_CEILING_MS 600000u /* of what an agent calls its default */
#define DOCUMENT_MAX       (8u << 20)
#define POOL_IDS           16

/* How a call, or one step of it, ended. */
enum end {
	END_MORE,        /* not yet */
	END_ANSWER,      /* as it should */
	END_TIMEOUT,     /* at its deadline */
	END_INTERRUPT,   /* rl_interrupt() */
	END_LOST,        /* the connection broke, or could not be made now */
	END_BUSY,        /* the agent has too many connections */
	END_REFUSED,     /* it does not talk to us */
	END_PROTO,       /* it does not talk our language */
	END_UNREACHABLE, /* no connection can be made, now or soon */
	END_NOMEM,
};

enum kind {
	KIND_HELLO,
	KIND_CHECK,
	KIND_REPORT,
	KIND_REPORT_ADHOC,
	KIND_PING,
	KIND_WAIT,
	KIND_QUERY,
	KIND_CONTROL,
};

struct rl_client {
	/* The three that rl_interrupt() touches. */
	_Atomic pid_t pid;         /* whose connection and eventfd these are */
	_Atomic pid_t interrupted; /* the process that asked for it, or 0 */
	atomic_int wake;           /* eventfd, ends a poll; -1 */

	struct sockaddr_un address;
	char name[RL_NAME_MAX + 1];
	uint32_t timeout_ms;
	enum rl_failure on_failure;

	int fd; /* -1: no connection */
	dev_t fd_dev;
	ino_t fd_ino;
	bool greeted;  /* WELCOME was read */
	bool retiring; /* GO_AWAY was read */
	uint64_t next_id;
	uint32_t default_deadline_ms; /* 0: never told */
	uint32_t max_frame;
	uint8_t config_hash[WIRE_ID];

	uint32_t jitter;
	size_t pool_left;
	uint8_t pool[POOL_IDS][WIRE_ID];
	char text[RL_TEXT_MAX + 1];

	size_t in_len, out_at, out_len;
	uint8_t in[WIRE_FRAME];
	uint8_t out[WIRE_FRAME];
};

/* One frame that went out and the answer to come. */
struct exchange {
	enum kind kind;
	uint64_t id;
	bool sent; /* wholly written to a connection that stands */
	int64_t begun;
};

/* One sample, of a tracker of the configuration or of the one given. */
struct sample {
	uint32_t latency_ms;
	const char *tenant;
	const char *tracker; /* NULL: it is given */
	const char *key;     /* NULL: none */
	size_t key_len;
	const struct rl_guard *given;
};

/* What a check says of its history; 3.1 of IPC.md. */
struct stamp {
	uint8_t operation_id[WIRE_ID];
	uint8_t config_hash[WIRE_ID];
	uint64_t age_us;
	uint32_t deadline_ms;
};

struct call {
	struct exchange x;
	int64_t start;
	int64_t deadline;
	bool by_default;      /* the deadline is the agent's default */
	bool reached;         /* the last try to connect did */
	bool busy;            /* the last try was refused as one too many */
	bool exposed;         /* a connection broke with it unanswered */
	int64_t cancel_until; /* not 0: cancelled, waiting for the last word */
	int64_t pause;
	unsigned losses;

	/* KIND_CHECK */
	const struct rl_check *check;
	struct rl_decision *decision;
	struct rl_detail *detail;
	struct stamp stamp;
	int64_t first_write;
	uint8_t first_hash[WIRE_ID];

	/* the others */
	enum wire_type type; /* of a query or control */
	struct sample sample;
	int status;
	int64_t round_trip;
	char *document;
	size_t document_len, document_cap;
};

/* ---- names ---- */

const char *
rl_outcome_name(enum rl_outcome outcome)
{
	switch (outcome) {
	case RL_ALLOWED:
		return "allowed";
	case RL_DENIED:
		return "denied";
	case RL_FAILED:
		return "failed";
	case RL_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}

const char *
rl_source_name(enum rl_source source)
{
	switch (source) {
	case RL_SOURCE_SERVER:
		return "server";
	case RL_SOURCE_EMPTY:
		return "empty";
	case RL_SOURCE_POLICY:
		return "policy";
	case RL_SOURCE_LOCAL:
		return "local";
	case RL_SOURCE_SHADOW:
		return "shadow";
	}
	return "unknown";
}

const char *
rl_reason_name(enum rl_reason reason)
{
	switch (reason) {
	case RL_REASON_OK:
		return "ok";
	case RL_REASON_RESOURCE:
		return "resource";
	case RL_REASON_GUARD:
		return "guard";
	case RL_REASON_RESOURCE_GUARD:
		return "resource+guard";
	case RL_REASON_VALIDATION:
		return "validation";
	case RL_REASON_UNKNOWN_RULE:
		return "unknown-rule";
	case RL_REASON_UNAUTHORISED:
		return "unauthorised";
	case RL_REASON_DISCOVERY:
		return "discovery";
	case RL_REASON_TRANSPORT:
		return "transport";
	case RL_REASON_TIMEOUT:
		return "timeout";
	case RL_REASON_OVERLOADED:
		return "overloaded";
	case RL_REASON_DRAINING:
		return "draining";
	case RL_REASON_INTERRUPTED:
		return "interrupted";
	case RL_REASON_UNAVAILABLE:
		return "unavailable";
	case RL_REASON_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}

const char *
rl_strerror(int status)
{
	switch ((enum rl_status)status) {
	case RL_OK:
		return "success";
	case RL_EINVAL:
		return "an argument is out of its range";
	case RL_ENOMEM:
		return "out of memory or descriptors";
	case RL_EUNAVAILABLE:
		return "no agent";
	case RL_ETIMEDOUT:
		return "no answer from the agent in time";
	case RL_EPROTO:
		return "the agent does not speak this protocol";
	case RL_EREFUSED:
		return "the agent refused";
	case RL_EINTERRUPTED:
		return "interrupted";
	}
	return "unknown status";
}

/* ---- codec: two cursors with a sticky error ---- */

struct put {
	uint8_t *start, *at, *end;
	bool full;
};

struct get {
	const uint8_t *at, *end;
	bool bad;
};

static void
put_bytes(struct put *p, const void *bytes, size_t len)
{
	if (p->full || (size_t)(p->end - p->at) < len) {
		p->full = true;
		return;
	}
	if (len > 0)
		memcpy(p->at, bytes, len);
	p->at += len;
}

static void
put_le(struct put *p, uint64_t v, size_t len)
{
	uint8_t le[8];
	size_t i;

	for (i = 0; i < len; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	put_bytes(p, le, len);
}

static void
put_u16(struct put *p, uint16_t v)
{
	put_le(p, v, 2);
}

static void
put_u32(struct put *p, uint32_t v)
{
	put_le(p, v, 4);
}

static void
put_str(struct put *p, const char *bytes, size_t len)
{
	put_u16(p, (uint16_t)len);
	put_bytes(p, bytes, len);
}

static void
put_text(struct put *p, const char *s)
{
	put_str(p, s, s != NULL ? strlen(s) : 0);
}

static const uint8_t *
get_bytes(struct get *g, size_t len)
{
	const uint8_t *p = g->at;

	if (g->bad || (size_t)(g->end - g->at) < len) {
		g->bad = true;
		return NULL;
	}
	g->at += len;
	return p;
}

static uint64_t
get_le(struct get *g, size_t len)
{
	const uint8_t *p = get_bytes(g, len);
	uint64_t v = 0;

	if (p == NULL)
		return 0;
	while (len-- > 0)
		v = v << 8 | p[len];
	return v;
}

static uint8_t
get_u8(struct get *g)
{
	return (uint8_t)get_le(g, 1);
}

static uint16_t
get_u16(struct get *g)
{
	return (uint16_t)get_le(g, 2);
}

static uint32_t
get_u32(struct get *g)
{
	return (uint32_t)get_le(g, 4);
}

static uint64_t
get_u64(struct get *g)
{
	return get_le(g, 8);
}

/* A u8 or u16 that may be max at most. */
static unsigned
get_upto(struct get *g, size_t size, unsigned max)
{
	unsigned v = (unsigned)get_le(g, size);

	if (v > max) {
		g->bad = true;
		return 0;
	}
	return v;
}

/* A name into a buffer of RL_NAME_MAX + 1; out NULL: only looked at. */
static void
get_name(struct get *g, char *out, size_t *out_len)
{
	size_t len = get_upto(g, 2, RL_NAME_MAX);
	const uint8_t *p = get_bytes(g, len);

	if (out == NULL)
		return;
	if (p == NULL)
		len = 0;
	else
		memcpy(out, p, len);
	out[len] = '\0';
	*out_len = len;
}

/*
 * The agent's words, of which there may be one byte more than our buffers
 * hold: cut between characters, and kept to one printable line.
 */
static void
get_text(struct get *g, char out[RL_TEXT_MAX + 1])
{
	size_t i, len = get_upto(g, 2, WIRE_TEXT);
	const uint8_t *p = get_bytes(g, len);

	if (p == NULL)
		len = 0;
	if (len > RL_TEXT_MAX) {
		len = RL_TEXT_MAX;
		while (len > 0 && (p[len] & 0xC0) == 0x80)
			len--;
	}
	for (i = 0; i < len; i++)
		out[i] = p[i] < 0x20 || p[i] == 0x7F ? '?' : (char)p[i];
	out[len] = '\0';
}

static bool
get_done(const struct get *g)
{
	return !g->bad && g->at == g->end;
}

static struct put
enc_begin(uint8_t buf[WIRE_FRAME], enum wire_type type, uint64_t id)
{
	struct put p = {buf, buf, buf + WIRE_FRAME, false};

	put_u32(&p, 0);
	put_u16(&p, (uint16_t)type);
	put_u16(&p, 0);
	put_le(&p, id, 8);
	return p;
}

/* The length of the frame, which goes to its front; 0: it does not fit. */
static size_t
enc_end(struct put *p)
{
	size_t len = (size_t)(p->at - p->start);

	if (p->full)
		return 0;
	p->at = p->start;
	put_u32(p, (uint32_t)len);
	return len;
}

static size_t
enc_empty(uint8_t buf[WIRE_FRAME], enum wire_type type, uint64_t id)
{
	struct put p = enc_begin(buf, type, id);

	return enc_end(&p);
}

static size_t
enc_hello(uint8_t buf[WIRE_FRAME], uint64_t id, const char *name)
{
	struct put p = enc_begin(buf, W_HELLO, id);

	put_u32(&p, WIRE_MAGIC);
	put_u16(&p, WIRE_VERSION);
	put_u16(&p, WIRE_VERSION);
	put_text(&p, name);
	return enc_end(&p);
}

static void
put_guard(struct put *p, const struct rl_guard *guard)
{
	put_u32(p, guard->ttl_ms);
	put_u32(p, guard->max_samples);
	put_u32(p, guard->buffer_size);
	put_u32(p, guard->min_samples);
	put_u32(p, guard->below_ms);
	put_str(p, guard->tracker, guard->tracker_len);
}

static void
put_resource(struct put *p, const struct rl_resource *resource)
{
	put_u32(p, resource->window_ms);
	put_u32(p, resource->limit);
	put_u32(p, resource->tokens);
	put_str(p, resource->bucket, resource->bucket_len);
}

static size_t
enc_check(uint8_t buf[WIRE_FRAME], uint64_t id, const struct stamp *stamp,
    const struct rl_check *check, bool detail)
{
	struct put p;
	uint32_t options = 0;
	size_t i;

	if (detail)
		options |= OPT_DETAIL;
	if (check->key != NULL)
		options |= OPT_KEY;
	p = enc_begin(buf, check->rule != NULL ? W_CHECK : W_CHECK_ADHOC, id);
	put_bytes(&p, stamp->operation_id, WIRE_ID);
	put_bytes(&p, stamp->config_hash, WIRE_ID);
	put_le(&p, stamp->age_us, 8);
	put_u32(&p, stamp->deadline_ms);
	put_u32(&p, options);
	put_u32(&p, check->tokens != 0 ? check->tokens : 1);
	if (check->rule != NULL) {
		put_text(&p, check->rule);
		put_str(&p, check->key, check->key_len);
		return enc_end(&p);
	}
	put_text(&p, check->tenant);
	put_text(&p, check->label);
	put_u16(&p, (uint16_t)check->guard_count);
	put_u16(&p, (uint16_t)check->resource_count);
	for (i = 0; i < check->guard_count; i++)
		put_guard(&p, &check->guards[i]);
	for (i = 0; i < check->resource_count; i++)
		put_resource(&p, &check->resources[i]);
	return enc_end(&p);
}

static size_t
enc_report(uint8_t buf[WIRE_FRAME], uint64_t id, const struct sample *sample)
{
	struct put p = enc_begin(buf, W_REPORT, id);

	put_u32(&p, sample->latency_ms);
	put_u32(&p, sample->key != NULL ? OPT_KEY : 0);
	put_text(&p, sample->tenant);
	put_text(&p, sample->tracker);
	put_str(&p, sample->key, sample->key_len);
	return enc_end(&p);
}

static size_t
enc_report_adhoc(
    uint8_t buf[WIRE_FRAME], uint64_t id, const struct sample *sample)
{
	const struct rl_guard *tracker = sample->given;
	struct put p = enc_begin(buf, W_REPORT_ADHOC, id);

	put_u32(&p, sample->latency_ms);
	put_u32(&p, tracker->ttl_ms);
	put_u32(&p, tracker->max_samples);
	put_u32(&p, tracker->buffer_size);
	put_u32(&p, tracker->min_samples);
	put_text(&p, sample->tenant);
	put_str(&p, tracker->tracker, tracker->tracker_len);
	return enc_end(&p);
}

static size_t
enc_ping(uint8_t buf[WIRE_FRAME], uint64_t id, const void *bytes, size_t len)
{
	struct put p = enc_begin(buf, W_PING, id);

	put_bytes(&p, bytes, len);
	return enc_end(&p);
}

static size_t
enc_wait(uint8_t buf[WIRE_FRAME], uint64_t id, uint32_t timeout_ms)
{
	struct put p = enc_begin(buf, W_WAIT, id);

	put_u32(&p, timeout_ms);
	return enc_end(&p);
}

struct welcome {
	uint32_t max_frame;
	uint32_t default_deadline_ms;
	uint8_t config_hash[WIRE_ID];
};

static bool
dec_welcome(struct get *g, struct welcome *out)
{
	char agent[RL_TEXT_MAX + 1];
	const uint8_t *hash;

	if (get_u16(g) != WIRE_VERSION)
		g->bad = true;
	(void)get_u16(g);
	out->max_frame = get_u32(g);
	(void)get_u32(g); /* max_inflight: we have one at a time */
	out->default_deadline_ms = get_u32(g);
	hash = get_bytes(g, WIRE_ID);
	if (hash != NULL)
		memcpy(out->config_hash, hash, WIRE_ID);
	(void)get_u64(g);
	get_text(g, agent);
	return get_done(g);
}

static void
get_guard_result(struct get *g, struct rl_guard_result *out)
{
	struct rl_guard_result unused;

	if (out == NULL)
		out = &unused;
	out->below_ms = get_u32(g);
	out->current_ms = get_u32(g);
	out->passed = (int)get_upto(g, 1, 1);
	get_name(g, out->tracker, &out->tracker_len);
}

static void
get_resource_result(struct get *g, struct rl_resource_result *out)
{
	struct rl_resource_result unused;

	if (out == NULL)
		out = &unused;
	out->window_ms = get_u32(g);
	out->limit = get_u32(g);
	out->tokens = get_u32(g);
	out->deficit = get_u32(g);
	out->actual_rate = get_u32(g);
	get_name(g, out->bucket, &out->bucket_len);
}

static void
get_detail(struct get *g, struct rl_detail *out)
{
	size_t guards = get_upto(g, 2, RL_MAX_GUARDS);
	size_t resources = get_upto(g, 2, RL_MAX_RESOURCES);
	size_t i;

	for (i = 0; i < guards && !g->bad; i++)
		get_guard_result(g, out != NULL ? &out->guards[i] : NULL);
	for (i = 0; i < resources && !g->bad; i++)
		get_resource_result(g, out != NULL ? &out->resources[i] : NULL);
	if (out == NULL || g->bad)
		return;
	out->guard_count = guards;
	out->resource_count = resources;
}

/* detail may be NULL; without one in the frame its counts are 0. */
static bool
dec_decision(struct get *g, struct rl_decision *out, struct rl_detail *detail)
{
	uint16_t has;

	if (detail != NULL)
		detail->guard_count = detail->resource_count = 0;
	out->outcome = (enum rl_outcome)get_upto(g, 1, RL_CANCELLED);
	out->permit = (int)get_upto(g, 1, 1);
	out->source = (enum rl_source)get_upto(g, 1, RL_SOURCE_SHADOW);
	out->reason = (enum rl_reason)get_upto(g, 1, RL_REASON_CANCELLED);
	out->round = get_u16(g);
	has = get_u16(g);
	out->has_server = (has & HAS_SERVER) != 0;
	out->retry_after_ms = get_u32(g);
	out->server_id = get_u64(g);
	out->elapsed_us = get_u64(g);
	get_name(g, out->limit, &out->limit_len);
	get_text(g, out->text);
	if ((has & HAS_DETAIL) != 0)
		get_detail(g, detail);
	if (out->outcome == RL_CANCELLED && out->permit)
		g->bad = true;
	return get_done(g);
}

static bool
dec_reported(struct get *g, enum rl_reason *reason, char *text)
{
	*reason = (enum rl_reason)get_upto(g, 1, RL_REASON_CANCELLED);
	(void)get_u8(g);
	(void)get_u16(g);
	get_text(g, text);
	return get_done(g);
}

static bool
dec_done(struct get *g, enum rl_reason *reason, char *text)
{
	*reason = (enum rl_reason)get_upto(g, 2, RL_REASON_CANCELLED);
	(void)get_u16(g);
	get_text(g, text);
	return get_done(g);
}

static bool
dec_go_away(struct get *g, uint64_t *last_id, char *text)
{
	*last_id = get_u64(g);
	get_text(g, text);
	return get_done(g);
}

static bool
dec_error(struct get *g, uint16_t *code, char *text)
{
	*code = get_u16(g);
	(void)get_u16(g);
	get_text(g, text);
	return get_done(g);
}

/* ---- the client: descriptors, fork, randomness, words ---- */

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

__attribute__((format(printf, 2, 3))) static void
say(struct rl_client *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
}

/* strerror() is not thread-safe, and strerror_r() differs between libcs. */
static const char *
errno_text(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such socket";
	case ECONNREFUSED:
		return "nobody listens";
	case EAGAIN:
		return "its backlog is full";
	case ENOTDIR:
		return "a part of the path is no directory";
	case EPROTOTYPE:
		return "not a stream socket";
	case EMFILE:
	case ENFILE:
		return "out of file descriptors";
	case ENOMEM:
	case ENOBUFS:
		return "out of memory";
	default:
		return "system error";
	}
}

/*
 * A process that daemonised may have closed our descriptors and got their
 * numbers for something else: close only what is still ours.
 */
static void
close_socket(const struct rl_client *c)
{
	struct stat st;

	if (c->fd >= 0 && fstat(c->fd, &st) == 0 && st.st_dev == c->fd_dev &&
	    st.st_ino == c->fd_ino)
		close(c->fd);
}

static void
close_eventfd(int fd)
{
	static const char expected[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(expected)];
	ssize_t len;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target));
	if (len == (ssize_t)sizeof(expected) - 1 &&
	    memcmp(target, expected, sizeof(expected) - 1) == 0)
		close(fd);
}

/* Ends the connection, without shutdown: a parent may share the socket. */
static void
client_drop(struct rl_client *c)
{
	close_socket(c);
	c->fd = -1;
	c->greeted = c->retiring = false;
	c->in_len = c->out_at = c->out_len = 0;
}

/*
 * Makes the client this process's own, at the start and after a fork. The
 * eventfd is stored before the pid, and the interrupt flag looked at after
 * both: so an rl_interrupt() that still saw the old pid is not lost.
 */
static int
client_adopt(struct rl_client *c, pid_t pid)
{
	int old = atomic_load(&c->wake);
	int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	client_drop(c);
	close_eventfd(old);
	c->pool_left = 0;
	c->jitter = (uint32_t)pid * 2654435761u ^ (uint32_t)now_us();
	c->jitter |= 1;
	atomic_store(&c->wake, wake);
	atomic_store(&c->pid, pid);
	return wake >= 0 ? RL_OK : RL_ENOMEM;
}

/* A closed eventfd must be noticed before a socket gets its number. */
static void
client_mend_wake(struct rl_client *c)
{
	int wake = atomic_load(&c->wake);

	if (wake < 0 || fcntl(wake, F_GETFD) < 0)
		atomic_store(&c->wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void
client_enter(struct rl_client *c)
{
	pid_t pid = getpid();

	if (atomic_load(&c->pid) != pid)
		(void)client_adopt(c, pid);
}

/* One operation id: random bits in the form of a UUIDv4. */
static bool
client_draw_id(struct rl_client *c, uint8_t out[WIRE_ID])
{
	ssize_t n;

	if (c->pool_left == 0) {
		do
			n = getrandom(c->pool, sizeof(c->pool), 0);
		while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof(c->pool)) {
			say(c, "no random numbers from the system");
			return false;
		}
		c->pool_left = POOL_IDS;
	}
	memcpy(out, c->pool[--c->pool_left], WIRE_ID);
	out[6] = (uint8_t)((out[6] & 0x0F) | 0x40);
	out[8] = (uint8_t)((out[8] & 0x3F) | 0x80);
	return true;
}

/* xorshift: spreads retries, no more is asked of it. */
static uint32_t
client_jitter(struct rl_client *c)
{
	c->jitter ^= c->jitter << 13;
	c->jitter ^= c->jitter >> 17;
	c->jitter ^= c->jitter << 5;
	return c->jitter;
}

/* ---- waiting ---- */

enum waited { WAIT_READY, WAIT_TIMEOUT, WAIT_INTERRUPT, WAIT_BROKEN };

static bool
take_interrupt(struct rl_client *c)
{
	pid_t pid = atomic_load(&c->pid);

	/* One that the parent asked for before the fork is not for us. */
	return atomic_load(&c->interrupted) == pid &&
	       atomic_compare_exchange_strong(&c->interrupted, &pid, 0);
}

/* The eventfd only ends the poll; what counts is the flag. */
static void
drain_wake(struct rl_client *c, short revents)
{
	uint64_t count;
	ssize_t n;

	if ((revents & POLLNVAL) != 0) {
		client_mend_wake(c);
		return;
	}
	n = read(atomic_load(&c->wake), &count, sizeof(count));
	if (n != sizeof(count) && !(n < 0 && errno == EAGAIN))
		atomic_store(&c->wake, -1); /* its number is another's now */
}

/*
 * Waits for events on the connection (none: for the time alone). Sees to it
 * that a cancelled call is not interrupted again.
 */
static enum waited
client_wait(
    struct rl_client *c, const struct call *call, short events, int64_t until)
{
	struct pollfd fds[2];
	struct timespec ts;
	int64_t left;
	int n;

	for (;;) {
		if (take_interrupt(c) && call->cancel_until == 0)
			return WAIT_INTERRUPT;
		left = until - now_us();
		if (left <= 0)
			return WAIT_TIMEOUT;
		fds[0] = (struct pollfd){atomic_load(&c->wake), POLLIN, 0};
		fds[1] = (struct pollfd){events != 0 ? c->fd : -1, events, 0};
		ts.tv_sec = (time_t)(left / 1000000);
		ts.tv_nsec = (long)(left % 1000000) * 1000;
		n = ppoll(fds, 2, &ts, NULL);
		if (n < 0 && errno != EINTR)
			return WAIT_BROKEN;
		if (n <= 0)
			continue;
		if (fds[0].revents != 0)
			drain_wake(c, fds[0].revents);
		if ((fds[1].revents & POLLNVAL) != 0)
			return WAIT_BROKEN;
		if (fds[1].revents != 0)
			return WAIT_READY;
	}
}

/* Between two tries to connect. END_ANSWER: try again. */
static enum end
call_pause(struct rl_client *c, struct call *call)
{
	int64_t until;

	call->pause = call->pause == 0 ? BACKOFF_MIN : 2 * call->pause;
	if (call->pause > BACKOFF_MAX)
		call->pause = BACKOFF_MAX;
	until = now_us() + call->pause + client_jitter(c) % (call->pause / 2);
	if (until > call->deadline)
		until = call->deadline;
	switch (client_wait(c, call, 0, until)) {
	case WAIT_INTERRUPT:
		return END_INTERRUPT;
	case WAIT_BROKEN:
		return END_UNREACHABLE;
	case WAIT_READY:
	case WAIT_TIMEOUT:
		break;
	}
	return now_us() < call->deadline ? END_ANSWER : END_TIMEOUT;
}

/* ---- frames that come in ---- */

static enum end
proto_fault(struct rl_client *c, const char *what)
{
	say(c, "%s: %s", c->address.sun_path, what);
	return END_PROTO;
}

static enum end
on_error(struct rl_client *c, struct exchange *x, uint64_t id, struct get *g)
{
	uint16_t code;
	char text[RL_TEXT_MAX + 1];

	if (!dec_error(g, &code, text))
		return proto_fault(c, "malformed error frame");
	if (text[0] != '\0')
		memcpy(c->text, text, sizeof(text));
	else
		say(c, "the agent closed the connection, error %u", code);
	if (id == x->id)
		x->sent = false; /* refused, so not begun */
	switch ((enum wire_error)code) {
	case E_BUSY:
		return END_BUSY;
	case E_SLOW:
		return END_LOST;
	case E_UNAUTHORISED:
		return END_REFUSED;
	case E_VERSION:
	case E_MALFORMED:
	case E_TYPE:
	case E_GREETING:
	case E_ID:
		break;
	}
	return END_PROTO;
}

/* Our request is above the last one accepted: it was never begun. */
static enum end
on_go_away(struct rl_client *c, struct exchange *x, struct get *g)
{
	uint64_t last_id;
	char text[RL_TEXT_MAX + 1];

	if (!dec_go_away(g, &last_id, text))
		return proto_fault(c, "malformed go-away frame");
	c->retiring = true;
	if (x->id <= last_id)
		return END_MORE;
	say(c, "the agent is going away: %s", text);
	x->sent = false;
	return END_LOST;
}

static enum end
on_welcome(struct rl_client *c, struct call *call, struct get *g)
{
	struct welcome w;

	if (!dec_welcome(g, &w))
		return proto_fault(c, "malformed welcome frame");
	c->greeted = true;
	c->max_frame = w.max_frame;
	memcpy(c->config_hash, w.config_hash, WIRE_ID);
	c->default_deadline_ms = w.default_deadline_ms;
	if (c->default_deadline_ms > DEFAULT_CEILING_MS)
		c->default_deadline_ms = DEFAULT_CEILING_MS;
	if (call->by_default && c->default_deadline_ms != 0)
		call->deadline = call->start + c->default_deadline_ms * MS;
	return END_ANSWER;
}

static enum end
on_document(
    struct rl_client *c, struct call *call, uint16_t flags, struct get *g)
{
	size_t len = (size_t)(g->end - g->at);
	size_t cap = call->document_cap != 0 ? call->document_cap : 4096;
	char *grown;

	if (len > DOCUMENT_MAX - call->document_len)
		return proto_fault(c, "a document that does not end");
	if (len > 0 && memchr(g->at, '\0', len) != NULL)
		return proto_fault(c, "a document that is not text");
	while (cap < call->document_len + len + 1)
		cap *= 2;
	if (cap != call->document_cap) {
		grown = realloc(call->document, cap);
		if (grown == NULL) {
			say(c, "out of memory");
			return END_NOMEM;
		}
		call->document = grown;
		call->document_cap = cap;
	}
	if (len > 0)
		memcpy(call->document + call->document_len, g->at, len);
	call->document_len += len;
	call->document[call->document_len] = '\0';
	return (flags & FLAG_MORE) != 0 ? END_MORE : END_ANSWER;
}

/* DONE and REPORTED: the agent's verdict on a call that does not decide. */
static enum end
on_verdict(
    struct rl_client *c, struct call *call, enum wire_type type, struct get *g)
{
	enum rl_reason reason;
	char text[RL_TEXT_MAX + 1];
	bool ok;

	ok = type == W_DONE ? dec_done(g, &reason, text)
			    : dec_reported(g, &reason, text);
	if (!ok)
		return proto_fault(c, "malformed verdict frame");
	if (reason == RL_REASON_OK) {
		call->status = RL_OK;
		return END_ANSWER;
	}
	call->status = type == W_DONE && reason == RL_REASON_TIMEOUT
			   ? RL_ETIMEDOUT
			   : RL_EREFUSED;
	say(c, "%s%s%s", rl_reason_name(reason), text[0] != '\0' ? ": " : "",
	    text);
	return END_ANSWER;
}

static enum end
on_pong(struct rl_client *c, struct call *call, struct get *g)
{
	uint64_t echoed = get_u64(g);

	if (!get_done(g) || echoed != call->x.id)
		return proto_fault(c, "an echo of something else");
	call->round_trip = now_us() - call->x.begun;
	return END_ANSWER;
}

/* An answer to what was asked: it must be of the type that answers it. */
static enum end
on_answer(struct rl_client *c, struct call *call, const struct exchange *x,
    uint16_t type, uint16_t flags, struct get *g)
{
	const char *wrong = "an answer of a wrong type";

	switch (x->kind) {
	case KIND_HELLO:
		if (type == W_WELCOME)
			return on_welcome(c, call, g);
		break;
	case KIND_CHECK:
		if (type != W_DECISION)
			break;
		if (dec_decision(g, call->decision, call->detail))
			return END_ANSWER;
		wrong = "malformed decision frame";
		break;
	case KIND_REPORT:
	case KIND_REPORT_ADHOC:
		if (type == W_REPORTED)
			return on_verdict(c, call, W_REPORTED, g);
		break;
	case KIND_PING:
		if (type == W_PONG)
			return on_pong(c, call, g);
		break;
	case KIND_QUERY:
		if (type == W_DOCUMENT)
			return on_document(c, call, flags, g);
		if (type == W_DONE &&
		    on_verdict(c, call, W_DONE, g) == END_ANSWER &&
		    call->status != RL_OK)
			return END_ANSWER;
		break;
	case KIND_WAIT:
	case KIND_CONTROL:
		if (type == W_DONE)
			return on_verdict(c, call, W_DONE, g);
		break;
	}
	return proto_fault(c, wrong);
}

/*
 * Takes the frames that are there, up to the one that ends the exchange.
 * Answers to other ids are late ones of calls that gave up: skipped.
 */
static enum end
client_parse(struct rl_client *c, struct call *call, struct exchange *x)
{
	struct get g;
	size_t at = 0;
	uint32_t length;
	uint16_t type, flags;
	uint64_t id;
	enum end end = END_MORE;

	while (end == END_MORE && c->in_len - at >= HEAD_LEN) {
		g = (struct get){c->in + at, c->in + at + HEAD_LEN, false};
		length = get_u32(&g);
		type = get_u16(&g);
		flags = get_u16(&g);
		id = get_u64(&g);
		if (length < HEAD_LEN || length > WIRE_FRAME)
			return proto_fault(c, "not the protocol of an agent");
		if (c->in_len - at < length)
			break;
		g.end = c->in + at + length;
		at += length;
		if (type == W_ERROR)
			end = on_error(c, x, id, &g);
		else if (type == W_GO_AWAY)
			end = on_go_away(c, x, &g);
		else if (id == x->id)
			end = on_answer(c, call, x, type, flags, &g);
	}
	c->in_len -= at;
	if (at > 0 && c->in_len > 0)
		memmove(c->in, c->in + at, c->in_len);
	return end;
}

/* Reads once. There is always room: a full buffer holds a whole frame. */
static enum end
client_read(struct rl_client *c)
{
	ssize_t n;

	n = recv(
	    c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n > 0) {
		c->in_len += (size_t)n;
		return END_MORE;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return END_MORE;
	say(c, "the agent closed the connection");
	return END_LOST;
}

/*
 * Writes what is left to write. A peer that closed may have left us its last
 * words (an ERROR, a GO_AWAY): then there is no more to write, and reading
 * finds the end.
 */
static enum end
client_flush(struct rl_client *c, struct exchange *x)
{
	ssize_t n;

	while (c->out_at < c->out_len) {
		n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0) {
			c->out_at += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return END_MORE;
		c->out_at = c->out_len = 0;
		if (errno == EPIPE || errno == ECONNRESET)
			return END_MORE;
		say(c, "the connection to the agent was lost");
		return END_LOST;
	}
	if (c->out_len > 0) {
		c->out_at = c->out_len = 0;
		x->sent = true;
	}
	return END_MORE;
}

/* ---- an exchange ---- */

/* The agent has the last word at the deadline of what it was given. */
static int64_t
call_until(const struct call *call, const struct exchange *x)
{
	if (call->cancel_until != 0)
		return call->cancel_until;
	if (x->sent && (x->kind == KIND_CHECK || x->kind == KIND_WAIT))
		return call->deadline + GRACE;
	return call->deadline;
}

/* Writes the frame in c->out and reads until it is answered. */
static enum end
client_exchange(struct rl_client *c, struct call *call, struct exchange *x)
{
	enum end end;
	short events;
	bool last = false;

	for (;;) {
		end = client_flush(c, x);
		if (end == END_MORE)
			end = client_parse(c, call, x);
		if (end != END_MORE)
			return end;
		if (last) {
			say(c, x->sent ? "no answer from the agent in time"
				       : "the agent does not read");
			return END_TIMEOUT;
		}
		events = POLLIN;
		if (c->out_len > 0)
			events |= POLLOUT;
		switch (client_wait(c, call, events, call_until(call, x))) {
		case WAIT_INTERRUPT:
			return END_INTERRUPT;
		case WAIT_BROKEN:
			say(c, "the connection to the agent was lost");
			return END_LOST;
		case WAIT_TIMEOUT: /* what came meanwhile still counts */
			last = true;
			break;
		case WAIT_READY:
			break;
		}
		end = client_read(c);
		if (end != END_MORE)
			return end;
	}
}

/* ---- connecting ---- */

/* Waits out a connect that is under way; 0 or its errno. */
static int
connect_finish(struct rl_client *c, const struct call *call, enum end *end)
{
	int error = 0;
	socklen_t len = sizeof(error);

	switch (client_wait(c, call, POLLOUT, call->deadline)) {
	case WAIT_INTERRUPT:
		*end = END_INTERRUPT;
		return EINTR;
	case WAIT_TIMEOUT:
		*end = END_TIMEOUT;
		return EAGAIN;
	case WAIT_BROKEN:
		return EBADF;
	case WAIT_READY:
		break;
	}
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return errno;
	return error;
}

/* One try. END_LOST: worth another one. */
static enum end
client_connect(struct rl_client *c, const struct call *call)
{
	struct stat st;
	enum end end = END_LOST;
	int error = 0;

	client_mend_wake(c);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || fstat(c->fd, &st) != 0) {
		error = errno;
		say(c, "no socket: %s (errno %d)", errno_text(error), error);
		return END_UNREACHABLE;
	}
	c->fd_dev = st.st_dev;
	c->fd_ino = st.st_ino;
	if (connect(c->fd, (const struct sockaddr *)&c->address,
		sizeof(c->address)) != 0)
		error = errno;
	if (error == EINPROGRESS)
		error = connect_finish(c, call, &end);
	if (error == 0)
		return END_ANSWER;
	if (error == EACCES || error == EPERM) {
		say(c, "this user may not use %s", c->address.sun_path);
		return END_REFUSED;
	}
	say(c, "no agent at %s: %s (errno %d)", c->address.sun_path,
	    errno_text(error), error);
	if (error == ENOENT || error == ECONNREFUSED || error == EAGAIN ||
	    error == EINTR || error == ECONNRESET)
		return end;
	return END_UNREACHABLE;
}

static enum end
client_greet(struct rl_client *c, struct call *call)
{
	struct exchange x = {.kind = KIND_HELLO};

	x.id = c->next_id++;
	c->out_at = 0;
	c->out_len = enc_hello(c->out, x.id, c->name);
	return client_exchange(c, call, &x);
}

/* A connection that was greeted, made now unless there is one. */
static enum end
client_reach(struct rl_client *c, struct call *call)
{
	enum end end;

	for (;;) {
		if (c->fd >= 0 && c->greeted && !c->retiring) {
			call->reached = true;
			call->busy = false;
			return END_ANSWER;
		}
		client_drop(c);
		end = client_connect(c, call);
		call->reached = end == END_ANSWER;
		if (end == END_ANSWER)
			end = client_greet(c, call);
		if (end == END_ANSWER)
			continue;
		if (end != END_TIMEOUT)
			call->busy = end == END_BUSY;
		client_drop(c);
		if (end != END_LOST && end != END_BUSY)
			return end;
		end = call_pause(c, call);
		if (end != END_ANSWER)
			return end;
	}
}

/* ---- one call, over as many connections as it takes ---- */

static struct call
call_init(const struct rl_client *c, enum kind kind, uint32_t timeout_ms)
{
	struct call call;

	memset(&call, 0, sizeof(call));
	call.x.kind = kind;
	call.status = RL_OK;
	call.start = now_us();
	if (timeout_ms == 0)
		timeout_ms = c->timeout_ms;
	call.by_default = timeout_ms == 0;
	if (timeout_ms == 0)
		timeout_ms = c->default_deadline_ms;
	if (timeout_ms == 0)
		timeout_ms = FIRST_TIMEOUT_MS;
	call.deadline = call.start + timeout_ms * MS;
	return call;
}

static uint32_t
call_left_ms(const struct call *call, int64_t now)
{
	int64_t left = (call->deadline - now) / MS;

	return left < 1 ? 1 : (uint32_t)left;
}

/* Tells a first send from a resend; only a lost connection makes one. */
static void
call_stamp(struct rl_client *c, struct call *call, int64_t now)
{
	if (call->exposed) {
		memcpy(call->stamp.config_hash, call->first_hash, WIRE_ID);
		call->stamp.age_us = now > call->first_write
					 ? (uint64_t)(now - call->first_write)
					 : 1;
		return;
	}
	call->first_write = now;
	call->stamp.deadline_ms = call_left_ms(call, now);
	memcpy(call->first_hash, c->config_hash, WIRE_ID);
}

static size_t
call_encode(struct rl_client *c, struct call *call, int64_t now)
{
	uint64_t id = call->x.id;
	struct put echo = {NULL, NULL, NULL, false};
	uint8_t bytes[8];

	switch (call->x.kind) {
	case KIND_HELLO:
		break;
	case KIND_CHECK:
		call_stamp(c, call, now);
		return enc_check(c->out, id, &call->stamp, call->check,
		    call->detail != NULL);
	case KIND_REPORT:
		return enc_report(c->out, id, &call->sample);
	case KIND_REPORT_ADHOC:
		return enc_report_adhoc(c->out, id, &call->sample);
	case KIND_PING:
		echo.start = echo.at = bytes;
		echo.end = bytes + sizeof(bytes);
		put_le(&echo, id, sizeof(bytes));
		return enc_ping(c->out, id, bytes, sizeof(bytes));
	case KIND_WAIT:
		return enc_wait(c->out, id, call_left_ms(call, now));
	case KIND_QUERY:
		call->document_len = 0;
		return enc_empty(c->out, call->type, id);
	case KIND_CONTROL:
		return enc_empty(c->out, call->type, id);
	}
	return 0;
}

/* Asks once on the connection that is there. */
static enum end
call_ask(struct rl_client *c, struct call *call)
{
	size_t len;

	call->x.sent = false;
	call->x.id = c->next_id++;
	call->x.begun = now_us();
	if (call->x.begun >= call->deadline) {
		say(c, "the time was up before the agent was asked");
		return END_TIMEOUT;
	}
	len = call_encode(c, call, call->x.begun);
	if (len == 0 || len > c->max_frame) {
		say(c, "the agent takes frames of %u bytes at most",
		    (unsigned)c->max_frame);
		return END_PROTO;
	}
	c->out_at = 0;
	c->out_len = len;
	return client_exchange(c, call, &call->x);
}

/* May it be asked again when nobody knows whether it was done? */
static bool
call_repeats(const struct call *call)
{
	switch (call->x.kind) {
	case KIND_CHECK: /* as a resend */
	case KIND_PING:
	case KIND_WAIT:
	case KIND_QUERY:
		return true;
	case KIND_HELLO:
	case KIND_REPORT:
	case KIND_REPORT_ADHOC:
	case KIND_CONTROL:
		break;
	}
	return false;
}

static enum end
call_run(struct rl_client *c, struct call *call)
{
	enum end end;

	if (take_interrupt(c))
		return END_INTERRUPT;
	for (;;) {
		end = client_reach(c, call);
		if (end != END_ANSWER)
			return end;
		end = call_ask(c, call);
		if (end != END_LOST && end != END_BUSY)
			return end;
		client_drop(c);
		call->busy = end == END_BUSY;
		call->exposed = call->exposed || call->x.sent;
		call->x.sent = false;
		if (call->exposed && !call_repeats(call))
			return END_LOST;
		/* An agent that was restarted is there at once; one that
		 * loses each connection is not asked in a tight loop. */
		if (call->losses++ == 0)
			continue;
		end = call_pause(c, call);
		if (end != END_ANSWER)
			return end;
	}
}

/*
 * Leaves a connection that the next call can use, or none: half a frame, or
 * an answer of unknown length to come, would be in its way. Late decisions
 * are not: their ids are skipped.
 */
static void
call_leave(struct rl_client *c, struct call *call, enum end end)
{
	bool keep = end == END_ANSWER;

	if (call->x.kind == KIND_CHECK &&
	    (end == END_TIMEOUT || end == END_INTERRUPT))
		keep = true;
	if (!keep || !c->greeted || c->retiring || c->out_len > 0)
		client_drop(c);
}

/* ---- checks ---- */

/* Tells the agent that nobody waits for a check any more. */
static void
check_cancel(struct rl_client *c, const struct call *call)
{
	size_t len;

	if (!call->x.sent || c->fd < 0)
		return;
	len = enc_empty(c->out, W_CANCEL, call->x.id);
	if (send(c->fd, c->out, len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
	    (ssize_t)len)
		client_drop(c);
}

/* After rl_interrupt(): a decision that was made already still counts. */
static enum end
check_give_up(struct rl_client *c, struct call *call)
{
	if (!call->x.sent)
		return END_INTERRUPT;
	check_cancel(c, call);
	if (c->fd < 0)
		return END_INTERRUPT;
	call->cancel_until = now_us() + GRACE;
	return client_exchange(c, call, &call->x) == END_ANSWER ? END_ANSWER
								: END_INTERRUPT;
}

/* The decision that is made here, because no agent made it. */
static void
check_decide(struct rl_client *c, struct call *call, enum rl_outcome outcome,
    enum rl_reason reason, bool permit)
{
	struct rl_decision *d = call->decision;

	memset(d, 0, sizeof(*d));
	d->outcome = outcome;
	d->source = RL_SOURCE_POLICY;
	d->reason = reason;
	d->permit = permit;
	memcpy(d->text, c->text, sizeof(d->text));
	if (call->detail != NULL)
		call->detail->guard_count = call->detail->resource_count = 0;
}

/* Failed: why, when the call ended so. */
static enum rl_reason
check_reason(const struct call *call, enum end end)
{
	if (end == END_REFUSED)
		return RL_REASON_UNAUTHORISED;
	if (end == END_TIMEOUT && call->x.sent)
		return RL_REASON_TIMEOUT;
	if (call->x.sent || call->exposed)
		return RL_REASON_INTERRUPTED;
	if (end == END_TIMEOUT && call->busy)
		return RL_REASON_OVERLOADED;
	return RL_REASON_UNAVAILABLE;
}

static void
check_end(struct rl_client *c, struct call *call, enum end end)
{
	enum rl_reason reason;

	if (end == END_INTERRUPT)
		end = check_give_up(c, call);
	if (end == END_TIMEOUT)
		check_cancel(c, call);
	switch (end) {
	case END_ANSWER:
		if (call->decision->outcome == RL_FAILED)
			memcpy(c->text, call->decision->text, sizeof(c->text));
		break;
	case END_INTERRUPT:
		say(c, "interrupted");
		check_decide(c, call, RL_CANCELLED, RL_REASON_CANCELLED, false);
		break;
	case END_TIMEOUT:
	case END_LOST:
	case END_BUSY:
	case END_REFUSED:
	case END_PROTO:
	case END_UNREACHABLE:
	case END_NOMEM:
	case END_MORE:
		reason = check_reason(call, end);
		check_decide(c, call, RL_FAILED, reason,
		    reason != RL_REASON_UNAUTHORISED &&
			c->on_failure == RL_OPEN);
		break;
	}
	call_leave(c, call, end);
}

/* ---- validation: one line that names the argument ---- */

static bool
holds(struct rl_client *c, bool condition, const char *text)
{
	if (!condition)
		say(c, "%s", text);
	return condition;
}

/* At most max bytes; NULL passes. */
static bool
fits(const char *s, size_t max)
{
	return s == NULL || strnlen(s, max + 1) <= max;
}

static bool
valid_resource(struct rl_client *c, const struct rl_resource *r, size_t i)
{
	const char *wrong = NULL;

	if (r->bucket == NULL || r->bucket_len < 1 ||
	    r->bucket_len > RL_NAME_MAX)
		wrong = "bucket: 1 to 255 bytes";
	else if (r->window_ms < 1)
		wrong = "window_ms: at least 1";
	else if (r->limit < 1)
		wrong = "limit: at least 1";
	else if (r->tokens < 1 || r->tokens > 65535)
		wrong = "tokens: 1 to 65535";
	if (wrong != NULL)
		say(c, "resources[%zu].%s", i, wrong);
	return wrong == NULL;
}

static bool
valid_guard(struct rl_client *c, const struct rl_guard *g, size_t i)
{
	if (g->tracker == NULL || g->tracker_len < 1 ||
	    g->tracker_len > RL_NAME_MAX) {
		say(c, "guards[%zu].tracker: 1 to 255 bytes", i);
		return false;
	}
	return true;
}

static bool
valid_key(struct rl_client *c, const char *key, size_t key_len)
{
	return holds(c, key_len <= RL_NAME_MAX, "key: at most 255 bytes") &&
	       holds(c, key != NULL || key_len == 0,
		   "key: NULL, but key_len is not 0");
}

static bool
valid_rule(struct rl_client *c, const struct rl_check *check)
{
	bool adhoc = check->tenant != NULL || check->label != NULL ||
		     check->resource_count != 0 || check->guard_count != 0;

	return holds(c,
		   check->rule[0] != '\0' && fits(check->rule, RL_NAME_MAX),
		   "rule: 1 to 255 bytes") &&
	       valid_key(c, check->key, check->key_len) &&
	       holds(c, !adhoc,
		   "tenant, label, resources, guards: only without a rule");
}

static bool
valid_adhoc_shape(struct rl_client *c, const struct rl_check *check)
{
	return holds(c, check->key == NULL && check->key_len == 0,
		   "key: only with a rule") &&
	       holds(c, fits(check->tenant, RL_NAME_MAX),
		   "tenant: at most 255 bytes") &&
	       holds(c, fits(check->label, WIRE_LABEL),
		   "label: at most 256 bytes") &&
	       holds(c, check->resource_count <= RL_MAX_RESOURCES,
		   "resource_count: at most 40") &&
	       holds(c, check->resources != NULL || check->resource_count == 0,
		   "resources: NULL, but resource_count is not 0") &&
	       holds(c, check->guard_count <= RL_MAX_GUARDS,
		   "guard_count: at most 31") &&
	       holds(c, check->guards != NULL || check->guard_count == 0,
		   "guards: NULL, but guard_count is not 0");
}

/* The parts, and whether their names fit in a frame together. */
static bool
valid_adhoc(struct rl_client *c, const struct rl_check *check)
{
	size_t i, len = HEAD_LEN + 52 + 4 + 4;

	if (!valid_adhoc_shape(c, check))
		return false;
	len += check->tenant != NULL ? strlen(check->tenant) : 0;
	len += check->label != NULL ? strlen(check->label) : 0;
	for (i = 0; i < check->resource_count; i++) {
		if (!valid_resource(c, &check->resources[i], i))
			return false;
		len += 14 + check->resources[i].bucket_len;
	}
	for (i = 0; i < check->guard_count; i++) {
		if (!valid_guard(c, &check->guards[i], i))
			return false;
		len += 22 + check->guards[i].tracker_len;
	}
	return holds(c, len <= WIRE_FRAME,
	    "resources, guards: together too long for one request");
}

static bool
valid_check(struct rl_client *c, const struct rl_check *check)
{
	if (!holds(c, check != NULL, "check: NULL") ||
	    !holds(c, check->tokens <= 65535, "tokens: at most 65535"))
		return false;
	return check->rule != NULL ? valid_rule(c, check)
				   : valid_adhoc(c, check);
}

static bool
valid_report(struct rl_client *c, const struct sample *sample)
{
	const char *tracker = sample->tracker;

	return holds(c, fits(sample->tenant, RL_NAME_MAX),
		   "tenant: at most 255 bytes") &&
	       holds(c,
		   tracker != NULL && tracker[0] != '\0' &&
		       fits(tracker, RL_NAME_MAX),
		   "tracker: 1 to 255 bytes") &&
	       valid_key(c, sample->key, sample->key_len);
}

static bool
valid_report_adhoc(struct rl_client *c, const struct sample *sample)
{
	const struct rl_guard *tracker = sample->given;

	return holds(c, fits(sample->tenant, RL_NAME_MAX),
		   "tenant: at most 255 bytes") &&
	       holds(c,
		   tracker != NULL && tracker->tracker != NULL &&
		       tracker->tracker_len >= 1 &&
		       tracker->tracker_len <= RL_NAME_MAX,
		   "tracker: 1 to 255 bytes");
}

/* ---- the public functions ---- */

static const char *
socket_path(const struct rl_options *options)
{
	const char *path = options->socket;

	if (path == NULL) {
		path = secure_getenv("RL_AGENT_SOCKET");
		if (path == NULL || path[0] == '\0')
			path = RL_DEFAULT_SOCKET;
	}
	return path;
}

int
rl_open(struct rl_client **out, const struct rl_options *options)
{
	static const struct rl_options defaults;
	struct rl_client *c;
	const char *path;
	size_t len;

	if (out == NULL)
		return RL_EINVAL;
	*out = NULL;
	if (options == NULL)
		options = &defaults;
	path = socket_path(options);
	len = strlen(path);
	if (len < 1 || len >= sizeof(c->address.sun_path) ||
	    !fits(options->name, RL_NAME_MAX) ||
	    (options->on_failure != RL_OPEN &&
		options->on_failure != RL_CLOSED))
		return RL_EINVAL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return RL_ENOMEM;
	c->address.sun_family = AF_UNIX;
	memcpy(c->address.sun_path, path, len);
	if (options->name != NULL)
		memcpy(c->name, options->name, strlen(options->name));
	c->timeout_ms = options->timeout_ms;
	c->on_failure = options->on_failure;
	c->next_id = 1;
	c->fd = -1;
	atomic_init(&c->wake, -1);
	if (client_adopt(c, getpid()) != RL_OK) {
		free(c);
		return RL_ENOMEM;
	}
	*out = c;
	return RL_OK;
}

void
rl_close(struct rl_client *client)
{
	if (client == NULL)
		return;
	client_drop(client);
	close_eventfd(atomic_load(&client->wake));
	free(client);
}

int
rl_check(struct rl_client *client, const struct rl_check *check,
    struct rl_decision *decision, struct rl_detail *detail)
{
	struct call call;
	enum end end = END_UNREACHABLE;
	int status = RL_OK;

	if (decision == NULL) {
		say(client, "decision: NULL");
		return RL_EINVAL;
	}
	client_enter(client);
	call = call_init(
	    client, KIND_CHECK, check != NULL ? check->timeout_ms : 0);
	call.check = check;
	call.decision = decision;
	call.detail = detail;
	if (!valid_check(client, check)) {
		check_decide(
		    client, &call, RL_FAILED, RL_REASON_VALIDATION, false);
		status = RL_EINVAL;
	} else {
		if (client_draw_id(client, call.stamp.operation_id))
			end = call_run(client, &call);
		check_end(client, &call, end);
	}
	decision->elapsed_us = (uint64_t)(now_us() - call.start);
	return status;
}

/* Runs a call that does not decide, and names how it ended. */
static int
call_status(struct rl_client *c, struct call *call)
{
	enum end end = call_run(c, call);

	call_leave(c, call, end);
	switch (end) {
	case END_ANSWER:
		return call->status;
	case END_TIMEOUT:
		if (call->busy)
			return RL_EREFUSED;
		return call->reached ? RL_ETIMEDOUT : RL_EUNAVAILABLE;
	case END_INTERRUPT:
		say(c, "interrupted");
		return RL_EINTERRUPTED;
	case END_REFUSED:
		return RL_EREFUSED;
	case END_PROTO:
		return RL_EPROTO;
	case END_NOMEM:
		return RL_ENOMEM;
	case END_LOST:
	case END_BUSY:
	case END_UNREACHABLE:
	case END_MORE:
		break;
	}
	return RL_EUNAVAILABLE;
}

int
rl_report(struct rl_client *client, const char *tenant, const char *tracker,
    const char *key, size_t key_len, uint32_t latency_ms)
{
	struct call call;

	client_enter(client);
	call = call_init(client, KIND_REPORT, 0);
	call.sample = (struct sample){
	    .latency_ms = latency_ms,
	    .tenant = tenant,
	    .tracker = tracker,
	    .key = key,
	    .key_len = key_len,
	};
	return valid_report(client, &call.sample) ? call_status(client, &call)
						  : RL_EINVAL;
}

int
rl_report_adhoc(struct rl_client *client, const char *tenant,
    const struct rl_guard *tracker, uint32_t latency_ms)
{
	struct call call;

	client_enter(client);
	call = call_init(client, KIND_REPORT_ADHOC, 0);
	call.sample = (struct sample){
	    .latency_ms = latency_ms,
	    .tenant = tenant,
	    .given = tracker,
	};
	return valid_report_adhoc(client, &call.sample)
		   ? call_status(client, &call)
		   : RL_EINVAL;
}

int
rl_ping(struct rl_client *client, uint32_t timeout_ms, uint64_t *round_trip_us)
{
	struct call call;
	int status;

	client_enter(client);
	call = call_init(client, KIND_PING, timeout_ms);
	status = call_status(client, &call);
	if (round_trip_us != NULL)
		*round_trip_us = (uint64_t)call.round_trip;
	return status;
}

int
rl_wait(struct rl_client *client, uint32_t timeout_ms)
{
	struct call call;

	client_enter(client);
	call = call_init(client, KIND_WAIT, timeout_ms);
	return call_status(client, &call);
}

static bool
document_type(const char *what, enum wire_type *type)
{
	static const struct {
		const char *name;
		enum wire_type type;
	} rows[] = {
	    {"status", W_STATUS}, {"servers", W_SERVERS}, {"policy", W_POLICY}};
	size_t i;

	for (i = 0; what != NULL && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(what, rows[i].name) == 0) {
			*type = rows[i].type;
			return true;
		}
	}
	return false;
}

int
rl_query(struct rl_client *client, const char *what, uint32_t timeout_ms,
    char **json)
{
	struct call call;
	int status;

	client_enter(client);
	if (json != NULL)
		*json = NULL;
	call = call_init(client, KIND_QUERY, timeout_ms);
	if (json == NULL || !document_type(what, &call.type)) {
		say(client, json == NULL ? "json: NULL"
					 : "what: status, servers or policy");
		return RL_EINVAL;
	}
	status = call_status(client, &call);
	if (status == RL_OK)
		*json = call.document;
	else
		free(call.document);
	return status;
}

int
rl_control(struct rl_client *client, const char *what, uint32_t timeout_ms)
{
	struct call call;

	client_enter(client);
	if (what == NULL || strcmp(what, "quit") != 0) {
		say(client, "what: quit");
		return RL_EINVAL;
	}
	call = call_init(client, KIND_CONTROL, timeout_ms);
	call.type = W_QUIT;
	return call_status(client, &call);
}

void
rl_interrupt(struct rl_client *client)
{
	static const uint64_t one = 1;
	int saved = errno;
	pid_t pid = getpid();
	ssize_t n;

	atomic_store(&client->interrupted, pid);
	if (atomic_load(&client->pid) == pid) {
		/* A counter that is full ends a poll as well. */
		n = write(atomic_load(&client->wake), &one, sizeof(one));
		(void)n;
	}
	errno = saved;
}

const char *
rl_last_text(const struct rl_client *client)
{
	return client->text;
}
