/*
 * The table of rlctl servers, and its fields of time as text.
 */
#include "client-shim/rlctl_servers.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "client-shim/rlctl_table.h"

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

static const struct rlctl_column columns[COLUMNS] = {
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

static bool
is_suspected(const json_t *server)
{
	return json_is_true(json_object_get(server, "suspected"));
}

void
rlctl_servers_span(
    char out[RLCTL_TABLE_CELL], const json_t *from, const char *name)
{
	long long ms = rlctl_table_number(from, name), s = ms / 1000;

	if (!rlctl_table_known(from, name))
		rlctl_table_put(out, "-");
	else if (s < 10)
		rlctl_table_put(out, "%.1fs", (double)ms / 1e3);
	else if (s < 100)
		rlctl_table_put(out, "%llds", s);
	else if (s < 100 * 60)
		rlctl_table_put(out, "%lldm", s / 60);
	else if (s < 100 * 3600)
		rlctl_table_put(out, "%lldh", s / 3600);
	else
		rlctl_table_put(out, "%lldd", s / 86400);
}

static void
millis(char out[16], long long us)
{
	const double ms = (double)us / 1e3;

	snprintf(out, 16, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

static void
put_rtt(char out[RLCTL_TABLE_CELL], const json_t *server)
{
	char p50[16], p99[16];

	millis(p50, rlctl_table_number(server, "rtt_p50_us"));
	millis(p99, rlctl_table_number(server, "rtt_p99_us"));
	if (rlctl_table_known(server, "rtt_p50_us"))
		rlctl_table_put(out, "%s/%s", p50, p99);
	else
		rlctl_table_put(out, "-");
}

void
rlctl_servers_apart(
    char out[RLCTL_TABLE_CELL], const json_t *from, const char *name)
{
	double s = (double)rlctl_table_number(from, name) / 1e3;

	if (s > -0.05 && s < 0) /* or it would be "-0.0s" */
		s = 0;

	if (!rlctl_table_known(from, name))
		rlctl_table_put(out, "-");
	else
		rlctl_table_put(
		    out, s > -100 && s < 100 ? "%+.1fs" : "%+.0fs", s);
}

static void
put_address(char out[RLCTL_TABLE_CELL], const json_t *server)
{
	const json_t *all = json_object_get(server, "addresses");
	const char *first = json_string_value(json_array_get(all, 0));
	size_t n = json_array_size(all);

	if (first == NULL)
		rlctl_table_put(out, "-");
	else if (n == 1)
		rlctl_table_put(out, "%s", first);
	else
		rlctl_table_put(out, "%s +%zu", first, n - 1);
}

static void
make_row(char cell[][RLCTL_TABLE_CELL], const json_t *server)
{
	rlctl_table_put(cell[TENANT], "%s", rlctl_table_text(server, "tenant"));
	rlctl_table_put_count(cell[RANK], server, "rank");
	rlctl_table_put(
	    cell[SERVER], "%s", rlctl_table_text(server, "server_id"));
	put_address(cell[ADDRESS], server);
	rlctl_table_put(cell[STATE], "%s%s",
	    rlctl_table_text(server, "diagnosis"),
	    is_suspected(server) ? "*" : "");
	rlctl_table_put_count(cell[SENT], server, "sent");
	rlctl_table_put_count(cell[ANSWERED], server, "answered");
	rlctl_table_put_count(cell[MISSED], server, "missed_rounds");
	put_rtt(cell[RTT], server);
	rlctl_servers_span(cell[LAST], server, "last_answer_ms");
	rlctl_table_put_count(cell[REFUSED], server, "refused");
	rlctl_servers_apart(cell[CLOCK], server, "clock_ms");
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
	rlctl_table_print(columns, COLUMNS, servers, make_row);
	json_array_foreach((json_t *)servers, i, server)
	{
		if (is_suspected(server))
			suspected = true;
	}
	if (suspected)
		puts("* suspected: not waited for");
}
