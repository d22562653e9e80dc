/*
 * Timers: a heap and one alarm, a timerfd. libevent would set its own timerfd
 * in every turn, or, without one, round to milliseconds. Invariants: a timer
 * that a timer sets waits for the next pass, so that no pass is endless;
 * between passes the alarm or due is no later than the first timer.
 */
#include "daemon/io/loop_private.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/core/container.h"

struct loop_timer {
	struct heap_entry entry;
	struct loop *loop;
	loop_fn *fn;
	void *arg;
	uint64_t pass; /* the last before it was set, or that it was set in */
};

static void
set_alarm(struct loop *loop, int64_t when)
{
	const struct itimerspec at = {
	    .it_value = {.tv_sec = when / SEC_US,
		.tv_nsec = when % SEC_US * 1000},
	};

	if (timerfd_settime(
		event_get_fd(&loop->alarm), TFD_TIMER_ABSTIME, &at, NULL) != 0)
		abort();
	loop->alarm_at = when;
}

/*
 * An alarm that is too early looks again: most timers are moved before they are
 * due, and that costs no system call. To arm due again would take it from this
 * turn to the next.
 */
static void
await_first(struct loop *loop, int64_t now)
{
	const struct heap_entry *first = heap_first(&loop->timers);

	if (first == NULL)
		return;
	if (first->when > now) {
		if (first->when < loop->alarm_at)
			set_alarm(loop, first->when);
	} else if (!event_pending(&loop->due, EV_TIMEOUT, NULL)) {
		loop_arm(&loop->due);
	}
}

/* The first that is due in this pass, or NULL. */
static struct loop_timer *
next_due(const struct loop *loop, int64_t now)
{
	struct heap_entry *first = heap_first(&loop->timers);
	struct loop_timer *timer;

	if (first == NULL || first->when > now)
		return NULL;
	timer = container_of(first, struct loop_timer, entry);
	return timer->pass != loop->pass ? timer : NULL;
}

static void
run_timers(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	const int64_t now = loop_now();
	struct loop_timer *timer;

	(void)fd;
	(void)what;
	loop->pass++;
	while ((timer = next_due(loop, now)) != NULL) {
		heap_remove(&loop->timers, &timer->entry);
		timer->fn(timer->arg);
	}
	await_first(loop, loop_now());
}

/* What else has come in this turn goes first. */
static void
alarm_rang(evutil_socket_t fd, short what, void *arg)
{
	struct loop *loop = arg;
	uint64_t times;

	(void)what;
	if (read(fd, &times, sizeof(times)) < 0)
		return;
	loop->alarm_at = INT64_MAX;
	event_active(&loop->due, EV_TIMEOUT, 0);
}

bool
loop_timers_init(struct loop *loop)
{
	const int fd =
	    timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0)
		return false;
	heap_init(&loop->timers);
	loop->alarm_at = INT64_MAX;
	event_assign(&loop->due, loop->base, -1, 0, run_timers, loop);
	event_assign(&loop->alarm, loop->base, fd, EV_READ | EV_PERSIST,
	    alarm_rang, loop);
	if (event_add(&loop->alarm, NULL) == 0)
		return true;
	close(fd);
	return false;
}

void
loop_timers_fini(struct loop *loop)
{
	event_del(&loop->due);
	event_del(&loop->alarm);
	close(event_get_fd(&loop->alarm));
	heap_fini(&loop->timers);
}

struct loop_timer *
loop_timer_new(struct loop *loop, loop_fn *fn, void *arg)
{
	struct loop_timer *timer = malloc(sizeof(*timer));

	if (timer == NULL ||
	    heap_reserve(&loop->timers, loop->timer_count + 1) != 0) {
		free(timer);
		return NULL;
	}
	loop->timer_count++;
	heap_entry_init(&timer->entry);
	timer->loop = loop;
	timer->fn = fn;
	timer->arg = arg;
	return timer;
}

void
loop_timer_free(struct loop_timer *timer)
{
	if (timer == NULL)
		return;
	heap_remove(&timer->loop->timers, &timer->entry);
	timer->loop->timer_count--;
	free(timer);
}

void
loop_timer_set(struct loop_timer *timer, int64_t when)
{
	struct loop *loop = timer->loop;
	const int64_t now = loop_now();
	/* Not earlier than it is set, or it would go before those due longer.
	 */
	const int64_t due = when > now ? when : now;
	const int rc = heap_set(&loop->timers, &timer->entry, due);

	assert(rc == 0); /* its place was reserved */
	(void)rc;
	timer->pass = loop->pass;
	await_first(loop, now);
}

void
loop_timer_stop(struct loop_timer *timer)
{
	heap_remove(&timer->loop->timers, &timer->entry);
}
