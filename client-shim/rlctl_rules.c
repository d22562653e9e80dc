/*
 * rlctl rules: the rules in force as one table with what came of their checks,
 * and under it what each of them asks for.
 */
#include "client-shim/rlctl_rules.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"
#include "client-shim/rlctl_table.h"

/* Characters of a name in the table; below it names are whole. */
#define NAME_WIDTH 24

enum column {
	RULE,
	TENANT,
	MODE,
	OFFERED,
	CHECKS,
	ALLOWED,
	DENIED,
	WOULD_DENY,
	FAILED,
	LOCAL,
	CANCELLED,
	PERMITTED,
	REPORTS,
	COLUMNS,
};

static const struct rlctl_column columns[COLUMNS] = {
    [RULE] = {"rule", 0},
    [TENANT] = {"tenant", 0},
    [MODE] = {"mode", 0},
    [OFFERED] = {"offered", 0},
    [CHECKS] = {"checks", 1},
    [ALLOWED] = {"allowed", 1},
    [DENIED] = {"denied", 1},
    [WOULD_DENY] = {"would-deny", 1},
    [FAILED] = {"failed", 1},
    [LOCAL] = {"local", 1},
    [CANCELLED] = {"cancelled", 1},
    [PERMITTED] = {"permitted", 1},
    [REPORTS] = {"reports", 1},
};

static const char *const counters[COLUMNS] = {
    [CHECKS] = "checks",
    [ALLOWED] = "allowed",
    [DENIED] = "denied",
    [WOULD_DENY] = "would_deny",
    [FAILED] = "failed",
    [LOCAL] = "local",
    [CANCELLED] = "cancelled",
    [PERMITTED] = "permitted",
    [REPORTS] = "reports",
};

static void
make_row(char cell[][RLCTL_TABLE_CELL], const json_t *rule)
{
	const json_t *offered = json_object_get(rule, "offered");
	int c;

	rlctl_table_put_short(
	    cell[RULE], rlctl_table_text(rule, "name"), NAME_WIDTH);
	rlctl_table_put_short(
	    cell[TENANT], rlctl_table_text(rule, "tenant"), NAME_WIDTH);
	rlctl_table_put_short(
	    cell[MODE], rlctl_table_text(rule, "mode"), NAME_WIDTH);
	rlctl_table_put(cell[OFFERED], "%s",
	    json_is_true(offered)    ? "yes"
	    : json_is_false(offered) ? "no"
				     : "-");
	for (c = CHECKS; c < COLUMNS; c++)
		rlctl_table_put_count(
		    cell[c], json_object_get(rule, "counters"), counters[c]);
}

void
rlctl_rules_failure(const json_t *rule)
{
	const json_t *local =
	    json_object_get(json_object_get(rule, "on_failure"), "local");

	if (local == NULL)
		rlctl_print_field(rule, "on_failure");
	else
		printf("local, %.15g permits per second and bursts of %.15g s",
		    json_number_value(
			json_object_get(local, "permits_per_second")),
		    json_number_value(
			json_object_get(local, "max_burst_seconds")));
}

void
rlctl_rules_resource(const json_t *resource)
{
	fputs("bucket ", stdout);
	rlctl_print_field(resource, "bucket");
	printf(": %lld of %lld tokens in %lld ms",
	    rlctl_table_number(resource, "tokens"),
	    rlctl_table_number(resource, "limit"),
	    rlctl_table_number(resource, "window_ms"));
}

void
rlctl_rules_guard(const json_t *guard)
{
	fputs("tracker ", stdout);
	rlctl_print_field(guard, "tracker");
	printf(": below %lld ms", rlctl_table_number(guard, "below_ms"));
}

/* "checkout: on failure open", and its parts indented. */
static void
print_rule(const json_t *rule)
{
	const json_t *part;
	size_t i;

	rlctl_print_field(rule, "name");
	fputs(": on failure ", stdout);
	rlctl_rules_failure(rule);
	if (*rlctl_table_text(rule, "label") != '\0') {
		fputs(", label ", stdout);
		rlctl_print_field(rule, "label");
	}
	putchar('\n');
	json_array_foreach(json_object_get(rule, "resources"), i, part)
	{
		fputs("  ", stdout);
		rlctl_rules_resource(part);
		putchar('\n');
	}
	json_array_foreach(json_object_get(rule, "guards"), i, part)
	{
		fputs("  ", stdout);
		rlctl_rules_guard(part);
		putchar('\n');
	}
}

static void
print(const struct json_t *document)
{
	const json_t *rules = json_object_get(document, "rules"), *rule;
	size_t i;

	if (json_array_size(rules) == 0) {
		puts("no rule is configured");
		return;
	}
	rlctl_table_print(columns, COLUMNS, rules, make_row);
	putchar('\n');
	json_array_foreach((json_t *)rules, i, rule) print_rule(rule);
}

int
rlctl_rules(struct rlctl *ctl, int argc, char **argv)
{
	return rlctl_show(ctl, "rules", argc, argv, print);
}
