/*
 * Listening sockets and the clients behind them: who may connect, and the caps
 * that keep one uid, one listener or one greedy process from using up what
 * the others need.
 */
#include "daemon/dispatch_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/core/container.h"
#include "daemon/log.h"

#define DESCRIPTORS_KEPT 128

static void
uid_key(uid_t uid, uint8_t key[TABLE_KEY_LEN])
{
	memset(key, 0, TABLE_KEY_LEN);
	memcpy(key, &uid, sizeof(uid));
}

static struct uid_use *
uid_get(struct dispatch *d, uid_t uid)
{
	uint8_t key[TABLE_KEY_LEN];
	struct table_entry *e;
	struct uid_use *use;

	uid_key(uid, key);
	e = table_find(&d->uids, key);
	if (e != NULL)
		return container_of(e, struct uid_use, entry);
	use = calloc(1, sizeof(*use));
	if (use == NULL)
		return NULL;
	use->uid = uid;
	memcpy(use->entry.key, key, sizeof(key));
	if (table_insert(&d->uids, &use->entry) != 0) {
		free(use);
		return NULL;
	}
	return use;
}

static void
uid_put(struct dispatch *d, struct uid_use *use)
{
	if (use->connections > 0 || use->inflight > 0)
		return;
	table_remove(&d->uids, &use->entry);
	free(use);
}

static bool
peer_allowed(const struct config_listener *l, const struct conn *conn)
{
	const struct conn_peer *peer = conn_peer(conn);
	size_t i;

	if (l->uid_count == 0 && l->gid_count == 0)
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
	return p->config != NULL ? p->config->max_connections
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
client_new(struct port *p, struct conn *conn, struct uid_use *use)
{
	struct dispatch *d = p->dispatch;
	struct client *c = slab_get(&d->clients_slab);

	if (c == NULL)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->dispatch = d;
	c->conn = conn;
	c->port = p;
	c->use = use;
	c->next = d->clients;
	c->prev = &d->clients;
	if (c->next != NULL)
		c->next->prev = &c->next;
	d->clients = c;
	p->connections++;
	use->connections++;
	conn_set_user(conn, c);
	return c;
}

static void
admit(struct port *p, struct conn *conn, int fd)
{
	struct dispatch *d = p->dispatch;
	struct uid_use *use = uid_get(d, conn_peer(conn)->uid);

	d->counters.connections++;
	if (use == NULL) {
		refuse(d, conn, IPC_ERR_BUSY, "out of memory");
		return;
	}
	if (p->config != NULL && !peer_allowed(p->config, conn))
		refuse(d, conn, IPC_ERR_UNAUTHORISED,
		    "this uid and its groups may not use this listener");
	else if (p->connections >= port_max(p))
		refuse(d, conn, IPC_ERR_BUSY,
		    "too many connections on this listener");
	else if (p->config != NULL &&
		 use->connections >=
		     d->env.config->limits.max_connections_per_uid)
		refuse(
		    d, conn, IPC_ERR_BUSY, "too many connections of this uid");
	else if (p->config != NULL && descriptors_short(fd))
		refuse(d, conn, IPC_ERR_BUSY, "too few descriptors are left");
	else if (client_new(p, conn, use) == NULL)
		refuse(d, conn, IPC_ERR_BUSY, "out of memory");
	uid_put(d, use);
}

static void
accepted(void *arg, int fd)
{
	struct port *p = arg;
	struct conn *conn;

	conn = conn_new(p->dispatch->pool, fd, &dispatch_hooks, p->dispatch);
	if (conn == NULL) {
		p->dispatch->counters.connections_refused++;
		log_debug("accept", "listener=%s error=\"%s\"", p->name,
		    strerror(errno));
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
	c->port->connections--;
	c->use->connections--;
	uid_put(d, c->use);
	slab_put(&d->clients_slab, c);
}

bool
client_has_room(const struct client *c)
{
	const struct dispatch *d = c->dispatch;
	const struct config_limits *l = &d->env.config->limits;

	return c->port->inflight < c->port->config->max_inflight &&
	       c->use->inflight < l->max_inflight_per_uid &&
	       d->requests.count < l->max_inflight;
}

void
client_count(struct client *c, int more)
{
	c->port->inflight += (uint32_t)more;
	c->use->inflight += (uint32_t)more;
}

static int
open_port(struct dispatch *d, size_t i, char err[DISPATCH_ERR_MAX])
{
	const struct config *config = d->env.config;
	struct port *p = &d->ports[i];
	bool control = i == config->listener_count;

	p->dispatch = d;
	p->config = control ? NULL : &config->listeners[i];
	p->name = control ? "control" : p->config->name;
	p->listener = listener_new(d->env.loop,
	    control ? config->control.path : p->config->path,
	    control ? config->control.mode : p->config->mode,
	    control ? (gid_t)-1 : p->config->gid, accepted, p, err);
	if (p->listener == NULL)
		return -1;
	return control ? listener_start(p->listener, err) : 0;
}

int
client_open_ports(struct dispatch *d, char err[DISPATCH_ERR_MAX])
{
	size_t i;

	d->port_count = d->env.config->listener_count + 1;
	d->ports = calloc(d->port_count, sizeof(*d->ports));
	if (d->ports == NULL) {
		snprintf(err, DISPATCH_ERR_MAX, "out of memory");
		d->port_count = 0;
		return -1;
	}
	for (i = 0; i < d->port_count; i++) {
		if (open_port(d, i, err) != 0)
			return -1;
	}
	return 0;
}

void
client_close_ports(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		listener_free(d->ports[i].listener);
		d->ports[i].listener = NULL;
	}
}
