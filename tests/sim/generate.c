/*
 * What is random in a scenario, and how likely; see generate.h. No expression
 * throws its dice in an order that is the compiler's choice.
 */
#include "tests/sim/generate.h"

#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
/* No scenario takes longer than what its times can hold many times over. */
#define SPAN_MAX (INT64_C(1) << 44)

struct dice {
	uint64_t state;
	int64_t span;  /* about a horizon */
	int64_t whole; /* about what the operations begin in */
	int64_t tick;
};

uint64_t
generate_seed(uint64_t run, uint64_t i)
{
	return run + i * GOLDEN;
}

static uint64_t
random_bits(struct dice *d)
{
	return scenario_mix(d->state += GOLDEN);
}

static uint32_t
below(struct dice *d, uint32_t n)
{
	return (uint32_t)((random_bits(d) >> 32) * n >> 32);
}

static uint32_t
between(struct dice *d, uint32_t low, uint32_t high)
{
	return low + below(d, high - low + 1);
}

/* Once in n. */
static bool
once_in(struct dice *d, uint32_t n)
{
	return below(d, n) == 0;
}

/* A time in ticks, so that it often meets another. */
static int64_t
time_below(struct dice *d, int64_t us)
{
	int64_t at = us > 0 ? (int64_t)(random_bits(d) % (uint64_t)us) : 0;

	return once_in(d, 16) ? at : at - at % d->tick;
}

/* A small number, now and then any. */
static uint32_t
number(struct dice *d, uint32_t low, uint32_t high)
{
	uint32_t n;

	if (!once_in(d, 500))
		return between(d, low, high);
	n = (uint32_t)random_bits(d);
	return n >> below(d, 31);
}

static enum scenario_growth_kind
kind(struct dice *d)
{
	static const enum scenario_growth_kind kinds[] = {
	    GROWTH_FIXED, GROWTH_FIXED, GROWTH_LINEAR, GROWTH_EXPONENTIAL};

	return kinds[below(d, 4)];
}

static void
make_gap(struct dice *d, struct scenario_growth *g)
{
	g->kind = kind(d);
	g->first = number(d, 1, 4);
	g->by = number(d, g->kind == GROWTH_EXPONENTIAL, 3);
	g->most = g->first;
	if (g->most < UINT32_MAX - 16)
		g->most += number(d, 0, 8) & 0xfffffff;
	if (g->most < g->first)
		g->most = g->first;
	if (g->kind == GROWTH_EXPONENTIAL && g->by == 0)
		g->by = 1;
}

/* Mostly one that fits into the gaps: as they grow, or not at all. */
static void
make_preference(struct dice *d, struct scenario_growth *p,
    const struct scenario_growth *gap)
{
	if (once_in(d, 12)) {
		make_gap(d, p);
		p->first = below(d, 3);
		return;
	}
	*p = *gap;
	p->first = (uint32_t)(random_bits(d) % ((uint64_t)gap->first + 1));
	if (once_in(d, 2))
		p->first = gap->first;
	if (once_in(d, 2))
		p->kind = GROWTH_FIXED;
	else if (p->kind == GROWTH_LINEAR)
		p->by = (uint32_t)(random_bits(d) % ((uint64_t)p->by + 1));
}

static void
make_policy(struct dice *d, struct scenario_policy *p)
{
	static const uint32_t unit[] = {1, 2, 5, 10, 20, 20, 50, 100};
	uint64_t most;

	p->unit_ms = once_in(d, 100) ? number(d, 1, 100000) : unit[below(d, 8)];
	p->replays = below(d, 4);
	if (once_in(d, 12))
		p->replays = once_in(d, 8) ? below(d, 33) : below(d, 8);
	make_gap(d, &p->gap);
	make_preference(d, &p->preference, &p->gap);
	p->final_units = once_in(d, 3) ? 0 : number(d, 1, 4);
	p->first_round = once_in(d, 5);
	most = (uint64_t)p->final_units + once_in(d, 40);
	if (!p->first_round || once_in(d, 20))
		p->final_preference = (uint32_t)(random_bits(d) % (most + 1));
	p->delivery = !once_in(d, 4);
	p->suspect_after = once_in(d, 3) ? 0 : between(d, 1, 4);
	if (once_in(d, 3))
		p->suspect_after = p->suspect_after > 0;
}

