/*
 * ErrorRateControl: lets a burst of failures pass, then delays each further
 * begin by a pause that doubles up to a maximum. A begin counts as a failure
 * until its success. Concurrent begins queue: a delay starts when the
 * previous one ends. Pure: the clock is an argument (0 or later).
 */
#ifndef DAEMON_CORE_ERRORRATE_H
#define DAEMON_CORE_ERRORRATE_H

#include <stdbool.h>
#include <stdint.h>

struct errorrate {
	uint32_t burst_max;
	uint32_t burst; /* 0..burst_max */
	int64_t min_us;
	int64_t max_us;
	int64_t delay_us; /* min_us..max_us */
	int64_t free_at;  /* end of the last delay that was handed out */
};

/* burst 0..UINT32_MAX, 0 < min_us <= max_us; asserted. */
void errorrate_init(
    struct errorrate *e, uint32_t burst, int64_t min_us, int64_t max_us);
/*
 * How long the caller must wait before it proceeds, in microseconds. While
 * the burst lasts it is 0; afterwards max(free_at, now) - now + delay.
 */
int64_t errorrate_begin(struct errorrate *e, int64_t now);
/*
 * The same for a caller who does not wait for longer than max_us: true with
 * its wait; false when it would be more, then *wait_us is what it would have
 * been, and nothing has changed.
 */
bool errorrate_begin_within(
    struct errorrate *e, int64_t max_us, int64_t now, int64_t *wait_us);
/* How long the last one in the queue still waits; 0: nobody does. */
int64_t errorrate_held(const struct errorrate *e, int64_t now);
void errorrate_success(struct errorrate *e);
/*
 * For lines that a packet can trigger: may one be written now? Never waits.
 * Before free_at it is refused and counted in *suppressed. From free_at on it
 * is granted and is a begin whose delay only holds later tries back: free_at
 * becomes now + delay. As nobody calls errorrate_success() for a line, each
 * full max_us of quiet between free_at and the next try counts as one.
 * Use an instance either for begin and success or for tries.
 */
bool errorrate_try(struct errorrate *e, int64_t now, uint64_t *suppressed);

#endif
