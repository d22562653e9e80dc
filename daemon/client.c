/*
 * Clients: who may connect, and the caps that keep one uid, one listener or one
 * greedy process from using up what the others need.
 */
#include "daemon/dispatch_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/core/container.h"
#include "daemon/log.h"

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

static bool
peer_allowed(const struct port *p, const struct conn *conn)
{
	const struct config_listener *l = p->is.listener;
	const struct conn_peer *peer = conn_peer(conn);
	size_t i;

	if (l == NULL || (l->uid_count == 0 && l->gid_count == 0))
		return true;
	for (i = 0; i < l->uid_count; i++) {
		if (l->uids[i] == peer->uid)
			return true;
	}
	for (i = 0; i < l->gid_count; i++) {
		if (conn_in_group(conn, l->gids[i]))
			return true;
	}
	return false;
}

/* Refuses with an ERROR; the reason is for the peer and the counters. */
static void
refuse(struct dispatch *d, struct conn *conn, enum ipc_error_code code,
    const char *text)
{
	d->counters.connections_refused++;
	conn_error(conn, 0, code, text);
}

static uint32_t
port_max(const struct port *p)
{
	return p->is.listener != NULL ? p->is.listener->max_connections
				      : CONTROL_MAX_CONNECTIONS;
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

static struct client *
client_new(struct port *p, struct conn *conn, struct use *all, struct use *here)
{
	struct dispatch *d = p->dispatch;
	struct client *c = slab_get(&d->clients_slab);

	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->dispatch = d;
	c->conn = conn;
	c->port = p;
	c->all = all;
	c->here = here;
	c->next = d->clients;
	c->prev = &d->clients;
	if (c->next != NULL)
		c->next->prev = &c->next;
	d->clients = c;
	p->connections++;
	p->users += here->connections == 0;
	here->connections++;
	all->connections++;
	conn_set_user(conn, c);
	return c;
}

static void
admit(struct port *p, struct conn *conn, int fd)
{
	struct dispatch *d = p->dispatch;
	const struct config_limits *l = &d->env.setup->config->limits;
	const uid_t uid = conn_peer(conn)->uid;
	struct use *all = use_get(d, 0, uid),
		   *here = use_get(d, p->number, uid);

	d->counters.connections++;
	if (all == NULL || here == NULL)
		refuse(d, conn, IPC_ERR_BUSY, "out of memory");
	else if (!peer_allowed(p, conn))
		refuse(d, conn, IPC_ERR_UNAUTHORISED,
		    "this uid and its groups may not use this listener");
	else if (p->connections >= port_max(p))
		refuse(d, conn, IPC_ERR_BUSY,
		    "too many connections on this listener");
	else if (!p->control && all->connections >= l->max_connections_per_uid)
		refuse(
		    d, conn, IPC_ERR_BUSY, "too many connections of this uid");
	else if (!p->control && descriptors_short(fd))
		refuse(d, conn, IPC_ERR_BUSY, "too few descriptors are left");
	else if (client_new(p, conn, all, here) == NULL)
		refuse(d, conn, IPC_ERR_BUSY, "out of memory");
	use_put(d, all);
	use_put(d, here);
}

/* Without a connection that could hear why. */
static void
say_refused(const struct port *p, int error)
{
	struct dispatch *d = p->dispatch;

	d->counters.connections_refused++;
	if (!errorrate_try(&d->lines, loop_now(), &d->unsaid))
		return;
	log_debug("accept", "listener=%s unsaid=%" PRIu64 " error=\"%s\"",
	    p->is.name, d->unsaid, strerror(error));
	d->unsaid = 0;
}

void
client_accepted(void *arg, int fd)
{
	struct port *p = arg;
	struct conn *conn;

	conn = conn_new(p->dispatch->pool, fd, &dispatch_hooks, p->dispatch);
	if (conn == NULL) {
		say_refused(p, errno);
		close(fd);
		return;
	}
	admit(p, conn, fd);
}

void
client_free(struct client *c)
{
	struct dispatch *d = c->dispatch;

	*c->prev = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	c->all->connections--;
	c->here->connections--;
	c->port->connections--;
	c->port->users -= c->here->connections == 0;
	use_put(d, c->all);
	use_put(d, c->here);
	dispatch_port_release(c->port);
	slab_put(&d->clients_slab, c);
}

/*
 * While several users are on a listener, none of them may fill it: a quarter is
 * left for the others.
 */
static uint32_t
most_of_one(const struct port *p)
{
	const uint32_t most = p->is.listener->max_inflight;

	return p->users > 1 ? most - most / 4 : most;
}

bool
client_has_room(const struct client *c)
{
	const struct dispatch *d = c->dispatch;
	const struct config_limits *l = &d->env.setup->config->limits;

	return c->port->inflight < c->port->is.listener->max_inflight &&
	       c->here->inflight < most_of_one(c->port) &&
	       c->all->inflight < l->max_inflight_per_uid &&
	       d->requests.count < l->max_inflight;
}

void
client_count(struct client *c, int more)
{
	c->port->inflight += (uint32_t)more;
	c->all->inflight += (uint32_t)more;
	c->here->inflight += (uint32_t)more;
}

void
client_asks(struct client *c, int64_t now)
{
	struct asker *askers = c->dispatch->askers;
	const uid_t uid = conn_peer(c->conn)->uid;

	if (askers[0].uid != uid) {
		askers[1] = askers[0];
		askers[0].uid = uid;
	}
	askers[0].until = now + ASKING_US;
}

bool
client_is_hungry(const struct client *c, int64_t now)
{
	const struct asker *askers = c->dispatch->askers;
	const bool last = askers[0].uid == conn_peer(c->conn)->uid;

	return c->port->control || askers[last].until <= now ||
	       pace_window_open(&c->all->window, c->all->inflight, now);
}

bool
client_may_stay(const struct client *c)
{
	return c->port->control ||
	       (!c->port->leaving && peer_allowed(c->port, c->conn));
}
