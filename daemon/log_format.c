/* See log_format.h. A line is written from its start to its end; the last byte
 * of its room is kept for the quote that closes a value. */
#include "daemon/log_format.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "daemon/message.h"

/* Of the longest number: -1.23456789012345e-308 and more than 64 bits take. */
#define NUMBER_MAX 32

struct line {
	va_list ap;
	int error; /* errno, for %m */
	char *out;
	size_t cap;
	size_t len;
	size_t whole; /* up to here fields are whole */
	bool quoted;  /* a quote is open */
	bool full;
};

/* All of it or, from then on, nothing. */
static void
put(struct line *l, const char *bytes, size_t n)
{
	if (l->full || l->len + n + 2 > l->cap) { /* a quote, a NUL */
		l->full = true;
		return;
	}
	memcpy(l->out + l->len, bytes, n);
	l->len += n;
}

static void
open_quote(struct line *l)
{
	put(l, "\"", 1);
	l->quoted = !l->full;
}

/* Its room was kept; what is cut is closed at the end. */
static void
close_quote(struct line *l)
{
	if (l->full || !l->quoted)
		return;
	l->out[l->len++] = '"';
	l->quoted = false;
}

static void
put_literal(struct line *l, char c)
{
	if (c == '"' && l->quoted) {
		close_quote(l);
	} else if (c == '"') {
		open_quote(l);
	} else {
		if (c == ' ' && !l->quoted && !l->full)
			l->whole = l->len;
		put(l, &c, 1);
	}
}

static void
put_byte(struct line *l, unsigned char c)
{
	char text[sizeof("\\x00")];

	if (c == '"' || c == '\\') {
		text[0] = '\\';
		text[1] = (char)c;
		put(l, text, 2);
		return;
	}
	snprintf(text, sizeof(text), "\\x%02x", c);
	put(l, text, 4);
}

static void
put_escaped(struct line *l, const char *text, size_t len)
{
	size_t n, prefix;

	while (len > 0) {
		if ((n = message_key(text, len, &prefix)) > 0) {
			put(l, text, prefix);
			put(l, "...", n - prefix < 3 ? n - prefix : 3);
		} else if (*text == '"' || *text == '\\' ||
			   (n = message_printable(text, len)) == 0) {
			put_byte(l, (unsigned char)*text);
			n = 1;
		} else {
			put(l, text, n);
		}
		text += n;
		len -= n;
	}
}

/* Can it stand without quotes? */
static bool
is_word(const char *text, size_t len)
{
	size_t i, prefix;

	for (i = 0; i < len; i++) {
		if (text[i] <= ' ' || text[i] > '~' ||
		    strchr("\"\\=", text[i]) != NULL ||
		    message_key(text + i, len - i, &prefix) > 0)
			return false;
	}
	return len > 0;
}

/* NULL, as with printf(3) no reason to end the program, is empty. */
static void
put_text(struct line *l, const char *text, size_t len)
{
	if (l->quoted) {
		put_escaped(l, text, len);
	} else if (is_word(text, len)) {
		put(l, text, len);
	} else {
		open_quote(l);
		put_escaped(l, text, len);
		close_quote(l);
	}
}

/* "", "l" or "ll", whose lengths these are; "z" and "j" are as long as "l". */
static intmax_t
signed_of(struct line *l, size_t longs)
{
	if (longs == 0)
		return va_arg(l->ap, int);
	return longs == 1 ? va_arg(l->ap, long) : va_arg(l->ap, long long);
}

static uintmax_t
unsigned_of(struct line *l, size_t longs)
{
	if (longs == 0)
		return va_arg(l->ap, unsigned int);
	return longs == 1 ? va_arg(l->ap, unsigned long)
			  : va_arg(l->ap, unsigned long long);
}

_Static_assert(
    sizeof(size_t) == sizeof(unsigned long) && sizeof(ssize_t) == sizeof(long),
    "%zu is read as %lu");

/* A conversion after its '%'; returns what follows it. */
static const char *
convert(struct line *l, const char *fmt)
{
	char number[NUMBER_MAX];
	const char *text;
	size_t longs;

	if (strncmp(fmt, ".*s", 3) == 0) {
		const int len = va_arg(l->ap, int);

		text = va_arg(l->ap, const char *);
		put_text(l, text, text != NULL && len > 0 ? (size_t)len : 0);
		return fmt + 3;
	}
	if (strncmp(fmt, ".15g", 4) == 0) {
		snprintf(
		    number, sizeof(number), "%.15g", va_arg(l->ap, double));
		put(l, number, strlen(number));
		return fmt + 4;
	}
	longs = strspn(fmt, "lzj");
	fmt += longs;
	switch (*fmt) {
	case 's':
		text = va_arg(l->ap, const char *);
		put_text(l, text, text != NULL ? strlen(text) : 0);
		break;
	case 'm':
		text = strerror(l->error);
		put_text(l, text, strlen(text));
		break;
	case 'd':
		snprintf(
		    number, sizeof(number), "%" PRIdMAX, signed_of(l, longs));
		put(l, number, strlen(number));
		break;
	case 'u':
		snprintf(
		    number, sizeof(number), "%" PRIuMAX, unsigned_of(l, longs));
		put(l, number, strlen(number));
		break;
	default:
		assert(*fmt == '%');
		put_literal(l, '%');
	}
	return fmt + 1;
}

/* The open value is closed; of a bare one that was cut nothing stays. */
static void
end(struct line *l)
{
	if (l->quoted)
		l->out[l->len++] = '"';
	else if (l->full)
		l->len = l->whole;
	l->out[l->len] = '\0';
}

size_t
log_vformat(char *out, size_t cap, const char *fmt, va_list ap)
{
	struct line l = {.error = errno, .out = out, .cap = cap};

	assert(cap >= 2);
	va_copy(l.ap, ap);
	while (*fmt != '\0') {
		if (*fmt == '%')
			fmt = convert(&l, fmt + 1);
		else
			put_literal(&l, *fmt++);
	}
	va_end(l.ap);
	end(&l);
	return l.len;
}
