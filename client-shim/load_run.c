/*
 * Runs a load: one loop over epoll, in which a connection that has something to
 * read reads once, and asks again for what was answered, in one send. With a
 * rate, a timer in the same loop tells when the next check is due.
 */
#include "client-shim/load.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "client-shim/load_private.h"

#define EVENTS  64
#define STOP_MS 100 /* between two questions whether to stop */

#define MS     INT64_C(1000000) /* in ns */
#define SECOND (1000 * MS)

/* One turn of the loop. */

/* ns that may pass without an answer of the agent, whatever else it says. */
static int64_t
patience(const struct load *l)
{
	if (l->patience_ms > 0)
		return l->patience_ms * MS;
	return (LOAD_PATIENCE_MS + (int64_t)l->deadline_ms) * MS;
}

/* Until when to wait, in whole ms from now on. */
static int
wait_ms(const struct load *l, int64_t now)
{
	int64_t end = l->moved + patience(l);

	if (l->wanted > 0 && l->until > 0 && l->until < end)
		end = l->until;
	if (l->stop != NULL && now + STOP_MS * MS < end)
		end = now + STOP_MS * MS;
	return end > now ? (int)((end - now + MS - 1) / MS) : 0;
}

/* For room to write, too, while something is unsent. */
static int
watch(struct load *l, struct load_conn *c)
{
	const bool wanted = c->lane.unsent_len > 0;
	struct epoll_event event = {
	    .events = EPOLLIN | (wanted ? EPOLLOUT : 0U),
	    .data.ptr = c,
	};

	if (wanted == c->watched)
		return 0;
	if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->lane.fd, &event) != 0)
		return load_fail(l->err, "epoll: %s", strerror(errno));
	c->watched = wanted;
	return 0;
}

static int
on_event(struct load *l, struct load_conn *c, uint32_t events)
{
	if (events & EPOLLOUT)
		load_lane_flush(&c->lane);
	if (events & ~(uint32_t)EPOLLOUT && load_checks_read(l, c) != 0)
		return -1;
	if (load_checks_ask(l, c, UINT64_MAX) != 0)
		return -1;
	return watch(l, c);
}

/*
 * For the next check. Not when there is none, nor when one that is due found no
 * room: then it is an answer that is waited for. It is not read when it went
 * off, since setting it makes it silent, too.
 */
static int
set_timer(struct load *l)
{
	const bool early =
	    l->pace.rate > 0 && l->wanted > 0 && load_checks_due(l) == 0;
	const int64_t at = early ? load_pace_next(&l->pace) : 0;
	const struct itimerspec timer = {
	    .it_value = {.tv_sec = at / SECOND, .tv_nsec = at % SECOND},
	};

	if (at == l->timer_at)
		return 0;
	l->timer_at = at;
	if (timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &timer, NULL) != 0)
		return load_fail(l->err, "timer: %s", strerror(errno));
	return 0;
}

/*
 * An equal part of what is due on each connection, beginning with the one whose
 * turn it is; then what some had no room for.
 */
static int
ask_all(struct load *l)
{
	const size_t room = l->count * l->window, first = l->next;
	const uint64_t wanted = l->wanted;
	uint64_t due, left, part;
	size_t i;

	for (i = 0; i < 2 * l->count && l->in_flight < room; i++) {
		struct load_conn *c = &l->conns[(first + i) % l->count];

		due = load_checks_due(l);
		if (due == 0)
			break;
		left = i < l->count ? l->count - i : 1;
		part = due / left + (due % left != 0);
		if (load_checks_ask(l, c, part) != 0 || watch(l, c) != 0)
			return -1;
	}
	l->next = (size_t)((first + wanted - l->wanted) % l->count);
	return 0;
}

