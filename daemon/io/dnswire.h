/*
 * DNS messages as bytes: questions in random letter case with EDNS, and the
 * verdict on a response with the records it holds. Pure, but for the memory
 * that ldns takes and gives back within a call.
 */
#ifndef DAEMON_IO_DNSWIRE_H
#define DAEMON_IO_DNSWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/io/dns.h"
#include "daemon/io/dnsscan.h"

#define DNSWIRE_UDP_SIZE 1232 /* fits every path's MTU unfragmented */
#define DNSWIRE_OPT_LEN  11
#define DNSWIRE_QUERY_MAX \
	(DNSSCAN_HEADER_LEN + DNSSCAN_QUESTION_MAX + DNSWIRE_OPT_LEN)
#define DNSWIRE_RANDOM_ID  2 /* bytes of the id, then those of the case */
#define DNSWIRE_RANDOM_LEN (DNSWIRE_RANDOM_ID + 32) /* a bit for each byte */

/* On the wire, uncompressed, with the root's length byte of 0. */
struct dnswire_name {
	size_t len;
	uint8_t bytes[DNSSCAN_NAME_MAX];
};

/* Case does not count. */
bool dnswire_same_name(
    const struct dnswire_name *a, const struct dnswire_name *b);

struct dnswire_question {
	uint16_t id;
	enum dns_type type;
	bool edns;
	bool require_ad; /* asks for AD, and insists on it */
	size_t len;
	uint8_t bytes[DNSSCAN_QUESTION_MAX]; /* name, type, class as sent */
};

/*
 * name has letters, digits, '-' and '_' in labels of 1 to 63 bytes; a trailing
 * dot is fine. The id is 0 and EDNS on. Returns 0 or RLA_EINVAL.
 */
int dnswire_question_init(struct dnswire_question *q, const char *name,
    enum dns_type type, bool require_ad);
/* Another name for the same question; what mixing did is lost. */
void dnswire_question_rename(
    struct dnswire_question *q, const struct dnswire_name *name);
void dnswire_question_name(
    const struct dnswire_question *q, struct dnswire_name *out);
/* A new id, and a new case for each letter of the name (0x20): bits that are
 * zero make small letters. */
void dnswire_question_mix(
    struct dnswire_question *q, const uint8_t random[DNSWIRE_RANDOM_LEN]);
/* Writes the query; returns its length. */
size_t dnswire_query(
    const struct dnswire_question *q, uint8_t out[DNSWIRE_QUERY_MAX]);

enum dnswire_verdict {
	DNSWIRE_ANSWER,      /* the answer is filled in */
	DNSWIRE_ALIAS,       /* so is its alias, and no more is said of that */
	DNSWIRE_TRUNCATED,   /* ask again over TCP */
	DNSWIRE_NO_EDNS,     /* ask again without EDNS */
	DNSWIRE_FAILED,      /* SERVFAIL, REFUSED, a referral, ... */
	DNSWIRE_UNAUTHENTIC, /* AD is required and not set */
	DNSWIRE_MISMATCH,    /* not an answer to this question */
	DNSWIRE_MALFORMED,
};

struct dnswire_answer {
	uint16_t rcode; /* filled in for every verdict but DNSWIRE_MISMATCH */
	enum dns_status status; /* DNS_OK, DNS_NODATA or DNS_NXDOMAIN */
	uint32_t ttl;           /* as in struct dns_answer */
	size_t count;
	size_t skipped; /* SRV records whose target is no host name */
	struct dns_record records[DNS_MAX_RECORDS];
	size_t glue_count;
	struct dns_glue glue[DNSSCAN_MAX_RECORDS];
	unsigned links; /* CNAME records to the end, at most DNS_MAX_CHAIN */
	/* The end, of DNSWIRE_ALIAS; ttl is the chain's then, and count 0. */
	struct dnswire_name alias;
};

/*
 * out is filled for DNSWIRE_ANSWER and DNSWIRE_ALIAS only, but for its rcode.
 * tcp: TC has no sense there.
 */
enum dnswire_verdict dnswire_read(const struct dnswire_question *q,
    const uint8_t *msg, size_t len, bool tcp, struct dnswire_answer *out);

#endif
