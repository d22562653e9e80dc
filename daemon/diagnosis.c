/*
 * The tables of judgements: the first row whose condition holds is the
 * diagnosis, so the order says what matters more. The last row of each holds
 * always. The sentences are in diagnosis_server.c and diagnosis_tenant.c.
 */
#include "daemon/diagnosis_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Overdue answers are looked at once a second only, so a server that is slow
 * may look silent for so long past the horizon. */
#define SLOW_GRACE_US 2000000

#define DIAGNOSIS_NAME(code, name, meaning) name,
static const char *const names[] = {DIAGNOSES(DIAGNOSIS_NAME)};

const char *
diagnosis_name(enum diagnosis_code code)
{
	return names[code];
}

/* Of a server. */

static bool
not_sent(const struct server_view *v)
{
	const struct peer *p = v->peer;

	return p->asked_since == 0 && p->send_errors.count > 0 &&
	       p->send_errors.last > p->last_answer;
}

static bool
unasked(const struct server_view *v)
{
	return v->peer->sent == 0 && v->peer->last_answer == 0;
}

/* A path that takes less than was sent is no refusal: the next one fits. */
bool
diagnosis_refusing(const struct peer *p)
{
	return p->refused.count > 0 && p->refused.last > p->last_answer &&
	       p->refused.error != EMSGSIZE;
}

static bool
refused(const struct server_view *v)
{
	return diagnosis_refusing(v->peer) &&
	       v->peer->refused.error == ECONNREFUSED;
}

static bool
unreachable(const struct server_view *v)
{
	return diagnosis_refusing(v->peer);
}

/* Anybody can send such a thing: it never speaks against good answers. */
static bool
invalid(const struct server_view *v)
{
	const struct peer *p = v->peer;
	enum peer_invalid why;

	return p->asked_since != 0 &&
	       (p->last_answer == 0 || p->unanswered > 0) &&
	       peer_invalid_since(p, p->asked_since, &why);
}

static bool
slow(const struct server_view *v)
{
	const struct peer *p = v->peer;

	return p->unanswered > 0 && p->last_answer > p->last_in_time &&
	       (p->asked_since == 0 ||
		   v->facts->now - p->asked_since <=
		       v->facts->horizon_us + SLOW_GRACE_US);
}

static bool
waiting(const struct server_view *v)
{
	return v->peer->last_answer == 0 && v->peer->unanswered == 0;
}

static bool
never(const struct server_view *v)
{
	return v->peer->last_answer == 0;
}

static bool
silent(const struct server_view *v)
{
	return v->peer->unanswered > 0;
}

int
diagnosis_clock_sign(const struct peer *p)
{
	const struct peer_clock *c = &p->clock;

	if (c->known && c->offset_ms > DIAGNOSIS_CLOCK_MS)
		return 1;
	if (c->known && c->offset_ms + c->within_ms < -DIAGNOSIS_CLOCK_MS)
		return -1;
	return 0;
}

static bool
clock_off(const struct server_view *v)
{
	return diagnosis_clock_sign(v->peer) != 0;
}

static bool
always(const struct server_view *v)
{
	(void)v;
	return true;
}

static const struct server_row {
	enum diagnosis_code code;
	bool (*holds)(const struct server_view *v);
} server_rows[] = {
    {DIAGNOSIS_NOT_SENT, not_sent},
    {DIAGNOSIS_UNASKED, unasked},
    {DIAGNOSIS_REFUSED, refused},
    {DIAGNOSIS_UNREACHABLE, unreachable},
    {DIAGNOSIS_INVALID, invalid},
    {DIAGNOSIS_SLOW, slow},
    {DIAGNOSIS_WAITING, waiting},
    {DIAGNOSIS_NEVER, never},
    {DIAGNOSIS_SILENT, silent},
    {DIAGNOSIS_CLOCK_OFF, clock_off},
    {DIAGNOSIS_OK, always},
};

static enum diagnosis_code
judge_server(const struct server_view *v)
{
	const struct server_row *row = server_rows;

	while (!row->holds(v))
		row++;
	return row->code;
}

void
diagnosis_server(const struct diagnosis_facts *facts, const struct peer *peer,
    struct diagnosis *out)
{
	struct server_view v = {.facts = facts, .peer = peer};

	for (uint32_t i = 0; i < facts->peers->count; i++) {
		const struct peer *other = &facts->peers->list[i];

		if (other != peer && other->last_answer > peer->asked_since)
			v.others_answer = true;
	}
	out->code = judge_server(&v);
	diagnosis_say_server(&v, out);
}

/* Of a tenant. */

bool
diagnosis_unwell(enum diagnosis_code code)
{
	return code != DIAGNOSIS_OK && code != DIAGNOSIS_CLOCK_OFF &&
	       code != DIAGNOSIS_UNASKED && code != DIAGNOSIS_WAITING;
}

static uint32_t
well(const struct tenant_view *v)
{
	return v->counts[DIAGNOSIS_OK] + v->counts[DIAGNOSIS_CLOCK_OFF];
}

static uint32_t
untried(const struct tenant_view *v)
{
	return v->counts[DIAGNOSIS_UNASKED] + v->counts[DIAGNOSIS_WAITING];
}

static bool
all(const struct tenant_view *v, enum diagnosis_code code)
{
	return v->counts[code] == v->facts->peers->count;
}

static bool
discovering(const struct tenant_view *v)
{
	return v->facts->peers->count == 0 &&
	       v->facts->discovery != DISCOVERY_UNAVAILABLE;
}

