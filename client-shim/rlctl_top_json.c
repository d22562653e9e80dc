/*
 * A view of rlctl top as one line of JSON. All that is not ASCII is escaped: no
 * name can steer a terminal.
 */
#include "client-shim/rlctl_top.h"

#include <jansson.h>

/* Null while it is not known. */
static json_t *
rate_json(const struct top_view *v, double rate)
{
	return v->known ? json_real(rate) : json_null();
}

/* A field of the document; null without it. */
static json_t *
field(const json_t *from, const char *name)
{
	json_t *value = json_object_get(from, name);

	return value != NULL ? json_incref(value) : json_null();
}

static json_t *
rules_json(const struct top_view *v)
{
	json_t *out = json_array();

	for (size_t i = 0; i < v->rule_count; i++) {
		const struct top_rule *r = &v->rules[i];

		json_array_append_new(out,
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			"name", field(r->is, "name"), "tenant",
			field(r->is, "tenant"), "mode", field(r->is, "mode"),
			"checks_per_second", rate_json(v, r->checks),
			"allowed_per_second", rate_json(v, r->allowed),
			"denied_per_second", rate_json(v, r->denied),
			"failed_per_second", rate_json(v, r->failed),
			"cancelled_per_second", rate_json(v, r->cancelled),
			"would_deny_per_second", rate_json(v, r->would_deny)));
	}
	return out;
}

static json_t *
servers_json(const struct top_view *v)
{
	json_t *out = json_array();

	for (size_t i = 0; i < v->server_count; i++) {
		const struct top_server *s = &v->servers[i];

		json_array_append_new(out,
		    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			      "s:o, s:o, s:o}",
			"tenant", field(s->is, "tenant"), "server_id",
			field(s->is, "server_id"), "addresses",
			field(s->is, "addresses"), "diagnosis",
			field(s->is, "diagnosis"), "suspected",
			field(s->is, "suspected"), "rtt_p50_us",
			field(s->is, "rtt_p50_us"), "rtt_p99_us",
			field(s->is, "rtt_p99_us"), "selected_share",
			v->known && s->share >= 0 ? json_real(s->share)
						  : json_null(),
			"sent_per_second", rate_json(v, s->sent),
			"answered_per_second", rate_json(v, s->answered),
			"missed_per_second", rate_json(v, s->missed),
			"late_per_second", rate_json(v, s->late)));
	}
	return out;
}

static json_t *
limiters_json(const struct top_view *v)
{
	json_t *out = json_array();

	for (size_t i = 0; i < v->limiter_count; i++) {
		const struct top_limiter *l = &v->limiters[i];

		json_array_append_new(
		    out, json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "name",
			     field(l->is, "name"), "kind", l->kind, "keys",
			     field(l->is, "keys"), "granted_per_second",
			     rate_json(v, l->granted), "waits_per_second",
			     rate_json(v, l->waits), "refused_per_second",
			     rate_json(v, l->refused)));
	}
	return out;
}

static json_t *
keys_json(const struct top_view *v)
{
	json_t *out = json_array();

	if (v->now->keys == NULL) {
		json_decref(out);
		return json_null();
	}
	for (size_t i = 0; i < v->key_count; i++) {
		const struct top_key *k = &v->keys[i];

		json_array_append_new(
		    out, json_pack("{s:O, s:O, s:I, s:I}", "rule", k->rule,
			     "key", k->key, "denied", (json_int_t)k->denied,
			     "error", (json_int_t)k->error));
	}
	return out;
}

static json_t *
trouble_json(const char *text)
{
	return text[0] != '\0' ? json_string(text) : json_null();
}

static void
add(json_t *out, const char *name, json_t *value)
{
	json_object_set_new(out, name, value);
}

static void
add_head(json_t *out, const struct top_view *v)
{
	static const char *const fields[] = {"version", "ready", "draining",
	    "uptime_ms", "generation", "inflight"};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		add(out, fields[i], field(v->now->status, fields[i]));
	add(out, "restarted", json_boolean(v->restarted));
	add(out, "interval_ms",
	    v->known ? json_integer((json_int_t)(v->seconds * 1e3 + 0.5))
		     : json_null());
	add(out, "decisions_per_second", rate_json(v, v->decisions));
	add(out, "allowed_per_second", rate_json(v, v->allowed));
	add(out, "denied_per_second", rate_json(v, v->denied));
	add(out, "failed_per_second", rate_json(v, v->failed));
	add(out, "cancelled_per_second", rate_json(v, v->cancelled));
	add(out, "would_deny_per_second", rate_json(v, v->would_deny));
}

void
top_json(FILE *to, const struct top_view *v)
{
	json_t *out = json_object();

	add(out, "error", trouble_json(v->now->trouble));
	if (v->now->status != NULL) {
		add_head(out, v);
		add(out, "rules", rules_json(v));
		add(out, "servers", servers_json(v));
		add(out, "limiters", limiters_json(v));
		add(out, "denied_keys", keys_json(v));
		add(out, "denied_keys_error",
		    trouble_json(v->now->keys_trouble));
	}
	json_dumpf(
	    out, to, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
	fputc('\n', to);
	json_decref(out);
}
