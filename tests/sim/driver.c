/*
 * The run: one virtual event loop that wakes when something is due, reads what
 * can be read, judges, and then does what callers and discovery ask for.
 */
#include "tests/sim/driver_private.h"

#include <stdlib.h>
#include <string.h>

struct driver *
driver_new(void)
{
	struct driver *d = calloc(1, sizeof(*d));

	if (d == NULL)
		abort();
	return d;
}

void
driver_free(struct driver *d)
{
	if (d == NULL)
		return;
	free(d->queue.list);
	free(d);
}

const char *
driver_flaw_name(enum driver_flaw flaw)
{
	switch (flaw) {
	case FLAW_NONE:
		return "none";
	case FLAW_YOUNGEST:
		return "the youngest answer decides";
	case FLAW_NO_PREFERENCE:
		return "no preference";
	case FLAW_LONG_PREFERENCE:
		return "preference to the end of the round";
	case FLAW_LATE_DELIVERY:
		return "delivery after the completion";
	case FLAW_NO_DELIVERY:
		return "no delivery";
	case FLAW_DELIVERS_TO_ALL:
		return "delivery to all";
	case FLAW_TIMER_FIRST:
		return "the timer goes before datagrams";
	case FLAW_NO_FINAL:
		return "no final interval";
	case FLAW_PATIENT:
		return "no caller's deadline";
	case FLAW_TRUSTING:
		return "suspects are preferred";
	case FLAW_FORGIVING:
		return "misses are not counted";
	case FLAW_UNFORGIVING:
		return "late answers clear nothing";
	case FLAW_LIVE_MEMBERSHIP:
		return "who left the membership is not heard";
	case DRIVER_FLAWS:
		break;
	}
	return "unknown";
}

bool
driver_flaw_judges(enum driver_flaw flaw)
{
	return flaw != FLAW_NONE && flaw != FLAW_FORGIVING &&
	       flaw != FLAW_UNFORGIVING;
}

static struct schedule
growth(const struct scenario_growth *g)
{
	struct schedule s = {
	    .initial = g->first, .growth = g->by, .max = g->most};

	switch (g->kind) {
	case GROWTH_FIXED:
		s.kind = SCHEDULE_FIXED;
		break;
	case GROWTH_LINEAR:
		s.kind = SCHEDULE_LINEAR;
		break;
	case GROWTH_EXPONENTIAL:
		s.kind = SCHEDULE_EXPONENTIAL;
		break;
	}
	return s;
}

static void
count_growth(struct reach *r, const struct scenario_growth *g)
{
	switch (g->kind) {
	case GROWTH_FIXED:
		r->count[REACH_FIXED]++;
		return;
	case GROWTH_LINEAR:
		r->count[REACH_LINEAR]++;
		return;
	case GROWTH_EXPONENTIAL:
		r->count[REACH_EXPONENTIAL]++;
		return;
	}
}

static void
count_policy(struct reach *r, const struct scenario_policy *p)
{
	count_growth(r, &p->gap);
	if (!p->first_round)
		count_growth(r, &p->preference);
	r->count[REACH_FIRST_ROUND] += p->first_round;
	r->count[REACH_NO_FINAL] += p->final_units == 0;
	r->count[REACH_NO_DELIVERY] += !p->delivery;
}

/* A plan that breaks its policy. */
static void
doctor(struct policy_plan *plan, enum driver_flaw flaw)
{
	const uint32_t last = plan->rounds - 1;
	const bool long_pref = flaw == FLAW_LONG_PREFERENCE;

	if (flaw == FLAW_NO_PREFERENCE || long_pref) {
		for (uint32_t k = 0; k <= last; k++)
			plan->prefer_end_us[k] =
			    long_pref ? plan->round_end_us[k]
			    : k > 0   ? plan->round_end_us[k - 1]
				      : 0;
		plan->final_prefer_end_us =
		    long_pref ? plan->horizon_us : plan->round_end_us[last];
	} else if (flaw == FLAW_NO_DELIVERY)
		plan->completion_delivery = false;
	else if (flaw == FLAW_NO_FINAL)
		plan->horizon_us = plan->round_end_us[last];
}

/* Returns NULL, or the field for which the policy was refused. */
static const char *
make_plan(struct driver *d)
{
	const struct scenario_policy *p = &d->sc->policy;
	const struct policy policy = {
	    .unit_ms = p->unit_ms,
	    .replay_count = p->replays,
	    .gap = growth(&p->gap),
	    .preference = growth(&p->preference),
	    .first_round = p->first_round,
	    .final_units = p->final_units,
	    .final_preference_units = p->final_preference,
	    .completion_delivery = p->delivery,
	    .suspect_after = p->suspect_after,
	};

	struct policy_refusal why;

	if (policy_plan_init(&d->true_plan, &policy, &why) != 0)
		return why.key != NULL ? why.key : "horizon";
	d->plan = d->true_plan;
	doctor(&d->plan, d->flaw);
	return NULL;
}

