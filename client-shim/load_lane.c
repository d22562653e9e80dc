/* The bytes of a connection. Non-blocking once it is made. */
#include "client-shim/load_lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int
load_fail(char err[LOAD_ERR_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, LOAD_ERR_MAX, fmt, ap);
	va_end(ap);
	return -1;
}

/* A full backlog makes a connect wait, for as long as a send may. */
static int
connect_patiently(int fd, const struct sockaddr_un *to, uint32_t patience_ms)
{
	const struct timeval patience = {
	    .tv_sec = patience_ms / 1000,
	    .tv_usec = patience_ms % 1000 * 1000,
	};

	if (setsockopt(
		fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0)
		return -1;
	return connect(fd, (const struct sockaddr *)to, sizeof(*to));
}

/* The time and a signal end a wait with words that tell nothing of either. */
static int
not_connected(const char *path, uint32_t patience_ms, char err[LOAD_ERR_MAX])
{
	if (errno == EINTR)
		return load_fail(err, "interrupted");
	if (errno == EAGAIN)
		return load_fail(err, "%s: accepts no connection for %u ms",
		    path, (unsigned)patience_ms);
	return load_fail(err, "%s: %s", path, strerror(errno));
}

static int
send_hello(struct load_lane *lane, uint64_t id, char err[LOAD_ERR_MAX])
{
	static const char name[] = "load";
	uint8_t frame[64];
	struct writer w;

	writer_init(&w, frame, sizeof(frame));
	writer_u32(&w, 0); /* length */
	writer_u16(&w, IPC_HELLO);
	writer_u16(&w, 0);
	writer_u64(&w, id);
	writer_u32(&w, IPC_MAGIC);
	writer_u16(&w, IPC_VERSION);
	writer_u16(&w, IPC_VERSION);
	writer_u16(&w, sizeof(name) - 1);
	writer_bytes(&w, name, sizeof(name) - 1);
	writer_patch_u32(&w, 0, (uint32_t)writer_len(&w));
	return load_lane_send(lane, frame, writer_len(&w), err);
}

int
load_lane_connect(struct load_lane *lane, const char *path,
    uint32_t patience_ms, uint64_t id, char err[LOAD_ERR_MAX])
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	memset(lane, 0, sizeof(*lane));
	lane->fd = -1;
	if (strlen(path) >= sizeof(to.sun_path))
		return load_fail(err, "%s: a socket's path is shorter", path);
	strcpy(to.sun_path, path);
	lane->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lane->fd < 0)
		return load_fail(err, "socket: %s", strerror(errno));
	if (connect_patiently(lane->fd, &to, patience_ms) != 0)
		return not_connected(path, patience_ms, err);
	if (fcntl(lane->fd, F_SETFL, O_NONBLOCK) != 0)
		return load_fail(err, "%s: %s", path, strerror(errno));
	return send_hello(lane, id, err);
}

void
load_lane_close(struct load_lane *lane)
{
	if (lane->fd >= 0)
		close(lane->fd);
	free(lane->unsent);
	free(lane->rest);
	memset(lane, 0, sizeof(*lane));
	lane->fd = -1;
}

/* How much of it went out; all of it when there is nobody any more. */
static size_t
write_some(struct load_lane *lane, const uint8_t *bytes, size_t len)
{
	ssize_t n;

	if (lane->broken)
		return len;
	n = send(lane->fd, bytes, len, MSG_NOSIGNAL);
	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return 0;
	lane->broken = true;
	return len;
}

static int
append(struct load_lane *lane, const uint8_t *bytes, size_t len,
    char err[LOAD_ERR_MAX])
{
	uint8_t *more = realloc(lane->unsent, lane->unsent_len + len);

	if (more == NULL)
		return load_fail(err, "out of memory");
	memcpy(more + lane->unsent_len, bytes, len);
	lane->unsent = more;
	lane->unsent_len += len;
	return 0;
}

int
load_lane_send(struct load_lane *lane, const void *bytes, size_t len,
    char err[LOAD_ERR_MAX])
{
	size_t n = 0;

	if (lane->unsent_len == 0)
		n = write_some(lane, bytes, len);
	if (n == len)
		return 0;
	return append(lane, (const uint8_t *)bytes + n, len - n, err);
}

void
load_lane_flush(struct load_lane *lane)
{
	size_t n = write_some(lane, lane->unsent, lane->unsent_len);

	lane->unsent_len -= n;
	if (lane->unsent_len > 0) {
		memmove(lane->unsent, lane->unsent + n, lane->unsent_len);
		return;
	}
	free(lane->unsent);
	lane->unsent = NULL;
}

int
load_lane_read(struct load_lane *lane, uint8_t buffer[LOAD_BUFFER], size_t *len,
    char err[LOAD_ERR_MAX])
{
	ssize_t n = recv(
	    lane->fd, buffer + lane->rest_len, LOAD_BUFFER - lane->rest_len, 0);

	*len = 0;
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return load_fail(err, "the agent closed a connection");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return load_fail(
		    err, "read from the agent: %s", strerror(errno));
	if (n < 0)
		return 0;
	if (lane->rest_len > 0)
		memcpy(buffer, lane->rest, lane->rest_len);
	*len = lane->rest_len + (size_t)n;
	lane->rest_len = 0;
	return 0;
}

int
load_lane_keep(struct load_lane *lane, const uint8_t *bytes, size_t len,
    char err[LOAD_ERR_MAX])
{
	if (len == 0) {
		free(lane->rest);
		lane->rest = NULL;
		return 0;
	}
	if (lane->rest == NULL)
		lane->rest = malloc(IPC_MAX_FRAME);
	if (lane->rest == NULL)
		return load_fail(err, "out of memory");
	memcpy(lane->rest, bytes, len);
	lane->rest_len = len;
	return 0;
}
