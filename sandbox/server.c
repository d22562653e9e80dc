/*
 * Sockets, batches and delayed answers. A wake-up reads a bounded number of
 * batches, so that a flood at one server cannot starve the others.
 */
#include "sandbox/server.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "proto/err.h"
#include "sandbox/engine.h"
#include "sandbox/events.h"

#define BATCH       32
#define MAX_BATCHES 4
/* One byte more than a datagram may have tells one that is too long. */
#define RECV_LEN   (PACKET_MAX + 1)
#define PORT_TRIES 16
#define RCVBUF_LEN (4 << 20)

struct socket_slot {
	struct server *server;
	struct addr addr; /* what was bound, or is wanted */
	int fd;           /* -1 while stopped */
	struct event *event;
};

struct delayed {
	TAILQ_ENTRY(delayed) link;
	struct socket_slot *slot;
	int64_t due_ms;
	struct addr to;
	size_t len;
	uint8_t bytes[];
};

struct server {
	struct server_setup setup;
	struct engine *engine;
	struct fault_dice dice;
	bool running;
	struct socket_slot slots[SERVER_MAX_ADDRS];
	struct addr addrs[SERVER_MAX_ADDRS];
	TAILQ_HEAD(delayed_list, delayed) delayed; /* by due_ms */
	size_t delayed_count;
	struct event *delay_timer; /* for the first of them */
	struct engine_result result;
	struct mmsghdr msgs[BATCH];
	struct iovec iovs[BATCH];
	struct addr froms[BATCH];
	uint8_t bytes[BATCH][RECV_LEN];
};

static int64_t
clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void
send_answer(struct socket_slot *slot, const uint8_t *bytes, size_t len,
    const struct addr *to)
{
	struct counters *c = engine_counters(slot->server->engine);
	ssize_t n;

	n = sendto(
	    slot->fd, bytes, len, 0, (const struct sockaddr *)&to->ss, to->len);
	c->values[n < 0 ? COUNT_UNSENT : COUNT_ANSWERED]++;
}

static void
drop_delayed(struct server *s, struct delayed *d)
{
	TAILQ_REMOVE(&s->delayed, d, link);
	s->delayed_count--;
	free(d);
}

static void
arm_delay_timer(struct server *s, int64_t now_ms)
{
	struct delayed *first = TAILQ_FIRST(&s->delayed);
	struct timeval tv;
	int64_t left;

	if (first == NULL)
		return;
	left = first->due_ms - now_ms;
	tv.tv_sec = left / 1000;
	tv.tv_usec = left % 1000 * 1000;
	event_add(s->delay_timer, &tv);
}

static void
on_delay(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	int64_t now = clock_ms(CLOCK_MONOTONIC);
	struct delayed *d;

	(void)fd;
	(void)what;
	while ((d = TAILQ_FIRST(&s->delayed)) != NULL && d->due_ms <= now) {
		send_answer(d->slot, d->bytes, d->len, &d->to);
		drop_delayed(s, d);
	}
	arm_delay_timer(s, now);
}

/* A later answer may be due earlier: by its jitter, or another delay. */
static void
queue_delayed(struct server *s, struct delayed *d)
{
	struct delayed *at = TAILQ_LAST(&s->delayed, delayed_list);

	while (at != NULL && at->due_ms > d->due_ms)
		at = TAILQ_PREV(at, delayed_list, link);
	if (at != NULL)
		TAILQ_INSERT_AFTER(&s->delayed, at, d, link);
	else
		TAILQ_INSERT_HEAD(&s->delayed, d, link);
	s->delayed_count++;
}

/* Returns 0, RLA_EBUSY or RLA_ENOMEM. */
static int
delay_answer(struct socket_slot *slot, const struct engine_result *r,
    const struct addr *to, int64_t now_ms, uint32_t delay_ms)
{
	struct server *s = slot->server;
	struct delayed *d;

	if (s->delayed_count >= SERVER_MAX_DELAYED)
		return RLA_EBUSY;
	d = malloc(sizeof(*d) + r->answer_len);
	if (d == NULL)
		return RLA_ENOMEM;
	d->slot = slot;
	d->due_ms = now_ms + delay_ms;
	d->to = *to;
	d->len = r->answer_len;
	memcpy(d->bytes, r->answer, r->answer_len);
	queue_delayed(s, d);
	if (TAILQ_FIRST(&s->delayed) == d)
		arm_delay_timer(s, now_ms);
	return 0;
}

static void
answer(struct socket_slot *slot, const struct addr *to, int64_t now_ms,
    uint32_t delay_ms)
{
	const struct engine_result *r = &slot->server->result;

	if (delay_ms == 0)
		send_answer(slot, r->answer, r->answer_len, to);
	else if (delay_answer(slot, r, to, now_ms, delay_ms) < 0)
		engine_counters(slot->server->engine)->values[COUNT_UNSENT]++;
}

static void
handle(struct socket_slot *slot, const uint8_t *bytes, size_t len,
    const struct addr *from)
{
	struct server *s = slot->server;
	const struct faults *faults = &s->setup.faults;
	struct engine_input in = {
	    .bytes = bytes, .len = len, .now_ms = clock_ms(CLOCK_MONOTONIC)};
	struct event_source source = {.server = s->setup.index,
	    .server_id = s->setup.server_id,
	    .wall_ms = clock_ms(CLOCK_REALTIME),
	    .from = from,
	    .plan = &in.plan};

	in.wall_ms = source.wall_ms + fault_clock_ms(faults);
	fault_roll(&s->dice, faults, &in.plan);
	engine_handle(s->engine, &in, &s->result);
	events_datagram(s->setup.events, &source, &s->result);
	if (s->result.answer_len == 0)
		return;
	answer(slot, from, in.now_ms, in.plan.delay_ms);
	if (!in.plan.duplicate)
		return;
	engine_counters(s->engine)->values[COUNT_SENT_TWICE]++;
	answer(slot, from, in.now_ms, in.plan.copy_ms);
}

