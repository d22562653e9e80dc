/* Opens and closes the connections of a load, and tells what it measured. */
#include "client-shim/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client-shim/load_private.h"

#define OTHER_FILES 64 /* beside the connections */

/* Options. */

static int
check_names(const struct load_options *o, char err[LOAD_ERR_MAX])
{
	if (o->rule == NULL || *o->rule == '\0')
		return load_fail(err, "the rule must not be empty");
	if (strlen(o->rule) > IPC_MAX_NAME)
		return load_fail(
		    err, "the rule must be at most %d bytes", IPC_MAX_NAME);
	if (o->keys == 0 || o->keys > LOAD_MAX_KEYS)
		return load_fail(err, "--keys must be 1 to %llu",
		    (unsigned long long)LOAD_MAX_KEYS);
	if (o->keys > 1 && (o->key == NULL || strstr(o->key, "{n}") == NULL))
		return load_fail(
		    err, "--key must contain {n} when --keys is more than 1");
	if (load_frame_key_len(o) > IPC_MAX_NAME)
		return load_fail(
		    err, "--key must be at most %d bytes", IPC_MAX_NAME);
	return 0;
}

int
load_check_options(const struct load_options *o, char err[LOAD_ERR_MAX])
{
	if (o->connections == 0 || o->connections > LOAD_MAX_CONNECTIONS)
		return load_fail(
		    err, "--connections must be 1 to %d", LOAD_MAX_CONNECTIONS);
	if (o->window == 0 || o->window > LOAD_MAX_WINDOW)
		return load_fail(
		    err, "--window must be 1 to %d", LOAD_MAX_WINDOW);
	if (o->window * o->connections > LOAD_MAX_IN_FLIGHT)
		return load_fail(err,
		    "--window must be at most %d of all connections together",
		    LOAD_MAX_IN_FLIGHT);
	if (o->rate > LOAD_MAX_RATE)
		return load_fail(
		    err, "--rate must be at most %d", LOAD_MAX_RATE);
	return check_names(o, err);
}

/* Opening. */

/* Twice as many as are needed is not asked for: others may count on few. */
static void
raise_file_limit(size_t connections)
{
	const rlim_t needed = connections + OTHER_FILES;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= needed)
		return;
	files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* socket() will tell */
}

/* A connection, its part of the slots, and its greeting. */
static int
open_conn(struct load *l, const char *path)
{
	struct load_conn *c = &l->conns[l->count];
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
	const size_t first = l->count * l->window;
	const uint32_t connect_ms =
	    l->patience_ms > 0 ? l->patience_ms : LOAD_PATIENCE_MS;

	l->count++;
	c->slots = l->slots + first;
	c->free = l->free + first;
	for (; c->idle < l->window; c->idle++)
		c->free[c->idle] = (uint16_t)(l->window - 1 - c->idle);
	if (load_lane_connect(
		&c->lane, path, connect_ms, ++c->sequence, l->err) != 0)
		return -1;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->lane.fd, &event) != 0)
		return load_fail(l->err, "epoll: %s", strerror(errno));
	l->moved = load_now();
	while (!c->greeted) {
		if (load_turn(l) != 0)
			return -1;
		if (l->stopped)
			return load_fail(l->err, "interrupted");
	}
	return 0;
}

static int
allocate(struct load *l, size_t connections)
{
	const size_t slots = connections * l->window;

	l->conns = calloc(connections, sizeof(*l->conns));
	l->free = calloc(slots, sizeof(*l->free));
	l->slots = calloc(slots, sizeof(*l->slots));
	if (l->conns == NULL || l->free == NULL || l->slots == NULL)
		return load_fail(l->err, "out of memory");
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return load_fail(l->err, "epoll: %s", strerror(errno));
	return 0;
}

static int
make_timer(struct load *l)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (l->timer < 0 ||
	    epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->timer, &event) != 0)
		return load_fail(l->err, "timer: %s", strerror(errno));
	return 0;
}

/* A limit of the agent or of this process may be what ended it: how far was
 * it? Nothing is added to what the very first connection says. */
static int
add_progress(struct load *l, size_t connections)
{
	const size_t open = l->count - 1, len = strlen(l->err);

	if (open > 0)
		snprintf(l->err + len, LOAD_ERR_MAX - len,
		    ", with %zu of --connections %zu open", open, connections);
	return -1;
}

static int
open_all(struct load *l, const struct load_options *options)
{
	if (allocate(l, options->connections) != 0)
		return -1;
	if (l->rate > 0 && make_timer(l) != 0)
		return -1;
	if (load_frame_init(&l->frame, options) != 0)
		return load_fail(l->err, "no randomness");
	raise_file_limit(options->connections);
	while (l->count < options->connections)
		if (open_conn(l, options->socket) != 0)
			return add_progress(l, options->connections);
	return 0;
}

struct load *
load_open(const struct load_options *options, char err[LOAD_ERR_MAX])
{
	struct load *l;

	if (load_check_options(options, err) != 0)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		load_fail(err, "out of memory");
		return NULL;
	}
	l->epoll = -1;
	l->timer = -1;
	l->err = err;
	l->window = options->window;
	l->rate = options->rate;
	l->patience_ms = options->patience_ms;
	l->deadline_ms = options->deadline_ms;
	l->default_deadline = options->deadline_ms == 0;
	l->stop = options->stop;
	l->stop_arg = options->stop_arg;
	if (open_all(l, options) == 0)
		return l;
	load_close(l);
	return NULL;
}

void
load_close(struct load *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < l->count; i++)
		load_lane_close(&l->conns[i].lane);
	if (l->timer >= 0)
		close(l->timer);
	if (l->epoll >= 0)
		close(l->epoll);
	load_frame_free(&l->frame);
	free(l->conns);
	free(l->free);
	free(l->slots);
	free(l);
}

/* Results. */

void
load_reset(struct load *l)
{
	memset(&l->result, 0, sizeof(l->result));
	memset(&l->latency, 0, sizeof(l->latency));
	l->first_failure[0] = '\0';
}

const struct load_result *
load_result(const struct load *l)
{
	return &l->result;
}

const char *
load_first_failure(const struct load *l)
{
	return l->first_failure[0] != '\0' ? l->first_failure : NULL;
}

double
load_latency(const struct load *l, double share)
{
	return load_histogram_share(&l->latency, share) / 1000;
}
