/* Medians, quartiles and ratios, as a table and as JSON. */
#include "tests/bench/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

struct summary {
	double low; /* the first quartile */
	double median;
	double high; /* the third */
};

static struct report_row *
row_of(struct report *r, const char *name)
{
	struct report_row *row;
	size_t i;

	for (i = 0; i < r->count; i++)
		if (strcmp(r->rows[i].name, name) == 0)
			return &r->rows[i];
	assert(r->count < REPORT_ROWS && strlen(name) < REPORT_NAME);
	row = &r->rows[r->count++];
	memset(row, 0, sizeof(*row));
	strcpy(row->name, name);
	return row;
}

void
report_add(struct report *r, const char *name, const char *unit, double value)
{
	struct report_row *row = row_of(r, name);

	assert(row->count < REPORT_SAMPLES);
	row->unit = unit;
	row->values[row->count++] = value;
}

void
report_add_over(struct report *r, const char *name, const char *unit,
    double value, double floor)
{
	struct report_row *row = row_of(r, name);

	assert(row->floors == row->count && floor > 0);
	row->floor[row->floors++] = floor;
	report_add(r, name, unit, value);
}

void
report_skip(struct report *r, const char *name, const char *why)
{
	struct report_row *row = row_of(r, name);

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

static struct summary
summarise(const double *values, size_t count)
{
	double sorted[REPORT_SAMPLES];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), compare);
	return (struct summary){
	    .low = quantile(sorted, count, 0.25),
	    .median = quantile(sorted, count, 0.5),
	    .high = quantile(sorted, count, 0.75),
	};
}

static struct summary
summarise_ratio(const struct report_row *row)
{
	double ratios[REPORT_SAMPLES];
	size_t i;

	for (i = 0; i < row->floors; i++)
		ratios[i] = row->values[i] / row->floor[i];
	return summarise(ratios, row->floors);
}

/* Three digits that mean something, whatever the unit. */
static const char *
number(double v, char out[32])
{
	snprintf(out, 32, "%.*f",
	    v >= 100  ? 0
	    : v >= 10 ? 1
	    : v >= 1  ? 2
		      : 4,
	    v);
	return out;
}

static const char *
range(const struct summary *s, char out[80])
{
	char low[32], high[32];

	snprintf(out, 80, "%s..%s", number(s->low, low), number(s->high, high));
	return out;
}

static void
print_row(const struct report_row *row, FILE *out)
{
	char a[32], b[80];
	struct summary s;

	fprintf(out, "%-46s ", row->name);
	if (row->count == 0) {
		fprintf(out, "%s\n", row->note);
		return;
	}
	s = summarise(row->values, row->count);
	fprintf(out, "%9s %-6s %-17s", number(s.median, a), row->unit,
	    range(&s, b));
	if (row->floors > 0) {
		s = summarise(row->floor, row->floors);
		fprintf(out, " %8s", number(s.median, a));
		s = summarise_ratio(row);
		fprintf(out, " %6s %s", number(s.median, a), range(&s, b));
	}
	fputc('\n', out);
}

void
report_print(const struct report *r, FILE *out)
{
	size_t i;

	fprintf(out, "%-46s %9s %-6s %-17s %8s %6s %s\n", "row", "median", "",
	    "quartiles", "floor", "ratio", "quartiles");
	for (i = 0; i < r->count; i++)
		print_row(&r->rows[i], out);
}

static json_t *
row_json(const struct report_row *row)
{
	json_t *out = json_pack("{s:s}", "name", row->name);
	struct summary s;

	if (row->count == 0) {
		json_object_set_new(out, "skipped", json_string(row->note));
		return out;
	}
	s = summarise(row->values, row->count);
	json_object_set_new(out, "value", json_real(s.median));
	json_object_set_new(out, "unit", json_string(row->unit));
	json_object_set_new(
	    out, "quartiles", json_pack("[f,f]", s.low, s.high));
	json_object_set_new(
	    out, "rounds", json_integer((json_int_t)row->count));
	if (row->floors > 0) {
		s = summarise(row->floor, row->floors);
		json_object_set_new(out, "floor", json_real(s.median));
		s = summarise_ratio(row);
		json_object_set_new(out, "ratio", json_real(s.median));
		json_object_set_new(
		    out, "ratio_quartiles", json_pack("[f,f]", s.low, s.high));
	}
	return out;
}

int
report_write(const struct report *r, const char *path)
{
	json_t *rows = json_array();
	json_t *root = json_pack("{s:o}", "rows", rows);
	size_t i;
	int rc;

	for (i = 0; i < r->count; i++)
		json_array_append_new(rows, row_json(&r->rows[i]));
	rc =
	    json_dump_file(root, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
	return rc;
}
