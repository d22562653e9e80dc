/*
 * What came of the checks of each rule, and of ad-hoc ones: these have an empty
 * rule, and those that name neither a rule nor a tenant that there is have no
 * tenant, too. So whatever clients ask for makes no series.
 */
#include "daemon/metrics_private.h"

#include <stdio.h>

/* Its counters are a tally; of those of rules, rule_counters are its own. */
static void
own_all(struct metrics_owners *o, const struct setup *s)
{
	const struct config *c = s->config;
	const struct config_rule *r;
	size_t i;

	for (i = 0; i < c->rule_count; i++) {
		r = &c->rules[i];
		metrics_own(o, setup_tally(s, r, NULL), "tenant",
		    c->tenants[r->tenant].name, "rule", r->name, NULL);
	}
	for (i = 0; i < c->tenant_count; i++)
		metrics_own(o, setup_tally(s, NULL, &c->tenants[i]), "tenant",
		    c->tenants[i].name, "rule", "", NULL);
	metrics_own(
	    o, setup_tally(s, NULL, NULL), "tenant", "", "rule", "", NULL);
}

static void
name_kinds(char names[TALLY_KIND_COUNT][96])
{
	for (int k = 0; k < TALLY_KIND_COUNT; k++)
		snprintf(names[k], 96,
		    "outcome=\"%s\",source=\"%s\",reason=\"%s\"",
		    ipc_outcome_name(tally_kinds[k].outcome),
		    ipc_source_name(tally_kinds[k].source),
		    ipc_reason_name(tally_kinds[k].reason));
}

/* Common kinds are shown before there is one, but not of what has no tenant. */
static void
write_decisions(struct metrics_writer *w, const struct metrics_owners *o)
{
	char names[TALLY_KIND_COUNT][96];
	const struct tally *t;
	bool zeroes;

	name_kinds(names);
	metrics_write_family(w, METRIC_DECISIONS);
	for (size_t i = 0; i < o->count; i++) {
		t = o->list[i].counters;
		zeroes = i + 1 < o->count;
		for (int k = 0; k < TALLY_KIND_COUNT; k++) {
			if (t->kinds[k] == 0 &&
			    !(zeroes && tally_kinds[k].common))
				continue;
			metrics_write_count(w, METRIC_DECISIONS,
			    o->list[i].labels, names[k], t->kinds[k]);
		}
	}
}

/* There is none of a rule that nothing was decided of: with thousands of rules
 * they are most of the text. */
static void
write_durations(struct metrics_writer *w, const struct metrics_owners *o)
{
	const struct tally *t;

	metrics_write_family(w, METRIC_DURATION);
	for (size_t i = 0; i < o->count; i++) {
		t = o->list[i].counters;
		if (tally_total(t) > 0)
			metrics_write_histogram(
			    w, METRIC_DURATION, o->list[i].labels, &t->latency);
	}
}

static void
write_permitted(struct metrics_writer *w, const struct metrics_owners *o)
{
	const struct tally *t;

	metrics_write_family(w, METRIC_PERMITTED);
	for (size_t i = 0; i < o->count; i++) {
		t = o->list[i].counters;
		metrics_write_count(
		    w, METRIC_PERMITTED, o->list[i].labels, NULL, t->permitted);
	}
}

void
metrics_of_rules(struct metrics_writer *w, const struct agent *a)
{
	const struct setup *s = a->setup;
	struct metrics_owners o = {0};

	own_all(&o, s);
	w->failed |= o.failed;
	if (!w->failed) {
		write_decisions(w, &o);
		write_permitted(w, &o);
		write_durations(w, &o);
		metrics_write_family(w, METRIC_RULE_REPORTS);
		for (size_t i = 0; i < s->config->rule_count; i++)
			metrics_write_count(w, METRIC_RULE_REPORTS,
			    o.list[i].labels, NULL, s->counters[i].reports);
	}
	metrics_own_free(&o);
}
