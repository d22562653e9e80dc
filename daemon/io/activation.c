/* See activation.h. The first descriptor is 3; names come in their order,
 * separated by colons. */
#include "daemon/io/activation.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3
/* A name in LISTEN_FDNAMES has at most 255 characters. */
#define NAME_MAX_LEN 255
#define GATEWAY      "gateway."
/* What sd_listen_fds_with_names(3) calls one without a name. */
#define NAMELESS "unknown"

struct inherited {
	char name[NAME_MAX_LEN + 1];
	char address[sizeof(struct sockaddr_un)]; /* longer than any inet one */
	int fd;
	bool taken; /* at some time */
};

struct activation {
	size_t count;
	struct inherited sockets[];
};

__attribute__((format(printf, 2, 3))) static int
fail(char err[ACTIVATION_ERR_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, ACTIVATION_ERR_MAX, fmt, ap);
	va_end(ap);
	return -1;
}

static int
refuse(const struct inherited *s, const char *why, char err[ACTIVATION_ERR_MAX])
{
	return fail(
	    err, "LISTEN_FDS: descriptor %d \"%s\" %s", s->fd, s->name, why);
}

/* -1: not a number from 0 to max. */
static long
number(const char *text, long max)
{
	char *end;
	long n;

	if (text == NULL || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	return errno == 0 && *end == '\0' && n <= max ? n : -1;
}

/* The next name of the list; false past its end. */
static bool
next_name(const char **list, char out[NAME_MAX_LEN + 1])
{
	const char *from = *list;
	size_t len;

	if (from == NULL)
		return false;
	len = strcspn(from, ":");
	*list = from[len] == ':' ? from + len + 1 : NULL;
	snprintf(out, NAME_MAX_LEN + 1, "%.*s", (int)len, from);
	return len <= NAME_MAX_LEN;
}

static bool
has_default_name(const struct inherited *s)
{
	const size_t len = strlen(s->name), end = strlen(".socket");

	return len == 0 || strcmp(s->name, NAMELESS) == 0 ||
	       (len > end && strcmp(s->name + len - end, ".socket") == 0);
}

static bool
may_be_inet(const struct inherited *s)
{
	return has_default_name(s) ||
	       strncmp(s->name, GATEWAY, strlen(GATEWAY)) == 0;
}

/* Where it listens, from what getsockname() said; false: at no such place. */
static bool
set_address(
    struct inherited *s, const struct sockaddr_storage *ss, socklen_t len)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)ss;
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const size_t room = len - offsetof(struct sockaddr_un, sun_path);
	char text[INET6_ADDRSTRLEN];

	if (ss->ss_family == AF_UNIX) {
		if (room == 0 || un->sun_path[0] != '/')
			return false;
		snprintf(s->address, sizeof(s->address), "%.*s", (int)room,
		    un->sun_path);
		return true;
	}
	if (ss->ss_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		snprintf(s->address, sizeof(s->address), "%s:%d", text,
		    ntohs(in->sin_port));
		return true;
	}
	inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
	snprintf(s->address, sizeof(s->address), "[%s]:%d", text,
	    ntohs(in6->sin6_port));
	return true;
}

static int
option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* It is one that we can accept from, and is made ready for that. */
static int
look_at(struct inherited *s, char err[ACTIVATION_ERR_MAX])
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	int family;

	if (fcntl(s->fd, F_SETFD, FD_CLOEXEC) != 0)
		return refuse(s, "is not open", err);
	family = option(s->fd, SO_DOMAIN);
	if (family != AF_UNIX &&
	    !(may_be_inet(s) && (family == AF_INET || family == AF_INET6)))
		return refuse(s, "is not a Unix socket", err);
	if (option(s->fd, SO_TYPE) != SOCK_STREAM)
		return refuse(s, "is not a stream socket", err);
	if (option(s->fd, SO_ACCEPTCONN) != 1)
		return refuse(s, "does not listen", err);
	if (getsockname(s->fd, (struct sockaddr *)&ss, &len) != 0 ||
	    !set_address(s, &ss, len))
		return refuse(s, "has no absolute path", err);
	if (fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) | O_NONBLOCK) != 0)
		return refuse(s, strerror(errno), err);
	return 0;
}

