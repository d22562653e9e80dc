/*
 * Lines of rlctl top, whose names and keys strangers choose. Every character
 * is judged by its code point: of those that a terminal obeys, that take no
 * room or that turn the direction of writing none is shown.
 */
#include "client-shim/rlctl_top.h"

#include <stdarg.h>
#include <string.h>

struct range {
	uint32_t first, last;
};

/* Controls, and what is not seen but has an effect. */
static const struct range hidden[] = {
    {0, 0x1F},
    {0x7F, 0x9F},
    {0xAD, 0xAD},
    {0x61C, 0x61C},
    {0x115F, 0x1160},
    {0x17B4, 0x17B5},
    {0x180B, 0x180F},
    {0x200B, 0x200F},
    {0x2028, 0x202E},
    {0x2060, 0x206F},
    {0x3164, 0x3164},
    {0xD800, 0xDFFF},
    {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB},
    {0xFFFE, 0xFFFF},
    {0xE0000, 0xE0FFF},
};

/* Set on the character before them. */
static const struct range marks[] = {
    {0x300, 0x36F},
    {0x483, 0x489},
    {0x591, 0x5BD},
    {0x610, 0x61A},
    {0x64B, 0x65F},
    {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF},
    {0x20D0, 0x20FF},
    {0x3099, 0x309A},
    {0xFE20, 0xFE2F},
};

/* Two columns wide. */
static const struct range wide[] = {
    {0x1100, 0x115F},
    {0x231A, 0x231B},
    {0x2E80, 0x303E},
    {0x3041, 0xA4CF},
    {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},
    {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF},
    {0x20000, 0x3FFFD},
};

#define IN(list, c) in(list, sizeof(list) / sizeof((list)[0]), c)

static bool
in(const struct range *list, size_t count, uint32_t c)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (c >= list[i].first && c <= list[i].last)
			return true;
	}
	return false;
}

/* A character of UTF-8, and how many bytes it has; a byte that is part of none
 * is 0, which is hidden. */
static size_t
decode(const unsigned char *s, size_t len, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const size_t n = s[0] < 0x80   ? 1
			 : s[0] < 0xC2 ? 0
			 : s[0] < 0xE0 ? 2
			 : s[0] < 0xF0 ? 3
			 : s[0] < 0xF5 ? 4
				       : 0;
	size_t i;

	*c = n < 2 ? s[0] : s[0] & (0x7FU >> n);
	for (i = 1; i < n && i < len && (s[i] & 0xC0) == 0x80; i++)
		*c = *c << 6 | (s[i] & 0x3F);
	if (n > 0 && i == n && *c >= least[n] && *c <= 0x10FFFF)
		return n;
	*c = 0;
	return 1;
}

/* The next character as it is shown: *text and *n bytes, and its columns. One
 * mark is enough, on a character that is seen. */
static int
shown(const unsigned char *s, size_t len, size_t *taken, const char **text,
    size_t *n, bool *marked)
{
	uint32_t c;

	*taken = decode(s, len, &c);
	*text = (const char *)s;
	*n = *taken;
	if (IN(marks, c) && !*marked) {
		*marked = true;
		return 0;
	}
	if (IN(hidden, c) || IN(marks, c)) {
		*text = "?";
		*n = 1;
	} else {
		*marked = false;
	}
	return *n > 1 && IN(wide, c) ? 2 : 1;
}

int
top_line_width(const char *bytes, size_t len)
{
	const char *text;
	bool marked = true; /* a mark needs something to be set on */
	size_t i, n, taken;
	int columns = 0;

	for (i = 0; i < len; i += taken)
		columns += shown((const unsigned char *)bytes + i, len - i,
		    &taken, &text, &n, &marked);
	return columns;
}

void
top_line_init(struct top_line *l, int width)
{
	l->len = 0;
	l->at = 0;
	l->width = width;
	l->full = false;
	l->text[0] = '\0';
}

static void
add(struct top_line *l, const char *text, size_t n, int columns)
{
	if (l->len + n >= sizeof(l->text)) {
		l->full = true;
		return;
	}
	memcpy(l->text + l->len, text, n);
	l->len += n;
	l->text[l->len] = '\0';
	l->at += columns;
}

static void
blanks(struct top_line *l, int n)
{
	while (n-- > 0)
		add(l, " ", 1, 1);
}

/* At most room columns of it. */
static void
add_shown(struct top_line *l, const char *bytes, size_t len, int room)
{
	const int from = l->at;
	const char *text;
	bool marked = true;
	size_t i, n, taken;
	int columns;

	for (i = 0; i < len; i += taken) {
		columns = shown((const unsigned char *)bytes + i, len - i,
		    &taken, &text, &n, &marked);
		if (l->at - from + columns > room)
			break;
		add(l, text, n, columns);
	}
}

void
top_line_cell(
    struct top_line *l, const char *bytes, size_t len, int width, bool right)
{
	const int gap = l->len > 0;
	int room = l->width > 0 ? l->width - l->at - gap : 100000;
	const int columns = top_line_width(bytes, len);
	const int end = l->at + gap + width;

	if (l->full || room < (width > 0 ? width : 1)) {
		l->full = true;
		return;
	}
	if (width > 0)
		room = width;
	blanks(l, gap + (right && columns < width ? width - columns : 0));
	if (columns <= room) {
		add_shown(l, bytes, len, room);
	} else {
		add_shown(l, bytes, len, room - 3);
		add_shown(l, "...", 3, room < 3 ? room : 3);
		l->full = l->full || width == 0;
	}
	/* Where a wide character had no room there is one left, too. */
	if (width > 0)
		blanks(l, end - l->at);
}

void
top_line_put(struct top_line *l, int width, bool right, const char *fmt, ...)
{
	char text[TOP_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	top_line_cell(l, text, strlen(text), width, right);
}
