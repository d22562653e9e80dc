/*
 * Rules and configured trackers to wire requests. A check is judged in full
 * before anything of it can be sent, sizes first, so that the room for names
 * is never exceeded: no datagram holds more than PDU_MAX_BLOCKS blocks.
 */
#include "daemon/rules.h"

#include <assert.h>
#include <string.h>

#include "daemon/rules_compile.h"
#include "daemon/template.h"
#include "proto/err.h"

static int
check_guard(const struct config_tenant *tenant, const struct config_tracker *t,
    size_t i, char text[RULES_TEXT_MAX])
{
	if (config_allows_buffer(tenant, t->buffer_size))
		return 0;
	return rules_fail(RLA_EQUOTA, text,
	    "guards[%zu]: its tracker's buffer_size of %u is over the key's "
	    "limit of %u",
	    i, t->buffer_size, tenant->cred.quotas.latency_buffer);
}

static int
check_resource(const struct config_tenant *tenant,
    const struct config_resource *r, size_t i, uint32_t tokens,
    char text[RULES_TEXT_MAX])
{
	if (!config_allows_window(tenant, r->window_ms))
		return rules_fail(RLA_EQUOTA, text,
		    "resources[%zu]: its window_ms of %u is over the key's "
		    "limit of %u",
		    i, r->window_ms, tenant->cred.quotas.rate_window_ms);
	return rules_check_product(i, tokens, r->tokens, text);
}

static int
check_rule(const struct rules *rules, const struct config_rule *rule,
    uint32_t tokens, char text[RULES_TEXT_MAX])
{
	const struct config *c = rules->config;
	const struct config_tenant *tenant = &c->tenants[rule->tenant];
	int rc = rules_check_tokens(tokens, text);

	if (rc == 0)
		rc = rules_check_size(rules->list[rule - c->rules].size, text);
	for (size_t i = 0; i < rule->guard_count && rc == 0; i++)
		rc = check_guard(
		    tenant, &c->trackers[rule->guards[i].tracker], i, text);
	for (size_t i = 0; i < rule->resource_count && rc == 0; i++)
		rc = check_resource(
		    tenant, &rule->resources[i], i, tokens, text);
	return rc;
}

/* The name in room, or as it was compiled when it is the same for all. */
static int
place_name(struct rules_request *out, const struct rules_name *name,
    const struct rules_caller *caller, struct ipc_str *str,
    char text[RULES_TEXT_MAX])
{
	int rc;

	assert(sizeof(out->name_room) - out->room_used >= CONFIG_NAME_MAX);
	rc = rules_expand(
	    name, caller, out->name_room + out->room_used, str, text);
	if (rc == 0 && !name->is_fixed)
		out->room_used += str->len;
	return rc;
}

static const struct compiled_bucket *
buckets_of(const struct rules *rules, const struct config_rule *rule)
{
	return &rules->buckets[rules->list[rule - rules->config->rules].first];
}

/* All of a request but the ids. */
static int
fill(const struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX])
{
	const struct compiled_bucket *buckets = buckets_of(rules, rule);
	int rc = 0;

	out->room_used = 0;
	out->rate.dedup_ttl_ms = 0;
	out->rate.guard_count = rule->guard_count;
	out->rate.resource_count = rule->resource_count;
	out->rate.label = (const uint8_t *)rule->label;
	out->rate.label_len = strlen(rule->label);
	for (size_t i = 0; i < rule->guard_count && rc == 0; i++) {
		const struct config_guard *g = &rule->guards[i];
		const struct compiled_tracker *t = &rules->trackers[g->tracker];

		rules_put_guard(&out->rate.guards[i], &t->is, g->below_ms);
		rc = place_name(
		    out, &t->name, caller, &out->guard_names[i], text);
	}
	for (size_t i = 0; i < rule->resource_count && rc == 0; i++) {
		const struct config_resource *r = &rule->resources[i];

		rules_put_resource(&out->rate.resources[i], r->window_ms,
		    r->limit, tokens * r->tokens);
		rc = place_name(out, &buckets[i].name, caller,
		    &out->resource_names[i], text);
	}
	return rc;
}

