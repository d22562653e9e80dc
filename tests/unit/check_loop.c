/*
 * daemon/io/loop: timers, the order of deferred tasks within a turn and over
 * turns, stopping, signals.
 */
#include "daemon/io/loop.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "tests/unit/harness.h"

#define LOG_MAX 64

static struct loop *loop;
static char events[LOG_MAX];

static void
setup(void)
{
	memset(events, 0, sizeof(events));
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
}

static void
teardown(void)
{
	loop_free(loop);
}

static void
note(char c)
{
	size_t n = strlen(events);

	ck_assert_uint_lt(n, LOG_MAX - 1);
	events[n] = c;
}

/* A letter, and what to do when it comes up. */
struct actor {
	char letter;
	struct loop_task task;
	struct loop_timer *timer;
	struct loop_task *defers;
	struct loop_task *cancels;
	bool stops;
};

static void
act(void *arg)
{
	struct actor *a = arg;

	note(a->letter);
	if (a->defers != NULL)
		loop_defer(loop, a->defers);
	if (a->cancels != NULL)
		loop_cancel(loop, a->cancels);
	if (a->stops)
		loop_stop(loop);
}

static void
actor_init(struct actor *a, char letter)
{
	*a = (struct actor){.letter = letter};
	loop_task_init(&a->task, act, a);
}

static void
turn_until(const char *want)
{
	int64_t limit = loop_now() + 10 * 1000000;

	while (strcmp(events, want) != 0) {
		ck_assert_msg(
		    loop_now() < limit, "got %s, want %s", events, want);
		ck_assert_uint_le(strlen(events), strlen(want));
		loop_turn(loop);
	}
}

START_TEST(tasks_run_in_order_at_the_end_of_the_turn)
{
	struct actor a, b, x, y;

	actor_init(&x, 'x');
	actor_init(&y, 'y');
	actor_init(&a, 'a');
	actor_init(&b, 'b');
	a.defers = &x.task;
	b.defers = &y.task;
	a.timer = loop_timer_new(loop, act, &a);
	b.timer = loop_timer_new(loop, act, &b);
	loop_timer_set(a.timer, 0);
	loop_timer_set(b.timer, 0);
	while (events[0] == '\0')
		loop_turn(loop); /* both timers are due by the first */
	ck_assert_str_eq(events, "abxy");
	loop_timer_free(a.timer);
	loop_timer_free(b.timer);
}
END_TEST

START_TEST(a_task_queued_twice_runs_once)
{
	struct actor a;

	actor_init(&a, 'a');
	loop_defer(loop, &a.task);
	loop_defer(loop, &a.task);
	ck_assert(a.task.queued);
	loop_turn(loop);
	loop_turn(loop);
	ck_assert_str_eq(events, "a");
	ck_assert(!a.task.queued);
	loop_defer(loop, &a.task);
	loop_turn(loop);
	ck_assert_str_eq(events, "aa");
}
END_TEST

START_TEST(a_task_of_a_task_waits_for_the_next_turn)
{
	struct actor a, b;

	actor_init(&a, 'a');
	actor_init(&b, 'b');
	a.defers = &b.task;
	loop_defer(loop, &a.task);
	loop_turn(loop);
	ck_assert_str_eq(events, "a");
	turn_until("ab");
}
END_TEST

START_TEST(a_task_that_always_comes_back_starves_nobody)
{
	struct actor again, timer, last;

	actor_init(&again, '.');
	actor_init(&timer, 't');
	actor_init(&last, 'l');
	again.defers = &again.task;
	timer.timer = loop_timer_new(loop, act, &timer);
	timer.defers = &last.task;
	loop_defer(loop, &again.task);
	loop_turn(loop);
	loop_timer_set(timer.timer, 0);
	loop_turn(loop);
	/* The tail stays behind the timers of its turn. */
	ck_assert_str_eq(events, ".t.l");
	loop_cancel(loop, &again.task);
	loop_timer_free(timer.timer);
}
END_TEST

