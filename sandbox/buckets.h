/*
 * The live buckets of one key on one server, by id. One that is full again is
 * forgotten, its definition too. A check goes through judge, use, ask and
 * consume, in this order and at one moment; only the last changes a level.
 */
#ifndef SANDBOX_BUCKETS_H
#define SANDBOX_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/pdu.h"
#include "sandbox/bucket.h"
#include "sandbox/expmap.h"

struct buckets {
	struct expmap map;
};

struct buckets_slot {
	struct expmap_entry entry; /* first */
	struct bucket bucket;
	uint64_t pending; /* asked for so far in this check */
};

void buckets_init(struct buckets *b, uint64_t seed);
void buckets_fini(struct buckets *b);
/* Forgets what is full. */
void buckets_reap(struct buckets *b, int64_t now_ms);
/*
 * Judges the resources against live definitions and each other. Returns 0
 * and how many buckets are new, RLA_EMALFORMED for a zero, RLA_EMISMATCH.
 */
int buckets_judge(
    const struct buckets *b, const struct pdu_rate *rate, uint32_t *fresh);
/*
 * Finds the bucket of every resource, made full where it is new. Returns 0 or
 * RLA_ENOMEM. Slots are good until the next reap.
 */
int buckets_use(struct buckets *b, int64_t now_ms, const struct pdu_rate *rate,
    struct buckets_slot *slots[PDU_MAX_RESOURCES]);
/*
 * Turns the tokens of a copy of the request into deficits, resources of one
 * bucket being added up in their order. True when there is a deficit.
 */
bool buckets_ask(struct buckets_slot *const *slots, int64_t now_ms,
    struct pdu_rate *response);
/* Takes what was asked for, once nothing is missing. */
void buckets_consume(
    struct buckets *b, struct buckets_slot *const *slots, size_t count);

#endif
