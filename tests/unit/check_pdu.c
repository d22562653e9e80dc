/*
 * The PDUs: bytes written out by hand for both profiles, every truncation,
 * what may and may not follow the blocks, the caps, and the inverse over
 * random messages. Bytes of public clients are in tests/vectors.
 */
#include "proto/pdu.h"

#include <string.h>

#include "proto/err.h"
#include "tests/unit/harness.h"

#define ROOM 4096

typedef int (*rate_decoder)(
    enum profile, const uint8_t *, size_t, struct pdu_rate *);
typedef int (*rate_encoder)(
    enum profile, const struct pdu_rate *, uint8_t *, size_t, size_t *);

#define GUARD_ID "GGGGGGGGGGGGGGGG"
#define RES_ID   "RRRRRRRRRRRRRRRR"
#define BUF      "\x03\0\0\0"
#define GUARD(buffer, current) \
	GUARD_ID "\x01\0\0\0\x02\0\0\0" buffer "\x04\0\0\0\x05\0\0\0" current
#define RESOURCE RES_ID "\x07\0\0\0\x08\0\0\0\x09\x0a\0\0"
#define LABEL    "ML\x0c\0\x03\0api\0\0\0"
#define SAMPLE(buffer) \
	GUARD_ID "\x01\0\0\0\x02\0\0\0" buffer "\x04\0\0\0\x0b\0\0\0"

static const struct pdu_rate rate = {.dedup_ttl_ms = 0x04030201,
    .guard_count = 1,
    .resource_count = 1,
    .guards = {{.id = "GGGGGGGGGGGGGGGG",
	.ttl_ms = 1,
	.max_samples = 2,
	.buffer_size = 3,
	.min_samples = 4,
	.threshold_ms = 5,
	.current_ms = 6}},
    .resources = {{.id = "RRRRRRRRRRRRRRRR",
	.window_ms = 7,
	.limit = 8,
	.tokens = 0x0a09}},
    .label = (const uint8_t *)"api",
    .label_len = 3};

static const struct pdu_report report = {.count = 1,
    .samples = {{.id = "GGGGGGGGGGGGGGGG",
	.ttl_ms = 1,
	.max_samples = 2,
	.buffer_size = 3,
	.min_samples = 4,
	.observed_ms = 11}}};

static const char request_v1[] =
    "RT\x5c\0\1\2\3\4\1\0\1\0" GUARD(BUF, "\0\0\0\0") RESOURCE LABEL;
static const char request_v2[] =
    "RT\x58\0\1\2\3\4\1\0\1\0" GUARD("", "\0\0\0\0") RESOURCE LABEL;
static const char response_v1[] =
    "RR\x50\0\0\0\0\0\1\0\1\0" GUARD(BUF, "\x06\0\0\0") RESOURCE;
static const char response_v2[] =
    "RR\x4c\0\0\0\0\0\1\0\1\0" GUARD("", "\x06\0\0\0") RESOURCE;
static const char report_v1[] = "LR\x30\0\0\0\0\0\1\0\0\0" SAMPLE(BUF);
static const char report_v2[] = "LR\x2c\0\0\0\0\0\1\0\0\0" SAMPLE("");

/* By loop index: the golden bytes of each rate PDU. */
static const struct rate_row {
	enum profile profile;
	const char *bytes;
	size_t len;
	rate_encoder encode;
	rate_decoder decode;
} rate_rows[] = {
    {PROFILE_V1, request_v1, sizeof request_v1 - 1, pdu_encode_request,
	pdu_decode_request},
    {PROFILE_V2, request_v2, sizeof request_v2 - 1, pdu_encode_request,
	pdu_decode_request},
    {PROFILE_V1, response_v1, sizeof response_v1 - 1, pdu_encode_response,
	pdu_decode_response},
    {PROFILE_V2, response_v2, sizeof response_v2 - 1, pdu_encode_response,
	pdu_decode_response},
};

