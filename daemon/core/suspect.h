/*
 * Adaptive preference: which servers the policy should not wait for. A server
 * that leaves `after` operations in a row unanswered past their preference
 * deadline is suspected, and the first valid answer of it clears that. Pure:
 * the owner keeps one of these for each server and passes the clock.
 *
 * A miss counts only when nothing has come from the server since the operation
 * began: misses of operations that were under way when a dead server came back
 * must not outvote its answers.
 */
#ifndef DAEMON_CORE_SUSPECT_H
#define DAEMON_CORE_SUSPECT_H

#include <stdbool.h>
#include <stdint.h>

struct suspect {
	uint32_t missed;     /* in a row; stays at UINT32_MAX */
	bool heard;          /* ever */
	int64_t answered_at; /* the last answer; with heard */
};

/* Never asked, never suspected. */
void suspect_init(struct suspect *s);
/* An operation that began at start was missed. True when that makes it
 * suspected. after 0: never suspected. */
bool suspect_missed(struct suspect *s, uint32_t after, int64_t start);
/* A valid answer came, to whatever operation. True when that clears it. */
bool suspect_answered(struct suspect *s, uint32_t after, int64_t now);
bool suspect_is(const struct suspect *s, uint32_t after);

#endif
