/* See fake_loop.h. The clocks have no owner in loop.h, so they are static. */
#include "tests/world/fake_loop.h"

#include <stdlib.h>

/* Not 0: an agent is never started together with its machine. */
#define CLOCK_BEGIN INT64_C(5000000000)
#define WALL_BEGIN  INT64_C(1767225600000)

struct loop {
	struct loop_timer *timers;
	struct loop_task *first;
	struct loop_task *batch; /* being run */
};

struct loop_timer {
	struct loop_timer *next;
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	int64_t when; /* FAKE_NEVER: not set */
	bool active;  /* will be called in this turn */
};

static int64_t now;
static int64_t wall_step;
static const char *broken;

void
fake_loop_reset(void)
{
	now = 0;
	wall_step = 0;
	broken = NULL;
}

int64_t
fake_loop_clock(void)
{
	return now;
}

void
fake_loop_move(int64_t to)
{
	if (to < now)
		abort();
	now = to;
}

void
fake_loop_step_wall(int64_t ms)
{
	wall_step += ms;
}

int64_t
fake_loop_time(int64_t clock)
{
	return CLOCK_BEGIN + clock;
}

void
fake_loop_blame(const char *fault)
{
	if (broken == NULL)
		broken = fault;
}

const char *
fake_loop_fault(void)
{
	return broken;
}

int64_t
loop_now(void)
{
	return CLOCK_BEGIN + now;
}

uint64_t
loop_wall_ms(void)
{
	return (uint64_t)(WALL_BEGIN + wall_step + now / 1000);
}

struct loop *
loop_new(void)
{
	return calloc(1, sizeof(struct loop));
}

void
loop_free(struct loop *loop)
{
	if (loop != NULL && (loop->timers != NULL || loop->first != NULL))
		fake_loop_blame("a timer or a task outlives its owner");
	free(loop);
}

/* Deferred work */

void
loop_task_init(struct loop_task *task, loop_fn *fn, void *arg)
{
	*task = (struct loop_task){.fn = fn, .arg = arg};
}

void
loop_defer(struct loop *loop, struct loop_task *task)
{
	struct loop_task **at = &loop->first;

	if (task->queued)
		return;
	while (*at != NULL)
		at = &(*at)->next;
	task->queued = true;
	task->next = NULL;
	*at = task;
}

static void
unlink_task(struct loop_task **at, const struct loop_task *task)
{
	for (; *at != NULL; at = &(*at)->next) {
		if (*at == task) {
			*at = task->next;
			return;
		}
	}
}

void
loop_cancel(struct loop *loop, struct loop_task *task)
{
	if (!task->queued)
		return;
	task->queued = false;
	unlink_task(&loop->batch, task);
	unlink_task(&loop->first, task);
}

void
fake_loop_finish(struct loop *loop)
{
	struct loop_task *task;

	loop->batch = loop->first;
	loop->first = NULL;
	while ((task = loop->batch) != NULL) {
		loop->batch = task->next;
		task->queued = false;
		task->fn(task->arg);
	}
}

/* Timers */

struct loop_timer *
loop_timer_new(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	if (timer == NULL)
		return NULL;
	*timer = (struct loop_timer){
	    .next = loop->timers,
	    .loop = loop,
	    .fn = fn,
	    .arg = arg,
	    .when = FAKE_NEVER,
	};
	loop->timers = timer;
	return timer;
}

void
loop_timer_free(struct loop_timer *timer)
{
	struct loop_timer **at;

	if (timer == NULL)
		return;
	for (at = &timer->loop->timers; *at != timer; at = &(*at)->next)
		;
	*at = timer->next;
	free(timer);
}

void
loop_timer_set(struct loop_timer *timer, int64_t when)
{
	timer->when = when;
	timer->active = false;
}

void
loop_timer_stop(struct loop_timer *timer)
{
	timer->when = FAKE_NEVER;
	timer->active = false;
}

static struct loop_timer *
first_active(struct loop *loop)
{
	struct loop_timer *first = NULL;

	for (struct loop_timer *t = loop->timers; t != NULL; t = t->next) {
		if (t->active && (first == NULL || t->when < first->when))
			first = t;
	}
	return first;
}

void
fake_loop_fire(struct loop *loop)
{
	struct loop_timer *timer;

	for (timer = loop->timers; timer != NULL; timer = timer->next)
		timer->active = timer->when <= loop_now();
	while ((timer = first_active(loop)) != NULL) {
		timer->active = false;
		timer->when = FAKE_NEVER;
		timer->fn(timer->arg);
	}
}

int64_t
fake_loop_next(const struct loop *loop)
{
	int64_t when = FAKE_NEVER;

	for (struct loop_timer *t = loop->timers; t != NULL; t = t->next) {
		if (t->when < when)
			when = t->when;
	}
	return when == FAKE_NEVER ? when : when - CLOCK_BEGIN;
}

bool
fake_loop_busy(const struct loop *loop)
{
	return loop->first != NULL || fake_loop_next(loop) <= now;
}