static int
look_at_all(
    struct activation *a, const char *names, char err[ACTIVATION_ERR_MAX])
{
	const bool named = names != NULL;
	size_t i;

	for (i = 0; i < a->count; i++) {
		struct inherited *s = &a->sockets[i];

		s->fd = FIRST_FD + (int)i;
		snprintf(s->name, sizeof(s->name), "%s", NAMELESS);
		if (named && !next_name(&names, s->name))
			return fail(err,
			    "LISTEN_FDNAMES: there are %zu descriptors and "
			    "no good name for number %zu",
			    a->count, i + 1);
	}
	if (names != NULL)
		return fail(err,
		    "LISTEN_FDNAMES: more names than the %zu descriptors",
		    a->count);
	for (i = 0; i < a->count; i++) {
		if (look_at(&a->sockets[i], err) != 0)
			return -1;
	}
	return 0;
}

static struct activation *
open_all(const char *pid, const char *fds, const char *names,
    char err[ACTIVATION_ERR_MAX])
{
	const bool ours = number(pid, INT_MAX) == getpid();
	const long count = ours && fds != NULL ? number(fds, LONG_MAX) : 0;
	struct activation *a;

	if (count < 0 || count > ACTIVATION_MAX) {
		fail(err, "LISTEN_FDS: \"%.20s\" is not a number from 0 to %d",
		    fds, ACTIVATION_MAX);
		return NULL;
	}
	a = calloc(1, sizeof(*a) + (size_t)count * sizeof(a->sockets[0]));
	if (a == NULL) {
		fail(err, "out of memory");
		return NULL;
	}
	a->count = (size_t)count;
	if (a->count == 0 || look_at_all(a, names, err) == 0)
		return a;
	free(a); /* what is open is the caller's, who ends */
	return NULL;
}

struct activation *
activation_new(char err[ACTIVATION_ERR_MAX])
{
	struct activation *a = open_all(getenv("LISTEN_PID"),
	    getenv("LISTEN_FDS"), getenv("LISTEN_FDNAMES"), err);

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return a;
}

void
activation_free(struct activation *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->count; i++)
		close(a->sockets[i].fd);
	free(a);
}

static bool
listens_at(
    const struct inherited *s, const char *address, activation_same_fn *same)
{
	if (s->address[0] == '/' && address[0] == '/')
		return same(s->address, address);
	return strcmp(s->address, address) == 0;
}

/* The first with that name, which should be here; else the first that is here.
 * NULL: none. */
static struct inherited *
find(struct activation *a, const char *name, const char *address,
    activation_same_fn *same)
{
	struct inherited *found = NULL;
	size_t i;

	for (i = 0; i < a->count; i++) {
		struct inherited *s = &a->sockets[i];
		const bool named = strcmp(s->name, name) == 0;
		const bool here = listens_at(s, address, same);

		if (named && here)
			return s;
		if (named || (here && found == NULL))
			found = s;
	}
	return found;
}

int
activation_take(struct activation *a, const char *name, const char *address,
    activation_same_fn *same, int *fd, char err[ACTIVATION_ERR_MAX])
{
	struct inherited *s = find(a, name, address, same);

	*fd = -1;
	if (s == NULL)
		return 0;
	if (!listens_at(s, address, same))
		return fail(err,
		    "%s, but the socket \"%s\" that the service manager "
		    "passes listens at %s: see ListenStream= of its unit",
		    address, name, s->address);
	if (strcmp(s->name, name) != 0 && !has_default_name(s))
		return fail(err,
		    "the socket that the service manager passes for %s is "
		    "called \"%s\", not \"%s\": see FileDescriptorName= of "
		    "its unit",
		    address, s->name, name);
	s->taken = true;
	*fd = s->fd;
	return 0;
}

int
activation_all_taken(const struct activation *a, char err[ACTIVATION_ERR_MAX])
{
	size_t i;

	for (i = 0; i < a->count; i++) {
		const struct inherited *s = &a->sockets[i];

		if (!s->taken)
			return fail(err,
			    "LISTEN_FDS: descriptor %d \"%s\" at %s: no "
			    "listener of the configuration has this %s",
			    s->fd, s->name, s->address,
			    has_default_name(s) ? "path" : "name");
	}
	return 0;
}
