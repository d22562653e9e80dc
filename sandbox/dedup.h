/*
 * Responses remembered by unique_id, for one key of one server. A request
 * reserves its place before anything is consumed, so that whatever was
 * consumed is remembered: a full memory costs an answer, never a token.
 */
#ifndef SANDBOX_DEDUP_H
#define SANDBOX_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/expmap.h"

struct dedup {
	struct expmap map;
	uint32_t max;
};

struct dedup_entry {
	struct expmap_entry entry; /* first */
	size_t cap;
	size_t len;
	bool allowed;
	uint8_t pdu[];
};

/* max bounds the entries, those of reservations included. */
void dedup_init(struct dedup *d, uint32_t max, uint64_t seed);
void dedup_fini(struct dedup *d);
/* Drops what has expired. */
void dedup_reap(struct dedup *d, int64_t now_ms);
/* The live answer of this request, or NULL. The map keeps it. */
const struct dedup_entry *dedup_find(
    struct dedup *d, int64_t now_ms, const uint8_t unique_id[16]);
/*
 * A place for an answer of up to cap bytes to a request that dedup_find()
 * does not know; NULL when there is none. Ends with commit or abandon.
 */
struct dedup_entry *dedup_reserve(
    struct dedup *d, const uint8_t unique_id[16], size_t cap);
/* Remembers the PDU, of at most the reserved length, for ttl_ms. */
void dedup_commit(struct dedup *d, struct dedup_entry *e, int64_t now_ms,
    uint32_t ttl_ms, const uint8_t *pdu, size_t len, bool allowed);
/* Takes NULL. */
void dedup_abandon(struct dedup *d, struct dedup_entry *e);

#endif
