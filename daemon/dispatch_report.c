/*
 * Latency reports: from a message to a sample that is sent once to every
 * server, and REPORTED, which tells how far it got.
 */
#include "daemon/dispatch_private.h"

#include "daemon/message.h"
#include "proto/err.h"

static void
send_reported(struct client *c, uint64_t id, enum ipc_reason reason,
    uint32_t sent, const char *text)
{
	const struct ipc_reported m = {
	    .reason = (uint8_t)reason,
	    .sent = (uint8_t)sent,
	    .text = ipc_text(text),
	};
	struct writer *w = conn_begin(c->conn);

	if (reason == IPC_REASON_OK)
		c->dispatch->counters.reports++;
	else
		c->dispatch->counters.reports_refused++;
	if (w == NULL)
		return;
	dispatch_commit(c, ipc_enc_reported(w, id, &m));
}

static void
report_send(struct client *c, uint64_t id, struct tenant *t,
    const struct pdu_sample *sample)
{
	struct pdu_report report = {.count = 1};
	uint32_t sent;
	int err;

	report.samples[0] = *sample;
	err = tenant_report(t, &report, &sent);
	if (err == 0)
		send_reported(c, id, IPC_REASON_OK, sent, "");
	else if (err == RLA_ENOENT)
		send_reported(
		    c, id, IPC_REASON_DISCOVERY, 0, "no server is known");
	else
		send_reported(c, id, IPC_REASON_TRANSPORT, 0, err_str(err));
}

void
dispatch_report(struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config_listener *l = c->port->config;
	const struct config_tracker *tracker;
	struct rules_caller caller;
	struct pdu_sample sample;
	char text[RULES_TEXT_MAX];
	struct ipc_report m;
	struct tenant *t;

	if (ipc_dec_report(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "REPORT: malformed");
		return;
	}
	if (l == NULL ||
	    !config_allows(&l->trackers, m.tracker.bytes, m.tracker.len)) {
		send_reported(c, head->id, IPC_REASON_UNAUTHORISED, 0,
		    "this listener does not offer the tracker");
		return;
	}
	tracker = config_tracker(
	    c->dispatch->env.config, m.tracker.bytes, m.tracker.len);
	if (tracker == NULL) {
		message_format(text, sizeof(text), "unknown tracker \"%.*s\"",
		    (int)m.tracker.len, (const char *)m.tracker.bytes);
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
		return;
	}
	caller = dispatch_caller(
	    c, (m.options & IPC_OPT_KEY) != 0 ? m.key.bytes : NULL, m.key.len);
	t = dispatch_tenant(c->dispatch, m.tenant, text);
	if (t == NULL ||
	    rules_build_report(c->dispatch->env.rules, tenant_config(t),
		tracker, &caller, m.latency_ms, &sample, text) != 0)
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
	else
		report_send(c, head->id, t, &sample);
}

void
dispatch_report_adhoc(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config_listener *l = c->port->config;
	struct pdu_sample sample;
	char text[RULES_TEXT_MAX];
	struct ipc_report_adhoc m;
	struct tenant *t;

	if (ipc_dec_report_adhoc(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "REPORT_ADHOC: malformed");
		return;
	}
	if (l == NULL || !l->adhoc) {
		send_reported(c, head->id, IPC_REASON_UNAUTHORISED, 0,
		    "this listener takes no ad-hoc reports");
		return;
	}
	t = dispatch_tenant(c->dispatch, m.tenant, text);
	if (t == NULL || rules_build_report_adhoc(c->dispatch->env.rules,
			     tenant_config(t), &m, &sample, text) != 0)
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
	else
		report_send(c, head->id, t, &sample);
}
