/*
 * What happened between two samples, each second by the agent's own clock.
 * Counts that became less began again at 0: then all of them is new. An agent
 * that started again has no rates until there are two samples of it.
 */
#include "client-shim/rlctl_top.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Of a document's times in milliseconds, each cut. */
#define ROUNDING_US 2000

static double
count_of(const json_t *from, const char *name)
{
	return (double)json_integer_value(json_object_get(from, name));
}

/* Of a counter in two objects, the older of which may be NULL. */
static double
rate(const struct top_view *v, const json_t *now, const json_t *then,
    const char *name)
{
	const double to = count_of(now, name);
	const double from = count_of(then, name);

	if (!v->known)
		return 0;
	return (to < from ? to : to - from) / v->seconds;
}

/* An agent whose clock went on by less than that between our questions and its
 * answers has started again. */
bool
top_is_another(const struct top_sample *now, const struct top_sample *then)
{
	double went;

	if (now->status == NULL || then->status == NULL)
		return false;
	went = 1e3 * (count_of(now->status, "uptime_ms") -
			 count_of(then->status, "uptime_ms"));
	return went < 0 ||
	       went + ROUNDING_US < (double)(now->asked - then->told);
}

static void
view_decisions(struct top_view *v, const struct top_sample *then)
{
	const json_t *to = json_object_get(v->now->status, "counters");
	const json_t *from =
	    v->known ? json_object_get(then->status, "counters") : NULL;

	v->allowed = rate(v, to, from, "allowed");
	v->denied = rate(v, to, from, "denied");
	v->failed = rate(v, to, from, "failed");
	v->cancelled = rate(v, to, from, "cancelled");
	v->would_deny = rate(v, to, from, "source_shadow");
	v->decisions = v->allowed + v->denied + v->failed + v->cancelled;
}

static const json_t *
counters_of(const json_t *entry)
{
	return json_object_get(entry, "counters");
}

/* The entry of that name in an older index, NULL: none. */
static const json_t *
older(const struct top_view *v, const json_t *index, const char *name)
{
	return v->known ? json_object_get(index, name) : NULL;
}

static bool
view_rules(struct top_view *v, const struct top_sample *then)
{
	const json_t *list = json_object_get(v->now->rules, "rules"), *entry;
	char name[TOP_NAME_MAX];
	struct top_rule *r;
	size_t i;

	v->rules = calloc(json_array_size(list) + 1, sizeof(*v->rules));
	if (v->rules == NULL)
		return false;
	json_array_foreach((json_t *)list, i, entry)
	{
		const json_t *to = counters_of(entry), *from;

		top_limiter_name(name, "rule", entry);
		from = counters_of(older(v, then->rule_index, name));
		r = &v->rules[v->rule_count++];
		r->is = entry;
		r->checks = rate(v, to, from, "checks");
		r->allowed = rate(v, to, from, "allowed");
		r->denied = rate(v, to, from, "denied");
		r->failed = rate(v, to, from, "failed");
		r->cancelled = rate(v, to, from, "cancelled");
		r->would_deny = rate(v, to, from, "would_deny");
	}
	return true;
}

static bool
same_tenant(const struct top_server *a, const struct top_server *b)
{
	return json_equal(json_object_get(a->is, "tenant"),
		   json_object_get(b->is, "tenant")) != 0;
}

/* Servers of one tenant stand together. */
static void
view_shares(struct top_view *v)
{
	struct top_server *s = v->servers;
	const size_t n = v->server_count;
	double all;
	size_t i, k, end;

	for (i = 0; i < n; i = end) {
		all = s[i].selected;
		for (end = i + 1; end < n && same_tenant(&s[i], &s[end]); end++)
			all += s[end].selected;
		for (k = i; k < end; k++)
			s[k].share = all > 0 ? s[k].selected / all : -1;
	}
}

static bool
view_servers(struct top_view *v, const struct top_sample *then)
{
	const json_t *list = json_object_get(v->now->servers, "servers");
	const json_t *entry, *from;
	char name[TOP_NAME_MAX];
	struct top_server *s;
	size_t i;

	v->servers = calloc(json_array_size(list) + 1, sizeof(*v->servers));
	if (v->servers == NULL)
		return false;
	json_array_foreach((json_t *)list, i, entry)
	{
		top_server_name(name, entry);
		from = older(v, then->server_index, name);
		s = &v->servers[v->server_count++];
		s->is = entry;
		s->sent = rate(v, entry, from, "sent");
		s->answered = rate(v, entry, from, "answered");
		s->selected = rate(v, entry, from, "selected");
		s->missed = rate(v, entry, from, "missed_rounds");
		s->late = rate(v, entry, from, "overdue");
	}
	view_shares(v);
	return true;
}

static void
view_limiter(struct top_view *v, const struct top_sample *then,
    const char *kind, const json_t *entry)
{
	struct top_limiter *l = &v->limiters[v->limiter_count++];
	const json_t *to = counters_of(entry), *from;
	char name[TOP_NAME_MAX];
	const bool is_control = strcmp(kind, "error control") == 0;

	top_limiter_name(name, kind, entry);
	from = counters_of(older(v, then->limiter_index, name));
	l->is = entry;
	l->kind = kind;
	l->granted = rate(v, to, from, is_control ? "begins" : "granted");
	l->waits = rate(v, to, from, is_control ? "delays" : "waits");
	l->refused = rate(v, to, from, "refused");
}

