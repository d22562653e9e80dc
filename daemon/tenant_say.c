/*
 * What a tenant's log says of its servers. Packets decide how often something
 * happens, so each line that tells of a fault is paced; the one that tells of
 * its end comes only after it was written, once, and so needs no pace of its
 * own.
 */
#include "daemon/tenant_private.h"

#include <inttypes.h>

#include "daemon/log.h"

/* Operations in a row: fewer may be loss. */
#define SILENT_AFTER 10

#define SEE "see rlctl servers"

static uint64_t
refused(const struct tenant *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->peers.count; i++)
		n += t->peers.list[i].refused.count;
	return n;
}

void
tenant_say_silence(struct tenant *t)
{
	if (!log_may(
		LOG_LEVEL_WARNING, &t->silence, loop_now(), &t->silence_unsaid))
		return;
	log_warning("silence",
	    "tenant=\"%s\" over=no servers=%u timeouts=%" PRIu64
	    " not_sent=%" PRIu64 " refused=%" PRIu64 " unsaid=%" PRIu64
	    " hint=\"%s" SEE "\"",
	    t->config->name, t->members->count, t->counters.timeouts,
	    t->counters.not_sent, refused(t), t->silence_unsaid,
	    tenant_heard(t) ? ""
			    : "no server has ever answered: key or clock? ");
	t->silence_unsaid = 0;
	t->silence_told = true;
}

void
tenant_say_suspect(struct tenant *t, const struct peer *peer, bool is)
{
	if (is)
		t->counters.suspicions++;
	if (!log_may(LOG_LEVEL_INFO, &t->suspicion, loop_now(),
		&t->suspicion_unsaid))
		return;
	log_info("suspect",
	    "tenant=\"%s\" server=%" PRIu64 " suspected=%s unsaid=%" PRIu64,
	    t->config->name, peer->server_id, is ? "yes" : "no",
	    t->suspicion_unsaid);
	t->suspicion_unsaid = 0;
}

/* Does every operation wait for this one's answer? */
static bool
waited_for(const struct tenant *t, const struct peer *peer)
{
	return peer == &t->peers.list[0] &&
	       t->config->plan.suspect_after == 0 &&
	       t->config->plan.prefer_end_us[0] > 0;
}

void
tenant_say_unanswered(struct tenant *t, struct peer *peer)
{
	uint64_t tries = 0; /* not lines: it is told when there is room */

	if (peer->silence_told || peer->unanswered < SILENT_AFTER ||
	    !errorrate_try(&t->server_lines, loop_now(), &tries))
		return;
	log_warning("server",
	    "tenant=\"%s\" server=%" PRIu64 " answers=no unanswered=%" PRIu32
	    " refused=%" PRIu64 " hint=\"%s" SEE "\"",
	    t->config->name, peer->server_id, peer->unanswered,
	    peer->refused.count,
	    waited_for(t, peer)
		? "it is the oldest: every check waits, suspect_after is 0; "
		: "");
	peer->silence_told = true;
}

void
tenant_say_answered(struct tenant *t, struct peer *peer)
{
	if (t->silence_told)
		log_info("silence", "tenant=\"%s\" over=yes", t->config->name);
	t->silence_told = false;
	if (peer == NULL || !peer->silence_told)
		return;
	log_info("server", "tenant=\"%s\" server=%" PRIu64 " answers=yes",
	    t->config->name, peer->server_id);
	peer->silence_told = false;
}