/* How long the schedule takes, roughly; it only spaces things out. */
static void
measure(struct dice *d, const struct scenario_policy *p, uint32_t ops)
{
	const uint64_t units = (uint64_t)p->gap.first * (p->replays + 1) +
			       p->final_units +
			       (uint64_t)p->gap.by * p->replays / 2;
	static const int64_t part[] = {1, 2, 4, 10, 1000};
	/* None is an error that is to be refused, after this. */
	const int64_t unit_us =
	    p->unit_ms > 0 ? (int64_t)p->unit_ms * 1000 : 1000;

	d->span = SPAN_MAX;
	if (units < (uint64_t)(SPAN_MAX / unit_us))
		d->span = (int64_t)units * unit_us;
	d->whole = d->span * (1 + below(d, ops + 1));
	d->tick = unit_us / part[below(d, 5)];
}

static uint64_t
make_id(struct dice *d, const struct scenario *sc, uint32_t starts)
{
	const uint64_t place = random_bits(d) & 0x7fffff;
	uint64_t start = below(d, starts);

	/* The same age, or far older than its full id makes it look. */
	if (sc->servers > 0 && once_in(d, 3))
		start = sc->server[below(d, sc->servers)].id >> 23;
	else if (once_in(d, 16))
		start = random_bits(d) >> 23;
	return start << 23 | (once_in(d, 4) ? place & 3 : place);
}

static bool
is_taken(const struct scenario *sc, uint64_t id)
{
	for (uint32_t i = 0; i < sc->servers; i++) {
		if (sc->server[i].id == id)
			return true;
	}
	return false;
}

static void
make_link(struct dice *d, struct scenario_server *s, uint32_t mood)
{
	static const uint16_t loss[] = {0, 0, 150, 500, 850};
	const int64_t unit = d->tick * 4;

	s->lost = once_in(d, 4) ? (uint16_t)below(d, 1001) : loss[mood];
	s->doubled = once_in(d, 3) ? (uint16_t)between(d, 50, 600) : 0;
	s->corrupted = once_in(d, 4) ? (uint16_t)between(d, 50, 700) : 0;
	switch (below(d, 4)) {
	case 0:
		s->delay_us = time_below(d, unit);
		break;
	case 1:
		s->delay_us = time_below(d, d->span / 2);
		break;
	case 2:
		s->delay_us = time_below(d, 2 * d->span);
		break;
	default:
		s->delay_us = 1 + below(d, 1000);
	}
	if (once_in(d, 2))
		s->jitter_us = time_below(d, once_in(d, 2) ? d->span : unit);
}

/* The life of a server: it may be dead for a while, or from some time on. */
static void
make_outages(struct dice *d, struct scenario_server *s, uint32_t mood)
{
	struct scenario_span *o = &s->outage[0];

	if (!once_in(d, mood == 1 ? 2 : 5))
		return;
	s->outages = 1;
	o->from = once_in(d, 2) ? 0 : time_below(d, d->whole);
	o->until = once_in(d, 3) ? SCENARIO_NEVER
				 : o->from + time_below(d, d->whole + d->span);
	if (o->until == SCENARIO_NEVER || !once_in(d, 4))
		return;
	s->outages = 2;
	s->outage[1].from = o->until + time_below(d, d->whole);
	s->outage[1].until = s->outage[1].from + time_below(d, d->whole);
}

static void
make_servers(struct dice *d, struct scenario *sc)
{
	const uint32_t count = once_in(d, 120)
				   ? between(d, 6, SCENARIO_SERVERS_MAX)
				   : 1 + below(d, below(d, 6) + 1);
	const uint32_t starts = once_in(d, 2) ? 3 : 50000000;
	const uint32_t mood = below(d, 5);
	struct scenario_server *s;
	uint64_t id;

	while (sc->servers < count) {
		id = make_id(d, sc, starts);
		if (is_taken(sc, id))
			continue;
		s = &sc->server[sc->servers];
		*s = (struct scenario_server){.id = id};
		make_link(d, s, mood);
		make_outages(d, s, mood);
		sc->servers++;
	}
}

