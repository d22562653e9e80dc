/*
 * The live trackers of one key on one server, by id. One that no report or
 * guard named for its ttl is forgotten, its definition too. Guards and
 * reports come as the same blocks; judging them changes nothing.
 */
#ifndef SANDBOX_TRACKERS_H
#define SANDBOX_TRACKERS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"
#include "proto/pdu.h"
#include "sandbox/expmap.h"
#include "sandbox/tracker.h"

#define TRACKERS_MAX_BLOCKS PDU_MAX_REPORTS
/* Ring slots of all trackers of a key, whatever its quotas allow. */
#define TRACKERS_MAX_SAMPLES (1u << 22)

struct trackers {
	struct expmap map;
	enum profile profile;
	uint32_t buffer; /* of the key: the size in v2, the quota in v1 */
	uint32_t samples_left;
};

struct trackers_slot {
	struct expmap_entry entry; /* first */
	struct tracker tracker;
};

/* The tracker halves of some guards or samples; ids borrow them. */
struct trackers_blocks {
	size_t count;
	const uint8_t *ids[TRACKERS_MAX_BLOCKS];
	struct tracker_def defs[TRACKERS_MAX_BLOCKS];
};

void trackers_init(
    struct trackers *t, enum profile profile, uint32_t buffer, uint64_t seed);
void trackers_fini(struct trackers *t);
/* Forgets what has expired. */
void trackers_reap(struct trackers *t, int64_t now_ms);
void trackers_of_guards(
    const struct pdu_rate *rate, struct trackers_blocks *out);
void trackers_of_report(
    const struct pdu_report *report, struct trackers_blocks *out);
/*
 * Judges blocks against live definitions and each other. Returns 0 and how
 * many trackers are new, RLA_EMISMATCH, or RLA_EQUOTA for a buffer that is
 * larger than the key allows; a mismatch goes first.
 */
int trackers_judge(const struct trackers *t,
    const struct trackers_blocks *blocks, uint32_t *fresh);
/*
 * Finds or makes the tracker of every block and lets it live for another ttl.
 * Returns 0 or RLA_ENOMEM. Slots are good until the next reap.
 */
int trackers_use(struct trackers *t, int64_t now_ms,
    const struct trackers_blocks *blocks,
    struct trackers_slot *slots[TRACKERS_MAX_BLOCKS]);

#endif
