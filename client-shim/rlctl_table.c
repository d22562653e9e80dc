/*
 * Each row is made twice, for the widths of the columns and then to be
 * printed, as names are: so no table is held, however long the list.
 */
#include "client-shim/rlctl_table.h"

#include <assert.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"

const char *
rlctl_table_text(const json_t *from, const char *name)
{
	const char *text = json_string_value(json_object_get(from, name));

	return text != NULL ? text : "-";
}

long long
rlctl_table_number(const json_t *from, const char *name)
{
	return json_integer_value(json_object_get(from, name));
}

int
rlctl_table_known(const json_t *from, const char *name)
{
	return json_is_integer(json_object_get(from, name));
}

void
rlctl_table_put(char out[RLCTL_TABLE_CELL], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, RLCTL_TABLE_CELL, fmt, ap);
	va_end(ap);
	if (n >= RLCTL_TABLE_CELL)
		memcpy(out + RLCTL_TABLE_CELL - 4, "...", 4);
}

void
rlctl_table_put_short(char out[RLCTL_TABLE_CELL], const char *text, int max)
{
	size_t len = strlen(text);

	if (rlctl_table_width(text, len) <= max) {
		rlctl_table_put(out, "%s", text);
		return;
	}
	while (rlctl_table_width(text, len) > max - 3)
		len--;
	rlctl_table_put(out, "%.*s...", (int)len, text);
}

void
rlctl_table_put_count(
    char out[RLCTL_TABLE_CELL], const json_t *from, const char *name)
{
	long long n = rlctl_table_number(from, name);

	if (!rlctl_table_known(from, name))
		rlctl_table_put(out, "-");
	else if (n < 100000)
		rlctl_table_put(out, "%lld", n);
	else if (n < 10000000)
		rlctl_table_put(out, "%lldk", n / 1000);
	else
		rlctl_table_put(out, "%lldM", n / 1000000);
}

int
rlctl_table_width(const char *text, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xC0) != 0x80;
	return n;
}

static void
widen(int widths[], char cell[][RLCTL_TABLE_CELL], int count)
{
	int c, w;

	for (c = 0; c < count; c++) {
		w = rlctl_table_width(cell[c], strlen(cell[c]));
		if (w > widths[c])
			widths[c] = w;
	}
}

static void
print_row(const struct rlctl_column *columns, int count,
    char cell[][RLCTL_TABLE_CELL], const int widths[], int gap)
{
	size_t len;
	int pad, c;

	for (c = 0; c < count; c++) {
		len = strlen(cell[c]);
		pad = widths[c] - rlctl_table_width(cell[c], len);
		if (columns[c].right)
			printf("%*s", pad, "");
		rlctl_print_name(cell[c], len);
		if (c == count - 1)
			break;
		printf("%*s", (columns[c].right ? 0 : pad) + gap, "");
	}
	putchar('\n');
}

/* The gaps shrink when the table is wide. */
void
rlctl_table_print(const struct rlctl_column *columns, int count,
    const json_t *rows, rlctl_table_row *make)
{
	char titles[RLCTL_TABLE_MAX][RLCTL_TABLE_CELL];
	char cell[RLCTL_TABLE_MAX][RLCTL_TABLE_CELL];
	int widths[RLCTL_TABLE_MAX] = {0}, total = 0, gap, c;
	const json_t *entry;
	size_t i;

	assert(count <= RLCTL_TABLE_MAX);
	for (c = 0; c < count; c++)
		rlctl_table_put(titles[c], "%s", columns[c].title);
	widen(widths, titles, count);
	json_array_foreach((json_t *)rows, i, entry)
	{
		make(cell, entry);
		widen(widths, cell, count);
	}
	for (c = 0; c < count; c++)
		total += widths[c];
	gap = total + 2 * (count - 1) <= RLCTL_TABLE_WIDTH ? 2 : 1;
	print_row(columns, count, titles, widths, gap);
	json_array_foreach((json_t *)rows, i, entry)
	{
		make(cell, entry);
		print_row(columns, count, cell, widths, gap);
	}
}
