/*
 * Lines for people. Names from a configuration, file names and the crypto and
 * JSON libraries' words all pass through here, so this is the one place that
 * keeps a key which was pasted into the wrong field out of the log.
 */
#include "daemon/message.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const key_prefixes[] = {
    "rl-aes1", "rl-cookie1", "rl-none1", "rl-secret1"};

/* Bytes of a key's type with its separator at text, 0 when there is none. */
static size_t
key_prefix(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(key_prefixes) / sizeof(*key_prefixes);
	     i++) {
		size_t prefix = strlen(key_prefixes[i]);

		if (prefix <= len &&
		    strncasecmp(text, key_prefixes[i], prefix) == 0)
			return prefix;
	}
	return 0;
}

/* A key ends at a blank or a quote. */
static size_t
key_rest(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && memchr(" '\"", text[n], 3) == NULL)
		n++;
	return n;
}

size_t
message_key(const char *text, size_t len, size_t *prefix)
{
	*prefix = key_prefix(text, len);
	if (*prefix == 0)
		return 0;
	return *prefix + key_rest(text + *prefix, len - *prefix);
}

/* Bytes of the well-formed character of UTF-8 at text, 0 for none. */
static size_t
character(const char *text, size_t left)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = p[0] < 0x80   ? 1
		     : p[0] < 0xC2 ? 0
		     : p[0] < 0xE0 ? 2
		     : p[0] < 0xF0 ? 3
		     : p[0] < 0xF5 ? 4
				   : 0;

	if (len > left)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
	    (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
		return 0; /* overlong, a surrogate, past the last one */
	return len;
}

/* Both ranges: a terminal obeys U+009B as well as ESC and a bracket. */
static bool
control(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	return p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && p[1] < 0xA0);
}

size_t
message_printable(const char *text, size_t left)
{
	size_t len = left > 0 ? character(text, left) : 0;

	return len > 0 && control(text) ? 0 : len;
}

/* '?' for each control character and each byte that is not UTF-8. */
static void
clean(char *text)
{
	const char *end = text + strlen(text);
	char *to = text;
	size_t len;

	while (text < end) {
		len = character(text, (size_t)(end - text));
		if (len == 0 || control(text)) {
			text += len > 0 ? len : 1;
			*to++ = '?';
			continue;
		}
		memmove(to, text, len);
		to += len;
		text += len;
	}
	*to = '\0';
}

/* What follows a key's type becomes "...". */
static void
hide_keys(char *text)
{
	const char *end = text + strlen(text);
	char *to = text;
	size_t prefix, len;

	while (text < end) {
		len = message_key(text, (size_t)(end - text), &prefix);
		if (len == 0) {
			*to++ = *text++;
			continue;
		}
		memmove(to, text, prefix);
		to += prefix;
		for (size_t n = prefix; n < len && n < prefix + 3; n++)
			*to++ = '.';
		text += len;
	}
	*to = '\0';
}

/* Drops the start of a character whose end did not fit. */
static void
cut_whole(char *text)
{
	size_t len = strlen(text);
	size_t tail = 0;
	size_t need;
	unsigned char lead;

	while (tail < len && tail < 3 &&
	       ((unsigned char)text[len - 1 - tail] & 0xC0) == 0x80)
		tail++;
	if (tail == len)
		return;
	lead = (unsigned char)text[len - 1 - tail];
	need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
	if (need > tail)
		text[len - 1 - tail] = '\0';
}

void
message_vformat(char *out, size_t cap, const char *fmt, va_list ap)
{
	int len;

	if (cap == 0)
		return;
	len = vsnprintf(out, cap, fmt, ap);
	if (len < 0)
		out[0] = '\0';
	if (len >= 0 && (size_t)len >= cap)
		cut_whole(out);
	clean(out);
	hide_keys(out);
}

void
message_format(char *out, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message_vformat(out, cap, fmt, ap);
	va_end(ap);
}
