/*
 * Ports in the order of their age: the last is the current one, those before
 * it are old. One task opens, another closes. Closing takes only from the
 * front, so that an operation which holds a port has all the later ones too.
 *
 * A rebind that is pending is in one place: the task, the timer (paced), or
 * close_old() (no room).
 */
#include "daemon/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/errorrate.h"

#define FAMILIES  2
#define BURST     3  /* of attempts */
#define WISHES    16 /* a server may have to ask for several until one fits */
#define MIN_US    INT64_C(100000)
#define MAX_US    INT64_C(30000000)
#define PORTS_MAX (TRANSPORT_MAX_OLD + 1)

struct transport_port {
	struct transport *transport; /* NULL: it is gone */
	struct udp *udp[FAMILIES];   /* NULL: the family is not to be had */
	uint32_t holders;
};

struct transport {
	struct loop *loop;
	const struct transport_hooks *hooks;
	void *arg;
	struct transport_port *ports[PORTS_MAX]; /* the oldest first */
	uint32_t count;                          /* 1 or more */
	bool granted;  /* the pause before this attempt is over */
	bool retrying; /* one for the same wish has failed */
	enum transport_state state;
	struct errorrate attempts; /* success: the port is open */
	struct errorrate wishes;   /* success: see transport_kept() */
	uint64_t asker;            /* the server that wished last */
	int64_t opened;            /* when the current port was */
	bool on_trial;             /* it has not satisfied the asker yet */
	struct loop_timer *timer;
	struct loop_task open;
	struct loop_task close;
	int error; /* of the last attempt */
	struct transport_counters counters;
	struct udp_counters closed[FAMILIES]; /* of ports that are gone */
};

static uint32_t
index_of(int family)
{
	return family == 4 ? 0 : 1;
}

static struct transport_port *
current(const struct transport *t)
{
	return t->ports[t->count - 1];
}

/* Has it nothing more to do, once those before it are gone? */
static bool
idle(const struct transport_port *port)
{
	for (uint32_t i = 0; i < FAMILIES; i++) {
		if (port->udp[i] != NULL && udp_waiting(port->udp[i]) > 0)
			return false;
	}
	return port->holders == 0;
}

static void
close_when_idle(struct transport_port *port)
{
	struct transport *t = port->transport;

	if (port != current(t) && idle(port))
		loop_defer(t->loop, &t->close);
}

/* Hooks of the sockets, whose arg is the port */

static void
on_datagram(void *arg, const uint8_t *bytes, size_t len, bool truncated,
    const struct endpoint *from)
{
	struct transport_port *port = arg;
	struct transport *t = port->transport;

	t->hooks->datagram(
	    t->arg, bytes, len, truncated, from, port == current(t));
}

static void
on_batch(void *arg)
{
	struct transport *t = ((struct transport_port *)arg)->transport;

	t->hooks->batch(t->arg);
}

static bool
on_wanted(void *arg, struct udp_token token)
{
	struct transport *t = ((struct transport_port *)arg)->transport;

	return t->hooks->wanted(t->arg, token);
}

static void
on_sent(void *arg, struct udp_token token, int error)
{
	struct transport_port *port = arg;
	struct transport *t = port->transport;

	t->hooks->sent(t->arg, token, error);
	close_when_idle(port);
}

static void
on_refused(void *arg, const struct endpoint *to, int error)
{
	struct transport *t = ((struct transport_port *)arg)->transport;

	t->hooks->refused(t->arg, to, error);
}

static const struct udp_hooks udp_hooks = {
    .datagram = on_datagram,
    .batch = on_batch,
    .wanted = on_wanted,
    .sent = on_sent,
    .refused = on_refused,
};

/* Opening and closing a port */

/* Hooks may run: they find no socket in it. */
static void
close_sockets(struct transport_port *port)
{
	struct transport *t = port->transport;
	struct udp *udp;

	for (uint32_t i = 0; i < FAMILIES; i++) {
		udp = port->udp[i];
		if (udp == NULL)
			continue;
		port->udp[i] = NULL;
		udp_counters_add(&t->closed[i], udp_counters(udp));
		udp_free(udp);
	}
}

