/* See latency.h. Most of what is noted is short, so the search begins there. */
#include "daemon/core/latency.h"

#define BOUND(us, text) us,
#define TEXT(us, text)  text,

static const int64_t bounds[] = {LATENCY_BOUNDS(BOUND)};

const char *const latency_bound_texts[LATENCY_BUCKETS] = {LATENCY_BOUNDS(TEXT)};

void
latency_note(struct latency *l, int64_t us)
{
	uint32_t i = 0;

	while (i < LATENCY_BUCKETS && us > bounds[i])
		i++;
	l->counts[i]++;
	l->sum_us += us > 0 ? (uint64_t)us : 0;
}
