/*
 * What a server counts. One table is the source of the counters, of their
 * names in JSON lines and of the reasons in events; the manual page lists the
 * same names in the same order.
 */
#ifndef SANDBOX_COUNTERS_H
#define SANDBOX_COUNTERS_H

#include <stdint.h>

#define COUNTERS(X)                               \
	X(COUNT_RECEIVED, "received")             \
	X(COUNT_REQUEST, "request")               \
	X(COUNT_ALLOWED, "allowed")               \
	X(COUNT_DENIED, "denied")                 \
	X(COUNT_QUOTA, "quota")                   \
	X(COUNT_DUPLICATE, "duplicate")           \
	X(COUNT_REPORT, "report")                 \
	X(COUNT_LABEL_OVERFLOW, "label-overflow") \
	X(COUNT_MALFORMED, "malformed")           \
	X(COUNT_UNKNOWN_KEY, "unknown-key")       \
	X(COUNT_AUTH, "auth")                     \
	X(COUNT_MGMT, "mgmt")                     \
	X(COUNT_STALE, "stale")                   \
	X(COUNT_MISMATCH, "mismatch")             \
	X(COUNT_FULL, "full")                     \
	X(COUNT_DROPPED, "dropped")               \
	X(COUNT_SENT_TWICE, "sent-twice")         \
	X(COUNT_CORRUPTED, "corrupted")           \
	X(COUNT_WRONG_ID, "wrong-id")             \
	X(COUNT_REBIND_ASKED, "rebind-asked")     \
	X(COUNT_ANSWERED, "answered")             \
	X(COUNT_UNSENT, "unsent")

enum counter {
#define COUNTER_ENUM(id, name) id,
	COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
};

#define COUNTER_PLUS_ONE(id, name) +1
enum { COUNTER_COUNT = COUNTERS(COUNTER_PLUS_ONE) };
#undef COUNTER_PLUS_ONE

struct counters {
	uint64_t values[COUNTER_COUNT];
};

const char *counter_name(enum counter c);

#endif
