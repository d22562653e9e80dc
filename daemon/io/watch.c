/*
 * A watch is a set of pairs, a folder and a name in it: one for each step that
 * the kernel takes from / to the file, links included. Owned by the agent.
 * Invariant: a folder is watched before the name in it is looked at, so that
 * whatever changes on the way meanwhile is in inotify's queue.
 */
#include "daemon/io/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

/* What can change what a name leads to, or that it does. Not IN_MODIFY: a file
 * is as its writer wants it when it is closed. */
#define MASK                                                        \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | \
	    IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define LINKS_MAX 40 /* of one path, as in the kernel */
#define STEPS_MAX 4096
#define BATCH     (16 * 1024) /* some 500 events */
#define BATCHES   16          /* of one look */

/* An empty name: what the descriptor watches, and nothing in it. */
struct step {
	struct step *next;
	int wd;
	char name[];
};

struct watch {
	loop_fn *changed;
	void *arg;
	int fd;
	struct event readable; /* pending unless the timer is */
	struct loop_timer *timer;
	int64_t since; /* the first event that is not reported; 0: none */
	struct step *steps;
};

/* One path on its way. */
struct walk {
	int fd;
	struct step *steps; /* of all paths before it, too */
	size_t count;
	int links;
	int error;           /* the first that left something unwatched */
	char at[PATH_MAX];   /* a folder, or at last the file; no links in it */
	char rest[PATH_MAX]; /* what is still to be walked from there */
};

/* Events */

/* With any name, when it is NULL. */
static const struct step *
find(const struct step *s, int wd, const char *name)
{
	for (; s != NULL; s = s->next) {
		if (s->wd == wd && (name == NULL || strcmp(s->name, name) == 0))
			return s;
	}
	return NULL;
}

static bool
matters(const struct watch *w, const struct inotify_event *ev, const char *name)
{
	return (ev->mask & IN_Q_OVERFLOW) != 0 ||
	       find(w->steps, ev->wd, ev->len > 0 ? name : NULL) != NULL;
}

static bool
any_matters(const struct watch *w, const char *at, const char *end)
{
	struct inotify_event ev;
	bool any = false;

	while (at < end) {
		memcpy(&ev, at, sizeof(ev));
		any = any || matters(w, &ev, at + sizeof(ev));
		at += sizeof(ev) + ev.len;
	}
	return any;
}

/* Has anything that matters happened? What a storm leaves in the queue is for
 * the next look; when the queue is full, that is an event, too. */
static bool
look(struct watch *w)
{
	_Alignas(struct inotify_event) char buf[BATCH];
	bool any = false;

	for (int i = 0; i < BATCHES; i++) {
		ssize_t n = read(w->fd, buf, sizeof(buf));

		if (n <= 0)
			break;
		any = any_matters(w, buf, buf + n) || any;
	}
	if (any && w->since == 0)
		w->since = loop_now();
	return any;
}

/* Not before the timer, whatever happens: a storm costs five looks a second. */
static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	(void)fd;
	(void)what;
	event_del(&w->readable);
	(void)look(w);
	loop_timer_set(w->timer, loop_now() + WATCH_QUIET_US);
}

static int64_t
next_look(const struct watch *w, int64_t now)
{
	int64_t quiet = now + WATCH_QUIET_US;
	int64_t most = w->since + WATCH_MOST_US;

	return quiet < most ? quiet : most;
}

static void
timer_rang(void *arg)
{
	struct watch *w = arg;
	bool more = look(w);
	int64_t now = loop_now();
	bool due = w->since != 0 && (!more || now >= w->since + WATCH_MOST_US);

	if (due)
		w->since = 0;
	if (w->since != 0)
		loop_timer_set(w->timer, next_look(w, now));
	else if (event_add(&w->readable, NULL) != 0)
		loop_timer_set(w->timer, now + WATCH_QUIET_US);
	if (due)
		w->changed(w->arg);
}

struct watch *
watch_new(struct loop *loop, loop_fn *changed, void *arg)
{
	struct watch *w = calloc(1, sizeof(*w));
	int error = ENOMEM;

	if (w == NULL)
		return NULL;
	w->changed = changed;
	w->arg = arg;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0) {
		error = errno;
		free(w);
		errno = error;
		return NULL;
	}
	event_assign(&w->readable, loop_base(loop), w->fd, EV_READ | EV_PERSIST,
	    on_readable, w);
	w->timer = loop_timer_new(loop, timer_rang, w);
	if (w->timer == NULL || event_add(&w->readable, NULL) != 0) {
		watch_free(w);
		errno = error;
		return NULL;
	}
	return w;
}

