/* Writes replay scripts; see transcript.h. */
#include "tests/sim/transcript.h"

#include <inttypes.h>

/* A line of a script is at most 512 long, which is what limits the ids. */
#define IDS_MAX 20

struct transcript {
	FILE *f;
	const struct scenario *sc;
	const struct journal_op *j;
	uint32_t op;
	int64_t cancel_at;
};

static void
write_growth(FILE *f, const char *name, const struct scenario_growth *g)
{
	switch (g->kind) {
	case GROWTH_FIXED:
		fprintf(f, " %s fixed %u", name, g->first);
		return;
	case GROWTH_LINEAR:
		fprintf(
		    f, " %s linear %u %u %u", name, g->first, g->by, g->most);
		return;
	case GROWTH_EXPONENTIAL:
		fprintf(f, " %s exponential %u %u %u", name, g->first, g->by,
		    g->most);
		return;
	}
}

static void
write_policy(FILE *f, const struct scenario_policy *p)
{
	fprintf(f, "policy unit %u replays %u", p->unit_ms, p->replays);
	write_growth(f, "gap", &p->gap);
	if (p->first_round)
		fprintf(f, " prefer first-round");
	else
		write_growth(f, "prefer", &p->preference);
	fprintf(f, " final %u prefer-final %u deliver %s", p->final_units,
	    p->final_preference, p->delivery ? "on" : "off");
	if (p->suspect_after > 0)
		fprintf(f, " suspect-after %u", p->suspect_after);
	fprintf(f, "\n");
}

/* As discovery listed them, so that the ranking is expected as well. */
static void
write_members(const struct transcript *t)
{
	const struct scenario_view *view = &t->sc->view[0];
	const struct journal_op *j = t->j;

	for (uint32_t i = 1; i < t->sc->views; i++) {
		if (t->sc->view[i].at <= t->sc->op[t->op].at)
			view = &t->sc->view[i];
	}
	if (view->count == 0 || view->count > IDS_MAX) {
		fprintf(t->f, "servers %u\n", j->ranked);
		return;
	}
	fprintf(t->f, "members");
	for (uint32_t i = 0; i < view->count; i++)
		fprintf(t->f, " %" PRIu64, t->sc->server[view->listed[i]].id);
	fprintf(t->f, "\nexpect order");
	for (uint32_t i = 0; i < j->ranked; i++)
		fprintf(t->f, " %" PRIu64, t->sc->server[j->rank[i]].id);
	fprintf(t->f, "\n");
}

static uint32_t
place_of(const struct journal_op *j, uint32_t server)
{
	uint32_t i = 0;

	while (i < j->ranked && j->rank[i] != server)
		i++;
	return i;
}

/* A set of the scenario's servers by their places in the snapshot. */
static void
write_set(const struct transcript *t, uint64_t set)
{
	for (uint32_t i = 0; i < t->j->ranked; i++) {
		if ((set >> t->j->rank[i] & 1) != 0)
			fprintf(t->f, " %u", i);
	}
}

static void
write_start(const struct transcript *t)
{
	const struct scenario_op *op = &t->sc->op[t->op];

	fprintf(t->f, "start");
	if (op->age > 0)
		fprintf(t->f, " age %" PRId64, op->age);
	if (op->patience != SCENARIO_NEVER)
		fprintf(t->f, " deadline %" PRId64, op->at + op->patience);
	if (t->j->suspected != 0) {
		fprintf(t->f, " suspect");
		write_set(t, t->j->suspected);
	}
	fprintf(t->f, "\n");
}

static void
write_read(const struct transcript *t, const struct network_datagram *d)
{
	switch (d->kind) {
	case NETWORK_ALLOWED:
	case NETWORK_DENIED:
		fprintf(t->f, "answer %u %s\n", place_of(t->j, d->server),
		    d->kind == NETWORK_DENIED ? "denied" : "allowed");
		return;
	case NETWORK_STRANGER:
		if (t->j->ranked < SCENARIO_SERVERS_MAX)
			fprintf(t->f, "answer %u allowed\nexpect ignored\n",
			    t->j->ranked);
		return;
	case NETWORK_GARBAGE:
		fprintf(t->f, "invalid\n");
		return;
	}
}

