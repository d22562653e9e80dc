/*
 * librlshim: the client of rl-agent, one source on purpose so that it can be
 * dropped into a project. It needs libc and its own header only, and carries
 * the client's half of the codec that proto/IPC.md specifies, held to
 * proto/vectors/ipc.json.
 *
 * From top to bottom: names, codec, small things, operations, connections,
 * frames that come in, the engine, rl_fd(), calls that block, validation, and
 * the public functions. There is one engine, which never blocks: operations
 * wait in a queue, go out on a connection, and end, each exactly once, in
 * op_end(). A call that blocks is one more operation, with a poll until it
 * ended; the asynchronous form drives the same engine from its own calls.
 *
 * A client is used by one thread at a time; rl_interrupt() alone may run
 * beside it, and touches the three atomics only. Every wait is bounded by a
 * deadline on the monotonic clock.
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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
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
#define STAMP_LEN    (2 * WIRE_ID + 12)

#define OPT_DETAIL 0x1u
#define OPT_KEY    0x2u
#define HAS_DETAIL 0x1u
#define HAS_SERVER 0x2u
#define FLAG_MORE  0x0001

/* A year, the longest wait that is granted; one permit a second. */
#define WAIT_MAX UINT64_C(31536000000000)
#define RATE_ONE 1e12

enum wire_type {
	W_HELLO = 0x0001,
	W_CHECK = 0x0010,
	W_CHECK_ADHOC = 0x0011,
	W_CANCEL = 0x0012,
	W_REPORT = 0x0020,
	W_REPORT_ADHOC = 0x0021,
	W_REPORT_RULE = 0x0022,
	W_PING = 0x0030,
	W_WAIT = 0x0040,
	W_STATUS = 0x0041,
	W_SERVERS = 0x0042,
	W_POLICY = 0x0043,
	W_RULES = 0x0044,
	W_EXPLAIN = 0x0045,
	W_LIMITERS = 0x0046,
	W_METRICS = 0x0047,
	W_TOP = 0x0048,
	W_ACQUIRE = 0x0050,
	W_TRY_ACQUIRE = 0x0051,
	W_ERROR_BEGIN = 0x0052,
	W_ERROR_SUCCESS = 0x0053,
	W_QUIT = 0x0060,
	W_RELOAD = 0x0061,
	W_DRAIN = 0x0062,
	W_SET_RATE = 0x0063,
	W_WELCOME = 0x8001,
	W_DECISION = 0x8010,
	W_REPORTED = 0x8020,
	W_PONG = 0x8030,
	W_DOCUMENT = 0x8041,
	W_GO_AWAY = 0x8050,
	W_DELAY = 0x8051,
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
#define NEVER              INT64_MAX
#define GRACE              (100 * MS) /* for the agent's own last word */
#define BACKOFF_MIN        (2 * MS)
#define BACKOFF_MAX        (100 * MS)
#define FIRST_TIMEOUT_MS   1000u   /* until an agent was reached */
#define DEFAULT_CEILING_MS 600000u /* of what an agent calls its default */
#define QUERY_MS           5000u   /* at least, to answer a query */
#define CONTROL_MS         60000u
#define DOCUMENT_MAX       (64u << 20)
#define POOL_IDS           16
#define INFLIGHT_DEFAULT   1024u
#define INFLIGHT_MAX       65536u
#define UNWATCHED          (5 * MS) /* between looks at what nobody reports */
#define SILENCE            (1000 * MS) /* of an agent that hangs */
#define CONN_MAX           4  /* the current one, and those going away */
#define READ_ROUNDS        64 /* from one connection before the others */

/* A request id is a number that counts up, and the row of its operation. */
#define ROW_BITS 18
#define ROW_MASK ((1u << ROW_BITS) - 1)
#define ROW_NONE ROW_MASK

_Static_assert(2 * INFLIGHT_MAX + 1 < ROW_NONE, "checks, reports and a call");

/* How an operation, or a connection, ended. */
enum end {
	END_MORE,        /* not yet */
	END_ANSWER,      /* as it should */
	END_TIMEOUT,     /* at its deadline */
	END_INTERRUPT,   /* rl_interrupt(), rl_cancel() */
	END_LOST,        /* the connection broke, or could not be made now */
	END_BUSY,        /* the agent has too many connections */
	END_REFUSED,     /* it does not talk to us */
	END_PROTO,       /* it does not talk our language */
	END_UNREACHABLE, /* no connection can be made, now or soon */
	END_NOMEM,
};

enum kind {
	KIND_CHECK,
	KIND_DELAY, /* of a limiter or an error control */
	KIND_REPORT,
	KIND_PING,
	KIND_WAIT,
	KIND_DOCUMENT,
	KIND_CONTROL,
	KIND_SETTING, /* a control that may be repeated */
};

struct list {
	struct op *first, *last;
};

enum conn_state {
	CONN_GREETING, /* HELLO is on its way */
	CONN_UP,       /* WELCOME was read */
	CONN_RETIRING, /* GO_AWAY was read; some answers may still come */
};

struct conn {
	int fd;
	dev_t dev;
	ino_t ino;
	enum conn_state state;
	bool mute;        /* the agent takes no more; reading finds its end */
	bool full;        /* so much is unread that it takes nothing now */
	uint32_t watched; /* what epoll watches it for; 0: it does not */
	uint64_t hello_id;
	int64_t heard;       /* when it last said anything, or was made */
	struct list pending; /* what was written to it, oldest first */
	size_t owed;         /* of those, the ones that a CANCEL is due to */
	uint64_t sent;       /* bytes that the kernel took, ever */
	size_t in_len, out_at, out_len;
	uint8_t in[WIRE_FRAME];
	/* Room for a frame when there is less than one, and for CANCELs. */
	uint8_t out[2 * WIRE_FRAME + 256 * HEAD_LEN];
};

/* Three tables in one allocation, which have nothing to do with each other. */
struct row {
	struct op *op;   /* by the low bits of an id */
	struct op *heap; /* by deadline, the first c->live */
	uint32_t spare;  /* row numbers without an op, the first c->spares */
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
	uint32_t max_inflight;

	/* Connections: [0] takes what is new, the others are going away. */
	struct conn *conns[CONN_MAX];
	int64_t retry_at; /* not before then, when there is none */
	int64_t pause;
	unsigned losses; /* since something was answered */
	bool reached;    /* the last try to connect did */
	bool busy;       /* the last try was refused as one too many */
	uint64_t ids;
	uint32_t default_deadline_ms; /* 0: never told */
	uint32_t max_frame;
	uint8_t config_hash[WIRE_ID];

	/* Operations: each in one list, and until it is done in a row. */
	struct row *rows;
	size_t row_count, spares, live;
	struct list queue; /* to be written to conns[0] */
	struct list done;  /* to be collected */
	size_t checks;     /* and delays, submitted and not collected */
	size_t reports;    /* and the like, submitted and not answered */

	int epoll, timer;   /* -1: nobody asked for rl_fd() */
	int64_t timer_when; /* what it is set to */

	uint32_t jitter;
	size_t pool_left;
	uint8_t pool[POOL_IDS][WIRE_ID];
	char text[RL_TEXT_MAX + 1];  /* rl_last_text() */
	char blame[RL_TEXT_MAX + 1]; /* the last trouble with a connection */
	uint8_t frame[WIRE_FRAME];   /* what was asked for last */
};

/* One sample, for the trackers of a rule, or for one of a tenant. */
struct sample {
	uint32_t latency_ms;
	const char *rule; /* NULL: a tracker */
	const char *tenant;
	const struct rl_guard *tracker;
	const char *key; /* NULL: none */
	size_t key_len;
};

/* What a check says of its history; 3.1 of IPC.md. */
struct stamp {
	uint8_t operation_id[WIRE_ID];
	uint8_t config_hash[WIRE_ID];
	uint64_t age_us;
	uint32_t deadline_ms;
};

/*
 * What was asked for, over as many connections as it takes. That of a
 * blocking call is on its stack, a submitted one on the heap.
 */
struct op {
	enum kind kind;
	bool submitted;
	enum end end;      /* END_MORE: it has not */
	struct list *list; /* queue, pending of conn, done, or NULL */
	struct op *prev, *next;
	uint32_t row;
	size_t heap_at;

	uint64_t id;        /* of its frame; 0: not written, or disowned */
	struct conn *conn;  /* where it was written to; NULL: in the queue */
	uint64_t sent_from; /* when no more was sent there, it was not begun */
	uint64_t sent_at;   /* when so much was sent there, it was, wholly */
	int64_t begun;      /* the writing of that frame */
	bool owed;          /* its CANCEL had no room yet */

	int64_t start;
	int64_t deadline;
	int64_t patience;     /* for the answer, at least */
	int64_t cancel_until; /* not 0: cancelled, waiting for the last word */
	int64_t until;        /* its place in the heap; maybe too early */
	bool by_default;      /* the deadline is the agent's default */
	bool exposed;         /* a connection broke with it unanswered */

	/* But for what op_encode() fills in. The client's, or its own. */
	const uint8_t *frame;
	size_t frame_len;

	/* KIND_CHECK, KIND_DELAY */
	struct rl_decision *decision;

	/* KIND_DELAY */
	bool may_refuse;     /* what would be longer than longest_us */
	uint64_t longest_us; /* wait that may be granted */
	int64_t answered;    /* the wait begins */

	/* KIND_CHECK */
	struct rl_detail *detail;
	struct stamp stamp;
	int64_t first_write;
	uint8_t first_hash[WIRE_ID];

	/* the others */
	int status;
	int64_t round_trip;
	char *document;
	size_t document_len, document_cap;

