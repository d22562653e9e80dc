/*
 * The strict scan of a DNS response (RFC 1035 section 4.1, RFC 6891). What a
 * conforming server cannot send is refused as a whole: a message that is wrong
 * in one place is trusted in none.
 */
#include "daemon/io/dnsscan.h"

#include <assert.h>
#include <byteswap.h>
#include <string.h>

#include "proto/err.h"
#include "proto/reader.h"

#define FLAG_QR     0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_AA     0x0400
#define FLAG_TC     0x0200
#define FLAG_RA     0x0080
#define FLAG_AD     0x0020
#define FLAG_RCODE  0x000f

#define FIXED_LEN  10 /* type, class, TTL, RDLENGTH */
#define RECORD_MIN (1 + FIXED_LEN)
#define SOA_TAIL   20
#define SRV_HEAD   6
#define MAX_HOPS   64 /* of one name; a compressor makes one per label */

enum section { ANSWER, AUTHORITY, ADDITIONAL };

struct scan {
	const uint8_t *msg;
	size_t len;
	size_t at;
	bool opt_seen;
	struct dnsscan_records *out;
};

struct record {
	size_t owner;
	uint16_t type;
	uint16_t class;
	uint32_t ttl;
	size_t rdata;
	size_t end; /* of rdata */
};

/* The cursor of the r-server protocol is little-endian, DNS is not. */
static uint16_t
be16(struct reader *r)
{
	return bswap_16(reader_u16(r));
}

static uint32_t
be32(struct reader *r)
{
	return bswap_32(reader_u32(r));
}

int
dnsscan_header(const uint8_t *msg, size_t len, uint16_t id,
    const uint8_t *question, size_t question_len, struct dnsscan_header *out)
{
	struct reader r;
	uint16_t got_id, flags, questions;
	const uint8_t *got;

	reader_init(&r, msg, len);
	got_id = be16(&r);
	flags = be16(&r);
	questions = be16(&r);
	for (int i = 0; i < 3; i++)
		out->counts[i] = be16(&r);
	got = reader_bytes(&r, question_len);
	if (!reader_ok(&r))
		return RLA_ESHORT;
	if (got_id != id || (flags & FLAG_QR) == 0 ||
	    (flags & FLAG_OPCODE) != 0 || questions != 1 ||
	    memcmp(got, question, question_len) != 0)
		return RLA_EMISMATCH;
	out->rcode = flags & FLAG_RCODE;
	out->aa = (flags & FLAG_AA) != 0;
	out->tc = (flags & FLAG_TC) != 0;
	out->ra = (flags & FLAG_RA) != 0;
	out->ad = (flags & FLAG_AD) != 0;
	out->records_at = DNSSCAN_HEADER_LEN + question_len;
	return 0;
}

/*
 * The offset behind the name that starts at at, or 0 when it is no name. A
 * pointer must lead before the beginning of the part that it ends, so a chain
 * of pointers falls and cannot loop. ldns only counts pointers, up to 65535
 * for each name: a 64 KiB chain costs it 125 ms.
 */
static size_t
skip_name(const struct scan *s, size_t at)
{
	size_t begin = at, behind = 0, total = 0, label, target;

	for (unsigned hops = 0; at < s->len;) {
		label = s->msg[at];
		if (label < 0x40) {
			total += 1 + label;
			at += 1 + label;
			if (total > DNSSCAN_NAME_MAX || at > s->len)
				return 0;
			if (label == 0)
				return behind != 0 ? behind : at;
			continue;
		}
		if (label < 0xc0 || at + 2 > s->len || ++hops > MAX_HOPS)
			return 0;
		target = (label & 0x3f) << 8 | s->msg[at + 1];
		if (behind == 0)
			behind = at + 2;
		if (target < DNSSCAN_HEADER_LEN || target >= begin)
			return 0;
		begin = at = target;
	}
	return 0;
}

static int
read_record(const struct scan *s, struct record *out)
{
	struct reader r;
	size_t fixed = skip_name(s, s->at), length;

	if (fixed == 0)
		return RLA_EMALFORMED;
	reader_init(&r, s->msg + fixed, s->len - fixed);
	out->owner = s->at;
	out->type = be16(&r);
	out->class = be16(&r);
	out->ttl = be32(&r);
	length = be16(&r);
	reader_bytes(&r, length);
	out->rdata = fixed + FIXED_LEN;
	out->end = out->rdata + length;
	return reader_ok(&r) ? 0 : RLA_EMALFORMED;
}

