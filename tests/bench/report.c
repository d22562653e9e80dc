/* Medians and goals, as a table and as JSON. */
#include "tests/bench/report.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

struct summary {
	double low; /* the first quartile */
	double median;
	double high; /* the third */
};

void
report_init(struct report *r, const struct report_goal *goals, size_t count)
{
	assert(count <= REPORT_ROWS);
	memset(r, 0, sizeof(*r));
	r->row_count = count;
	for (size_t i = 0; i < count; i++) {
		r->rows[i].goal = goals[i];
		r->rows[i].shown = true;
		r->rows[i].judged = true;
	}
}

static void
add(struct report_samples *samples, double value)
{
	assert(samples->count < REPORT_SAMPLES);
	samples->list[samples->count++] = value;
}

void
report_add(struct report *r, size_t n, double value)
{
	assert(n < r->row_count);
	add(&r->rows[n].samples, value);
}

void
report_set(struct report *r, size_t n, double value)
{
	assert(n < r->row_count);
	r->rows[n].samples.count = 0;
	report_add(r, n, value);
}

static struct report_figure *
figure_of(struct report *r, const char *name)
{
	struct report_figure *f;
	size_t i;

	for (i = 0; i < r->figure_count; i++)
		if (strcmp(r->figures[i].name, name) == 0)
			return &r->figures[i];
	assert(r->figure_count < REPORT_FIGURES && strlen(name) < REPORT_NAME);
	f = &r->figures[r->figure_count++];
	strcpy(f->name, name);
	return f;
}

void
report_figure(
    struct report *r, const char *name, const char *unit, double value)
{
	struct report_figure *f = figure_of(r, name);

	f->unit = unit;
	add(&f->samples, value);
}

void
report_skip(struct report *r, size_t n, const char *why)
{
	struct report_row *row = &r->rows[n];

	assert(n < r->row_count);
	row->samples.count = 0;
	snprintf(row->note, sizeof(row->note), "%s", why);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between the two nearest of the sorted values. */
static double
quantile(const double *sorted, size_t count, double q)
{
	double at = q * (double)(count - 1);
	size_t i = (size_t)at;

	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* Of one sample or more. */
static struct summary
summarise(const struct report_samples *samples)
{
	double sorted[REPORT_SAMPLES];

	memcpy(sorted, samples->list, samples->count * sizeof(*sorted));
	qsort(sorted, samples->count, sizeof(*sorted), compare);
	return (struct summary){
	    .low = quantile(sorted, samples->count, 0.25),
	    .median = quantile(sorted, samples->count, 0.5),
	    .high = quantile(sorted, samples->count, 0.75),
	};
}

double
report_value(const struct report_row *row)
{
	return row->samples.count > 0 ? summarise(&row->samples).median : NAN;
}

int
report_ok(const struct report_row *row)
{
	double value = report_value(row);

	if (!row->judged || isnan(value) || isnan(row->goal.goal))
		return -1;
	return value <= row->goal.goal;
}

/* Three digits that mean something, whatever the unit. */
static const char *
number(double v, char out[32])
{
	if (isnan(v))
		return "-";
	snprintf(out, 32, "%.*f",
	    v >= 100             ? 0
	    : v >= 10            ? 1
	    : v >= 0.1 || v == 0 ? 2
				 : 4,
	    v);
	return out;
}

static void
print_row(const struct report_row *row, FILE *out)
{
	static const char *const words[] = {"-", "NO", "yes"};
	struct summary s;
	char a[32], b[32];

	fprintf(out, "%-58s", row->goal.name);
	if (row->samples.count == 0) {
		fprintf(out, " %s\n", row->note);
		return;
	}
	s = summarise(&row->samples);
	fprintf(out, " %7s %6s  %-3s", number(s.median, a),
	    number(row->goal.goal, b), words[report_ok(row) + 1]);
	fprintf(out, " %7s..%s\n", number(s.low, a), number(s.high, b));
}

static void
print_figure(const struct report_figure *f, FILE *out)
{
	struct summary s = summarise(&f->samples);
	char a[32], b[32];

	fprintf(out, "%-58s %7s %-6s", f->name, number(s.median, a), f->unit);
	fprintf(out, "     %7s..%s\n", number(s.low, a), number(s.high, b));
}

void
report_print(const struct report *r, FILE *out)
{
	size_t i;

	fprintf(out, "%-58s %7s %6s  %-3s %s\n", "what", "value", "goal", "ok",
	    "quartiles");
	for (i = 0; i < r->row_count; i++)
		if (r->rows[i].shown)
			print_row(&r->rows[i], out);
	fprintf(out, "\n%-58s %7s %-6s      %s\n", "measured", "median", "",
	    "quartiles");
	for (i = 0; i < r->figure_count; i++)
		print_figure(&r->figures[i], out);
}

static json_t *
real(double v)
{
	return isnan(v) ? json_null() : json_real(v);
}

static json_t *
row_json(const struct report_row *row)
{
	int ok = report_ok(row);
	json_t *out = json_pack("{s:s, s:o, s:o, s:o}", "name", row->goal.name,
	    "value", real(report_value(row)), "goal", real(row->goal.goal),
	    "ok", ok < 0 ? json_null() : json_boolean(ok));

	if (row->samples.count == 0)
		json_object_set_new(out, "note", json_string(row->note));
	return out;
}

static json_t *
samples_json(const struct report_samples *samples, const char *unit)
{
	struct summary s = summarise(samples);
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < samples->count; i++)
		json_array_append_new(list, json_real(samples->list[i]));
	return json_pack("{s:s, s:f, s:[f,f], s:o}", "unit", unit, "median",
	    s.median, "quartiles", s.low, s.high, "samples", list);
}

/* The text behind "model name" of the first processor; "" without one. */
static void
processor(char *out, size_t cap)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	out[0] = '\0';
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "model name", 10) == 0) {
			snprintf(out, cap, "%s", strchr(line, ':') + 2);
			out[strcspn(out, "\n")] = '\0';
			break;
		}
	if (file != NULL)
		fclose(file);
}

