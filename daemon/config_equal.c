/*
 * What a reload need not do: configurations that say the same, tenants that
 * one struct tenant does for. Compared member by member, since between them
 * there may be anything.
 */
#include "daemon/config.h"

#include <string.h>

static bool
credential_equal(const struct credential *a, const struct credential *b)
{
	const struct quotas *q = &a->quotas, *r = &b->quotas;

	return a->auth == b->auth && a->format == b->format &&
	       a->key_id == b->key_id &&
	       memcmp(a->secret, b->secret, sizeof(a->secret)) == 0 &&
	       q->rate_buckets == r->rate_buckets &&
	       q->latency_trackers == r->latency_trackers &&
	       q->metrics_labels == r->metrics_labels &&
	       q->latency_buffer == r->latency_buffer &&
	       q->dedup_ttl_ms == r->dedup_ttl_ms &&
	       q->rate_window_ms == r->rate_window_ms;
}

static bool
schedule_equal(const struct schedule *a, const struct schedule *b)
{
	return a->kind == b->kind && a->initial == b->initial &&
	       (a->kind == SCHEDULE_FIXED ||
		   (a->growth == b->growth && a->max == b->max));
}

static bool
policy_equal(const struct policy *a, const struct policy *b)
{
	return a->unit_ms == b->unit_ms && a->replay_count == b->replay_count &&
	       schedule_equal(&a->gap, &b->gap) &&
	       a->first_round == b->first_round &&
	       (a->first_round ||
		   schedule_equal(&a->preference, &b->preference)) &&
	       a->final_units == b->final_units &&
	       a->final_preference_units == b->final_preference_units &&
	       a->completion_delivery == b->completion_delivery &&
	       a->suspect_after == b->suspect_after;
}

static bool
endpoints_equal(const struct endpoint *a, const struct endpoint *b, size_t n)
{
	while (n > 0 && endpoint_equal(a, b)) {
		a++;
		b++;
		n--;
	}
	return n == 0;
}

static bool
targets_equal(
    const struct members_target *a, const struct members_target *b, size_t n)
{
	while (n > 0 && a->server_id == b->server_id &&
	       a->addr_count == b->addr_count &&
	       endpoints_equal(a->addrs, b->addrs, a->addr_count)) {
		a++;
		b++;
		n--;
	}
	return n == 0;
}

/* How often is no part of the way; whom to ask and to believe is. With static
 * servers there is no DNS. */
bool
config_tenant_same_servers(
    const struct config_tenant *a, const struct config_tenant *b)
{
	if (a->server_count > 0 || b->server_count > 0)
		return a->server_count == b->server_count &&
		       targets_equal(a->servers, b->servers, a->server_count);
	return strcmp(a->dns.name, b->dns.name) == 0 &&
	       a->dns.require_ad == b->dns.require_ad &&
	       a->dns.nameserver_count == b->dns.nameserver_count &&
	       endpoints_equal(a->dns.nameservers, b->dns.nameservers,
		   a->dns.nameserver_count);
}

bool
config_tenant_equal(
    const struct config_tenant *a, const struct config_tenant *b)
{
	return strcmp(a->name, b->name) == 0 &&
	       credential_equal(&a->cred, &b->cred) &&
	       a->profile == b->profile && config_tenant_same_servers(a, b) &&
	       a->dns.refresh_ms == b->dns.refresh_ms &&
	       a->dns.forced_min_ms == b->dns.forced_min_ms &&
	       a->dns.jitter_ms == b->dns.jitter_ms &&
	       a->dns.timeout_ms == b->dns.timeout_ms &&
	       a->strict_source == b->strict_source &&
	       policy_equal(&a->policy, &b->policy);
}

static bool
lines_equal(char *const *a, char *const *b, size_t n)
{
	while (n > 0 && strcmp(*a, *b) == 0) {
		a++;
		b++;
		n--;
	}
	return n == 0;
}

/* What the same text names may be other keys, groups and files. */
bool
config_equal(const struct config *a, const struct config *b)
{
	if (a->from_file != b->from_file || strcmp(a->source, b->source) != 0 ||
	    memcmp(a->file_hash, b->file_hash, sizeof(a->file_hash)) != 0 ||
	    a->tenant_count != b->tenant_count ||
	    a->listener_count != b->listener_count ||
	    a->gateway_count != b->gateway_count ||
	    a->file_count != b->file_count ||
	    a->warning_count != b->warning_count ||
	    !lines_equal(a->files, b->files, a->file_count) ||
	    !lines_equal(a->warnings, b->warnings, a->warning_count))
		return false;
	for (size_t i = 0; i < a->tenant_count; i++) {
		if (!config_tenant_equal(&a->tenants[i], &b->tenants[i]))
			return false;
	}
	for (size_t i = 0; i < a->listener_count; i++) {
		if (a->listeners[i].gid != b->listeners[i].gid)
			return false;
	}
	for (size_t i = 0; i < a->gateway_count; i++) {
		if (a->gateways[i].gid != b->gateways[i].gid)
			return false;
	}
	return true;
}