START_TEST(encode_rate)
{
	const struct rate_row *row = &rate_rows[_i];
	uint8_t out[ROOM];
	size_t len = 77, cap;

	/* The caller's id is not NUL-ended; sixteen bytes count. */
	memset(out, 0xaa, sizeof out);
	for (cap = 0; cap < row->len; cap++) {
		ck_assert_int_eq(
		    row->encode(row->profile, &rate, out, cap, &len),
		    RLA_ETOOBIG);
		ck_assert_uint_eq(out[cap], 0xaa);
		ck_assert_uint_eq(len, 77);
	}
	ck_assert_int_eq(
	    row->encode(row->profile, &rate, out, row->len, &len), 0);
	ck_assert_uint_eq(len, row->len);
	ck_assert_mem_eq(out, row->bytes, len);
	ck_assert_uint_eq(out[len], 0xaa);
}
END_TEST

START_TEST(decode_rate)
{
	const struct rate_row *row = &rate_rows[_i];
	bool request = row->decode == pdu_decode_request;
	const struct pdu_guard *g;
	const struct pdu_resource *r;
	struct pdu_rate out;

	memset(&out, 0xaa, sizeof out);
	ck_assert_int_eq(row->decode(row->profile, (const uint8_t *)row->bytes,
			     row->len, &out),
	    0);
	ck_assert_uint_eq(out.dedup_ttl_ms, request ? 0x04030201 : 0);
	ck_assert_uint_eq(out.guard_count, 1);
	ck_assert_uint_eq(out.resource_count, 1);
	g = &out.guards[0];
	ck_assert_mem_eq(g->id, GUARD_ID, ID_LEN);
	ck_assert_uint_eq(g->ttl_ms, 1);
	ck_assert_uint_eq(g->max_samples, 2);
	ck_assert_uint_eq(g->buffer_size, row->profile == PROFILE_V1 ? 3 : 0);
	ck_assert_uint_eq(g->min_samples, 4);
	ck_assert_uint_eq(g->threshold_ms, 5);
	ck_assert_uint_eq(g->current_ms, request ? 0 : 6);
	r = &out.resources[0];
	ck_assert_mem_eq(r->id, RES_ID, ID_LEN);
	ck_assert_uint_eq(r->window_ms, 7);
	ck_assert_uint_eq(r->limit, 8);
	ck_assert_uint_eq(r->tokens, 0x0a09);
	ck_assert_uint_eq(out.label_len, request ? 3 : 0);
	if (request)
		ck_assert_mem_eq(out.label, "api", 3);
	else
		ck_assert_ptr_null(out.label);
}
END_TEST

START_TEST(reports)
{
	bool v1 = _i == 0;
	enum profile profile = v1 ? PROFILE_V1 : PROFILE_V2;
	const char *bytes = v1 ? report_v1 : report_v2;
	size_t want = (v1 ? sizeof report_v1 : sizeof report_v2) - 1, len, n;
	struct pdu_report out;
	uint8_t buf[ROOM];

	ck_assert_int_eq(
	    pdu_encode_report(profile, &report, buf, want - 1, &len),
	    RLA_ETOOBIG);
	ck_assert_int_eq(
	    pdu_encode_report(profile, &report, buf, want, &len), 0);
	ck_assert_uint_eq(len, want);
	ck_assert_mem_eq(buf, bytes, want);
	ck_assert_int_eq(pdu_decode_report(profile, buf, len, &out), 0);
	ck_assert_uint_eq(out.count, 1);
	ck_assert_mem_eq(out.samples[0].id, GUARD_ID, ID_LEN);
	ck_assert_uint_eq(out.samples[0].ttl_ms, 1);
	ck_assert_uint_eq(out.samples[0].max_samples, 2);
	ck_assert_uint_eq(out.samples[0].buffer_size, v1 ? 3 : 0);
	ck_assert_uint_eq(out.samples[0].min_samples, 4);
	ck_assert_uint_eq(out.samples[0].observed_ms, 11);
	for (n = 0; n < len; n++)
		ck_assert_int_eq(
		    pdu_decode_report(profile, buf, n, &out), RLA_ESHORT);
	/* The header word and the zero after the count are not read. */
	memset(buf + 4, 0xff, 4);
	memset(buf + 10, 0xff, 2);
	ck_assert_int_eq(pdu_decode_report(profile, buf, len, &out), 0);
	/* Inside the declared size there is nothing but blocks. */
	memset(buf + len, 0, 4);
	ck_assert_int_eq(pdu_decode_report(profile, buf, len + 4, &out), 0);
	buf[2] = (uint8_t)(len + 4);
	ck_assert_int_eq(
	    pdu_decode_report(profile, buf, len + 4, &out), RLA_EMALFORMED);
	buf[2] = (uint8_t)(len - 1);
	ck_assert_int_eq(
	    pdu_decode_report(profile, buf, len, &out), RLA_EMALFORMED);
}
END_TEST

