/*
 * Every call first forgets what expired, then judges all blocks against live
 * definitions and quotas, then finds or makes what they name, and changes
 * levels and samples only at its end.
 */
#include "sandbox/state.h"

#include <stdlib.h>
#include <string.h>

#include "proto/err.h"
#include "sandbox/buckets.h"
#include "sandbox/labels.h"
#include "sandbox/trackers.h"

struct state {
	struct credential cred; /* without its secret */
	struct buckets buckets;
	struct trackers trackers;
	struct labels labels;
};

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void
reap(struct state *s, int64_t now)
{
	buckets_reap(&s->buckets, now);
	trackers_reap(&s->trackers, now);
}

struct state *
state_new(const struct credential *cred, enum profile profile, uint64_t seed)
{
	struct state *s = calloc(1, sizeof(*s));
	const struct quotas *q = &cred->quotas;

	if (s == NULL)
		return NULL;
	s->cred = *cred;
	explicit_bzero(s->cred.secret, sizeof(s->cred.secret));
	buckets_init(&s->buckets, seed);
	trackers_init(&s->trackers, profile, q->latency_buffer, seed);
	if (labels_init(&s->labels, least(q->metrics_labels, STATE_MAX_LABELS),
		seed) < 0) {
		state_free(s);
		return NULL;
	}
	return s;
}

void
state_free(struct state *s)
{
	if (s == NULL)
		return;
	buckets_fini(&s->buckets);
	trackers_fini(&s->trackers);
	labels_fini(&s->labels);
	free(s);
}

static enum state_verdict
verdict_of(int rc)
{
	if (rc == RLA_EMALFORMED)
		return STATE_MALFORMED;
	return rc == RLA_EMISMATCH ? STATE_MISMATCH : STATE_NO_MEMORY;
}

static bool
over(uint32_t live, uint32_t fresh, uint32_t quota, uint32_t own_max)
{
	return fresh > 0 && (uint64_t)live + fresh > least(quota, own_max);
}

static bool
over_trackers(const struct state *s, uint32_t fresh)
{
	return over(s->trackers.map.count, fresh,
	    s->cred.quotas.latency_trackers, STATE_MAX_TRACKERS);
}

static bool
over_buckets(const struct state *s, uint32_t fresh)
{
	return over(s->buckets.map.count, fresh, s->cred.quotas.rate_buckets,
	    STATE_MAX_BUCKETS);
}

/*
 * Judges a whole request. Returns 0 with the quota that it exceeds, if any,
 * or the error for which it is ignored.
 */
static int
judge(const struct state *s, const struct pdu_rate *request,
    const struct trackers_blocks *guards, enum state_quota *quota)
{
	uint32_t new_buckets, new_trackers;
	size_t i;
	int rc;

	*quota = QUOTA_NONE;
	if (request->guard_count + request->resource_count == 0)
		return RLA_EMALFORMED;
	rc = buckets_judge(&s->buckets, request, &new_buckets);
	if (rc < 0)
		return rc;
	rc = trackers_judge(&s->trackers, guards, &new_trackers);
	if (rc < 0 && rc != RLA_EQUOTA)
		return rc;
	if (rc == RLA_EQUOTA)
		*quota = QUOTA_LATENCY_BUFFER;
	if (over_trackers(s, new_trackers))
		*quota = QUOTA_LATENCY_TRACKERS;
	if (over_buckets(s, new_buckets))
		*quota = QUOTA_RATE_BUCKETS;
	for (i = 0; i < request->resource_count; i++)
		if (request->resources[i].window_ms >
		    s->cred.quotas.rate_window_ms)
			*quota = QUOTA_RATE_WINDOW;
	if (!credential_allows_ttl(&s->cred, request->dedup_ttl_ms))
		*quota = QUOTA_DEDUP_TTL;
	return 0;
}

/* A rejection that no client can take for anything else. */
static void
answer_quota(struct pdu_rate *response)
{
	size_t i;

	for (i = 0; i < response->resource_count; i++)
		response->resources[i].limit = 0; /* nothing was consumed */
	for (i = 0; i < response->guard_count; i++)
		response->guards[i].current_ms =
		    response->resource_count > 0 ? 0 : UINT32_MAX;
}

/* True when a guard fails. */
static bool
ask_guards(
    struct trackers_slot *const *slots, int64_t now, struct pdu_rate *response)
{
	bool failed = false;
	size_t i;

