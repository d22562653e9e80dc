/*
 * What the records of a scanned DNS response say to a question: the end of the
 * CNAME chain, the records there, how long a negative answer holds, glue. ldns
 * decodes here, one by one, the records that the scan listed and nothing else,
 * so its own reading of whole messages, OPT, TSIG and exotic types is never
 * reached. No ldns object outlives a call.
 */
#ifndef DAEMON_IO_DNSEXTRACT_H
#define DAEMON_IO_DNSEXTRACT_H

#include "daemon/io/dnswire.h"

/*
 * header and list are of the same bytes, whose response code is NOERROR or
 * NXDOMAIN. Returns DNSWIRE_ANSWER or DNSWIRE_ALIAS with out filled,
 * DNSWIRE_FAILED for a referral, or DNSWIRE_MALFORMED.
 */
enum dnswire_verdict dnsextract_read(const struct dnswire_question *q,
    const uint8_t *msg, size_t len, const struct dnsscan_header *header,
    const struct dnsscan_records *list, struct dnswire_answer *out);

/* Names on the wire, uncompressed; their case does not count. */
bool dnsextract_same_name(
    const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len);
/* A letter, a digit, '-' or '_'. */
bool dnsextract_host_char(uint8_t c);

#endif
