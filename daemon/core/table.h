/*
 * A hash table of embedded entries for what is in flight, keyed by 16 bytes
 * that a peer may have chosen: a secret seed keeps it from choosing
 * collisions. Open addressing, doubles when three quarters full, never
 * shrinks, no allocation in the steady state.
 */
#ifndef DAEMON_CORE_TABLE_H
#define DAEMON_CORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TABLE_KEY_LEN 16

struct table_entry {
	uint8_t key[TABLE_KEY_LEN]; /* the user's; fixed while it is in */
	uint32_t hash;              /* the table's */
};

struct table_slot {
	uint32_t hash; /* of the entry; 0: empty */
	struct table_entry *entry;
};

struct table {
	struct table_slot *slots;
	uint32_t count;
	uint32_t cap; /* a power of two */
	uint64_t seed[2];
	uint8_t asked[TABLE_KEY_LEN]; /* the key that was hashed last */
	uint32_t asked_hash;          /* 0: none was */
};

void table_init(struct table *t, const uint64_t seed[2]);
void table_fini(struct table *t); /* entries are the owner's */
/* Returns 0, or -1 without memory. The key must not be present. */
int table_insert(struct table *t, struct table_entry *e);
/* To insert a key that was just looked for costs no second hash of it. */
struct table_entry *table_find(
    struct table *t, const uint8_t key[TABLE_KEY_LEN]);
/* The entry must be present. */
void table_remove(struct table *t, struct table_entry *e);

#endif
