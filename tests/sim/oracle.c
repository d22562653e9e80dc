/*
 * The plain reading of the specification; see oracle.h. An operation goes
 * through intervals: the transmission rounds 0 to N, then the final receive
 * interval N + 1 if F > 0. As long as nothing valid has been read an interval
 * is silent, and the next begins where the schedule says. In the first that is
 * not, the operation is decided.
 *
 * Everything happens when the event loop is awake: what falls into a stall is
 * noticed at the end of it, what can be read by then before the deadlines.
 */
#include "tests/sim/oracle.h"

#include "tests/sim/timetable.h"

#define NEVER SCENARIO_NEVER

/* One operation while its life is worked out. */
struct life {
	const struct scenario *sc;
	const struct timetable *table;
	uint32_t op;
	struct journal_op *j;
	int64_t start;    /* when the caller first asked */
	int64_t deadline; /* of the caller */
	int64_t gives_up; /* when that is noticed */
	uint32_t chosen;  /* the preferred server's place in j->rank */
	uint32_t copies[SCENARIO_SERVERS_MAX]; /* offered to the kernel */
	bool sent; /* the kernel has taken something */
};

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Section 9.1: the startup time decides, a tie the full id. */
static bool
older(const struct scenario_server *a, const struct scenario_server *b)
{
	if (a->id >> 23 != b->id >> 23)
		return a->id >> 23 < b->id >> 23;
	return a->id < b->id;
}

static void
rank_members(const struct scenario *sc, uint32_t op, struct journal_op *j)
{
	const struct scenario_view *view = &sc->view[0];
	bool member[SCENARIO_SERVERS_MAX] = {false};
	uint32_t place;

	for (uint32_t i = 0; i < sc->views; i++) {
		if (sc->view[i].at <= sc->op[op].at)
			view = &sc->view[i];
	}
	for (uint32_t i = 0; i < view->count; i++)
		member[view->listed[i]] = true;
	for (uint32_t i = 0; i < sc->servers; i++) {
		place = 0;
		for (uint32_t k = 0; k < sc->servers && member[i]; k++)
			place +=
			    member[k] && older(&sc->server[k], &sc->server[i]);
		if (member[i]) {
			j->rank[place] = (uint8_t)i;
			j->ranked++;
		}
	}
}

/* The last time by now that a server answered to any of the operations before
 * op; less than any time if it never did. */
static int64_t
last_heard(const struct journal *all, uint32_t op, uint32_t server, int64_t now)
{
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < op; i++) {
		for (size_t k = 0; k < all->op[i].reads; k++) {
			const struct journal_read *r = &all->op[i].read[k];

			if (r->what.server == server &&
			    network_valid(&r->what) && r->at <= now)
				last = greatest(last, r->at);
		}
	}
	return last;
}

/*
 * suspect_after: as many operations as that in a row have missed the server,
 * and it has answered nothing since they began. What an answer does not clear
 * is thus what was asked for after it.
 */
static bool
suspects(const struct scenario *sc, const struct journal *all, uint32_t op,
    uint32_t server, int64_t now)
{
	const int64_t heard = last_heard(all, op, server, now);
	uint32_t misses = 0;

	for (uint32_t i = 0; i < op; i++) {
		const struct journal_op *j = &all->op[i];

		if (j->missed_at <= now && j->missed == server &&
		    j->began - sc->op[i].age > heard)
			misses++;
	}
	return sc->policy.suspect_after > 0 &&
	       misses >= sc->policy.suspect_after;
}

/* The oldest that is not suspected, or the oldest of all. */
static void
choose(struct life *l, const struct journal *all)
{
	struct journal_op *j = l->j;
	bool found = false;

	if (l->sc->policy.suspect_after == 0)
		return;
	for (uint32_t i = 0; i < j->ranked; i++) {
		if (suspects(l->sc, all, l->op, j->rank[i], j->began))
			j->suspected |= UINT64_C(1) << j->rank[i];
		else if (!found) {
			l->chosen = i;
			found = true;
		}
	}
}