	for (i = 0; i < response->guard_count; i++) {
		struct pdu_guard *g = &response->guards[i];

		g->current_ms = tracker_latency(&slots[i]->tracker, now);
		failed = failed || g->current_ms >= g->threshold_ms;
	}
	return failed;
}

static struct state_result
decide(struct state *s, int64_t now, const struct trackers_blocks *guards,
    struct pdu_rate *response)
{
	struct state_result result = {.verdict = STATE_NO_MEMORY};
	struct trackers_slot *trackers[TRACKERS_MAX_BLOCKS];
	struct buckets_slot *buckets[PDU_MAX_RESOURCES];
	size_t i;

	if (trackers_use(&s->trackers, now, guards, trackers) < 0 ||
	    buckets_use(&s->buckets, now, response, buckets) < 0)
		return result;
	result.guard_failed = ask_guards(trackers, now, response);
	result.resource_failed = buckets_ask(buckets, now, response);
	result.verdict = STATE_DENIED;
	if (!result.guard_failed && !result.resource_failed) {
		result.verdict = STATE_ALLOWED;
		buckets_consume(&s->buckets, buckets, response->resource_count);
	}
	for (i = 0; i < response->resource_count; i++)
		response->resources[i].limit = bucket_rate(&buckets[i]->bucket);
	return result;
}

struct state_result
state_check(struct state *s, int64_t now_ms, const struct pdu_rate *request,
    struct pdu_rate *response)
{
	struct state_result result = {.quota = QUOTA_NONE};
	struct trackers_blocks guards;
	enum state_quota quota;
	int rc;

	reap(s, now_ms);
	trackers_of_guards(request, &guards);
	rc = judge(s, request, &guards, &quota);
	if (rc < 0) {
		result.verdict = verdict_of(rc);
		return result;
	}
	*response = *request;
	response->label = NULL;
	response->label_len = 0;
	if (quota == QUOTA_NONE) {
		result = decide(s, now_ms, &guards, response);
	} else {
		result.verdict = STATE_QUOTA;
		result.quota = quota;
		answer_quota(response);
	}
	if (result.verdict != STATE_NO_MEMORY)
		result.label_overflow = labels_overflow(
		    &s->labels, request->label, request->label_len);
	return result;
}

struct state_result
state_report(struct state *s, int64_t now_ms, const struct pdu_report *report)
{
	struct state_result result = {.verdict = STATE_ALLOWED};
	struct trackers_slot *slots[TRACKERS_MAX_BLOCKS];
	struct trackers_blocks blocks;
	uint32_t fresh;
	size_t i;
	int rc;

	reap(s, now_ms);
	trackers_of_report(report, &blocks);
	rc = blocks.count > 0 ? trackers_judge(&s->trackers, &blocks, &fresh)
			      : RLA_EMALFORMED;
	if (rc == RLA_EQUOTA)
		result.quota = QUOTA_LATENCY_BUFFER;
	else if (rc == 0 && over_trackers(s, fresh))
		result.quota = QUOTA_LATENCY_TRACKERS;
	if (result.quota != QUOTA_NONE) {
		result.verdict = STATE_QUOTA;
		return result;
	}
	if (rc == 0)
		rc = trackers_use(&s->trackers, now_ms, &blocks, slots);
	if (rc < 0) {
		result.verdict = verdict_of(rc);
		return result;
	}
	for (i = 0; i < blocks.count; i++)
		tracker_add(&slots[i]->tracker, now_ms,
		    report->samples[i].observed_ms, &s->trackers.samples_left);
	return result;
}

uint32_t
state_buckets(struct state *s, int64_t now_ms)
{
	reap(s, now_ms);
	return s->buckets.map.count;
}

uint32_t
state_trackers(struct state *s, int64_t now_ms)
{
	reap(s, now_ms);
	return s->trackers.map.count;
}

const char *
state_quota_name(enum state_quota quota)
{
	switch (quota) {
	case QUOTA_NONE:
		return "none";
	case QUOTA_DEDUP_TTL:
		return "dedup-ttl";
	case QUOTA_RATE_WINDOW:
		return "rate-window";
	case QUOTA_RATE_BUCKETS:
		return "rate-buckets";
	case QUOTA_LATENCY_TRACKERS:
		return "latency-trackers";
	case QUOTA_LATENCY_BUFFER:
		return "latency-buffer";
	}
	return "unknown";
}
