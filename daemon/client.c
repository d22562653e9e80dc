/*
 * Clients: who may connect over IPC, and how those are told that may not.
 */
#include "daemon/dispatch_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"

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

/* Refuses, or the client is there. */
static void
admit(struct port *p, struct conn *conn, int fd)
{
	struct dispatch *d = p->dispatch;
	struct client *c = NULL;
	const char *why = "out of memory";

	d->counters.connections++;
	if (!peer_allowed(p, conn)) {
		refuse(d, conn, IPC_ERR_UNAUTHORISED,
		    "this uid and its groups may not use this listener");
		return;
	}
	c = slab_get(&d->clients_slab);
	if (c != NULL) {
		memset(c, 0, sizeof(*c));
		c->is.hooks = &dispatch_client_hooks;
		c->is.uid = conn_peer(conn)->uid;
		c->is.gid = conn_peer(conn)->gid;
		c->conn = conn;
		why = caller_admit(&c->is, p, fd);
	}
	if (why != NULL) {
		slab_put(&d->clients_slab, c);
		refuse(d, conn, IPC_ERR_BUSY, why);
		return;
	}
	c->next = d->clients;
	c->prev = &d->clients;
	if (c->next != NULL)
		c->next->prev = &c->next;
	d->clients = c;
	conn_set_user(conn, c);
}

/* Without a connection that could hear why. */
static void
say_refused(const struct port *p, int error)
{
	struct dispatch *d = p->dispatch;

	d->counters.connections_refused++;
	if (!log_may(LOG_LEVEL_DEBUG, &d->lines, loop_now(), &d->unsaid))
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
	struct dispatch *d = c->is.dispatch;

	*c->prev = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	caller_end(&c->is);
	slab_put(&d->clients_slab, c);
}

bool
client_may_stay(const struct client *c)
{
	return c->is.port->control ||
	       (caller_may_stay(&c->is) && peer_allowed(c->is.port, c->conn));
}
