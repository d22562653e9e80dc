/*
 * The ids of names that are filled in, remembered: a name that is asked for
 * often is looked up instead of hashed. Owned by one configuration's rules;
 * bounded, and no allocation but the first.
 */
#ifndef DAEMON_RULES_IDS_H
#define DAEMON_RULES_IDS_H

#include "proto/id.h"
#include "proto/ipc.h"

/* A tracker, but for its name. */
struct rules_tracker {
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size; /* nothing in PROFILE_V2 */
	uint32_t min_samples;
};

struct rules_ids;

/* NULL without memory or randomness, or without BLAKE2s. */
struct rules_ids *rules_ids_new(void);
void rules_ids_free(struct rules_ids *ids); /* takes NULL */

/* What id_tracker() and id_bucket() give: 0 or RLA_ECRYPTO. */
int rules_ids_tracker(struct rules_ids *ids, enum profile profile,
    const struct rules_tracker *t, const struct ipc_str *name,
    uint8_t id[ID_LEN]);
int rules_ids_bucket(struct rules_ids *ids, uint32_t window_ms, uint32_t limit,
    const struct ipc_str *name, uint8_t id[ID_LEN]);

/* For tests: how many ids were hashed, not looked up. */
uint64_t rules_ids_hashed(const struct rules_ids *ids);

#endif
