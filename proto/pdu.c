/*
 * The three PDUs of the r-server protocol in both profiles. Everything is read
 * through the reader and written through the writer; a decoder fills *out from
 * bytes that it has checked to be there, or returns an error.
 *
 * Header (r-client specification, section 7) and counts:
 *
 *   0  type          2
 *   2  size          2    of the whole PDU; bytes after it are ignored
 *   4  dedup TTL     4    ms in a rate request, else 0
 *   8  guard count   2    rate request, response     report count  2
 *  10  resources     2                               zero          2
 *  12  guards, then resources                        reports
 *
 * What may follow the blocks inside the declared size: in a request one label
 * TLV and nothing else, since a server answers no malformed request; in a
 * report nothing; in a response anything, which is ignored.
 */
#include "proto/pdu.h"

#include <assert.h>
#include <stdbool.h>

#include "proto/err.h"
#include "proto/reader.h"
#include "proto/writer.h"

#define HEADER_LEN      8
#define SIZE_OFFSET     2
#define COUNTS_LEN      4
#define RESOURCE_LEN    28
#define LABEL_TYPE      0x4C4D
#define LABEL_HEAD_LEN  6
#define BUFFER_SIZE_LEN 4 /* the field that only PROFILE_V1 has */

/*
 * Guard block (5.2)                    Report block (5.4)
 *    0  latency_tracker_id   16           0  latency_tracker_id   16
 *   16  ttl_ms                4          16  ttl_ms                4
 *   20  max_samples           4          20  max_samples           4
 *   24  buffer_size, v1 only  4          24  buffer_size, v1 only  4
 *   28  min_sample_threshold  4          28  min_sample_threshold  4
 *   32  latency_threshold     4          32  observed_latency      4
 *   36  current_latency       4          36
 *   40
 */
static size_t
guard_len(enum profile profile)
{
	return profile == PROFILE_V1 ? 40 : 40 - BUFFER_SIZE_LEN;
}

static size_t
sample_len(enum profile profile)
{
	return profile == PROFILE_V1 ? 36 : 36 - BUFFER_SIZE_LEN;
}

static void
write_guard(struct writer *w, enum profile profile, const struct pdu_guard *g,
    bool response)
{
	writer_bytes(w, g->id, ID_LEN);
	writer_u32(w, g->ttl_ms);
	writer_u32(w, g->max_samples);
	if (profile == PROFILE_V1)
		writer_u32(w, g->buffer_size);
	writer_u32(w, g->min_samples);
	writer_u32(w, g->threshold_ms);
	writer_u32(w, response ? g->current_ms : 0);
}

static void
read_guard(
    struct reader *r, enum profile profile, struct pdu_guard *g, bool response)
{
	uint32_t current;

	reader_copy(r, g->id, ID_LEN);
	g->ttl_ms = reader_u32(r);
	g->max_samples = reader_u32(r);
	g->buffer_size = profile == PROFILE_V1 ? reader_u32(r) : 0;
	g->min_samples = reader_u32(r);
	g->threshold_ms = reader_u32(r);
	current = reader_u32(r);
	g->current_ms = response ? current : 0;
}

static void
write_sample(struct writer *w, enum profile profile, const struct pdu_sample *s)
{
	writer_bytes(w, s->id, ID_LEN);
	writer_u32(w, s->ttl_ms);
	writer_u32(w, s->max_samples);
	if (profile == PROFILE_V1)
		writer_u32(w, s->buffer_size);
	writer_u32(w, s->min_samples);
	writer_u32(w, s->observed_ms);
}

static void
read_sample(struct reader *r, enum profile profile, struct pdu_sample *s)
{
	reader_copy(r, s->id, ID_LEN);
	s->ttl_ms = reader_u32(r);
	s->max_samples = reader_u32(r);
	s->buffer_size = profile == PROFILE_V1 ? reader_u32(r) : 0;
	s->min_samples = reader_u32(r);
	s->observed_ms = reader_u32(r);
}

/*
 * Resource block (5.3)
 *    0  bucket_id        16
 *   16  window_size_ms    4
 *   20  rate_limit        4    a response: the actual rate
 *   24  tokens_requested  2    a response: the deficit
 *   26  padding           2
 *   28
 */
static void
write_resource(struct writer *w, const struct pdu_resource *res)
{
	writer_bytes(w, res->id, ID_LEN);
	writer_u32(w, res->window_ms);
	writer_u32(w, res->limit);
	writer_u16(w, res->tokens);
	writer_zeros(w, 2);
}

