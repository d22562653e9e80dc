/* Records what happens with servers; see the header for what each means. */
#include "daemon/core/peer.h"

#include <string.h>

static void
event(struct peer_events *e, int error, int64_t now)
{
	e->count++;
	e->error = error;
	e->last = now;
}

void
peer_sent(struct peer *p, int64_t now)
{
	p->sent++;
	if (p->asked_since == 0)
		p->asked_since = now;
}

void
peer_send_error(struct peer *p, int error, int64_t now)
{
	event(&p->send_errors, error, now);
}

void
peer_refused(struct peer *p, int error, int64_t now)
{
	event(&p->refused, error, now);
}

void
peer_invalid(struct peer *p, enum peer_invalid why, int64_t now)
{
	event(&p->invalid[why], 0, now);
}

static void
alive(struct peer *p, int64_t now)
{
	p->last_answer = now;
	p->asked_since = 0;
}

/* A stamp may be any number. */
static int64_t
offset_of(uint64_t stamp, uint64_t wall)
{
	const uint64_t apart = stamp > wall ? stamp - wall : wall - stamp;
	const int64_t cut =
	    apart < PEER_CLOCK_MAX_MS ? (int64_t)apart : PEER_CLOCK_MAX_MS;

	return stamp > wall ? cut : -cut;
}

static void
learn_clock(struct peer *p, const struct peer_answer *a)
{
	if (a->asked_stamp == 0 ||
	    (a->stamp == a->asked_stamp && !p->clock.known))
		return;
	p->clock = (struct peer_clock){
	    .known = true,
	    .offset_ms = offset_of(a->stamp, a->wall_ms),
	    .within_ms = (a->now - a->sent_at + 999) / 1000,
	};
}

static void
learn_rtt(struct peer *p, const struct peer_answer *a)
{
	int64_t rtt = a->now - a->sent_at;

	if (rtt < 1)
		rtt = 1;
	p->rtt_us = p->rtt_us == 0 ? rtt : p->rtt_us + (rtt - p->rtt_us) / 8;
	histogram_add(&p->rtt, rtt, a->now);
	latency_note(&p->round_trips, rtt);
}

static void
overdue(struct peer *p, const struct peer_answer *a)
{
	p->overdue++;
	p->last_late = a->now;
	p->late_us = a->now - a->sent_at;
}

static void
in_time(struct peer *p, int64_t now)
{
	p->last_in_time = now;
	p->unanswered = 0;
}

void
peer_answered(struct peer *p, const struct peer_answer *a)
{
	p->answered++;
	/* Each copy of a request is answered, which says nothing new; or the
	 * answer was recorded, and is played again. */
	if (a->again)
		return;
	alive(p, a->now);
	if (a->overdue)
		overdue(p, a);
	else
		in_time(p, a->now);
	learn_clock(p, a);
	if (a->measures)
		learn_rtt(p, a);
}

/*
 * To which request is not known. It is taken for the first one after the last
 * answer, if that was so long ago that an answer to any before would have
 * taken longer still.
 */
void
peer_heard(struct peer *p, int64_t now)
{
	const int64_t took = now - p->asked_since;

	if (p->asked_since != 0 && p->asked_since - p->last_answer > took)
		p->late_us = took;
	p->overdue++;
	alive(p, now);
}

void
peer_selected(struct peer *p)
{
	p->selected++;
}

void
peer_missed_round(struct peer *p)
{
	p->missed_rounds++;
}

void
peer_unanswered(struct peer *p, int64_t start)
{
	p->missed_rounds++;
	if (p->last_in_time != 0 && p->last_in_time >= start)
		return;
	if (p->unanswered < UINT32_MAX)
		p->unanswered++;
}

int64_t
peer_rtt(const struct peer *p, uint32_t permille, int64_t now)
{
	return histogram_percentile(&p->rtt, permille, now);
}

bool
peer_invalid_since(const struct peer *p, int64_t since, enum peer_invalid *why)
{
	int64_t last = 0;

	for (int i = 0; i < PEER_INVALIDS; i++) {
		if (p->invalid[i].last <= last || p->invalid[i].last < since)
			continue;
		last = p->invalid[i].last;
		*why = (enum peer_invalid)i;
	}
	return last != 0;
}

struct peer *
peers_find(struct peers *ps, uint64_t server_id)
{
	uint32_t low = 0, high = ps->count, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (ps->list[mid].server_id == server_id)
			return &ps->list[mid];
		if (ps->list[mid].server_id < server_id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Those that are in the snapshot, moved to the front in order. */
static uint32_t
keep(struct peers *ps, const struct members *members)
{
	uint32_t i, kept = 0;

	for (i = 0; i < ps->count; i++) {
		if (members_find(members, ps->list[i].server_id) < 0)
			continue;
		if (kept != i)
			ps->list[kept] = ps->list[i];
		kept++;
	}
	return kept;
}

/*
 * Both lists ascend, so no kept record has to move to the front: from the back
 * on, each goes to its place before that is needed for another.
 */
void
peers_follow(struct peers *ps, const struct members *members)
{
	uint32_t i, kept = keep(ps, members);
	uint64_t id;

	for (i = members->count; i-- > 0;) {
		id = members->list[i].server_id;
		if (kept > 0 && ps->list[kept - 1].server_id == id) {
			kept--;
			if (kept != i)
				ps->list[i] = ps->list[kept];
			continue;
		}
		memset(&ps->list[i], 0, sizeof(ps->list[i]));
		ps->list[i].server_id = id;
	}
	ps->count = members->count;
}

void
peers_answered(struct peers *ps, struct peer *p, const struct peer_answer *a)
{
	ps->last_answer = a->now;
	if (p != NULL)
		peer_answered(p, a);
}

void
peers_heard(struct peers *ps, struct peer *p, int64_t now)
{
	ps->last_answer = now;
	if (p != NULL)
		peer_heard(p, now);
}

void
peers_operation(struct peers *ps, bool guarded, bool answered, int64_t now)
{
	struct peer_form *f = guarded ? &ps->guarded : &ps->plain;

	if (answered) {
		f->answered++;
		f->last_answered = now;
		return;
	}
	f->unanswered++;
	f->last_unanswered = now;
	if (f->first_unanswered == 0)
		f->first_unanswered = now;
}
