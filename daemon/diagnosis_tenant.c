/*
 * The words of a tenant's diagnosis, with the evidence that helps to tell the
 * causes of silence apart. Nothing is judged here.
 */
#include "daemon/diagnosis_private.h"

#include <inttypes.h>

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
		words_add(w, "; for the clock: the kernel says that it is not "
			     "synchronised");
		return;
	case CLOCK_SYNCHRONISED:
		words_add(w, "; against the clock: the kernel says that it is "
			     "synchronised");
		return;
	case CLOCK_SYNC_UNKNOWN:
		words_add(w, "; the kernel does not say whether the clock is "
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
say_tenant_never(struct words *w, const struct tenant_view *v)
{
	const struct peers *ps = v->facts->peers;

	words_add(w, "no server has ever answered (");
	say_counts(w, v);
	words_add(w,
	    "): a wrong key, a clock that is off, or nothing gets there or "
	    "back");
	if (ps->guarded.unanswered > 0 && ps->plain.unanswered == 0)
		words_add(
		    w, "; all operations had guards, so a wrong profile, too");
	if (v->facts->odd_profile != NULL)
		words_add(w,
		    "; profile %s is configured, which is not the one of "
		    "the key's format",
		    v->facts->odd_profile);
	say_evidence(w, v);
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
	words_add(w, ": servers are silent on time stamps that are off");
	say_evidence(w, v);
}

static void
say_profile(struct words *w, const struct tenant_view *v)
{
	const struct peers *ps = v->facts->peers;

	words_add(w,
	    "operations without guards are answered (%" PRIu64
	    "), those with guards never (%" PRIu64
	    "): a wrong profile, or trackers that were defined otherwise "
	    "before",
	    ps->plain.answered, ps->guarded.unanswered);
	if (v->facts->odd_profile != NULL)
		words_add(w,
		    "; profile %s is configured, which is not the one of "
		    "the key's format",
		    v->facts->odd_profile);
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
	words_add(w, " or so%s: past their tolerance they are silent",
	    v->clocks > 1 ? "" : " (one of the two is off)");
	say_sync(w, v->facts);
}

static void
say_all(struct words *w, const struct tenant_view *v, const char *what)
{
	words_add(w, "%s (", what);
	say_counts(w, v);
	words_add(w, ")");
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
	words_add(w, "; those that are known are used on");
}

void
diagnosis_say_tenant(const struct tenant_view *v, struct diagnosis *out)
{
	struct words w = {0};

	switch (out->code) {
	case DIAGNOSIS_OK:
		say_all(&w, v, "all is well");
		break;
	case DIAGNOSIS_UNASKED:
		words_add(&w, "no operation has been sent yet");
		break;
	case DIAGNOSIS_WAITING:
		words_add(&w, "no answer yet, and no operation is over yet");
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
		say_all(&w, v, "by ICMP, no server listens at its address");
		break;
	case DIAGNOSIS_UNREACHABLE:
		say_all(&w, v, "by ICMP, there is no way to any server");
		break;
	case DIAGNOSIS_INVALID:
		say_all(&w, v,
		    "what comes back is no valid answer; see the servers");
		break;
	case DIAGNOSIS_PROFILE:
		say_profile(&w, v);
		break;
	case DIAGNOSIS_SLOW:
		say_all(&w, v,
		    "servers answer after the horizon; the key and the clock "
		    "are good");
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
		say_all(&w, v, "not all servers answer");
		break;
	case DIAGNOSIS_CLOCK_OFF:
		say_clocks(&w, v);
		break;
	}
	words_finish(&w, out);
}