static int
identify_tracker(const struct rules *rules, enum profile profile, size_t index,
    const struct ipc_str *name, uint8_t id[ID_LEN], char text[RULES_TEXT_MAX])
{
	const struct compiled_tracker *t = &rules->trackers[index];

	if (!t->name.is_fixed)
		return rules_tracker_id(
		    rules->ids, profile, &t->is, name, id, text);
	memcpy(id, t->id[profile], ID_LEN);
	return 0;
}

static int
identify_bucket(const struct rules *rules, const struct config_rule *rule,
    size_t i, const struct ipc_str *name, uint8_t id[ID_LEN],
    char text[RULES_TEXT_MAX])
{
	const struct config_resource *r = &rule->resources[i];
	const struct compiled_bucket *b = &buckets_of(rules, rule)[i];

	if (!b->name.is_fixed)
		return rules_bucket_id(
		    rules->ids, r->window_ms, r->limit, name, id, text);
	memcpy(id, b->id, ID_LEN);
	return 0;
}

int
rules_build(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX])
{
	const struct config *c = rules->config;
	const enum profile profile = c->tenants[rule->tenant].profile;
	int rc = check_rule(rules, rule, tokens, text);

	if (rc == 0)
		rc = fill(rules, rule, caller, tokens, out, text);
	for (size_t i = 0; i < rule->guard_count && rc == 0; i++)
		rc = identify_tracker(rules, profile, rule->guards[i].tracker,
		    &out->guard_names[i], out->rate.guards[i].id, text);
	for (size_t i = 0; i < rule->resource_count && rc == 0; i++)
		rc = identify_bucket(rules, rule, i, &out->resource_names[i],
		    out->rate.resources[i].id, text);
	return rc;
}

int
rules_names(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens,
    struct rules_request *out)
{
	return fill(rules, rule, caller, tokens, out, NULL);
}

int
rules_show_guard(struct rules *rules, const struct config_rule *rule, size_t i,
    const struct rules_caller *caller, struct rules_shown *out)
{
	const struct config *c = rules->config;
	const size_t tracker = rule->guards[i].tracker;
	int rc = rules_expand(&rules->trackers[tracker].name, caller, out->room,
	    &out->name, NULL);

	if (rc == 0)
		rc = identify_tracker(rules, c->tenants[rule->tenant].profile,
		    tracker, &out->name, out->id, NULL);
	return rc;
}

int
rules_show_resource(struct rules *rules, const struct config_rule *rule,
    size_t i, const struct rules_caller *caller, struct rules_shown *out)
{
	int rc = rules_expand(&buckets_of(rules, rule)[i].name, caller,
	    out->room, &out->name, NULL);

	if (rc == 0)
		rc = identify_bucket(rules, rule, i, &out->name, out->id, NULL);
	return rc;
}

/* Each value is a length, which a byte holds, and so many bytes: no two lists
 * of values read alike. Of names there are two, of numbers two. */
_Static_assert(CONFIG_NAME_MAX <= UINT8_MAX &&
		   2 * (1 + CONFIG_NAME_MAX) + 2 * (1 + sizeof(uid_t)) <=
		       RULES_LOCAL_KEY_MAX,
    "local keys");

struct local_key {
	uint8_t *room;
	size_t len;
};

static void
put_value(struct local_key *k, const void *bytes, size_t len)
{
	assert(len <= CONFIG_NAME_MAX);
	k->room[k->len++] = (uint8_t)len;
	memcpy(k->room + k->len, bytes, len);
	k->len += len;
}

static unsigned
varies(const struct rules *rules, const struct config_rule *rule)
{
	return rules->list[rule - rules->config->rules].varies;
}

bool
rules_local_varies(const struct rules *rules, const struct config_rule *rule)
{
	return varies(rules, rule) != 0;
}

static bool
has_key(const struct rules_name *name)
{
	return (rules_name_varies(name) & 1U << TEMPLATE_KEY) != 0;
}

bool
rules_uses_key(const struct rules *rules, const struct config_rule *rule)
{
	bool uses = false;

	for (size_t i = 0; i < rule->resource_count && !uses; i++)
		uses = has_key(&buckets_of(rules, rule)[i].name);
	for (size_t i = 0; i < rule->guard_count && !uses; i++)
		uses = has_key(&rules->trackers[rule->guards[i].tracker].name);
	return uses;
}

