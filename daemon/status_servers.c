/*
 * The document that SERVERS answers with: what is known of each server, and of
 * each tenant what tells the causes of silence apart. rlctl(1) names the
 * fields.
 */
#include "daemon/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "daemon/diagnosis.h"
#include "daemon/io/address.h"

/* One look for all tenants. */
struct scene {
	int64_t now;
	struct clock_reading clock;
};

static void
number(json_t *out, const char *name, uint64_t n)
{
	json_object_set_new(out, name, json_integer((json_int_t)n));
}

/* null unless known */
static void
maybe(json_t *out, const char *name, bool known, int64_t n)
{
	json_object_set_new(out, name, known ? json_integer(n) : json_null());
}

/* Milliseconds since when; null for never. */
static void
since(json_t *out, const char *name, int64_t when, int64_t now)
{
	maybe(out, name, when > 0, (now - when) / 1000);
}

/* How often, and the text and the age of the last one. */
static void
events(json_t *out, const struct peer_events *e, int64_t now, const char *count,
    const char *error, const char *last)
{
	number(out, count, e->count);
	json_object_set_new(out, error,
	    e->count > 0 ? json_string(strerror(e->error)) : json_null());
	since(out, last, e->last, now);
}

static void
diagnosis_json(json_t *out, const struct diagnosis *d)
{
	json_object_set_new(
	    out, "diagnosis", json_string(diagnosis_name(d->code)));
	json_object_set_new(out, "diagnosis_text", json_string(d->text));
}

static json_t *
addresses_json(const struct member *m)
{
	json_t *out = json_array();
	char text[ADDRESS_TEXT_MAX];

	for (uint32_t i = 0; i < m->addr_count; i++)
		json_array_append_new(
		    out, json_string(address_format(&m->addrs[i], text)));
	return out;
}

static void
traffic_json(json_t *out, const struct peer *p, int64_t now)
{
	int64_t p50 = peer_rtt(p, 500, now);

	number(out, "sent", p->sent);
	number(out, "answered", p->answered);
	number(out, "selected", p->selected);
	number(out, "overdue", p->overdue);
	number(out, "missed_rounds", p->missed_rounds);
	number(out, "unanswered", p->unanswered);
	maybe(out, "rtt_us", p->rtt_us > 0, p->rtt_us);
	maybe(out, "rtt_p50_us", p50 > 0, p50);
	maybe(out, "rtt_p90_us", p50 > 0, peer_rtt(p, 900, now));
	maybe(out, "rtt_p99_us", p50 > 0, peer_rtt(p, 990, now));
	json_object_set_new(
	    out, "ever_answered", json_boolean(p->last_answer > 0));
	since(out, "last_answer_ms", p->last_answer, now);
}

static void
trouble_json(json_t *out, const struct peer *p, int64_t now)
{
	int64_t last = 0;

	events(out, &p->refused, now, "refused", "refused_error",
	    "last_refused_ms");
	events(out, &p->send_errors, now, "send_errors", "send_error",
	    "last_send_error_ms");
	number(out, "invalid_auth", p->invalid[PEER_AUTH].count);
	number(out, "invalid_malformed", p->invalid[PEER_MALFORMED].count);
	number(out, "invalid_content", p->invalid[PEER_CONTENT].count);
	number(out, "invalid_source", p->invalid[PEER_SOURCE].count);
	for (int i = 0; i < PEER_INVALIDS; i++) {
		if (p->invalid[i].last > last)
			last = p->invalid[i].last;
	}
	since(out, "last_invalid_ms", last, now);
	maybe(out, "clock_ms", p->clock.known, p->clock.offset_ms);
	maybe(out, "clock_within_ms", p->clock.known, p->clock.within_ms);
}

static json_t *
server_json(const struct diagnosis_facts *facts, const struct tenant *t,
    const struct member *m, uint32_t rank)
{
	const struct peer *p = &facts->peers->list[rank];
	json_t *out = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "tenant",
	    tenant_config(t)->name, "server_id",
	    json_sprintf("%" PRIu64, m->server_id), "rank", (json_int_t)rank,
	    "started", (json_int_t)members_start_time(m->server_id), "listener",
	    (json_int_t)members_listener(m->server_id), "node",
	    (json_int_t)members_node(m->server_id), "addresses",
	    addresses_json(m));
	struct diagnosis d;

	diagnosis_server(facts, p, &d);
	diagnosis_json(out, &d);
	json_object_set_new(out, "suspected",
	    json_boolean(
		suspect_is(&p->suspect, tenant_config(t)->plan.suspect_after)));
	traffic_json(out, p, facts->now);
	trouble_json(out, p, facts->now);
	return out;
}

