/*
 * Tenants: the key, the profile it means, its policy held to the key's
 * deduplication limit. A tenant holds a secret: the draft that it is read into
 * is wiped, its row stays where it is.
 */
#include "daemon/config_parse.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/config_key.h"
#include "proto/err.h"

enum { PROFILE_WORD_AUTO, PROFILE_WORD_V1, PROFILE_WORD_V2 };
static const char *const profile_words[] = {"auto", "v1", "v2", NULL};

/* A tenant while it is read: what its key resolves is still open. */
struct draft {
	struct config_tenant tenant;
	json_t *servers; /* borrowed */
	int profile;
	int strict_source;
};

static const struct walk_key tenant_keys[] = {
    {.name = "key",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, tenant.cred),
	.required = true,
	.func = config_key_parse},
    {.name = "profile",
	.kind = WALK_WORD,
	.offset = offsetof(struct draft, profile),
	.words = profile_words},
    {.name = "dns",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, tenant.dns),
	.func = config_parse_dns},
    {.name = "servers",
	.kind = WALK_RAW,
	.offset = offsetof(struct draft, servers)},
    {.name = "strict_source",
	.kind = WALK_TRI,
	.offset = offsetof(struct draft, strict_source)},
    {.name = "on_failure",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, tenant.on_failure),
	.func = config_parse_failure},
    {.name = "policy",
	.kind = WALK_FUNC,
	.offset = offsetof(struct draft, tenant.policy),
	.func = config_parse_policy},
    {.name = NULL},
};

static int
read_servers(struct walk *w, struct draft *d)
{
	const struct config_dns *dns = &d->tenant.dns;
	size_t mark;
	int rc;

	if (d->servers == NULL)
		return 0;
	mark = walk_enter(w, "servers");
	rc = config_parse_servers(w, d->servers, &d->tenant);
	if (rc == 0 && d->tenant.server_count > 0 &&
	    (dns->name != NULL || dns->nameserver_count > 0))
		rc = walk_fail(w, "cannot be given together with dns.%s",
		    dns->name != NULL ? "name" : "nameservers");
	walk_leave(w, mark);
	return rc;
}

static int
resolve_policy(struct walk *w, struct config_tenant *t)
{
	size_t mark = walk_enter(w, "policy");
	int rc = config_plan_policy(w, &t->policy, &t->cred, &t->plan);

	walk_leave(w, mark);
	return rc;
}

/* A mistake if the servers were not told otherwise: requests without guards
 * work all the same, so it shows late. */
static int
warn_profile(struct walk *w, enum profile profile)
{
	const bool v2 = profile == PROFILE_V2;
	size_t mark = walk_enter(w, "profile");
	int rc = walk_warn(w,
	    "%s, but the key's format goes with %s: guards and reports will "
	    "be ignored if that is wrong",
	    v2 ? "v2" : "v1", v2 ? "v1" : "v2");

	walk_leave(w, mark);
	return rc;
}

static int
resolve(struct walk *w, struct draft *d)
{
	struct config_tenant *t = &d->tenant;
	char name[CREDENTIAL_DNS_MAX];

	switch (d->profile) {
	case PROFILE_WORD_V1:
		t->profile = PROFILE_V1;
		break;
	case PROFILE_WORD_V2:
		t->profile = PROFILE_V2;
		break;
	default:
		t->profile = credential_profile(&t->cred);
		break;
	}
	if (t->profile != credential_profile(&t->cred) &&
	    warn_profile(w, t->profile) != 0)
		return RLA_ENOMEM;
	t->strict_source = d->strict_source < 0 ? t->cred.auth != AUTH_AES
						: d->strict_source == 1;
	if (t->dns.name == NULL) {
		credential_dns_name(&t->cred, name);
		t->dns.name = strdup(name);
		if (t->dns.name == NULL)
			return walk_nomem(w);
	}
	return resolve_policy(w, t);
}

/* The row takes what was read whether it is whole or not: it frees it. */
static int
parse_tenant(struct walk *w, json_t *json, void *row)
{
	struct config_tenant *tenant = row;
	struct draft d = {.tenant = *tenant, .strict_source = -1};
	int rc;

	d.tenant.dns = (struct config_dns){
	    .refresh_ms = 300000,
	    .forced_min_ms = 1000,
	    .jitter_ms = 0,
	    .timeout_ms = 1000,
	};
	d.tenant.on_failure = FAILURE_OPEN;
	policy_defaults(&d.tenant.policy);
	rc = walk_object(w, json, tenant_keys, &d);
	if (rc == 0)
		rc = read_servers(w, &d);
	if (rc == 0)
		rc = resolve(w, &d);
	*tenant = d.tenant;
	credential_wipe(&d.tenant.cred);
	return rc;
}

int
config_parse_tenants(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 1, CONFIG_MAX_TENANTS, &count);
	if (rc != 0)
		return rc;
	c->tenants = calloc(count, sizeof(*c->tenants));
	if (c->tenants == NULL)
		return walk_nomem(w);
	return walk_table(w, json, c->tenants, sizeof(*c->tenants),
	    &c->tenant_count, parse_tenant);
}
