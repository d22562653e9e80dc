/*
 * The strict scan of a DNS response before any other code looks at it: is it
 * an answer to this very question, and does every byte belong where the
 * message says? Pure; allocates nothing; its cost is bounded by the length.
 *
 * It stands in front of ldns, whose decoder is lenient and leaks: only records
 * that are listed here may be handed to it.
 */
#ifndef DAEMON_IO_DNSSCAN_H
#define DAEMON_IO_DNSSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNSSCAN_HEADER_LEN   12
#define DNSSCAN_NAME_MAX     255 /* of a name on the wire */
#define DNSSCAN_QUESTION_MAX (DNSSCAN_NAME_MAX + 4)
#define DNSSCAN_MAX_RECORDS  1024 /* of all sections; more is malformed */

/* Resource record types and the class that matter here. */
enum dnsscan_type {
	DNSSCAN_A = 1,
	DNSSCAN_CNAME = 5,
	DNSSCAN_SOA = 6,
	DNSSCAN_SIG = 24,
	DNSSCAN_AAAA = 28,
	DNSSCAN_SRV = 33,
	DNSSCAN_OPT = 41,
	DNSSCAN_TSIG = 250,
};
#define DNSSCAN_IN 1

struct dnsscan_header {
	uint8_t rcode;      /* the low four bits */
	bool aa;            /* authoritative */
	bool tc;            /* truncated */
	bool ra;            /* recursion available */
	bool ad;            /* authentic data */
	uint16_t counts[3]; /* answer, authority, additional */
	size_t records_at;  /* offset of the first record */
};

/* The records worth decoding, by offset: class IN, rdata as it must be. */
struct dnsscan_records {
	uint16_t rcode; /* extended by the OPT record */
	size_t answer_count;
	uint16_t answers[DNSSCAN_MAX_RECORDS]; /* A, AAAA, SRV, CNAME */
	uint16_t soa; /* the first in the authority section; 0: none */
	size_t glue_count;
	uint16_t glue[DNSSCAN_MAX_RECORDS]; /* A, AAAA of the additional one */
};

/*
 * Is it a response to the question with this id? question is name, type and
 * class as they were sent; every bit of it counts, letter case too. Returns 0,
 * RLA_ESHORT or RLA_EMISMATCH.
 */
int dnsscan_header(const uint8_t *msg, size_t len, uint16_t id,
    const uint8_t *question, size_t question_len, struct dnsscan_header *out);

/* Walks all records; header is of the same bytes. 0 or RLA_EMALFORMED. */
int dnsscan_records(const uint8_t *msg, size_t len,
    const struct dnsscan_header *header, struct dnsscan_records *out);

#endif
