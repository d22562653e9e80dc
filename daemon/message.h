/*
 * Lines for people: errors, warnings, the log, the text of a failed check.
 * Whatever went into one, it is a single line of UTF-8 without control
 * characters, cut between characters, and holds no API key: text that looks
 * like one keeps its type only.
 */
#ifndef DAEMON_MESSAGE_H
#define DAEMON_MESSAGE_H

#include <stdarg.h>
#include <stddef.h>

void message_format(char *out, size_t cap, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void message_vformat(char *out, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/*
 * For who writes text in another way. Bytes of the API key, or what looks like
 * one, that begins at text, 0 for none; its type, which may be shown, has
 * *prefix bytes.
 */
size_t message_key(const char *text, size_t len, size_t *prefix);
/* Bytes of the character of UTF-8 at text, 0 when it may not be shown: it is
 * malformed, or a control character. */
size_t message_printable(const char *text, size_t len);

#endif