static bool
no_server(const struct tenant_view *v)
{
	return v->facts->peers->count == 0;
}

static bool
all_unasked(const struct tenant_view *v)
{
	return all(v, DIAGNOSIS_UNASKED);
}

static bool
all_not_sent(const struct tenant_view *v)
{
	return all(v, DIAGNOSIS_NOT_SENT);
}

static bool
all_refused(const struct tenant_view *v)
{
	return all(v, DIAGNOSIS_REFUSED);
}

static bool
all_unreachable(const struct tenant_view *v)
{
	return all(v, DIAGNOSIS_UNREACHABLE);
}

static bool
only_invalid(const struct tenant_view *v)
{
	return well(v) == 0 && v->counts[DIAGNOSIS_INVALID] > 0;
}

static bool
only_slow(const struct tenant_view *v)
{
	return well(v) == 0 && v->counts[DIAGNOSIS_SLOW] > 0;
}

static bool
all_waiting(const struct tenant_view *v)
{
	return untried(v) == v->facts->peers->count;
}

static bool
silent_since_a_step(const struct tenant_view *v)
{
	return well(v) == 0 && v->facts->peers->last_answer > 0 &&
	       v->facts->stepped_ms != 0;
}

static bool
never_any(const struct tenant_view *v)
{
	return well(v) == 0 && v->facts->peers->last_answer == 0;
}

bool
diagnosis_only_guards(const struct peers *peers)
{
	const struct peer_form *g = &peers->guarded, *p = &peers->plain;

	return g->answered == 0 && g->unanswered > 0 && p->answered > 0 &&
	       p->last_answered >= p->last_unanswered;
}

/*
 * The two profiles differ in guards alone (and in reports, which nobody
 * answers). What is plain must be answered after guards began not to be, and
 * until now: else it is but silence.
 */
static bool
guards_unanswered(const struct tenant_view *v)
{
	const struct peers *ps = v->facts->peers;

	return diagnosis_only_guards(ps) &&
	       ps->plain.last_answered > ps->guarded.first_unanswered;
}

static bool
none_well(const struct tenant_view *v)
{
	return well(v) == 0;
}

static bool
some_not_well(const struct tenant_view *v)
{
	return well(v) + untried(v) < v->facts->peers->count;
}

/* One clock against most others, all the same way, is the one that is off. An
 * unknown one may be in step. */
static bool
clocks_differ(const struct tenant_view *v)
{
	return 2 * v->ahead > v->clocks || 2 * v->behind > v->clocks;
}

static bool
stale(const struct tenant_view *v)
{
	return v->facts->dns_error[0] != '\0';
}

static bool
otherwise(const struct tenant_view *v)
{
	(void)v;
	return true;
}

static const struct tenant_row {
	enum diagnosis_code code;
	bool (*holds)(const struct tenant_view *v);
} tenant_rows[] = {
    {DIAGNOSIS_DISCOVERING, discovering},
    {DIAGNOSIS_DNS, no_server},
    {DIAGNOSIS_UNASKED, all_unasked},
    {DIAGNOSIS_NOT_SENT, all_not_sent},
    {DIAGNOSIS_REFUSED, all_refused},
    {DIAGNOSIS_UNREACHABLE, all_unreachable},
    {DIAGNOSIS_INVALID, only_invalid},
    {DIAGNOSIS_SLOW, only_slow},
    {DIAGNOSIS_WAITING, all_waiting},
    {DIAGNOSIS_CLOCK_STEP, silent_since_a_step},
    {DIAGNOSIS_NEVER, never_any},
    {DIAGNOSIS_PROFILE, guards_unanswered},
    {DIAGNOSIS_SILENT, none_well},
    {DIAGNOSIS_PARTIAL, some_not_well},
    {DIAGNOSIS_CLOCK_OFF, clocks_differ},
    {DIAGNOSIS_DNS_STALE, stale},
    {DIAGNOSIS_OK, otherwise},
};

static void
view_tenant(const struct diagnosis_facts *facts, struct tenant_view *v)
{
	const struct peer *p;
	int sign;

	*v = (struct tenant_view){.facts = facts};
	for (uint32_t i = 0; i < facts->peers->count; i++) {
		p = &facts->peers->list[i];
		v->codes[i] = judge_server(
		    &(struct server_view){.facts = facts, .peer = p});
		v->counts[v->codes[i]]++;
		sign = diagnosis_clock_sign(p);
		v->clocks += p->last_answer > 0;
		v->ahead += sign > 0;
		v->behind += sign < 0;
		v->refusing += diagnosis_refusing(p);
	}
}

void
diagnosis_tenant(const struct diagnosis_facts *facts, struct diagnosis *out)
{
	const struct tenant_row *row = tenant_rows;
	struct tenant_view v;

	view_tenant(facts, &v);
	while (!row->holds(&v))
		row++;
	out->code = row->code;
	diagnosis_say_tenant(&v, out);
}

static int
by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t
diagnosis_median(int64_t *values, size_t n)
{
	qsort(values, n, sizeof(values[0]), by_size);
	return values[(n - 1) / 2];
}

bool
diagnosis_offset(const struct peers *peers, int64_t *offset_ms)
{
	int64_t offsets[MEMBERS_MAX];
	const struct peer_clock *c;
	uint32_t n = 0;

	for (uint32_t i = 0; i < peers->count; i++) {
		c = &peers->list[i].clock;
		if (c->known)
			offsets[n++] = c->offset_ms + c->within_ms / 2;
	}
	if (n == 0)
		return false;
	*offset_ms = diagnosis_median(offsets, n);
	return true;
}