static void
port_free(struct transport_port *port)
{
	close_sockets(port);
	free(port);
}

/*
 * With the families of another one, all of them, or else whatever can be had,
 * at least one. NULL with errno set.
 */
static struct transport_port *
port_new(struct transport *t, const struct transport_port *like)
{
	struct transport_port *port = calloc(1, sizeof(*port));
	int error = 0;
	bool any = false;

	if (port == NULL)
		return NULL;
	port->transport = t;
	for (uint32_t i = 0; i < FAMILIES; i++) {
		if (like != NULL && like->udp[i] == NULL)
			continue;
		port->udp[i] =
		    udp_new(t->loop, i == 0 ? 4 : 6, &udp_hooks, port);
		if (port->udp[i] != NULL)
			any = true;
		else if (error == 0)
			error = errno;
	}
	if (any && (error == 0 || like == NULL))
		return port;
	port_free(port);
	errno = error;
	return NULL;
}

/* Rebinding */

static void
try_to_rebind(struct transport *t)
{
	struct transport_port *port;

	t->state = TRANSPORT_REBINDING;
	port = port_new(t, current(t));
	if (port == NULL) {
		t->error = errno;
		t->counters.rebind_failures++;
		t->retrying = true;
		t->state = TRANSPORT_REBIND_PENDING;
		loop_defer(t->loop, &t->open);
		return;
	}
	errorrate_success(&t->attempts);
	t->error = 0;
	t->opened = loop_now();
	t->on_trial = true;
	t->counters.rebinds++;
	t->state = TRANSPORT_READY;
	t->ports[t->count++] = port;
	close_when_idle(t->ports[t->count - 2]);
}

/* How long the next attempt must wait; for a new wish, as that one, too. */
static int64_t
begin(struct transport *t, int64_t now)
{
	int64_t wait = errorrate_begin(&t->attempts, now), wish;

	if (t->retrying)
		return wait;
	wish = errorrate_begin(&t->wishes, now);
	return wish > wait ? wish : wait;
}

/* The task: an attempt now, or the timer set for it. */
static void
open_next(void *arg)
{
	struct transport *t = arg;
	int64_t now, wait;

	if (t->count == PORTS_MAX)
		return; /* close_old() comes back to it */
	if (!t->granted) {
		now = loop_now();
		wait = begin(t, now);
		t->granted = true;
		if (wait > 0) {
			loop_timer_set(t->timer, now + wait);
			return;
		}
	}
	t->granted = false;
	try_to_rebind(t);
}

/* The other task. */
static void
close_old(void *arg)
{
	struct transport *t = arg;
	bool full = t->count == PORTS_MAX;
	uint32_t n = 0;

	while (n + 1 < t->count && idle(t->ports[n]))
		port_free(t->ports[n++]);
	t->count -= n;
	for (uint32_t i = 0; i < t->count; i++)
		t->ports[i] = t->ports[i + n];
	if (full && n > 0 && t->state == TRANSPORT_REBIND_PENDING)
		loop_defer(t->loop, &t->open);
}

/*
 * A port that has lasted for the longest pause forgives the wishes before it:
 * those of several servers at once have one success between them.
 */
void
transport_rebind(struct transport *t, uint64_t server)
{
	if (t->state != TRANSPORT_READY)
		return;
	if (loop_now() - t->opened >= MAX_US)
		errorrate_init(&t->wishes, WISHES, MIN_US, MAX_US);
	t->asker = server;
	t->on_trial = false;
	t->retrying = false;
	t->state = TRANSPORT_REBIND_PENDING;
	loop_defer(t->loop, &t->open);
}

void
transport_kept(struct transport *t, uint64_t server)
{
	if (!t->on_trial || server != t->asker ||
	    loop_now() - t->opened < MIN_US)
		return;
	t->on_trial = false;
	errorrate_success(&t->wishes);
}