/* What comes back for a copy is read when the loop gets to it. */
static void
listen(struct life *l, uint32_t server, uint32_t copy, int64_t at)
{
	struct network_datagram back[NETWORK_ANSWERS_MAX];
	const size_t count =
	    network_carry(l->sc, l->op, server, copy, at, back);

	for (size_t i = 0; i < count; i++) {
		/* What comes before the operation is known goes unread. */
		if (back[i].at > l->j->began)
			journal_add_read(
			    l->j, scenario_awake(l->sc, back[i].at), &back[i]);
	}
}

/* The operation was under way before: its first copies are still out there. */
static void
listen_to_former_life(struct life *l)
{
	if (!l->sc->op[l->op].again)
		return;
	for (uint32_t i = 0; i < l->j->ranked; i++)
		listen(l, l->j->rank[i], NETWORK_FORMER_COPY, l->start);
}

/* When a valid answer of the server was first read, or never. */
static int64_t
first_read(const struct life *l, uint32_t server)
{
	int64_t at = NEVER;

	for (size_t i = 0; i < l->j->reads; i++) {
		const struct journal_read *r = &l->j->read[i];

		if (r->what.server == server && network_valid(&r->what))
			at = least(at, r->at);
	}
	return at;
}

/* When the first of the oldest count members was read, or never. */
static int64_t
first_of(const struct life *l, uint32_t count)
{
	int64_t at = NEVER;

	for (uint32_t i = 0; i < count; i++)
		at = least(at, first_read(l, l->j->rank[i]));
	return at;
}

/* The same logical request to every member that has not answered by now. */
static void
transmit(struct life *l, int64_t now, uint32_t round, bool delivery)
{
	struct journal_send send = {
	    .at = now, .round = round, .delivery = delivery};

	for (uint32_t i = 0; i < l->j->ranked; i++) {
		if (first_read(l, l->j->rank[i]) > now)
			send.to |= UINT64_C(1) << l->j->rank[i];
	}
	for (uint32_t s = 0; s < l->sc->servers; s++) {
		if ((send.to >> s & 1) == 0 ||
		    network_refuses(
			l->sc, l->op, s, l->copies[s]++, l->j->sends == 0))
			continue;
		send.taken |= UINT64_C(1) << s;
		l->sent = true;
		listen(l, s, l->copies[s] - 1, now);
	}
	if (send.to != 0)
		journal_add_send(l->j, &send);
}

static void
end(struct life *l, enum journal_end how, int64_t at, uint32_t round)
{
	l->j->end = how;
	l->j->ended_at = at;
	l->j->round = round;
}

/* The oldest server read by now; what its first datagram said. */
static void
select_oldest(struct life *l, int64_t now, uint32_t round)
{
	const struct network_datagram *first = NULL;
	uint32_t i = 0;

	while (first_read(l, l->j->rank[i]) > now)
		i++;
	l->j->selected = l->j->rank[i];
	for (size_t k = 0; k < l->j->reads; k++) {
		const struct network_datagram *d = &l->j->read[k].what;

		if (d->server == l->j->selected && network_valid(d) &&
		    (first == NULL || network_order(d, first) < 0))
			first = d;
	}
	l->j->denied = first->kind == NETWORK_DENIED;
	end(l, END_SELECTED, now, round);
	if (l->sc->policy.delivery && now < l->start + l->table->horizon)
		transmit(l, now, round, true);
}

/*
 * An interval in which something valid was read, at first before its end was
 * noticed (9.3.3, rules 4 to 6). An answer of the oldest server selects at
 * once, as does one of the preferred server or an older; what else came is kept
 * until the preference deadline, or until the caller's, and selects at once
 * after it.
 */
static void
decide(struct life *l, uint32_t k, int64_t first)
{
	const int64_t decisive = first_of(l, l->chosen + 1);
	const int64_t preferred =
	    scenario_awake(l->sc, l->start + l->table->prefer[k]);
	int64_t at = least(decisive, greatest(first, preferred));

	if (l->deadline != NEVER)
		at = least(
		    at, greatest(first, scenario_awake(l->sc, l->deadline)));
	if (l->gives_up < at)
		end(l, END_CANCELLED, l->gives_up, k);
	else
		select_oldest(l, at, k);
}

