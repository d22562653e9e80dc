/*
 * One line per event to stderr, with a level and key=value fields; the only
 * global of the project. Control characters of a text are replaced, so that a
 * line stays a line. Never give it a secret.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* Lines that were dropped, since stderr would have blocked or failed. */
uint64_t log_dropped(void);

/* Lines below the level are not written. */
void log_set_level(enum log_level level);

/* event is a constant word; the rest is printf-like key=value text. */
void log_error(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warning(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_info(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_debug(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