START_TEST(tasks_are_cancelled_wherever_they_wait)
{
	struct actor a, b, c, d;

	actor_init(&a, 'a');
	actor_init(&b, 'b');
	actor_init(&c, 'c');
	actor_init(&d, 'd');
	/* The last of the list: what is deferred next must still arrive. */
	loop_defer(loop, &a.task);
	loop_defer(loop, &b.task);
	loop_cancel(loop, &b.task);
	loop_cancel(loop, &b.task);
	loop_defer(loop, &c.task);
	loop_turn(loop);
	ck_assert_str_eq(events, "ac");
	/* One of the batch that runs. */
	a.cancels = &b.task;
	loop_defer(loop, &a.task);
	loop_defer(loop, &b.task);
	loop_defer(loop, &c.task);
	loop_turn(loop);
	ck_assert_str_eq(events, "acac");
	/* One deferred by the batch that runs. */
	a.cancels = NULL;
	a.defers = &d.task;
	b.cancels = &d.task;
	loop_defer(loop, &a.task);
	loop_defer(loop, &b.task);
	for (int i = 0; i < 5; i++)
		loop_turn(loop);
	ck_assert_str_eq(events, "acacab");
	ck_assert(!d.task.queued);
}
END_TEST

START_TEST(stopping_still_does_what_the_turn_deferred)
{
	struct actor a, x;

	actor_init(&a, 'a');
	actor_init(&x, 'x');
	a.stops = true;
	a.defers = &x.task;
	a.timer = loop_timer_new(loop, act, &a);
	loop_timer_set(a.timer, loop_now() + 1000);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_str_eq(events, "ax");
	/* It runs again, and can be stopped before it does. */
	loop_stop(loop);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_str_eq(events, "ax");
	loop_timer_free(a.timer);
}
END_TEST

static int64_t fired_at;

static void
stop_and_tell(void *arg)
{
	(void)arg;
	fired_at = loop_now();
	loop_stop(loop);
}

START_TEST(a_timer_is_never_early)
{
	struct loop_timer *t = loop_timer_new(loop, stop_and_tell, NULL);

	for (int64_t us = 0; us < 3000; us += 137) {
		int64_t when = loop_now() + us;

		loop_timer_set(t, when);
		ck_assert_int_eq(loop_run(loop), 0);
		ck_assert_int_ge(fired_at, when);
	}
	loop_timer_free(t);
}
END_TEST

START_TEST(a_timer_is_moved_and_stopped)
{
	struct actor a, b;

	actor_init(&a, 'a');
	actor_init(&b, 'b');
	a.timer = loop_timer_new(loop, act, &a);
	b.timer = loop_timer_new(loop, act, &b);
	loop_timer_set(a.timer, loop_now() + 1000);
	loop_timer_set(b.timer, loop_now() + 2000);
	loop_timer_set(a.timer, loop_now() + 3000);
	turn_until("ba");
	loop_timer_set(a.timer, loop_now() + 1000);
	loop_timer_set(b.timer, loop_now() + 2000);
	loop_timer_stop(a.timer);
	loop_timer_stop(a.timer);
	turn_until("bab");
	loop_timer_set(a.timer, INT64_MAX); /* no overflow */
	loop_timer_set(b.timer, INT64_MIN);
	turn_until("babb");
	loop_timer_free(a.timer);
	loop_timer_free(b.timer);
	loop_timer_free(NULL);
}
END_TEST

/* A timer that sets itself again is due once a turn, and others are, too. */
struct again {
	struct loop_timer *timer;
	unsigned int times;
};

static void
fire_again(void *arg)
{
	struct again *again = arg;

	again->times++;
	loop_timer_set(again->timer, 0);
}

START_TEST(a_timer_that_comes_back_starves_nobody)
{
	struct again again = {0};
	struct actor a;

	actor_init(&a, 'a');
	a.timer = loop_timer_new(loop, act, &a);
	again.timer = loop_timer_new(loop, fire_again, &again);
	loop_timer_set(again.timer, 0);
	loop_timer_set(a.timer, loop_now() + 2000);
	while (events[0] == '\0') {
		const unsigned int before = again.times;

		loop_turn(loop);
		ck_assert_uint_le(again.times, before + 1);
	}
	ck_assert_uint_gt(again.times, 1);
	loop_timer_free(a.timer);
	loop_timer_free(again.timer);
}
END_TEST

/* Any number, set, moved, stopped: in order, none early, none forgotten. */
struct alarm_clock {
	struct loop_timer *timer;
	int64_t when; /* 0: not set */
};

