/*
 * A hash map of embedded entries keyed by 16 bytes, each with a time at which
 * it expires, and a heap that finds those. Peers choose the keys, so the hash
 * takes a secret seed. Entries belong to the caller, who removes what is due.
 */
#ifndef SANDBOX_EXPMAP_H
#define SANDBOX_EXPMAP_H

#include <stdint.h>

#define EXPMAP_KEY_LEN 16
#define EXPMAP_NEVER   INT64_MAX

struct expmap_entry {
	uint8_t key[EXPMAP_KEY_LEN];
	struct expmap_entry *next; /* in its chain */
	int64_t when;              /* expired from this millisecond on */
	uint32_t slot;             /* in the heap */
};

struct expmap {
	struct expmap_entry **chains;
	uint32_t chain_count; /* a power of two, or 0 */
	struct expmap_entry **heap;
	uint32_t heap_cap;
	uint32_t count;
	uint64_t seed;
};

void expmap_init(struct expmap *m, uint64_t seed);
/* Frees the map; entries are the caller's. */
void expmap_fini(struct expmap *m);
/* Also finds an entry that is due and was not removed yet. */
struct expmap_entry *expmap_find(
    const struct expmap *m, const uint8_t key[EXPMAP_KEY_LEN]);
/*
 * The key must not be present. Returns 0 or RLA_ENOMEM. The map borrows the
 * entry until expmap_remove().
 */
int expmap_insert(struct expmap *m, struct expmap_entry *e,
    const uint8_t key[EXPMAP_KEY_LEN], int64_t when);
void expmap_remove(struct expmap *m, struct expmap_entry *e);
/* Changes when the entry expires. */
void expmap_move(struct expmap *m, struct expmap_entry *e, int64_t when);
/* An entry that has expired at now, the earliest first, or NULL. */
struct expmap_entry *expmap_due(const struct expmap *m, int64_t now);
/* The earliest entry, due or not; NULL when the map is empty. */
struct expmap_entry *expmap_first(const struct expmap *m);

#endif
