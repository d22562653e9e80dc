/*
 * The words of a server's diagnosis: what was seen, how often and how long ago,
 * and what that can and cannot mean. Nothing is judged here.
 */
#include "daemon/diagnosis_private.h"

#include <inttypes.h>
#include <string.h>

static void
say_last_answer(struct words *w, const struct server_view *v)
{
	if (v->peer->last_answer == 0) {
		words_add(w, "; it has never answered");
		return;
	}
	words_add(w, "; last answer ");
	words_ago(w, v->facts, v->peer->last_answer);
}

static void
say_refused(struct words *w, const struct server_view *v)
{
	const struct peer_events *e = &v->peer->refused;

	words_add(w, "ICMP \"%s\", %" PRIu64 " in all, the last ",
	    strerror(e->error), e->count);
	words_ago(w, v->facts, e->last);
	say_last_answer(w, v);
}

static void
say_not_sent(struct words *w, const struct server_view *v)
{
	const struct peer_events *e = &v->peer->send_errors;

	words_add(w,
	    "the kernel refuses to send: \"%s\", %" PRIu64 " in all, the "
	    "last ",
	    strerror(e->error), e->count);
	words_ago(w, v->facts, e->last);
	say_last_answer(w, v);
}

static const char *
invalid_meaning(enum peer_invalid why)
{
	switch (why) {
	case PEER_AUTH:
		return "their authentication fails: another secret there, or "
		       "forgeries";
	case PEER_MALFORMED:
		return "they are authentic, but no rate responses as this "
		       "profile has them";
	case PEER_CONTENT:
		return "they are authentic, but answer with other buckets or "
		       "trackers than were asked for";
	case PEER_SOURCE:
		return "they come from other addresses, which strict_source "
		       "forbids";
	}
	return "";
}

static void
say_invalid(struct words *w, const struct server_view *v)
{
	const struct peer *p = v->peer;
	enum peer_invalid why = PEER_AUTH;

	(void)peer_invalid_since(p, p->asked_since, &why);
	words_count(w, p->invalid[why].count, "datagram", "datagrams");
	words_add(w, " in its name ignored, the last ");
	words_ago(w, v->facts, p->invalid[why].last);
	words_add(w, ": %s", invalid_meaning(why));
	say_last_answer(w, v);
}

static void
say_slow(struct words *w, const struct server_view *v)
{
	words_count(w, v->peer->overdue, "answer", "answers");
	words_add(w, " came after the horizon of %" PRId64 " ms, the last ",
	    v->facts->horizon_us / 1000);
	words_ago(w, v->facts, v->peer->last_answer);
	if (v->peer->late_us > 0)
		words_add(w, ", after about %" PRId64 " ms",
		    (v->peer->late_us + 999) / 1000);
}

static void
say_waiting(struct words *w, const struct server_view *v)
{
	words_add(w, "no answer yet; first asked ");
	words_ago(w, v->facts, v->peer->asked_since);
}

/* Key and clock of this host are good for the others, but not for it, perhaps.
 */
static void
say_alone(struct words *w, const struct server_view *v)
{
	words_add(w,
	    "; other servers answer the same requests, so this agent's key and "
	    "clock are good for them: it is stopped, its own clock is off, it "
	    "%s the key, or ",
	    v->peer->last_answer == 0 ? "does not have" : "no longer has");
	if (v->facts->strangers == 0) {
		words_add(w, "nothing gets there or back");
		return;
	}
	words_add(w, "it has another id: ");
	words_strangers(w, v->facts);
}

/* What the others tell of key and clock, and of the way there. */
static void
say_others(struct words *w, const struct server_view *v)
{
	if (v->others_answer)
		say_alone(w, v);
	else if (v->facts->peers->count > 1)
		words_add(w, "; no other server answers either");
	if (!diagnosis_refusing(v->peer))
		words_add(w, "; no ICMP refusal has come");
}

static void
say_never(struct words *w, const struct server_view *v)
{
	words_add(w, "no answer to ");
	words_count(w, v->peer->sent, "request", "requests");
	words_add(w, ", the first ");
	words_ago(w, v->facts, v->peer->asked_since);
	say_others(w, v);
}

/* While it answered; perhaps it was on its way out of step. */
static void
say_last_clock(struct words *w, const struct peer *p)
{
	const int sign = diagnosis_clock_sign(p);

	if (!p->clock.known)
		return;
	words_add(w, "; its clock was ");
	if (sign == 0) {
		words_add(w, "in step");
	} else {
		words_add(w, sign > 0 ? "ahead " : "behind ");
		words_apart(w, p->clock.offset_ms);
	}
	words_add(w, " when it last answered");
}

static void
say_silent(struct words *w, const struct server_view *v)
{
	words_count(w, v->peer->unanswered, "operation", "operations");
	words_add(w, " in a row without its answer, since ");
	words_span(w, v->facts->now - v->peer->asked_since);
	say_last_answer(w, v);
	say_last_clock(w, v->peer);
	say_others(w, v);
}

static void
say_clock_off(struct words *w, const struct server_view *v)
{
	const struct peer_clock *c = &v->peer->clock;

	words_add(w, "answers; its clock is %s this one ",
	    c->offset_ms > 0 ? "ahead of" : "behind");
	words_apart(w, c->offset_ms);
}

static void
say_server_ok(struct words *w, const struct server_view *v)
{
	words_add(w, "last answer ");
	words_ago(w, v->facts, v->peer->last_answer);
}

void
diagnosis_say_server(const struct server_view *v, struct diagnosis *out)
{
	struct words w = {0};

	switch (out->code) {
	case DIAGNOSIS_UNASKED:
		words_add(&w, "nothing was sent to it yet");
		break;
	case DIAGNOSIS_NOT_SENT:
		say_not_sent(&w, v);
		break;
	case DIAGNOSIS_REFUSED:
	case DIAGNOSIS_UNREACHABLE:
		say_refused(&w, v);
		break;
	case DIAGNOSIS_INVALID:
		say_invalid(&w, v);
		break;
	case DIAGNOSIS_SLOW:
		say_slow(&w, v);
		break;
	case DIAGNOSIS_WAITING:
		say_waiting(&w, v);
		break;
	case DIAGNOSIS_NEVER:
		say_never(&w, v);
		break;
	case DIAGNOSIS_SILENT:
		say_silent(&w, v);
		break;
	case DIAGNOSIS_CLOCK_OFF:
		say_clock_off(&w, v);
		break;
	case DIAGNOSIS_OK:
		say_server_ok(&w, v);
		break;
	case DIAGNOSIS_DISCOVERING: /* of tenants alone */
	case DIAGNOSIS_DNS:
	case DIAGNOSIS_DNS_STALE:
	case DIAGNOSIS_PROFILE:
	case DIAGNOSIS_CLOCK_STEP:
	case DIAGNOSIS_PARTIAL:
		break;
	}
	words_finish(&w, out);
}
