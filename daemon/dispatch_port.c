/*
 * Listening sockets: those of a configuration, and how they follow another
 * one. Two sockets are the same when their paths are. A port that no
 * configuration has any more stays until its last connection is gone. A socket
 * that was passed to this process is taken when the configuration has it.
 */
#include "daemon/dispatch_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/log.h"
#include "daemon/message.h"

/* Room for what a listener or the activation has to say. */
#define PORT_ERR_MAX ACTIVATION_ERR_MAX
#define MODE_ALL     0777

_Static_assert(PORT_ERR_MAX >= LISTENER_ERR_MAX, "room for its lines");

static size_t
spec_count(const struct config *config)
{
	return config->listener_count + 1 + config->gateway_count;
}

static struct port_spec
gateway_spec(const struct config_gateway *g)
{
	return (struct port_spec){
	    .name = g->name,
	    .path = g->address,
	    .mode = g->mode,
	    .gid = g->gid,
	    .max_connections = g->max_connections,
	    .max_inflight = g->max_connections,
	    .rules = &g->rules,
	    .gateway = g,
	};
}

/* Listeners, then control, then gateways. */
static struct port_spec
spec_of(const struct config *config, size_t i)
{
	const struct config_listener *l = &config->listeners[i];

	if (i > config->listener_count)
		return gateway_spec(
		    &config->gateways[i - config->listener_count - 1]);
	if (i == config->listener_count)
		return (struct port_spec){
		    .name = "control",
		    .path = config->control.path,
		    .mode = config->control.mode,
		    .gid = (gid_t)-1,
		    .max_connections = CONTROL_MAX_CONNECTIONS,
		};
	return (struct port_spec){
	    .name = l->name,
	    .path = l->path,
	    .mode = l->mode,
	    .gid = l->gid,
	    .max_connections = l->max_connections,
	    .max_inflight = l->max_inflight,
	    .rules = &l->rules,
	    .listener = l,
	};
}

static void
port_free(struct port *p)
{
	if (p == NULL)
		return;
	listener_free(p->listener);
	free(p);
}

static bool
is_tcp(const struct port_spec *spec)
{
	return spec->gateway != NULL && spec->gateway->tcp;
}

static bool
same_place(const struct port_spec *a, const struct port_spec *b)
{
	if (is_tcp(a) || is_tcp(b))
		return strcmp(a->path, b->path) == 0;
	return config_same_path(a->path, b->path);
}

/* The port in force that listens there. */
static struct port *
port_at(const struct dispatch *d, const struct port_spec *spec)
{
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		if (same_place(&d->ports[i]->is, spec))
			return d->ports[i];
	}
	return NULL;
}

/* Do both speak the same? */
static bool
same_kind(const struct port_spec *a, const struct port_spec *b)
{
	return (a->listener == NULL) == (b->listener == NULL) &&
	       (a->gateway == NULL) == (b->gateway == NULL);
}

static void
gateway_accepted(void *arg, int fd)
{
	struct port *p = arg;
	const struct dispatch_env *env = &p->dispatch->env;

	env->accepted(env->arg, p, fd);
}

/* On the socket that was passed to this process, or fd -1: one of its own. */
static struct listener *
port_listener(struct port *p, int fd, char err[PORT_ERR_MAX])
{
	struct loop *loop = p->dispatch->env.loop;
	listener_accept_fn *accepted =
	    p->is.gateway != NULL ? gateway_accepted : client_accepted;

	p->adopted = fd >= 0;
	if (p->adopted)
		return listener_adopt(loop, fd, p->is.path, accepted, p, err);
	if (is_tcp(&p->is))
		return listener_new_tcp(
		    loop, &p->is.gateway->at, accepted, p, err);
	return listener_new(
	    loop, p->is.path, p->is.mode, p->is.gid, accepted, p, err);
}

static struct port *
port_new(struct dispatch *d, const struct port_spec *spec, int fd,
    char err[PORT_ERR_MAX])
{
	struct port *p;

	if (port_at(d, spec) != NULL) {
		snprintf(err, PORT_ERR_MAX,
		    "%s: listeners, gateways and the control socket cannot "
		    "take each other's place in one step",
		    spec->path);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		snprintf(err, PORT_ERR_MAX, "out of memory");
		return NULL;
	}
	p->dispatch = d;
	p->number = ++d->last_port;
	p->control = spec->listener == NULL && spec->gateway == NULL;
	p->is = *spec;
	p->listener = port_listener(p, fd, err);
	if (p->listener != NULL)
		return p;
	port_free(p);
	return NULL;
}