static json_t *
machine_json(void)
{
	struct utsname name = {0};
	char model[256];

	uname(&name);
	processor(model, sizeof(model));
	return json_pack("{s:s, s:I, s:s}", "processor", model, "cores",
	    (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "kernel", name.release);
}

static json_t *
date_json(void)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

static json_t *
arguments_json(char *const arguments[])
{
	json_t *list = json_array(), *text;

	for (size_t i = 0; arguments[i] != NULL; i++) {
		text = json_string(arguments[i]);
		/* What is not UTF-8 keeps its place. */
		json_array_append_new(list, text != NULL ? text : json_null());
	}
	return list;
}

/* How it was measured, and what the rows were made of, each sample of it. */
static json_t *
raw_json(const struct report *r, char *const arguments[])
{
	json_t *rows = json_object(), *figures = json_object();
	size_t i;

	for (i = 0; i < r->row_count; i++)
		if (r->rows[i].samples.count > 0)
			json_object_set_new(rows, r->rows[i].goal.name,
			    samples_json(&r->rows[i].samples, ""));
	for (i = 0; i < r->figure_count; i++)
		json_object_set_new(figures, r->figures[i].name,
		    samples_json(&r->figures[i].samples, r->figures[i].unit));
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "date", date_json(),
	    "version", PACKAGE_VERSION, "arguments", arguments_json(arguments),
	    "machine", machine_json(), "rows", rows, "figures", figures);
}

int
report_write(const struct report *r, char *const arguments[], const char *path)
{
	json_t *rows = json_array();
	json_t *root = json_pack(
	    "{s:o, s:o}", "rows", rows, "raw", raw_json(r, arguments));
	size_t i;
	int rc;

	for (i = 0; i < r->row_count; i++)
		if (r->rows[i].shown)
			json_array_append_new(rows, row_json(&r->rows[i]));
	/* Every digit: ok is what value and goal say in the file, too. */
	rc = json_dump_file(root, path, JSON_INDENT(2));
	json_decref(root);
	return rc;
}
