/* See gateway_answer.h. */
#include "daemon/gateway_answer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/decision.h"
#include "daemon/message.h"

#define PLAIN "text/plain; charset=utf-8"

void
gateway_answer_field(
    struct gateway_answer *a, const char *name, const char *value)
{
	assert(a->is.field_count < HTTP_MAX_FIELDS);
	if (value[0] != '\0')
		a->is.fields[a->is.field_count++] =
		    (struct http_field){name, value};
}

static void
begin(struct gateway_answer *a, unsigned int status, const char *type)
{
	a->is = (struct http_answer){.status = status};
	gateway_answer_field(a, "Content-Type", type);
	gateway_answer_field(a, "Cache-Control", "no-store");
}

void
gateway_answer_line(
    struct gateway_answer *a, unsigned int status, const char *text)
{
	begin(a, status, PLAIN);
	snprintf(a->line, sizeof(a->line), "%s\n", text);
	a->is.body = a->line;
	a->is.len = strlen(a->line);
}

void
gateway_answer_document(
    struct gateway_answer *a, const char *type, const char *text)
{
	begin(a, 200, type);
	a->is.body = text;
	a->is.len = strlen(text);
}

static unsigned int
failed_status(enum ipc_reason reason)
{
	switch (reason) {
	case IPC_REASON_VALIDATION:
		return 400;
	case IPC_REASON_UNAUTHORISED:
		return 403;
	case IPC_REASON_UNKNOWN_RULE:
		return 404;
	case IPC_REASON_OK:
	case IPC_REASON_RESOURCE:
	case IPC_REASON_GUARD:
	case IPC_REASON_RESOURCE_GUARD:
	case IPC_REASON_DISCOVERY:
	case IPC_REASON_TRANSPORT:
	case IPC_REASON_TIMEOUT:
	case IPC_REASON_OVERLOADED:
	case IPC_REASON_DRAINING:
	case IPC_REASON_INTERRUPTED:
	case IPC_REASON_UNAVAILABLE:
	case IPC_REASON_CANCELLED:
		break;
	}
	return 503;
}

static unsigned int
status_of(const struct ipc_decision *d, unsigned int deny_status)
{
	if (d->permit)
		return 200;
	return d->outcome == IPC_DENIED
		   ? deny_status
		   : failed_status((enum ipc_reason)d->reason);
}

/*
 * What a proxy may show to anybody: no bucket, which holds a key, and nothing
 * of servers. Only who asks for what is wrong is told what it is.
 */
static void
put_line(
    struct gateway_answer *a, unsigned int status, const struct ipc_decision *d)
{
	const char *outcome = ipc_outcome_name((enum ipc_outcome)d->outcome);
	const char *reason = ipc_reason_name((enum ipc_reason)d->reason);
	char line[GATEWAY_LINE_MAX - 1];

	if (d->outcome == IPC_ALLOWED)
		message_format(line, sizeof(line), "%s", outcome);
	else if (d->outcome == IPC_FAILED && d->text.len > 0 &&
		 !decision_policy_applies((enum ipc_reason)d->reason))
		message_format(line, sizeof(line), "%s: %s: %.*s", outcome,
		    reason, (int)d->text.len, (const char *)d->text.bytes);
	else
		message_format(line, sizeof(line), "%s: %s", outcome, reason);
	gateway_answer_line(a, status, line);
}

void
gateway_answer_decision(struct gateway_answer *a,
    const struct config_rule *rule, const struct ipc_decision *d,
    unsigned int deny_status)
{
	const unsigned int status = status_of(d, deny_status);

	put_line(a, status, d);
	gateway_answer_field(a, "RateLimitly-Outcome",
	    ipc_outcome_name((enum ipc_outcome)d->outcome));
	gateway_answer_field(a, "RateLimitly-Source",
	    ipc_source_name((enum ipc_source)d->source));
	if (d->reason != IPC_REASON_OK)
		gateway_answer_field(a, "RateLimitly-Reason",
		    ipc_reason_name((enum ipc_reason)d->reason));
	if (rule != NULL) {
		gateway_fields_policy(rule, a->policy);
		gateway_fields_limit(rule, d, a->limit);
		gateway_answer_field(a, "RateLimit-Policy", a->policy);
		gateway_answer_field(a, "RateLimit", a->limit);
	}
	if (status != 200 && d->retry_after_ms > 0) {
		snprintf(a->retry_after, sizeof(a->retry_after), "%" PRIu32,
		    gateway_fields_seconds(d->retry_after_ms));
		gateway_answer_field(a, "Retry-After", a->retry_after);
	}
}
