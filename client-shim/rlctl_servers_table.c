/*
 * The table of rlctl servers. Cells are JSON strings until they are printed,
 * and are printed as names are: whatever an agent says, no control character
 * reaches the terminal.
 */
#include "client-shim/rlctl_servers.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"

enum column {
	TENANT,
	RANK,
	SERVER,
	ADDRESS,
	STATE,
	SENT,
	ANSWERED,
	MISSED,
	RTT,
	LAST,
	REFUSED,
	CLOCK,
	COLUMNS,
};

static const struct {
	const char *title;
	int right; /* aligned */
} columns[COLUMNS] = {
    [TENANT] = {"tenant", 0},
    [RANK] = {"#", 1},
    [SERVER] = {"server", 1},
    [ADDRESS] = {"address", 0},
    [STATE] = {"state", 0},
    [SENT] = {"sent", 1},
    [ANSWERED] = {"answ", 1},
    [MISSED] = {"miss", 1},
    [RTT] = {"p50/p99 ms", 1},
    [LAST] = {"last", 1},
    [REFUSED] = {"refd", 1},
    [CLOCK] = {"clock", 1},
};

const char *
rlctl_servers_text(const json_t *from, const char *name)
{
	const char *text = json_string_value(json_object_get(from, name));

	return text != NULL ? text : "-";
}

long long
rlctl_servers_number(const json_t *from, const char *name)
{
	return json_integer_value(json_object_get(from, name));
}

int
rlctl_servers_known(const json_t *from, const char *name)
{
	return json_is_integer(json_object_get(from, name));
}

/* Exact while it is short. */
static json_t *
count_cell(const json_t *from, const char *name)
{
	json_int_t n = rlctl_servers_number(from, name);

	if (!rlctl_servers_known(from, name))
		return json_string("-");
	if (n < 100000)
		return json_sprintf("%" JSON_INTEGER_FORMAT, n);
	if (n < 10000000)
		return json_sprintf("%" JSON_INTEGER_FORMAT "k", n / 1000);
	return json_sprintf("%" JSON_INTEGER_FORMAT "M", n / 1000000);
}

json_t *
rlctl_servers_span(const json_t *from, const char *name)
{
	json_int_t s = rlctl_servers_number(from, name) / 1000;

	if (!rlctl_servers_known(from, name))
		return json_string("-");
	if (s < 10)
		return json_sprintf(
		    "%.1fs", (double)rlctl_servers_number(from, name) / 1e3);
	if (s < 100)
		return json_sprintf("%ds", (int)s);
	if (s < 100 * 60)
		return json_sprintf("%dm", (int)(s / 60));
	if (s < 100 * 3600)
		return json_sprintf("%dh", (int)(s / 3600));
	return json_sprintf("%" JSON_INTEGER_FORMAT "d", s / 86400);
}

static void
millis(char out[16], json_int_t us)
{
	const double ms = (double)us / 1e3;

	snprintf(out, 16, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

static json_t *
rtt_cell(const json_t *server)
{
	char p50[16], p99[16];

	if (!rlctl_servers_known(server, "rtt_p50_us"))
		return json_string("-");
	millis(p50, rlctl_servers_number(server, "rtt_p50_us"));
	millis(p99, rlctl_servers_number(server, "rtt_p99_us"));
	return json_sprintf("%s/%s", p50, p99);
}

json_t *
rlctl_servers_apart(const json_t *from, const char *name)
{
	double s = (double)rlctl_servers_number(from, name) / 1e3;

	if (!rlctl_servers_known(from, name))
		return json_string("-");
	return json_sprintf(
	    s > -100 && s < 100 ? "%+.1fs" : "%+.0fs", s == 0 ? 0 : s);
}

static json_t *
address_cell(const json_t *server)
{
	const json_t *all = json_object_get(server, "addresses");
	const char *first = json_string_value(json_array_get(all, 0));
	size_t n = json_array_size(all);

	if (first == NULL)
		return json_string("-");
	return n == 1 ? json_string(first)
		      : json_sprintf("%s +%zu", first, n - 1);
}

static json_t *
row_of(const json_t *server)
{
	json_t *row = json_array();
	int suspected = json_is_true(json_object_get(server, "suspected"));

	json_array_append_new(
	    row, json_string(rlctl_servers_text(server, "tenant")));
	json_array_append_new(row, count_cell(server, "rank"));
	json_array_append_new(
	    row, json_string(rlctl_servers_text(server, "server_id")));
	json_array_append_new(row, address_cell(server));
	json_array_append_new(
	    row, json_sprintf("%s%s", rlctl_servers_text(server, "diagnosis"),
		     suspected ? "*" : ""));
	json_array_append_new(row, count_cell(server, "sent"));
	json_array_append_new(row, count_cell(server, "answered"));
	json_array_append_new(row, count_cell(server, "missed_rounds"));
	json_array_append_new(row, rtt_cell(server));
	json_array_append_new(
	    row, rlctl_servers_span(server, "last_answer_ms"));
	json_array_append_new(row, count_cell(server, "refused"));
	json_array_append_new(row, rlctl_servers_apart(server, "clock_ms"));
	return row;
}

int
rlctl_servers_width(const char *text, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xC0) != 0x80;
	return n;
}

static void
print_row(const json_t *row, const int widths[COLUMNS], int gap)
{
	const char *text;
	int pad, c;

	for (c = 0; c < COLUMNS; c++) {
		text = json_string_value(json_array_get(row, (size_t)c));
		if (text == NULL)
			text = "-";
		pad = widths[c] - rlctl_servers_width(text, strlen(text));
		if (columns[c].right)
			printf("%*s", pad, "");
		rlctl_print_name(text, strlen(text));
		if (c == COLUMNS - 1)
			break;
		printf("%*s", (columns[c].right ? 0 : pad) + gap, "");
	}
	putchar('\n');
}

/* With a title; the gaps shrink when the table is wide. */
static void
print_table(const json_t *rows)
{
	int widths[COLUMNS], total = 0, w, c;
	const json_t *row;
	const char *text;
	size_t i;

	for (c = 0; c < COLUMNS; c++) {
		widths[c] = 0;
		json_array_foreach((json_t *)rows, i, row)
		{
			text =
			    json_string_value(json_array_get(row, (size_t)c));
			w = text != NULL
				? rlctl_servers_width(text, strlen(text))
				: 1;
			if (w > widths[c])
				widths[c] = w;
		}
		total += widths[c];
	}
	c = total + 2 * (COLUMNS - 1) <= RLCTL_SERVERS_WIDTH ? 2 : 1;
	json_array_foreach((json_t *)rows, i, row) print_row(row, widths, c);
}

static json_t *
titles(void)
{
	json_t *row = json_array();

	for (int c = 0; c < COLUMNS; c++)
		json_array_append_new(row, json_string(columns[c].title));
	return row;
}

void
rlctl_servers_table(const json_t *servers)
{
	json_t *rows = json_array();
	const json_t *server;
	int suspected = 0;
	size_t i;

	json_array_append_new(rows, titles());
	json_array_foreach((json_t *)servers, i, server)
	{
		json_array_append_new(rows, row_of(server));
		suspected |= json_is_true(json_object_get(server, "suspected"));
	}
	if (json_array_size(servers) > 0)
		print_table(rows);
	else
		puts("no server is known");
	if (suspected)
		puts("* suspected: not waited for");
	json_decref(rows);
}
