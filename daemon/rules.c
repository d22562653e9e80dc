/*
 * Rules and configured trackers to wire requests. A check is judged in full
 * before anything of it can be sent, sizes first, so that the room for names
 * is never exceeded: no datagram holds more than PDU_MAX_BLOCKS blocks.
 */
#include "daemon/rules.h"

#include <assert.h>
#include <string.h>

#include "daemon/rules_compile.h"
#include "proto/err.h"
#include "proto/packet.h"

#define TOKENS_MAX UINT16_MAX

/* The name in room, or in the configuration when no brace is in it. */
static int
place_name(struct rules_request *out, const char *kind, const char *name,
    const struct rules_caller *caller, struct ipc_str *str,
    char text[RULES_TEXT_MAX])
{
	uint8_t *room = out->name_room + out->room_used;
	size_t len;
	int rc;

	if (strpbrk(name, "{}") == NULL) {
		str->bytes = (const uint8_t *)name;
		str->len = (uint16_t)strlen(name);
		return 0;
	}
	assert(sizeof(out->name_room) - out->room_used >= CONFIG_NAME_MAX);
	rc = rules_expand(kind, name, caller, room, &len, text);
	if (rc != 0)
		return rc;
	str->bytes = room;
	str->len = (uint16_t)len;
	out->room_used += len;
	return 0;
}

static int
build_guard(struct rules *rules, const struct config_rule *rule, size_t i,
    const struct rules_caller *caller, struct rules_request *out,
    char text[RULES_TEXT_MAX])
{
	const struct config *c = rules->config;
	const struct config_tenant *tenant = &c->tenants[rule->tenant];
	const size_t index = rule->guards[i].tracker;
	const struct config_tracker *t = &c->trackers[index];
	struct ipc_str *name = &out->guard_names[i];
	struct pdu_guard *g = &out->rate.guards[i];
	int rc;

	if (!config_allows_buffer(tenant, t->buffer_size))
		return rules_fail(RLA_EQUOTA, text,
		    "guards[%zu]: its tracker's buffer_size of %u is over the "
		    "key's limit of %u",
		    i, t->buffer_size, tenant->cred.quotas.latency_buffer);
	rc = place_name(out, "tracker", t->name, caller, name, text);
	if (rc != 0)
		return rc;
	*g = (struct pdu_guard){
	    .ttl_ms = t->ttl_ms,
	    .max_samples = t->max_samples,
	    .buffer_size = tenant->profile == PROFILE_V1 ? t->buffer_size : 0,
	    .min_samples = t->min_samples,
	    .threshold_ms = rule->guards[i].below_ms,
	};
	if (rules->trackers[index].fixed) {
		memcpy(
		    g->id, rules->trackers[index].id[tenant->profile], ID_LEN);
		return 0;
	}
	rc = rules_hash_tracker(
	    rules, tenant->profile, t, name->bytes, name->len, g->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}

static int
build_resource(struct rules *rules, const struct config_rule *rule, size_t i,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX])
{
	const struct config *c = rules->config;
	const struct config_tenant *tenant = &c->tenants[rule->tenant];
	const struct config_resource *r = &rule->resources[i];
	const struct bucket_id *fixed =
	    &rules->buckets[rules->list[rule - c->rules].first + i];
	struct ipc_str *name = &out->resource_names[i];
	struct pdu_resource *res = &out->rate.resources[i];
	int rc;

	if (!config_allows_window(tenant, r->window_ms))
		return rules_fail(RLA_EQUOTA, text,
		    "resources[%zu]: its window_ms of %u is over the key's "
		    "limit of %u",
		    i, r->window_ms, tenant->cred.quotas.rate_window_ms);
	if (tokens > TOKENS_MAX / r->tokens)
		return rules_fail(RLA_EINVAL, text,
		    "resources[%zu]: %u times %u tokens is over %d", i, tokens,
		    r->tokens, TOKENS_MAX);
	rc = place_name(out, "bucket", r->bucket, caller, name, text);
	if (rc != 0)
		return rc;
	res->window_ms = r->window_ms;
	res->limit = r->limit;
	res->tokens = (uint16_t)(tokens * r->tokens);
	if (fixed->fixed) {
		memcpy(res->id, fixed->id, ID_LEN);
		return 0;
	}
	rc = rules_hash_bucket(rules, r, name->bytes, name->len, res->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}

int
rules_build(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX])
{
	size_t size = rules->list[rule - rules->config->rules].size;
	int rc = 0;

	if (tokens < 1 || tokens > TOKENS_MAX)
		return rules_fail(RLA_EINVAL, text,
		    "tokens must be 1..%d, not %u", TOKENS_MAX, tokens);
	if (size > PACKET_MAX)
		return rules_fail_size(text, size);
	out->room_used = 0;
	out->rate.dedup_ttl_ms = 0;
	out->rate.guard_count = rule->guard_count;
	out->rate.resource_count = rule->resource_count;
	out->rate.label = (const uint8_t *)rule->label;
	out->rate.label_len = strlen(rule->label);
	for (size_t i = 0; i < rule->guard_count && rc == 0; i++)
		rc = build_guard(rules, rule, i, caller, out, text);
	for (size_t i = 0; i < rule->resource_count && rc == 0; i++)
		rc = build_resource(rules, rule, i, caller, tokens, out, text);
	return rc;
}

int
rules_build_report(struct rules *rules, const struct config_tenant *tenant,
    const struct config_tracker *tracker, const struct rules_caller *caller,
    uint32_t latency_ms, struct pdu_sample *out, char text[RULES_TEXT_MAX])
{
	const struct tracker_id *fixed =
	    &rules->trackers[tracker - rules->config->trackers];
	uint8_t name[CONFIG_NAME_MAX];
	size_t len;
	int rc;

	if (!config_allows_buffer(tenant, tracker->buffer_size))
		return rules_fail(RLA_EQUOTA, text,
		    "tracker \"%s\": its buffer_size of %u is over the key's "
		    "limit of %u",
		    tracker->name, tracker->buffer_size,
		    tenant->cred.quotas.latency_buffer);
	*out = (struct pdu_sample){
	    .ttl_ms = tracker->ttl_ms,
	    .max_samples = tracker->max_samples,
	    .buffer_size =
		tenant->profile == PROFILE_V1 ? tracker->buffer_size : 0,
	    .min_samples = tracker->min_samples,
	    .observed_ms = latency_ms,
	};
	if (fixed->fixed) {
		memcpy(out->id, fixed->id[tenant->profile], ID_LEN);
		return 0;
	}
	rc = rules_expand("tracker", tracker->name, caller, name, &len, text);
	if (rc != 0)
		return rc;
	rc = rules_hash_tracker(
	    rules, tenant->profile, tracker, name, len, out->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}

uint32_t
rules_retry_after_ms(uint32_t window_ms, uint32_t limit, uint32_t deficit)
{
	uint64_t ms;

	if (deficit == 0)
		return 0;
	if (limit == 0)
		return UINT32_MAX;
	/* Below 2^64: (2^32 - 1)^2 + 2^32 - 2. */
	ms = ((uint64_t)deficit * window_ms + limit - 1) / limit;
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}