	/* submitted */
	uint64_t ticket;
	void *user;
	struct rl_decision own;
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

/* NULL: zeros, to be filled in later. */
static void
put_bytes(struct put *p, const void *bytes, size_t len)
{
	if (p->full || (size_t)(p->end - p->at) < len) {
		p->full = true;
		return;
	}
	if (bytes != NULL)
		memcpy(p->at, bytes, len);
	else
		memset(p->at, 0, len);
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
enc_begin(uint8_t *buf, size_t room, enum wire_type type, uint64_t id)
{
	struct put p = {buf, buf, buf + room, false};

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

/* With so many bytes to be filled in later. */
static size_t
enc_plain(uint8_t *buf, enum wire_type type, uint64_t id, size_t len)
{
	struct put p = enc_begin(buf, HEAD_LEN + len, type, id);

	put_bytes(&p, NULL, len);
	return enc_end(&p);
}

static size_t
enc_hello(uint8_t buf[WIRE_FRAME], uint64_t id, const char *name)
{
	struct put p = enc_begin(buf, WIRE_FRAME, W_HELLO, id);

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

static void
put_stamp(struct put *p, const struct stamp *stamp)
{
	put_bytes(p, stamp->operation_id, WIRE_ID);
	put_bytes(p, stamp->config_hash, WIRE_ID);
	put_le(p, stamp->age_us, 8);
	put_u32(p, stamp->deadline_ms);
}

static size_t
enc_check(uint8_t buf[WIRE_FRAME], uint64_t id, const struct rl_check *check,
    bool detail)
{
	struct put p;
	uint32_t options = 0;
	size_t i;

	if (detail)
		options |= OPT_DETAIL;
	if (check->key != NULL)
		options |= OPT_KEY;
	p = enc_begin(
	    buf, WIRE_FRAME, check->rule != NULL ? W_CHECK : W_CHECK_ADHOC, id);
	put_bytes(&p, NULL, STAMP_LEN);
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
	struct put p = enc_begin(buf, WIRE_FRAME,
	    sample->rule != NULL ? W_REPORT_RULE : W_REPORT, id);

	put_u32(&p, sample->latency_ms);
	put_u32(&p, sample->key != NULL ? OPT_KEY : 0);
	if (sample->rule != NULL) {
		put_text(&p, sample->rule);
	} else {
		put_text(&p, sample->tenant);
		put_str(
		    &p, sample->tracker->tracker, sample->tracker->tracker_len);
	}
	put_str(&p, sample->key, sample->key_len);
	return enc_end(&p);
}

static size_t
enc_report_adhoc(
    uint8_t buf[WIRE_FRAME], uint64_t id, const struct sample *sample)
{
	const struct rl_guard *tracker = sample->tracker;
	struct put p = enc_begin(buf, WIRE_FRAME, W_REPORT_ADHOC, id);

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
enc_explain(uint8_t buf[WIRE_FRAME], uint64_t id, const struct rl_check *check)
{
	struct put p = enc_begin(buf, WIRE_FRAME, W_EXPLAIN, id);

	put_u32(&p, check->key != NULL ? OPT_KEY : 0);
	put_u32(&p, check->tokens != 0 ? check->tokens : 1);
	put_text(&p, check->rule);
	put_str(&p, check->key, check->key_len);
	return enc_end(&p);
}

static size_t
enc_acquire(
    uint8_t buf[WIRE_FRAME], uint64_t id, const struct rl_acquire *acquire)
{
	struct put p = enc_begin(buf, WIRE_FRAME,
	    acquire->no_longer ? W_TRY_ACQUIRE : W_ACQUIRE, id);

	if (acquire->no_longer)
		put_le(&p, acquire->max_wait_us, 8);
	put_u32(&p, acquire->permits != 0 ? acquire->permits : 1);
	put_u32(&p, acquire->key != NULL ? OPT_KEY : 0);
	put_text(&p, acquire->limiter);
	put_str(&p, acquire->key, acquire->key_len);
	return enc_end(&p);
}

static size_t
enc_error_control(uint8_t buf[WIRE_FRAME], enum wire_type type, uint64_t id,
    const struct rl_error_control *control)
{
	struct put p = enc_begin(buf, WIRE_FRAME, type, id);

	put_u32(&p, control->key != NULL ? OPT_KEY : 0);
	put_text(&p, control->control);
	put_str(&p, control->key, control->key_len);
	return enc_end(&p);
}

static size_t
enc_set_rate(
    uint8_t buf[WIRE_FRAME], uint64_t id, uint64_t rate, const char *limiter)
{
	struct put p = enc_begin(buf, WIRE_FRAME, W_SET_RATE, id);

	put_le(&p, rate, 8);
	put_text(&p, limiter);
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
	(void)get_u32(g); /* max_inflight: what is beyond it is Failed */
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

struct delay {
	enum rl_reason reason;
	uint64_t wait_us;
	char text[RL_TEXT_MAX + 1];
};

static bool
dec_delay(struct get *g, struct delay *out)
{
	out->reason = (enum rl_reason)get_upto(g, 2, RL_REASON_CANCELLED);
	(void)get_u16(g);
	out->wait_us = get_u64(g);
	get_text(g, out->text);
	if (out->reason == RL_REASON_OK && out->wait_us > WAIT_MAX)
		g->bad = true;
	return get_done(g);
}

/* DONE and REPORTED, whose reasons are of two bytes and of one. */
static bool
dec_verdict(struct get *g, size_t size, enum rl_reason *reason, char *text)
{
	*reason = (enum rl_reason)get_upto(g, size, RL_REASON_CANCELLED);
	(void)get_bytes(g, 4 - size);
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

/* For rl_last_text(). */
__attribute__((format(printf, 2, 3))) static void
say(struct rl_client *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
}

/* What is wrong with the connection, for all that end by it. */
__attribute__((format(printf, 2, 3))) static void
blame(struct rl_client *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->blame, sizeof(c->blame), format, args);
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
static bool
conn_is_ours(const struct conn *conn)
{
	struct stat st;

	return conn->fd >= 0 && fstat(conn->fd, &st) == 0 &&
	       st.st_dev == conn->dev && st.st_ino == conn->ino;
}

/* Without /proc, in a chroot, it can only be told that it is no file. */
static void
close_eventfd(int fd)
{
	static const char expected[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(expected)];
	struct stat st;
	ssize_t len;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target));
	if (len < 0 && access("/proc/self/fd", X_OK) != 0 &&
	    fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == 0)
		close(fd);
	else if (len == (ssize_t)sizeof(expected) - 1 &&
		 memcmp(target, expected, sizeof(expected) - 1) == 0)
		close(fd);
}

/* A closed eventfd must be noticed before a socket gets its number. */
static void
client_mend_wake(struct rl_client *c)
{
	int wake = atomic_load(&c->wake);

	if (wake < 0 || fcntl(wake, F_GETFD) < 0)
		atomic_store(&c->wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
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
		if (n != (ssize_t)sizeof(c->pool))
			return false;
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

/* ---- lists of operations, their rows, and the heap of deadlines ---- */

/* before NULL: at the end. */
static void
list_insert(struct list *list, struct op *before, struct op *op)
{
	op->list = list;
	op->next = before;
	op->prev = before != NULL ? before->prev : list->last;
	if (op->prev != NULL)
		op->prev->next = op;
	else
		list->first = op;
	if (before != NULL)
		before->prev = op;
	else
		list->last = op;
}

static void
list_remove(struct op *op)
{
	if (op->list == NULL)
		return;
	if (op->prev != NULL)
		op->prev->next = op->next;
	else
		op->list->first = op->next;
	if (op->next != NULL)
		op->next->prev = op->prev;
	else
		op->list->last = op->prev;
	op->list = NULL;
}

static void
list_free(struct list *list)
{
	struct op *op;

	while ((op = list->first) != NULL) {
		list_remove(op);
		if (op->submitted)
			free(op);
	}
}

/* Room for one operation more. */
static bool
rows_reserve(struct rl_client *c)
{
	size_t i, count = c->row_count != 0 ? 2 * c->row_count : 4;
	struct row *grown;

	if (c->spares > 0)
		return true;
	if (count > ROW_NONE)
		count = ROW_NONE;
	grown = realloc(c->rows, count * sizeof(*grown));
	if (grown == NULL)
		return false;
	for (i = c->row_count; i < count; i++) {
		grown[i].op = NULL;
		grown[c->spares++].spare = (uint32_t)i;
	}
	c->rows = grown;
	c->row_count = count;
	return true;
}

static void
heap_place(struct rl_client *c, size_t at, struct op *op)
{
	c->rows[at].heap = op;
	op->heap_at = at;
}

/* Moves an operation, whose time has changed, to its place. */
static void
heap_move(struct rl_client *c, struct op *op)
{
	size_t at = op->heap_at, child;

	while (at > 0 && c->rows[(at - 1) / 2].heap->until > op->until) {
		heap_place(c, at, c->rows[(at - 1) / 2].heap);
		at = (at - 1) / 2;
	}
	while ((child = 2 * at + 1) < c->live) {
		if (child + 1 < c->live &&
		    c->rows[child + 1].heap->until < c->rows[child].heap->until)
			child++;
		if (c->rows[child].heap->until >= op->until)
			break;
		heap_place(c, at, c->rows[child].heap);
		at = child;
	}
	heap_place(c, at, op);
}

static void
rows_add(struct rl_client *c, struct op *op)
{
	op->row = c->rows[--c->spares].spare;
	c->rows[op->row].op = op;
	heap_place(c, c->live++, op);
	heap_move(c, op);
}

static void
rows_remove(struct rl_client *c, struct op *op)
{
	struct op *last = c->rows[--c->live].heap;

	c->rows[op->row].op = NULL;
	c->rows[c->spares++].spare = op->row;
	if (last == op)
		return;
	heap_place(c, op->heap_at, last);
	heap_move(c, last);
}

static uint64_t
next_id(struct rl_client *c, uint32_t row)
{
	return ++c->ids << ROW_BITS | row;
}

static struct op *
rows_find(const struct rl_client *c, uint64_t id)
{
	size_t row = id & ROW_MASK;

	return row < c->row_count ? c->rows[row].op : NULL;
}

/* ---- an operation: its beginning, its time, its end ---- */

/* To send what was made in c->frame. */
static struct op
op_init(const struct rl_client *c, enum kind kind, uint32_t timeout_ms,
    size_t frame_len)
{
	struct op op;

	memset(&op, 0, sizeof(op));
	op.kind = kind;
	op.frame = c->frame;
	op.frame_len = frame_len;
	op.start = now_us();
	if (timeout_ms == 0)
		timeout_ms = c->timeout_ms;
	op.by_default = timeout_ms == 0;
	if (timeout_ms == 0)
		timeout_ms = c->default_deadline_ms;
	if (timeout_ms == 0)
		timeout_ms = FIRST_TIMEOUT_MS;
	op.deadline = op.start + timeout_ms * MS;
	op.until = op.deadline;
	return op;
}

/* Wholly written to a connection that stands. */
static bool
op_sent(const struct op *op)
{
	return op->conn != NULL && op->conn->sent >= op->sent_at;
}

/* The agent has the last word at the deadline of what it was given. */
static int64_t
op_until(const struct op *op)
{
	if (op->cancel_until != 0)
		return op->cancel_until;
	if (!op_sent(op))
		return op->deadline;
	if (op->kind == KIND_CHECK || op->kind == KIND_WAIT)
		return op->deadline + GRACE;
	if (op->begun + op->patience > op->deadline)
		return op->begun + op->patience;
	return op->deadline;
}

static void
op_rekey(struct rl_client *c, struct op *op)
{
	op->until = op_until(op);
	heap_move(c, op);
}

static const char too_late[] = "the time was up before the agent was asked";

/* Begins; END_MORE, or why it cannot. The first one has a clean slate. */
static enum end
op_start(struct rl_client *c, struct op *op)
{
	if (!rows_reserve(c)) {
		blame(c, "out of memory");
		return END_NOMEM;
	}
	if (op->kind == KIND_CHECK &&
	    !client_draw_id(c, op->stamp.operation_id)) {
		blame(c, "no random numbers from the system");
		return END_UNREACHABLE;
	}
	if (c->live == 0) {
		c->retry_at = c->pause = 0;
		c->losses = 0;
		c->reached = c->conns[0] != NULL;
		c->busy = false;
		blame(c, "%s", too_late);
	}
	rows_add(c, op);
	list_insert(&c->queue, NULL, op);
	return END_MORE;
}

/*
 * May it be asked again when nobody knows whether it was done? An acquire
 * that was done spends permits twice, and lets nobody pass too early.
 */
static bool
op_repeats(const struct op *op)
{
	return op->kind != KIND_REPORT && op->kind != KIND_CONTROL;
}

/* Does it end in a decision, which is collected when it was submitted? */
static bool
op_decides(const struct op *op)
{
	return op->kind == KIND_CHECK || op->kind == KIND_DELAY;
}

/* Will the agent begin it, or did it, though nobody waits any more? */
static bool
op_begins(const struct op *op)
{
	return op->exposed ||
	       (op->conn != NULL && op->conn->sent > op->sent_from);
}

/* Failed: why, when a check ended so. */
static enum rl_reason
op_reason(const struct rl_client *c, const struct op *op, enum end end)
{
	if (end == END_REFUSED)
		return RL_REASON_UNAUTHORISED;
	if (end == END_TIMEOUT && op_sent(op))
		return RL_REASON_TIMEOUT;
	if (op_sent(op) || op->exposed)
		return RL_REASON_INTERRUPTED;
	if (end == END_TIMEOUT && c->busy)
		return RL_REASON_OVERLOADED;
	return RL_REASON_UNAVAILABLE;
}

static const char *
op_words(const struct rl_client *c, const struct op *op, enum end end)
{
	const struct conn *conn = c->conns[0];

	if (end == END_INTERRUPT && op->kind == KIND_DELAY && op_begins(op))
		return "given up; the agent may have granted it";
	if (end == END_INTERRUPT)
		return op->submitted ? "cancelled" : "interrupted";
	if (end != END_TIMEOUT)
		return c->blame;
	if (op_sent(op) || (conn != NULL && conn->state == CONN_GREETING))
		return "no answer from the agent in time";
	if (conn == NULL)
		return c->blame;
	return conn->full ? "the agent does not read" : too_late;
}

/* The decision that is made here, because no agent made it. */
static void
op_decide(const struct rl_client *c, struct op *op, enum rl_outcome outcome,
    enum rl_reason reason, const char *words)
{
	struct rl_decision *d = op->decision;

	memset(d, 0, sizeof(*d));
	d->outcome = outcome;
	d->source = RL_SOURCE_POLICY;
	d->reason = reason;
	d->permit = outcome == RL_FAILED && c->on_failure == RL_OPEN &&
		    reason != RL_REASON_UNAUTHORISED &&
		    reason != RL_REASON_UNKNOWN_RULE &&
		    reason != RL_REASON_VALIDATION;
	snprintf(d->text, sizeof(d->text), "%s", words);
	if (op->detail != NULL)
		op->detail->guard_count = op->detail->resource_count = 0;
}

/* What it comes to. rl_last_text() is for the calls that wait. */
static void
op_conclude(struct rl_client *c, struct op *op, enum end end)
{
	const char *words = op_words(c, op, end);

	op->end = end;
	if (op_decides(op)) {
		if (end == END_INTERRUPT)
			op_decide(
			    c, op, RL_CANCELLED, RL_REASON_CANCELLED, words);
		else if (end != END_ANSWER)
			op_decide(
			    c, op, RL_FAILED, op_reason(c, op, end), words);
		op->decision->elapsed_us = (uint64_t)(now_us() - op->start);
		words = op->decision->text;
		if (op->decision->outcome != RL_FAILED &&
		    op->decision->outcome != RL_CANCELLED)
			return;
	} else if (end == END_ANSWER) {
		return;
	}
	if (!op->submitted)
		say(c, "%s", words);
}

static bool conn_cancel(struct conn *conn, uint64_t id);
static bool conn_withdraw(struct conn *conn, const struct op *op);

/* What it was written to has nothing to do with it any more. */
static void
op_disown(struct op *op)
{
	if (op->owed)
		op->conn->owed--;
	op->owed = false;
	op->conn = NULL;
	op->id = 0;
}

/* Takes it out of everything. A submitted report is gone after that. */
static void
op_end(struct rl_client *c, struct op *op, enum end end)
{
	list_remove(op);
	rows_remove(c, op);
	op_conclude(c, op, end);
	if (op->conn != NULL && end != END_ANSWER &&
	    !conn_withdraw(op->conn, op) && end == END_TIMEOUT &&
	    op->kind == KIND_CHECK)
		(void)conn_cancel(op->conn, op->id);
	op_disown(op);
	if (!op->submitted)
		return;
	if (op_decides(op)) {
		list_insert(&c->done, NULL, op);
	} else {
		c->reports--;
		free(op);
	}
}

/* Nobody wants it any more; a decision that was made already still counts. */
static void
op_give_up(struct rl_client *c, struct op *op)
{
	if (op->kind != KIND_CHECK || op->conn == NULL ||
	    op->conn->sent <= op->sent_from) {
		op_end(c, op, END_INTERRUPT);
		return;
	}
	op->cancel_until = now_us() + GRACE;
	if (!conn_cancel(op->conn, op->id)) {
		op->owed = true;
		op->conn->owed++;
	}
	op_rekey(c, op);
}

/* Back to the queue, before another. */
static void
op_requeue(struct rl_client *c, struct op *op, struct op *before)
{
	op_disown(op);
	list_remove(op);
	list_insert(&c->queue, before, op);
	if (op->cancel_until != 0)
		op_end(c, op, END_INTERRUPT);
	else
		op_rekey(c, op);
}

static uint32_t
op_left_ms(const struct op *op, int64_t now)
{
	int64_t left = (op->deadline - now) / MS;

	return left < 1 ? 1 : (uint32_t)left;
}

/* Tells a first send from a resend; only a lost connection makes one. */
static void
op_stamp(const struct rl_client *c, struct op *op, int64_t now)
{
	if (op->exposed) {
		memcpy(op->stamp.config_hash, op->first_hash, WIRE_ID);
		op->stamp.age_us = now > op->first_write
				       ? (uint64_t)(now - op->first_write)
				       : 1;
		return;
	}
	op->first_write = now;
	op->stamp.deadline_ms = op_left_ms(op, now);
	memcpy(op->first_hash, c->config_hash, WIRE_ID);
}

/* Fills in what is known now: the id, which a ping has echoed, and times. */
static void
op_encode(const struct rl_client *c, struct op *op, int64_t now, uint8_t *buf)
{
	struct put p = {buf, buf + 8, buf + op->frame_len, false};

	op->document_len = 0;
	memcpy(buf, op->frame, op->frame_len);
	put_le(&p, op->id, 8);
	if (op->kind == KIND_CHECK) {
		op_stamp(c, op, now);
		put_stamp(&p, &op->stamp);
	} else if (op->kind == KIND_PING) {
		put_le(&p, op->id, 8);
	} else if (op->kind == KIND_WAIT) {
		put_u32(&p, op_left_ms(op, now));
	}
}

/* ---- a connection: its end, and what goes out ---- */

/* Without shutdown: a parent may share the socket. */
static void
conn_close(struct rl_client *c, struct conn *conn)
{
	int i;

	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] == conn)
			c->conns[i] = NULL;
	}
	if (conn_is_ours(conn)) {
		/* Closing alone does not do while a child has a copy. */
		if (c->epoll >= 0 && conn->watched != 0)
			epoll_ctl(c->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
		close(conn->fd);
	}
	free(conn);
}

/* When to try again: an agent that was restarted is there at once, but one
 * that loses each connection is not asked in a tight loop. */
static void
client_pause(struct rl_client *c)
{
	c->pause = c->pause == 0 ? BACKOFF_MIN : 2 * c->pause;
	if (c->pause > BACKOFF_MAX)
		c->pause = BACKOFF_MAX;
	c->retry_at = now_us() + c->pause + client_jitter(c) % (c->pause / 2);
}

static void
client_lost(struct rl_client *c)
{
	if (c->losses++ > 0)
		client_pause(c);
}

/* No connection came to be. */
static void
client_failed(struct rl_client *c, enum end end)
{
	c->busy = end == END_BUSY;
	if (end == END_LOST || end == END_BUSY) {
		client_pause(c);
		return;
	}
	while (c->queue.first != NULL)
		op_end(c, c->queue.first, end);
}

/*
 * The connection ended so. What was written to it is asked again where that
 * is right, before what is newer, in the order that it had.
 */
static void
conn_end(struct rl_client *c, struct conn *conn, enum end end)
{
	bool again = end == END_LOST || end == END_BUSY;
	bool current = conn == c->conns[0];
	struct op *op, *before = c->queue.first;

	while ((op = conn->pending.first) != NULL) {
		op->exposed = op->exposed || op_sent(op);
		if (op->cancel_until != 0)
			op_end(c, op, END_INTERRUPT);
		else if (again && (!op->exposed || op_repeats(op)))
			op_requeue(c, op, before);
		else
			op_end(c, op, end);
	}
	if (current && conn->state == CONN_GREETING) {
		client_failed(c, end);
	} else if (current) {
		c->busy = end == END_BUSY;
		client_lost(c);
	}
	conn_close(c, conn);
}

static uint8_t *
conn_room(struct conn *conn, size_t len)
{
	if (sizeof(conn->out) - conn->out_len < len && conn->out_at > 0) {
		conn->out_len -= conn->out_at;
		memmove(conn->out, conn->out + conn->out_at, conn->out_len);
		conn->out_at = 0;
	}
	return sizeof(conn->out) - conn->out_len < len
		   ? NULL
		   : conn->out + conn->out_len;
}

/* False: there is no room now. */
static bool
conn_cancel(struct conn *conn, uint64_t id)
{
	uint8_t *at = conn_room(conn, HEAD_LEN);

	if (at == NULL)
		return false;
	conn->out_len += enc_plain(at, W_CANCEL, id, 0);
	return true;
}

/*
 * What nobody waits for is not sent, when none of it was: else a check that
 * ended as never written would be begun later all the same.
 */
static bool
conn_withdraw(struct conn *conn, const struct op *op)
{
	size_t len = (size_t)(op->sent_at - op->sent_from);
	uint8_t *at = conn->out + conn->out_at;
	struct op *later;

	if (conn->mute || conn->sent > op->sent_from)
		return false;
	at += op->sent_from - conn->sent;
	conn->out_len -= len;
	memmove(at, at + len, (size_t)(conn->out + conn->out_len - at));
	if (conn->out_at == conn->out_len)
		conn->out_at = conn->out_len = 0;
	for (later = conn->pending.last;
	     later != NULL && later->sent_from > op->sent_from;
	     later = later->prev) {
		later->sent_from -= len;
		later->sent_at -= len;
	}
	return true;
}

static void
conn_pay(struct conn *conn)
{
	struct op *op;

	if (conn_room(conn, HEAD_LEN) == NULL)
		return;
	for (op = conn->pending.first; op != NULL && conn->owed > 0;
	     op = op->next) {
		if (!op->owed)
			continue;
		if (!conn_cancel(conn, op->id))
			return;
		op->owed = false;
		conn->owed--;
	}
}

/* Takes what waits for a connection, while there is room for any frame. */
static void
conn_fill(struct rl_client *c, struct conn *conn)
{
	struct op *op;
	uint8_t *at;
	size_t len;

	while ((op = c->queue.first) != NULL &&
	       conn->out_len - conn->out_at <= WIRE_FRAME &&
	       (at = conn_room(conn, WIRE_FRAME)) != NULL) {
		op->id = next_id(c, op->row);
		op->begun = now_us();
		if (op->begun >= op->deadline) {
			op_end(c, op, END_TIMEOUT);
			continue;
		}
		len = op->frame_len;
		if (len == 0 || len > c->max_frame) {
			blame(c, "the agent takes frames of %u bytes at most",
			    (unsigned)c->max_frame);
			op_end(c, op, END_PROTO);
			continue;
		}
		op_encode(c, op, op->begun, at);
		conn->out_len += len;
		op->conn = conn;
		op->sent_at = conn->sent + (conn->out_len - conn->out_at);
		op->sent_from = op->sent_at - len;
		list_remove(op);
		list_insert(&conn->pending, NULL, op);
	}
}

static void
conn_sent(struct conn *conn, size_t n)
{
	conn->sent += n;
	conn->out_at += n;
	if (conn->out_at == conn->out_len)
		conn->out_at = conn->out_len = 0;
}

/*
 * Writes what is left to write. A peer that closed may have left us its last
 * words (an ERROR, a GO_AWAY): then there is no more to write, and reading
 * finds the end.
 */
static void
conn_flush(struct rl_client *c, struct conn *conn)
{
	ssize_t n;

	while (!conn->mute) {
		if (conn->owed > 0)
			conn_pay(conn);
		if (conn->state == CONN_UP)
			conn_fill(c, conn);
		if (conn->out_at == conn->out_len)
			return;
		n = send(conn->fd, conn->out + conn->out_at,
		    conn->out_len - conn->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
		conn->full = n < 0 && errno == EAGAIN;
		if (n >= 0) {
			conn_sent(conn, (size_t)n);
		} else if (conn->full) {
			return;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			conn->mute = true;
		} else if (errno != EINTR) {
			blame(c, "the connection to the agent was lost");
			conn_end(c, conn, END_LOST);
			return;
		}
	}
	conn->out_at = conn->out_len = 0;
}

/* ---- frames that come in ---- */

static enum end
proto_fault(struct rl_client *c, const char *what)
{
	blame(c, "%s: %s", c->address.sun_path, what);
	return END_PROTO;
}

/* The last frame of a connection. The request that it names was not begun. */
static enum end
on_error(struct rl_client *c, struct op *op, struct get *g)
{
	uint16_t code;
	char text[RL_TEXT_MAX + 1];

	if (!dec_error(g, &code, text))
		return proto_fault(c, "malformed error frame");
	if (text[0] != '\0')
		blame(c, "%s", text);
	else
		blame(c, "the agent closed the connection, error %u", code);
	switch ((enum wire_error)code) {
	case E_BUSY:
	case E_SLOW:
		if (op != NULL)
			op_requeue(c, op, c->queue.first);
		return code == E_BUSY ? END_BUSY : END_LOST;
	case E_UNAUTHORISED:
		return END_REFUSED;
	case E_VERSION:
	case E_MALFORMED:
	case E_TYPE:
	case E_GREETING:
	case E_ID:
		break;
	}
	if (op == NULL)
		return END_PROTO;
	op_disown(op);
	op_end(c, op, op->cancel_until != 0 ? END_INTERRUPT : END_PROTO);
	return END_LOST; /* the others are not at fault */
}

/* Makes place for a new connection; answers to come on this one still do. */
static void
conn_retire(struct rl_client *c, struct conn *conn)
{
	int i;

	for (i = 1; i < CONN_MAX && c->conns[i] != NULL; i++)
		continue;
	if (i == CONN_MAX) {
		blame(c, "the agent went away too often");
		i = 1;
		conn_end(c, c->conns[i], END_LOST);
	}
	c->conns[i] = conn;
	c->conns[0] = NULL;
	conn->state = CONN_RETIRING;
	client_lost(c);
}

/* What is above the last one accepted was never begun. */
static enum end
on_go_away(struct rl_client *c, struct conn *conn, struct get *g)
{
	uint64_t last_id;
	char text[RL_TEXT_MAX + 1];
	struct op *op, *before = c->queue.first;

	if (!dec_go_away(g, &last_id, text))
		return proto_fault(c, "malformed go-away frame");
	blame(c, "turned away: %s", text);
	if (conn->state == CONN_GREETING)
		return END_LOST;
	while ((op = conn->pending.last) != NULL && op->id > last_id) {
		op_requeue(c, op, before);
		before = c->queue.first;
	}
	if (conn->state == CONN_UP)
		conn_retire(c, conn);
	return END_MORE;
}

/* At the greeting, and when the agent's configuration changed. */
static enum end
on_welcome(struct rl_client *c, struct conn *conn, struct get *g)
{
	struct welcome w;
	struct op *op;

	if (!dec_welcome(g, &w))
		return proto_fault(c, "malformed welcome frame");
	if (conn->state == CONN_RETIRING)
		return END_MORE;
	conn->state = CONN_UP;
	c->busy = false;
	c->max_frame = w.max_frame;
	memcpy(c->config_hash, w.config_hash, WIRE_ID);
	c->default_deadline_ms = w.default_deadline_ms;
	if (c->default_deadline_ms > DEFAULT_CEILING_MS)
		c->default_deadline_ms = DEFAULT_CEILING_MS;
	for (op = c->queue.first; op != NULL; op = op->next) {
		if (op->by_default && !op->exposed &&
		    c->default_deadline_ms != 0) {
			op->deadline = op->start + c->default_deadline_ms * MS;
			op_rekey(c, op);
		}
	}
	return END_MORE;
}

static enum end
on_document(struct rl_client *c, struct op *op, uint16_t flags, struct get *g)
{
	size_t len = (size_t)(g->end - g->at);
	size_t cap = op->document_cap != 0 ? op->document_cap : 4096;
	char *grown;

	if (len > DOCUMENT_MAX - op->document_len)
		return proto_fault(c, "a document that does not end");
	if (len > 0 && memchr(g->at, '\0', len) != NULL)
		return proto_fault(c, "a document that is not text");
	while (cap < op->document_len + len + 1)
		cap *= 2;
	if (cap != op->document_cap) {
		grown = realloc(op->document, cap);
		if (grown == NULL) {
			blame(c, "out of memory");
			return END_NOMEM;
		}
		op->document = grown;
		op->document_cap = cap;
	}
	if (len > 0)
		memcpy(op->document + op->document_len, g->at, len);
	op->document_len += len;
	op->document[op->document_len] = '\0';
	return (flags & FLAG_MORE) != 0 ? END_MORE : END_ANSWER;
}

/* The agent's verdict on what does not decide. */
static enum end
on_verdict(struct rl_client *c, struct op *op, struct get *g)
{
	bool report = op->kind == KIND_REPORT;
	enum rl_reason reason;
	char text[RL_TEXT_MAX + 1];

	if (!dec_verdict(g, report ? 1 : 2, &reason, text))
		return proto_fault(c, "malformed verdict frame");
	if (reason != RL_REASON_OK)
		op->status = !report && reason == RL_REASON_TIMEOUT
				 ? RL_ETIMEDOUT
				 : RL_EREFUSED;
	if (op->submitted)
		return END_ANSWER;
	if (reason == RL_REASON_OK)
		say(c, "%s", text); /* a remark, or none */
	else
		say(c, "%s%s%s", rl_reason_name(reason),
		    text[0] != '\0' ? ": " : "", text);
	return END_ANSWER;
}

static enum end
on_pong(struct rl_client *c, struct op *op, struct get *g)
{
	uint64_t echoed = get_u64(g);

	if (!get_done(g) || echoed != op->id)
		return proto_fault(c, "an echo of something else");
	op->round_trip = now_us() - op->begun;
	return END_ANSWER;
}

static enum end
on_decision(struct rl_client *c, struct op *op, struct get *g)
{
	if (!dec_decision(g, op->decision, op->detail))
		return proto_fault(c, "malformed decision frame");
	op->decision->by_agent = 1;
	return END_ANSWER;
}

/* The name of the limiter, from a TRY_ACQUIRE. */
static void
op_name_limit(const struct op *op)
{
	struct get g = {
	    op->frame + HEAD_LEN + 16, op->frame + op->frame_len, false};

	get_name(&g, op->decision->limit, &op->decision->limit_len);
}

static void
op_refuse(struct op *op, uint64_t wait_us)
{
	uint64_t ms = wait_us / 1000 + (wait_us % 1000 != 0);

	op->decision->source = RL_SOURCE_LOCAL;
	op->decision->wait_us = wait_us;
	op->decision->retry_after_ms =
	    ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
	op_name_limit(op);
}

static enum end
on_delay(struct rl_client *c, struct op *op, struct get *g)
{
	struct delay delay;

	if (!dec_delay(g, &delay))
		return proto_fault(c, "malformed delay frame");
	if (delay.reason == RL_REASON_OK && delay.wait_us > op->longest_us)
		return proto_fault(c, "a delay that is too long");
	if (delay.reason == RL_REASON_RESOURCE && !op->may_refuse)
		return proto_fault(c, "a delay that is refused");
	op->answered = now_us();
	if (delay.reason == RL_REASON_OK) {
		op_decide(c, op, RL_ALLOWED, RL_REASON_OK, delay.text);
		op->decision->permit = 1;
		op->decision->source = RL_SOURCE_LOCAL;
		op->decision->wait_us = delay.wait_us;
	} else if (delay.reason == RL_REASON_RESOURCE) {
		op_decide(c, op, RL_DENIED, RL_REASON_RESOURCE, delay.text);
		op_refuse(op, delay.wait_us);
	} else {
		op_decide(c, op, RL_FAILED, delay.reason, delay.text);
	}
	op->decision->by_agent = 1;
	return END_ANSWER;
}

/* An answer to what was asked: it must be of the type that answers it. */
static enum end
on_answer(struct rl_client *c, struct op *op, uint16_t type, uint16_t flags,
    struct get *g)
{
	switch (op->kind) {
	case KIND_CHECK:
		if (type == W_DECISION)
			return on_decision(c, op, g);
		break;
	case KIND_DELAY:
		if (type == W_DELAY)
			return on_delay(c, op, g);
		break;
	case KIND_REPORT:
		if (type == W_REPORTED)
			return on_verdict(c, op, g);
		break;
	case KIND_PING:
		if (type == W_PONG)
			return on_pong(c, op, g);
		break;
	case KIND_DOCUMENT:
		if (type == W_DOCUMENT)
			return on_document(c, op, flags, g);
		if (type == W_DONE && on_verdict(c, op, g) == END_ANSWER &&
		    op->status != RL_OK)
			return END_ANSWER;
		break;
	case KIND_WAIT:
	case KIND_CONTROL:
	case KIND_SETTING:
		if (type == W_DONE)
			return on_verdict(c, op, g);
		break;
	}
	return proto_fault(c, "an answer of a wrong type");
}

struct head {
	uint32_t length;
	uint16_t type;
	uint16_t flags;
	uint64_t id;
};

/*
 * One frame. Answers to ids that nobody waits for are late ones of what gave
 * up: skipped.
 */
static enum end
conn_take(
    struct rl_client *c, struct conn *conn, const struct head *h, struct get *g)
{
	struct op *op = rows_find(c, h->id);
	enum end end;

	if (op != NULL && (op->id != h->id || op->conn != conn))
		op = NULL;
	if (h->type == W_ERROR)
		return on_error(c, op, g);
	if (h->type == W_GO_AWAY)
		return on_go_away(c, conn, g);
	if (conn->state == CONN_GREETING && h->id == conn->hello_id)
		return h->type == W_WELCOME
			   ? on_welcome(c, conn, g)
			   : proto_fault(c, "an answer of a wrong type");
	if (h->type == W_WELCOME && h->id == 0 && conn->state != CONN_GREETING)
		return on_welcome(c, conn, g);
	if (op == NULL)
		return END_MORE;
	end = on_answer(c, op, h->type, h->flags, g);
	if (end == END_PROTO)
		return end;
	c->losses = 0;
	c->pause = 0;
	if (end != END_MORE)
		op_end(c, op, end);
	return END_MORE;
}

/* Takes the frames that are there. */
static enum end
conn_parse(struct rl_client *c, struct conn *conn)
{
	struct get g;
	struct head h;
	size_t at = 0;
	enum end end = END_MORE;

	while (end == END_MORE && conn->in_len - at >= HEAD_LEN) {
		g = (struct get){
		    conn->in + at, conn->in + at + HEAD_LEN, false};
		h.length = get_u32(&g);
		h.type = get_u16(&g);
		h.flags = get_u16(&g);
		h.id = get_u64(&g);
		if (h.length < HEAD_LEN || h.length > WIRE_FRAME)
			return proto_fault(c, "not the protocol of an agent");
		if (conn->in_len - at < h.length)
			break;
		g.end = conn->in + at + h.length;
		at += h.length;
		end = conn_take(c, conn, &h, &g);
	}
	conn->in_len -= at;
	if (at > 0 && conn->in_len > 0)
		memmove(conn->in, conn->in + at, conn->in_len);
	return end;
}

/*
 * Reads until there is no more: a short read shows that, though the end may be
 * behind it. There is always room, as a full buffer holds a whole frame. Did
 * something come?
 */
static bool
conn_read(struct rl_client *c, struct conn *conn)
{
	size_t room;
	ssize_t n;
	int round;
	enum end end;

	for (round = 0; round < READ_ROUNDS; round++) {
		room = sizeof(conn->in) - conn->in_len;
		n = recv(conn->fd, conn->in + conn->in_len, room, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return round > 0;
		if (n <= 0) {
			blame(c, "the agent closed the connection");
			conn_end(c, conn, END_LOST);
			return true;
		}
		conn->in_len += (size_t)n;
		conn->heard = now_us();
		end = conn_parse(c, conn);
		if (end != END_MORE) {
			conn_end(c, conn, end);
			return true;
		}
		if ((size_t)n < room)
			break;
	}
	return true;
}

/* ---- the engine: connects, writes, and ends what is due ---- */

static enum end
connect_fault(struct rl_client *c, int error)
{
	if (error == EACCES || error == EPERM) {
		blame(c, "this user may not use %s", c->address.sun_path);
		return END_REFUSED;
	}
	blame(c, "no agent at %s: %s (errno %d)", c->address.sun_path,
	    errno_text(error), error);
	if (error == ENOENT || error == ECONNREFUSED || error == EAGAIN ||
	    error == EINTR || error == ECONNRESET)
		return END_LOST;
	return END_UNREACHABLE;
}

static struct conn *
conn_new(struct rl_client *c)
{
	struct conn *conn = malloc(sizeof(*conn));
	struct stat st;

	if (conn == NULL) {
		blame(c, "out of memory");
		return NULL;
	}
	memset(conn, 0, offsetof(struct conn, in));
	client_mend_wake(c);
	conn->fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (conn->fd < 0 || fstat(conn->fd, &st) != 0) {
		blame(c, "no socket: %s (errno %d)", errno_text(errno), errno);
		if (conn->fd >= 0)
			close(conn->fd);
		free(conn);
		return NULL;
	}
	conn->dev = st.st_dev;
	conn->ino = st.st_ino;
	conn->hello_id = next_id(c, ROW_NONE);
	conn->heard = now_us();
	conn->out_len = enc_hello(conn->out, conn->hello_id, c->name);
	return conn;
}

/* One try; a Unix socket connects at once or not at all. */
static void
client_connect(struct rl_client *c)
{
	struct conn *conn = conn_new(c);
	int error;

	c->reached = false;
	if (conn == NULL) {
		client_failed(c, END_UNREACHABLE);
		return;
	}
	if (connect(conn->fd, (const struct sockaddr *)&c->address,
		sizeof(c->address)) == 0) {
		c->reached = true;
		c->conns[0] = conn;
		return;
	}
	error = errno;
	conn_close(c, conn);
	client_failed(c, connect_fault(c, error));
}

/* Did its agent not say a word while this was to be answered? Then it hangs. */
static bool
conn_is_silent(const struct conn *conn, const struct op *op, int64_t now)
{
	return conn != NULL && conn->heard <= op->start &&
	       now - conn->heard >= SILENCE;
}

/* What hangs is left, since another agent may have taken its place. */
static void
client_expire(struct rl_client *c, int64_t now)
{
	struct conn *conn, *silent = NULL;
	struct op *op;

	while (c->live > 0 && (op = c->rows[0].heap)->until <= now) {
		op_rekey(c, op);
		if (op->until > now)
			continue;
		conn = op->conn != NULL ? op->conn : c->conns[0];
		if (conn_is_silent(conn, op, now))
			silent = conn;
		op_end(
		    c, op, op->cancel_until != 0 ? END_INTERRUPT : END_TIMEOUT);
	}
	if (silent != NULL) {
		blame(c, "no answer from the agent in time");
		conn_end(c, silent, END_LOST);
	}
}

/*
 * Closes what waits for nothing more, and a connection that the next
 * operation could not use: half a frame would be in its way.
 */
static void
client_settle(struct rl_client *c)
{
	struct conn *conn = c->conns[0];
	int i;

	for (i = 1; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL && c->conns[i]->pending.first == NULL)
			conn_close(c, c->conns[i]);
	}
	if (conn != NULL && c->live == 0 &&
	    (conn->state != CONN_UP || conn->full))
		conn_close(c, conn);
}

static bool
client_read(struct rl_client *c)
{
	bool came = false;
	int i;

	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL)
			came = conn_read(c, c->conns[i]) || came;
	}
	return came;
}

static void
client_step(struct rl_client *c)
{
	int64_t now = now_us();
	int i;

	/* An answer that came in time counts, however late it is looked at. */
	if (c->live > 0 && c->rows[0].heap->until <= now)
		client_read(c);
	client_expire(c, now);
	if (c->queue.first != NULL && c->conns[0] == NULL && now >= c->retry_at)
		client_connect(c);
	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL)
			conn_flush(c, c->conns[i]);
	}
}

/* When there is something to do though nothing comes in. */
static int64_t
client_until(const struct rl_client *c)
{
	int64_t until = c->live > 0 ? c->rows[0].heap->until : NEVER;

	if (c->queue.first != NULL && c->conns[0] == NULL &&
	    c->retry_at < until)
		until = c->retry_at;
	return until;
}

/* ---- rl_fd(): an epoll descriptor with the sockets and a timer ---- */

/*
 * Closes the two while they are still ours, which the one of them shows by
 * watching the other; the event loop of a daemon may have got their numbers.
 */
static void
watch_end(struct rl_client *c)
{
	struct epoll_event none = {.events = 0};
	int i;

	if (c->epoll >= 0 && c->timer >= 0) {
		if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &none) == 0) {
			epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->timer, NULL);
		} else if (errno == EEXIST) {
			close(c->epoll);
			close(c->timer);
		}
	}
	c->epoll = c->timer = -1;
	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL)
			c->conns[i]->watched = 0;
	}
}