/* Copies of the exact size, so that ASan sees a read past the end. */
START_TEST(every_truncation)
{
	const struct rate_row *row = &rate_rows[_i];
	struct pdu_rate out;
	uint8_t *copy;
	size_t n;

	for (n = 0; n < row->len; n++) {
		copy = malloc(n + (n == 0));
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, row->bytes, n);
		/* Cut off is short. Declared short as well is malformed,
		 * but a request may do without its label. */
		ck_assert_int_eq(
		    row->decode(row->profile, copy, n, &out), RLA_ESHORT);
		if (n >= 8) {
			bool label = row->decode == pdu_decode_request &&
				     n == row->len - 12;

			copy[2] = (uint8_t)n;
			ck_assert_int_eq(
			    row->decode(row->profile, copy, n, &out),
			    label ? 0 : RLA_EMALFORMED);
		}
		free(copy);
	}
}
END_TEST

/* One type's bytes are no other type's, whatever the sizes. */
START_TEST(types)
{
	uint8_t bytes[sizeof report_v1 - 1];
	struct pdu_rate r;
	struct pdu_report p;

	memcpy(bytes, report_v1, sizeof bytes);
	ck_assert_uint_eq(pdu_type(bytes, sizeof bytes), PDU_LATENCY_REPORT);
	ck_assert_uint_eq(pdu_type(bytes, 8), PDU_LATENCY_REPORT);
	ck_assert_uint_eq(pdu_type(bytes, 7), 0);
	ck_assert_uint_eq(pdu_type(NULL, 0), 0);
	ck_assert_int_eq(
	    pdu_decode_request(PROFILE_V1, bytes, sizeof bytes, &r),
	    RLA_EMALFORMED);
	ck_assert_int_eq(
	    pdu_decode_response(PROFILE_V1, bytes, sizeof bytes, &r),
	    RLA_EMALFORMED);
	ck_assert_int_eq(
	    pdu_decode_report(PROFILE_V1, (const uint8_t *)request_v1,
		sizeof request_v1 - 1, &p),
	    RLA_EMALFORMED);
	ck_assert_int_eq(
	    pdu_decode_response(PROFILE_V1, (const uint8_t *)request_v1,
		sizeof request_v1 - 1, &r),
	    RLA_EMALFORMED);
	ck_assert_int_eq(
	    pdu_decode_request(PROFILE_V1, NULL, 0, &r), RLA_ESHORT);
}
END_TEST

START_TEST(after_the_blocks)
{
	const struct rate_row *row = &rate_rows[_i];
	bool request = row->decode == pdu_decode_request;
	struct pdu_rate out;
	uint8_t buf[ROOM];

	memcpy(buf, row->bytes, row->len);
	memset(buf + row->len, 0xff, 8);
	/* After the declared size anything goes. */
	ck_assert_int_eq(row->decode(row->profile, buf, row->len + 8, &out), 0);
	/* Inside it a response may grow, a request may not. */
	buf[2] = (uint8_t)(row->len + 8);
	ck_assert_int_eq(row->decode(row->profile, buf, row->len + 8, &out),
	    request ? RLA_EMALFORMED : 0);
	if (!request) {
		ck_assert_uint_eq(out.resource_count, 1);
		ck_assert_ptr_null(out.label);
	}
	ck_assert_int_eq(
	    row->decode(row->profile, buf, row->len + 7, &out), RLA_ESHORT);
}
END_TEST

