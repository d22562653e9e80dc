/* See agent_document.h. */
#include "daemon/agent_document.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/agent.h"
#include "daemon/metrics.h"
#include "daemon/status.h"
#include "daemon/status_limiters.h"
#include "daemon/status_rules.h"
#include "daemon/status_top.h"

/* A long document is kept for so long, or so many times as long as it took:
 * 4096 rules are 1.5 MB and take some 60 ms, 4096 limiters, error controls and
 * local limiters 3 MB and some 120 ms; the metrics of as many rules that are
 * all in use are 9 MB and some 45 ms. */
#define DOCUMENT_LONG       65536
#define DOCUMENT_KEPT_US    100000
#define DOCUMENT_KEPT_TIMES 4

typedef char *document_fn(
    const struct agent *a, const struct config_listener *by, int64_t now);

static char *
make_rules(const struct agent *a, const struct config_listener *by, int64_t now)
{
	(void)now;
	return status_rules(a->setup, by);
}

static char *
make_limiters(
    const struct agent *a, const struct config_listener *by, int64_t now)
{
	return status_limiters(a->setup, by, now);
}

static char *
make_metrics(
    const struct agent *a, const struct config_listener *by, int64_t now)
{
	(void)by;
	(void)now;
	return metrics_text(a);
}

static char *
take_text(struct agent_kept *k)
{
	char *text = k->text;

	k->text = NULL;
	return text;
}

/*
 * As it was made for the same listener just now, or made anew. A long one takes
 * its time, in which nobody else is served: it is kept for several times as
 * long, from when it is there, so that who asks in a loop cannot fill the day
 * of this agent with it.
 */
static char *
kept_document(struct agent *a, struct agent_kept *k, document_fn *make,
    const struct config_listener *by)
{
	const int64_t began = loop_now();
	int64_t kept;

	if (k->text == NULL || k->generation != a->setup->generation ||
	    k->by != by || began >= k->until) {
		free(k->text);
		k->text = make(a, by, began);
		k->generation = a->setup->generation;
		k->by = by;
		k->until = loop_now();
		kept = (k->until - began) * DOCUMENT_KEPT_TIMES;
		k->until += kept > DOCUMENT_KEPT_US ? kept : DOCUMENT_KEPT_US;
	}
	if (k->text == NULL || strlen(k->text) > DOCUMENT_LONG)
		return k->text != NULL ? strdup(k->text) : NULL;
	return take_text(k);
}

char *
agent_document(void *arg, uint16_t type, const struct config_listener *by)
{
	struct agent *a = arg;

	switch (type) {
	case IPC_RULES:
		return kept_document(a, &a->rules, make_rules, by);
	case IPC_LIMITERS:
		return kept_document(a, &a->limiters, make_limiters, by);
	case IPC_METRICS:
		return kept_document(a, &a->metrics, make_metrics, NULL);
	case IPC_TOP:
		return status_top(a->setup, loop_now());
	case IPC_SERVERS:
		return status_servers(a);
	case IPC_POLICY:
		return status_policy(a);
	default: /* IPC_STATUS: dispatch knows no other document */
		return status_document(a);
	}
}

char *
agent_explain(void *arg, const struct config_listener *by,
    const struct config_rule *rule, const struct rules_caller *caller,
    uint32_t tokens)
{
	const struct agent *a = arg;

	return status_explain(a->setup, by, rule, caller, tokens);
}

void
agent_documents_free(struct agent *a)
{
	free(a->metrics.text);
	free(a->limiters.text);
	free(a->rules.text);
}