static int64_t rang_last;

static void
ring(void *arg)
{
	struct alarm_clock *clock = arg;

	if (clock->when == 0 || clock->when > loop_now() ||
	    clock->when < rang_last)
		ck_abort_msg("not this one, or not yet");
	rang_last = clock->when;
	clock->when = 0;
}

START_TEST(any_timers)
{
	enum { CLOCKS = 300 };
	static struct alarm_clock clocks[CLOCKS];
	uint64_t seed = harness_seed();
	unsigned int left = CLOCKS;
	int64_t limit = loop_now() + 10 * 1000000;

	for (int i = 0; i < CLOCKS; i++)
		clocks[i].timer = loop_timer_new(loop, ring, &clocks[i]);
	for (int i = 0; i < 4 * CLOCKS; i++) {
		struct alarm_clock *clock =
		    &clocks[harness_below(&seed, CLOCKS)];

		clock->when =
		    loop_now() + 30000 + (int64_t)harness_below(&seed, 30000);
		loop_timer_set(clock->timer, clock->when);
		if (harness_below(&seed, 4) == 0) {
			clock->when = 0;
			loop_timer_stop(clock->timer);
		}
	}
	while (left > 0) {
		ck_assert_int_lt(loop_now(), limit);
		loop_turn(loop);
		left = 0;
		for (int i = 0; i < CLOCKS; i++)
			left += clocks[i].when != 0;
	}
	for (int i = 0; i < CLOCKS; i++)
		loop_timer_free(clocks[i].timer);
}
END_TEST

/* The best of many is a matter of the timer, the others of the machine. */
START_TEST(a_timer_is_no_millisecond_late)
{
	struct loop_timer *t = loop_timer_new(loop, stop_and_tell, NULL);
	struct loop_timer *far = loop_timer_new(loop, stop_and_tell, NULL);
	int64_t best = INT64_MAX;

	loop_timer_set(far, loop_now() + 100 * 1000000);

	for (int i = 0; i < 200; i++) {
		const int64_t when = loop_now() + 300;

		loop_timer_set(t, when);
		ck_assert_int_eq(loop_run(loop), 0);
		if (fired_at - when < best)
			best = fired_at - when;
	}
	ck_assert_int_lt(best, 400);
	loop_timer_free(t);
	loop_timer_free(far);
}
END_TEST

static void
take_byte(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	(void)what;
	(void)arg;
	ck_assert_int_eq(read(fd, &byte, 1), 1);
	note(byte);
}

/* What has come when a timer is due goes before it. */
START_TEST(a_timer_is_behind_what_has_come)
{
	struct event *readable;
	struct actor a;
	int fds[2];

	actor_init(&a, 'a');
	a.timer = loop_timer_new(loop, act, &a);
	ck_assert_int_eq(pipe(fds), 0);
	readable = event_new(
	    loop_base(loop), fds[0], EV_READ | EV_PERSIST, take_byte, NULL);
	ck_assert_int_eq(event_add(readable, NULL), 0);
	for (int i = 0; i < 20; i++) {
		const int64_t when = loop_now() + 1000;

		memset(events, 0, sizeof(events));
		loop_timer_set(a.timer, when);
		while (loop_now() <= when + 100)
			continue;
		ck_assert_int_eq(write(fds[1], "i", 1), 1);
		turn_until("ia");
	}
	event_free(readable);
	close(fds[0]);
	close(fds[1]);
	loop_timer_free(a.timer);
}
END_TEST

static void
set_far(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	loop_timer_set(arg, loop_now() + 60 * INT64_C(1000000));
}

/* Whoever sets a timer in every turn keeps no other from its time. */
START_TEST(a_timer_that_is_always_set_starves_nobody)
{
	struct event *readable;
	struct actor a, far;
	int fds[2];

	actor_init(&a, 'a');
	actor_init(&far, 'f');
	a.timer = loop_timer_new(loop, act, &a);
	far.timer = loop_timer_new(loop, act, &far);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], "i", 1), 1);
	readable = event_new(
	    loop_base(loop), fds[0], EV_READ | EV_PERSIST, set_far, far.timer);
	ck_assert_int_eq(event_add(readable, NULL), 0);
	loop_timer_set(a.timer, 0);
	loop_turn(loop);
	ck_assert_str_eq(events, "a");
	loop_timer_set(a.timer, loop_now() + 1000);
	turn_until("aa");
	event_free(readable);
	close(fds[0]);
	close(fds[1]);
	loop_timer_free(a.timer);
	loop_timer_free(far.timer);
}
END_TEST

