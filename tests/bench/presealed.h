/*
 * Valid requests sealed in advance, all of one length and each with a unique
 * id of its own: a UUIDv4 whose first bytes are the request's number, so that
 * an answer tells in clear which one it is for. They ask for one token of one
 * resource, as the agent does for the bench's rule. Owns their bytes.
 */
#ifndef TESTS_BENCH_PRESEALED_H
#define TESTS_BENCH_PRESEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/keyring.h"

struct presealed {
	uint32_t count;
	size_t len; /* of each */
	uint8_t *bytes;
};

/* Returns 0 or a negative error. */
int presealed_make(struct presealed *p, const struct key *key, uint32_t count);
void presealed_free(struct presealed *p);
const uint8_t *presealed_at(const struct presealed *p, uint32_t number);
/*
 * Whether the datagram answers one of them, and which; and the id that it
 * names as its server's. Nothing is authenticated.
 */
bool presealed_match(const struct presealed *p, const uint8_t *datagram,
    size_t len, uint32_t *number, uint64_t *server_id);

#endif
