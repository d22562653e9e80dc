/*
 * rlctl servers: the servers of all tenants as one table, a sentence on each
 * that is not well, and what is known of each tenant's DNS and clock.
 */
#include "client-shim/rlctl_servers.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/rlctl.h"
#include "client-shim/rlctl_table.h"

/* Breaks lines between words; at is where the line stands, then, and what
 * follows is indented. */
static void
print_words(const char *text, int at)
{
	size_t len;

	while (*text != '\0') {
		len = strcspn(text, " ");
		if (at + 1 + rlctl_table_width(text, len) >
		    RLCTL_SERVERS_WORDS) {
			printf("\n       ");
			at = 7;
		}
		putchar(' ');
		rlctl_print_name(text, len);
		at += 1 + rlctl_table_width(text, len);
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static int
print_label(const char *text)
{
	rlctl_print_name(text, strlen(text));
	return rlctl_table_width(text, strlen(text));
}

static int
one_of(const char *code, const char *const *list)
{
	for (; *list != NULL; list++) {
		if (strcmp(code, *list) == 0)
			return 1;
	}
	return 0;
}

static const char *
tenant_code(const json_t *tenants, const char *name)
{
	const json_t *tenant;
	size_t i;

	json_array_foreach((json_t *)tenants, i, tenant)
	{
		if (strcmp(rlctl_table_text(tenant, "name"), name) == 0)
			return rlctl_table_text(tenant, "diagnosis");
	}
	return "-";
}

/* What the tenant's own sentence says of all of them is said there. */
static int
needs_words(const json_t *server, const json_t *tenants)
{
	static const char *const plain[] = {
	    "ok", "unasked", "waiting", "-", NULL};
	static const char *const common[] = {"never-answered", "silent", "slow",
	    "clock-off", "refused", "unreachable", NULL};
	const char *code = rlctl_table_text(server, "diagnosis");
	const char *of_all =
	    tenant_code(tenants, rlctl_table_text(server, "tenant"));

	if (strcmp(of_all, "clock-stepped") == 0)
		of_all = "silent";
	return !one_of(code, plain) &&
	       !(one_of(code, common) && strcmp(code, of_all) == 0);
}

static void
print_server_words(const json_t *server, const json_t *tenants)
{
	int at;

	if (!needs_words(server, tenants))
		return;
	at = print_label(rlctl_table_text(server, "tenant")) + 1;
	putchar(' ');
	at += print_label(rlctl_table_text(server, "server_id")) + 1;
	putchar(':');
	print_words(rlctl_table_text(server, "diagnosis_text"), at);
}

/* The tenant's sentence has the error, where that explains anything. */
static void
print_dns(const json_t *tenant)
{
	const char *error = rlctl_table_text(tenant, "dns_error");
	char since[RLCTL_TABLE_CELL];

	if (rlctl_table_known(tenant, "dns_failing_ms") &&
	    strstr(rlctl_table_text(tenant, "diagnosis_text"), error) != NULL) {
		puts("  dns: failing, see above");
	} else if (rlctl_table_known(tenant, "dns_failing_ms")) {
		rlctl_servers_span(since, tenant, "dns_failing_ms");
		print_words(error, printf("  dns: failing for %s,", since));
	} else {
		printf("  dns:");
		print_words(rlctl_table_text(tenant, "discovery"), 6);
	}
}

static void
print_clock(const json_t *tenant)
{
	const json_t *clock = json_object_get(tenant, "clock");
	const json_t *sync = json_object_get(clock, "synchronised");
	char stepped[RLCTL_TABLE_CELL], offset[RLCTL_TABLE_CELL];
	char line[3 * RLCTL_TABLE_CELL];

	rlctl_servers_apart(stepped, clock, "stepped_ms");
	rlctl_servers_apart(offset, clock, "offset_ms");
	snprintf(line, sizeof(line),
	    "%s; set since the last answer: %s; servers ahead by: %s%s",
	    json_is_true(sync)    ? "synchronised, says the kernel"
	    : json_is_false(sync) ? "not synchronised, says the kernel"
				  : "the kernel does not say",
	    rlctl_table_number(clock, "stepped_ms") != 0 ? stepped
	    : rlctl_table_known(clock, "stepped_ms")     ? "no"
							 : "-",
	    offset,
	    rlctl_table_known(clock, "offset_ms") ? " at their last answer"
						  : "");
	print_words(line, printf("  clock:"));
}

/* Datagrams that were ignored, by class, when there were any. */
static void
print_ignored(const json_t *tenant)
{
	const char *name, *gap = "  ignored:";
	json_t *value;

	json_object_foreach((json_t *)tenant, name, value)
	{
		if (strncmp(name, "invalid_", 8) != 0 ||
		    json_integer_value(value) == 0)
			continue;
		printf("%s ", gap);
		rlctl_print_name(name + 8, strlen(name + 8));
		printf(" %" JSON_INTEGER_FORMAT, json_integer_value(value));
		gap = ",";
	}
	if (*gap == ',')
		putchar('\n');
}

static void
print_tenant(const json_t *tenant)
{
	int at = print_label(rlctl_table_text(tenant, "name")) + 2;

	fputs(": ", stdout);
	at += print_label(rlctl_table_text(tenant, "diagnosis")) + 1;
	putchar(',');
	print_words(rlctl_table_text(tenant, "diagnosis_text"), at);
	print_dns(tenant);
	print_clock(tenant);
	print_ignored(tenant);
}

static void
print(const struct json_t *document)
{
	const json_t *servers = json_object_get(document, "servers");
	const json_t *tenants = json_object_get(document, "tenants"), *item;
	size_t i;

	rlctl_servers_table(servers);
	putchar('\n');
	json_array_foreach((json_t *)servers, i, item)
	    print_server_words(item, tenants);
	json_array_foreach((json_t *)tenants, i, item) print_tenant(item);
}

int
rlctl_servers(struct rlctl *ctl, int argc, char **argv)
{
	return rlctl_show(ctl, "servers", argc, argv, print);
}
