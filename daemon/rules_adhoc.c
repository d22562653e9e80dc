/*
 * Ad-hoc checks and reports to wire requests: every value is the caller's, so
 * each is judged here, and the text names the one at fault by its index, never
 * by its name, which may be any bytes. Names are copied: the frame they came
 * in is gone when the answer is made.
 */
#include "daemon/rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rules_compile.h"
#include "proto/err.h"
#include "proto/packet.h"

#define TOKENS_MAX UINT16_MAX

/* A number of a block: "resources[0].limit must be 1..4294967295, not 0". */
static int
check_number(const char *block, size_t i, const char *field, uint32_t value,
    uint32_t max, char text[RULES_TEXT_MAX])
{
	if (value >= 1 && value <= max)
		return 0;
	return rules_fail(RLA_EINVAL, text, "%s[%zu].%s must be 1..%u, not %u",
	    block, i, field, max, value);
}

static int
check_name(const char *block, size_t i, const struct ipc_str *name,
    char text[RULES_TEXT_MAX])
{
	if (name->len >= 1 && name->len <= CONFIG_NAME_MAX)
		return 0;
	return rules_fail(RLA_EINVAL, text,
	    "%s[%zu].name must be 1..%d bytes long, not %u", block, i,
	    CONFIG_NAME_MAX, name->len);
}

/* PROFILE_V2 has no buffer_size: whatever was given means nothing. */
static int
check_buffer(const struct config_tenant *tenant, uint32_t buffer_size,
    const char *what, char text[RULES_TEXT_MAX])
{
	if (tenant->profile != PROFILE_V1)
		return 0;
	if (buffer_size < 1)
		return rules_fail(RLA_EINVAL, text,
		    "%sbuffer_size must be 1..%u, not 0", what, UINT32_MAX);
	if (!config_allows_buffer(tenant, buffer_size))
		return rules_fail(RLA_EQUOTA, text,
		    "%sbuffer_size of %u is over the key's limit of %u", what,
		    buffer_size, tenant->cred.quotas.latency_buffer);
	return 0;
}

static void
copy_name(
    struct rules_request *out, const struct ipc_str *from, struct ipc_str *to)
{
	uint8_t *room = out->name_room + out->room_used;

	assert(sizeof(out->name_room) - out->room_used >= from->len);
	memcpy(room, from->bytes, from->len);
	out->room_used += from->len;
	to->bytes = room;
	to->len = from->len;
}

static int
check_guard(const struct config_tenant *tenant, const struct ipc_guard *g,
    size_t i, char text[RULES_TEXT_MAX])
{
	char what[32];
	int rc;

	rc = check_name("guards", i, &g->name, text);
	if (rc == 0)
		rc = check_number(
		    "guards", i, "ttl_ms", g->ttl_ms, UINT32_MAX, text);
	if (rc == 0)
		rc = check_number("guards", i, "max_samples", g->max_samples,
		    UINT32_MAX, text);
	if (rc == 0)
		rc = check_number("guards", i, "min_samples", g->min_samples,
		    UINT32_MAX, text);
	if (rc == 0)
		rc = check_number(
		    "guards", i, "below_ms", g->below_ms, UINT32_MAX, text);
	if (rc != 0)
		return rc;
	snprintf(what, sizeof(what), "guards[%zu].", i);
	return check_buffer(tenant, g->buffer_size, what, text);
}

