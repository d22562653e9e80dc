/*
 * What the scenarios of a run got to, so that a run which tests nothing does
 * not pass for one that finds nothing. The driver counts.
 */
#ifndef TESTS_SIM_REACH_H
#define TESTS_SIM_REACH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* clang-format off */
#define REACH_LIST(X) \
	X(REACH_SCENARIOS, "scenarios") \
	X(REACH_REFUSED, "policies refused") \
	X(REACH_FIXED, "fixed schedules") \
	X(REACH_LINEAR, "linear schedules") \
	X(REACH_EXPONENTIAL, "exponential schedules") \
	X(REACH_FIRST_ROUND, "first-round presets") \
	X(REACH_NO_FINAL, "policies without a final interval") \
	X(REACH_NO_DELIVERY, "policies without completion delivery") \
	X(REACH_OPS, "operations") \
	X(REACH_OVERLAPS, "begun while others ran") \
	X(REACH_RESUMED, "sent again by their callers") \
	X(REACH_RESUMED_FINAL, "of these, in the final interval") \
	X(REACH_RESUMED_OVER, "of these, after the horizon") \
	X(REACH_AGE_TIES, "snapshots with ties in startup time") \
	X(REACH_CROWDS, "snapshots of more than 32 servers") \
	X(REACH_ALLOWED, "selected, allowed") \
	X(REACH_DENIED, "selected, denied") \
	X(REACH_BY_OLDEST, "decided by the oldest") \
	X(REACH_BY_PREFERRED, "decided by a preferred one, the oldest suspected") \
	X(REACH_BY_OLDER, "decided by one older than the preferred") \
	X(REACH_KEPT, "decided by a candidate that was kept") \
	X(REACH_AT_ONCE, "decided by a younger one past the preference") \
	X(REACH_IMPATIENT, "decided at the caller's deadline") \
	X(REACH_IN_FINAL, "decided in the final interval") \
	X(REACH_TIMEOUT, "timeouts at the horizon") \
	X(REACH_DEADLINE, "timeouts at the caller's deadline") \
	X(REACH_NO_SERVER, "without a server") \
	X(REACH_NOT_SENT, "not sent") \
	X(REACH_CANCELLED, "cancelled") \
	X(REACH_CANCELLED_LATE, "cancels after the end") \
	X(REACH_SENDS, "sends") \
	X(REACH_REPLAYS, "replays") \
	X(REACH_PARTIAL, "sends refused in part") \
	X(REACH_REFUSED_SENDS, "later sends refused whole") \
	X(REACH_DELIVERIES, "deliveries") \
	X(REACH_UNDELIVERED, "deliveries too late to be sent") \
	X(REACH_READS, "valid answers read") \
	X(REACH_DUPLICATES, "duplicate answers") \
	X(REACH_REORDERED, "answers overtaken by later ones") \
	X(REACH_LATE, "answers after the end") \
	X(REACH_OUTSIDERS, "answers of servers that have left the membership") \
	X(REACH_GARBAGE, "corrupt datagrams") \
	X(REACH_STRANGERS, "answers of unknown servers") \
	X(REACH_PHOTO_FINISH, "answers readable at the very deadline") \
	X(REACH_STALLS, "wake-ups late by a stall") \
	X(REACH_SKIPPED, "rounds that a stall passed over") \
	X(REACH_CHANGES, "membership changes") \
	X(REACH_CHANGES_UNDER, "of these, under running operations") \
	X(REACH_MISSES, "misses") \
	X(REACH_RAISED, "suspicions raised") \
	X(REACH_CLEARED, "suspicions cleared") \
	X(REACH_ALL_SUSPECTED, "operations with every server suspected")
/* clang-format on */

#define REACH_ENUM(id, text) id,
enum reach_class { REACH_LIST(REACH_ENUM) REACH_CLASSES };
#undef REACH_ENUM

struct reach {
	uint64_t count[REACH_CLASSES];
};

void reach_add(struct reach *to, const struct reach *from);
/* One line for each class, after prefix. */
void reach_print(const struct reach *r, const char *prefix, FILE *f);
/* Names a class that was never reached, or NULL. */
const char *reach_missing(const struct reach *r);

#endif