static int
port_change(const struct port *p, const struct port_spec *from,
    const struct port_spec *to, char err[PORT_ERR_MAX])
{
	if (from->mode == to->mode && from->gid == to->gid)
		return 0;
	return listener_change(p->listener, to->mode, to->gid, err);
}

/* Where in the file it stands, before what is wrong with it. */
static int
fail(const struct config *config, const struct port_spec *spec, const char *why,
    char err[DISPATCH_ERR_MAX])
{
	const char *table = "";

	if (spec->gateway != NULL)
		table = "gateway.";
	else if (spec->listener != NULL)
		table = "listeners.";
	message_format(err, DISPATCH_ERR_MAX, "%s: %s%s.%s: %s", config->source,
	    table, spec->name, spec->gateway != NULL ? "listen" : "path", why);
	return -1;
}

/* The socket that was passed for it. */
static int
take_passed(const struct dispatch *d, const struct port_spec *spec, int *fd,
    char err[PORT_ERR_MAX])
{
	char name[sizeof("gateway.") + CONFIG_NAME_MAX];

	snprintf(name, sizeof(name), "%s%s",
	    spec->gateway != NULL ? "gateway." : "", spec->name);
	return activation_take(
	    d->env.activation, name, spec->path, config_same_path, fd, err);
}

/* The sockets of another configuration while it is not in force. */
struct plan {
	const struct config *config;
	size_t count; /* of the ports that are there */
	struct port **ports;
};

/* The one that is there, changed, or one that is not started yet. */
static int
plan_port(struct dispatch *d, struct plan *plan, char err[DISPATCH_ERR_MAX])
{
	char why[PORT_ERR_MAX];
	const struct port_spec spec = spec_of(plan->config, plan->count);
	struct port *p = port_at(d, &spec);
	int fd;

	if (take_passed(d, &spec, &fd, why) != 0)
		p = NULL;
	else if (p == NULL || !same_kind(&p->is, &spec))
		p = port_new(d, &spec, fd, why);
	else if (port_change(p, &p->is, &spec, why) != 0)
		p = NULL;
	if (p == NULL)
		return fail(plan->config, &spec, why, err);
	plan->ports[plan->count++] = p;
	return 0;
}

/* Those that may accept by now. */
static int
start(const struct dispatch *d, const struct config *config,
    struct port *const *ports, char err[DISPATCH_ERR_MAX])
{
	char why[PORT_ERR_MAX];
	size_t i;

	for (i = 0; i < spec_count(config); i++) {
		const struct port_spec spec = spec_of(config, i);

		if ((d->opened || ports[i]->control) &&
		    listener_start(ports[i]->listener, why) != 0)
			return fail(config, &spec, why, err);
	}
	return 0;
}

/* As it was. What cannot be undone of a mode stays for the next change. */
static void
plan_undo(struct plan *plan)
{
	char err[PORT_ERR_MAX];

	while (plan->count > 0) {
		struct port *p = plan->ports[--plan->count];
		const struct port_spec spec =
		    spec_of(plan->config, plan->count);

		if (p->in_force)
			(void)port_change(p, &spec, &p->is, err);
		else
			port_free(p);
	}
	free(plan->ports);
}

static int
plan_make(struct dispatch *d, struct plan *plan, const struct config *config,
    char err[DISPATCH_ERR_MAX])
{
	size_t count = spec_count(config);
	int rc = 0;

	*plan = (struct plan){.config = config};
	plan->ports = calloc(count, sizeof(*plan->ports));
	if (plan->ports == NULL) {
		snprintf(err, DISPATCH_ERR_MAX, "out of memory");
		return -1;
	}
	while (plan->count < count && rc == 0)
		rc = plan_port(d, plan, err);
	if (rc == 0)
		rc = start(d, config, plan->ports, err);
	if (rc != 0)
		plan_undo(plan);
	return rc;
}

void
dispatch_port_release(struct port *p)
{
	if (p->connections == 0 && p->leaving)
		port_free(p);
}

