/*
 * Ad-hoc checks and reports to wire requests: every value is the caller's, so
 * each is judged here, and the text names the one at fault by its index, never
 * by its name, which may be any bytes.
 */
#include "daemon/rules.h"

#include <stdio.h>

#include "daemon/rules_compile.h"
#include "proto/err.h"

/* Whatever was decoded has room in a request. */
_Static_assert(IPC_MAX_GUARDS <= PDU_MAX_GUARDS, "guards");
_Static_assert(IPC_MAX_RESOURCES <= PDU_MAX_RESOURCES, "resources");

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
		rc = check_number("resources", i, "tokens", r->tokens,
		    RULES_TOKENS_MAX, text);
	if (rc == 0)
		rc = rules_check_product(i, tokens, r->tokens, text);
	if (rc != 0)
		return rc;
	if (!config_allows_window(tenant, r->window_ms))
		return rules_fail(RLA_EQUOTA, text,
		    "resources[%zu].window_ms of %u is over the key's limit "
		    "of %u",
		    i, r->window_ms, tenant->cred.quotas.rate_window_ms);
	return 0;
}

static int
check_whole(const struct config_tenant *tenant,
    const struct ipc_check_adhoc *check, char text[RULES_TEXT_MAX])
{
	const uint32_t tokens = check->base.tokens;
	int rc = rules_check_tokens(tokens, text);

	if (rc == 0 && check->label.len > PDU_LABEL_MAX)
		rc = rules_fail(RLA_EINVAL, text,
		    "label must be 0..%d bytes long, not %u", PDU_LABEL_MAX,
		    check->label.len);
	if (rc == 0)
		rc = rules_check_size(
		    config_request_size(tenant, check->guard_count,
			check->resource_count, check->label.len),
		    text);
	for (size_t i = 0; i < check->guard_count && rc == 0; i++)
		rc = check_guard(tenant, &check->guards[i], i, text);
	for (size_t i = 0; i < check->resource_count && rc == 0; i++)
		rc = check_resource(
		    tenant, &check->resources[i], i, tokens, text);
	return rc;
}

static struct rules_tracker
tracker_of(const struct ipc_guard *g)
{
	return (struct rules_tracker){
	    .ttl_ms = g->ttl_ms,
	    .max_samples = g->max_samples,
	    .buffer_size = g->buffer_size,
	    .min_samples = g->min_samples,
	};
}

void
rules_names_adhoc(
    const struct ipc_check_adhoc *check, struct rules_request *out)
{
	out->room_used = 0;
	out->rate.dedup_ttl_ms = 0;
	out->rate.guard_count = check->guard_count;
	out->rate.resource_count = check->resource_count;
	out->rate.label = check->label.bytes;
	out->rate.label_len = check->label.len;
	for (size_t i = 0; i < check->guard_count; i++) {
		const struct ipc_guard *g = &check->guards[i];
		const struct rules_tracker t = tracker_of(g);

		rules_put_guard(&out->rate.guards[i], &t, g->below_ms);
		out->guard_names[i] = g->name;
	}
	for (size_t i = 0; i < check->resource_count; i++) {
		const struct ipc_resource *r = &check->resources[i];

		rules_put_resource(&out->rate.resources[i], r->window_ms,
		    r->limit, check->base.tokens * r->tokens);
		out->resource_names[i] = r->name;
	}
}

int
rules_build_adhoc(struct rules *rules, const struct config_tenant *tenant,
    const struct ipc_check_adhoc *check, struct rules_request *out,
    char text[RULES_TEXT_MAX])
{
	int rc = check_whole(tenant, check, text);

	if (rc != 0)
		return rc;
	rules_names_adhoc(check, out);
	for (size_t i = 0; i < check->guard_count && rc == 0; i++) {
		const struct rules_tracker t = tracker_of(&check->guards[i]);

		rc = rules_tracker_id(rules->ids, tenant->profile, &t,
		    &out->guard_names[i], out->rate.guards[i].id, text);
	}
	for (size_t i = 0; i < check->resource_count && rc == 0; i++) {
		struct pdu_resource *r = &out->rate.resources[i];

		rc = rules_bucket_id(rules->ids, r->window_ms, r->limit,
		    &out->resource_names[i], r->id, text);
	}
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
	const struct rules_tracker t = {
	    .ttl_ms = report->ttl_ms,
	    .max_samples = report->max_samples,
	    .buffer_size = report->buffer_size,
	    .min_samples = report->min_samples,
	};
	int rc = check_report(tenant, report, text);

	if (rc != 0)
		return rc;
	rules_put_sample(out, &t, report->latency_ms);
	return rules_tracker_id(
	    rules->ids, tenant->profile, &t, &report->tracker, out->id, text);
}
