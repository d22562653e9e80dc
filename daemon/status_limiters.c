/* See status_limiters.h. */
#include "daemon/status_limiters.h"

#include <string.h>

#include "daemon/status_json.h"

/* Null on the control socket, which takes no acquires at all. */
static json_t *
offered_json(const struct config_listener *by,
    const struct config_patterns *patterns, const char *name)
{
	if (by == NULL)
		return json_null();
	return json_boolean(config_allows(patterns, name, strlen(name)));
}

/* What limiters and local limiters have in common, save what is counted. */
static json_t *
rate_json(const char *name, const struct config_rate *is,
    const struct limiters_shown *shown)
{
	return json_pack("{s:s, s:o, s:o, s:f, s:I, s:I, s:I}", "name", name,
	    "permits_per_second", status_json_rate(shown->rate),
	    "max_burst_seconds", status_json_seconds(is->burst_us), "stored",
	    shown->stored, "wait_us", (json_int_t)shown->owed_us, "keys",
	    (json_int_t)shown->keys, "max_keys", (json_int_t)is->max_keys);
}

static json_t *
limiters_json(
    const struct setup *setup, const struct config_listener *by, int64_t now)
{
	const struct config *c = setup->config;
	json_t *out = json_array();

	for (size_t i = 0; i < c->limiter_count; i++) {
		const struct config_limiter *l = &c->limiters[i];
		const struct limiters_shown shown =
		    limiters_show(setup->limiters, l, now);
		json_t *one = rate_json(l->name, &l->is, &shown);

		json_object_set_new(one, "configured_permits_per_second",
		    status_json_rate(l->is.rate));
		json_object_set_new(one, "offered",
		    offered_json(
			by, by != NULL ? &by->limiters : NULL, l->name));
		json_object_set_new(one, "counters",
		    status_json_counters(limiter_counter_rows, shown.counters));
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *
error_control_json(const struct config_error_control *e,
    const struct config_listener *by, const struct limiters_error_shown *shown)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:o, "
			 "s:o}",
	    "name", e->name, "burst", (json_int_t)e->burst, "burst_left",
	    (json_int_t)shown->burst, "min_delay_ms",
	    (json_int_t)(e->min_us / 1000), "max_delay_ms",
	    (json_int_t)(e->max_us / 1000), "delay_ms",
	    (double)shown->delay_us / 1e3, "wait_us",
	    (json_int_t)shown->owed_us, "keys", (json_int_t)shown->keys,
	    "max_keys", (json_int_t)e->max_keys, "offered",
	    offered_json(by, by != NULL ? &by->error_controls : NULL, e->name),
	    "counters",
	    status_json_counters(error_control_counter_rows, shown->counters));
}

static json_t *
error_controls_json(
    const struct setup *setup, const struct config_listener *by, int64_t now)
{
	const struct config *c = setup->config;
	json_t *out = json_array();

	for (size_t i = 0; i < c->error_control_count; i++) {
		const struct config_error_control *e = &c->error_controls[i];
		const struct limiters_error_shown shown =
		    limiters_show_error(setup->limiters, e, now);

		json_array_append_new(out, error_control_json(e, by, &shown));
	}
	return out;
}

/* The rules that have a local limiter. */
static json_t *
rules_json(const struct setup *setup, int64_t now)
{
	const struct config *c = setup->config;
	json_t *out = json_array();

	for (size_t i = 0; i < c->rule_count; i++) {
		const struct config_rule *r = &c->rules[i];
		struct limiters_shown shown;
		json_t *one;

		if (r->on_failure != FAILURE_LOCAL)
			continue;
		shown = limiters_show_local(setup->limiters, r, now);
		one = rate_json(r->name, &r->local, &shown);
		if (rules_local_varies(setup->rules, r)) {
			/* Nobody uses the one without a key. */
			json_object_set_new(one, "stored", json_null());
			json_object_set_new(one, "wait_us", json_null());
		}
		json_object_set_new(one, "counters",
		    status_json_counters(limiter_counter_rows, shown.counters));
		json_array_append_new(out, one);
	}
	return out;
}

char *
status_limiters(
    const struct setup *setup, const struct config_listener *by, int64_t now)
{
	return status_json_dump(json_pack("{s:I, s:o, s:o, s:o}", "generation",
	    (json_int_t)setup->generation, "limiters",
	    limiters_json(setup, by, now), "error_controls",
	    error_controls_json(setup, by, now), "rules",
	    rules_json(setup, now)));
}
