/*
 * Is the clock of this host to be suspected? Servers are silent on requests
 * whose time stamp is off, so the wall clock is held against what the kernel
 * says of it and against the relation of wall and monotonic time that a server
 * accepted last. clock_read() alone makes system calls; the rest is pure.
 */
#ifndef DAEMON_CLOCK_H
#define DAEMON_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A step that is told of. Both clocks are slewed alike, so that their relation
 * moves by steps alone; reading them one after the other adds milliseconds at
 * the worst, and time daemons slew what is smaller than this (ntpd steps from
 * 128 ms on, others from 400 ms or more). Servers tolerate more, or their
 * clients could not be in step at all.
 */
#define CLOCK_STEP_MS 100

enum clock_sync {
	CLOCK_SYNC_UNKNOWN, /* the kernel cannot be asked */
	CLOCK_SYNCHRONISED,
	CLOCK_UNSYNCHRONISED,
};

/* One look at the clocks of the host. */
struct clock_reading {
	int64_t wall_ms;
	int64_t mono_us;      /* CLOCK_MONOTONIC, as loop_now() */
	int64_t suspended_us; /* how much of the time since boot it missed */
	enum clock_sync sync;
};

void clock_read(struct clock_reading *out);
/* What adjtimex(2) returned and its status word; for clock_read(). */
enum clock_sync clock_sync_of(int state, int status);

/* The stamp that a server accepted last; all zero: none yet. */
struct clock_watch {
	bool marked;
	int64_t base_us;      /* wall less monotonic time then */
	int64_t suspended_us; /* as in struct clock_reading */
};

/*
 * A server accepted a request that was stamped with stamp_ms at mono_us.
 * Calls clock_read() only when the relation is another than before.
 */
void clock_accepted(struct clock_watch *w, uint64_t stamp_ms, int64_t mono_us);
/* The same with the reading given; for tests. */
void clock_mark(struct clock_watch *w, uint64_t stamp_ms, int64_t mono_us,
    int64_t suspended_us);
/*
 * By how much the wall clock was stepped since: 0 when by less than
 * CLOCK_STEP_MS, or when nothing was accepted yet. Time that the host was
 * suspended is no step.
 */
int64_t clock_stepped_ms(
    const struct clock_watch *w, const struct clock_reading *now);

#endif
