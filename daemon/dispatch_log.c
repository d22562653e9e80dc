/*
 * The sampled log of decisions: what is in d->decision, just after it was
 * answered, as one line with who asked for what. Off unless log.decisions is
 * set, since keys can be personal.
 */
#include "daemon/dispatch_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/log.h"

struct told {
	struct ipc_str rule; /* as it was asked for; "" is ad-hoc */
	const struct config_tenant *tenant;
	struct ipc_str key;
	const char *listener;
	const struct caller *by;
};

void
dispatch_log_init(struct dispatch *d)
{
	sample_budget_init(&d->decision_log.budget, loop_now());
}

/* Those that are of no rule share one sample. */
static struct sample *
sample_of(struct dispatch *d, const struct config_rule *rule)
{
	struct sample *s =
	    rule != NULL ? setup_sample(d->env.setup, rule) : NULL;

	return s != NULL ? s : &d->decision_log.others;
}

static bool
may_say(struct dispatch *d, const struct config_rule *rule)
{
	struct sample *s = sample_of(d, rule);

	if (!sample_due(s, d->env.setup->config->decisions))
		return false;
	if (sample_take(&d->decision_log.budget, s, loop_now()))
		return true;
	d->decision_log.unsaid++;
	d->counters.decisions_unsaid++;
	return false;
}

static void
say(struct dispatch *d, const struct told *t)
{
	const struct ipc_decision *is = &d->decision;
	char server_id[24] = "", uid[16] = "";

	if (t->by->uid != CALLER_NO_UID)
		snprintf(uid, sizeof(uid), "%u", t->by->uid);
	if ((is->has & IPC_HAS_SERVER) != 0)
		snprintf(
		    server_id, sizeof(server_id), "%" PRIu64, is->server_id);
	log_info("decision",
	    "rule=\"%.*s\" tenant=\"%s\" outcome=%s permit=%s source=%s "
	    "reason=%s limit=\"%.*s\" key=\"%.*s\" elapsed_us=%" PRIu64
	    " listener=\"%s\" uid=%s server_id=%s unsaid=%" PRIu64,
	    (int)t->rule.len, (const char *)t->rule.bytes,
	    t->tenant != NULL ? t->tenant->name : "",
	    ipc_outcome_name((enum ipc_outcome)is->outcome),
	    is->permit ? "yes" : "no",
	    ipc_source_name((enum ipc_source)is->source),
	    ipc_reason_name((enum ipc_reason)is->reason), (int)is->limit.len,
	    (const char *)is->limit.bytes, (int)t->key.len,
	    (const char *)t->key.bytes, is->elapsed_us, t->listener, uid,
	    server_id, d->decision_log.unsaid);
	d->decision_log.unsaid = 0;
}

void
dispatch_log_asked(const struct asking *a)
{
	struct dispatch *d = a->by->dispatch;
	const bool has_key =
	    a->name.len > 0 && (a->base->options & IPC_OPT_KEY) != 0;
	struct told t = {
	    .rule = a->name,
	    .tenant = a->tenant,
	    .key = has_key ? a->kept : ipc_text(""),
	    .listener = a->by->port->is.name,
	    .by = a->by,
	};

	if (may_say(d, a->rule))
		say(d, &t);
}

void
dispatch_log_done(const struct request *r)
{
	struct dispatch *d = r->by->dispatch;
	const bool has_key = r->rule != NULL && (r->options & IPC_OPT_KEY) != 0;
	struct told t = {
	    .rule = ipc_text(r->rule != NULL ? r->rule->name : ""),
	    .tenant = r->tenant,
	    .key = has_key
		       ? (struct ipc_str){.bytes = r->kept, .len = r->kept_len}
		       : ipc_text(""),
	    .listener = r->listener,
	    .by = r->by,
	};

	if (may_say(d, r->rule))
		say(d, &t);
}
