/* The clock of a scenario and its text. */
#include "tests/sim/scenario.h"

#include <inttypes.h>

int64_t
scenario_after(int64_t at, int64_t while_us)
{
	return while_us == SCENARIO_NEVER ? SCENARIO_NEVER : at + while_us;
}

int64_t
scenario_awake(const struct scenario *sc, int64_t at)
{
	uint32_t i = 0;

	while (i < sc->stalls) {
		if (at >= sc->stall[i].from && at < sc->stall[i].until) {
			at = sc->stall[i].until;
			i = 0; /* stalls may overlap */
		} else
			i++;
	}
	return at;
}

static void
print_growth(const char *name, const struct scenario_growth *g, FILE *f)
{
	switch (g->kind) {
	case GROWTH_FIXED:
		fprintf(f, " %s fixed %u", name, g->first);
		return;
	case GROWTH_LINEAR:
		fprintf(f, " %s linear %u +%u up to %u", name, g->first, g->by,
		    g->most);
		return;
	case GROWTH_EXPONENTIAL:
		fprintf(f, " %s exponential %u *%u up to %u", name, g->first,
		    g->by, g->most);
		return;
	}
}

static void
print_while(const char *name, int64_t us, FILE *f)
{
	if (us == SCENARIO_NEVER)
		fprintf(f, " %s never", name);
	else
		fprintf(f, " %s %" PRId64, name, us);
}

static void
print_policy(const struct scenario_policy *p, FILE *f)
{
	fprintf(f, "policy unit_ms %u replays %u", p->unit_ms, p->replays);
	print_growth("gap", &p->gap, f);
	if (p->first_round)
		fprintf(f, " preference first-round");
	else
		print_growth("preference", &p->preference, f);
	fprintf(f, " final %u preference %u delivery %s suspect_after %u\n",
	    p->final_units, p->final_preference, p->delivery ? "on" : "off",
	    p->suspect_after);
}

static void
print_server(uint32_t i, const struct scenario_server *s, FILE *f)
{
	fprintf(f,
	    "server %u id %" PRIu64 " (start %" PRIu64
	    ") lost %u doubled %u corrupted %u delay %" PRId64
	    " jitter %" PRId64,
	    i, s->id, s->id >> 23, s->lost, s->doubled, s->corrupted,
	    s->delay_us, s->jitter_us);
	for (uint32_t k = 0; k < s->outages; k++) {
		print_while("down", s->outage[k].from, f);
		print_while("up", s->outage[k].until, f);
	}
	fprintf(f, "\n");
}

static void
print_op(uint32_t i, const struct scenario_op *op, FILE *f)
{
	fprintf(f, "op %u key %u at %" PRId64 " age %" PRId64 "%s", i, op->key,
	    op->at, op->age, op->again ? " sent again" : "");
	print_while("patience", op->patience, f);
	print_while("gives up", op->gives_up, f);
	fprintf(f, " refused %u%s deaf 0x%" PRIx64 "\n", op->refused,
	    op->refused_first ? " and all of the first" : "", op->deaf);
}

void
scenario_print(const struct scenario *sc, const char *prefix, FILE *f)
{
	fprintf(f,
	    "%sscenario %" PRIu64 " weather %" PRIu64 " tick %" PRId64 "\n",
	    prefix, sc->seed, sc->weather, sc->tick_us);
	fprintf(f, "%s", prefix);
	print_policy(&sc->policy, f);
	for (uint32_t i = 0; i < sc->servers; i++) {
		fprintf(f, "%s", prefix);
		print_server(i, &sc->server[i], f);
	}
	for (uint32_t i = 0; i < sc->views; i++) {
		fprintf(
		    f, "%smembership at %" PRId64 ":", prefix, sc->view[i].at);
		for (uint32_t k = 0; k < sc->view[i].count; k++)
			fprintf(f, " %u", sc->view[i].listed[k]);
		fprintf(f, "\n");
	}
	for (uint32_t i = 0; i < sc->ops; i++) {
		fprintf(f, "%s", prefix);
		print_op(i, &sc->op[i], f);
	}
	for (uint32_t i = 0; i < sc->stalls; i++)
		fprintf(f, "%sstall from %" PRId64 " until %" PRId64 "\n",
		    prefix, sc->stall[i].from, sc->stall[i].until);
}
