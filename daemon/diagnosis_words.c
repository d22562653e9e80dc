/* Sentences that are put together piece by piece; what does not fit is cut. */
#include "daemon/diagnosis_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/message.h"

void
words_add(struct words *w, const char *fmt, ...)
{
	size_t room = sizeof(w->text) - w->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->len += (size_t)n < room ? (size_t)n : room - 1;
}

void
words_span(struct words *w, int64_t us)
{
	const int64_t tenths = (us + 50000) / 100000,
		      s = (us + 500000) / 1000000;

	if (tenths < 100)
		words_add(
		    w, "%" PRId64 ".%" PRId64 " s", tenths / 10, tenths % 10);
	else if (s < 120)
		words_add(w, "%" PRId64 " s", s);
	else if (s < 2 * 3600)
		words_add(w, "%" PRId64 " min", (s + 30) / 60);
	else if (s < 48 * 3600)
		words_add(w, "%" PRId64 " h", (s + 1800) / 3600);
	else
		words_add(w, "%" PRId64 " days", (s + 43200) / 86400);
}

void
words_ago(struct words *w, const struct diagnosis_facts *f, int64_t when)
{
	words_span(w, f->now - when);
	words_add(w, " ago");
}

void
words_apart(struct words *w, int64_t ms)
{
	words_add(w, "by ");
	words_span(w, (ms < 0 ? -ms : ms) * 1000);
}

void
words_count(struct words *w, uint64_t n, const char *one, const char *many)
{
	words_add(w, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

void
words_strangers(struct words *w, const struct diagnosis_facts *f)
{
	words_count(w, f->strangers, "datagram", "datagrams");
	words_add(w, " came back from servers that were not asked");
}

void
words_finish(const struct words *w, struct diagnosis *out)
{
	message_format(out->text, sizeof(out->text), "%s", w->text);
}