int
rules_local_key(const struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint8_t room[RULES_LOCAL_KEY_MAX],
    size_t *len)
{
	const unsigned set = varies(rules, rule);
	struct local_key k = {room, 0};

	if ((set & 1U << TEMPLATE_KEY) != 0) {
		if (caller->key == NULL || caller->key_len > CONFIG_NAME_MAX)
			return RLA_EINVAL;
		put_value(&k, caller->key, caller->key_len);
	}
	if ((set & 1U << TEMPLATE_UID) != 0)
		put_value(&k, &caller->uid, sizeof(caller->uid));
	if ((set & 1U << TEMPLATE_GID) != 0)
		put_value(&k, &caller->gid, sizeof(caller->gid));
	if ((set & 1U << TEMPLATE_LISTENER) != 0)
		put_value(&k, caller->listener, strlen(caller->listener));
	*len = k.len;
	return 0;
}

/* A sample for a configured tracker, whose buffer the key allows. */
static int
fill_sample(const struct rules *rules, enum profile profile, size_t index,
    const struct rules_caller *caller, uint32_t latency_ms,
    struct pdu_sample *out, char text[RULES_TEXT_MAX])
{
	uint8_t room[CONFIG_NAME_MAX];
	struct ipc_str name;
	int rc = rules_expand(
	    &rules->trackers[index].name, caller, room, &name, text);

	if (rc != 0)
		return rc;
	rules_put_sample(out, &rules->trackers[index].is, latency_ms);
	return identify_tracker(rules, profile, index, &name, out->id, text);
}

int
rules_build_report(struct rules *rules, const struct config_tenant *tenant,
    const struct config_tracker *tracker, const struct rules_caller *caller,
    uint32_t latency_ms, struct pdu_sample *out, char text[RULES_TEXT_MAX])
{
	if (!config_allows_buffer(tenant, tracker->buffer_size))
		return rules_fail(RLA_EQUOTA, text,
		    "tracker \"%s\": its buffer_size of %u is over the key's "
		    "limit of %u",
		    tracker->name, tracker->buffer_size,
		    tenant->cred.quotas.latency_buffer);
	return fill_sample(rules, tenant->profile,
	    (size_t)(tracker - rules->config->trackers), caller, latency_ms,
	    out, text);
}

static bool
has_sample(const struct pdu_report *report, const uint8_t id[ID_LEN])
{
	for (size_t i = 0; i < report->count; i++) {
		if (memcmp(report->samples[i].id, id, ID_LEN) == 0)
			return true;
	}
	return false;
}

/* A rule whose guards all have a sample in a report. */
_Static_assert(PDU_MAX_GUARDS <= PDU_MAX_REPORTS, "samples");

int
rules_build_report_rule(struct rules *rules, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t latency_ms,
    struct pdu_report *out, char text[RULES_TEXT_MAX])
{
	const struct config *c = rules->config;
	const struct config_tenant *tenant = &c->tenants[rule->tenant];
	int rc = rules_check_size(rules->list[rule - c->rules].size, text);

	out->count = 0;
	for (size_t i = 0; i < rule->guard_count && rc == 0; i++) {
		const size_t index = rule->guards[i].tracker;
		struct pdu_sample *sample = &out->samples[out->count];

		rc = check_guard(tenant, &c->trackers[index], i, text);
		if (rc == 0)
			rc = fill_sample(rules, tenant->profile, index, caller,
			    latency_ms, sample, text);
		if (rc == 0 && !has_sample(out, sample->id))
			out->count++;
	}
	return rc;
}

uint32_t
rules_retry_after_ms(uint32_t window_ms, uint32_t limit, uint32_t tokens,
    uint32_t actual_rate, uint32_t deficit)
{
	const uint64_t wanted = (uint64_t)actual_rate + tokens;
	uint64_t missing = deficit;

	if (deficit == 0 || limit == 0 || tokens > limit)
		return 0;
	if (wanted > limit && wanted - limit > missing)
		missing = wanted - limit;
	if (missing >= limit)
		return window_ms;
	/* Below 2^64: both are below 2^32. */
	return (uint32_t)((missing * window_ms + limit - 1) / limit);
}
