/*
 * The metrics labels that one key has used on one server, as many as its
 * quota says. They never expire.
 */
#ifndef SANDBOX_LABELS_H
#define SANDBOX_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/expmap.h"

struct id_hash;

struct labels {
	struct expmap seen; /* by digest */
	struct id_hash *hash;
	uint32_t max;
};

/* Returns 0, or RLA_ECRYPTO without BLAKE2s; then only fini is left. */
int labels_init(struct labels *l, uint32_t max, uint64_t seed);
void labels_fini(struct labels *l);
/* Counts the label. True when it has to be counted as "overflow". */
bool labels_overflow(struct labels *l, const uint8_t *label, size_t len);

#endif
