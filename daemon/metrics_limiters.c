/* The limiters and error controls of this host, and the local ones of rules;
 * each with all of its keys, which make no series of their own. */
#include "daemon/metrics_private.h"

#include <stdlib.h>

/* Of one kind: whose they are, and how many keys each has. */
struct group {
	struct metrics_owners owners;
	uint64_t *keys;
};

static void
group_init(struct group *g, size_t most)
{
	g->owners = (struct metrics_owners){0};
	/* One more: none at all is no lack of memory. */
	g->keys = calloc(most + 1, sizeof(*g->keys));
	g->owners.failed = g->keys == NULL;
}

/* After metrics_own(): how many keys it has. */
static void
set_keys(struct group *g, uint64_t keys)
{
	if (!g->owners.failed)
		g->keys[g->owners.count - 1] = keys;
}

/* Ends the group. */
static void
write_group(struct metrics_writer *w, struct group *g,
    const struct metrics_sources *sources, enum metric keys)
{
	w->failed |= g->owners.failed;
	metrics_write_sources(w, sources->list, sources->count, &g->owners);
	metrics_write_family(w, keys);
	for (size_t i = 0; !w->failed && i < g->owners.count; i++)
		metrics_write_count(
		    w, keys, g->owners.list[i].labels, NULL, g->keys[i]);
	metrics_own_free(&g->owners);
	free(g->keys);
}

static void
write_limiters(struct metrics_writer *w, const struct setup *s, int64_t now)
{
	const struct config *c = s->config;
	struct limiters_shown shown;
	struct group g;

	group_init(&g, c->limiter_count);
	for (size_t i = 0; i < c->limiter_count; i++) {
		shown = limiters_show(s->limiters, &c->limiters[i], now);
		metrics_own(&g.owners, shown.counters, "limiter",
		    c->limiters[i].name, NULL);
		set_keys(&g, shown.keys);
	}
	write_group(w, &g, &metrics_limiter, METRIC_LIMITER_KEYS);
}

static void
write_local(struct metrics_writer *w, const struct setup *s, int64_t now)
{
	const struct config *c = s->config;
	struct limiters_shown shown;
	struct group g;

	group_init(&g, c->rule_count);
	for (size_t i = 0; i < c->rule_count; i++) {
		if (c->rules[i].on_failure != FAILURE_LOCAL)
			continue;
		shown = limiters_show_local(s->limiters, &c->rules[i], now);
		metrics_own(
		    &g.owners, shown.counters, "rule", c->rules[i].name, NULL);
		set_keys(&g, shown.keys);
	}
	write_group(w, &g, &metrics_local, METRIC_LOCAL_KEYS);
}

static void
write_error_controls(
    struct metrics_writer *w, const struct setup *s, int64_t now)
{
	const struct config *c = s->config;
	struct limiters_error_shown shown;
	struct group g;

	group_init(&g, c->error_control_count);
	for (size_t i = 0; i < c->error_control_count; i++) {
		shown = limiters_show_error(
		    s->limiters, &c->error_controls[i], now);
		metrics_own(&g.owners, shown.counters, "error_control",
		    c->error_controls[i].name, NULL);
		set_keys(&g, shown.keys);
	}
	write_group(w, &g, &metrics_error_control, METRIC_ERROR_KEYS);
}

void
metrics_of_limiters(
    struct metrics_writer *w, const struct agent *a, int64_t now)
{
	write_limiters(w, a->setup, now);
	write_local(w, a->setup, now);
	write_error_controls(w, a->setup, now);
}