static void
read_resource(struct reader *r, struct pdu_resource *res)
{
	reader_copy(r, res->id, ID_LEN);
	res->window_ms = reader_u32(r);
	res->limit = reader_u32(r);
	res->tokens = reader_u16(r);
	reader_u16(r);
}

/*
 * Metrics label TLV (7.1.1)
 *   0  type 0x4C4D   2
 *   2  size          2    of the whole TLV, a multiple of 4
 *   4  byte length   2
 *   6  bytes, then zeros up to size
 */
static size_t
label_size(size_t len)
{
	return (LABEL_HEAD_LEN + len + 3) & ~(size_t)3;
}

static void
write_label(struct writer *w, const uint8_t *label, size_t len)
{
	size_t size = label_size(len);

	if (len == 0)
		return;
	writer_u16(w, LABEL_TYPE);
	writer_u16(w, (uint16_t)size);
	writer_u16(w, (uint16_t)len);
	writer_bytes(w, label, len);
	writer_zeros(w, size - LABEL_HEAD_LEN - len);
}

/*
 * The rest of a request is nothing or exactly one label, as the encoder would
 * write it: an empty label is left out, and padding is short and zero.
 */
static int
read_label(struct reader *r, struct pdu_rate *out)
{
	size_t left = reader_left(r), len;
	const uint8_t *label;
	uint16_t type, size;
	uint8_t padding = 0;

	if (left == 0)
		return 0;
	type = reader_u16(r);
	size = reader_u16(r);
	len = reader_u16(r);
	label = reader_bytes(r, len);
	if (!reader_ok(r) || type != LABEL_TYPE || size != left || len == 0 ||
	    len > PDU_LABEL_MAX || size != label_size(len))
		return RLA_EMALFORMED;
	while (reader_left(r) > 0)
		padding |= reader_u8(r);
	if (padding != 0)
		return RLA_EMALFORMED;
	out->label = label;
	out->label_len = len;
	return 0;
}

uint16_t
pdu_type(const uint8_t *pdu, size_t len)
{
	struct reader r;

	reader_init(&r, pdu, len);
	return reader_left(&r) < HEADER_LEN ? 0 : reader_u16(&r);
}

/* The size is patched by finish(), when it is known. */
static void
write_header(struct writer *w, enum pdu_type type, uint32_t word)
{
	writer_u16(w, (uint16_t)type);
	writer_u16(w, 0);
	writer_u32(w, word);
}

/* The largest counts and label together stay far below 65536 bytes. */
static int
finish(struct writer *w, size_t *out_len)
{
	if (!writer_ok(w))
		return RLA_ETOOBIG;
	writer_patch_u16(w, SIZE_OFFSET, (uint16_t)writer_len(w));
	*out_len = writer_len(w);
	return 0;
}

/* Checks the header; *body is then what the declared size holds after it. */
static int
read_header(const uint8_t *pdu, size_t len, enum pdu_type type, uint32_t *word,
    struct reader *body)
{
	struct reader r;
	uint16_t got, size;

	reader_init(&r, pdu, len);
	got = reader_u16(&r);
	size = reader_u16(&r);
	*word = reader_u32(&r);
	if (!reader_ok(&r))
		return RLA_ESHORT;
	if (got != type || size < HEADER_LEN + COUNTS_LEN)
		return RLA_EMALFORMED;
	*body = reader_sub(&r, size - (size_t)HEADER_LEN);
	return reader_ok(body) ? 0 : RLA_ESHORT;
}

static bool
counts_fit(size_t guards, size_t resources)
{
	return guards <= PDU_MAX_GUARDS && resources <= PDU_MAX_RESOURCES &&
	       guards + resources <= PDU_MAX_BLOCKS;
}

size_t
pdu_request_size(
    enum profile profile, size_t guards, size_t resources, size_t label_len)
{
	if (!counts_fit(guards, resources) || label_len > PDU_LABEL_MAX)
		return SIZE_MAX;
	return HEADER_LEN + COUNTS_LEN + guards * guard_len(profile) +
	       resources * RESOURCE_LEN +
	       (label_len > 0 ? label_size(label_len) : 0);
}

