/*
 * Where a tenant's servers are and how long to wait for them: DNS settings,
 * static servers.
 */
#include "daemon/config_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/address.h"

#define DNS_NAME_MAX  253
#define DNS_LABEL_MAX 63
#define DNS_PORT      53
#define SHOWN_MAX     64  /* bytes of a wrong value in its message */
#define RUN_MAX       24  /* letters and digits in a row that are shown */
#define ADDRESS_MAX   128 /* bytes of an address's text */
#define SERVERS_MAX   (MEMBERS_MAX * MEMBERS_MAX_ADDRS)
#define U64_DIGITS    20
#define DAY_MS        86400000
#define MINUTE_MS     60000
#define RETRY_MAX_MS  30000 /* where the DNS back-off ends */

/* A key, or a part of one, that was pasted into the wrong place. */
static bool
like_a_secret(const char *text)
{
	size_t run = 0;

	for (; *text != '\0' && run <= RUN_MAX; text++)
		run = strchr("abcdefghijklmnopqrstuvwxyz"
			     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
			  *text) != NULL
			  ? run + 1
			  : 0;
	return run > RUN_MAX;
}

/* Shows the start of what is there instead: enough to find it by. */
static int
not_a(struct walk *w, const char *what, const char *text)
{
	if (like_a_secret(text))
		return walk_fail(
		    w, "must be %s, not %zu bytes of text", what, strlen(text));
	return walk_fail(w, "must be %s, not \"%.*s%s\"", what, SHOWN_MAX, text,
	    strlen(text) > SHOWN_MAX ? "..." : "");
}

static int
parse_dns_name(struct walk *w, json_t *json, void *where)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);
	size_t label = 0;

	if (text == NULL)
		return walk_fail(w, "must be a string");
	if (len > 0 && text[len - 1] == '.')
		len--; /* the root, which every name here ends with */
	for (size_t i = 0; i < len; i++) {
		label = text[i] == '.' ? 0 : label + 1;
		if (strchr("abcdefghijklmnopqrstuvwxyz"
			   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.",
			text[i]) == NULL ||
		    (label == 0 && (i == 0 || text[i - 1] == '.')) ||
		    label > DNS_LABEL_MAX)
			return not_a(w, "a DNS name", text);
	}
	if (label == 0 || len > DNS_NAME_MAX)
		return not_a(w, "a DNS name", text);
	return walk_text(w, json, 1, DNS_NAME_MAX + 1, where);
}

static int
parse_nameserver(struct walk *w, json_t *json, void *row)
{
	const char *text = json_string_value(json);

	if (text == NULL)
		return walk_fail(w, "must be a string");
	if (address_parse(text, DNS_PORT, row))
		return 0;
	return not_a(w, "ADDRESS, ADDRESS:PORT or [V6]:PORT", text);
}

/* where is the struct config_dns. */
static int
parse_nameservers(struct walk *w, json_t *json, void *where)
{
	struct config_dns *dns = where;
	size_t count, done = 0;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, CONFIG_MAX_ADDRS, &count);
	if (rc == 0)
		rc = walk_items(w, json, dns->nameservers,
		    sizeof(*dns->nameservers), &done, parse_nameserver);
	dns->nameserver_count = (uint32_t)done;
	return rc;
}

static const struct walk_key dns_keys[] = {
    {.name = "name",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_dns, name),
	.null_ok = true,
	.func = parse_dns_name},
    {.name = "refresh_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct config_dns, refresh_ms),
	.min = 1000,
	.max = DAY_MS},
    {.name = "forced_min_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct config_dns, forced_min_ms),
	.min = 1,
	.max = RETRY_MAX_MS},
    {.name = "jitter_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct config_dns, jitter_ms),
	.min = 0,
	.max = MINUTE_MS},
    {.name = "nameservers",
	.kind = WALK_FUNC,
	.offset = 0,
	.func = parse_nameservers},
    {.name = "timeout_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct config_dns, timeout_ms),
	.min = 1,
	.max = MINUTE_MS},
    {.name = "require_ad",
	.kind = WALK_BOOL,
	.offset = offsetof(struct config_dns, require_ad)},
    {.name = NULL},
};

int
config_parse_dns(struct walk *w, json_t *json, void *where)
{
	return walk_object(w, json, dns_keys, where);
}

/* One entry of "servers"; entries with the same id become one target. */
struct server {
	char *id;
	char *address;
};

static const struct walk_key server_keys[] = {
    {.name = "id",
	.kind = WALK_TEXT,
	.offset = offsetof(struct server, id),
	.required = true,
	.min = 1,
	.max = U64_DIGITS},
    {.name = "address",
	.kind = WALK_TEXT,
	.offset = offsetof(struct server, address),
	.required = true,
	.min = 1,
	.max = ADDRESS_MAX},
    {.name = NULL},
};

static bool
parse_u64(const char *text, uint64_t *out)
{
	char *end;

	if (text[strspn(text, "0123456789")] != '\0' || text[0] == '\0' ||
	    (text[0] == '0' && text[1] != '\0'))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0;
}

static int
add_server(struct walk *w, struct config_tenant *t, uint64_t id,
    const struct endpoint *address)
{
	struct members_target *target = t->servers;

	while (target < t->servers + t->server_count && target->server_id != id)
		target++;
	if (target == t->servers + t->server_count) {
		if (t->server_count == MEMBERS_MAX)
			return walk_fail_at(w, "id", "is one server too many");
		*target = (struct members_target){.server_id = id};
		t->server_count++;
	}
	if (target->addr_count == MEMBERS_MAX_ADDRS)
		return walk_fail_at(
		    w, "address", "is one too many for its server");
	for (uint32_t i = 0; i < target->addr_count; i++) {
		if (endpoint_equal(&target->addrs[i], address))
			return walk_fail_at(w, "address", "is given twice");
	}
	target->addrs[target->addr_count++] = *address;
	return 0;
}

static int
check_server(
    struct walk *w, const struct server *server, struct config_tenant *t)
{
	struct endpoint address = {0};
	uint64_t id;

	if (!parse_u64(server->id, &id))
		return walk_fail_at(w, "id",
		    "must be a string of decimal digits that fits 64 bits");
	if (!address_parse(server->address, 0, &address)) {
		walk_enter(w, "address");
		return not_a(w, "ADDRESS:PORT or [V6]:PORT", server->address);
	}
	return add_server(w, t, id, &address);
}

int
config_parse_servers(struct walk *w, json_t *json, struct config_tenant *tenant)
{
	struct server server;
	size_t count, i, mark;
	json_t *value;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, SERVERS_MAX, &count);
	if (rc != 0 || count == 0)
		return rc;
	tenant->servers = calloc(count < MEMBERS_MAX ? count : MEMBERS_MAX,
	    sizeof(*tenant->servers));
	if (tenant->servers == NULL)
		return walk_nomem(w);
	json_array_foreach(json, i, value)
	{
		server = (struct server){NULL, NULL};
		mark = walk_enter_item(w, i);
		rc = walk_object(w, value, server_keys, &server);
		if (rc == 0)
			rc = check_server(w, &server, tenant);
		free(server.id);
		free(server.address);
		if (rc != 0)
			return rc;
		walk_leave(w, mark);
	}
	return 0;
}
