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
		c->is.dispatch->counters.reports++;
	else
		c->is.dispatch->counters.reports_refused++;
	dispatch_commit(c, ipc_enc_reported(w, id, &m));
}

static void
report_send(struct client *c, uint64_t id, const struct config_tenant *t,
    const struct pdu_report *report)
{
	uint32_t sent;
	int err = tenant_report(
	    setup_tenant(c->is.dispatch->env.setup, t), report, &sent);

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
	const struct config_listener *l = c->is.port->is.listener;
	const struct config_tracker *tracker;
	struct rules_caller caller;
	struct pdu_report report = {.count = 1};
	char text[RULES_TEXT_MAX];
	struct ipc_report m;
	const struct config_tenant *t;

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
	    c->is.dispatch->env.setup->config, m.tracker.bytes, m.tracker.len);
	if (tracker == NULL) {
		message_format(text, sizeof(text), "unknown tracker \"%.*s\"",
		    (int)m.tracker.len, (const char *)m.tracker.bytes);
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
		return;
	}
	caller = dispatch_caller(&c->is,
	    (m.options & IPC_OPT_KEY) != 0 ? m.key.bytes : NULL, m.key.len);
	t = dispatch_tenant(c->is.dispatch, m.tenant, text);
	if (t == NULL ||
	    rules_build_report(c->is.dispatch->env.setup->rules, t, tracker,
		&caller, m.latency_ms, &report.samples[0], text) != 0)
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
	else
		report_send(c, head->id, t, &report);
}

void
dispatch_report_adhoc(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct config_listener *l = c->is.port->is.listener;
	struct pdu_report report = {.count = 1};
	char text[RULES_TEXT_MAX];
	struct ipc_report_adhoc m;
	const struct config_tenant *t;

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
	t = dispatch_tenant(c->is.dispatch, m.tenant, text);
	if (t == NULL ||
	    rules_build_report_adhoc(c->is.dispatch->env.setup->rules, t, &m,
		&report.samples[0], text) != 0)
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
	else
		report_send(c, head->id, t, &report);
}

/* The work of a rule's check is done: a sample for each of its guards. */
void
dispatch_report_rule(
    struct client *c, const struct ipc_head *head, struct reader *r)
{
	const struct setup *setup = c->is.dispatch->env.setup;
	const struct config_rule *rule;
	struct rules_caller caller;
	struct pdu_report report;
	struct ipc_report_rule m;
	char text[RULES_TEXT_MAX];
	enum ipc_reason reason;

	if (ipc_dec_report_rule(r, &m) != 0) {
		dispatch_bad_frame(
		    c, head->id, IPC_ERR_MALFORMED, "REPORT_RULE: malformed");
		return;
	}
	rule = dispatch_rule(&c->is, m.rule, &reason, text);
	if (rule == NULL) {
		send_reported(c, head->id, reason, 0, text);
		return;
	}
	caller = dispatch_caller(&c->is,
	    (m.options & IPC_OPT_KEY) != 0 ? m.key.bytes : NULL, m.key.len);
	if (rules_build_report_rule(setup->rules, rule, &caller, m.latency_ms,
		&report, text) != 0) {
		send_reported(c, head->id, IPC_REASON_VALIDATION, 0, text);
		return;
	}
	if (report.count == 0) {
		send_reported(c, head->id, IPC_REASON_OK, 0, "");
		return;
	}
	setup_counters(setup, rule)->reports++;
	report_send(
	    c, head->id, &setup->config->tenants[rule->tenant], &report);
}
