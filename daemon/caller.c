/*
 * Whoever may ask for checks, and the caps that keep one uid, one port or one
 * greedy process from using up what the others need. Owned by whoever embeds
 * it. Invariant: a use is there while somebody uses something.
 */
#include "daemon/dispatch_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/core/container.h"

#define DESCRIPTORS_KEPT 128
/* Whoever has asked within that is one of those who ask. */
#define ASKING_US 60000000

/* number: that of a port, or 0 for all of them. */
static struct use *
use_get(struct dispatch *d, uint64_t number, uid_t uid)
{
	uint8_t key[TABLE_KEY_LEN] = {0};
	struct table_entry *e;
	struct use *use;

	memcpy(key, &number, sizeof(number));
	memcpy(key + sizeof(number), &uid, sizeof(uid));
	e = table_find(&d->uses, key);
	if (e != NULL)
		return container_of(e, struct use, entry);
	use = calloc(1, sizeof(*use));
	if (use == NULL)
		return NULL;
	pace_window_init(&use->window);
	memcpy(use->entry.key, key, sizeof(key));
	if (table_insert(&d->uses, &use->entry) != 0) {
		free(use);
		return NULL;
	}
	return use;
}

/* Takes NULL. */
static void
use_put(struct dispatch *d, struct use *use)
{
	if (use == NULL || use->connections > 0 || use->inflight > 0)
		return;
	table_remove(&d->uses, &use->entry);
	free(use);
}

/*
 * The lowest free descriptor is always the next one, so its number tells how
 * many are left. Some are kept back for the control socket, and for refused
 * connections that linger.
 */
static bool
descriptors_short(int fd)
{
	struct rlimit lim;
	rlim_t reserve;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 ||
	    lim.rlim_cur == RLIM_INFINITY)
		return false;
	reserve = lim.rlim_cur / 4;
	if (reserve > DESCRIPTORS_KEPT)
		reserve = DESCRIPTORS_KEPT;
	return (rlim_t)fd >= lim.rlim_cur - reserve;
}

/* Those are not one user. */
bool
caller_is_unknown(const struct caller *c)
{
	return c->uid == CALLER_NO_UID;
}

/* What it is refused for, and counts that; or NULL. */
static const char *
refusal(const struct caller *c, const struct port *p, int fd)
{
	const struct config_limits *l = &p->dispatch->env.setup->config->limits;
	struct agent_counters *n = &p->dispatch->counters;

	if (p->connections >= p->is.max_connections) {
		n->cap_connections++;
		return "too many connections on this listener";
	}
	if (p->control)
		return NULL;
	if (!caller_is_unknown(c) &&
	    c->all->connections >= l->max_connections_per_uid) {
		n->cap_connections_uid++;
		return "too many connections of this uid";
	}
	if (descriptors_short(fd)) {
		n->cap_descriptors++;
		return "too few descriptors are left";
	}
	return NULL;
}

const char *
caller_admit(struct caller *c, struct port *p, int fd)
{
	struct dispatch *d = p->dispatch;
	const char *why;

	c->all = use_get(d, 0, c->uid);
	c->here = use_get(d, p->number, c->uid);
	if (c->all == NULL || c->here == NULL)
		why = "out of memory";
	else
		why = refusal(c, p, fd);
	if (why != NULL) {
		use_put(d, c->all);
		use_put(d, c->here);
		return why;
	}
	c->dispatch = d;
	c->port = p;
	c->requests = NULL;
	c->leaving = false;
	c->serial = ++d->last_caller;
	p->connections++;
	p->users += c->here->connections == 0;
	c->here->connections++;
	c->all->connections++;
	return NULL;
}

void
caller_end(struct caller *c)
{
	dispatch_cancel_all(c);
	c->all->connections--;
	c->here->connections--;
	c->port->connections--;
	c->port->users -= c->here->connections == 0;
	use_put(c->dispatch, c->all);
	use_put(c->dispatch, c->here);
	dispatch_port_release(c->port);
}

/*
 * While several users are on a port, none of them may fill it: a quarter is
 * left for the others.
 */
static uint32_t
most_of_one(const struct port *p)
{
	const uint32_t most = p->is.max_inflight;

	return p->users > 1 ? most - most / 4 : most;
}

uint64_t *
caller_full(struct caller *c)
{
	struct dispatch *d = c->dispatch;
	const struct config_limits *l = &d->env.setup->config->limits;

	if (c->port->inflight >= c->port->is.max_inflight)
		return &d->counters.cap_inflight_listener;
	if (c->here->inflight >= most_of_one(c->port))
		return &d->counters.cap_inflight_share;
	if (c->all->inflight >= l->max_inflight_per_uid &&
	    !caller_is_unknown(c))
		return &d->counters.cap_inflight_uid;
	if (d->requests.count >= l->max_inflight)
		return &d->counters.cap_inflight;
	return NULL;
}

void
caller_count(struct caller *c, int more)
{
	c->port->inflight += (uint32_t)more;
	c->all->inflight += (uint32_t)more;
	c->here->inflight += (uint32_t)more;
}

void
caller_asks(const struct caller *c, int64_t now)
{
	struct asker *askers = c->dispatch->askers;

	if (askers[0].uid != c->uid) {
		askers[1] = askers[0];
		askers[0].uid = c->uid;
	}
	askers[0].until = now + ASKING_US;
}

bool
caller_is_hungry(const struct caller *c, int64_t now)
{
	const struct asker *askers = c->dispatch->askers;
	const bool last = askers[0].uid == c->uid;

	return c->port->control || askers[last].until <= now ||
	       pace_window_open(&c->all->window, c->all->inflight, now);
}

bool
caller_may_stay(const struct caller *c)
{
	return !c->port->leaving;
}

const struct config_gateway *
caller_gateway(const struct caller *c)
{
	return c->port->is.gateway;
}
