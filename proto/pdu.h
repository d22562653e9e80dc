/*
 * The PDUs inside a datagram (specification, sections 5.2 to 5.4 and 7): rate
 * request, rate response, latency report, both profiles, both directions.
 * Decoding is total: bytes to a struct or an error, without side effects.
 */
#ifndef PROTO_PDU_H
#define PROTO_PDU_H

#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"
#include "proto/id.h"

/* What fits in the largest datagram under the smallest overhead. */
#define PDU_MAX_GUARDS    31
#define PDU_MAX_RESOURCES 40
#define PDU_MAX_REPORTS   35
/* Most blocks of both kinds in one request. */
#define PDU_MAX_BLOCKS PDU_MAX_RESOURCES
#define PDU_LABEL_MAX  256 /* bytes of a metrics label */

enum pdu_type {
	PDU_RATE_REQUEST = 0x5452,
	PDU_RATE_RESPONSE = 0x5252,
	PDU_LATENCY_REPORT = 0x524C,
};

struct pdu_guard {
	uint8_t id[ID_LEN];
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size; /* PROFILE_V2 sends none and reads 0 */
	uint32_t min_samples;
	uint32_t threshold_ms;
	uint32_t current_ms; /* 0 in requests */
};

struct pdu_resource {
	uint8_t id[ID_LEN];
	uint32_t window_ms;
	uint32_t limit;  /* a response: the actual rate */
	uint16_t tokens; /* a response: the deficit */
};

struct pdu_sample {
	uint8_t id[ID_LEN];
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size; /* PROFILE_V2 sends none and reads 0 */
	uint32_t min_samples;
	uint32_t observed_ms;
};

/* A rate request or response. */
struct pdu_rate {
	uint32_t dedup_ttl_ms; /* the header word; ignored in a response */
	size_t guard_count;
	size_t resource_count;
	struct pdu_guard guards[PDU_MAX_GUARDS];
	struct pdu_resource resources[PDU_MAX_RESOURCES];
	const uint8_t *label; /* borrowed; NULL without one */
	size_t label_len;
};

struct pdu_report {
	size_t count;
	struct pdu_sample samples[PDU_MAX_REPORTS];
};

/* The type of an authenticated PDU, or 0 when there is no header. */
uint16_t pdu_type(const uint8_t *pdu, size_t len);

/*
 * Bytes of a request with so much in it; SIZE_MAX when the encoder would
 * refuse the counts or the label.
 */
size_t pdu_request_size(
    enum profile profile, size_t guards, size_t resources, size_t label_len);

/*
 * Encoders return 0 or RLA_ETOOBIG (counts, label or cap), and write nothing
 * past cap. An empty label is left out.
 */
int pdu_encode_request(enum profile profile, const struct pdu_rate *rate,
    uint8_t *out, size_t cap, size_t *out_len);
int pdu_encode_response(enum profile profile, const struct pdu_rate *rate,
    uint8_t *out, size_t cap, size_t *out_len);
int pdu_encode_report(enum profile profile, const struct pdu_report *report,
    uint8_t *out, size_t cap, size_t *out_len);

/*
 * Decoders return 0, RLA_ESHORT, RLA_EMALFORMED (type, sizes, paddings of a
 * label) or RLA_ETOOBIG (more blocks than any datagram of ours holds). Bytes
 * after the declared PDU are ignored. out->label borrows the PDU.
 */
int pdu_decode_request(
    enum profile profile, const uint8_t *pdu, size_t len, struct pdu_rate *out);
int pdu_decode_response(
    enum profile profile, const uint8_t *pdu, size_t len, struct pdu_rate *out);
int pdu_decode_report(enum profile profile, const uint8_t *pdu, size_t len,
    struct pdu_report *out);

#endif
