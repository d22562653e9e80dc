/*
 * Datagrams as the owner reads them: whose answer it is is looked up in the
 * operation's own snapshot; what is not an answer must change nothing.
 */
#include "tests/sim/driver_private.h"

#include <string.h>

/* Not an answer, though something was read: the core must not budge. */
static void
read_invalid(struct driver *d, struct driver_op *op, enum network_kind kind)
{
	const uint64_t id = ~d->sc->weather;
	struct policy_op before;

	d->reach->count[kind == NETWORK_GARBAGE ? REACH_GARBAGE
						: REACH_STRANGERS]++;
	memcpy(&before, &op->op, sizeof(before));
	if (kind == NETWORK_STRANGER && members_find(op->members, id) < 0) {
		/* An owner that does not look may feed it all the same. */
		if (policy_op_answer(&op->op, op->j->ranked) ||
		    policy_op_answer(&op->op, UINT32_MAX))
			driver_broken(d, op, "it keeps a stranger's answer");
	} else if (!op->fresh && op->due > d->now)
		driver_op_judge_idle(d, op);
	driver_check_same(d, op, &before, "an invalid datagram changes it");
}

static void
count_read(struct driver *d, struct driver_op *op, uint32_t place,
    const struct network_datagram *g)
{
	uint64_t *count = d->reach->count;

	count[REACH_READS]++;
	count[REACH_DUPLICATES] += (op->fed >> place & 1) != 0;
	count[REACH_LATE] += op->over;
	count[REACH_OUTSIDERS] +=
	    members_find(d->members, d->sc->server[g->server].id) < 0;
	count[REACH_PHOTO_FINISH] +=
	    !op->over && g->at == d->now && op->due == d->now;
	if (g->copy == NETWORK_FORMER_COPY)
		return;
	count[REACH_REORDERED] += op->newest[g->server] > g->copy + 1;
	if (op->newest[g->server] < g->copy + 1)
		op->newest[g->server] = g->copy + 1;
}

static void
feed(struct driver *d, struct driver_op *op, uint32_t place, bool denied)
{
	struct policy_op before;
	bool kept;

	memcpy(&before, &op->op, sizeof(before));
	kept = policy_op_answer(&op->op, place);
	driver_check_answer(d, op, place, kept, &before);
	if (kept)
		op->kept_denied = denied;
	if (op->over)
		return;
	op->fed |= UINT64_C(1) << place;
	op->fresh = true;
}

/* Any answer shows that its server is alive. */
static void
note_alive(struct driver *d, const struct driver_op *op, uint32_t server)
{
	if (op->over && d->flaw == FLAW_UNFORGIVING)
		return;
	if (suspect_answered(
		&d->suspect[server], d->plan.suspect_after, d->now))
		d->reach->count[REACH_CLEARED]++;
}

void
driver_read(struct driver *d, const struct network_datagram *g)
{
	const uint64_t id = d->sc->server[g->server].id;
	struct driver_op *op = &d->op[g->op];
	int place;

	journal_add_read(op->j, d->now, g);
	if (!network_valid(g)) {
		read_invalid(d, op, g->kind);
		return;
	}
	place = members_find(op->members, id);
	if (place < 0) {
		driver_broken(d, op, "it asked who is not in its snapshot");
		return;
	}
	count_read(d, op, (uint32_t)place, g);
	if (d->flaw != FLAW_LIVE_MEMBERSHIP ||
	    members_find(d->members, id) >= 0)
		feed(d, op, (uint32_t)place, g->kind == NETWORK_DENIED);
	note_alive(d, op, g->server);
}
