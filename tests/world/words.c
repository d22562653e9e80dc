/* See words.h. */
#include "tests/world/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
words_fault(struct words *w, const char *format, ...)
{
	va_list ap;

	if (words_failed(w))
		return;
	va_start(ap, format);
	vsnprintf(w->fault, sizeof(w->fault), format, ap);
	va_end(ap);
}

bool
words_failed(const struct words *w)
{
	return w->fault[0] != '\0';
}

void
words_split(struct words *w, const char *line)
{
	char *save = NULL;

	w->line++;
	w->count = w->at = 0;
	if (strchr(line, '\n') == NULL)
		words_fault(w, "the line is too long or has no end");
	snprintf(
	    w->text, sizeof(w->text), "%.*s", (int)strcspn(line, "#\n"), line);
	memcpy(w->bytes, w->text, sizeof(w->bytes));
	for (char *word = strtok_r(w->bytes, " \t", &save); word != NULL;
	     word = strtok_r(NULL, " \t", &save)) {
		if (w->count == WORDS_MAX) {
			words_fault(w, "too many words");
			return;
		}
		w->list[w->count++] = word;
	}
}

bool
words_more(const struct words *w)
{
	return w->at < w->count;
}

const char *
words_next(struct words *w)
{
	if (words_more(w))
		return w->list[w->at++];
	words_fault(w, "the line ends too early");
	return "";
}

bool
words_accept(struct words *w, const char *want)
{
	if (!words_more(w) || strcmp(w->list[w->at], want) != 0)
		return false;
	w->at++;
	return true;
}

bool
words_accept_prefix(struct words *w, const char *want, const char **rest)
{
	const size_t len = strlen(want);

	if (!words_more(w) || strncmp(w->list[w->at], want, len) != 0)
		return false;
	*rest = w->list[w->at++] + len;
	return true;
}

bool
words_have_number(const struct words *w)
{
	return words_more(w) && w->list[w->at][0] >= '0' &&
	       w->list[w->at][0] <= '9';
}

/* The number that text begins with, up to max; *end is what follows it. */
static uint64_t
leading(struct words *w, const char *text, uint64_t max, char **end)
{
	uint64_t n;

	errno = 0;
	n = strtoull(text, end, 10);
	if (*text < '0' || *text > '9' || errno != 0 || n > max) {
		words_fault(w,
		    "expected a number up to %" PRIu64 ", got \"%s\"", max,
		    text);
		return 0;
	}
	return n;
}

uint64_t
words_number(struct words *w, uint64_t max)
{
	const char *text = words_next(w);
	char *end;
	uint64_t n = leading(w, text, max, &end);

	if (*end != '\0')
		words_fault(w, "expected a number, got \"%s\"", text);
	return n;
}

int64_t
words_time(struct words *w)
{
	static const struct {
		const char *name;
		int64_t us;
	} units[] = {{"", 1}, {"us", 1}, {"ms", 1000}, {"s", 1000000}};
	const char *text = words_next(w);
	char *end;
	int64_t n = (int64_t)leading(w, text, INT64_MAX / 2000000, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].name) == 0)
			return n * units[i].us;
	}
	words_fault(w, "expected a time, got \"%s\"", text);
	return 0;
}

bool
words_switch(struct words *w)
{
	if (words_accept(w, "on"))
		return true;
	if (!words_accept(w, "off"))
		words_fault(w, "expected on or off");
	return false;
}
