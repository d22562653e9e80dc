/*
 * Loads each configuration that it is given and prints one line for each: its
 * error, or "FILE: ok". Exits 0 when all are good, else 78, as rl-agent -t
 * does. With -d a good one is shown instead of "ok", as JSON of the form of the
 * file, with every default: what was understood. For tests and for hands.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/core/sample.h"

#define EXIT_CONFIG 78

static void
set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) != 0)
		abort();
}

static json_t *
number(uint32_t value)
{
	return json_integer(value);
}

static json_t *
show_schedule(const struct schedule *s)
{
	static const char *const names[] = {"fixed", "linear", "exponential"};
	static const char *const growths[] = {"", "step", "factor"};
	json_t *out = json_object(), *form = json_object();

	set(form, "initial", number(s->initial));
	set(form, "max", number(s->max));
	set(form, growths[s->kind], number(s->growth));
	if (s->kind == SCHEDULE_FIXED) {
		json_decref(form);
		form = number(s->initial);
	}
	set(out, names[s->kind], form);
	return out;
}

static json_t *
show_policy(const struct policy *p)
{
	json_t *out = json_object();

	set(out, "unit_ms", number(p->unit_ms));
	set(out, "replay_count", number(p->replay_count));
	set(out, "replay_gap", show_schedule(&p->gap));
	set(out, "preference",
	    p->first_round ? json_string("first-round")
			   : show_schedule(&p->preference));
	set(out, "final_receive_units", number(p->final_units));
	set(out, "final_preference_units", number(p->final_preference_units));
	set(out, "completion_delivery", json_boolean(p->completion_delivery));
	set(out, "suspect_after", number(p->suspect_after));
	return out;
}

static json_t *
show_tenant(const struct config_tenant *t)
{
	json_t *out = json_object(), *dns = json_object();
	uint32_t addresses = 0;

	for (size_t i = 0; i < t->server_count; i++)
		addresses += t->servers[i].addr_count;
	set(dns, "name", json_string(t->dns.name));
	set(dns, "refresh_ms", number(t->dns.refresh_ms));
	set(dns, "forced_min_ms", number(t->dns.forced_min_ms));
	set(dns, "jitter_ms", number(t->dns.jitter_ms));
	set(dns, "nameservers", number(t->dns.nameserver_count));
	set(dns, "timeout_ms", number(t->dns.timeout_ms));
	set(dns, "require_ad", json_boolean(t->dns.require_ad));
	set(out, "profile",
	    json_string(t->profile == PROFILE_V1 ? "v1" : "v2"));
	set(out, "dns", dns);
	set(out, "servers", number(addresses));
	set(out, "strict_source", json_boolean(t->strict_source));
	set(out, "on_failure",
	    json_string(t->on_failure == FAILURE_OPEN ? "open" : "closed"));
	set(out, "policy", show_policy(&t->policy));
	return out;
}

static json_t *
show_tracker(const struct config_tracker *t)
{
	json_t *out = json_object();

	set(out, "ttl_ms", number(t->ttl_ms));
	set(out, "max_samples", number(t->max_samples));
	set(out, "buffer_size", number(t->buffer_size));
	set(out, "min_samples", number(t->min_samples));
	return out;
}

static json_t *
show_rate(const struct config_rate *r)
{
	json_t *out = json_object();

	set(out, "permits_per_second", json_real((double)r->rate / 1e12));
	set(out, "max_burst_seconds", json_real((double)r->burst_us / 1e6));
	set(out, "max_keys", number(r->max_keys));
	return out;
}

static json_t *
show_error_control(const struct config_error_control *e)
{
	json_t *out = json_object();

	set(out, "burst", number(e->burst));
	set(out, "min_delay_ms", number((uint32_t)(e->min_us / 1000)));
	set(out, "max_delay_ms", number((uint32_t)(e->max_us / 1000)));
	set(out, "max_keys", number(e->max_keys));
	return out;
}

static json_t *
show_failure(const struct config_rule *r)
{
	json_t *out;

	if (r->on_failure != FAILURE_LOCAL)
		return json_string(
		    r->on_failure == FAILURE_OPEN ? "open" : "closed");
	out = json_object();
	set(out, "local", show_rate(&r->local));
	return out;
}

static json_t *
show_rule(const struct config *c, const struct config_rule *r)
{
	json_t *out = json_object(), *list = json_array(), *item;

	for (size_t i = 0; i < r->resource_count; i++) {
		item = json_object();
		set(item, "bucket", json_string(r->resources[i].bucket));
		set(item, "window_ms", number(r->resources[i].window_ms));
		set(item, "limit", number(r->resources[i].limit));
		set(item, "tokens", number(r->resources[i].tokens));
		json_array_append_new(list, item);
	}
	set(out, "resources", list);
	list = json_array();
	for (size_t i = 0; i < r->guard_count; i++) {
		item = json_object();
		set(item, "tracker",
		    json_string(c->trackers[r->guards[i].tracker].name));
		set(item, "below_ms", number(r->guards[i].below_ms));
		json_array_append_new(list, item);
	}
	set(out, "guards", list);
	set(out, "tenant", json_string(c->tenants[r->tenant].name));
	set(out, "label", json_string(r->label));
	set(out, "on_failure", show_failure(r));
	set(out, "mode", json_string(r->shadow ? "shadow" : "enforce"));
	return out;
}

static json_t *
show_patterns(const struct config_patterns *p)
{
	json_t *out = json_array();

	for (size_t i = 0; i < p->count; i++)
		json_array_append_new(out, json_string(p->list[i]));
	return out;
}

static json_t *
show_ids(const uint32_t *ids, size_t count)
{
	json_t *out = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(out, number(ids[i]));
	return out;
}

static json_t *
show_mode(mode_t mode)
{
	char text[16];

	snprintf(text, sizeof(text), "%04o", (unsigned)mode);
	return json_string(text);
}

static json_t *
show_listener(const struct config_listener *l)
{
	json_t *out = json_object();

	set(out, "path", json_string(l->path));
	set(out, "mode", show_mode(l->mode));
	set(out, "group",
	    l->group == NULL ? json_null() : json_string(l->group));
	set(out, "rules", show_patterns(&l->rules));
	set(out, "limiters", show_patterns(&l->limiters));
	set(out, "error_controls", show_patterns(&l->error_controls));
	set(out, "trackers", show_patterns(&l->trackers));
	set(out, "adhoc", json_boolean(l->adhoc));
	set(out, "uids", show_ids(l->uids, l->uid_count));
	set(out, "gids", show_ids(l->gids, l->gid_count));
	set(out, "max_connections", number(l->max_connections));
	set(out, "max_inflight", number(l->max_inflight));
	return out;
}

static json_t *
show_gateway(const struct config_gateway *g)
{
	json_t *out = json_object();

	set(out, "listen",
	    g->tcp ? json_string(g->address)
		   : json_sprintf("unix:%s", g->address));
	set(out, "mode", show_mode(g->mode));
	set(out, "group",
	    g->group == NULL ? json_null() : json_string(g->group));
	set(out, "rules", show_patterns(&g->rules));
	set(out, "deny_status", number(g->deny_status));
	set(out, "key_header",
	    g->key_header == NULL ? json_null() : json_string(g->key_header));
	set(out, "max_connections", number(g->max_connections));
	return out;
}

static json_t *
show_limits(const struct config_limits *l)
{
	json_t *out = json_object();

	set(out, "max_inflight", number(l->max_inflight));
	set(out, "max_inflight_per_uid", number(l->max_inflight_per_uid));
	set(out, "max_connections_per_uid", number(l->max_connections_per_uid));
	return out;
}

static json_t *
show(const struct config *c)
{
	static const char *const levels[] = {
	    "error", "warning", "info", "debug"};
	json_t *out = json_object(), *tenants = json_object();
	json_t *trackers = json_object(), *rules = json_object();
	json_t *listeners = json_object(), *control = json_object();
	json_t *limiters = json_object(), *controls = json_object();
	json_t *log = json_object(), *gateways = json_object();

	for (size_t i = 0; i < c->tenant_count; i++)
		set(tenants, c->tenants[i].name, show_tenant(&c->tenants[i]));
	for (size_t i = 0; i < c->tracker_count; i++)
		set(trackers, c->trackers[i].name,
		    show_tracker(&c->trackers[i]));
	for (size_t i = 0; i < c->rule_count; i++)
		set(rules, c->rules[i].name, show_rule(c, &c->rules[i]));
	for (size_t i = 0; i < c->limiter_count; i++)
		set(limiters, c->limiters[i].name,
		    show_rate(&c->limiters[i].is));
	for (size_t i = 0; i < c->error_control_count; i++)
		set(controls, c->error_controls[i].name,
		    show_error_control(&c->error_controls[i]));
	for (size_t i = 0; i < c->listener_count; i++)
		set(listeners, c->listeners[i].name,
		    show_listener(&c->listeners[i]));
	for (size_t i = 0; i < c->gateway_count; i++)
		set(gateways, c->gateways[i].name,
		    show_gateway(&c->gateways[i]));
	set(control, "path", json_string(c->control.path));
	set(control, "mode", show_mode(c->control.mode));
	set(log, "level", json_string(levels[c->level]));
	set(log, "decisions",
	    json_real((double)c->decisions / (double)SAMPLE_ALL));
	set(out, "tenants", tenants);
	set(out, "trackers", trackers);
	set(out, "rules", rules);
	set(out, "limiters", limiters);
	set(out, "error_controls", controls);
	set(out, "listeners", listeners);
	set(out, "control", control);
	set(out, "gateway", gateways);
	set(out, "limits", show_limits(&c->limits));
	set(out, "log", log);
	return out;
}

static void
print(const struct config *config)
{
	json_t *json = show(config);

	if (json_dumpf(json, stdout, JSON_COMPACT) != 0)
		abort();
	putchar('\n');
	json_decref(json);
}

int
main(int argc, char **argv)
{
	const bool dump = argc > 1 && strcmp(argv[1], "-d") == 0;
	char err[CONFIG_ERR_MAX];
	struct config *config;
	int status = 0;

	for (int i = dump ? 2 : 1; i < argc; i++) {
		config = config_load(argv[i], err);
		if (config == NULL) {
			puts(err);
			status = EXIT_CONFIG;
			continue;
		}
		if (dump)
			print(config);
		else
			printf("%s: ok\n", argv[i]);
		for (size_t k = 0; k < config->warning_count; k++)
			fprintf(stderr, "%s\n", config->warnings[k]);
		config_unref(config);
	}
	return status;
}
