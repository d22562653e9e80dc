/*
 * Total decoders for what clients send: bytes to a struct or an error. Section
 * numbers are those of proto/IPC.md. Decoded strings borrow the frame. The
 * first fault in a payload decides its error, and after it nothing more is
 * read.
 */
#include "proto/ipc.h"

#include <stddef.h>

#include "proto/err.h"

/* 2.2 A string: u16 length, bytes. Stops the reader when over its maximum. */
static struct ipc_str
dec_str(struct reader *r, size_t max, bool *big)
{
	struct ipc_str s;

	s.len = reader_u16(r);
	if (s.len > max) {
		*big = true;
		reader_fail(r);
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
		reader_fail(r);
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

/* u32 permits | u32 options | str limiter | str key */
static void
dec_acquire(struct reader *r, struct ipc_acquire *out, bool *big)
{
	out->permits = reader_u32(r);
	out->options = reader_u32(r);
	out->limiter = dec_str(r, IPC_MAX_NAME, big);
	out->key = dec_str(r, IPC_MAX_NAME, big);
}

/* 4.17 ACQUIRE: that, and nothing else */
int
ipc_dec_acquire(struct reader *r, struct ipc_acquire *out)
{
	bool big = false;

	dec_acquire(r, out, &big);
	return dec_end(r, big);
}

/* 4.18 TRY_ACQUIRE: u64 max_wait, then as ACQUIRE */
int
ipc_dec_try_acquire(struct reader *r, struct ipc_try_acquire *out)
{
	bool big = false;

	out->max_wait_us = reader_u64(r);
	dec_acquire(r, &out->acquire, &big);
	return dec_end(r, big);
}

/* 4.19 ERROR_BEGIN, ERROR_SUCCESS: u32 options | str control | str key */
int
ipc_dec_error_control(struct reader *r, struct ipc_error_control *out)
{
	bool big = false;

	out->options = reader_u32(r);
	out->control = dec_str(r, IPC_MAX_NAME, &big);
	out->key = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* 4.22 SET_RATE: u64 rate | str limiter */
int
ipc_dec_set_rate(struct reader *r, struct ipc_set_rate *out)
{
	bool big = false;

	out->rate = reader_u64(r);
	out->limiter = dec_str(r, IPC_MAX_NAME, &big);
	return dec_end(r, big);
}

/* 4.7, 4.14, 4.21: no payload */
int
ipc_dec_empty(struct reader *r)
{
	return dec_end(r, false);
}
