/*
 * What the files of the loop share: loop.c (turns, tasks, signals, clocks) and
 * loop_timer.c. Nobody else includes this.
 */
#ifndef DAEMON_IO_LOOP_PRIVATE_H
#define DAEMON_IO_LOOP_PRIVATE_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "daemon/core/heap.h"
#include "daemon/io/loop.h"

#define SEC_US 1000000

struct loop {
	struct event_base *base;
	struct event tail;
	struct loop_task stop;
	struct loop_task *first; /* deferred */
	struct loop_task **last;
	struct loop_task *batch; /* being run */
	bool running;
	bool behind;
	struct heap timers;
	uint32_t timer_count; /* those that are not set as well */
	uint64_t pass;        /* of timers, so many were begun */
	struct event due;     /* runs them, behind all else that is active */
	struct event alarm;
	int64_t alarm_at; /* INT64_MAX: not set */
};

/* It is active in the next turn. */
void loop_arm(struct event *event);

/* loop_timer.c */
/* Of a loop that has its base. False without memory or descriptors. */
bool loop_timers_init(struct loop *loop);
void loop_timers_fini(struct loop *loop);

#endif
