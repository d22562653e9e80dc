/*
 * Gateways: where they listen, which is a file of their own or the loopback,
 * and what they offer. The gateway asks nobody who he is, so an address that
 * other hosts reach is refused.
 */
#include "daemon/config_parse.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/io/address.h"
#include "daemon/template.h"
#include "proto/err.h"

#define UNIX_PREFIX     "unix:"
#define DEFAULT_MODE    0660
#define NO_MODE         ((mode_t)-1)
#define HEADER_MAX      64
#define LISTEN_IS       "must be unix:PATH, 127.0.0.1:PORT or [::1]:PORT"
#define DENY_STATUS     429
#define DENY_MIN        400
#define DENY_MAX        599
#define MAX_CONNECTIONS 256

static bool
is_loopback(const struct endpoint *e)
{
	static const uint8_t one[16] = {[15] = 1};

	return e->family == 4 ? e->addr[0] == 127
			      : memcmp(e->addr, one, sizeof(one)) == 0;
}

static int
parse_path(struct walk *w, const char *path, char **out)
{
	static const struct walk_key key = {.kind = WALK_PATH};
	json_t *json = json_string(path);
	int rc = json == NULL ? walk_nomem(w) : walk_value(w, json, &key, out);

	json_decref(json);
	return rc;
}

/* where is the struct config_gateway, here and below. */
static int
parse_listen(struct walk *w, json_t *json, void *where)
{
	struct config_gateway *g = where;
	const char *text = json_string_value(json);
	const size_t prefix = strlen(UNIX_PREFIX);
	char shown[ADDRESS_TEXT_MAX];

	if (text == NULL)
		return walk_fail(w, "must be a string");
	if (strncmp(text, UNIX_PREFIX, prefix) == 0)
		return parse_path(w, text + prefix, &g->address);
	/* As it is meant: no IPv4 address in the guise of an IPv6 one. */
	if (!address_parse(text, 0, &g->at) ||
	    (g->at.family == 4) == (text[0] == '['))
		return walk_fail(w, LISTEN_IS ", with a port from 1 to 65535");
	if (!is_loopback(&g->at))
		return walk_fail(w,
		    LISTEN_IS ": whoever reaches it may ask, so other hosts "
			      "must not");
	g->tcp = true;
	g->address = strdup(address_format(&g->at, shown));
	return g->address != NULL ? 0 : walk_nomem(w);
}

static int
parse_group(struct walk *w, json_t *json, void *where)
{
	struct config_gateway *g = where;

	return config_parse_group(w, json, &g->group, &g->gid);
}

