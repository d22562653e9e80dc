/*
 * What both halves of the application protocol's codec share: where a frame
 * ends, and what numbers are called. proto/IPC.md is the specification.
 */
#include "proto/ipc.h"

#include <string.h>

/* Every message, one row; the top bit of the type is its direction. */
static const struct message {
	uint16_t type;
	const char *name;
} messages[] = {
    {IPC_HELLO, "hello"},
    {IPC_CHECK, "check"},
    {IPC_CHECK_ADHOC, "check-adhoc"},
    {IPC_CANCEL, "cancel"},
    {IPC_REPORT, "report"},
    {IPC_REPORT_ADHOC, "report-adhoc"},
    {IPC_REPORT_RULE, "report-rule"},
    {IPC_PING, "ping"},
    {IPC_WAIT, "wait"},
    {IPC_STATUS, "status"},
    {IPC_SERVERS, "servers"},
    {IPC_POLICY, "policy"},
    {IPC_RULES, "rules"},
    {IPC_EXPLAIN, "explain"},
    {IPC_LIMITERS, "limiters"},
    {IPC_METRICS, "metrics"},
    {IPC_TOP, "top"},
    {IPC_ACQUIRE, "acquire"},
    {IPC_TRY_ACQUIRE, "try-acquire"},
    {IPC_ERROR_BEGIN, "error-begin"},
    {IPC_ERROR_SUCCESS, "error-success"},
    {IPC_QUIT, "quit"},
    {IPC_RELOAD, "reload"},
    {IPC_DRAIN, "drain"},
    {IPC_SET_RATE, "set-rate"},

    {IPC_WELCOME, "welcome"},
    {IPC_DECISION, "decision"},
    {IPC_REPORTED, "reported"},
    {IPC_PONG, "pong"},
    {IPC_DOCUMENT, "document"},
    {IPC_GO_AWAY, "go-away"},
    {IPC_DELAY, "delay"},
    {IPC_DONE, "done"},
    {IPC_ERROR, "error"},
};

const char *
ipc_type_name(uint16_t type)
{
	size_t i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		if (messages[i].type == type)
			return messages[i].name;
	return NULL;
}

/*
 * 2.1 The head
 *
 *   0      4      6      8                16
 *   +------+------+------+----------------+----------
 *   |length| type |flags |       id       | payload
 *   +------+------+------+----------------+----------
 */
enum ipc_framing
ipc_frame(const uint8_t *bytes, size_t len, struct ipc_head *head,
    struct reader *payload)
{
	struct reader r;

	reader_init(&r, bytes, len);
	if (len < sizeof(head->length))
		return IPC_NEED_MORE;
	head->length = reader_u32(&r);
	if (head->length < IPC_HEAD_LEN || head->length > IPC_MAX_FRAME)
		return IPC_BAD;
	if (len < head->length)
		return IPC_NEED_MORE;
	head->type = reader_u16(&r);
	head->flags = reader_u16(&r);
	head->id = reader_u64(&r);
	*payload = reader_sub(&r, head->length - IPC_HEAD_LEN);
	return IPC_MESSAGE;
}

struct ipc_str
ipc_text(const char *text)
{
	return (struct ipc_str){
	    .bytes = (const uint8_t *)text,
	    .len = (uint16_t)strnlen(text, IPC_MAX_TEXT),
	};
}

const char *
ipc_outcome_name(enum ipc_outcome outcome)
{
	switch (outcome) {
	case IPC_ALLOWED:
		return "allowed";
	case IPC_DENIED:
		return "denied";
	case IPC_FAILED:
		return "failed";
	case IPC_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}

const char *
ipc_source_name(enum ipc_source source)
{
	switch (source) {
	case IPC_SOURCE_SERVER:
		return "server";
	case IPC_SOURCE_EMPTY:
		return "empty";
	case IPC_SOURCE_POLICY:
		return "policy";
	case IPC_SOURCE_LOCAL:
		return "local";
	case IPC_SOURCE_SHADOW:
		return "shadow";
	}
	return "unknown";
}

const char *
ipc_reason_name(enum ipc_reason reason)
{
	switch (reason) {
	case IPC_REASON_OK:
		return "ok";
	case IPC_REASON_RESOURCE:
		return "resource";
	case IPC_REASON_GUARD:
		return "guard";
	case IPC_REASON_RESOURCE_GUARD:
		return "resource+guard";
	case IPC_REASON_VALIDATION:
		return "validation";
	case IPC_REASON_UNKNOWN_RULE:
		return "unknown-rule";
	case IPC_REASON_UNAUTHORISED:
		return "unauthorised";
	case IPC_REASON_DISCOVERY:
		return "discovery";
	case IPC_REASON_TRANSPORT:
		return "transport";
	case IPC_REASON_TIMEOUT:
		return "timeout";
	case IPC_REASON_OVERLOADED:
		return "overloaded";
	case IPC_REASON_DRAINING:
		return "draining";
	case IPC_REASON_INTERRUPTED:
		return "interrupted";
	case IPC_REASON_UNAVAILABLE:
		return "unavailable";
	case IPC_REASON_CANCELLED:
		return "cancelled";
	}
	return "unknown";
}