/* Frees the steps, and what is watched for them alone. */
static void
drop(int fd, struct step *steps, const struct step *kept)
{
	struct step *s;

	while ((s = steps) != NULL) {
		steps = s->next;
		if (find(kept, s->wd, NULL) == NULL)
			(void)inotify_rm_watch(
			    fd, s->wd); /* or gone by itself */
		free(s);
	}
}

void
watch_free(struct watch *w)
{
	if (w == NULL)
		return;
	loop_timer_free(w->timer);
	event_del(&w->readable);
	drop(w->fd, w->steps, NULL);
	close(w->fd);
	free(w);
}

/* Paths */

/* Returns 0 or an errno. The kernel gives a folder that is watched already the
 * same descriptor again. */
static int
add_step(struct walk *k, const char *name)
{
	const char *at = k->at[0] != '\0' ? k->at : "/";
	uint32_t only = name[0] != '\0' ? IN_ONLYDIR : 0;
	struct step *s;

	if (k->count == STEPS_MAX)
		return ENOSPC;
	s = malloc(sizeof(*s) + strlen(name) + 1);
	if (s == NULL)
		return ENOMEM;
	strcpy(s->name, name);
	s->wd = inotify_add_watch(k->fd, at, MASK | IN_DONT_FOLLOW | only);
	if (s->wd < 0 || find(k->steps, s->wd, name) != NULL) {
		int error = s->wd < 0 ? errno : 0;

		free(s);
		return error;
	}
	s->next = k->steps;
	k->steps = s;
	k->count++;
	return 0;
}

/* What is not there yet is no failure: the folder before it is watched. */
static void
note(struct walk *k, int error)
{
	if (k->error == 0 && error != ENOENT && error != ENOTDIR)
		k->error = error;
}

/* Takes the next name off the rest. False at its end. */
static bool
next_name(struct walk *k, char name[NAME_MAX + 1])
{
	const char *from = k->rest + strspn(k->rest, "/");
	size_t len = strcspn(from, "/");

	if (len == 0)
		return false;
	if (len > NAME_MAX) {
		note(k, ENAMETOOLONG);
		return false;
	}
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(k->rest, from + len, strlen(from + len) + 1);
	return true;
}

static bool
more_to_walk(const struct walk *k)
{
	return k->rest[strspn(k->rest, "/")] != '\0';
}

/* From the folder whose path has len bytes. */
static bool
follow(struct walk *k, size_t len, const char *target, size_t n)
{
	size_t tail = strlen(k->rest) + 1;

	if (n + 1 + tail > sizeof(k->rest)) {
		note(k, ENAMETOOLONG);
		return false;
	}
	memmove(k->rest + n + 1, k->rest, tail);
	memcpy(k->rest, target, n);
	k->rest[n] = '/';
	k->at[target[0] == '/' ? 0 : len] = '\0';
	return ++k->links <= LINKS_MAX;
}

/* One name further. False when the way ends there. */
static bool
take(struct walk *k, const char *name)
{
	size_t len = strlen(k->at), room = sizeof(k->at) - len;
	char target[PATH_MAX];
	bool plain;
	ssize_t n;
	int error;

	error = add_step(k, name);
	if ((size_t)snprintf(k->at + len, room, "/%s", name) >= room) {
		note(k, ENAMETOOLONG);
		return false;
	}
	n = readlink(k->at, target, sizeof(target));
	plain = n < 0 && errno == EINVAL;
	/* Many a folder may be passed and not be read. */
	if (error != 0 && !(error == EACCES && plain && more_to_walk(k)))
		note(k, error);
	return n < 0 ? plain : follow(k, len, target, (size_t)n);
}

static void
walk(struct walk *k)
{
	char name[NAME_MAX + 1];

	k->at[0] = '\0';
	k->links = 0;
	while (next_name(k, name)) {
		char *last = strrchr(k->at, '/');

		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") != 0) {
			if (!take(k, name))
				return;
		} else if (last != NULL)
			*last = '\0';
	}
	/* It may be written under another name, as where one file is mounted.
	 */
	(void)add_step(k, "");
}

static bool
set_out(struct walk *k, const char *path)
{
	char *cwd = k->rest;
	size_t len = 0;

	if (path[0] != '/') {
		if (getcwd(cwd, sizeof(k->rest)) == NULL)
			return false;
		len = strlen(cwd);
	}
	if ((size_t)snprintf(k->rest + len, sizeof(k->rest) - len, "/%s",
		path) < sizeof(k->rest) - len)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool
watch_files(struct watch *w, const char *const *paths, size_t count)
{
	struct walk k = {.fd = w->fd};

	for (size_t i = 0; i < count; i++) {
		if (set_out(&k, paths[i]))
			walk(&k);
		else
			note(&k, errno);
	}
	drop(w->fd, w->steps, k.steps);
	w->steps = k.steps;
	errno = k.error;
	return k.error == 0;
}
