/*
 * What is counted of the decisions of one rule, or of the ad-hoc checks of one
 * tenant: how many of each kind there were, and how long they took. A kind is
 * an outcome, a source and a reason that go together, one row each; what cannot
 * be has none. A tally is 400 bytes; noting a decision allocates nothing and
 * looks nothing up.
 */
#ifndef DAEMON_TALLY_H
#define DAEMON_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/latency.h"
#include "proto/ipc.h"

/* X(outcome, source, reason, is it common?). Zeroes of common ones are shown,
 * so that there is something before the first one to tell it from. */
#define TALLY_KINDS(X)                           \
	X(ALLOWED, SERVER, OK, true)             \
	X(ALLOWED, EMPTY, OK, false)             \
	X(DENIED, SERVER, RESOURCE, true)        \
	X(DENIED, SERVER, GUARD, false)          \
	X(DENIED, SERVER, RESOURCE_GUARD, false) \
	X(DENIED, SHADOW, RESOURCE, false)       \
	X(DENIED, SHADOW, GUARD, false)          \
	X(DENIED, SHADOW, RESOURCE_GUARD, false) \
	X(FAILED, POLICY, VALIDATION, false)     \
	X(FAILED, POLICY, UNKNOWN_RULE, false)   \
	X(FAILED, POLICY, UNAUTHORISED, false)   \
	X(FAILED, POLICY, DISCOVERY, false)      \
	X(FAILED, POLICY, TRANSPORT, false)      \
	X(FAILED, POLICY, TIMEOUT, true)         \
	X(FAILED, POLICY, OVERLOADED, false)     \
	X(FAILED, POLICY, DRAINING, false)       \
	X(FAILED, POLICY, INTERRUPTED, false)    \
	X(FAILED, LOCAL, DISCOVERY, false)       \
	X(FAILED, LOCAL, TRANSPORT, false)       \
	X(FAILED, LOCAL, TIMEOUT, false)         \
	X(FAILED, LOCAL, OVERLOADED, false)      \
	X(FAILED, LOCAL, DRAINING, false)        \
	X(FAILED, LOCAL, INTERRUPTED, false)     \
	X(FAILED, SHADOW, DISCOVERY, false)      \
	X(FAILED, SHADOW, TRANSPORT, false)      \
	X(FAILED, SHADOW, TIMEOUT, false)        \
	X(FAILED, SHADOW, OVERLOADED, false)     \
	X(FAILED, SHADOW, DRAINING, false)       \
	X(FAILED, SHADOW, INTERRUPTED, false)    \
	X(CANCELLED, POLICY, CANCELLED, false)

#define TALLY_ONE(outcome, source, reason, common) +1
enum { TALLY_KIND_COUNT = TALLY_KINDS(TALLY_ONE) };

struct tally_kind {
	enum ipc_outcome outcome;
	enum ipc_source source;
	enum ipc_reason reason;
	bool common;
};
extern const struct tally_kind tally_kinds[TALLY_KIND_COUNT];

struct tally {
	uint64_t kinds[TALLY_KIND_COUNT];
	uint64_t permitted; /* whatever the outcome */
	struct latency latency;
};

/* The place of a kind in tally_kinds; -1: there is none. */
int tally_find(unsigned int outcome, unsigned int source, unsigned int reason);
/* As decided; elapsed_us is that of the decision. */
void tally_note(struct tally *t, const struct ipc_decision *d);
/* Of all kinds. */
uint64_t tally_total(const struct tally *t);

#endif