/* Padding of blocks and, in a response, the header word are ignored. */
START_TEST(ignored_fields)
{
	const struct rate_row *row = &rate_rows[_i];
	size_t pad = 12 + (row->profile == PROFILE_V1 ? 40 : 36) + 26;
	struct pdu_rate out;
	uint8_t buf[ROOM];

	memcpy(buf, row->bytes, row->len);
	memset(buf + pad, 0xff, 2);
	memset(buf + pad - 30, 0xff, 2); /* current_latency */
	memset(buf + 4, 0xff, 4);
	ck_assert_int_eq(row->decode(row->profile, buf, row->len, &out), 0);
	ck_assert_uint_eq(out.resources[0].tokens, 0x0a09);
	if (row->decode == pdu_decode_request) {
		ck_assert_uint_eq(out.dedup_ttl_ms, UINT32_MAX);
		ck_assert_uint_eq(out.guards[0].current_ms, 0);
	} else {
		ck_assert_uint_eq(out.dedup_ttl_ms, 0);
		ck_assert_uint_eq(out.guards[0].current_ms, 0xffff);
	}
}
END_TEST

/* A request of nothing but a label TLV, given as it is. */
static int
decode_label(const void *tlv, size_t len, struct pdu_rate *out)
{
	static uint8_t pdu[1024];

	memcpy(pdu, "RT\0\0\1\0\0\0\0\0\0\0", 12);
	memcpy(pdu + 12, tlv, len);
	pdu[2] = (uint8_t)(12 + len);
	pdu[3] = (uint8_t)((12 + len) >> 8);
	return pdu_decode_request(PROFILE_V2, pdu, 12 + len, out);
}

START_TEST(label_lengths)
{
	uint8_t label[PDU_LABEL_MAX + 1], buf[ROOM];
	struct pdu_rate in = {.label = label}, out;
	size_t len, n;

	for (n = 0; n < sizeof label; n++)
		label[n] = (uint8_t)n; /* starts with a NUL, and is sent */
	for (n = 0; n <= PDU_LABEL_MAX; n++) {
		in.label_len = n;
		ck_assert_int_eq(
		    pdu_encode_request(PROFILE_V2, &in, buf, ROOM, &len), 0);
		ck_assert_uint_eq(len, 12 + (n == 0 ? 0 : (6 + n + 3) / 4 * 4));
		ck_assert_uint_eq(buf[2] | buf[3] << 8, len);
		ck_assert_int_eq(
		    pdu_decode_request(PROFILE_V2, buf, len, &out), 0);
		ck_assert_uint_eq(out.label_len, n);
		if (n == 0)
			ck_assert_ptr_null(out.label);
		else
			ck_assert_mem_eq(out.label, label, n);
	}
	in.label_len = PDU_LABEL_MAX + 1;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &in, buf, ROOM, &len), RLA_ETOOBIG);
	/* A response has no label to be too long. */
	ck_assert_int_eq(
	    pdu_encode_response(PROFILE_V2, &in, buf, ROOM, &len), 0);
	ck_assert_uint_eq(len, 12);
}
END_TEST

