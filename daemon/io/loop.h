/*
 * The event loop: libevent, precise timers, the clocks, signals and work
 * deferred to the end of a turn. Owned by the agent; everything else borrows
 * it. Single-threaded.
 */
#ifndef DAEMON_IO_LOOP_H
#define DAEMON_IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct loop;
struct loop_timer;
struct loop_signal;

typedef void loop_fn(void *arg);

/*
 * Work that runs once, after every callback that is active in this turn:
 * sends and writes of one turn leave in one batch. Embedded by its owner, who
 * calls loop_cancel() before freeing it.
 */
struct loop_task {
	loop_fn *fn;
	void *arg;
	bool queued;
	struct loop_task *next;
};

/* NULL when libevent cannot make a base. */
struct loop *loop_new(void);
void loop_free(struct loop *loop);
/* Until loop_stop(). Returns 0 or RLA_ESYS. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* One turn that does not block; for tests. */
void loop_turn(struct loop *loop);
/* For the io folder only. */
struct event_base *loop_base(struct loop *loop);

/*
 * More has come in than one turn takes: whoever makes new work may wait until
 * it is taken in. Forgotten when asked for.
 */
void loop_note_behind(struct loop *loop);
bool loop_behind(struct loop *loop);

/* The version of libevent; static. */
const char *loop_library(void);

/* CLOCK_MONOTONIC in microseconds; every wait and deadline. */
int64_t loop_now(void);
/* CLOCK_REALTIME in milliseconds; only for time stamps. */
uint64_t loop_wall_ms(void);

void loop_task_init(struct loop_task *task, loop_fn *fn, void *arg);
/* A no-op while it is queued already. */
void loop_defer(struct loop *loop, struct loop_task *task);
void loop_cancel(struct loop *loop, struct loop_task *task);

/* NULL without memory. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_fn *fn, void *arg);
void loop_timer_free(struct loop_timer *timer); /* takes NULL */
/* Fires once at or after when, an absolute loop_now() time; re-arms. */
void loop_timer_set(struct loop_timer *timer, int64_t when);
void loop_timer_stop(struct loop_timer *timer);

struct loop_signal *loop_signal_new(
    struct loop *loop, int signo, loop_fn *fn, void *arg);
void loop_signal_free(struct loop_signal *sig); /* takes NULL */

#endif
