/*
 * The application: a request is a template of which only the key changes, an
 * answer is three short lines. What is in flight on a connection is less than
 * the kernel's buffer of a Unix socket, so that a write never waits.
 */
#include "tests/bench/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY_DIGITS  7
#define REQUEST_MAX 160
#define ANSWER_MAX  64 /* bytes */
#define EVENTS      64

/* The lines of an answer, in their order. */
enum line { LINE_ARRAY, LINE_ALLOWED, LINE_LEFT };

struct lane {
	int fd;
	size_t in_flight;
	enum line line; /* the next one */
	size_t in_len;
	char in[REDIS_MAX_DEPTH * ANSWER_MAX];
};

struct redis_load {
	int epoll;
	unsigned keys;
	unsigned key; /* the next one */
	size_t done;
	size_t request_len;
	size_t key_at; /* its digits, in the request */
	char request[REQUEST_MAX];
	char out[REDIS_MAX_DEPTH * REQUEST_MAX];
	size_t count;
	struct lane lanes[];
};

static void
make_template(struct redis_load *l, const char *sha)
{
	l->key_at = (size_t)snprintf(l->request, sizeof(l->request),
	    "*7\r\n$7\r\nEVALSHA\r\n$%d\r\n%s\r\n$1\r\n1\r\n$%zu\r\n" LAB_BUCKET,
	    REDIS_SHA_LEN, sha, sizeof(LAB_BUCKET) - 1 + KEY_DIGITS);
	l->request_len =
	    l->key_at + (size_t)snprintf(l->request + l->key_at,
			    sizeof(l->request) - l->key_at,
			    "%0*d\r\n$10\r\n%d\r\n$4\r\n%d\r\n$1\r\n1\r\n",
			    KEY_DIGITS, 0, LAB_LIMIT, LAB_WINDOW_MS);
	_Static_assert(LAB_LIMIT >= 1000000000 && LAB_WINDOW_MS >= 1000 &&
			   LAB_WINDOW_MS <= 9999,
	    "the lengths in the request");
}

static void
put_request(struct redis_load *l, char *out)
{
	unsigned n = l->key, i;

	l->key = l->key + 1 < l->keys ? l->key + 1 : 0;
	memcpy(out, l->request, l->request_len);
	for (i = KEY_DIGITS; i > 0; i--, n /= 10)
		out[l->key_at + i - 1] = (char)('0' + n % 10);
}

/* All that may be in flight, in one write. */
static int
fill(struct redis_load *l, struct lane *lane, size_t depth, size_t *wanted)
{
	size_t len = 0;

	while (*wanted > 0 && lane->in_flight < depth) {
		put_request(l, l->out + len);
		len += l->request_len;
		lane->in_flight++;
		--*wanted;
	}
	if (len == 0 ||
	    send(lane->fd, l->out, len, MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return lab_fail("write to redis");
}

/* One line without its end. */
static int
take_line(struct redis_load *l, struct lane *lane, const char *line, size_t len)
{
	errno = 0;
	switch (lane->line) {
	case LINE_ARRAY:
		if (len != 2 || memcmp(line, "*2", 2) != 0)
			break;
		lane->line = LINE_ALLOWED;
		return 0;
	case LINE_ALLOWED:
		if (len != 2 || memcmp(line, ":1", 2) != 0)
			break;
		lane->line = LINE_LEFT;
		return 0;
	case LINE_LEFT:
		if (len < 2 || line[0] != ':' || lane->in_flight == 0)
			break;
		lane->line = LINE_ARRAY;
		lane->in_flight--;
		l->done++;
		return 0;
	}
	return lab_fail("redis answers: %.*s", (int)len, line);
}

static int
take_lines(struct redis_load *l, struct lane *lane)
{
	char *at = lane->in, *end = lane->in + lane->in_len, *lf;

	while ((lf = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		if (lf == at || lf[-1] != '\r')
			return lab_fail("redis answers half a line");
		if (take_line(l, lane, at, (size_t)(lf - 1 - at)) != 0)
			return -1;
		at = lf + 1;
	}
	lane->in_len = (size_t)(end - at);
	memmove(lane->in, at, lane->in_len);
	return 0;
}

static int
lane_read(struct redis_load *l, struct lane *lane)
{
	ssize_t n = recv(lane->fd, lane->in + lane->in_len,
	    sizeof(lane->in) - lane->in_len, 0);

	if (n < 0)
		return lab_fail("read from redis");
	errno = 0;
	if (n == 0)
		return lab_fail("redis closed a connection");
	lane->in_len += (size_t)n;
	return take_lines(l, lane);
}

static int
turn(struct redis_load *l, size_t depth, size_t *wanted)
{
	struct epoll_event events[EVENTS];
	struct lane *lane;
	int n, i;

	errno = EINTR;
	n = lab_signal()
		? -1
		: epoll_wait(l->epoll, events, EVENTS, LAB_PATIENCE_MS);
	if (n <= 0) {
		if (n == 0)
			errno = ETIMEDOUT;
		return lab_fail("wait for redis");
	}
	for (i = 0; i < n; i++) {
		lane = events[i].data.ptr;
		if (lane_read(l, lane) != 0 ||
		    fill(l, lane, depth, wanted) != 0)
			return -1;
	}
	return 0;
}

int
redis_run(struct redis_load *l, size_t depth, size_t decisions)
{
	size_t wanted = decisions, i;

	errno = EINVAL;
	if (depth == 0 || depth > REDIS_MAX_DEPTH)
		return lab_fail("redis: a depth of %zu", depth);
	l->done = 0;
	for (i = 0; i < l->count; i++)
		if (fill(l, &l->lanes[i], depth, &wanted) != 0)
			return -1;
	while (l->done < decisions)
		if (turn(l, depth, &wanted) != 0)
			return -1;
	return 0;
}

static int
lane_open(struct redis_load *l, const struct redis *redis)
{
	struct lane *lane = &l->lanes[l->count];
	struct epoll_event event = {EPOLLIN, {.ptr = lane}};

	lane->fd = redis_connect(redis);
	if (lane->fd < 0)
		return lab_fail("connect to redis");
	l->count++;
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, lane->fd, &event) != 0)
		return lab_fail("epoll");
	return 0;
}

struct redis_load *
redis_open(const struct redis *redis, size_t connections, unsigned keys)
{
	struct redis_load *l =
	    calloc(1, sizeof(*l) + connections * sizeof(l->lanes[0]));
	int rc = 0;

	if (l == NULL || keys == 0 || keys > REDIS_MAX_KEYS) {
		lab_fail("redis: %zu connections, %u keys", connections, keys);
		free(l);
		return NULL;
	}
	l->keys = keys;
	make_template(l, redis->sha);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		rc = lab_fail("epoll");
	while (rc == 0 && l->count < connections)
		rc = lane_open(l, redis);
	if (rc == 0)
		return l;
	redis_close(l);
	return NULL;
}

void
redis_close(struct redis_load *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < l->count; i++)
		close(l->lanes[i].fd);
	if (l->epoll >= 0)
		close(l->epoll);
	free(l);
}
