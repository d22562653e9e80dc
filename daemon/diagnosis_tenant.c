/*
 * The words of a tenant's diagnosis, with the evidence that helps to tell the
 * causes of silence apart. Nothing is judged here.
 */
#include "daemon/diagnosis_private.h"

#include <inttypes.h>
#include <string.h>

/* "2 silent, 1 refused": servers that are not well. */
static void
say_counts(struct words *w, const struct tenant_view *v)
{
	const char *comma = "";

	for (int code = 0; code < DIAGNOSIS_CODES; code++) {
		if (v->counts[code] == 0)
			continue;
		words_add(w, "%s%u %s", comma, v->counts[code],
		    diagnosis_name((enum diagnosis_code)code));
		comma = ", ";
	}
}

static void
say_sync(struct words *w, const struct diagnosis_facts *f)
{
	switch (f->sync) {
	case CLOCK_UNSYNCHRONISED:
		words_add(w, "; clock: not synchronised, says the kernel");
		return;
	case CLOCK_SYNCHRONISED:
		words_add(w, "; clock: synchronised, says the kernel");
		return;
	case CLOCK_SYNC_UNKNOWN:
		words_add(w, "; clock: the kernel does not say whether it is "
			     "synchronised");
		return;
	}
}

static void
say_dns_failing(struct words *w, const struct diagnosis_facts *f)
{
	words_add(w, "DNS has failed for ");
	words_span(w, f->now - f->dns_failing_since);
	words_add(w, " (%s)", f->dns_error);
}

/* While they still answered. */
static void
say_last_offset(struct words *w, const struct tenant_view *v)
{
	int64_t offset = 0;

	(void)diagnosis_offset(v->facts->peers, &offset);
	words_add(w,
	    "; when they answered last, the clocks of most were %s this one ",
	    v->ahead > v->behind ? "ahead of" : "behind");
	words_apart(w, offset);
}

/* What helps to tell the causes of silence apart. */
static void
say_evidence(struct words *w, const struct tenant_view *v)
{
	const struct diagnosis_facts *f = v->facts;

	if (v->refusing > 0)
		words_add(w, "; ICMP errors came from %u of %u", v->refusing,
		    f->peers->count);
	else
		words_add(w, "; no ICMP refusal has come");
	if (2 * v->ahead > v->clocks || 2 * v->behind > v->clocks)
		say_last_offset(w, v);
	say_sync(w, f);
	if (f->dns_error[0] != '\0') {
		words_add(w, "; ");
		say_dns_failing(w, f);
		words_add(w, ", so the servers may have moved");
	}
}

static void
say_odd_profile(struct words *w, const struct diagnosis_facts *f)
{
	if (f->odd_profile != NULL)
		words_add(w, "; %s is configured, the key's format says %s",
		    f->odd_profile,
		    strcmp(f->odd_profile, "v1") == 0 ? "v2" : "v1");
}

static void
say_tenant_never(struct words *w, const struct tenant_view *v)
{
	const struct diagnosis_facts *f = v->facts;

	words_add(w, "no server has ever answered (");
	say_counts(w, v);
	words_add(w,
	    "): a wrong key (key id %" PRIu64 ", %s), a clock that is off, or ",
	    f->key_id, f->auth);
	if (f->strangers > 0) {
		words_add(w, "servers with other ids: ");
		words_strangers(w, f);
	} else {
		words_add(w, "nothing gets there or back");
	}
	if (f->peers->guarded.unanswered > 0 && f->peers->plain.unanswered == 0)
		words_add(w,
		    "; all operations had guards, so it may also be a wrong "
		    "profile");
	say_odd_profile(w, f);
	say_evidence(w, v);
	words_add(w, "; next: rlctl key show FILE, timedatectl");
}

/* Guards alone are unanswered, yet perhaps silence has begun with them. */
static void
say_perhaps_profile(struct words *w, const struct diagnosis_facts *f)
{
	if (!diagnosis_only_guards(f->peers))
		return;
	words_add(w,
	    "; only operations with guards went unanswered (%" PRIu64
	    "), none with guards was ever answered: perhaps the profile",
	    f->peers->guarded.unanswered);
	say_odd_profile(w, f);
}

