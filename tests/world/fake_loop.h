/*
 * The event loop of a world: daemon/io/loop.h on a clock that only its owner
 * moves. One turn is: timers that are due and sockets that are readable, in
 * the order that the owner chooses, then what they have deferred. Times here
 * are the script's own, which begin at 0.
 */
#ifndef TESTS_WORLD_FAKE_LOOP_H
#define TESTS_WORLD_FAKE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/io/loop.h"

#define FAKE_NEVER INT64_MAX

/* Back to 0, and no fault. */
void fake_loop_reset(void);

int64_t fake_loop_clock(void);
/* Never backwards. The wall clock goes with it. */
void fake_loop_move(int64_t to);
/* A step of the wall clock alone. */
void fake_loop_step_wall(int64_t ms);
/* A time of the script as loop_now() has it. */
int64_t fake_loop_time(int64_t clock);

/* Calls the timers that are due; those that they set wait for the next turn. */
void fake_loop_fire(struct loop *loop);
/* Runs what is deferred; what that defers waits for the next turn. */
void fake_loop_finish(struct loop *loop);
/* Is a timer due or something deferred? */
bool fake_loop_busy(const struct loop *loop);
/* When the first timer is due, or FAKE_NEVER. */
int64_t fake_loop_next(const struct loop *loop);

/* How the code under test broke a contract of io; the first one is kept. */
void fake_loop_blame(const char *fault);
const char *fake_loop_fault(void);

#endif