static int
encode_rate(enum profile profile, enum pdu_type type,
    const struct pdu_rate *rate, uint8_t *out, size_t cap, size_t *out_len)
{
	bool response = type == PDU_RATE_RESPONSE;
	struct writer w;
	size_t i;

	if (!counts_fit(rate->guard_count, rate->resource_count))
		return RLA_ETOOBIG;
	writer_init(&w, out, cap);
	write_header(&w, type, response ? 0 : rate->dedup_ttl_ms);
	writer_u16(&w, (uint16_t)rate->guard_count);
	writer_u16(&w, (uint16_t)rate->resource_count);
	for (i = 0; i < rate->guard_count; i++)
		write_guard(&w, profile, &rate->guards[i], response);
	for (i = 0; i < rate->resource_count; i++)
		write_resource(&w, &rate->resources[i]);
	if (!response)
		write_label(&w, rate->label, rate->label_len);
	return finish(&w, out_len);
}

int
pdu_encode_request(enum profile profile, const struct pdu_rate *rate,
    uint8_t *out, size_t cap, size_t *out_len)
{
	if (rate->label_len > PDU_LABEL_MAX)
		return RLA_ETOOBIG;
	return encode_rate(profile, PDU_RATE_REQUEST, rate, out, cap, out_len);
}

int
pdu_encode_response(enum profile profile, const struct pdu_rate *rate,
    uint8_t *out, size_t cap, size_t *out_len)
{
	return encode_rate(profile, PDU_RATE_RESPONSE, rate, out, cap, out_len);
}

int
pdu_encode_report(enum profile profile, const struct pdu_report *report,
    uint8_t *out, size_t cap, size_t *out_len)
{
	struct writer w;
	size_t i;

	if (report->count > PDU_MAX_REPORTS)
		return RLA_ETOOBIG;
	writer_init(&w, out, cap);
	write_header(&w, PDU_LATENCY_REPORT, 0);
	writer_u16(&w, (uint16_t)report->count);
	writer_u16(&w, 0);
	for (i = 0; i < report->count; i++)
		write_sample(&w, profile, &report->samples[i]);
	return finish(&w, out_len);
}

/* Leaves *body after the blocks. */
static int
decode_rate(enum profile profile, enum pdu_type type, const uint8_t *pdu,
    size_t len, struct pdu_rate *out, struct reader *body)
{
	bool response = type == PDU_RATE_RESPONSE;
	size_t guards, resources, i;
	uint32_t word;
	int rc = read_header(pdu, len, type, &word, body);

	if (rc != 0)
		return rc;
	guards = reader_u16(body);
	resources = reader_u16(body);
	if (guards * guard_len(profile) + resources * RESOURCE_LEN >
	    reader_left(body))
		return RLA_EMALFORMED;
	if (!counts_fit(guards, resources))
		return RLA_ETOOBIG;
	for (i = 0; i < guards; i++)
		read_guard(body, profile, &out->guards[i], response);
	for (i = 0; i < resources; i++)
		read_resource(body, &out->resources[i]);
	assert(reader_ok(body));
	out->dedup_ttl_ms = response ? 0 : word;
	out->guard_count = guards;
	out->resource_count = resources;
	out->label = NULL;
	out->label_len = 0;
	return 0;
}

int
pdu_decode_request(
    enum profile profile, const uint8_t *pdu, size_t len, struct pdu_rate *out)
{
	struct reader body;
	int rc = decode_rate(profile, PDU_RATE_REQUEST, pdu, len, out, &body);

	return rc != 0 ? rc : read_label(&body, out);
}

int
pdu_decode_response(
    enum profile profile, const uint8_t *pdu, size_t len, struct pdu_rate *out)
{
	struct reader body;

	return decode_rate(profile, PDU_RATE_RESPONSE, pdu, len, out, &body);
}

int
pdu_decode_report(enum profile profile, const uint8_t *pdu, size_t len,
    struct pdu_report *out)
{
	struct reader body;
	uint32_t word;
	size_t count, i;
	int rc = read_header(pdu, len, PDU_LATENCY_REPORT, &word, &body);

	if (rc != 0)
		return rc;
	count = reader_u16(&body);
	reader_u16(&body);
	if (count * sample_len(profile) != reader_left(&body))
		return RLA_EMALFORMED;
	if (count > PDU_MAX_REPORTS)
		return RLA_ETOOBIG;
	for (i = 0; i < count; i++)
		read_sample(&body, profile, &out->samples[i]);
	assert(reader_done(&body));
	out->count = count;
	return 0;
}