static bool
watch_conn(struct rl_client *c, struct conn *conn)
{
	struct epoll_event event = {.events = EPOLLIN};
	int op = conn->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (conn->out_len > 0)
		event.events |= EPOLLOUT;
	if (conn->watched == event.events)
		return true;
	if (epoll_ctl(c->epoll, op, conn->fd, &event) != 0)
		return false;
	conn->watched = event.events;
	return true;
}

/* Not later than so; a time that has passed keeps it readable. */
static bool
watch_timer(struct rl_client *c, int64_t latest)
{
	int64_t when = c->done.first != NULL ? 1 : client_until(c);
	struct itimerspec its = {{0, 0}, {0, 0}};

	if (when > latest)
		when = latest;
	if (when == c->timer_when)
		return true;
	c->timer_when = when;
	if (when < 1)
		when = 1; /* 0 would stop it */
	if (when != NEVER) {
		its.it_value.tv_sec = (time_t)(when / 1000000);
		its.it_value.tv_nsec = (long)(when % 1000000) * 1000;
	}
	return timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &its, NULL) == 0;
}

/*
 * At the end of each call. A connection that the system will not watch (it
 * limits how many) is looked at from time to time. Without a timer, which was
 * closed then, rl_fd() makes another descriptor.
 */
static void
client_watch(struct rl_client *c)
{
	int64_t latest = NEVER;
	int i;

	client_settle(c);
	if (c->epoll < 0)
		return;
	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL && !watch_conn(c, c->conns[i]))
			latest = now_us() + UNWATCHED;
	}
	if (!watch_timer(c, latest))
		watch_end(c);
}

