/* The system calls are in clock_read(); everything else is arithmetic. */
#include "daemon/clock.h"

#include <sys/timex.h>
#include <time.h>

/* Below this the relation of the clocks is as before: reading noise. */
#define SAME_US 10000

/* Between the first and the last of readings that belong together. */
#define PAUSE_US 1000
#define TRIES    8

static int64_t
micros(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

enum clock_sync
clock_sync_of(int state, int status)
{
	if (state < 0)
		return CLOCK_SYNC_UNKNOWN;
	if (state == TIME_ERROR || (status & STA_UNSYNC) != 0)
		return CLOCK_UNSYNCHRONISED;
	return CLOCK_SYNCHRONISED;
}

/* The clocks belong together if no pause came between: then once more. */
void
clock_read(struct clock_reading *out)
{
	struct timex tx = {.modes = 0};
	int state = adjtimex(&tx), tries = 0;

	out->sync = clock_sync_of(state, tx.status);
	do {
		out->mono_us = micros(CLOCK_MONOTONIC);
		out->wall_ms = micros(CLOCK_REALTIME) / 1000;
		out->suspended_us = micros(CLOCK_BOOTTIME) - out->mono_us;
	} while (micros(CLOCK_MONOTONIC) - out->mono_us > PAUSE_US &&
		 ++tries < TRIES);
}

void
clock_mark(struct clock_watch *w, uint64_t stamp_ms, int64_t mono_us,
    int64_t suspended_us)
{
	w->marked = true;
	w->base_us = (int64_t)(stamp_ms * 1000) - mono_us;
	w->suspended_us = suspended_us;
}

void
clock_accepted(struct clock_watch *w, uint64_t stamp_ms, int64_t mono_us)
{
	int64_t moved = (int64_t)(stamp_ms * 1000) - mono_us - w->base_us;
	struct clock_reading now;

	if (w->marked && moved > -SAME_US && moved < SAME_US)
		return;
	clock_read(&now);
	clock_mark(w, stamp_ms, mono_us, now.suspended_us);
}

int64_t
clock_stepped_ms(const struct clock_watch *w, const struct clock_reading *now)
{
	int64_t slept = now->suspended_us - w->suspended_us, stepped;

	stepped =
	    (now->wall_ms * 1000 - now->mono_us - w->base_us - slept) / 1000;
	if (!w->marked || (stepped > -CLOCK_STEP_MS && stepped < CLOCK_STEP_MS))
		return 0;
	return stepped;
}
