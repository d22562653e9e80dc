/*
 * See metrics_write.h. A text may have a hundred thousand lines while nobody
 * else is served, so a line is put together from parts that are there already.
 */
#include "daemon/metrics_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 16384
#define US        INT64_C(1000000)

/* Room for so much more; NULL without memory. */
static char *
room(struct metrics_writer *w, size_t len)
{
	size_t cap = w->cap != 0 ? w->cap : FIRST_CAP;
	char *grown;

	if (w->failed)
		return NULL;
	while (cap - w->len <= len) /* and a NUL */
		cap *= 2;
	if (cap == w->cap)
		return w->text + w->len;
	grown = realloc(w->text, cap);
	if (grown == NULL) {
		w->failed = true;
		return NULL;
	}
	w->text = grown;
	w->cap = cap;
	return grown + w->len;
}

static void
put(struct metrics_writer *w, const char *bytes, size_t len)
{
	char *to = room(w, len);

	if (to == NULL)
		return;
	memcpy(to, bytes, len);
	w->len += len;
}

static void
puts_of(struct metrics_writer *w, const char *text)
{
	put(w, text, strlen(text));
}

static void
put_char(struct metrics_writer *w, char c)
{
	put(w, &c, 1);
}

static void
put_u64(struct metrics_writer *w, uint64_t v)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	put(w, at, (size_t)(digits + sizeof(digits) - at));
}

/* Microseconds as seconds, without needless zeroes. */
static void
put_seconds(struct metrics_writer *w, uint64_t us)
{
	char part[8];
	size_t len = 7;

	put_u64(w, us / (uint64_t)US);
	if (us % (uint64_t)US == 0)
		return;
	snprintf(part, sizeof(part), ".%06u", (unsigned int)(us % US));
	while (part[len - 1] == '0')
		len--;
	put(w, part, len);
}

/* The value of a label, or with quoted false a help text. */
static void
put_escaped(struct metrics_writer *w, const char *text, bool quoted)
{
	const char *const special = quoted ? "\\\n\"" : "\\\n";
	size_t plain;

	for (;;) {
		plain = strcspn(text, special);
		put(w, text, plain);
		text += plain;
		if (*text == '\0')
			return;
		put_char(w, '\\');
		put_char(w, *text == '\n' ? 'n' : *text);
		text++;
	}
}

static void
put_label(struct metrics_writer *w, const char *name, const char *value)
{
	puts_of(w, name);
	puts_of(w, "=\"");
	put_escaped(w, value, true);
	put_char(w, '"');
}

char *
metrics_write_end(struct metrics_writer *w)
{
	char *text = room(w, 0);

	if (text != NULL)
		*text = '\0';
	text = w->text;
	if (w->failed) {
		free(text);
		text = NULL;
	}
	*w = (struct metrics_writer){0};
	return text;
}

void
metrics_write_family(struct metrics_writer *w, enum metric metric)
{
	const struct metric_row *row = &metric_rows[metric];

	puts_of(w, "# HELP ");
	puts_of(w, row->name);
	put_char(w, ' ');
	put_escaped(w, row->help, false);
	puts_of(w, "\n# TYPE ");
	puts_of(w, row->name);
	put_char(w, ' ');
	puts_of(w, metric_type_name(row->type));
	put_char(w, '\n');
}

/* The line up to its value. */
static void
begin_sample(struct metrics_writer *w, enum metric metric, const char *suffix,
    const char *labels, const char *more)
{
	puts_of(w, metric_rows[metric].name);
	puts_of(w, suffix);
	if (*labels != '\0' || more != NULL) {
		put_char(w, '{');
		puts_of(w, labels);
		if (*labels != '\0' && more != NULL)
			put_char(w, ',');
		if (more != NULL)
			puts_of(w, more);
		put_char(w, '}');
	}
	put_char(w, ' ');
}