static struct loop_timer *suicide;

static void
free_itself(void *arg)
{
	note(*(char *)arg);
	loop_timer_free(suicide);
	suicide = NULL;
}

START_TEST(a_timer_may_be_freed_by_its_function)
{
	char letter = 's';

	suicide = loop_timer_new(loop, free_itself, &letter);
	loop_timer_set(suicide, 0);
	turn_until("s");
}
END_TEST

static void
use_time(void *arg)
{
	struct loop_timer *t = arg;
	int64_t until = loop_now() + 20000;

	while (loop_now() < until)
		continue;
	fired_at = until + 1000;
	loop_timer_set(t, fired_at);
}

static void
judge_time(void *arg)
{
	(void)arg;
	/* Cached time would have set it 20 ms too early. */
	ck_assert_int_ge(loop_now(), fired_at);
	loop_stop(loop);
}

START_TEST(time_is_not_cached_over_a_long_callback)
{
	struct loop_timer *t = loop_timer_new(loop, judge_time, NULL);
	struct loop_timer *busy = loop_timer_new(loop, use_time, t);

	loop_timer_set(busy, 0);
	ck_assert_int_eq(loop_run(loop), 0);
	loop_timer_free(t);
	loop_timer_free(busy);
}
END_TEST

START_TEST(signals_come_through_the_loop)
{
	struct actor a;
	struct loop_signal *sig;

	actor_init(&a, 's');
	sig = loop_signal_new(loop, SIGUSR1, act, &a);
	ck_assert_ptr_nonnull(sig);
	raise(SIGUSR1);
	turn_until("s");
	raise(SIGUSR1);
	turn_until("ss");
	loop_signal_free(sig);
	loop_signal_free(NULL);
}
END_TEST

START_TEST(the_environment_chooses_no_backend)
{
	struct loop *other;

	setenv("EVENT_NOEPOLL", "1", 1);
	other = loop_new();
	unsetenv("EVENT_NOEPOLL");
	ck_assert_ptr_nonnull(other);
	ck_assert_str_eq(event_base_get_method(loop_base(other)), "epoll");
	loop_free(other);
}
END_TEST

START_TEST(clocks)
{
	struct timespec ts;
	uint64_t wall = loop_wall_ms();
	int64_t now = loop_now();

	clock_gettime(CLOCK_REALTIME, &ts);
	ck_assert_uint_le(
	    (uint64_t)ts.tv_sec - wall / 1000, 2); /* milliseconds */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ck_assert_int_le((int64_t)ts.tv_sec - now / 1000000, 2);
	ck_assert_int_le(now, loop_now());
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("loop");
	TCase *tc = tcase_create("loop");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, tasks_run_in_order_at_the_end_of_the_turn);
	tcase_add_test(tc, a_task_queued_twice_runs_once);
	tcase_add_test(tc, a_task_of_a_task_waits_for_the_next_turn);
	tcase_add_test(tc, a_task_that_always_comes_back_starves_nobody);
	tcase_add_test(tc, tasks_are_cancelled_wherever_they_wait);
	tcase_add_test(tc, stopping_still_does_what_the_turn_deferred);
	tcase_add_test(tc, a_timer_is_never_early);
	tcase_add_test(tc, a_timer_is_moved_and_stopped);
	tcase_add_test(tc, a_timer_that_comes_back_starves_nobody);
	tcase_add_test(tc, any_timers);
	tcase_add_test(tc, a_timer_is_no_millisecond_late);
	tcase_add_test(tc, a_timer_is_behind_what_has_come);
	tcase_add_test(tc, a_timer_that_is_always_set_starves_nobody);
	tcase_add_test(tc, a_timer_may_be_freed_by_its_function);
	tcase_add_test(tc, time_is_not_cached_over_a_long_callback);
	tcase_add_test(tc, signals_come_through_the_loop);
	tcase_add_test(tc, the_environment_chooses_no_backend);
	tcase_add_test(tc, clocks);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