/* Nothing of its configuration is used any more, which may be freed. */
static void
port_leave(struct port *p)
{
	listener_free(p->listener);
	p->listener = NULL;
	p->is = (struct port_spec){.name = "closed", .path = ""};
	p->in_force = false;
	p->leaving = true;
	if (p->connections == 0)
		port_free(p);
}

/* Whoever made the socket decides who may use it: do they agree? */
static void
compare_mode(const struct port *p, const struct port_spec *spec)
{
	char is[8], wanted[8];
	struct stat st;

	if (!p->adopted || is_tcp(spec) || stat(spec->path, &st) != 0 ||
	    (st.st_mode & MODE_ALL) == spec->mode)
		return;
	snprintf(is, sizeof(is), "%04o", (unsigned int)(st.st_mode & MODE_ALL));
	snprintf(wanted, sizeof(wanted), "%04o", (unsigned int)spec->mode);
	log_warning("activation",
	    "listener=%s path=\"%s\" mode=%s configured=%s", spec->name,
	    spec->path, is, wanted);
}

/* The ports of the plan are those in force, and the others leave. */
static void
plan_carry_out(struct dispatch *d, struct plan *plan)
{
	struct port **old = d->ports;
	size_t old_count = d->port_count, i;

	for (i = 0; i < old_count; i++)
		old[i]->in_force = false;
	for (i = 0; i < plan->count; i++) {
		const struct port_spec spec = spec_of(plan->config, i);

		if (d->port_count == 0 || plan->ports[i]->is.mode != spec.mode)
			compare_mode(plan->ports[i], &spec);
		plan->ports[i]->in_force = true;
		plan->ports[i]->is = spec;
	}
	d->ports = plan->ports;
	d->port_count = plan->count;
	for (i = 0; i < old_count; i++) {
		if (!old[i]->in_force)
			port_leave(old[i]);
	}
	free(old);
}

int
dispatch_ports_open(struct dispatch *d, char err[DISPATCH_ERR_MAX])
{
	struct plan plan;

	if (plan_make(d, &plan, d->env.setup->config, err) != 0)
		return -1;
	plan_carry_out(d, &plan);
	return 0;
}

int
dispatch_check_ports(const struct config *config, char err[DISPATCH_ERR_MAX])
{
	char why[LISTENER_ERR_MAX];
	size_t i;

	for (i = 0; i < spec_count(config); i++) {
		const struct port_spec spec = spec_of(config, i);

		if (!is_tcp(&spec) && listener_check(spec.path, why) != 0)
			return fail(config, &spec, why, err);
	}
	return 0;
}

int
dispatch_open(struct dispatch *d, char err[DISPATCH_ERR_MAX])
{
	d->opened = true;
	return start(d, d->env.setup->config, d->ports, err);
}

/* Those that may stay hear of what is in force now; the others leave. */
static void
tell_client(struct client *c)
{
	if (!client_may_stay(c))
		dispatch_leave(c, "the configuration has changed");
	else if (c->greeted && !c->is.leaving)
		dispatch_welcome(c, 0);
}

int
dispatch_follow(
    struct dispatch *d, struct setup *next, char err[DISPATCH_ERR_MAX])
{
	struct client *c;
	struct plan plan;

	if (plan_make(d, &plan, next->config, err) != 0)
		return -1;
	plan_carry_out(d, &plan);
	d->env.setup = next;
	for (c = d->clients; c != NULL; c = c->next)
		tell_client(c);
	return 0;
}

void
dispatch_ports_close(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		listener_free(d->ports[i]->listener);
		d->ports[i]->listener = NULL;
	}
}

void
dispatch_ports_free(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < d->port_count; i++)
		port_free(d->ports[i]);
	free(d->ports);
}

bool
dispatch_port(const struct dispatch *d, size_t index, struct dispatch_port *out)
{
	const struct port *p;

	if (index >= d->port_count)
		return false;
	p = d->ports[index];
	out->name = p->is.name;
	out->path = p->is.path;
	out->control = p->control;
	out->gateway = p->is.gateway;
	out->connections = p->connections;
	out->max_connections = p->is.max_connections;
	out->max_inflight = p->is.max_inflight;
	out->inflight = p->inflight;
	out->adopted = p->adopted;
	out->accept_pauses =
	    p->listener != NULL ? listener_pauses(p->listener) : 0;
	return true;
}