/* Garbage comes last: it makes the owner in a script judge. */
static void
write_reads(const struct transcript *t, int64_t now)
{
	for (int garbage = 0; garbage < 2; garbage++) {
		for (size_t i = 0; i < t->j->reads; i++) {
			const struct journal_read *r = &t->j->read[i];

			if (r->at == now &&
			    (r->what.kind == NETWORK_GARBAGE) == garbage)
				write_read(t, &r->what);
		}
	}
}

static unsigned
write_sends(const struct transcript *t, int64_t now)
{
	const struct journal_send *s;
	unsigned written = 0;

	for (s = t->j->send; s < t->j->send + t->j->sends; s++) {
		if (s->at != now)
			continue;
		written++;
		fprintf(t->f, "expect %s", s->delivery ? "deliver" : "send");
		write_set(t, s->to);
		fprintf(t->f, " round %u\n", s->round);
		if (s->delivery)
			continue;
		fprintf(t->f, "sent");
		if (s->taken == 0)
			fprintf(t->f, " none");
		write_set(t, s->taken);
		fprintf(t->f, "\n");
	}
	return written;
}

static void
write_end(const struct transcript *t)
{
	const struct journal_op *j = t->j;

	switch (j->end) {
	case END_NONE:
		return;
	case END_SELECTED:
		fprintf(t->f, "expect complete selected %u %s",
		    place_of(j, j->selected), j->denied ? "denied" : "allowed");
		break;
	case END_TIMEOUT:
	case END_NO_SERVER:
	case END_NOT_SENT:
		fprintf(t->f, "expect complete %s", journal_end_name(j->end));
		break;
	case END_CANCELLED:
		fprintf(t->f, "cancel\nexpect complete stopped");
		break;
	}
	fprintf(t->f, " round %u\n", j->round);
}

/* What an operation has to do before the caller speaks up. */
static void
write_time(const struct transcript *t, int64_t now)
{
	unsigned written = 0;

	fprintf(t->f, "at %" PRId64 "\n", now);
	if (now == t->j->began)
		write_start(t);
	write_reads(t, now);
	if (now == t->j->missed_at) {
		fprintf(
		    t->f, "expect missed %u\n", place_of(t->j, t->j->missed));
		written++;
	}
	written += write_sends(t, now);
	if (now == t->j->final_at)
		fprintf(t->f, "expect state FinalReceive\n");
	if (now == t->j->ended_at) {
		write_end(t);
		written++;
	}
	if (now == t->cancel_at && t->j->end != END_CANCELLED) {
		fprintf(t->f, "cancel\n");
		written = 0; /* and it is too late */
	}
	if (written == 0)
		fprintf(t->f, "expect nothing\n");
}

static void
sooner(int64_t *next, int64_t at, int64_t now)
{
	if (at > now && at < *next)
		*next = at;
}

static int64_t
next_time(const struct transcript *t, int64_t now)
{
	const struct journal_op *j = t->j;
	int64_t next = SCENARIO_NEVER;

	for (size_t i = 0; i < j->reads; i++)
		sooner(&next, j->read[i].at, now);
	for (uint32_t i = 0; i < j->sends; i++)
		sooner(&next, j->send[i].at, now);
	sooner(&next, j->final_at, now);
	sooner(&next, j->missed_at, now);
	sooner(&next, t->cancel_at, now);
	sooner(&next, j->ended_at, now);
	return next;
}

void
transcript_write(FILE *f, const struct scenario *sc, const struct journal *j,
    uint32_t op, const char *why)
{
	struct transcript t = {.f = f, .sc = sc, .j = &j->op[op], .op = op};

	t.cancel_at = scenario_after(sc->op[op].at, sc->op[op].gives_up);
	if (t.cancel_at != SCENARIO_NEVER)
		t.cancel_at = scenario_awake(sc, t.cancel_at);
	fprintf(f, "# Operation %u, %s, of\n", op, why);
	scenario_print(sc, "#   ", f);
	write_policy(f, &sc->policy);
	if (j->refused != NULL) {
		fprintf(f, "expect refused %s\n", j->refused);
		return;
	}
	write_members(&t);
	for (int64_t at = t.j->began; at != SCENARIO_NEVER;
	     at = next_time(&t, at))
		write_time(&t, at);
}