static bool
watch_begin(struct rl_client *c)
{
	struct epoll_event event = {.events = EPOLLIN};

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	c->timer_when = NEVER;
	if (c->epoll >= 0 && c->timer >= 0 &&
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &event) == 0)
		return true;
	if (c->epoll >= 0)
		close(c->epoll);
	if (c->timer >= 0)
		close(c->timer);
	c->epoll = c->timer = -1;
	return false;
}

/* ---- the client as a whole, and fork ---- */

/* Forgets all that is under way; the agent finds out by itself. */
static void
client_drop(struct rl_client *c)
{
	int i;

	for (i = 0; i < CONN_MAX; i++) {
		if (c->conns[i] != NULL) {
			list_free(&c->conns[i]->pending);
			conn_close(c, c->conns[i]);
		}
	}
	list_free(&c->queue);
	list_free(&c->done);
	c->checks = c->reports = 0;
	free(c->rows);
	c->rows = NULL;
	c->row_count = c->spares = c->live = 0;
}

/*
 * Makes the client this process's own, at the start and after a fork. The
 * eventfd is stored before the pid, and the interrupt flag looked at after
 * both: so an rl_interrupt() that still saw the old pid is not lost. What
 * epoll watches is the parent's too: it is let go before the sockets.
 */
static int
client_adopt(struct rl_client *c, pid_t pid)
{
	int old = atomic_load(&c->wake);
	int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	watch_end(c);
	client_drop(c);
	close_eventfd(old);
	c->pool_left = 0;
	c->jitter = (uint32_t)pid * 2654435761u ^ (uint32_t)now_us();
	c->jitter |= 1;
	atomic_store(&c->wake, wake);
	atomic_store(&c->pid, pid);
	return wake >= 0 ? RL_OK : RL_ENOMEM;
}

