/*
 * The fields of a line of the log: printf-like text in which values that are
 * text come out so that they can be read back. Whatever a peer put into one,
 * it stays in its quotes, and a line that is cut ends with a whole value.
 */
#ifndef DAEMON_LOG_FORMAT_H
#define DAEMON_LOG_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * fmt knows %s, %.*s (of exactly that many bytes, NUL among them), %m, %%,
 * %d, %u with l, ll, z and j, and %.15g. A text in quotes there, as in
 * name="%s", is quoted in any case, another one only if it has to be. In
 * quotes \" is a quote, \\ a backslash and \xNN a byte that is a control
 * character's or not UTF-8; of an API key only its type is shown. Writes less
 * than cap (at least 2) bytes and a NUL; returns how many.
 */
size_t log_vformat(char *out, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

#endif
