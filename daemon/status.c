/* Builds the JSON documents from what the agent's parts tell of themselves. */
#include "daemon/status.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/dns.h"
#include "daemon/log.h"
#include "daemon/io/udp.h"
#include "daemon/message.h"
#include "daemon/status_json.h"

/* The path of a file may be any bytes; JSON is UTF-8. */
static json_t *
text_json(const char *text)
{
	char shown[PATH_MAX];
	json_t *json = json_string(text);

	if (json != NULL)
		return json;
	message_format(shown, sizeof(shown), "%s", text);
	return json_string(shown);
}

static json_t *
listeners_json(const struct dispatch *d)
{
	json_t *out = json_array();
	struct dispatch_port p;
	size_t i;

	for (i = 0; dispatch_port(d, i, &p); i++) {
		if (p.gateway != NULL)
			continue;
		json_array_append_new(out,
		    json_pack("{s:s, s:o, s:I, s:I, s:I, s:b}", "name", p.name,
			"path", text_json(p.path), "connections",
			(json_int_t)p.connections, "inflight",
			(json_int_t)p.inflight, "accept_pauses",
			(json_int_t)p.accept_pauses, "activated", p.adopted));
	}
	return out;
}

/* As the configuration says it. */
static json_t *
listen_json(const struct dispatch_port *p)
{
	char shown[sizeof("unix:") + PATH_MAX];

	snprintf(shown, sizeof(shown), "%s%s",
	    p->gateway->tcp ? "" : "unix:", p->path);
	return text_json(shown);
}

static json_t *
gateways_json(const struct dispatch *d)
{
	json_t *out = json_array();
	struct dispatch_port p;
	size_t i;

	for (i = 0; dispatch_port(d, i, &p); i++) {
		if (p.gateway == NULL)
			continue;
		json_array_append_new(out,
		    json_pack("{s:s, s:o, s:I, s:I, s:I, s:b}", "name", p.name,
			"listen", listen_json(&p), "connections",
			(json_int_t)p.connections, "inflight",
			(json_int_t)p.inflight, "accept_pauses",
			(json_int_t)p.accept_pauses, "activated", p.adopted));
	}
	return out;
}

static json_t *
dns_json(const struct dns_counters *n)
{
	if (n == NULL)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "queries",
	    (json_int_t)n->queries, "answers", (json_int_t)n->answers,
	    "timeouts", (json_int_t)n->timeouts, "failures",
	    (json_int_t)n->failures, "malformed", (json_int_t)n->malformed,
	    "tcp", (json_int_t)n->tcp);
}

static json_t *
udp_json(const struct udp_counters *n)
{
	json_t *out;

	if (n == NULL)
		return json_null();
	out = json_object();
#define ADD(name, help) \
	json_object_set_new(out, #name, json_integer((json_int_t)n->name));
	UDP_COUNTERS(ADD)
#undef ADD
	return out;
}

static json_t *
family_json(const struct transport *t, int family)
{
	struct udp_counters n;

	return udp_json(transport_udp(t, family, &n) ? &n : NULL);
}

/* A local port, null without a socket. */
static json_t *
port_json(const struct transport *t, int family)
{
	uint16_t port = transport_local_port(t, family);

	return port != 0 ? json_integer(port) : json_null();
}

static json_t *
transport_json(const struct tenant *tenant)
{
	const struct transport *t = tenant_transport(tenant);
	const struct transport_counters *n = transport_counters(t);
	int error = transport_rebind_error(t);

	return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:s?}", "state",
	    tenant_state_name(tenant_state(tenant)), "port4", port_json(t, 4),
	    "port6", port_json(t, 6), "old_ports",
	    (json_int_t)transport_old_ports(t), "rebinds",
	    (json_int_t)n->rebinds, "rebind_failures",
	    (json_int_t)n->rebind_failures, "rebind_error",
	    error != 0 ? strerror(error) : NULL);
}

