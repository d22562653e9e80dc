/*
 * rlctl limiters: the limiters of the host, its error controls and the local
 * limiters of rules, a table for each kind.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"
#include "client-shim/rlctl_table.h"

/* Characters of a name in a table. */
#define NAME_WIDTH 24

/* The last one is left out for rules. */
enum limiter_column {
	LIMITER,
	RATE,
	BURST,
	STORED,
	WAIT,
	KEYS,
	GRANTED,
	PERMITS,
	WAITS,
	REFUSED,
	OVERLOADED,
	EVICTIONS,
	OFFERED,
	LIMITER_COLUMNS,
};

static const char *const limiter_counters[LIMITER_COLUMNS] = {
    [GRANTED] = "granted",
    [PERMITS] = "permits",
    [WAITS] = "waits",
    [REFUSED] = "refused",
    [OVERLOADED] = "overloaded",
    [EVICTIONS] = "evictions",
};

enum control_column {
	CONTROL,
	BURST_LEFT,
	DELAY,
	RANGE,
	HELD,
	CONTROL_KEYS,
	BEGINS,
	DELAYS,
	SUCCESSES,
	CONTROL_OVERLOADED,
	CONTROL_EVICTIONS,
	CONTROL_OFFERED,
	CONTROL_COLUMNS,
};

static const struct rlctl_column control_columns[CONTROL_COLUMNS] = {
    [CONTROL] = {"error control", 0},
    [BURST_LEFT] = {"burst", 1},
    [DELAY] = {"delay", 1},
    [RANGE] = {"within", 0},
    [HELD] = {"wait", 1},
    [CONTROL_KEYS] = {"keys", 1},
    [BEGINS] = {"begins", 1},
    [DELAYS] = {"delays", 1},
    [SUCCESSES] = {"successes", 1},
    [CONTROL_OVERLOADED] = {"overloaded", 1},
    [CONTROL_EVICTIONS] = {"evictions", 1},
    [CONTROL_OFFERED] = {"offered", 0},
};

static const char *const control_counters[CONTROL_COLUMNS] = {
    [BEGINS] = "begins",
    [DELAYS] = "delays",
    [SUCCESSES] = "successes",
    [CONTROL_OVERLOADED] = "overloaded",
    [CONTROL_EVICTIONS] = "evictions",
};

static double
real(const json_t *from, const char *name)
{
	return json_number_value(json_object_get(from, name));
}

static bool
has(const json_t *from, const char *name)
{
	return json_is_number(json_object_get(from, name));
}

static void
put_real(char out[RLCTL_TABLE_CELL], const json_t *from, const char *name,
    const char *unit)
{
	if (has(from, name))
		rlctl_table_put(out, "%.7g%s", real(from, name), unit);
	else
		rlctl_table_put(out, "-");
}

static void
put_stored(char out[RLCTL_TABLE_CELL], const json_t *entry)
{
	if (has(entry, "stored"))
		rlctl_table_put(out, "%.1f", real(entry, "stored"));
	else
		rlctl_table_put(out, "-");
}

/* Milliseconds in three digits or so. */
static void
put_span(char out[RLCTL_TABLE_CELL], double ms)
{
	if (ms < 999.5)
		rlctl_table_put(out, "%.3gms", ms);
	else if (ms < 100 * 1e3)
		rlctl_table_put(out, "%.3gs", ms / 1e3);
	else if (ms < 100 * 60e3)
		rlctl_table_put(out, "%.0fm", ms / 60e3);
	else if (ms < 100 * 3600e3)
		rlctl_table_put(out, "%.0fh", ms / 3600e3);
	else
		rlctl_table_put(out, "%.0fd", ms / 86400e3);
}

/* The wait of an entry, "-" when none is known and 0 when none is owed. */
static void
put_wait(char out[RLCTL_TABLE_CELL], const json_t *entry)
{
	const double us = real(entry, "wait_us");

	if (!has(entry, "wait_us"))
		rlctl_table_put(out, "-");
	else if (us > 0)
		put_span(out, us / 1e3);
	else
		rlctl_table_put(out, "0");
}

static void
put_share(char out[RLCTL_TABLE_CELL], const json_t *from, const char *part,
    const char *whole)
{
	char a[RLCTL_TABLE_CELL], b[RLCTL_TABLE_CELL];

	rlctl_table_put_count(a, from, part);
	rlctl_table_put_count(b, from, whole);
	rlctl_table_put(out, "%.24s/%.24s", a, b);
}

static void
put_offered(char out[RLCTL_TABLE_CELL], const json_t *entry)
{
	const json_t *offered = json_object_get(entry, "offered");

	rlctl_table_put(out, "%s",
	    json_is_true(offered)    ? "yes"
	    : json_is_false(offered) ? "no"
				     : "-");
}

