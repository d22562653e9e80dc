/*
 * DNS messages as bytes. A response is scanned strictly first (dnsscan); then
 * ldns decodes one by one the records that the scan listed and nothing else,
 * so its own reading of whole messages, OPT, TSIG and exotic types is never
 * reached. No ldns object outlives a call.
 */
#include "daemon/io/dnswire.h"

#include <assert.h>
#include <byteswap.h>
#include <ldns/ldns.h>
#include <string.h>

#include "proto/err.h"
#include "proto/writer.h"

#define FLAG_RD 0x0100
#define FLAG_AD 0x0020

#define RCODE_BADVERS 16

/* What ldns made of the records; owned. */
struct decoded {
	size_t count;
	ldns_rr *answers[DNSSCAN_MAX_RECORDS];
	ldns_rr *soa; /* NULL: none */
};

/* A name on the wire, uncompressed; borrowed. */
struct name {
	const uint8_t *bytes;
	size_t len;
};

static bool
host_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_';
}

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
			if (!host_char((uint8_t)text[i]))
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
	q->len = writer_len(&w) + 4;
	writer_init(&w, q->bytes + q->len - 4, 4);
	put16(&w, (uint16_t)type);
	put16(&w, DNSSCAN_IN);
	return 0;
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

/* Decodes one record; NULL unless it has the fields of its type. */
static ldns_rr *
decode_record(const uint8_t *msg, size_t len, size_t at)
{
	ldns_rr *rr = NULL;
	size_t fields = 1;

	if (ldns_wire2rr(&rr, msg, len, &at, LDNS_SECTION_ANSWER) !=
	    LDNS_STATUS_OK)
		return NULL;
	if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_SRV)
		fields = 4;
	else if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_SOA)
		fields = 7;
	/*
	 * ldns makes a record of a short rdata too, with fewer fields, and
	 * its accessors abort on the missing ones.
	 */
	if (ldns_rr_rd_count(rr) != fields) {
		ldns_rr_free(rr);
		return NULL;
	}
	return rr;
}

static void
decoded_fini(struct decoded *d)
{
	for (size_t i = 0; i < d->count; i++)
		ldns_rr_free(d->answers[i]);
	ldns_rr_free(d->soa);
}

static bool
decode(struct decoded *d, const uint8_t *msg, size_t len,
    const struct dnsscan_records *list)
{
	d->count = 0;
	d->soa = NULL;
	for (size_t i = 0; i < list->answer_count; i++) {
		d->answers[d->count] =
		    decode_record(msg, len, list->answers[i]);
		if (d->answers[d->count] == NULL)
			return false;
		d->count++;
	}
	if (list->soa != 0)
		d->soa = decode_record(msg, len, list->soa);
	return list->soa == 0 || d->soa != NULL;
}

static struct name
name_of(const ldns_rdf *rdf)
{
	return (struct name){ldns_rdf_data(rdf), ldns_rdf_size(rdf)};
}

/* Case-insensitive; lengths of labels are no letters. */
static bool
same_name(struct name a, struct name b)
{
	uint8_t x, y;

	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		x = a.bytes[i];
		y = b.bytes[i];
		if (x >= 'A' && x <= 'Z')
			x |= 0x20;
		if (y >= 'A' && y <= 'Z')
			y |= 0x20;
		if (x != y)
			return false;
	}
	return true;
}

/* Is zone the name or an ancestor of it? */
static bool
within(struct name name, struct name zone)
{
	while (name.len > zone.len) {
		name.len -= 1 + (size_t)name.bytes[0];
		name.bytes += 1 + name.bytes[0];
	}
	return same_name(name, zone);
}

