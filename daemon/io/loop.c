/*
 * libevent behind loop.h. One event, the tail, runs the deferred tasks: made
 * active from a callback, it queues behind everything that is active already.
 * Invariant: tasks deferred by a task wait for the next pass, so that no pass
 * is endless.
 */
#include "daemon/io/loop_private.h"

#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#include "proto/err.h"

struct loop_signal {
	struct event event;
	loop_fn *fn;
	void *arg;
};

/*
 * Only libevent's array of such events can fail to grow. An agent whose timers
 * are lost misses every deadline without a word; one that dies is started
 * again.
 */
void
loop_arm(struct event *event)
{
	const struct timeval now = {0};

	if (event_add(event, &now) != 0)
		abort();
}

static void
run_tasks(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	struct loop_task *task;

	(void)fd;
	if (what & EV_TIMEOUT) { /* a timer's place is not the last */
		event_active(&loop->tail, EV_WRITE, 0);
		return;
	}
	loop->batch = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	loop->running = true;
	while ((task = loop->batch) != NULL) {
		loop->batch = task->next;
		task->queued = false;
		task->fn(task->arg);
	}
	loop->running = false;
	if (loop->first != NULL)
		loop_arm(&loop->tail);
}

static void
break_off(void *arg)
{
	struct loop *loop = arg;

	event_base_loopbreak(loop->base);
}

static struct event_base *
base_new(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (config == NULL)
		return NULL;
	event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

struct loop *
loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->base = base_new();
	if (loop->base == NULL || !loop_timers_init(loop)) {
		if (loop->base != NULL)
			event_base_free(loop->base);
		free(loop);
		return NULL;
	}
	loop->last = &loop->first;
	loop_task_init(&loop->stop, break_off, loop);
	event_assign(&loop->tail, loop->base, -1, 0, run_tasks, loop);
	return loop;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	event_del(&loop->tail);
	loop_timers_fini(loop);
	event_base_free(loop->base);
	free(loop);
}

int
loop_run(struct loop *loop)
{
	int r = event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);

	return r < 0 ? RLA_ESYS : 0;
}

/* Through the tail: what this turn has deferred is still done. */
void
loop_stop(struct loop *loop)
{
	loop_defer(loop, &loop->stop);
}

void
loop_turn(struct loop *loop)
{
	event_base_loop(loop->base,
	    EVLOOP_ONCE | EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY);
}

struct event_base *
loop_base(struct loop *loop)
{
	return loop->base;
}

void
loop_note_behind(struct loop *loop)
{
	loop->behind = true;
}

bool
loop_behind(struct loop *loop)
{
	const bool behind = loop->behind;

	loop->behind = false;
	return behind;
}

const char *
loop_library(void)
{
	return event_get_version();
}

int64_t
loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * SEC_US + ts.tv_nsec / 1000;
}

uint64_t
loop_wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
loop_task_init(struct loop_task *task, loop_fn *fn, void *arg)
{
	*task = (struct loop_task){.fn = fn, .arg = arg};
}

void
loop_defer(struct loop *loop, struct loop_task *task)
{
	if (task->queued)
		return;
	task->queued = true;
	task->next = NULL;
	*loop->last = task;
	loop->last = &task->next;
	if (!loop->running)
		event_active(&loop->tail, EV_WRITE, 0);
}

static bool
unlinked(struct loop_task **at, const struct loop_task *task)
{
	for (; *at != NULL; at = &(*at)->next) {
		if (*at == task) {
			*at = task->next;
			return true;
		}
	}
	return false;
}

void
loop_cancel(struct loop *loop, struct loop_task *task)
{
	if (!task->queued)
		return;
	task->queued = false;
	if (unlinked(&loop->batch, task) || !unlinked(&loop->first, task))
		return;
	loop->last = &loop->first;
	while (*loop->last != NULL)
		loop->last = &(*loop->last)->next;
}

static void
signal_came(evutil_socket_t signo, short what, void *arg)
{
	struct loop_signal *sig = arg;

	(void)signo;
	(void)what;
	sig->fn(sig->arg);
}

struct loop_signal *
loop_signal_new(struct loop *loop, int signo, loop_fn *fn, void *arg)
{
	struct loop_signal *sig = malloc(sizeof(*sig));

	if (sig == NULL)
		return NULL;
	sig->fn = fn;
	sig->arg = arg;
	evsignal_assign(&sig->event, loop->base, signo, signal_came, sig);
	if (event_add(&sig->event, NULL) != 0) {
		free(sig);
		return NULL;
	}
	return sig;
}

void
loop_signal_free(struct loop_signal *sig)
{
	if (sig == NULL)
		return;
	event_del(&sig->event);
	free(sig);
}
