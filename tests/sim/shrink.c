/*
 * Delta debugging: every edit makes a scenario smaller in one way, and is kept
 * when the smaller one still fails. It is over when no edit is kept any more.
 *
 * An edit has variants, counted from 0, and tells when it has no more of them.
 * None ever makes a number greater, so this comes to an end.
 */
#include <string.h>

#include "tests/sim/trial.h"

/* A scenario that still shrinks after so many is small enough. */
#define TRIES_MAX 20000

typedef bool edit(struct scenario *sc, uint32_t variant);

static void
remove_at(void *list, size_t size, uint32_t count, uint32_t i)
{
	char *at = (char *)list + i * size;

	memmove(at, at + size, (count - i - 1) * size);
}

static bool
drop_op(struct scenario *sc, uint32_t i)
{
	if (i >= sc->ops)
		return false;
	remove_at(sc->op, sizeof(*sc->op), sc->ops--, i);
	return true;
}

static bool
drop_view(struct scenario *sc, uint32_t i)
{
	if (i >= sc->views)
		return false;
	remove_at(sc->view, sizeof(*sc->view), sc->views--, i);
	sc->view[0].at = 0;
	return true;
}

static bool
drop_stall(struct scenario *sc, uint32_t i)
{
	if (i >= sc->stalls)
		return false;
	remove_at(sc->stall, sizeof(*sc->stall), sc->stalls--, i);
	return true;
}

/* Two stalls become one from the first until the other; any two. */
static bool
join_stalls(struct scenario *sc, uint32_t variant)
{
	const uint32_t a = variant / SCENARIO_STALLS_MAX,
		       b = variant % SCENARIO_STALLS_MAX;

	if (a >= sc->stalls)
		return false;
	if (b < sc->stalls && sc->stall[a].from < sc->stall[b].from) {
		sc->stall[a].until = sc->stall[b].until;
		drop_stall(sc, b);
	}
	return true;
}

static void
unlist(struct scenario_view *v, uint32_t server)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->count; i++) {
		if (v->listed[i] == server)
			continue;
		v->listed[kept] = v->listed[i];
		v->listed[kept] -= v->listed[kept] > server;
		kept++;
	}
	v->count = kept;
}

static bool
drop_server(struct scenario *sc, uint32_t server)
{
	const uint64_t below = (UINT64_C(1) << (server & 63)) - 1;

	if (server >= sc->servers)
		return false;
	for (uint32_t i = 0; i < sc->views; i++)
		unlist(&sc->view[i], server);
	for (uint32_t i = 0; i < sc->ops; i++)
		sc->op[i].deaf =
		    (sc->op[i].deaf & below) | (sc->op[i].deaf >> 1 & ~below);
	remove_at(sc->server, sizeof(*sc->server), sc->servers--, server);
	return sc->servers > 0;
}

/* The variant-th place in the lists of all memberships. */
static bool
drop_listed(struct scenario *sc, uint32_t variant)
{
	for (uint32_t i = 0; i < sc->views; i++) {
		struct scenario_view *v = &sc->view[i];

		if (variant < v->count) {
			remove_at(v->listed, 1, v->count--, variant);
			return true;
		}
		variant -= v->count;
	}
	return false;
}

static bool
drop_outage(struct scenario *sc, uint32_t variant)
{
	struct scenario_server *s;

	for (s = sc->server; s < sc->server + sc->servers; s++) {
		if (variant < s->outages) {
			remove_at(s->outage, sizeof(*s->outage), s->outages--,
			    variant);
			return true;
		}
		variant -= s->outages;
	}
	return false;
}

static bool
calm_server(struct scenario *sc, uint32_t variant)
{
	struct scenario_server *s = &sc->server[variant / 5];

	if (variant / 5 >= sc->servers)
		return false;
	switch (variant % 5) {
	case 0:
		s->lost = 0;
		break;
	case 1:
		s->doubled = 0;
		break;
	case 2:
		s->corrupted = 0;
		break;
	case 3:
		s->jitter_us = 0;
		break;
	case 4:
		s->outages = 0;
		break;
	}
	return true;
}

static bool
calm_op(struct scenario *sc, uint32_t variant)
{
	struct scenario_op *op = &sc->op[variant / 5];

	if (variant / 5 >= sc->ops)
		return false;
	switch (variant % 5) {
	case 0:
		op->again = false;
		break;
	case 1:
		op->patience = SCENARIO_NEVER;
		break;
	case 2:
		op->gives_up = SCENARIO_NEVER;
		break;
	case 3:
		op->refused = 0;
		break;
	case 4:
		op->refused_first = false;
		break;
	}
	return true;
}

/* One server is not heard by one operation: fewer lines in the script. */
static bool
deafen(struct scenario *sc, uint32_t variant)
{
	const uint32_t op = variant / sc->servers;

	if (op >= sc->ops)
		return false;
	sc->op[op].deaf |= UINT64_C(1) << variant % sc->servers;
	return true;
}

static bool
plain_policy(struct scenario *sc, uint32_t variant)
{
	struct scenario_policy *p = &sc->policy;

	switch (variant) {
	case 0:
		p->gap.kind = GROWTH_FIXED;
		return true;
	case 1:
		p->preference.kind = GROWTH_FIXED;
		return true;
	case 2:
		p->first_round = false;
		return true;
	case 3:
		p->delivery = false;
		return true;
	case 4:
		p->suspect_after = 0;
		return true;
	case 5:
		p->final_units = p->final_preference = 0;
		return true;
	case 6:
		if (p->gap.kind == GROWTH_FIXED)
			p->gap.by = p->gap.most = 0;
		return true;
	case 7:
		if (p->preference.kind == GROWTH_FIXED)
			p->preference.by = p->preference.most = 0;
		return true;
	}
	return false;
}

