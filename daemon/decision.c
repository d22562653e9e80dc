/* See decision.h; every decision that leaves the agent was made here. */
#include "daemon/decision.h"

#include <assert.h>
#include <string.h>

#include "daemon/message.h"

/* The arrays are large, and their counts say how much of them means much. */
static void
clear(struct ipc_decision *d)
{
	memset(d, 0, offsetof(struct ipc_decision, guards));
	d->limit = ipc_text("");
	d->text = ipc_text("");
}

bool
decision_policy_applies(enum ipc_reason reason)
{
	switch (reason) {
	case IPC_REASON_DISCOVERY:
	case IPC_REASON_TRANSPORT:
	case IPC_REASON_TIMEOUT:
	case IPC_REASON_OVERLOADED:
	case IPC_REASON_DRAINING:
	case IPC_REASON_INTERRUPTED:
		return true;
	case IPC_REASON_OK:
	case IPC_REASON_RESOURCE:
	case IPC_REASON_GUARD:
	case IPC_REASON_RESOURCE_GUARD:
	case IPC_REASON_VALIDATION:
	case IPC_REASON_UNKNOWN_RULE:
	case IPC_REASON_UNAUTHORISED:
	case IPC_REASON_UNAVAILABLE:
	case IPC_REASON_CANCELLED:
		return false;
	}
	return false;
}

void
decision_empty(struct ipc_decision *d)
{
	clear(d);
	d->outcome = IPC_ALLOWED;
	d->permit = 1;
	d->source = IPC_SOURCE_EMPTY;
	d->reason = IPC_REASON_OK;
}

void
decision_failed(struct ipc_decision *d, enum ipc_reason reason,
    enum config_failure policy, const char *text)
{
	clear(d);
	d->outcome = IPC_FAILED;
	d->permit = policy != FAILURE_CLOSED && decision_policy_applies(reason);
	d->source = IPC_SOURCE_POLICY;
	d->reason = (uint8_t)reason;
	d->text = ipc_text(text);
}

void
decision_local(struct ipc_decision *d, bool granted, int64_t wait_us,
    char room[DECISION_TEXT_MAX])
{
	const int64_t wait_ms = (wait_us + 999) / 1000;

	assert(decision_policy_applies((enum ipc_reason)d->reason));
	d->permit = granted;
	d->source = IPC_SOURCE_LOCAL;
	if (!granted)
		d->retry_after_ms =
		    wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX;
	message_format(room, DECISION_TEXT_MAX, "%.*s; the local limiter %s",
	    (int)d->text.len, (const char *)d->text.bytes,
	    granted ? "permits" : "refuses");
	d->text = ipc_text(room);
}

void
decision_watch_only(struct ipc_decision *d)
{
	bool refused = d->outcome == IPC_DENIED ||
		       (d->outcome == IPC_FAILED &&
			   decision_policy_applies((enum ipc_reason)d->reason));

	if (!refused || d->permit)
		return;
	d->permit = 1;
	d->source = IPC_SOURCE_SHADOW;
}

void
decision_cancelled(struct ipc_decision *d)
{
	clear(d);
	d->outcome = IPC_CANCELLED;
	d->source = IPC_SOURCE_POLICY;
	d->reason = IPC_REASON_CANCELLED;
}

static enum ipc_reason
denied_reason(const struct tenant_result *r)
{
	if (r->guards_pass)
		return IPC_REASON_RESOURCE;
	return r->resources_pass ? IPC_REASON_GUARD : IPC_REASON_RESOURCE_GUARD;
}

/* The first limit that denied, resources before guards as a rule lists them,
 * and how long until every denied resource could be granted; 0 for never. */
static void
name_limit(struct ipc_decision *d, const struct tenant_result *r,
    const struct rules_request *names)
{
	const struct pdu_resource *asked;
	bool never = false;
	uint32_t wait;
	size_t i;

	for (i = 0; i < r->resource_count; i++) {
		if (r->resources[i].second == 0)
			continue;
		if (d->limit.len == 0)
			d->limit = names->resource_names[i];
		asked = &names->rate.resources[i];
		if (asked->tokens > asked->limit) {
			never = true;
			continue;
		}
		wait = rules_retry_after_ms(asked->window_ms, asked->limit,
		    asked->tokens, r->resources[i].first,
		    r->resources[i].second);
		if (wait > d->retry_after_ms)
			d->retry_after_ms = wait;
	}
	if (never) {
		d->retry_after_ms = 0;
		d->text = ipc_text("more tokens than a limit can ever grant");
	}
	for (i = 0; i < r->guard_count && d->limit.len == 0; i++) {
		if (r->guards[i].second >= r->guards[i].first)
			d->limit = names->guard_names[i];
	}
}

static void
fill_detail(struct ipc_decision *d, const struct tenant_result *r,
    const struct rules_request *names)
{
	size_t i;

	d->has |= IPC_HAS_DETAIL;
	d->guard_count = (uint16_t)r->guard_count;
	for (i = 0; i < r->guard_count; i++) {
		d->guards[i] = (struct ipc_guard_result){
		    .below_ms = r->guards[i].first,
		    .current_ms = r->guards[i].second,
		    .passed = r->guards[i].second < r->guards[i].first,
		    .name = names->guard_names[i],
		};
	}
	d->resource_count = (uint16_t)r->resource_count;
	for (i = 0; i < r->resource_count; i++) {
		d->resources[i] = (struct ipc_resource_result){
		    .window_ms = names->rate.resources[i].window_ms,
		    .limit = names->rate.resources[i].limit,
		    .tokens = names->rate.resources[i].tokens,
		    .deficit = r->resources[i].second,
		    .actual_rate = r->resources[i].first,
		    .name = names->resource_names[i],
		};
	}
}

void
decision_selected(struct ipc_decision *d, const struct tenant_result *r,
    const struct rules_request *names, bool detail)
{
	bool allowed = r->guards_pass && r->resources_pass;

	clear(d);
	d->outcome = allowed ? IPC_ALLOWED : IPC_DENIED;
	d->permit = allowed;
	d->source = IPC_SOURCE_SERVER;
	d->reason = (uint8_t)(allowed ? IPC_REASON_OK : denied_reason(r));
	d->has = IPC_HAS_SERVER;
	d->round = (uint16_t)r->round;
	d->server_id = r->server_id;
	if (names == NULL)
		return;
	if (!allowed)
		name_limit(d, r, names);
	if (detail)
		fill_detail(d, r, names);
}