static int
receive_batch(struct socket_slot *slot)
{
	struct server *s = slot->server;
	int i, n;

	for (i = 0; i < BATCH; i++) {
		s->iovs[i].iov_base = s->bytes[i];
		s->iovs[i].iov_len = RECV_LEN;
		memset(&s->msgs[i], 0, sizeof(s->msgs[i]));
		s->msgs[i].msg_hdr.msg_name = &s->froms[i].ss;
		s->msgs[i].msg_hdr.msg_namelen = sizeof(s->froms[i].ss);
		s->msgs[i].msg_hdr.msg_iov = &s->iovs[i];
		s->msgs[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(slot->fd, s->msgs, BATCH, 0, NULL);
	for (i = 0; i < n; i++) {
		s->froms[i].len = s->msgs[i].msg_hdr.msg_namelen;
		handle(slot, s->bytes[i], s->msgs[i].msg_len, &s->froms[i]);
	}
	return n;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct socket_slot *slot = arg;
	int i;

	(void)fd;
	(void)what;
	for (i = 0; i < MAX_BATCHES; i++)
		if (receive_batch(slot) < BATCH)
			break;
}

static int
open_slot(struct socket_slot *slot)
{
	struct server *s = slot->server;
	int size = RCVBUF_LEN;

	slot->fd = addr_bind(&slot->addr, SOCK_DGRAM);
	if (slot->fd < 0) {
		slot->fd = -1;
		return RLA_ESYS;
	}
	/* As much as the system lets us have. */
	(void)setsockopt(slot->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	slot->event = event_new(
	    s->setup.base, slot->fd, EV_READ | EV_PERSIST, on_readable, slot);
	if (slot->event == NULL || event_add(slot->event, NULL) < 0) {
		errno = ENOMEM;
		return RLA_ESYS;
	}
	return 0;
}

static void
close_slots(struct server *s)
{
	size_t i;

	for (i = 0; i < s->setup.addr_count; i++) {
		struct socket_slot *slot = &s->slots[i];

		if (slot->event != NULL)
			event_free(slot->event);
		slot->event = NULL;
		if (slot->fd >= 0)
			close(slot->fd);
		slot->fd = -1;
	}
}

/* Opens all slots with one port; the first one may choose it. */
static int
open_slots(struct server *s, struct addr *failed)
{
	uint16_t port = addr_port(&s->addrs[0]);
	size_t i;
	int err;

	for (i = 0; i < s->setup.addr_count; i++) {
		s->slots[i].addr = s->addrs[i];
		addr_set_port(&s->slots[i].addr, port);
		if (open_slot(&s->slots[i]) < 0) {
			err = errno;
			if (failed != NULL)
				*failed = s->slots[i].addr;
			close_slots(s);
			errno = err;
			return RLA_ESYS;
		}
		port = addr_port(&s->slots[i].addr);
	}
	return 0;
}

struct server *
server_new(const struct server_setup *setup)
{
	struct server *s = calloc(1, sizeof(*s));
	size_t i;

	if (s == NULL)
		return NULL;
	s->setup = *setup;
	TAILQ_INIT(&s->delayed);
	fault_dice_init(&s->dice, setup->seed, setup->index);
	for (i = 0; i < setup->addr_count; i++) {
		s->slots[i].server = s;
		s->slots[i].fd = -1;
		s->addrs[i] = setup->addrs[i];
	}
	s->engine = engine_new(setup->ring, setup->server_id, setup->hash_seed,
	    setup->tolerance_ms);
	s->delay_timer = evtimer_new(setup->base, on_delay, s);
	if (s->engine == NULL || s->delay_timer == NULL) {
		server_free(s);
		return NULL;
	}
	return s;
}

void
server_free(struct server *s)
{
	if (s == NULL)
		return;
	server_stop(s);
	if (s->delay_timer != NULL)
		event_free(s->delay_timer);
	engine_free(s->engine);
	free(s);
}

int
server_start(struct server *s, struct addr *failed)
{
	bool chosen = addr_port(&s->addrs[0]) != 0;
	int tries = chosen || s->setup.addr_count == 1 ? 1 : PORT_TRIES;
	size_t i;

	if (s->running)
		return 0;
	while (open_slots(s, failed) < 0)
		if (--tries == 0 || errno != EADDRINUSE)
			return RLA_ESYS;
	for (i = 0; i < s->setup.addr_count; i++)
		s->addrs[i] = s->slots[i].addr;
	s->running = true;
	return 0;
}

void
server_stop(struct server *s)
{
	struct delayed *d;

	while ((d = TAILQ_FIRST(&s->delayed)) != NULL)
		drop_delayed(s, d);
	if (s->delay_timer != NULL)
		event_del(s->delay_timer);
	close_slots(s);
	s->running = false;
}

bool
server_running(const struct server *s)
{
	return s->running;
}

void
server_set_fault(struct server *s, enum fault fault, double value)
{
	s->setup.faults.values[fault] = value;
}

uint64_t
server_id(const struct server *s)
{
	return s->setup.server_id;
}

const struct addr *
server_addrs(const struct server *s, size_t *count)
{
	*count = s->setup.addr_count;
	return s->addrs;
}

const struct counters *
server_counters(const struct server *s)
{
	return engine_counters(s->engine);
}