static void
client_enter(struct rl_client *c)
{
	pid_t pid = getpid();

	if (atomic_load(&c->pid) != pid)
		(void)client_adopt(c, pid);
}

/* ---- a call that blocks: the engine, driven by poll ---- */

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

/* What poll found. A connection may end another one, or take its place. */
static void
client_found(struct rl_client *c, struct conn *const conns[CONN_MAX],
    const struct pollfd fds[CONN_MAX])
{
	int i;

	for (i = 0; i < CONN_MAX; i++) {
		if (conns[i] == NULL || conns[i] != c->conns[i])
			continue;
		if ((fds[i].revents & POLLNVAL) != 0) {
			blame(c, "the connection to the agent was lost");
			conn_end(c, conns[i], END_LOST);
		} else if ((fds[i].revents & ~POLLOUT) != 0) {
			conn_read(c, conns[i]);
		}
	}
}

/*
 * Waits until something can go on, or for latest; false: the system does not
 * let us.
 */
static bool
client_wait(struct rl_client *c, int64_t latest)
{
	struct conn *conns[CONN_MAX];
	struct pollfd fds[CONN_MAX + 1];
	struct timespec ts;
	int64_t until = client_until(c);
	int64_t left = (until < latest ? until : latest) - now_us();
	int i, n;

	if (left <= 0) { /* what came meanwhile still counts */
		client_read(c);
		return true;
	}
	for (i = 0; i < CONN_MAX; i++) {
		conns[i] = c->conns[i];
		fds[i] = (struct pollfd){-1, POLLIN, 0};
		if (conns[i] != NULL)
			fds[i].fd = conns[i]->fd;
		if (conns[i] != NULL && conns[i]->out_len > 0)
			fds[i].events |= POLLOUT;
	}
	fds[CONN_MAX] = (struct pollfd){atomic_load(&c->wake), POLLIN, 0};
	ts.tv_sec = (time_t)(left / 1000000);
	ts.tv_nsec = (long)(left % 1000000) * 1000;
	n = ppoll(fds, CONN_MAX + 1, &ts, NULL);
	if (n < 0)
		return errno == EINTR;
	if (fds[CONN_MAX].revents != 0)
		drain_wake(c, fds[CONN_MAX].revents);
	client_found(c, conns, fds);
	return true;
}