static json_t *
discovery_json(const struct discovery *d)
{
	const struct discovery_counters *n = discovery_counters(d);
	int64_t next = discovery_next(d), now = loop_now();

	return json_pack(
	    "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "state",
	    discovery_state_name(discovery_state(d)), "error",
	    text_json(discovery_error(d)), "next_refresh_ms",
	    next == POLICY_NEVER
		? json_null()
		: json_integer(next > now ? (next - now) / 1000 : 0),
	    "refreshes", (json_int_t)n->refreshes, "forced",
	    (json_int_t)n->forced, "failures", (json_int_t)n->failures,
	    "bad_targets", (json_int_t)n->bad_targets, "missing_addresses",
	    (json_int_t)n->missing_addresses, "dropped", (json_int_t)n->dropped,
	    "changes", (json_int_t)n->changes, "dns",
	    dns_json(discovery_dns(d)));
}

static json_t *
tenant_json(const struct tenant *t)
{
	const struct config_tenant *c = tenant_config(t);

	return json_pack(
	    "{s:s, s:s, s:o, s:s, s:s, s:b, s:I, s:I, s:I, s:s?, s:o, s:o, "
	    "s:o, s:o, s:o}",
	    "name", c->name, "diagnosis", status_diagnosis(t), "key_id",
	    status_json_u64(c->cred.key_id), "auth",
	    credential_auth_name(c->cred.auth), "profile",
	    c->profile == PROFILE_V1 ? "v1" : "v2", "ready", tenant_ready(t),
	    "servers", (json_int_t)tenant_members(t)->count, "inflight",
	    (json_int_t)tenant_inflight(t), "horizon_ms",
	    (json_int_t)c->plan.ttl_ms, "dns_name",
	    c->server_count > 0 ? NULL : c->dns.name, "discovery",
	    discovery_json(tenant_discovery(t)), "transport", transport_json(t),
	    "counters",
	    status_json_counters(tenant_counter_rows, tenant_counters(t)),
	    "udp4", family_json(tenant_transport(t), 4), "udp6",
	    family_json(tenant_transport(t), 6));
}

/* What became of the last load, and of the setups before this one. */
static json_t *
reload_json(const struct agent *a)
{
	const struct agent_loading *l = &a->loading;
	const struct setup *s;
	json_int_t ending = 0;

	for (s = a->retired; s != NULL; s = s->next)
		ending++;
	return json_pack("{s:o, s:I, s:I, s:b, s:I}", "error",
	    l->error[0] != '\0' ? text_json(l->error) : json_null(), "failures",
	    (json_int_t)l->failures, "in_force_ms",
	    (json_int_t)((loop_now() - l->at) / 1000), "watching", l->watching,
	    "ending", ending);
}

/* Why no decision is possible; null when one is. */
static json_t *
unready_json(const struct setup *setup)
{
	char text[DISPATCH_ERR_MAX];
	const char *why;
	const struct config_tenant *tenant = setup_unready(setup, &why);

	if (tenant == NULL)
		return json_null();
	message_format(text, sizeof(text), "tenant %s: %s", tenant->name, why);
	return text_json(text);
}

char *
status_document(const struct agent *a)
{
	const struct config *c = a->setup->config;
	json_t *tenants = json_array();
	size_t i;

	for (i = 0; i < a->setup->config->tenant_count; i++)
		json_array_append_new(
		    tenants, tenant_json(a->setup->tenants[i]));
	return status_json_dump(json_pack(
	    "{s:s, s:b, s:o, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, "
	    "s:o, s:o}",
	    "version", PACKAGE_VERSION, "ready", dispatch_is_ready(a->dispatch),
	    "unready", unready_json(a->setup), "draining", a->draining,
	    "uptime_ms", (json_int_t)((loop_now() - a->started) / 1000),
	    "generation", (json_int_t)a->setup->generation, "config_hash",
	    status_json_bytes(c->hash, CONFIG_HASH_LEN), "file_hash",
	    c->from_file ? status_json_bytes(c->file_hash, CONFIG_HASH_LEN)
			 : json_null(),
	    "config", text_json(c->source), "reload", reload_json(a),
	    "inflight", (json_int_t)dispatch_inflight(a->dispatch),
	    "log_dropped", (json_int_t)log_dropped(), "listeners",
	    listeners_json(a->dispatch), "gateway", gateways_json(a->dispatch),
	    "tenants", tenants, "counters",
	    status_json_counters(
		agent_counter_rows, dispatch_counters(a->dispatch))));
}
