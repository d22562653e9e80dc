/*
 * What one server knows about one key: its buckets, trackers and labels, and
 * the quotas over them. A check is decided as a whole: it either consumes
 * from every bucket it names or changes no level at all. The clock
 * (milliseconds, monotonic) is an argument; no I/O.
 */
#ifndef SANDBOX_STATE_H
#define SANDBOX_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/credential.h"
#include "proto/pdu.h"

/* Bounds of memory, whatever the quotas of the key allow. */
#define STATE_MAX_BUCKETS  (1u << 20)
#define STATE_MAX_TRACKERS (1u << 16)
#define STATE_MAX_LABELS   (1u << 16)

enum state_verdict {
	STATE_ALLOWED,
	STATE_DENIED,
	STATE_QUOTA,     /* over a quota: a check is answered as denied */
	STATE_MALFORMED, /* a value that no definition may have */
	STATE_MISMATCH,  /* a definition other than the live one */
	STATE_NO_MEMORY,
};

enum state_quota {
	QUOTA_NONE,
	QUOTA_DEDUP_TTL,
	QUOTA_RATE_WINDOW,
	QUOTA_RATE_BUCKETS,
	QUOTA_LATENCY_TRACKERS,
	QUOTA_LATENCY_BUFFER,
};

struct state_result {
	enum state_verdict verdict;
	enum state_quota quota; /* one that was exceeded */
	bool resource_failed;
	bool guard_failed;
	bool label_overflow; /* counted as "overflow" */
};

struct state;

/* Copies the credential's quotas. NULL without memory or BLAKE2s. */
struct state *state_new(
    const struct credential *cred, enum profile profile, uint64_t seed);
void state_free(struct state *s);

/*
 * Decides a request. With an allowed, denied or quota verdict *response holds
 * the answer's blocks; else nothing changed and there is no answer.
 */
struct state_result state_check(struct state *s, int64_t now_ms,
    const struct pdu_rate *request, struct pdu_rate *response);
/* Takes all samples of a report (allowed) or none. */
struct state_result state_report(
    struct state *s, int64_t now_ms, const struct pdu_report *report);

/* Live entries, after dropping what expired. */
uint32_t state_buckets(struct state *s, int64_t now_ms);
uint32_t state_trackers(struct state *s, int64_t now_ms);

/* "dedup-ttl", "rate-window", ...; "none". */
const char *state_quota_name(enum state_quota quota);

#endif
