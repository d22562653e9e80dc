/* See notify.h. Every message goes to the address anew: a manager that was
 * executed again has another socket there. */
#include "daemon/io/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct notify {
	int fd; /* -1: nobody is told */
	int64_t watchdog_us;
	struct sockaddr_un to;
	socklen_t len;
};

/* "@name" is an abstract address, whose first byte is NUL. */
static void
open_socket(struct notify *n, const char *path, char err[NOTIFY_ERR_MAX])
{
	const size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len < 2 ||
	    len >= sizeof(n->to.sun_path)) {
		snprintf(err, NOTIFY_ERR_MAX,
		    "NOTIFY_SOCKET: \"%.120s\" is not an absolute path or "
		    "@NAME of at most %zu bytes",
		    path, sizeof(n->to.sun_path) - 1);
		return;
	}
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, path, len);
	if (path[0] == '@')
		n->to.sun_path[0] = '\0';
	n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n->fd < 0)
		snprintf(
		    err, NOTIFY_ERR_MAX, "NOTIFY_SOCKET: %s", strerror(errno));
}

/* -1: not a number from 1 on. */
static int64_t
number(const char *text)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' &&
		       value > 0
		   ? value
		   : -1;
}

static void
read_watchdog(struct notify *n, char err[NOTIFY_ERR_MAX])
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (usec == NULL || (pid != NULL && number(pid) != getpid()))
		return; /* none, or meant for another process */
	n->watchdog_us = number(usec);
	if (n->watchdog_us > 0)
		return;
	n->watchdog_us = 0;
	snprintf(err, NOTIFY_ERR_MAX,
	    "WATCHDOG_USEC: \"%.20s\" is not a number of microseconds", usec);
}

struct notify *
notify_new(char err[NOTIFY_ERR_MAX])
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct notify *n = calloc(1, sizeof(*n));

	err[0] = '\0';
	if (n == NULL)
		return NULL;
	n->fd = -1;
	if (path != NULL)
		open_socket(n, path, err);
	if (n->fd >= 0)
		read_watchdog(n, err);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return n;
}

void
notify_free(struct notify *n)
{
	if (n == NULL)
		return;
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}

bool
notify_wanted(const struct notify *n)
{
	return n->fd >= 0;
}

bool
notify_send(const struct notify *n, const char *lines)
{
	ssize_t sent;

	if (n->fd < 0)
		return true;
	do
		sent = sendto(n->fd, lines, strlen(lines), MSG_NOSIGNAL,
		    (const struct sockaddr *)&n->to, n->len);
	while (sent < 0 && errno == EINTR);
	return sent >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

int64_t
notify_watchdog_us(const struct notify *n)
{
	return n->watchdog_us;
}
