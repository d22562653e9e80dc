/*
 * What the responder says: to a valid rate request of its key, that all is
 * granted, and to anything else nothing. No buckets, no memory of earlier
 * requests. Only bytes, no I/O.
 */
#ifndef TESTS_BENCH_ANSWER_H
#define TESTS_BENCH_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/packet.h"
#include "proto/pdu.h"
#include "sandbox/keyring.h"

struct answer {
	const struct key *key;
	struct pdu_rate rate; /* of the request at hand */
	uint8_t plain[PACKET_MAX];
	uint8_t pdu[PACKET_MAX];
};

/*
 * The datagram that the server answers this one with, in out, which holds
 * PACKET_MAX bytes. Its length, or 0: it gets none.
 */
size_t answer_make(struct answer *a, uint64_t server_id, uint64_t wall_ms,
    const uint8_t *request, size_t len, uint8_t *out);

#endif