static int
build_guard(struct rules *rules, const struct config_tenant *tenant,
    const struct ipc_guard *g, size_t i, struct rules_request *out,
    char text[RULES_TEXT_MAX])
{
	struct pdu_guard *to = &out->rate.guards[i];
	int rc = check_guard(tenant, g, i, text);

	if (rc != 0)
		return rc;
	copy_name(out, &g->name, &out->guard_names[i]);
	*to = (struct pdu_guard){
	    .ttl_ms = g->ttl_ms,
	    .max_samples = g->max_samples,
	    .buffer_size = tenant->profile == PROFILE_V1 ? g->buffer_size : 0,
	    .min_samples = g->min_samples,
	    .threshold_ms = g->below_ms,
	};
	rc = id_tracker(rules->hash, tenant->profile, g->name.bytes,
	    g->name.len, g->ttl_ms, g->max_samples, g->buffer_size,
	    g->min_samples, to->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}

static int
check_resource(const struct config_tenant *tenant, const struct ipc_resource *r,
    size_t i, uint32_t tokens, char text[RULES_TEXT_MAX])
{
	int rc;

	rc = check_name("resources", i, &r->name, text);
	if (rc == 0)
		rc = check_number("resources", i, "window_ms", r->window_ms,
		    UINT32_MAX, text);
	if (rc == 0)
		rc = check_number(
		    "resources", i, "limit", r->limit, UINT32_MAX, text);
	if (rc == 0)
		rc = check_number(
		    "resources", i, "tokens", r->tokens, TOKENS_MAX, text);
	if (rc != 0)
		return rc;
	if (tokens > TOKENS_MAX / r->tokens)
		return rules_fail(RLA_EINVAL, text,
		    "resources[%zu].tokens: %u times %u tokens is over %d", i,
		    tokens, r->tokens, TOKENS_MAX);
	if (!config_allows_window(tenant, r->window_ms))
		return rules_fail(RLA_EQUOTA, text,
		    "resources[%zu].window_ms of %u is over the key's limit "
		    "of %u",
		    i, r->window_ms, tenant->cred.quotas.rate_window_ms);
	return 0;
}

static int
build_resource(struct rules *rules, const struct config_tenant *tenant,
    const struct ipc_resource *r, size_t i, uint32_t tokens,
    struct rules_request *out, char text[RULES_TEXT_MAX])
{
	struct pdu_resource *to = &out->rate.resources[i];
	int rc = check_resource(tenant, r, i, tokens, text);

	if (rc != 0)
		return rc;
	copy_name(out, &r->name, &out->resource_names[i]);
	to->window_ms = r->window_ms;
	to->limit = r->limit;
	to->tokens = (uint16_t)(tokens * r->tokens);
	rc = id_bucket(rules->hash, r->name.bytes, r->name.len, r->window_ms,
	    r->limit, to->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}

/* What holds for the whole; the room for names is enough after it. */
static int
check_whole(const struct config_tenant *tenant,
    const struct ipc_check_adhoc *check, char text[RULES_TEXT_MAX])
{
	size_t size;

	if (check->base.tokens < 1 || check->base.tokens > TOKENS_MAX)
		return rules_fail(RLA_EINVAL, text,
		    "tokens must be 1..%d, not %u", TOKENS_MAX,
		    check->base.tokens);
	if (check->label.len > PDU_LABEL_MAX)
		return rules_fail(RLA_EINVAL, text,
		    "label must be 0..%d bytes long, not %u", PDU_LABEL_MAX,
		    check->label.len);
	size = config_request_size(tenant, check->guard_count,
	    check->resource_count, check->label.len);
	return size > PACKET_MAX ? rules_fail_size(text, size) : 0;
}

int
rules_build_adhoc(struct rules *rules, const struct config_tenant *tenant,
    const struct ipc_check_adhoc *check, struct rules_request *out,
    char text[RULES_TEXT_MAX])
{
	int rc = check_whole(tenant, check, text);

	if (rc != 0)
		return rc;
	out->room_used = 0;
	out->rate.dedup_ttl_ms = 0;
	out->rate.guard_count = check->guard_count;
	out->rate.resource_count = check->resource_count;
	out->rate.label = check->label.bytes;
	out->rate.label_len = check->label.len;
	for (size_t i = 0; i < check->guard_count && rc == 0; i++)
		rc =
		    build_guard(rules, tenant, &check->guards[i], i, out, text);
	for (size_t i = 0; i < check->resource_count && rc == 0; i++)
		rc = build_resource(rules, tenant, &check->resources[i], i,
		    check->base.tokens, out, text);
	return rc;
}

static int
check_report(const struct config_tenant *tenant,
    const struct ipc_report_adhoc *report, char text[RULES_TEXT_MAX])
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
	    {"ttl_ms", report->ttl_ms},
	    {"max_samples", report->max_samples},
	    {"min_samples", report->min_samples},
	};

	if (report->tracker.len < 1 || report->tracker.len > CONFIG_NAME_MAX)
		return rules_fail(RLA_EINVAL, text,
		    "tracker must be 1..%d bytes long, not %u", CONFIG_NAME_MAX,
		    report->tracker.len);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (numbers[i].value < 1)
			return rules_fail(RLA_EINVAL, text,
			    "%s must be 1..%u, not 0", numbers[i].name,
			    UINT32_MAX);
	}
	return check_buffer(tenant, report->buffer_size, "", text);
}

int
rules_build_report_adhoc(struct rules *rules,
    const struct config_tenant *tenant, const struct ipc_report_adhoc *report,
    struct pdu_sample *out, char text[RULES_TEXT_MAX])
{
	int rc = check_report(tenant, report, text);

	if (rc != 0)
		return rc;
	*out = (struct pdu_sample){
	    .ttl_ms = report->ttl_ms,
	    .max_samples = report->max_samples,
	    .buffer_size =
		tenant->profile == PROFILE_V1 ? report->buffer_size : 0,
	    .min_samples = report->min_samples,
	    .observed_ms = report->latency_ms,
	};
	rc = id_tracker(rules->hash, tenant->profile, report->tracker.bytes,
	    report->tracker.len, report->ttl_ms, report->max_samples,
	    report->buffer_size, report->min_samples, out->id);
	return rc == 0 ? 0 : rules_fail(rc, text, "%s", err_str(RLA_ECRYPTO));
}
