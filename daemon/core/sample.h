/*
 * Which decisions are logged: a share of those of each rule, and of all of
 * them no more lines than a second has room for. Each rule starts with a line,
 * so that one that is asked for once a day is seen, and a part of the room is
 * kept for rules that had no line for a second: a busy one cannot hide them.
 * Pure: the owner keeps one struct sample for each rule, zero at first, and one
 * budget, and passes the clock.
 */
#ifndef DAEMON_CORE_SAMPLE_H
#define DAEMON_CORE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/ratelimiter.h"

/* Lines a second, and as many at once after a quiet second. */
#define SAMPLE_COMMON  80
#define SAMPLE_RARE    20
#define SAMPLE_RARE_US 1000000

/* A share of 1; see sample_share(). */
#define SAMPLE_ALL (INT64_C(1) << 60)

struct sample {
	int64_t left; /* of shares, until the next line is due */
	int64_t told; /* when the last line was; 0: never */
};

struct sample_budget {
	struct ratelimiter common;
	struct ratelimiter rare; /* only for rules without a line lately */
};

/* share in 0..1, asserted; never 0 when it is not. */
int64_t sample_share(double share);
/* Another decision of a rule: is a line due? share is not 0. */
bool sample_due(struct sample *s, int64_t share);

void sample_budget_init(struct sample_budget *b, int64_t now);
/* Is there room for a line that is due? Then it is taken. */
bool sample_take(struct sample_budget *b, struct sample *s, int64_t now);

#endif
