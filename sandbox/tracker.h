/*
 * One latency tracker: a ring of the newest samples, of which those younger
 * than ttl_ms are live. Its latency is the mean of the newest max_samples
 * live ones, and 0 until min_samples are live. Pure: the clock (milliseconds,
 * monotonic) is an argument.
 */
#ifndef SANDBOX_TRACKER_H
#define SANDBOX_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

/* No ring holds more, whatever its buffer size. */
#define TRACKER_RING_MAX 65536

struct tracker_def {
	uint32_t ttl_ms;
	uint32_t max_samples;
	uint32_t buffer_size; /* 0 in profile v2, where the key says it */
	uint32_t min_samples;
};

struct tracker_sample {
	int64_t at_ms;
	uint32_t ms;
};

struct tracker {
	struct tracker_def def;
	uint32_t cap; /* most samples */
	struct tracker_sample *ring;
	uint32_t size; /* slots allocated; grows to cap */
	uint32_t oldest;
	uint32_t count;
};

/* cap is the effective buffer size; 0 makes a tracker that keeps nothing. */
void tracker_init(
    struct tracker *t, const struct tracker_def *def, uint32_t cap);
/* Gives the ring's slots back to the budget. */
void tracker_fini(struct tracker *t, uint32_t *budget);
bool tracker_matches(const struct tracker *t, const struct tracker_def *def);
/*
 * Adds a sample. The ring grows out of the budget (in slots, shared by all
 * trackers of a state); when it cannot, the oldest sample makes room.
 */
void tracker_add(
    struct tracker *t, int64_t now_ms, uint32_t ms, uint32_t *budget);
uint32_t tracker_latency(struct tracker *t, int64_t now_ms);

#endif