static void
make_view(struct dice *d, const struct scenario *sc, struct scenario_view *v)
{
	const uint32_t most = once_in(d, 3) ? sc->servers : 1;
	const uint32_t left_out = most > 1 ? below(d, most) : 0;
	uint32_t with;
	uint8_t keep;

	v->count = 0;
	if (once_in(d, 80))
		return;
	for (uint32_t i = 0; i < sc->servers; i++) {
		if (i < left_out && once_in(d, 2))
			continue;
		v->listed[v->count++] = (uint8_t)i;
		if (once_in(d, 20) && v->count < sc->servers + 8)
			v->listed[v->count++] = (uint8_t)i;
	}
	for (uint32_t i = v->count; i > 1; i--) {
		with = below(d, i);
		keep = v->listed[i - 1];
		v->listed[i - 1] = v->listed[with];
		v->listed[with] = keep;
	}
}

static void
make_views(struct dice *d, struct scenario *sc)
{
	int64_t at = 0;

	sc->views = 1;
	if (once_in(d, 3))
		sc->views += between(d, 1, SCENARIO_VIEWS_MAX - 1);
	for (uint32_t i = 0; i < sc->views; i++) {
		sc->view[i].at = at;
		make_view(d, sc, &sc->view[i]);
		at += time_below(d, d->whole / 2 + d->span / 2);
	}
}

static void
make_op(struct dice *d, struct scenario_op *op, uint32_t key)
{
	*op = (struct scenario_op){
	    .key = key,
	    .at = time_below(d, d->whole),
	    .patience = SCENARIO_NEVER,
	    .gives_up = SCENARIO_NEVER,
	};
	if (once_in(d, 4)) /* it took its time to the agent */
		op->age = below(d, 1000);
	if (once_in(d, 12)) {
		op->age = time_below(d, d->span + d->span / 4);
		op->again = true;
	}
	if (once_in(d, 5))
		op->patience = time_below(d, d->span + d->span / 4);
	if (once_in(d, 8))
		op->gives_up = time_below(d, d->span);
	if (once_in(d, 8))
		op->refused = (uint16_t)between(d, 100, 1000);
	op->refused_first = once_in(d, 50);
}

static void
make_ops(struct dice *d, struct scenario *sc, uint32_t ops)
{
	struct scenario_op op;
	uint32_t k;

	for (sc->ops = 0; sc->ops < ops; sc->ops++) {
		make_op(d, &op, sc->ops);
		for (k = sc->ops; k > 0 && sc->op[k - 1].at > op.at; k--)
			sc->op[k] = sc->op[k - 1];
		sc->op[k] = op;
	}
}

static void
make_stalls(struct dice *d, struct scenario *sc)
{
	struct scenario_span *s;

	sc->stalls = once_in(d, 2) ? 0 : between(d, 1, SCENARIO_STALLS_MAX);
	for (uint32_t i = 0; i < sc->stalls; i++) {
		s = &sc->stall[i];
		s->from = time_below(d, d->whole + d->span);
		s->until = s->from + time_below(d, once_in(d, 3) ? 2 * d->span
								 : d->span / 2);
	}
}

void
generate_scenario(struct scenario *sc, uint64_t seed)
{
	struct dice d = {.state = scenario_mix(seed)};
	uint32_t ops;

	sc->seed = seed;
	sc->weather = random_bits(&d);
	sc->servers = sc->ops = 0;
	sc->policy = (struct scenario_policy){0};
	make_policy(&d, &sc->policy);
	ops = 1 + below(&d, sc->policy.suspect_after > 0 ? 8 : 4);
	measure(&d, &sc->policy, ops);
	sc->tick_us = d.tick > 0 ? d.tick : 1;
	make_servers(&d, sc);
	make_views(&d, sc);
	make_ops(&d, sc, ops);
	make_stalls(&d, sc);
}
