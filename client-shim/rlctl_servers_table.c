/*
 * The table of rlctl servers. Each row is made twice, for the widths of the
 * columns and then to be printed, as names are: whatever an agent says, no
 * control character reaches the terminal.
 */
#include "client-shim/rlctl_servers.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
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
    [ANSWERED] = {"answered", 1},
    [MISSED] = {"missed", 1},
    [RTT] = {"p50/p99 ms", 1},
    [LAST] = {"last", 1},
    [REFUSED] = {"refused", 1},
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

static bool
is_suspected(const json_t *server)
{
	return json_is_true(json_object_get(server, "suspected"));
}

/* What is longer than any that an agent has ends in "...". */
static void put(char out[RLCTL_SERVERS_CELL], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
put(char out[RLCTL_SERVERS_CELL], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, RLCTL_SERVERS_CELL, fmt, ap);
	va_end(ap);
	if (n >= RLCTL_SERVERS_CELL)
		memcpy(out + RLCTL_SERVERS_CELL - 4, "...", 4);
}

/* Exact while it is short. */
static void
put_count(char out[RLCTL_SERVERS_CELL], const json_t *from, const char *name)
{
	long long n = rlctl_servers_number(from, name);

	if (!rlctl_servers_known(from, name))
		put(out, "-");
	else if (n < 100000)
		put(out, "%lld", n);
	else if (n < 10000000)
		put(out, "%lldk", n / 1000);
	else
		put(out, "%lldM", n / 1000000);
}

void
rlctl_servers_span(
    char out[RLCTL_SERVERS_CELL], const json_t *from, const char *name)
{
	long long ms = rlctl_servers_number(from, name), s = ms / 1000;

	if (!rlctl_servers_known(from, name))
		put(out, "-");
	else if (s < 10)
		put(out, "%.1fs", (double)ms / 1e3);
	else if (s < 100)
		put(out, "%llds", s);
	else if (s < 100 * 60)
		put(out, "%lldm", s / 60);
	else if (s < 100 * 3600)
		put(out, "%lldh", s / 3600);
	else
		put(out, "%lldd", s / 86400);
}

static void
millis(char out[16], long long us)
{
	const double ms = (double)us / 1e3;

	snprintf(out, 16, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

static void
put_rtt(char out[RLCTL_SERVERS_CELL], const json_t *server)
{
	char p50[16], p99[16];

	millis(p50, rlctl_servers_number(server, "rtt_p50_us"));
	millis(p99, rlctl_servers_number(server, "rtt_p99_us"));
	if (rlctl_servers_known(server, "rtt_p50_us"))
		put(out, "%s/%s", p50, p99);
	else
		put(out, "-");
}

void
rlctl_servers_apart(
    char out[RLCTL_SERVERS_CELL], const json_t *from, const char *name)
{
	double s = (double)rlctl_servers_number(from, name) / 1e3;

	if (s > -0.05 && s < 0) /* or it would be "-0.0s" */
		s = 0;

	if (!rlctl_servers_known(from, name))
		put(out, "-");
	else
		put(out, s > -100 && s < 100 ? "%+.1fs" : "%+.0fs", s);
}

static void
put_address(char out[RLCTL_SERVERS_CELL], const json_t *server)
{
	const json_t *all = json_object_get(server, "addresses");
	const char *first = json_string_value(json_array_get(all, 0));
	size_t n = json_array_size(all);

	if (first == NULL)
		put(out, "-");
	else if (n == 1)
		put(out, "%s", first);
	else
		put(out, "%s +%zu", first, n - 1);
}

static void
make_row(
    char cell[COLUMNS][RLCTL_SERVERS_CELL], const json_t *servers, size_t row)
{
	const json_t *server = json_array_get(servers, row - 1);

	for (int c = 0; c < COLUMNS && row == 0; c++)
		put(cell[c], "%s", columns[c].title);
	if (row == 0)
		return;
	put(cell[TENANT], "%s", rlctl_servers_text(server, "tenant"));
	put_count(cell[RANK], server, "rank");
	put(cell[SERVER], "%s", rlctl_servers_text(server, "server_id"));
	put_address(cell[ADDRESS], server);
	put(cell[STATE], "%s%s", rlctl_servers_text(server, "diagnosis"),
	    is_suspected(server) ? "*" : "");
	put_count(cell[SENT], server, "sent");
	put_count(cell[ANSWERED], server, "answered");
	put_count(cell[MISSED], server, "missed_rounds");
	put_rtt(cell[RTT], server);
	rlctl_servers_span(cell[LAST], server, "last_answer_ms");
	put_count(cell[REFUSED], server, "refused");
	rlctl_servers_apart(cell[CLOCK], server, "clock_ms");
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
widen(int widths[COLUMNS], char cell[COLUMNS][RLCTL_SERVERS_CELL])
{
	int c, w;

	for (c = 0; c < COLUMNS; c++) {
		w = rlctl_servers_width(cell[c], strlen(cell[c]));
		if (w > widths[c])
			widths[c] = w;
	}
}

static void
print_row(
    char cell[COLUMNS][RLCTL_SERVERS_CELL], const int widths[COLUMNS], int gap)
{
	size_t len;
	int pad, c;

	for (c = 0; c < COLUMNS; c++) {
		len = strlen(cell[c]);
		pad = widths[c] - rlctl_servers_width(cell[c], len);
		if (columns[c].right)
			printf("%*s", pad, "");
		rlctl_print_name(cell[c], len);
		if (c == COLUMNS - 1)
			break;
		printf("%*s", (columns[c].right ? 0 : pad) + gap, "");
	}
	putchar('\n');
}

/* Row 0 has the titles. The gaps shrink when the table is wide. */
static void
print_table(const json_t *servers)
{
	const size_t rows = 1 + json_array_size(servers);
	char cell[COLUMNS][RLCTL_SERVERS_CELL];
	int widths[COLUMNS] = {0}, total = 0, gap, c;
	size_t i;

	for (i = 0; i < rows; i++) {
		make_row(cell, servers, i);
		widen(widths, cell);
	}
	for (c = 0; c < COLUMNS; c++)
		total += widths[c];
	gap = total + 2 * (COLUMNS - 1) <= RLCTL_SERVERS_WIDTH ? 2 : 1;
	for (i = 0; i < rows; i++) {
		make_row(cell, servers, i);
		print_row(cell, widths, gap);
	}
}

void
rlctl_servers_table(const json_t *servers)
{
	bool suspected = false;
	const json_t *server;
	size_t i;

	if (json_array_size(servers) == 0) {
		puts("no server is known");
		return;
	}
	print_table(servers);
	json_array_foreach((json_t *)servers, i, server)
	{
		if (is_suspected(server))
			suspected = true;
	}
	if (suspected)
		puts("* suspected: not waited for");
}