/*
 * A late decision is not in the way of what comes next, and its id is
 * skipped; but nobody waits for other late answers, so the agent need not
 * work on them.
 */
static void
call_leave(struct rl_client *c, const struct op *op)
{
	bool keep = op->end == END_ANSWER ||
		    (op_decides(op) &&
			(op->end == END_TIMEOUT || op->end == END_INTERRUPT));

	if (!keep && c->live == 0 && c->conns[0] != NULL)
		conn_close(c, c->conns[0]);
	client_watch(c);
}

/* Sees to it that what was cancelled is not interrupted again. */
static enum end
call_run(struct rl_client *c, struct op *op)
{
	enum end end = op_start(c, op);

	if (end != END_MORE) {
		op_conclude(c, op, end);
		return end;
	}
	while (op->end == END_MORE) {
		if (take_interrupt(c) && op->cancel_until == 0)
			op_give_up(c, op);
		if (op->end == END_MORE)
			client_step(c);
		if (op->end == END_MORE && !client_wait(c, NEVER)) {
			blame(c, "out of memory");
			op_end(c, op, END_NOMEM);
		}
	}
	call_leave(c, op);
	return op->end;
}

/* Runs a call that does not decide, and names how it ended. */
static int
call_status(struct rl_client *c, struct op *op)
{
	switch (call_run(c, op)) {
	case END_ANSWER:
		return op->status;
	case END_TIMEOUT:
		if (c->busy)
			return RL_EREFUSED;
		return c->reached ? RL_ETIMEDOUT : RL_EUNAVAILABLE;
	case END_INTERRUPT:
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

/*
 * Waits for a time, come what may: only an interrupt ends that before, when
 * it returns false. What was submitted goes on. Where nothing would end a
 * poll, or there is none to be had, it looks from time to time.
 */
static bool
call_sleep(struct rl_client *c, int64_t until)
{
	static const struct timespec nap = {.tv_nsec = UNWATCHED * 1000};
	int64_t now, latest;

	while ((now = now_us()) < until) {
		client_mend_wake(c);
		if (take_interrupt(c))
			return false;
		client_step(c);
		latest = until;
		if (atomic_load(&c->wake) < 0 && until > now + UNWATCHED)
			latest = now + UNWATCHED;
		if (!client_wait(c, latest))
			nanosleep(&nap, NULL);
	}
	return true;
}

/* Runs a call for a delay, and waits it out. */
static void
call_delay(struct rl_client *c, struct op *op, const char *spent)
{
	struct rl_decision *d = op->decision;
	uint64_t wait_us;

	if (call_run(c, op) != END_ANSWER || d->outcome != RL_ALLOWED ||
	    d->wait_us == 0)
		return;
	wait_us = d->wait_us;
	if (!call_sleep(c, op->answered + (int64_t)wait_us)) {
		op_decide(c, op, RL_CANCELLED, RL_REASON_CANCELLED, spent);
		d->wait_us = wait_us;
		d->by_agent = 1;
		say(c, "%s", spent);
	}
	d->elapsed_us = (uint64_t)(now_us() - op->start);
	client_watch(c);
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
valid_report(
    struct rl_client *c, const char *tenant, const struct rl_guard *tracker)
{
	return holds(
		   c, fits(tenant, RL_NAME_MAX), "tenant: at most 255 bytes") &&
	       holds(c,
		   tracker != NULL && tracker->tracker != NULL &&
		       tracker->tracker_len >= 1 &&
		       tracker->tracker_len <= RL_NAME_MAX,
		   "tracker: 1 to 255 bytes");
}

static bool
valid_name(struct rl_client *c, const char *name, const char *text)
{
	return holds(c,
	    name != NULL && name[0] != '\0' && fits(name, RL_NAME_MAX), text);
}

static bool
valid_acquire(struct rl_client *c, const struct rl_acquire *acquire)
{
	return holds(c, acquire != NULL, "acquire: NULL") &&
	       valid_name(c, acquire->limiter, "limiter: 1 to 255 bytes") &&
	       valid_key(c, acquire->key, acquire->key_len) &&
	       holds(c, acquire->permits <= RL_MAX_PERMITS,
		   "permits: at most 1000000") &&
	       holds(c, acquire->max_wait_us <= WAIT_MAX,
		   "max_wait_us: at most 31536000000000") &&
	       holds(c, acquire->max_wait_us == 0 || acquire->no_longer,
		   "max_wait_us: only with no_longer");
}

static bool
valid_control(struct rl_client *c, const struct rl_error_control *control)
{
	return holds(c, control != NULL, "control: NULL") &&
	       valid_name(c, control->control, "control: 1 to 255 bytes") &&
	       valid_key(c, control->key, control->key_len);
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
	    options->max_inflight > INFLIGHT_MAX ||
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
	c->max_inflight = options->max_inflight != 0 ? options->max_inflight
						     : INFLIGHT_DEFAULT;
	c->epoll = c->timer = -1;
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
	watch_end(client);
	client_drop(client);
	close_eventfd(atomic_load(&client->wake));
	free(client);
}

/* A check with an argument that is out of its range, as rl_last_text() says. */
static int
check_refuse(
    struct rl_client *c, struct rl_decision *decision, struct rl_detail *detail)
{
	struct op op = {.decision = decision, .detail = detail};

	op_decide(c, &op, RL_FAILED, RL_REASON_VALIDATION, c->text);
	return RL_EINVAL;
}

int
rl_check(struct rl_client *client, const struct rl_check *check,
    struct rl_decision *decision, struct rl_detail *detail)
{
	struct op op;

	client_enter(client);
	if (!holds(client, decision != NULL, "decision: NULL"))
		return RL_EINVAL;
	if (!valid_check(client, check))
		return check_refuse(client, decision, detail);
	op = op_init(client, KIND_CHECK, check->timeout_ms,
	    enc_check(client->frame, 0, check, detail != NULL));
	op.decision = decision;
	op.detail = detail;
	(void)call_run(client, &op);
	return RL_OK;
}

int
rl_report(struct rl_client *client, const char *tenant, const char *tracker,
    const char *key, size_t key_len, uint32_t latency_ms)
{
	const struct rl_guard named = {.tracker = tracker,
	    .tracker_len =
		tracker != NULL ? strnlen(tracker, RL_NAME_MAX + 1) : 0};
	const struct sample sample = {
	    .latency_ms = latency_ms,
	    .tenant = tenant,
	    .tracker = &named,
	    .key = key,
	    .key_len = key_len,
	};
	struct op op;

	client_enter(client);
	if (!valid_report(client, tenant, &named) ||
	    !valid_key(client, key, key_len))
		return RL_EINVAL;
	op = op_init(
	    client, KIND_REPORT, 0, enc_report(client->frame, 0, &sample));
	return call_status(client, &op);
}

int
rl_report_adhoc(struct rl_client *client, const char *tenant,
    const struct rl_guard *tracker, uint32_t latency_ms)
{
	const struct sample sample = {
	    .latency_ms = latency_ms,
	    .tenant = tenant,
	    .tracker = tracker,
	};
	struct op op;

	client_enter(client);
	if (!valid_report(client, tenant, tracker))
		return RL_EINVAL;
	op = op_init(client, KIND_REPORT, 0,
	    enc_report_adhoc(client->frame, 0, &sample));
	return call_status(client, &op);
}

int
rl_ping(struct rl_client *client, uint32_t timeout_ms, uint64_t *round_trip_us)
{
	struct op op;
	int status;

	client_enter(client);
	op = op_init(client, KIND_PING, timeout_ms,
	    enc_plain(client->frame, W_PING, 0, 8));
	status = call_status(client, &op);
	if (round_trip_us != NULL)
		*round_trip_us = (uint64_t)op.round_trip;
	return status;
}

int
rl_wait(struct rl_client *client, uint32_t timeout_ms)
{
	struct op op;

	client_enter(client);
	op = op_init(client, KIND_WAIT, timeout_ms,
	    enc_plain(client->frame, W_WAIT, 0, 4));
	return call_status(client, &op);
}

/* A word of the caller's to the request that it stands for. */
struct request {
	const char *name;
	enum wire_type type;
};

static bool
request_type(const char *what, const struct request *rows, size_t count,
    enum wire_type *type)
{
	size_t i;

	for (i = 0; what != NULL && i < count; i++) {
		if (strcmp(what, rows[i].name) == 0) {
			*type = rows[i].type;
			return true;
		}
	}
	return false;
}

/* Runs a call for a document, and hands that over. */
static int
call_document(
    struct rl_client *c, uint32_t timeout_ms, size_t frame_len, char **json)
{
	struct op op = op_init(c, KIND_DOCUMENT, timeout_ms, frame_len);
	int status;

	if (timeout_ms == 0)
		op.patience = QUERY_MS * MS;
	status = call_status(c, &op);
	if (status == RL_OK)
		*json = op.document;
	else
		free(op.document);
	return status;
}

int
rl_query(struct rl_client *client, const char *what, uint32_t timeout_ms,
    char **json)
{
	static const struct request rows[] = {{"status", W_STATUS},
	    {"servers", W_SERVERS}, {"policy", W_POLICY}, {"rules", W_RULES},
	    {"limiters", W_LIMITERS}, {"metrics", W_METRICS}, {"top", W_TOP}};
	enum wire_type type;

	client_enter(client);
	if (json != NULL)
		*json = NULL;
	if (!holds(client, json != NULL, "json: NULL") ||
	    !holds(client,
		request_type(what, rows, sizeof(rows) / sizeof(rows[0]), &type),
		"what: status, servers, policy, rules, limiters, metrics or "
		"top"))
		return RL_EINVAL;
	return call_document(
	    client, timeout_ms, enc_plain(client->frame, type, 0, 0), json);
}

int
rl_explain(struct rl_client *client, const struct rl_check *check, char **json)
{
	client_enter(client);
	if (json != NULL)
		*json = NULL;
	if (!holds(client, json != NULL, "json: NULL") ||
	    !valid_check(client, check) ||
	    !holds(client, check->rule != NULL, "rule: NULL"))
		return RL_EINVAL;
	return call_document(client, check->timeout_ms,
	    enc_explain(client->frame, 0, check), json);
}

int
rl_control(struct rl_client *client, const char *what, uint32_t timeout_ms)
{
	static const struct request rows[] = {
	    {"reload", W_RELOAD}, {"drain", W_DRAIN}, {"quit", W_QUIT}};
	enum wire_type type;
	struct op op;

	client_enter(client);
	if (!holds(client, request_type(what, rows, 3, &type),
		"what: reload, drain or quit"))
		return RL_EINVAL;
	op = op_init(client, KIND_CONTROL, timeout_ms,
	    enc_plain(client->frame, type, 0, 0));
	if (timeout_ms == 0)
		op.patience = CONTROL_MS * MS;
	return call_status(client, &op);
}

/* ---- guarded work ---- */

enum work_state { WORK_NONE, WORK_RUNNING, WORK_REPORTED };

/*
 * The guards protect what ran, so its latency is theirs to know whoever
 * permitted it; but without an agent nobody measured before either.
 */
void
rl_begin(struct rl_work *work, const struct rl_check *check,
    const struct rl_decision *decision)
{
	memset(work, 0, sizeof(*work));
	if (!decision->permit || !decision->by_agent || check->rule == NULL ||
	    !fits(check->rule, RL_NAME_MAX) || check->key_len > RL_NAME_MAX)
		return;
	memcpy(work->rule, check->rule, strlen(check->rule));
	if (check->key != NULL) {
		work->has_key = 1;
		work->key_len = check->key_len;
		memcpy(work->key, check->key, check->key_len);
	}
	work->state = WORK_RUNNING;
	work->begun_us = now_us();
}

int
rl_admit(struct rl_client *client, const struct rl_check *check,
    struct rl_decision *decision, struct rl_detail *detail,
    struct rl_work *work)
{
	int status;

	client_enter(client);
	if (!holds(client, decision != NULL, "decision: NULL"))
		return RL_EINVAL;
	if (!holds(client, work != NULL, "work: NULL"))
		return check_refuse(client, decision, detail);
	memset(work, 0, sizeof(*work));
	if (!holds(client, check == NULL || check->rule != NULL, "rule: NULL"))
		return check_refuse(client, decision, detail);
	status = rl_check(client, check, decision, detail);
	if (status == RL_OK)
		rl_begin(work, check, decision);
	return status;
}

/* The sample of work that ran, without a rule when none is due. */
static int
work_end(struct rl_client *c, struct rl_work *work, struct sample *sample)
{
	int64_t ms;

	memset(sample, 0, sizeof(*sample));
	if (!holds(c, work != NULL, "work: NULL") ||
	    !holds(c, work->state != WORK_REPORTED,
		"work: it was reported before"))
		return RL_EINVAL;
	if (work->state != WORK_RUNNING)
		return RL_OK;
	work->state = WORK_REPORTED;
	ms = (now_us() - work->begun_us + MS / 2) / MS;
	sample->latency_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
	sample->rule = work->rule;
	sample->key = work->has_key ? work->key : NULL;
	sample->key_len = work->key_len;
	return RL_OK;
}

/* Its report in *op; false when there is none to send, for *status. */
static bool
work_report(
    struct rl_client *client, struct rl_work *work, struct op *op, int *status)
{
	struct sample sample;

	client_enter(client);
	*status = work_end(client, work, &sample);
	if (*status != RL_OK || sample.rule == NULL)
		return false;
	*op = op_init(
	    client, KIND_REPORT, 0, enc_report(client->frame, 0, &sample));
	return true;
}

int
rl_finish(struct rl_client *client, struct rl_work *work)
{
	struct op op;
	int status;

	return work_report(client, work, &op, &status)
		   ? call_status(client, &op)
		   : status;
}

/* ---- the asynchronous form ---- */

int
rl_fd(struct rl_client *client)
{
	client_enter(client);
	if (client->epoll < 0 && !watch_begin(client))
		return -1;
	client_watch(client);
	return client->epoll;
}

/* Begins what nobody waits for: a copy of an operation, and of its frame. */
static int
op_submit(struct rl_client *c, const struct op *model, uint64_t *ticket)
{
	bool decides = op_decides(model);
	size_t *count = decides ? &c->checks : &c->reports;
	enum end end = END_NOMEM;
	struct op *op;

	if (*count >= c->max_inflight) {
		say(c, "max_inflight: %u %s are in flight",
		    (unsigned)c->max_inflight,
		    decides ? "requests" : "reports");
		return RL_ENOMEM;
	}
	blame(c, "out of memory");
	op = malloc(sizeof(*op) + model->frame_len);
	if (op != NULL) {
		*op = *model;
		op->submitted = true;
		op->decision = &op->own;
		op->frame = memcpy(op + 1, model->frame, model->frame_len);
		end = op_start(c, op);
	}
	if (end != END_MORE) {
		say(c, "%s", c->blame);
		free(op);
		return RL_ENOMEM;
	}
	++*count;
	if (decides)
		op->ticket = next_id(c, op->row);
	if (ticket != NULL)
		*ticket = op->ticket;
	client_step(c);
	client_watch(c);
	return RL_OK;
}

int
rl_submit(struct rl_client *client, const struct rl_check *check,
    struct rl_detail *detail, void *user, uint64_t *ticket)
{
	struct op op;

	client_enter(client);
	if (!valid_check(client, check))
		return RL_EINVAL;
	op = op_init(client, KIND_CHECK, check->timeout_ms,
	    enc_check(client->frame, 0, check, detail != NULL));
	op.detail = detail;
	op.user = user;
	return op_submit(client, &op, ticket);
}

int
rl_cancel(struct rl_client *client, uint64_t ticket)
{
	struct op *op;

	client_enter(client);
	op = rows_find(client, ticket);
	if (!holds(client,
		op != NULL && op->ticket == ticket && op->ticket != 0,
		"ticket: not in flight"))
		return RL_EINVAL;
	if (op->cancel_until == 0)
		op_give_up(client, op);
	client_step(client);
	client_watch(client);
	return RL_OK;
}

int
rl_collect(struct rl_client *client, struct rl_completion *out)
{
	struct op *op;
	bool more = true;
	int round;

	client_enter(client);
	/* Twice: EPOLLET tells of an answer and the end behind it once. */
	for (round = 0; round < 2 && more && client->done.first == NULL;
	     round++) {
		more = client_read(client);
		client_step(client);
	}
	op = client->done.first;
	if (op != NULL) {
		list_remove(op);
		client->checks--;
		out->ticket = op->ticket;
		out->user = op->user;
		out->decision = op->own;
		free(op);
	}
	client_watch(client);
	return op != NULL;
}

int
rl_submit_finish(struct rl_client *client, struct rl_work *work)
{
	struct op op;
	int status;

	return work_report(client, work, &op, &status)
		   ? op_submit(client, &op, NULL)
		   : status;
}

/* ---- limiters and error controls of the agent ---- */

static const char spent_permits[] =
    "interrupted while it waited: the permits are spent";
static const char spent_begin[] =
    "interrupted while it waited: what was begun counts";

static struct op
acquire_op(struct rl_client *c, const struct rl_acquire *acquire)
{
	struct op op = op_init(c, KIND_DELAY, acquire->timeout_ms,
	    enc_acquire(c->frame, 0, acquire));

	op.may_refuse = acquire->no_longer != 0;
	op.longest_us = op.may_refuse ? acquire->max_wait_us : WAIT_MAX;
	return op;
}

static struct op
error_op(struct rl_client *c, enum kind kind, enum wire_type type,
    const struct rl_error_control *control)
{
	struct op op = op_init(c, kind, control->timeout_ms,
	    enc_error_control(c->frame, type, 0, control));

	op.longest_us = WAIT_MAX;
	return op;
}

int
rl_acquire(struct rl_client *client, const struct rl_acquire *acquire,
    struct rl_decision *decision)
{
	struct op op;

	client_enter(client);
	if (!holds(client, decision != NULL, "decision: NULL"))
		return RL_EINVAL;
	if (!valid_acquire(client, acquire))
		return check_refuse(client, decision, NULL);
	op = acquire_op(client, acquire);
	op.decision = decision;
	call_delay(client, &op, spent_permits);
	return RL_OK;
}

int
rl_error_begin(struct rl_client *client, const struct rl_error_control *control,
    struct rl_decision *decision)
{
	struct op op;

	client_enter(client);
	if (!holds(client, decision != NULL, "decision: NULL"))
		return RL_EINVAL;
	if (!valid_control(client, control))
		return check_refuse(client, decision, NULL);
	op = error_op(client, KIND_DELAY, W_ERROR_BEGIN, control);
	op.decision = decision;
	call_delay(client, &op, spent_begin);
	return RL_OK;
}

int
rl_error_success(
    struct rl_client *client, const struct rl_error_control *control)
{
	struct op op;

	client_enter(client);
	if (!valid_control(client, control))
		return RL_EINVAL;
	op = error_op(client, KIND_CONTROL, W_ERROR_SUCCESS, control);
	return call_status(client, &op);
}

int
rl_submit_acquire(struct rl_client *client, const struct rl_acquire *acquire,
    void *user, uint64_t *ticket)
{
	struct op op;

	client_enter(client);
	if (!valid_acquire(client, acquire))
		return RL_EINVAL;
	op = acquire_op(client, acquire);
	op.user = user;
	return op_submit(client, &op, ticket);
}

static int
submit_error(struct rl_client *c, enum kind kind, enum wire_type type,
    const struct rl_error_control *control, void *user, uint64_t *ticket)
{
	struct op op;

	client_enter(c);
	if (!valid_control(c, control))
		return RL_EINVAL;
	op = error_op(c, kind, type, control);
	op.user = user;
	return op_submit(c, &op, ticket);
}

int
rl_submit_error_begin(struct rl_client *client,
    const struct rl_error_control *control, void *user, uint64_t *ticket)
{
	return submit_error(
	    client, KIND_DELAY, W_ERROR_BEGIN, control, user, ticket);
}

int
rl_submit_error_success(
    struct rl_client *client, const struct rl_error_control *control)
{
	return submit_error(
	    client, KIND_CONTROL, W_ERROR_SUCCESS, control, NULL, NULL);
}

/*
 * Rounded; false: out of range, or not a number. From 2^52 on a double is
 * whole, and adding a half to it could round it up.
 */
static bool
rate_units(double rate, uint64_t *units)
{
	double scaled = rate * RATE_ONE;

	if (!(rate >= 0.001 && rate <= 1000000))
		return false;
	*units = (uint64_t)(scaled < 0x1p52 ? scaled + 0.5 : scaled);
	return true;
}

int
rl_set_rate(struct rl_client *client, const char *limiter,
    double permits_per_second, uint32_t timeout_ms)
{
	uint64_t rate = 0;
	struct op op;

	client_enter(client);
	if (!valid_name(client, limiter, "limiter: 1 to 255 bytes") ||
	    !holds(client, rate_units(permits_per_second, &rate),
		"permits_per_second: 0.001 to 1000000"))
		return RL_EINVAL;
	op = op_init(client, KIND_SETTING, timeout_ms,
	    enc_set_rate(client->frame, 0, rate, limiter));
	return call_status(client, &op);
}

/* ---- interrupting, and the last words ---- */

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