void
metrics_write_count(struct metrics_writer *w, enum metric metric,
    const char *labels, const char *more, uint64_t value)
{
	begin_sample(w, metric, "", labels, more);
	put_u64(w, value);
	put_char(w, '\n');
}

void
metrics_write_seconds(struct metrics_writer *w, enum metric metric,
    const char *labels, int64_t us)
{
	begin_sample(w, metric, "", labels, NULL);
	put_seconds(w, us > 0 ? (uint64_t)us : 0);
	put_char(w, '\n');
}

static void
put_bucket(struct metrics_writer *w, enum metric metric, const char *labels,
    const char *bound, uint64_t count)
{
	char le[32];

	snprintf(le, sizeof(le), "le=\"%s\"", bound);
	begin_sample(w, metric, "_bucket", labels, le);
	put_u64(w, count);
	put_char(w, '\n');
}

void
metrics_write_histogram(struct metrics_writer *w, enum metric metric,
    const char *labels, const struct latency *latency)
{
	uint64_t sum = 0;

	for (int i = 0; i < LATENCY_BUCKETS; i++) {
		sum += latency->counts[i];
		put_bucket(w, metric, labels, latency_bound_texts[i], sum);
	}
	sum += latency->counts[LATENCY_BUCKETS];
	put_bucket(w, metric, labels, "+Inf", sum);
	begin_sample(w, metric, "_sum", labels, NULL);
	put_seconds(w, latency->sum_us);
	put_char(w, '\n');
	begin_sample(w, metric, "_count", labels, NULL);
	put_u64(w, sum);
	put_char(w, '\n');
}

void
metrics_write_one(struct metrics_writer *w, enum metric metric, uint64_t value)
{
	metrics_write_family(w, metric);
	metrics_write_count(w, metric, "", NULL, value);
}

static struct metrics_owner *
another(struct metrics_owners *o)
{
	const size_t cap = o->cap != 0 ? o->cap * 2 : 16;
	struct metrics_owner *grown;

	if (o->failed)
		return NULL;
	if (o->count < o->cap)
		return &o->list[o->count++];
	grown = realloc(o->list, cap * sizeof(*grown));
	if (grown == NULL) {
		o->failed = true;
		return NULL;
	}
	o->list = grown;
	o->cap = cap;
	return &o->list[o->count++];
}

void
metrics_own(struct metrics_owners *o, const void *counters, ...)
{
	struct metrics_owner *owner = another(o);
	struct metrics_writer w = {0};
	const char *name;
	va_list ap;

	if (owner == NULL)
		return;
	va_start(ap, counters);
	while ((name = va_arg(ap, const char *)) != NULL) {
		if (w.len > 0)
			put_char(&w, ',');
		put_label(&w, name, va_arg(ap, const char *));
	}
	va_end(ap);
	owner->counters = counters;
	owner->labels = metrics_write_end(&w);
	if (owner->labels == NULL) {
		o->failed = true;
		o->count--;
	}
}

void
metrics_own_free(struct metrics_owners *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->list[i].labels);
	free(o->list);
	*o = (struct metrics_owners){0};
}

static void
write_source(struct metrics_writer *w, const struct metrics_source *source,
    const struct metrics_owner *owner)
{
	uint64_t v;

	memcpy(&v, (const char *)owner->counters + source->offset, sizeof(v));
	metrics_write_count(w, source->metric, owner->labels, source->more, v);
}

void
metrics_write_sources(struct metrics_writer *w,
    const struct metrics_source *sources, size_t count,
    const struct metrics_owners *owners)
{
	size_t first, end;

	w->failed |= owners->failed;
	for (first = 0; first < count; first = end) {
		metrics_write_family(w, sources[first].metric);
		end = first + 1;
		while (
		    end < count && sources[end].metric == sources[first].metric)
			end++;
		for (size_t o = 0; o < owners->count; o++) {
			for (size_t i = first;
			     owners->list[o].counters != NULL && i < end; i++)
				write_source(w, &sources[i], &owners->list[o]);
		}
	}
}
