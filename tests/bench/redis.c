/* The server: found, started, taught the script. */
#include "tests/bench/redis.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROGRAM "redis-server"
#define STEP_MS 10

/*
 * The usual one: tokens and the time when they were right in a hash, which
 * goes away when the bucket would be full again. Atomic, on redis's clock.
 * Arguments: limit, window in ms, tokens. Returns allowed and what is left.
 */
static const char script[] =
    "local limit = tonumber(ARGV[1])\n"
    "local window = tonumber(ARGV[2])\n"
    "local asked = tonumber(ARGV[3])\n"
    "local t = redis.call('TIME')\n"
    "local now = t[1] * 1000 + t[2] / 1000\n"
    "local b = redis.call('HMGET', KEYS[1], 'tokens', 'time')\n"
    "local tokens = tonumber(b[1]) or limit\n"
    "local passed = math.max(0, now - (tonumber(b[2]) or now))\n"
    "tokens = math.min(limit, tokens + passed * limit / window)\n"
    "local allowed = 0\n"
    "if tokens >= asked then\n"
    "  tokens = tokens - asked\n"
    "  allowed = 1\n"
    "end\n"
    "redis.call('HSET', KEYS[1], 'tokens', tokens, 'time', now)\n"
    "redis.call('PEXPIRE', KEYS[1], window)\n"
    "return {allowed, math.floor(tokens)}\n";

int
redis_connect(const struct redis *redis)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	memcpy(to.sun_path, redis->socket, sizeof(redis->socket));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* As execvp() will look for it. */
static bool
is_installed(void)
{
	const char *at = getenv("PATH");
	char path[512];
	size_t len;

	while (at != NULL && *at != '\0') {
		len = strcspn(at, ":");
		snprintf(path, sizeof(path), "%.*s/" PROGRAM, (int)len, at);
		if (access(path, X_OK) == 0)
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

static int
spawn(struct lab *lab, struct redis *r)
{
	char log[112];
	char *argv[] = {PROGRAM, "--unixsocket", r->socket, "--port", "0",
	    "--save", "", "--appendonly", "no", "--dir", lab->dir, NULL};
	int fd;

	snprintf(r->socket, sizeof(r->socket), "%s/redis", lab->dir);
	snprintf(log, sizeof(log), "%s/redis.log", lab->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return lab_fail("%s", log);
	r->pid = lab_spawn(lab, argv, NULL, fd, fd);
	close(fd);
	return r->pid > 0 ? 0 : -1;
}

/* It makes its socket some time after it starts. */
static int
await(const struct redis *r)
{
	int left = LAB_PATIENCE_MS / STEP_MS, fd;

	while ((fd = redis_connect(r)) < 0) {
		if (left-- == 0 || lab_is_over(r->pid))
			return lab_fail(PROGRAM " does not start");
		poll(NULL, 0, STEP_MS);
	}
	return fd;
}

/* A command of two or three words in, one line out. */
static int
ask(int fd, const char *command, char *line, size_t cap)
{
	size_t len = strlen(command);

	errno = 0;
	return send(fd, command, len, MSG_NOSIGNAL) == (ssize_t)len &&
		       lab_read_line(fd, line, cap) > 0
		   ? 0
		   : -1;
}

static int
teach(struct redis *r, int fd)
{
	char command[sizeof(script) + 64], line[128];

	snprintf(command, sizeof(command),
	    "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
	    sizeof(script) - 1, script);
	if (ask(fd, "PING\r\n", line, sizeof(line)) != 0 ||
	    strcmp(line, "+PONG\r") != 0)
		return lab_fail(PROGRAM " does not answer");
	if (ask(fd, command, line, sizeof(line)) != 0 ||
	    strcmp(line, "$40\r") != 0 ||
	    lab_read_line(fd, line, sizeof(line)) != REDIS_SHA_LEN + 1)
		return lab_fail(PROGRAM " does not take the script: %s", line);
	memcpy(r->sha, line, REDIS_SHA_LEN);
	r->sha[REDIS_SHA_LEN] = '\0';
	return 0;
}

int
redis_start(struct lab *lab, struct redis *out)
{
	int fd, rc;

	if (!is_installed())
		return 1;
	if (spawn(lab, out) != 0)
		return -1;
	fd = await(out);
	if (fd < 0)
		return -1;
	rc = teach(out, fd);
	close(fd);
	return rc;
}