/* RFC 2181 section 8: a TTL with its top bit set is to be taken as 0. */
static uint32_t
sane_ttl(uint32_t ttl)
{
	return ttl > INT32_MAX ? 0 : ttl;
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static const ldns_rr *
find_alias(const struct decoded *d, struct name owner)
{
	for (size_t i = 0; i < d->count; i++) {
		if (ldns_rr_get_type(d->answers[i]) == LDNS_RR_TYPE_CNAME &&
		    same_name(name_of(ldns_rr_owner(d->answers[i])), owner))
			return d->answers[i];
	}
	return NULL;
}

/* Moves name to the end of its aliases; false when they go on too long. */
static bool
follow(const struct decoded *d, struct name *name, uint32_t *ttl)
{
	const ldns_rr *alias;

	for (int i = 0; i <= DNSWIRE_MAX_CHAIN; i++) {
		alias = find_alias(d, *name);
		if (alias == NULL)
			return true;
		*ttl = least(*ttl, sane_ttl(ldns_rr_ttl(alias)));
		*name = name_of(ldns_rr_rdf(alias, 0));
	}
	return false;
}

/* A host name as text without its last dot; "" for the root. */
static bool
target_text(struct name name, char out[DNS_MAX_NAME])
{
	size_t used = 0, label;

	for (size_t at = 0; name.bytes[at] != 0; at += 1 + label) {
		label = name.bytes[at];
		if (used > 0)
			out[used++] = '.';
		for (size_t i = 1; i <= label; i++) {
			if (!host_char(name.bytes[at + i]))
				return false;
			out[used++] = (char)name.bytes[at + i];
		}
	}
	out[used] = '\0';
	return true;
}

/* False when an SRV target is no host name. */
static bool
fill_record(struct dns_record *out, const ldns_rr *rr, enum dns_type type)
{
	const ldns_rdf *first = ldns_rr_rdf(rr, 0);

	*out = (struct dns_record){.type = type};
	switch (type) {
	case DNS_A:
		memcpy(out->addr, ldns_rdf_data(first), 4);
		return true;
	case DNS_AAAA:
		memcpy(out->addr, ldns_rdf_data(first), 16);
		return true;
	case DNS_SRV:
		out->port = ldns_rdf2native_int16(ldns_rr_rdf(rr, 2));
		return target_text(name_of(ldns_rr_rdf(rr, 3)), out->target);
	}
	return false;
}

/* All records of the type that name has. */
static void
collect(const struct decoded *d, struct name name, enum dns_type type,
    uint32_t chain_ttl, struct dnswire_answer *out)
{
	struct dns_record *record;

	for (size_t i = 0; i < d->count && out->count < DNS_MAX_RECORDS; i++) {
		const ldns_rr *rr = d->answers[i];

		if ((unsigned)ldns_rr_get_type(rr) != (unsigned)type ||
		    !same_name(name_of(ldns_rr_owner(rr)), name))
			continue;
		record = &out->records[out->count];
		if (!fill_record(record, rr, type)) {
			out->skipped++;
			continue;
		}
		record->ttl = least(chain_ttl, sane_ttl(ldns_rr_ttl(rr)));
		out->ttl = least(out->ttl, record->ttl);
		out->count++;
	}
}

/* How long a negative answer holds: RFC 2308 section 5; 0 if untold. */
static uint32_t
negative_ttl(const struct decoded *d, struct name name, uint32_t chain_ttl)
{
	uint32_t minimum;

	if (d->soa == NULL || !within(name, name_of(ldns_rr_owner(d->soa))))
		return 0;
	minimum = ldns_rdf2native_int32(ldns_rr_rdf(d->soa, 6));
	return least(
	    chain_ttl, least(sane_ttl(minimum), sane_ttl(ldns_rr_ttl(d->soa))));
}

static enum dnswire_verdict
extract(const struct decoded *d, const struct dnswire_question *q,
    const struct dnsscan_header *header, struct dnswire_answer *out)
{
	struct name name = {q->bytes, q->len - 4};
	uint32_t chain_ttl = INT32_MAX;

	out->count = 0;
	out->skipped = 0;
	out->ttl = INT32_MAX;
	if (!follow(d, &name, &chain_ttl))
		return DNSWIRE_MALFORMED;
	if (header->rcode == LDNS_RCODE_NOERROR)
		collect(d, name, q->type, chain_ttl, out);
	if (out->count > 0) {
		out->status = DNS_OK;
		return DNSWIRE_ANSWER;
	}
	/*
	 * Empty, but no word of authority and no resolver that could have
	 * looked further: a referral, which says nothing about the name.
	 */
	if (header->rcode == LDNS_RCODE_NOERROR && out->skipped == 0 &&
	    d->soa == NULL && !header->aa && !header->ra)
		return DNSWIRE_FAILED;
	out->status =
	    header->rcode == LDNS_RCODE_NXDOMAIN ? DNS_NXDOMAIN : DNS_NODATA;
	out->ttl = negative_ttl(d, name, chain_ttl);
	return DNSWIRE_ANSWER;
}

/* The verdict that the response code alone allows; DNSWIRE_ANSWER: go on. */
static enum dnswire_verdict
judge_rcode(const struct dnswire_question *q, uint16_t rcode)
{
	switch (rcode) {
	case LDNS_RCODE_NOERROR:
	case LDNS_RCODE_NXDOMAIN:
		return DNSWIRE_ANSWER;
	case LDNS_RCODE_FORMERR:
	case LDNS_RCODE_NOTIMPL:
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
	struct decoded decoded;
	enum dnswire_verdict verdict;

	if (dnsscan_header(msg, len, q->id, q->bytes, q->len, &header) != 0)
		return DNSWIRE_MISMATCH;
	verdict = judge_rcode(q, header.rcode);
	if (verdict != DNSWIRE_ANSWER)
		return verdict;
	/* What is left of a truncated message is not worth a look. */
	if (header.tc)
		return tcp ? DNSWIRE_MALFORMED : DNSWIRE_TRUNCATED;
	if (dnsscan_records(msg, len, &header, &records) != 0)
		return DNSWIRE_MALFORMED;
	verdict = judge_rcode(q, records.rcode);
	if (verdict != DNSWIRE_ANSWER)
		return verdict;
	/*
	 * The resolver validates. ldns could, but its validation blocks and
	 * aborts on NSEC3 records with another hash algorithm.
	 */
	if (q->require_ad && !header.ad)
		return DNSWIRE_UNAUTHENTIC;
	verdict = DNSWIRE_MALFORMED;
	if (decode(&decoded, msg, len, &records))
		verdict = extract(&decoded, q, &header, out);
	decoded_fini(&decoded);
	return verdict;
}