/* Discovery found these; operations under way must not notice. */
static void
change_members(struct driver *d, const struct scenario_view *view)
{
	struct members_target targets[SCENARIO_LISTED_MAX] = {0};
	struct members *old = d->members;

	for (uint32_t i = 0; i < view->count; i++) {
		targets[i].server_id = d->sc->server[view->listed[i]].id;
		targets[i].addr_count = 1;
		targets[i].addrs[0] =
		    (struct endpoint){.family = 4, .port = view->listed[i]};
	}
	d->members = members_build(targets, view->count, old, NULL);
	if (d->members == NULL)
		abort();
	members_unref(old);
	if (d->views++ == 0)
		return;
	d->reach->count[REACH_CHANGES]++;
	for (uint32_t i = 0; i < d->ops; i++) {
		if (!d->op[i].over)
			d->reach->count[REACH_CHANGES_UNDER]++;
		driver_check_snapshot(d, &d->op[i]);
	}
}

static int64_t
cancel_at(const struct driver *d, uint32_t i)
{
	const struct scenario_op *op = &d->sc->op[i];

	if (d->op[i].called || op->gives_up == SCENARIO_NEVER)
		return SCENARIO_NEVER;
	return op->at + op->gives_up;
}

/* When the next of discovery's or the callers' doings is. */
static int64_t
next_doing(const struct driver *d)
{
	int64_t at = SCENARIO_NEVER;

	if (d->views < d->sc->views)
		at = d->sc->view[d->views].at;
	if (d->ops < d->sc->ops && d->sc->op[d->ops].at < at)
		at = d->sc->op[d->ops].at;
	for (uint32_t i = 0; i < d->ops; i++) {
		if (cancel_at(d, i) < at)
			at = cancel_at(d, i);
	}
	return at;
}

/* One of those that are due; by time, then membership, begins, cancels. */
static bool
do_next(struct driver *d)
{
	const int64_t at = next_doing(d);

	if (at > d->now)
		return false;
	if (d->views < d->sc->views && d->sc->view[d->views].at == at)
		change_members(d, &d->sc->view[d->views]);
	else if (d->ops < d->sc->ops && d->sc->op[d->ops].at == at)
		driver_op_begin(d, d->ops++);
	else {
		for (uint32_t i = 0; i < d->ops; i++) {
			if (cancel_at(d, i) == at) {
				driver_op_cancel(d, &d->op[i]);
				break;
			}
		}
	}
	return true;
}

static int64_t
next_due(const struct driver *d)
{
	int64_t at = next_doing(d);

	if (d->queue.count > 0 && d->queue.list[0].at < at)
		at = d->queue.list[0].at;
	for (uint32_t i = 0; i < d->ops; i++) {
		if (!d->op[i].over && d->op[i].due < at)
			at = d->op[i].due;
	}
	return at;
}

static void
turn(struct driver *d)
{
	struct network_datagram g;

	if (d->flaw == FLAW_TIMER_FIRST) {
		for (uint32_t i = 0; i < d->ops; i++)
			driver_op_judge(d, &d->op[i]);
	}
	while (d->queue.count > 0 && d->queue.list[0].at <= d->now) {
		g = driver_queue_take(&d->queue);
		driver_read(d, &g);
	}
	for (uint32_t i = 0; i < d->ops; i++)
		driver_op_judge(d, &d->op[i]);
	while (do_next(d))
		;
	for (uint32_t i = 0; i < d->ops; i++)
		driver_check_rest(d, &d->op[i]);
}

static void
check_completions(struct driver *d)
{
	for (uint32_t i = 0; i < d->ops; i++) {
		if (!d->op[i].over)
			driver_broken(d, &d->op[i], "it never completed");
		members_unref(d->op[i].members);
		d->op[i].members = NULL;
	}
}

const char *
driver_run(struct driver *d, const struct scenario *sc, enum driver_flaw flaw,
    struct journal *out, struct reach *reach, uint32_t *op)
{
	struct driver_queue queue = d->queue;
	int64_t due;

	memset(d, 0, sizeof(*d));
	d->sc = sc;
	d->flaw = flaw;
	d->out = out;
	d->reach = reach;
	d->queue.list = queue.list;
	d->queue.room = queue.room;
	d->now = -1;
	reach->count[REACH_SCENARIOS]++;
	out->refused = make_plan(d);
	if (out->refused != NULL) {
		reach->count[REACH_REFUSED]++;
		return NULL;
	}
	count_policy(reach, &sc->policy);
	for (uint32_t i = 0; i < sc->servers; i++)
		suspect_init(&d->suspect[i]);
	while ((due = next_due(d)) != SCENARIO_NEVER) {
		if (due <= d->now) { /* all that was due has been done */
			driver_broken(d, &d->op[0], "a timeout in the past");
			break;
		}
		d->now = scenario_awake(sc, due);
		reach->count[REACH_STALLS] += d->now > due;
		turn(d);
	}
	check_completions(d);
	members_unref(d->members);
	d->members = NULL;
	*op = d->broken_op;
	return d->broken[0] != '\0' ? d->broken : NULL;
}
