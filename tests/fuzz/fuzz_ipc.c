/*
 * The frames between applications and the agent, both halves: a byte stream
 * is cut into frames as the agent does it, and each payload is given to every
 * decoder of the agent and of the shim, whatever its type. What a decoder
 * accepts must lie within the frame and the bounds that ipc.h names.
 */
#include "client-shim/rlshim.c"

#include "proto/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

struct span {
	const uint8_t *from, *to;
};

static void
within(const struct span *span, const struct ipc_str *s, size_t max)
{
	MUST(s->len <= max);
	MUST(s->bytes >= span->from && s->bytes + s->len <= span->to);
}

static void
try_checks(const struct reader *payload, const struct span *span)
{
	static struct ipc_check_adhoc adhoc;
	struct ipc_check check;
	struct reader r = *payload;
	size_t i;

	if (ipc_dec_check(&r, &check) == 0) {
		within(span, &check.rule, IPC_MAX_NAME);
		within(span, &check.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_check_adhoc(&r, &adhoc) != 0)
		return;
	within(span, &adhoc.tenant, IPC_MAX_NAME);
	within(span, &adhoc.label, IPC_MAX_LABEL);
	MUST(adhoc.guard_count <= IPC_MAX_GUARDS);
	MUST(adhoc.resource_count <= IPC_MAX_RESOURCES);
	for (i = 0; i < adhoc.guard_count; i++)
		within(span, &adhoc.guards[i].name, IPC_MAX_NAME);
	for (i = 0; i < adhoc.resource_count; i++)
		within(span, &adhoc.resources[i].name, IPC_MAX_NAME);
}

static void
try_rules(const struct reader *payload, const struct span *span)
{
	struct ipc_report_rule report;
	struct ipc_explain explain;
	struct reader r = *payload;

	if (ipc_dec_report_rule(&r, &report) == 0) {
		within(span, &report.rule, IPC_MAX_NAME);
		within(span, &report.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_explain(&r, &explain) == 0) {
		within(span, &explain.rule, IPC_MAX_NAME);
		within(span, &explain.key, IPC_MAX_NAME);
	}
}

static void
try_limiting(const struct reader *payload, const struct span *span)
{
	struct ipc_acquire acquire;
	struct ipc_try_acquire attempt;
	struct ipc_error_control control;
	struct ipc_set_rate rate;
	struct reader r = *payload;

	if (ipc_dec_acquire(&r, &acquire) == 0) {
		within(span, &acquire.limiter, IPC_MAX_NAME);
		within(span, &acquire.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_try_acquire(&r, &attempt) == 0) {
		within(span, &attempt.acquire.limiter, IPC_MAX_NAME);
		within(span, &attempt.acquire.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_error_control(&r, &control) == 0) {
		within(span, &control.control, IPC_MAX_NAME);
		within(span, &control.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_set_rate(&r, &rate) == 0)
		within(span, &rate.limiter, IPC_MAX_NAME);
}

static void
try_agent(const struct reader *payload, const struct span *span)
{
	struct ipc_hello hello;
	struct ipc_report report;
	struct ipc_report_adhoc report_adhoc;
	struct ipc_ping ping;
	struct ipc_wait wait;
	struct reader r = *payload;

	if (ipc_dec_hello(&r, &hello) == 0)
		within(span, &hello.client, IPC_MAX_NAME);
	try_checks(payload, span);
	try_rules(payload, span);
	try_limiting(payload, span);
	r = *payload;
	if (ipc_dec_report(&r, &report) == 0) {
		within(span, &report.tenant, IPC_MAX_NAME);
		within(span, &report.tracker, IPC_MAX_NAME);
		within(span, &report.key, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_report_adhoc(&r, &report_adhoc) == 0) {
		within(span, &report_adhoc.tenant, IPC_MAX_NAME);
		within(span, &report_adhoc.tracker, IPC_MAX_NAME);
	}
	r = *payload;
	if (ipc_dec_ping(&r, &ping) == 0)
		within(span, &ping.bytes, IPC_MAX_PING);
	r = *payload;
	if (ipc_dec_wait(&r, &wait) == 0)
		MUST(span->to - span->from == 4);
	r = *payload;
	if (ipc_dec_empty(&r) == 0)
		MUST(span->to == span->from);
}

static void
try_decision(const struct span *span)
{
	static struct rl_detail detail;
	struct rl_decision d;
	struct get g = {span->from, span->to, false};

	if (!dec_decision(&g, &d, &detail))
		return;
	MUST(d.outcome <= RL_CANCELLED && d.source <= RL_SOURCE_SHADOW);
	MUST(d.reason <= RL_REASON_CANCELLED);
	MUST(d.permit == 0 || (d.permit == 1 && d.outcome != RL_CANCELLED));
	MUST(d.limit_len <= RL_NAME_MAX && d.limit[d.limit_len] == '\0');
	MUST(strlen(d.text) <= RL_TEXT_MAX);
	MUST(detail.guard_count <= RL_MAX_GUARDS);
	MUST(detail.resource_count <= RL_MAX_RESOURCES);
}

static void
try_shim(const struct span *span)
{
	char text[RL_TEXT_MAX + 1];
	struct welcome welcome;
	enum rl_reason reason;
	struct delay delay;
	uint64_t last_id;
	uint16_t code;
	struct get g;

	try_decision(span);
	g = (struct get){span->from, span->to, false};
	(void)dec_welcome(&g, &welcome);
	g = (struct get){span->from, span->to, false};
	if (dec_verdict(&g, 1, &reason, text))
		MUST(reason <= RL_REASON_CANCELLED);
	g = (struct get){span->from, span->to, false};
	if (dec_verdict(&g, 2, &reason, text))
		MUST(reason <= RL_REASON_CANCELLED);
	g = (struct get){span->from, span->to, false};
	if (dec_delay(&g, &delay)) {
		MUST(delay.reason <= RL_REASON_CANCELLED);
		MUST(delay.reason != RL_REASON_OK ||
		     delay.wait_us <= UINT64_C(31536000000000));
		MUST(strlen(delay.text) <= RL_TEXT_MAX);
	}
	g = (struct get){span->from, span->to, false};
	if (dec_go_away(&g, &last_id, text))
		MUST(strlen(text) <= RL_TEXT_MAX);
	g = (struct get){span->from, span->to, false};
	if (dec_error(&g, &code, text))
		MUST(strlen(text) <= RL_TEXT_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ipc_head head;
	struct reader payload;
	struct span span;

	while (ipc_frame(data, size, &head, &payload) == IPC_MESSAGE) {
		MUST(head.length >= IPC_HEAD_LEN && head.length <= size);
		span = (struct span){data + IPC_HEAD_LEN, data + head.length};
		MUST(reader_left(&payload) == head.length - IPC_HEAD_LEN);
		try_agent(&payload, &span);
		try_shim(&span);
		data += head.length;
		size -= head.length;
	}
	return 0;
}