/* A token of RFC 9110. */
static int
parse_header(struct walk *w, json_t *json, void *where)
{
	struct config_gateway *g = where;
	int rc = walk_text(w, json, 1, HEADER_MAX, &g->key_header);

	if (rc == 0 &&
	    strspn(g->key_header,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789!#$%&'*+-.^_`|~") != strlen(g->key_header))
		rc = walk_fail(w, "must be the name of a header");
	return rc;
}

static const struct walk_key gateway_keys[] = {
    {.name = "listen",
	.kind = WALK_FUNC,
	.required = true,
	.func = parse_listen},
    {.name = "mode",
	.kind = WALK_MODE,
	.offset = offsetof(struct config_gateway, mode)},
    {.name = "group", .kind = WALK_FUNC, .null_ok = true, .func = parse_group},
    {.name = "rules",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_gateway, rules),
	.func = config_parse_patterns},
    {.name = "deny_status",
	.kind = WALK_U32,
	.offset = offsetof(struct config_gateway, deny_status),
	.min = DENY_MIN,
	.max = DENY_MAX},
    {.name = "key_header",
	.kind = WALK_FUNC,
	.null_ok = true,
	.func = parse_header},
    {.name = "max_connections",
	.kind = WALK_U32,
	.offset = offsetof(struct config_gateway, max_connections),
	.min = 1,
	.max = CONFIG_MAX_CONNS},
    {.name = NULL},
};

/* Against all that is there before this one. */
static int
check_place(struct walk *w, const struct config_gateway *g)
{
	const struct config *c = w->config;
	int rc = 0;

	for (size_t i = 0; i < c->listener_count && rc == 0 && !g->tcp; i++)
		rc = config_check_path(w, g->address, c->listeners[i].path,
		    "listener ", c->listeners[i].name);
	if (rc == 0 && !g->tcp)
		rc = config_check_path(
		    w, g->address, c->control.path, "the control socket", "");
	for (const struct config_gateway *o = c->gateways; o < g && rc == 0;
	     o++) {
		if (o->tcp && g->tcp && endpoint_equal(&o->at, &g->at))
			rc = walk_fail(
			    w, "is the address of gateway %s, too", o->name);
		else if (!o->tcp && !g->tcp)
			rc = config_check_path(
			    w, g->address, o->address, "gateway ", o->name);
	}
	return rc;
}

/* Of the file, which TCP has none of. */
static int
check_mode(struct walk *w, struct config_gateway *g)
{
	if (g->tcp && g->mode != NO_MODE)
		return walk_fail_at(w, "mode", "only a Unix socket has one");
	if (g->tcp && g->group != NULL)
		return walk_fail_at(w, "group", "only a Unix socket has one");
	if (g->mode == NO_MODE)
		g->mode = DEFAULT_MODE;
	return 0;
}

static bool
names_user(const char *name)
{
	enum template_part part;
	const char *text;
	size_t len;

	do {
		part = template_next(&name, &text, &len);
	} while (part == TEMPLATE_TEXT || part == TEMPLATE_KEY ||
		 part == TEMPLATE_LISTENER);
	return part == TEMPLATE_UID || part == TEMPLATE_GID;
}

static bool
needs_user(const struct config *c, const struct config_rule *rule)
{
	for (size_t i = 0; i < rule->resource_count; i++)
		if (names_user(rule->resources[i].bucket))
			return true;
	for (size_t i = 0; i < rule->guard_count; i++)
		if (names_user(c->trackers[rule->guards[i].tracker].name))
			return true;
	return false;
}

/* One of the rules stands for all that TCP cannot decide. */
static int
warn_of_users(struct walk *w, const struct config_gateway *g)
{
	const struct config *c = w->config;
	size_t mark = walk_enter(w, "rules");
	int rc = 0;

	for (size_t i = 0; i < c->rule_count; i++) {
		const struct config_rule *rule = &c->rules[i];

		if (!config_allows(&g->rules, rule->name, strlen(rule->name)) ||
		    !needs_user(c, rule))
			continue;
		rc = walk_warn(w,
		    "rule %s needs {uid} or {gid}, which TCP does not tell: "
		    "its checks will fail",
		    rule->name);
		break;
	}
	walk_leave(w, mark);
	return rc;
}

static int
parse_gateway(struct walk *w, json_t *json, void *row)
{
	const struct config *c = w->config;
	struct config_gateway *g = row;
	int rc = config_default_patterns(w, &g->rules);
	size_t mark;

	g->mode = NO_MODE;
	g->gid = (gid_t)-1;
	g->deny_status = DENY_STATUS;
	g->max_connections = MAX_CONNECTIONS;
	if (rc == 0)
		rc = walk_object(w, json, gateway_keys, g);
	if (rc == 0)
		rc = check_mode(w, g);
	if (rc != 0)
		return rc;
	mark = walk_enter(w, "listen");
	rc = check_place(w, g);
	walk_leave(w, mark);
	if (rc == 0)
		rc = config_warn_of_patterns(w, "rules", &g->rules, c->rules,
		    c->rule_count, sizeof(*c->rules));
	if (rc == 0 && g->tcp)
		rc = warn_of_users(w, g);
	return rc;
}

int
config_parse_gateways(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 0, CONFIG_MAX_LISTENERS, &count);
	if (rc != 0 || count == 0)
		return rc;
	c->gateways = calloc(count, sizeof(*c->gateways));
	if (c->gateways == NULL)
		return walk_nomem(w);
	return walk_rows(w, json, c->gateways, sizeof(*c->gateways),
	    &c->gateway_count, parse_gateway);
}