START_TEST(label_malformed)
{
	static const struct {
		const char *tlv;
		size_t len;
	} rows[] = {
	    {"NL\x0c\0\x03\0api\0\0\0", 12},         /* type */
	    {"ML\x0b\0\x03\0api\0\0\0", 12},         /* size under */
	    {"ML\x10\0\x03\0api\0\0\0", 12},         /* size over */
	    {"ML\x10\0\x03\0api\0\0\0\0\0\0\0", 16}, /* padding of 7 */
	    {"ML\x09\0\x03\0api", 9},                /* no multiple of 4 */
	    {"ML\x0c\0\x07\0api\0\0\0", 12},         /* length over */
	    {"ML\x0c\0\x02\0api\0\0\0", 12},         /* a byte in the padding */
	    {"ML\x0c\0\x03\0api\0\0\1", 12},
	    {"ML\x08\0\0\0\0\0", 8}, /* empty: would be left out */
	    {"ML\x0c\0\x03\0api\0\0\0ML\x0c\0\x03\0api\0\0\0", 24}, /* two */
	    {"ML\x0c\0\x03\0api\0\0\0\0\0\0\0", 16}, /* something after it */
	    {"M", 1},
	    {"ML", 2},
	    {"ML\x08\0\1", 5},
	    {"ML\x08\0\1\0", 6},
	};
	uint8_t big[6 + 258] = "ML\x08\x01\x01\x01"; /* 264 and 257 */
	struct pdu_rate out;
	size_t i;

	for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ck_assert_msg(decode_label(rows[i].tlv, rows[i].len, &out) ==
				  RLA_EMALFORMED,
		    "row %zu accepted", i);
	ck_assert_int_eq(decode_label(big, 264, &out), RLA_EMALFORMED);
	big[4] = 0; /* 256 */
	ck_assert_int_eq(decode_label(big, 264, &out), 0);
	ck_assert_uint_eq(out.label_len, 256);
	ck_assert_int_eq(decode_label("ML\x0c\0\x03\0api\0\0\0", 12, &out), 0);
}
END_TEST

START_TEST(caps)
{
	struct pdu_rate in = {0}, out;
	struct pdu_report p = {0};
	uint8_t buf[ROOM] = {0};
	size_t len;

	in.resource_count = PDU_MAX_RESOURCES;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &in, buf, ROOM, &len), 0);
	ck_assert_uint_eq(len, 12 + 40 * 28);
	ck_assert_int_eq(pdu_decode_request(PROFILE_V2, buf, len, &out), 0);
	in.resource_count++;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &in, buf, ROOM, &len), RLA_ETOOBIG);
	in.resource_count = 0;
	in.guard_count = PDU_MAX_GUARDS;
	ck_assert_int_eq(
	    pdu_encode_response(PROFILE_V1, &in, buf, ROOM, &len), 0);
	ck_assert_uint_eq(len, 12 + 31 * 40);
	in.guard_count++;
	ck_assert_int_eq(
	    pdu_encode_response(PROFILE_V1, &in, buf, ROOM, &len), RLA_ETOOBIG);
	in.guard_count = 20;
	in.resource_count = 21;
	ck_assert_int_eq(
	    pdu_encode_request(PROFILE_V2, &in, buf, ROOM, &len), RLA_ETOOBIG);
	p.count = PDU_MAX_REPORTS;
	ck_assert_int_eq(pdu_encode_report(PROFILE_V1, &p, buf, ROOM, &len), 0);
	ck_assert_uint_eq(len, 12 + 35 * 36);
	p.count++;
	ck_assert_int_eq(
	    pdu_encode_report(PROFILE_V1, &p, buf, ROOM, &len), RLA_ETOOBIG);
}
END_TEST

/* The closed form is what the encoder writes, for every count and length. */
static void
expect_size(enum profile profile, const struct pdu_rate *in)
{
	uint8_t out[ROOM];
	size_t len = SIZE_MAX;

	if (pdu_encode_request(profile, in, out, sizeof(out), &len) != 0)
		len = SIZE_MAX;
	ck_assert_uint_eq(len, pdu_request_size(profile, in->guard_count,
				   in->resource_count, in->label_len));
}

START_TEST(request_sizes)
{
	static const uint8_t label[PDU_LABEL_MAX + 2];
	const enum profile profile = _i == 0 ? PROFILE_V1 : PROFILE_V2;
	static const size_t lengths[] = {0, 1, 2, 3, PDU_LABEL_MAX};
	struct pdu_rate in = {.label = label};

	for (size_t g = 0; g <= PDU_MAX_GUARDS + 1; g++) {
		for (size_t r = 0; r <= PDU_MAX_RESOURCES + 1; r++) {
			in.guard_count = g;
			in.resource_count = r;
			for (size_t i = 0; i < 5; i++) {
				in.label_len = lengths[i];
				expect_size(profile, &in);
			}
		}
	}
	in.guard_count = in.resource_count = 1;
	for (in.label_len = 0; in.label_len <= PDU_LABEL_MAX + 1;
	     in.label_len++)
		expect_size(profile, &in);
	ck_assert_uint_eq(pdu_request_size(profile, SIZE_MAX, 0, 0), SIZE_MAX);
	ck_assert_uint_eq(pdu_request_size(profile, 1, SIZE_MAX, 0), SIZE_MAX);
	ck_assert_uint_eq(pdu_request_size(profile, 1, 0, SIZE_MAX), SIZE_MAX);
}
END_TEST

