/*
 * One line per event to stderr, with a level and key=value fields; the only
 * global of the project. What a value holds is escaped, see log_format.h, so
 * that a line stays a line and can be read back. Never give it a secret.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/errorrate.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/* Lines that were dropped, since stderr would have blocked or failed. */
uint64_t log_dropped(void);

/* errorrate_try() for a line of that level. */
bool log_may(enum log_level level, struct errorrate *pace, int64_t now,
    uint64_t *unsaid);
/* Lines that it held back, of levels that are written. */
uint64_t log_held(void);
/* Lines get the prefixes of sd-daemon(3) from here on, if stderr is the
 * journal's. */
void log_find_journal(void);

/* Lines below the level are not written. */
void log_set_level(enum log_level level);

/* A line without an event: why nothing was begun. Whatever the level. */
void log_refusal(const char *text);

/* event is a constant word; the rest are fields, name=%u, name=%s or
 * name=\"%s\", as log_format.h knows them. */
void log_error(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_warning(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_info(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_debug(const char *event, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