static bool
lower_policy(struct scenario *sc, uint32_t variant)
{
	struct scenario_policy *p = &sc->policy;
	uint32_t *const numbers[] = {&p->replays, &p->gap.first, &p->gap.by,
	    &p->gap.most, &p->preference.first, &p->preference.by,
	    &p->preference.most, &p->final_units, &p->final_preference,
	    &p->suspect_after, &p->unit_ms};
	/* To 0 or 1, else by a half, a quarter, ... and at last by 1. */
	const uint32_t variants = 33, step = variant % variants;
	uint32_t *n;

	if (variant >= variants * sizeof(numbers) / sizeof(*numbers))
		return false;
	n = numbers[variant / variants];
	if (step == 0)
		*n = *n > 1;
	else if (step < variants - 1)
		*n -= *n >> step;
	else if (*n > 0)
		(*n)--;
	return true;
}

static void
halve(int64_t *at)
{
	if (*at != SCENARIO_NEVER)
		*at /= 2;
}

/* All of it at half the pace. */
static bool
shorten(struct scenario *sc, uint32_t variant)
{
	for (uint32_t i = 0; i < sc->servers; i++) {
		halve(&sc->server[i].delay_us);
		for (uint32_t k = 0; k < sc->server[i].outages; k++) {
			halve(&sc->server[i].outage[k].from);
			halve(&sc->server[i].outage[k].until);
		}
	}
	for (uint32_t i = 0; i < sc->views; i++)
		halve(&sc->view[i].at);
	for (uint32_t i = 0; i < sc->ops; i++) {
		halve(&sc->op[i].at);
		halve(&sc->op[i].age);
		halve(&sc->op[i].patience);
		halve(&sc->op[i].gives_up);
	}
	for (uint32_t i = 0; i < sc->stalls; i++) {
		halve(&sc->stall[i].from);
		halve(&sc->stall[i].until);
	}
	sc->policy.unit_ms /= 2;
	return variant == 0;
}

/* The n-th time in the scenario, or NULL. */
static int64_t *
time_at(struct scenario *sc, uint32_t n)
{
	const uint32_t of_server = 2 + 2 * SCENARIO_OUTAGES_MAX;

	if (n < of_server * sc->servers) {
		struct scenario_server *s = &sc->server[n / of_server];
		struct scenario_span *o = &s->outage[(n % of_server) / 2 % 2];

		if (n % of_server >= 4)
			return n % 2 == 0 ? &s->delay_us : &s->jitter_us;
		return n % 2 == 0 ? &o->from : &o->until;
	}
	n -= of_server * sc->servers;
	if (n < 4 * sc->ops) {
		struct scenario_op *op = &sc->op[n / 4];
		int64_t *const times[] = {
		    &op->at, &op->age, &op->patience, &op->gives_up};

		return times[n % 4];
	}
	n -= 4 * sc->ops;
	if (n < sc->views)
		return &sc->view[n].at;
	n -= sc->views;
	if (n < 2 * sc->stalls)
		return n % 2 == 0 ? &sc->stall[n / 2].from
				  : &sc->stall[n / 2].until;
	return NULL;
}

/* Less, and rounder. */
static bool
lower_time(struct scenario *sc, uint32_t variant)
{
	static const int64_t round_to[] = {
	    10000000, 1000000, 100000, 20000, 10000, 5000, 1000, 100, 10};
	const uint32_t variants = 2 + sizeof(round_to) / sizeof(*round_to);
	int64_t *at = time_at(sc, variant / variants);

	if (at == NULL)
		return false;
	if (*at == SCENARIO_NEVER)
		return true;
	if (variant % variants == 0)
		*at = 0;
	else if (variant % variants == 1)
		*at /= 2;
	else
		*at -= *at % round_to[variant % variants - 2];
	return true;
}

/* What scenario.h promises. */
static bool
is_sound(const struct scenario *sc)
{
	if (sc->servers == 0 || sc->ops == 0 || sc->views == 0 ||
	    sc->view[0].at != 0)
		return false;
	for (uint32_t i = 1; i < sc->views; i++) {
		if (sc->view[i].at < sc->view[i - 1].at)
			return false;
	}
	for (uint32_t i = 1; i < sc->ops; i++) {
		if (sc->op[i].at < sc->op[i - 1].at)
			return false;
	}
	return true;
}

/* Does the edited one serve as well? */
static bool
serves(struct trial *t, const struct scenario *sc, unsigned *tried)
{
	if (!is_sound(sc))
		return false;
	++*tried;
	return !trial_run(t, sc);
}

/* Keeps every variant of an edit that serves. Returns whether one did. */
static bool
apply(struct trial *t, edit *make, struct scenario *sc, unsigned *tried)
{
	struct scenario next;
	uint32_t variant = 0;
	bool kept = false;

	while (*tried < TRIES_MAX) {
		memcpy(&next, sc, sizeof(next));
		if (!make(&next, variant))
			break;
		if (memcmp(&next, sc, sizeof(next)) != 0 &&
		    serves(t, &next, tried)) {
			memcpy(sc, &next, sizeof(next));
			kept = true;
		} else
			variant++;
	}
	return kept;
}

unsigned
trial_shrink(struct trial *t, struct scenario *sc)
{
	static edit *const edits[] = {drop_op, drop_view, drop_stall,
	    join_stalls, drop_server, drop_listed, drop_outage, calm_server,
	    calm_op, plain_policy, deafen, shorten, lower_policy, lower_time};
	unsigned tried = 0;
	bool smaller = true;

	while (smaller) {
		smaller = false;
		for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++)
			smaller = apply(t, edits[i], sc, &tried) || smaller;
	}
	trial_run(t, sc);
	return tried;
}