/*
 * Do the fields fill the rdata exactly? ldns takes an RDLENGTH that disagrees
 * with them: a short SRV comes out with fewer fields, a long CNAME loses its
 * rest.
 */
static bool
rdata_fits(const struct scan *s, const struct record *rr)
{
	const size_t length = rr->end - rr->rdata;
	size_t at;

	switch (rr->type) {
	case DNSSCAN_A:
		return length == 4;
	case DNSSCAN_AAAA:
		return length == 16;
	case DNSSCAN_CNAME:
		return skip_name(s, rr->rdata) == rr->end;
	case DNSSCAN_SRV:
		return length > SRV_HEAD &&
		       skip_name(s, rr->rdata + SRV_HEAD) == rr->end;
	case DNSSCAN_SOA:
		at = skip_name(s, rr->rdata);
		if (at != 0)
			at = skip_name(s, at);
		return at != 0 && at + SOA_TAIL == rr->end;
	}
	return true;
}

/* One OPT at most, at the root, in the additional section (RFC 6891 6.1). */
static int
scan_opt(struct scan *s, const struct record *rr, enum section section)
{
	struct reader r;

	if (section != ADDITIONAL || s->opt_seen || s->msg[rr->owner] != 0)
		return RLA_EMALFORMED;
	s->opt_seen = true;
	reader_init(&r, s->msg + rr->rdata, rr->end - rr->rdata);
	while (reader_left(&r) > 0 && reader_ok(&r)) {
		be16(&r); /* code */
		reader_bytes(&r, be16(&r));
	}
	s->out->rcode |= (uint16_t)(rr->ttl >> 24 << 4);
	return reader_done(&r) ? 0 : RLA_EMALFORMED;
}

/* Lists a record that the decoder needs. */
static void
keep(struct dnsscan_records *out, const struct record *rr, enum section section)
{
	const uint16_t at = (uint16_t)rr->owner;
	const bool address = rr->type == DNSSCAN_A || rr->type == DNSSCAN_AAAA;

	switch (section) {
	case ANSWER:
		if (address || rr->type == DNSSCAN_SRV ||
		    rr->type == DNSSCAN_CNAME)
			out->answers[out->answer_count++] = at;
		return;
	case AUTHORITY:
		if (rr->type == DNSSCAN_SOA && out->soa == 0)
			out->soa = at;
		return;
	case ADDITIONAL:
		if (address)
			out->glue[out->glue_count++] = at;
		return;
	}
}

static int
scan_record(struct scan *s, enum section section)
{
	struct record rr;

	if (read_record(s, &rr) != 0)
		return RLA_EMALFORMED;
	s->at = rr.end;
	/*
	 * We sign nothing, so nobody signs an answer to us. ldns leaks the
	 * first TSIG of a message when there is a second one.
	 */
	if (rr.type == DNSSCAN_TSIG || rr.type == DNSSCAN_SIG)
		return RLA_EMALFORMED;
	if (rr.type == DNSSCAN_OPT)
		return scan_opt(s, &rr, section);
	if (rr.class != DNSSCAN_IN)
		return 0;
	if (!rdata_fits(s, &rr))
		return RLA_EMALFORMED;
	keep(s->out, &rr, section);
	return 0;
}

int
dnsscan_records(const uint8_t *msg, size_t len,
    const struct dnsscan_header *header, struct dnsscan_records *out)
{
	struct scan s = {
	    .msg = msg, .len = len, .at = header->records_at, .out = out};
	size_t total = 0;

	assert(header->records_at <= len);
	out->rcode = header->rcode;
	out->answer_count = 0;
	out->soa = 0;
	out->glue_count = 0;
	for (int i = ANSWER; i <= ADDITIONAL; i++)
		total += header->counts[i];
	/* Offsets are 16 bits wide, as in every DNS message. */
	if (len > UINT16_MAX || total > DNSSCAN_MAX_RECORDS ||
	    total > (len - s.at) / RECORD_MIN)
		return RLA_EMALFORMED;
	for (int i = ANSWER; i <= ADDITIONAL; i++) {
		for (unsigned n = header->counts[i]; n > 0; n--) {
			if (scan_record(&s, i) != 0)
				return RLA_EMALFORMED;
		}
	}
	/* ldns does not mind what follows the last record. */
	return s.at == len ? 0 : RLA_EMALFORMED;
}