void
transport_stay(struct transport *t)
{
	t->state = TRANSPORT_READY;
	t->granted = false;
	loop_timer_stop(t->timer);
	loop_cancel(t->loop, &t->open);
}

struct transport *
transport_new(struct loop *loop, const struct transport_hooks *hooks, void *arg)
{
	struct transport *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->loop = loop;
	t->hooks = hooks;
	t->arg = arg;
	t->state = TRANSPORT_READY;
	t->opened = loop_now();
	errorrate_init(&t->attempts, BURST, MIN_US, MAX_US);
	errorrate_init(&t->wishes, WISHES, MIN_US, MAX_US);
	loop_task_init(&t->open, open_next, t);
	loop_task_init(&t->close, close_old, t);
	t->timer = loop_timer_new(loop, open_next, t);
	t->ports[0] = t->timer != NULL ? port_new(t, NULL) : NULL;
	if (t->ports[0] == NULL) {
		transport_free(t);
		return NULL;
	}
	t->count = 1;
	return t;
}

/* Its last holder frees it. */
static void
orphan(struct transport_port *port)
{
	port->transport = NULL;
	if (port->holders == 0)
		free(port);
}

void
transport_free(struct transport *t)
{
	int saved = errno;

	if (t == NULL)
		return;
	for (uint32_t i = 0; i < t->count; i++)
		close_sockets(t->ports[i]);
	for (uint32_t i = 0; i < t->count; i++)
		orphan(t->ports[i]);
	/* Only now: hooks of the sockets may have asked for them. */
	loop_cancel(t->loop, &t->open);
	loop_cancel(t->loop, &t->close);
	loop_timer_free(t->timer);
	free(t);
	errno = saved;
}

int
transport_send(struct transport *t, const struct endpoint *to,
    const void *bytes, size_t len, int64_t expires, struct udp_token token)
{
	struct udp *udp = current(t)->udp[index_of(to->family)];

	if (udp == NULL)
		return EAFNOSUPPORT;
	udp_send(udp, to, bytes, len, expires, token);
	return 0;
}

bool
transport_drain(struct transport *t)
{
	bool more = false;

	/* No hook opens or closes a port. */
	for (uint32_t i = 0; i < t->count; i++) {
		for (uint32_t k = 0; k < FAMILIES; k++) {
			if (t->ports[i]->udp[k] != NULL &&
			    udp_drain(t->ports[i]->udp[k]))
				more = true;
		}
	}
	return more;
}

struct transport_port *
transport_hold(struct transport *t)
{
	struct transport_port *port = current(t);

	port->holders++;
	return port;
}

void
transport_release(struct transport_port *port)
{
	if (port == NULL)
		return;
	assert(port->holders > 0);
	port->holders--;
	if (port->transport != NULL)
		close_when_idle(port);
	else if (port->holders == 0)
		free(port);
}

enum transport_state
transport_state(const struct transport *t)
{
	return t->state;
}

bool
transport_idle(const struct transport *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		if (!idle(t->ports[i]))
			return false;
	}
	return true;
}

const struct transport_counters *
transport_counters(const struct transport *t)
{
	return &t->counters;
}

int
transport_rebind_error(const struct transport *t)
{
	return t->error;
}

uint32_t
transport_old_ports(const struct transport *t)
{
	return t->count - 1;
}

uint16_t
transport_local_port(const struct transport *t, int family)
{
	const struct udp *udp = current(t)->udp[index_of(family)];

	return udp != NULL ? udp_port(udp) : 0;
}

bool
transport_udp(const struct transport *t, int family, struct udp_counters *out)
{
	const uint32_t at = index_of(family);

	*out = (struct udp_counters){0};
	if (current(t)->udp[at] == NULL)
		return false;
	*out = t->closed[at];
	for (uint32_t i = 0; i < t->count; i++)
		udp_counters_add(out, udp_counters(t->ports[i]->udp[at]));
	return true;
}