/* The cells of all columns that have a counter. */
static void
put_counters(char cell[][RLCTL_TABLE_CELL], const json_t *entry,
    const char *const names[], int count)
{
	int c;

	for (c = 0; c < count; c++) {
		if (names[c] != NULL)
			rlctl_table_put_count(cell[c],
			    json_object_get(entry, "counters"), names[c]);
	}
}

static void
make_limiter(char cell[][RLCTL_TABLE_CELL], const json_t *entry)
{
	rlctl_table_put_short(
	    cell[LIMITER], rlctl_table_text(entry, "name"), NAME_WIDTH);
	put_real(cell[RATE], entry, "permits_per_second", "/s");
	put_real(cell[BURST], entry, "max_burst_seconds", "s");
	put_stored(cell[STORED], entry);
	put_wait(cell[WAIT], entry);
	put_share(cell[KEYS], entry, "keys", "max_keys");
	put_offered(cell[OFFERED], entry);
	put_counters(cell, entry, limiter_counters, LIMITER_COLUMNS);
}

static void
put_range(char out[RLCTL_TABLE_CELL], const json_t *entry)
{
	char least[RLCTL_TABLE_CELL], most[RLCTL_TABLE_CELL];

	put_span(least, real(entry, "min_delay_ms"));
	put_span(most, real(entry, "max_delay_ms"));
	rlctl_table_put(out, "%.24s..%.24s", least, most);
}

static void
make_control(char cell[][RLCTL_TABLE_CELL], const json_t *entry)
{
	rlctl_table_put_short(
	    cell[CONTROL], rlctl_table_text(entry, "name"), NAME_WIDTH);
	put_share(cell[BURST_LEFT], entry, "burst_left", "burst");
	if (has(entry, "delay_ms"))
		put_span(cell[DELAY], real(entry, "delay_ms"));
	else
		rlctl_table_put(cell[DELAY], "-");
	put_range(cell[RANGE], entry);
	put_wait(cell[HELD], entry);
	put_share(cell[CONTROL_KEYS], entry, "keys", "max_keys");
	put_offered(cell[CONTROL_OFFERED], entry);
	put_counters(cell, entry, control_counters, CONTROL_COLUMNS);
}

static void
print_limiters(const json_t *list, const char *title, int count)
{
	const struct rlctl_column columns[LIMITER_COLUMNS] = {
	    [LIMITER] = {title, 0},
	    [RATE] = {"rate", 1},
	    [BURST] = {"burst", 1},
	    [STORED] = {"stored", 1},
	    [WAIT] = {"wait", 1},
	    [KEYS] = {"keys", 1},
	    [GRANTED] = {"granted", 1},
	    [PERMITS] = {"permits", 1},
	    [WAITS] = {"waits", 1},
	    [REFUSED] = {"refused", 1},
	    [OVERLOADED] = {"overloaded", 1},
	    [EVICTIONS] = {"evictions", 1},
	    [OFFERED] = {"offered", 0},
	};

	rlctl_table_print(columns, count, list, make_limiter);
}

/* Of each limiter whose rate is another one than the configuration has. */
static void
print_set_rates(const json_t *limiters)
{
	const json_t *entry;
	size_t i;

	json_array_foreach((json_t *)limiters, i, entry)
	{
		if (!has(entry, "configured_permits_per_second") ||
		    real(entry, "permits_per_second") ==
			real(entry, "configured_permits_per_second"))
			continue;
		rlctl_print_field(entry, "name");
		printf(": the rate was set, the configuration has %.7g/s\n",
		    real(entry, "configured_permits_per_second"));
	}
}

static void
print(const struct json_t *document)
{
	const json_t *limiters = json_object_get(document, "limiters");
	const json_t *controls = json_object_get(document, "error_controls");
	const json_t *rules = json_object_get(document, "rules");
	const char *gap = "";

	if (json_array_size(limiters) > 0) {
		print_limiters(limiters, "limiter", LIMITER_COLUMNS);
		print_set_rates(limiters);
		gap = "\n";
	}
	if (json_array_size(controls) > 0) {
		fputs(gap, stdout);
		rlctl_table_print(
		    control_columns, CONTROL_COLUMNS, controls, make_control);
		gap = "\n";
	}
	if (json_array_size(rules) > 0) {
		fputs(gap, stdout);
		print_limiters(rules, "local of rule", LIMITER_COLUMNS - 1);
		gap = "\n";
	}
	if (*gap == '\0')
		puts("no limiter and no error control is configured");
}

int
rlctl_limiters(struct rlctl *ctl, int argc, char **argv)
{
	return rlctl_show(ctl, "limiters", argc, argv, print);
}