/* With a rate. At the end of the time what is due and has no room is left. */
static int
ask_due(struct load *l)
{
	if (l->wanted == 0)
		return 0;
	l->asking = load_now();
	if (l->in_flight == 0)
		l->moved = l->asking; /* the agent owed nothing */
	load_pace_tell(&l->pace, l->asking);
	if (ask_all(l) != 0)
		return -1;
	if (l->until > 0 && l->asking >= l->until) {
		l->result.unasked += l->wanted;
		l->wanted = 0;
	}
	return 0;
}

int
load_turn(struct load *l)
{
	struct epoll_event events[EVENTS];
	const int64_t now = load_now();
	int i, n;

	if (l->pace.rate == 0 && l->until > 0 && now >= l->until)
		l->wanted = 0;
	l->stopped = l->stop != NULL && l->stop(l->stop_arg);
	if (l->stopped)
		return 0;
	if (set_timer(l) != 0)
		return -1;
	n = epoll_wait(l->epoll, events, EVENTS, wait_ms(l, now));
	if (n < 0 && errno != EINTR)
		return load_fail(l->err, "epoll: %s", strerror(errno));
	if (l->pace.rate > 0 && ask_due(l) != 0)
		return -1;
	for (i = 0; i < n; i++)
		if (events[i].data.ptr != NULL && /* not the timer */
		    on_event(l, events[i].data.ptr, events[i].events) != 0)
			return -1;
	/* What was there by now has been read. */
	if (now - l->moved >= patience(l))
		return load_fail(l->err, "no answer of the agent for %lld ms",
		    (long long)(patience(l) / MS));
	return 0;
}

/* Running. */

static int64_t
begin(struct load *l, uint64_t checks, int64_t us, char err[LOAD_ERR_MAX])
{
	const int64_t now = load_now();

	l->err = err;
	l->wanted = checks;
	l->until = us > 0 ? now + us * 1000 : 0;
	load_pace_begin(&l->pace, 0, now);
	l->asking = now;
	l->moved = now;
	l->answered = 0;
	l->stopped = false;
	return now;
}

static int
end(struct load *l, int64_t began, int rc)
{
	if (l->answered > 0)
		l->result.elapsed_us += (l->answered - began) / 1000;
	if (l->pace.rate > 0) {
		l->result.asking_us += (l->asking - began) / 1000;
		l->result.unasked += load_checks_due(l);
	}
	return rc;
}

static int
collect(struct load *l)
{
	while (!l->stopped && (l->wanted > 0 || l->in_flight > 0))
		if (load_turn(l) != 0)
			return -1;
	return 0;
}

int
load_run(struct load *l, uint64_t checks, int64_t us, char err[LOAD_ERR_MAX])
{
	uint64_t most = us > 0 ? UINT64_MAX : 0;
	int64_t began;

	if (us > 0 && l->rate > 0)
		most = load_pace_count(l->rate, us * 1000);
	if (checks > 0 && (us <= 0 || checks < most))
		most = checks;
	began = begin(l, most, us, err);
	load_pace_begin(&l->pace, l->rate, began);
	return end(l, began, ask_all(l) != 0 ? -1 : collect(l));
}

static int
fill(struct load *l)
{
	struct load_conn *c;

	if (ask_all(l) != 0)
		return -1;
	while (!l->stopped && l->wanted > 0)
		if (load_turn(l) != 0)
			return -1;
	for (c = l->conns; c < l->conns + l->count; c++)
		if (load_checks_ping(l, c) != 0 || watch(l, c) != 0)
			return -1;
	while (!l->stopped && l->pings > 0)
		if (load_turn(l) != 0)
			return -1;
	return l->stopped ? load_fail(l->err, "interrupted") : 0;
}

int
load_fill(struct load *l, uint64_t checks, char err[LOAD_ERR_MAX])
{
	const int64_t began = begin(l, checks, 0, err);

	if (checks > l->count * l->window - l->in_flight)
		return load_fail(
		    err, "more checks than the windows have room for");
	return end(l, began, fill(l));
}

int
load_drain(struct load *l, char err[LOAD_ERR_MAX])
{
	const int64_t began = begin(l, 0, 0, err);

	return end(l, began, collect(l));
}
