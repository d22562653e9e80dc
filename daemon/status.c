/* Builds the JSON documents from what the agent's parts tell of themselves. */
#include "daemon/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/address.h"
#include "daemon/io/dns.h"
#include "daemon/log.h"
#include "daemon/io/udp.h"
#include "daemon/message.h"

/* Every row of a table of counters. */
static json_t *
counters_json(const struct counter_row *rows, const void *counters)
{
	json_t *out = json_object();
	uint64_t v;

	for (; rows->name != NULL; rows++) {
		memcpy(&v, (const char *)counters + rows->offset, sizeof(v));
		json_object_set_new(
		    out, rows->name, json_integer((json_int_t)v));
	}
	return out;
}

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

/* 64-bit identifiers are strings: many JSON readers know doubles only. */
static json_t *
u64_string(uint64_t v)
{
	return json_sprintf("%" PRIu64, v);
}

static json_t *
bytes_json(const uint8_t *bytes, size_t len)
{
	char text[2 * CONFIG_HASH_LEN + 1] = "";
	size_t i;

	for (i = 0; i < len && i < CONFIG_HASH_LEN; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	return json_string(text);
}

static json_t *
listeners_json(const struct dispatch *d)
{
	json_t *out = json_array();
	struct dispatch_port p;
	size_t i;

	for (i = 0; dispatch_port(d, i, &p); i++) {
		json_array_append_new(
		    out, json_pack("{s:s, s:o, s:I, s:I, s:I}", "name", p.name,
			     "path", text_json(p.path), "connections",
			     (json_int_t)p.connections, "inflight",
			     (json_int_t)p.inflight, "accept_pauses",
			     (json_int_t)p.accept_pauses));
	}
	return out;
}

static const char *
state_name(enum discovery_state state)
{
	switch (state) {
	case DISCOVERY_STATIC:
		return "static";
	case DISCOVERY_RUNNING:
		return "discovering";
	case DISCOVERY_READY:
		return "ready";
	case DISCOVERY_UNAVAILABLE:
		return "unavailable";
	}
	return "unknown";
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
	if (n == NULL)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sent",
	    (json_int_t)n->sent, "sent_bytes", (json_int_t)n->sent_bytes,
	    "send_errors", (json_int_t)n->send_errors, "send_blocked",
	    (json_int_t)n->send_blocked, "send_expired",
	    (json_int_t)n->send_expired, "received", (json_int_t)n->received,
	    "received_bytes", (json_int_t)n->received_bytes, "receive_errors",
	    (json_int_t)n->receive_errors);
}

static json_t *
discovery_json(const struct discovery *d)
{
	const struct discovery_counters *n = discovery_counters(d);
	int64_t next = discovery_next(d);

	return json_pack(
	    "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "state",
	    state_name(discovery_state(d)), "error",
	    text_json(discovery_error(d)), "next_refresh_ms",
	    next == POLICY_NEVER ? json_null()
				 : json_integer((next - loop_now()) / 1000),
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
	    "{s:s, s:o, s:s, s:s, s:b, s:I, s:I, s:I, s:s?, s:o, s:o, s:o, s:o}",
	    "name", c->name, "key_id", u64_string(c->cred.key_id), "auth",
	    credential_auth_name(c->cred.auth), "profile",
	    c->profile == PROFILE_V1 ? "v1" : "v2", "ready", tenant_ready(t),
	    "servers", (json_int_t)tenant_members(t)->count, "inflight",
	    (json_int_t)tenant_inflight(t), "horizon_ms",
	    (json_int_t)c->plan.ttl_ms, "dns_name",
	    c->server_count > 0 ? NULL : c->dns.name, "discovery",
	    discovery_json(tenant_discovery(t)), "counters",
	    counters_json(tenant_counter_rows, tenant_counters(t)), "udp4",
	    udp_json(tenant_udp(t, 4)), "udp6", udp_json(tenant_udp(t, 6)));
}

static char *
dump(json_t *json)
{
	char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

char *
status_document(const struct agent *a)
{
	json_t *tenants = json_array();
	size_t i;

	for (i = 0; i < a->config->tenant_count; i++)
		json_array_append_new(tenants, tenant_json(a->tenants[i]));
	return dump(json_pack(
	    "{s:s, s:b, s:b, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o}",
	    "version", PACKAGE_VERSION, "ready", dispatch_is_ready(a->dispatch),
	    "draining", a->draining, "uptime_ms",
	    (json_int_t)((loop_now() - a->started) / 1000), "generation",
	    (json_int_t)a->generation, "config_hash",
	    bytes_json(a->config->hash, CONFIG_HASH_LEN), "config",
	    text_json(a->config->source), "inflight",
	    (json_int_t)dispatch_inflight(a->dispatch), "log_dropped",
	    (json_int_t)log_dropped(), "listeners", listeners_json(a->dispatch),
	    "tenants", tenants, "counters",
	    counters_json(agent_counter_rows, dispatch_counters(a->dispatch))));
}

static json_t *
server_json(const struct tenant *t, const struct member *m, uint32_t rank)
{
	json_t *addresses = json_array();
	char text[ADDRESS_TEXT_MAX];
	struct tenant_server s;
	bool heard;
	uint32_t i;

	for (i = 0; i < m->addr_count; i++)
		json_array_append_new(
		    addresses, json_string(address_format(&m->addrs[i], text)));
	tenant_server(t, m->server_id, &s);
	heard = s.last_answer > 0;
	return json_pack(
	    "{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o}",
	    "tenant", tenant_config(t)->name, "server_id",
	    u64_string(m->server_id), "rank", (json_int_t)rank, "started",
	    (json_int_t)members_start_time(m->server_id), "listener",
	    (json_int_t)members_listener(m->server_id), "node",
	    (json_int_t)members_node(m->server_id), "addresses", addresses,
	    "sent", (json_int_t)s.sent, "answered", (json_int_t)s.answered,
	    "selected", (json_int_t)s.selected, "rtt_us",
	    s.rtt_us > 0 ? json_integer(s.rtt_us) : json_null(),
	    "last_answer_ms",
	    heard ? json_integer((loop_now() - s.last_answer) / 1000)
		  : json_null(),
	    "clock_ms", heard ? json_integer(s.clock_ms) : json_null());
}

char *
status_servers(const struct agent *a)
{
	json_t *servers = json_array();
	const struct members *m;
	uint32_t k;
	size_t i;

	for (i = 0; i < a->config->tenant_count; i++) {
		m = tenant_members(a->tenants[i]);
		for (k = 0; k < m->count; k++)
			json_array_append_new(servers,
			    server_json(a->tenants[i], &m->list[k], k));
	}
	return dump(json_pack("{s:o}", "servers", servers));
}
