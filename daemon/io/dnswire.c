/*
 * DNS messages as bytes: the question, written here, and the verdict on a
 * response, which is scanned strictly first (dnsscan) before what is in it is
 * looked at (dnsextract).
 */
#include "daemon/io/dnswire.h"

#include <assert.h>
#include <byteswap.h>
#include <string.h>

#include "daemon/io/dnsextract.h"
#include "proto/err.h"
#include "proto/writer.h"

#define FLAG_RD 0x0100
#define FLAG_AD 0x0020

/* RFC 1035 section 4.1.1, RFC 6891 section 9. */
enum rcode {
	RCODE_NOERROR = 0,
	RCODE_FORMERR = 1,
	RCODE_NXDOMAIN = 3,
	RCODE_NOTIMPL = 4,
	RCODE_BADVERS = 16,
};

static void
put16(struct writer *w, uint16_t v)
{
	writer_u16(w, bswap_16(v));
}

/* Appends the labels of a text name and the root. */
static int
put_name(struct writer *w, const char *text)
{
	size_t len;

	while (*text != '\0') {
		len = strcspn(text, ".");
		if (len < 1 || len > 63)
			return RLA_EINVAL;
		for (size_t i = 0; i < len; i++) {
			if (!dnsextract_host_char((uint8_t)text[i]))
				return RLA_EINVAL;
		}
		writer_u8(w, (uint8_t)len);
		writer_bytes(w, text, len);
		text += len;
		text += *text == '.';
	}
	writer_u8(w, 0);
	return writer_ok(w) && writer_len(w) > 1 ? 0 : RLA_EINVAL;
}

static void
put_type(struct dnswire_question *q, size_t name_len)
{
	struct writer w;

	q->len = name_len + 4;
	writer_init(&w, q->bytes + name_len, 4);
	put16(&w, (uint16_t)q->type);
	put16(&w, DNSSCAN_IN);
}

int
dnswire_question_init(struct dnswire_question *q, const char *name,
    enum dns_type type, bool require_ad)
{
	struct writer w;
	int rc;

	*q = (struct dnswire_question){
	    .type = type, .edns = true, .require_ad = require_ad};
	writer_init(&w, q->bytes, DNSSCAN_NAME_MAX);
	rc = put_name(&w, name);
	if (rc != 0)
		return rc;
	put_type(q, writer_len(&w));
	return 0;
}

void
dnswire_question_rename(
    struct dnswire_question *q, const struct dnswire_name *name)
{
	assert(name->len > 0 && name->len <= DNSSCAN_NAME_MAX);
	memcpy(q->bytes, name->bytes, name->len);
	put_type(q, name->len);
}

void
dnswire_question_name(
    const struct dnswire_question *q, struct dnswire_name *out)
{
	out->len = q->len - 4;
	memcpy(out->bytes, q->bytes, out->len);
}

bool
dnswire_same_name(const struct dnswire_name *a, const struct dnswire_name *b)
{
	return dnsextract_same_name(a->bytes, a->len, b->bytes, b->len);
}

void
dnswire_question_mix(
    struct dnswire_question *q, const uint8_t random[DNSWIRE_RANDOM_LEN])
{
	const uint8_t *bits = random + DNSWIRE_RANDOM_ID;
	uint8_t lower;

	q->id = (uint16_t)(random[0] << 8 | random[1]);
	/* Lengths of labels, at most 63, are no letters. */
	for (size_t i = 0; i < q->len - 4; i++) {
		lower = q->bytes[i] | 0x20;
		if (lower < 'a' || lower > 'z')
			continue;
		q->bytes[i] = lower ^ (bits[i / 8] >> i % 8 & 1) << 5;
	}
}

size_t
dnswire_query(const struct dnswire_question *q, uint8_t out[DNSWIRE_QUERY_MAX])
{
	struct writer w;

	writer_init(&w, out, DNSWIRE_QUERY_MAX);
	put16(&w, q->id);
	/* AD in a query asks for AD in the answer (RFC 6840 section 5.7). */
	put16(&w, FLAG_RD | (q->require_ad ? FLAG_AD : 0));
	put16(&w, 1);
	put16(&w, 0);
	put16(&w, 0);
	put16(&w, q->edns);
	writer_bytes(&w, q->bytes, q->len);
	if (q->edns) {
		writer_u8(&w, 0);
		put16(&w, DNSSCAN_OPT);
		put16(&w, DNSWIRE_UDP_SIZE);
		writer_zeros(&w, 6); /* version 0, no flags, no options */
	}
	assert(writer_ok(&w));
	return writer_len(&w);
}

/* The verdict that the response code alone allows; DNSWIRE_ANSWER: go on. */
static enum dnswire_verdict
judge_rcode(const struct dnswire_question *q, uint16_t rcode)
{
	switch (rcode) {
	case RCODE_NOERROR:
	case RCODE_NXDOMAIN:
		return DNSWIRE_ANSWER;
	case RCODE_FORMERR:
	case RCODE_NOTIMPL:
	case RCODE_BADVERS:
		return q->edns ? DNSWIRE_NO_EDNS : DNSWIRE_FAILED;
	}
	return DNSWIRE_FAILED;
}

enum dnswire_verdict
dnswire_read(const struct dnswire_question *q, const uint8_t *msg, size_t len,
    bool tcp, struct dnswire_answer *out)
{
	struct dnsscan_header header;
	struct dnsscan_records records;
	enum dnswire_verdict verdict;

	if (dnsscan_header(msg, len, q->id, q->bytes, q->len, &header) != 0)
		return DNSWIRE_MISMATCH;
	out->rcode = header.rcode;
	verdict = judge_rcode(q, header.rcode);
	if (verdict != DNSWIRE_ANSWER)
		return verdict;
	/* What is left of a truncated message is not worth a look. */
	if (header.tc)
		return tcp ? DNSWIRE_MALFORMED : DNSWIRE_TRUNCATED;
	if (dnsscan_records(msg, len, &header, &records) != 0)
		return DNSWIRE_MALFORMED;
	out->rcode = records.rcode;
	verdict = judge_rcode(q, records.rcode);
	if (verdict != DNSWIRE_ANSWER)
		return verdict;
	/*
	 * The resolver validates. ldns could, but its validation blocks and
	 * aborts on NSEC3 records with another hash algorithm.
	 */
	if (q->require_ad && !header.ad)
		return DNSWIRE_UNAUTHENTIC;
	return dnsextract_read(q, msg, len, &header, &records, out);
}