static json_t *
clock_json(const struct diagnosis_facts *facts, const struct clock_watch *w)
{
	json_t *out = json_object();
	int64_t offset = 0;
	bool told = diagnosis_offset(facts->peers, &offset);

	json_object_set_new(out, "synchronised",
	    facts->sync == CLOCK_SYNC_UNKNOWN
		? json_null()
		: json_boolean(facts->sync == CLOCK_SYNCHRONISED));
	maybe(out, "stepped_ms", w->marked, facts->stepped_ms);
	maybe(out, "offset_ms", told, offset);
	return out;
}

/* Of the tenant's counters those of datagrams that were ignored. */
static void
invalid_json(json_t *out, const struct tenant_counters *counters)
{
	const struct counter_row *row = tenant_counter_rows;
	uint64_t n;

	for (; row->name != NULL; row++) {
		if (strncmp(row->name, "invalid_", 8) != 0)
			continue;
		memcpy(&n, (const char *)counters + row->offset, sizeof(n));
		number(out, row->name, n);
	}
}

static void
dns_json(json_t *out, const struct diagnosis_facts *facts)
{
	const bool failing = facts->dns_error[0] != '\0';

	json_object_set_new(out, "discovery",
	    json_string(discovery_state_name(facts->discovery)));
	json_object_set_new(out, "dns_error",
	    failing ? json_string(facts->dns_error) : json_null());
	maybe(out, "dns_failing_ms", failing,
	    (facts->now - facts->dns_failing_since) / 1000);
}

static json_t *
tenant_json(const struct diagnosis_facts *facts, const struct tenant *t)
{
	json_t *out = json_pack("{s:s}", "name", tenant_config(t)->name);
	struct diagnosis d;

	diagnosis_tenant(facts, &d);
	diagnosis_json(out, &d);
	dns_json(out, facts);
	json_object_set_new(
	    out, "ever_answered", json_boolean(facts->peers->last_answer > 0));
	since(out, "last_answer_ms", facts->peers->last_answer, facts->now);
	invalid_json(out, tenant_counters(t));
	json_object_set_new(out, "clock", clock_json(facts, tenant_clock(t)));
	return out;
}

/* The profile, when it is not the one that the key's format goes with. */
static const char *
odd_profile(const struct config_tenant *c)
{
	if (c->profile == credential_profile(&c->cred))
		return NULL;
	return c->profile == PROFILE_V1 ? "v1" : "v2";
}

static struct diagnosis_facts
facts_of(const struct tenant *t, const struct scene *scene)
{
	const struct config_tenant *c = tenant_config(t);
	const struct discovery *d = tenant_discovery(t);

	return (struct diagnosis_facts){
	    .now = scene->now,
	    .horizon_us = c->plan.horizon_us,
	    .prefer_us = c->plan.prefer_end_us[0],
	    .suspect_after = c->plan.suspect_after,
	    .key_id = c->cred.key_id,
	    .auth = credential_auth_name(c->cred.auth),
	    .peers = tenant_peers(t),
	    .strangers = tenant_counters(t)->invalid_server,
	    .discovery = discovery_state(d),
	    .dns_error = discovery_error(d),
	    .dns_failing_since = discovery_failing_since(d),
	    .sync = scene->clock.sync,
	    .stepped_ms = clock_stepped_ms(tenant_clock(t), &scene->clock),
	    .odd_profile = odd_profile(c),
	};
}

const char *
status_diagnosis(const struct tenant *t)
{
	struct scene scene = {.now = loop_now()};
	struct diagnosis_facts facts;
	struct diagnosis d;

	clock_read(&scene.clock);
	facts = facts_of(t, &scene);
	diagnosis_tenant(&facts, &d);
	return diagnosis_name(d.code);
}

char *
status_servers(const struct agent *a)
{
	json_t *servers = json_array(), *tenants = json_array(), *root;
	struct scene scene = {.now = loop_now()};
	struct diagnosis_facts facts;
	const struct members *m;
	char *text;

	clock_read(&scene.clock);
	for (size_t i = 0; i < a->setup->config->tenant_count; i++) {
		facts = facts_of(a->setup->tenants[i], &scene);
		m = tenant_members(a->setup->tenants[i]);
		for (uint32_t k = 0; k < m->count; k++)
			json_array_append_new(
			    servers, server_json(&facts, a->setup->tenants[i],
					 &m->list[k], k));
		json_array_append_new(
		    tenants, tenant_json(&facts, a->setup->tenants[i]));
	}
	root = json_pack("{s:o, s:o}", "servers", servers, "tenants", tenants);
	text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}
