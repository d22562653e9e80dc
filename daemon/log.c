/*
 * The log: one write(2) per line, so that lines of two processes on one
 * stderr do not mix. What a line says may come from a peer: log_format.h keeps
 * it one line, and keys out of it.
 */
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log_format.h"
#include "daemon/message.h"

#define LOG_LINE_MAX 2048

static enum log_level threshold = LOG_LEVEL_INFO;
static uint64_t dropped; /* lines that nobody would take */
static uint64_t held;    /* lines that would have been too many */
static bool journal;     /* stderr is the journal: it reads priorities */

static const char *
level_name(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error";
	case LOG_LEVEL_WARNING:
		return "warning";
	case LOG_LEVEL_INFO:
		return "info";
	case LOG_LEVEL_DEBUG:
		return "debug";
	}
	return "?";
}

/* As in syslog(3). */
static int
priority(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return 3;
	case LOG_LEVEL_WARNING:
		return 4;
	case LOG_LEVEL_INFO:
		return 6;
	case LOG_LEVEL_DEBUG:
		return 7;
	}
	return 3;
}

/* The journal knows whose lines these are. */
static size_t
begin_line(char *line, size_t cap, enum log_level level)
{
	int n = journal ? snprintf(line, cap, "<%d>", priority(level))
			: snprintf(line, cap, "rl-agent: ");

	return (size_t)n;
}

/*
 * Whoever reads our stderr may have stopped: a line is dropped rather than
 * waited for. A pipe that is writable takes a line of less than PIPE_BUF.
 */
static void
write_or_drop(const char *line, size_t len)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0 &&
	    write(STDERR_FILENO, line, len) == (ssize_t)len)
		return;
	dropped++;
}

static void
write_line(enum log_level level, const char *event, const char *fmt, va_list ap)
{
	int saved = errno;
	char line[LOG_LINE_MAX];
	size_t len;

	if (level > threshold)
		return;
	len = begin_line(line, sizeof(line), level);
	len += (size_t)snprintf(line + len, sizeof(line) - len, "%s: %s ",
	    level_name(level), event);
	errno = saved; /* for %m */
	len += log_vformat(line + len, sizeof(line) - len - 1, fmt, ap);
	line[len++] = '\n';
	write_or_drop(line, len);
	errno = saved;
}

void
log_refusal(const char *text)
{
	char line[LOG_LINE_MAX];
	size_t len = begin_line(line, sizeof(line), LOG_LEVEL_ERROR);

	message_format(line + len, sizeof(line) - len - 1, "%s", text);
	len = strlen(line);
	line[len++] = '\n';
	write_or_drop(line, len);
}

/* "DEVICE:INODE" of the stream; what was redirected since is another one. */
void
log_find_journal(void)
{
	const char *named = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;

	journal = false;
	if (named == NULL || fstat(STDERR_FILENO, &st) != 0)
		return;
	snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	journal = strcmp(named, ours) == 0;
}

void
log_set_level(enum log_level level)
{
	threshold = level;
}

void
log_error(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(LOG_LEVEL_ERROR, event, fmt, ap);
	va_end(ap);
}

void
log_warning(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(LOG_LEVEL_WARNING, event, fmt, ap);
	va_end(ap);
}

void
log_info(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(LOG_LEVEL_INFO, event, fmt, ap);
	va_end(ap);
}

void
log_debug(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(LOG_LEVEL_DEBUG, event, fmt, ap);
	va_end(ap);
}

uint64_t
log_dropped(void)
{
	return dropped;
}

bool
log_may(
    enum log_level level, struct errorrate *pace, int64_t now, uint64_t *unsaid)
{
	if (errorrate_try(pace, now, unsaid))
		return true;
	if (level <= threshold)
		held++;
	return false;
}

uint64_t
log_held(void)
{
	return held;
}