static bool
view_limiters(struct top_view *v, const struct top_sample *then)
{
	static const char *const kinds[][2] = {{"limiters", "limiter"},
	    {"error_controls", "error control"}, {"rules", "local of rule"}};
	const json_t *lists[3], *entry;
	size_t i, k, count = 1;

	for (k = 0; k < 3; k++) {
		lists[k] = json_object_get(v->now->limiters, kinds[k][0]);
		count += json_array_size(lists[k]);
	}
	v->limiters = calloc(count, sizeof(*v->limiters));
	if (v->limiters == NULL)
		return false;
	for (k = 0; k < 3; k++) {
		json_array_foreach((json_t *)lists[k], i, entry)
		    view_limiter(v, then, kinds[k][1], entry);
	}
	return true;
}

/* Of what is no string, none is less. */
static int
compare_strings(const json_t *a, const json_t *b)
{
	const char *x = json_string_value(a), *y = json_string_value(b);

	return strcmp(x != NULL ? x : "", y != NULL ? y : "");
}

static int
by_denied(const void *a, const void *b)
{
	const struct top_key *x = a, *y = b;

	int rc = (x->denied < y->denied) - (x->denied > y->denied);

	/* None changes its place with an equal one. */
	if (rc == 0)
		rc = compare_strings(x->rule, y->rule);
	return rc != 0 ? rc : compare_strings(x->key, y->key);
}

static bool
view_keys(struct top_view *v)
{
	const json_t *rules = json_object_get(v->now->keys, "rules");
	const json_t *rule, *key;
	size_t i, k, count = 1;

	json_array_foreach((json_t *)rules, i, rule) count +=
	    json_array_size(json_object_get(rule, "keys"));
	v->keys = calloc(count, sizeof(*v->keys));
	if (v->keys == NULL)
		return false;
	json_array_foreach((json_t *)rules, i, rule)
	{
		json_array_foreach(json_object_get(rule, "keys"), k, key)
		    v->keys[v->key_count++] = (struct top_key){
		    .rule = json_object_get(rule, "rule"),
		    .key = json_object_get(key, "key"),
		    .denied = (int64_t)count_of(key, "denied"),
		    .error = (int64_t)count_of(key, "error"),
		    .of = (int64_t)count_of(rule, "denied"),
		};
	}
	qsort(v->keys, v->key_count, sizeof(*v->keys), by_denied);
	return true;
}

static int
by_name(const struct top_rule *a, const struct top_rule *b)
{
	return compare_strings(
	    json_object_get(a->is, "name"), json_object_get(b->is, "name"));
}

static int
more(double a, double b)
{
	return (a < b) - (a > b);
}

/* Where rates are equal, or not known, by what was counted so far. */
static int
compare(const struct top_rule *a, const struct top_rule *b, double rate_a,
    double rate_b, const char *name)
{
	int rc = more(rate_a, rate_b);

	if (rc == 0)
		rc = more(count_of(counters_of(a->is), name),
		    count_of(counters_of(b->is), name));
	return rc != 0 ? rc : by_name(a, b);
}

static int
compare_checks(const void *a, const void *b)
{
	const struct top_rule *x = a, *y = b;

	return compare(x, y, x->checks, y->checks, "checks");
}

static int
compare_denied(const void *a, const void *b)
{
	const struct top_rule *x = a, *y = b;

	return compare(x, y, x->denied, y->denied, "denied");
}

static int
compare_failed(const void *a, const void *b)
{
	const struct top_rule *x = a, *y = b;

	return compare(x, y, x->failed, y->failed, "failed");
}

static int
compare_names(const void *a, const void *b)
{
	return by_name(a, b);
}

static void
sort_rules(struct top_view *v, enum top_sort sort)
{
	int (*order)(const void *a, const void *b) = compare_checks;

	switch (sort) {
	case TOP_BY_CHECKS:
		order = compare_checks;
		break;
	case TOP_BY_DENIED:
		order = compare_denied;
		break;
	case TOP_BY_FAILED:
		order = compare_failed;
		break;
	case TOP_BY_NAME:
		order = compare_names;
		break;
	}
	qsort(v->rules, v->rule_count, sizeof(*v->rules), order);
}

bool
top_view_make(struct top_view *v, const struct top_sample *now,
    const struct top_sample *then, enum top_sort sort)
{
	static const struct top_sample nothing;

	memset(v, 0, sizeof(*v));
	v->now = now;
	if (now->status == NULL)
		return true;
	if (then == NULL)
		then = &nothing;
	if (then->status != NULL) {
		v->restarted = top_is_another(now, then);
		v->seconds = (count_of(now->status, "uptime_ms") -
				 count_of(then->status, "uptime_ms")) /
			     1e3;
		v->known = !v->restarted && v->seconds > 0;
	}
	view_decisions(v, then);
	if (view_rules(v, then) && view_servers(v, then) &&
	    view_limiters(v, then) && view_keys(v)) {
		sort_rules(v, sort);
		return true;
	}
	top_view_fini(v);
	return false;
}

void
top_view_fini(struct top_view *v)
{
	free(v->rules);
	free(v->servers);
	free(v->limiters);
	free(v->keys);
	memset(v, 0, sizeof(*v));
}