static void
say_tenant_silent(struct words *w, const struct tenant_view *v)
{
	const struct diagnosis_facts *f = v->facts;

	words_add(w, "no server answers any more (");
	say_counts(w, v);
	words_add(w, "), last answer ");
	words_ago(w, f, f->peers->last_answer);
	words_add(w, ": servers or network down, or the key was revoked");
	say_perhaps_profile(w, f);
	if (f->strangers > 0) {
		words_add(w, "; ");
		words_strangers(w, f);
	}
	if (f->stepped_ms == 0)
		words_add(w, "; the clock was not set since");
	say_evidence(w, v);
}

static void
say_step(struct words *w, const struct tenant_view *v)
{
	const struct diagnosis_facts *f = v->facts;

	words_add(w, "no server answers any more, and since the last answer, ");
	words_ago(w, f, f->peers->last_answer);
	words_add(w, ", the clock of this host was set %s ",
	    f->stepped_ms > 0 ? "forward" : "back");
	words_apart(w, f->stepped_ms);
	words_add(
	    w, ": servers do not answer requests whose time stamps are off");
	say_evidence(w, v);
}

static void
say_profile(struct words *w, const struct tenant_view *v)
{
	const struct peers *ps = v->facts->peers;

	words_add(w,
	    "operations without guards are answered (%" PRIu64
	    "), those with guards never (%" PRIu64
	    "): a wrong profile, or trackers that were defined differently "
	    "before",
	    ps->plain.answered, ps->guarded.unanswered);
	say_odd_profile(w, v->facts);
}

static void
say_clocks(struct words *w, const struct tenant_view *v)
{
	const bool ahead = v->ahead > v->behind;
	int64_t offset = 0;

	(void)diagnosis_offset(v->facts->peers, &offset);
	words_add(w,
	    "answers come, but the clocks of %u of %u servers are %s this "
	    "one, ",
	    ahead ? v->ahead : v->behind, v->clocks,
	    ahead ? "ahead of" : "behind");
	words_apart(w, offset);
	words_add(w,
	    "%s; servers do not answer when the difference is more "
	    "than they tolerate",
	    v->clocks > 1 ? " in the median" : ", so one of the two is off");
	say_sync(w, v->facts);
}

static void
say_all(struct words *w, const struct tenant_view *v, const char *what)
{
	words_add(w, "%s (", what);
	say_counts(w, v);
	words_add(w, ")");
}

/* How long an answer takes, in ms: the median of the slow servers; 0 when it is
 * not known. */
static int64_t
late_ms(const struct tenant_view *v)
{
	int64_t late[MEMBERS_MAX];
	size_t n = 0;

	for (uint32_t i = 0; i < v->facts->peers->count; i++) {
		if (v->codes[i] == DIAGNOSIS_SLOW &&
		    v->facts->peers->list[i].late_us > 0)
			late[n++] = v->facts->peers->list[i].late_us;
	}
	if (n == 0)
		return 0;
	return (diagnosis_median(late, n) + 999) / 1000;
}

/* Has one of the slow servers answered last what is known to have been asked?
 */
static bool
late_is_proven(const struct tenant_view *v)
{
	const struct peer *p;

	for (uint32_t i = 0; i < v->facts->peers->count; i++) {
		p = &v->facts->peers->list[i];
		if (v->codes[i] == DIAGNOSIS_SLOW &&
		    p->last_late > p->last_in_time)
			return true;
	}
	return false;
}

static void
say_tenant_slow(struct words *w, const struct tenant_view *v)
{
	const int64_t ms = late_ms(v);

	words_add(w, "servers answer after the horizon of %" PRId64 " ms",
	    v->facts->horizon_us / 1000);
	if (ms > 0)
		words_add(w, " (about %" PRId64 " ms)", ms);
	words_add(w, ": raise the policy's unit_ms; see rlctl policy --rtt ");
	if (ms > 0)
		words_add(w, "%" PRId64, ms);
	else
		words_add(w, "MS");
	if (late_is_proven(v))
		words_add(w, "; the key and the clock are good");
	else
		words_add(w,
		    "; the operations were forgotten by then, so old answers "
		    "that are played again would look the same");
	if (v->counts[DIAGNOSIS_SLOW] == v->facts->peers->count)
		return;
	words_add(w, " (");
	say_counts(w, v);
	words_add(w, ")");
}