static void
put_header(uint8_t *buf, const char *type, size_t size, uint16_t a, uint16_t b)
{
	memset(buf, 0, size);
	memcpy(buf, type, 2);
	buf[2] = (uint8_t)size;
	buf[3] = (uint8_t)(size >> 8);
	buf[8] = (uint8_t)a;
	buf[9] = (uint8_t)(a >> 8);
	buf[10] = (uint8_t)b;
	buf[11] = (uint8_t)(b >> 8);
}

/* Blocks that are all there but too many; counts that promise too much. */
START_TEST(decode_caps)
{
	static uint8_t buf[65536];
	struct pdu_rate out;
	struct pdu_report p;

	put_header(buf, "RR", 12 + 41 * 28, 0, 41);
	ck_assert_int_eq(pdu_decode_response(PROFILE_V2, buf, sizeof buf, &out),
	    RLA_ETOOBIG);
	put_header(buf, "RR", 12 + 32 * 36, 32, 0);
	ck_assert_int_eq(pdu_decode_response(PROFILE_V2, buf, sizeof buf, &out),
	    RLA_ETOOBIG);
	put_header(buf, "RR", 12 + 31 * 36 + 9 * 28, 31, 9);
	ck_assert_int_eq(
	    pdu_decode_response(PROFILE_V2, buf, sizeof buf, &out), 0);
	put_header(buf, "RR", 12 + 31 * 36 + 10 * 28, 31, 10);
	ck_assert_int_eq(pdu_decode_response(PROFILE_V2, buf, sizeof buf, &out),
	    RLA_ETOOBIG);
	put_header(buf, "LR", 12 + 36 * 32, 36, 0);
	ck_assert_int_eq(
	    pdu_decode_report(PROFILE_V2, buf, sizeof buf, &p), RLA_ETOOBIG);
	put_header(buf, "RT", 65535, 65535, 65535);
	ck_assert_int_eq(pdu_decode_request(PROFILE_V2, buf, sizeof buf, &out),
	    RLA_EMALFORMED);
	put_header(buf, "RT", 12, 0, 65535);
	ck_assert_int_eq(
	    pdu_decode_request(PROFILE_V2, buf, 12, &out), RLA_EMALFORMED);
	put_header(buf, "RT", 12, 0, 0);
	ck_assert_int_eq(pdu_decode_request(PROFILE_V2, buf, 12, &out), 0);
	ck_assert_uint_eq(out.guard_count + out.resource_count, 0);
}
END_TEST

static void
random_rate(uint64_t *seed, enum profile profile, struct pdu_rate *r,
    const uint8_t *label)
{
	size_t i;

	memset(r, 0, sizeof *r);
	r->guard_count = harness_below(seed, PDU_MAX_GUARDS + 1);
	r->resource_count = harness_below(
	    seed, (uint32_t)(PDU_MAX_BLOCKS - r->guard_count) + 1);
	r->dedup_ttl_ms = (uint32_t)harness_random(seed);
	for (i = 0; i < r->guard_count; i++) {
		harness_fill(seed, &r->guards[i], sizeof r->guards[i]);
		r->guards[i].current_ms = 0;
		if (profile == PROFILE_V2)
			r->guards[i].buffer_size = 0;
	}
	for (i = 0; i < r->resource_count; i++) {
		struct pdu_resource *res = &r->resources[i];

		harness_fill(seed, res->id, ID_LEN);
		res->window_ms = (uint32_t)harness_random(seed);
		res->limit = (uint32_t)harness_random(seed);
		res->tokens = (uint16_t)harness_random(seed);
	}
	r->label_len = harness_below(seed, PDU_LABEL_MAX + 1);
	r->label = r->label_len > 0 ? label : NULL;
}

