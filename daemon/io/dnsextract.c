/*
 * From listed records to an answer. Everything but the owner, the type and the
 * rdata of those records is ignored; what is decoded is freed before return.
 */
#include "daemon/io/dnsextract.h"

#include <ldns/ldns.h>
#include <string.h>
#include <strings.h>

/* What ldns made of the records; owned. */
struct decoded {
	size_t count;
	ldns_rr *answers[DNSSCAN_MAX_RECORDS];
	size_t glue_count;
	ldns_rr *glue[DNSSCAN_MAX_RECORDS];
	ldns_rr *soa; /* NULL: none */
};

/* A name on the wire, uncompressed; borrowed. */
struct name {
	const uint8_t *bytes;
	size_t len;
};

bool
dnsextract_host_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Lengths of labels, at most 63, are no letters. */
bool
dnsextract_same_name(
    const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	if (a_len != b_len)
		return false;
	for (size_t i = 0; i < a_len; i++) {
		if (lower(a[i]) != lower(b[i]))
			return false;
	}
	return true;
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
	for (size_t i = 0; i < d->glue_count; i++)
		ldns_rr_free(d->glue[i]);
	ldns_rr_free(d->soa);
}

/* Fills out as far as it gets; false when a record is not in order. */
static bool
decode_list(const uint8_t *msg, size_t len, const uint16_t *at, size_t count,
    ldns_rr **out, size_t *done)
{
	for (*done = 0; *done < count; ++*done) {
		out[*done] = decode_record(msg, len, at[*done]);
		if (out[*done] == NULL)
			return false;
	}
	return true;
}

static bool
decode(struct decoded *d, const uint8_t *msg, size_t len,
    const struct dnsscan_records *list, bool with_glue)
{
	d->count = 0;
	d->glue_count = 0;
	d->soa = NULL;
	if (!decode_list(msg, len, list->answers, list->answer_count,
		d->answers, &d->count))
		return false;
	if (with_glue && !decode_list(msg, len, list->glue, list->glue_count,
			     d->glue, &d->glue_count))
		return false;
	if (list->soa != 0)
		d->soa = decode_record(msg, len, list->soa);
	return list->soa == 0 || d->soa != NULL;
}

static struct name
name_of(const ldns_rdf *rdf)
{
	return (struct name){ldns_rdf_data(rdf), ldns_rdf_size(rdf)};
}

static bool
same_name(struct name a, struct name b)
{
	return dnsextract_same_name(a.bytes, a.len, b.bytes, b.len);
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

/*
 * Moves name to the end of its aliases, and counts them; false when they go on
 * too long or in a circle.
 */
static bool
follow(
    const struct decoded *d, struct name *name, uint32_t *ttl, unsigned *links)
{
	const ldns_rr *alias;

	for (*links = 0; *links <= DNS_MAX_CHAIN; ++*links) {
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
			if (!dnsextract_host_char(name.bytes[at + i]))
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

/* The first record with that target, or count. */
static size_t
find_target(const struct dnswire_answer *out, const char *target)
{
	size_t i = 0;

	while (
	    i < out->count && strcasecmp(out->records[i].target, target) != 0)
		i++;
	return i;
}

/* Addresses of targets that stand in the answer itself, and of no other. */
static void
collect_glue(const struct decoded *d, struct dnswire_answer *out)
{
	char owner[DNS_MAX_NAME];
	size_t record;

	for (size_t i = 0; i < d->glue_count; i++) {
		const ldns_rr *rr = d->glue[i];
		const ldns_rdf *addr = ldns_rr_rdf(rr, 0);
		struct dns_glue *glue = &out->glue[out->glue_count];

		if (!target_text(name_of(ldns_rr_owner(rr)), owner))
			continue;
		record = find_target(out, owner);
		if (owner[0] == '\0' || record == out->count)
			continue;
		*glue = (struct dns_glue){
		    .type = ldns_rdf_size(addr) == 4 ? DNS_A : DNS_AAAA,
		    .ttl = sane_ttl(ldns_rr_ttl(rr)),
		    .record = record,
		};
		memcpy(glue->addr, ldns_rdf_data(addr), ldns_rdf_size(addr));
		out->glue_count++;
	}
}

/*
 * How long a negative answer holds (RFC 2308 section 5): false when there is
 * no authority over the name.
 */
static bool
negative_ttl(const struct decoded *d, struct name name, uint32_t *ttl)
{
	uint32_t minimum;

	if (d->soa == NULL || !within(name, name_of(ldns_rr_owner(d->soa))))
		return false;
	minimum = ldns_rdf2native_int32(ldns_rr_rdf(d->soa, 6));
	*ttl = least(
	    *ttl, least(sane_ttl(minimum), sane_ttl(ldns_rr_ttl(d->soa))));
	return true;
}

/* No record of the type at name, where the aliases end. */
static enum dnswire_verdict
extract_none(const struct decoded *d, struct name name,
    const struct dnsscan_header *header, struct dnswire_answer *out)
{
	const bool exists = header->rcode == LDNS_RCODE_NOERROR;
	const bool told = negative_ttl(d, name, &out->ttl);

	out->status = exists ? DNS_NODATA : DNS_NXDOMAIN;
	if (told || !exists || out->skipped > 0) {
		if (!told)
			out->ttl = 0;
		return DNSWIRE_ANSWER;
	}
	/* The alias leads out of what this server knows or has looked up. */
	if (out->links > 0) {
		out->alias.len = name.len;
		memcpy(out->alias.bytes, name.bytes, name.len);
		return DNSWIRE_ALIAS;
	}
	/*
	 * Empty, but no word of authority and no resolver that could have
	 * looked further: a referral, which says nothing about the name.
	 */
	if (d->soa == NULL && !header->aa && !header->ra)
		return DNSWIRE_FAILED;
	out->ttl = 0;
	return DNSWIRE_ANSWER;
}

static enum dnswire_verdict
extract(const struct decoded *d, const struct dnswire_question *q,
    const struct dnsscan_header *header, struct dnswire_answer *out)
{
	struct name name = {q->bytes, q->len - 4};

	out->count = 0;
	out->skipped = 0;
	out->glue_count = 0;
	out->ttl = INT32_MAX;
	if (!follow(d, &name, &out->ttl, &out->links))
		return DNSWIRE_MALFORMED;
	if (header->rcode == LDNS_RCODE_NOERROR)
		collect(d, name, q->type, out->ttl, out);
	if (out->count == 0)
		return extract_none(d, name, header, out);
	out->status = DNS_OK;
	collect_glue(d, out);
	return DNSWIRE_ANSWER;
}

enum dnswire_verdict
dnsextract_read(const struct dnswire_question *q, const uint8_t *msg,
    size_t len, const struct dnsscan_header *header,
    const struct dnsscan_records *list, struct dnswire_answer *out)
{
	/* AD vouches for the answer and authority sections (RFC 4035 3.2.3). */
	const bool with_glue = q->type == DNS_SRV && !q->require_ad;
	enum dnswire_verdict verdict = DNSWIRE_MALFORMED;
	struct decoded decoded;

	if (decode(&decoded, msg, len, list, with_glue))
		verdict = extract(&decoded, q, header, out);
	decoded_fini(&decoded);
	return verdict;
}