/* The server that each decision waits for, and what that costs. */
static void
say_preferred(struct words *w, const struct tenant_view *v)
{
	const struct diagnosis_facts *f = v->facts;
	uint32_t i = 0;

	if (f->prefer_us == 0 || !diagnosis_unwell(v->codes[0]))
		return;
	while (i < f->peers->count &&
	       suspect_is(&f->peers->list[i].suspect, f->suspect_after))
		i++;
	if (i > 0)
		words_add(w, "; the oldest is suspected: not waited for");
	if (i == f->peers->count || !diagnosis_unwell(v->codes[i]))
		return;
	if (i == 0)
		words_add(w, "; the oldest does not");
	else
		words_add(w, "; server %" PRIu64 " is the oldest of the others",
		    f->peers->list[i].server_id);
	words_add(w, ": each decision waits %" PRId64 " ms for it%s",
	    f->prefer_us / 1000,
	    f->suspect_after > 0 ? " until it is suspected"
				 : "; see suspect_after in rl-agent.json(5)");
}

static void
say_partial(struct words *w, const struct tenant_view *v)
{
	say_all(w, v, "not all servers answer");
	say_preferred(w, v);
}

static void
say_ok(struct words *w, const struct tenant_view *v)
{
	say_all(w, v,
	    v->clocks == v->facts->peers->count
		? "every server answers"
		: "every server that was asked answers");
}

static void
say_dns(struct words *w, const struct tenant_view *v)
{
	words_add(w, "no server is known: ");
	say_dns_failing(w, v->facts);
}

static void
say_stale(struct words *w, const struct tenant_view *v)
{
	words_add(w, "servers answer, but ");
	say_dns_failing(w, v->facts);
	words_add(w, "; the known ones stay in use");
}

void
diagnosis_say_tenant(const struct tenant_view *v, struct diagnosis *out)
{
	struct words w = {0};

	switch (out->code) {
	case DIAGNOSIS_OK:
		say_ok(&w, v);
		break;
	case DIAGNOSIS_UNASKED:
		words_add(&w, "no operation has been sent yet");
		break;
	case DIAGNOSIS_WAITING:
		words_add(&w, "no answer yet; ask again in a second");
		break;
	case DIAGNOSIS_DISCOVERING:
		words_add(&w, "the servers are being looked for");
		break;
	case DIAGNOSIS_DNS:
		say_dns(&w, v);
		break;
	case DIAGNOSIS_DNS_STALE:
		say_stale(&w, v);
		break;
	case DIAGNOSIS_NOT_SENT:
		say_all(&w, v, "the kernel takes no datagram to any server");
		break;
	case DIAGNOSIS_REFUSED:
		say_all(&w, v,
		    "nothing listens at any server's address, says ICMP");
		break;
	case DIAGNOSIS_UNREACHABLE:
		say_all(&w, v, "no server can be reached, says ICMP");
		break;
	case DIAGNOSIS_INVALID:
		say_all(&w, v,
		    "what comes back is no valid answer; see the servers");
		break;
	case DIAGNOSIS_PROFILE:
		say_profile(&w, v);
		break;
	case DIAGNOSIS_SLOW:
		say_tenant_slow(&w, v);
		break;
	case DIAGNOSIS_NEVER:
		say_tenant_never(&w, v);
		break;
	case DIAGNOSIS_CLOCK_STEP:
		say_step(&w, v);
		break;
	case DIAGNOSIS_SILENT:
		say_tenant_silent(&w, v);
		break;
	case DIAGNOSIS_PARTIAL:
		say_partial(&w, v);
		break;
	case DIAGNOSIS_CLOCK_OFF:
		say_clocks(&w, v);
		break;
	}
	words_finish(&w, out);
}