START_TEST(rate_round_trip)
{
	uint64_t seed = harness_seed();
	enum profile profile = _i == 0 ? PROFILE_V1 : PROFILE_V2;
	uint8_t label[PDU_LABEL_MAX], buf[ROOM];
	static struct pdu_rate in, out;
	size_t len;
	int round;

	for (round = 0; round < 1000; round++) {
		harness_fill(&seed, label, sizeof label);
		random_rate(&seed, profile, &in, label);
		memset(&out, 0, sizeof out);
		ck_assert_int_eq(
		    pdu_encode_request(profile, &in, buf, ROOM, &len), 0);
		ck_assert_int_eq(
		    pdu_decode_request(profile, buf, len, &out), 0);
		ck_assert_uint_eq(out.label_len, in.label_len);
		if (in.label_len > 0)
			ck_assert_mem_eq(out.label, label, in.label_len);
		out.label = in.label;
		ck_assert_int_eq(memcmp(&in, &out, sizeof in), 0);
		/* The response form of the same blocks. */
		in.dedup_ttl_ms = 0;
		in.label = NULL;
		in.label_len = 0;
		if (in.guard_count > 0)
			in.guards[in.guard_count - 1].current_ms = 99;
		memset(&out, 0, sizeof out);
		ck_assert_int_eq(
		    pdu_encode_response(profile, &in, buf, ROOM, &len), 0);
		ck_assert_int_eq(
		    pdu_decode_response(profile, buf, len, &out), 0);
		ck_assert_int_eq(memcmp(&in, &out, sizeof in), 0);
	}
}
END_TEST

/* Bytes of any kind: an answer of some kind, and the sanitizers are quiet. */
START_TEST(decoding_is_total)
{
	uint64_t seed = harness_seed();
	static const char *const heads[] = {"RT", "RR", "LR"};
	static struct pdu_rate out;
	struct pdu_report p;
	uint8_t *heap;
	size_t len;
	int round, good = 0;

	for (round = 0; round < 20000; round++) {
		len = 12 + harness_below(&seed, 120);
		heap = malloc(len);
		ck_assert_ptr_nonnull(heap);
		harness_fill(&seed, heap, len);
		memcpy(heap, heads[round % 3], 2);
		heap[2] = (uint8_t)(len - harness_below(&seed, 2));
		heap[3] = 0;
		heap[8] &= 1;
		heap[10] &= 1;
		heap[9] = heap[11] = 0;
		good += pdu_decode_request(PROFILE_V1, heap, len, &out) == 0;
		good += pdu_decode_request(PROFILE_V2, heap, len, &out) == 0;
		good += pdu_decode_response(PROFILE_V1, heap, len, &out) == 0;
		good += pdu_decode_response(PROFILE_V2, heap, len, &out) == 0;
		good += pdu_decode_report(PROFILE_V1, heap, len, &p) == 0;
		good += pdu_decode_report(PROFILE_V2, heap, len, &p) == 0;
		free(heap);
	}
	/* The bytes were near enough to messages to reach the blocks. */
	ck_assert_int_gt(good, 100);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pdu");
	TCase *tc = tcase_create("pdu");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, encode_rate, 0, 4);
	tcase_add_loop_test(tc, decode_rate, 0, 4);
	tcase_add_loop_test(tc, reports, 0, 2);
	tcase_add_loop_test(tc, every_truncation, 0, 4);
	tcase_add_test(tc, types);
	tcase_add_loop_test(tc, after_the_blocks, 0, 4);
	tcase_add_loop_test(tc, ignored_fields, 0, 4);
	tcase_add_test(tc, label_lengths);
	tcase_add_test(tc, label_malformed);
	tcase_add_test(tc, caps);
	tcase_add_loop_test(tc, request_sizes, 0, 2);
	tcase_add_test(tc, decode_caps);
	tcase_add_loop_test(tc, rate_round_trip, 0, 2);
	tcase_add_test(tc, decoding_is_total);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