/* The interval of the schedule that a time is in; intervals after the end. */
static uint32_t
interval_at(const struct life *l, int64_t at)
{
	uint32_t k = 0;

	while (k < l->table->intervals && at >= l->start + l->table->end[k])
		k++;
	return k;
}

/* Sends what interval k sends and waits it out (9.3.3, rules 7 and 8). Returns
 * when it was silent to its end, or NEVER when the operation is over. */
static int64_t
go_through(struct life *l, uint32_t k, int64_t begin)
{
	const int64_t over = scenario_awake(l->sc, l->start + l->table->end[k]);
	const int64_t out_of_patience =
	    l->deadline == NEVER ? NEVER : scenario_awake(l->sc, l->deadline);
	const int64_t silent = least(over, out_of_patience);
	int64_t first;

	if (k == l->table->rounds)
		l->j->final_at = begin;
	else {
		transmit(l, begin, k, false);
		if (!l->sent) {
			end(l, END_NOT_SENT, begin, k);
			return NEVER;
		}
	}
	first = first_of(l, l->j->ranked);
	if (l->gives_up < least(first, silent))
		end(l, END_CANCELLED, l->gives_up, k);
	else if (first <= silent)
		decide(l, k, first);
	else if (out_of_patience <= over)
		end(l, END_TIMEOUT, out_of_patience, k);
	else
		return over;
	return NEVER;
}

/* Did the preferred server leave it unanswered past P(0)? */
static void
note_miss(struct life *l)
{
	const struct scenario_policy *p = &l->sc->policy;
	const int64_t preferred = l->start + l->table->prefer[0];
	const int64_t passed = scenario_awake(l->sc, preferred);
	const uint32_t server = l->j->rank[l->chosen];

	if (p->suspect_after == 0 || preferred <= l->j->began ||
	    l->j->ended_at < passed || first_read(l, server) <= passed)
		return;
	l->j->missed_at = passed;
	l->j->missed = server;
}

static void
live(struct life *l)
{
	int64_t now = l->j->began;
	uint32_t k;

	if (l->j->ranked == 0) {
		end(l, END_NO_SERVER, now, 0);
		return;
	}
	if (l->deadline <= now) {
		end(l, END_TIMEOUT, now, 0);
		return;
	}
	while (now != NEVER) {
		k = interval_at(l, now);
		if (k == l->table->intervals) {
			end(l, END_TIMEOUT, now, k - 1);
			return;
		}
		now = go_through(l, k, now);
	}
}

static void
sort_reads(struct journal_op *j)
{
	struct journal_read r;
	size_t k;

	for (size_t i = 1; i < j->reads; i++) {
		r = j->read[i];
		for (k = i;
		     k > 0 && network_order(&j->read[k - 1].what, &r.what) > 0;
		     k--)
			j->read[k] = j->read[k - 1];
		j->read[k] = r;
	}
}

void
oracle_predict(const struct scenario *sc, struct journal *out)
{
	struct timetable table = {0};

	out->refused = timetable_make(&sc->policy, &table);
	for (uint32_t i = 0; i < sc->ops && out->refused == NULL; i++) {
		const struct scenario_op *op = &sc->op[i];
		struct life l = {
		    .sc = sc, .table = &table, .op = i, .j = &out->op[i]};

		l.j->began = scenario_awake(sc, op->at);
		l.start = l.j->began - op->age;
		l.deadline = scenario_after(op->at, op->patience);
		l.gives_up = NEVER;
		if (op->gives_up != NEVER)
			l.gives_up = scenario_awake(sc, op->at + op->gives_up);
		rank_members(sc, i, l.j);
		choose(&l, out);
		listen_to_former_life(&l);
		live(&l);
		if (l.j->ranked > 0)
			note_miss(&l);
		sort_reads(l.j);
	}
}
