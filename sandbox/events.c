/*
 * Results to JSON. A failed write is told once on standard error: a server
 * for tests goes on, but nobody should trust a ledger with a gap.
 */
#include "sandbox/events.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/err.h"

struct events {
	FILE *ledger; /* NULL: none; stdout when it is shared */
	bool complained;
};

static int
put_line(struct events *ev, FILE *f, json_t *document)
{
	if (document != NULL && json_dumpf(document, f, JSON_COMPACT) == 0 &&
	    fputc('\n', f) != EOF && fflush(f) == 0) {
		json_decref(document);
		return 0;
	}
	json_decref(document);
	if (!ev->complained)
		fprintf(stderr, "rl-sandbox: a JSON line was lost: %s\n",
		    strerror(errno));
	ev->complained = true;
	return RLA_ESYS;
}

struct events *
events_new(const char *path)
{
	struct events *ev = calloc(1, sizeof(*ev));

	if (ev == NULL || path == NULL)
		return ev;
	ev->ledger = strcmp(path, "-") == 0 ? stdout : fopen(path, "ae");
	if (ev->ledger == NULL) {
		free(ev);
		return NULL;
	}
	return ev;
}

void
events_free(struct events *ev)
{
	if (ev == NULL)
		return;
	if (ev->ledger != NULL && ev->ledger != stdout)
		fclose(ev->ledger);
	free(ev);
}

int
events_print(struct events *ev, struct json_t *document)
{
	return put_line(ev, stdout, document);
}

void
events_append(struct events *ev, struct json_t *document)
{
	if (ev->ledger == NULL || ev->ledger == stdout)
		json_decref(document);
	else
		(void)put_line(ev, ev->ledger, document);
}

static json_t *
hex(const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * PDU_LABEL_MAX + 1];
	size_t i;

	for (i = 0; i < len; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return json_stringn(text, 2 * len);
}

json_t *
events_u64(uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	return json_string(text);
}

json_t *
events_counters(const struct counters *c)
{
	json_t *document = json_object();
	int i;

	for (i = 0; i < COUNTER_COUNT; i++)
		json_object_set_new(document, counter_name((enum counter)i),
		    json_integer((json_int_t)c->values[i]));
	return document;
}

static const char *
event_name(enum engine_event event)
{
	switch (event) {
	case ENGINE_REQUEST:
		return "request";
	case ENGINE_DUPLICATE:
		return "duplicate";
	case ENGINE_REPORT:
		return "report";
	case ENGINE_IGNORED:
		return "ignored";
	}
	return "unknown";
}

static const char *
deny_reason(const struct state_result *state)
{
	if (state->verdict == STATE_QUOTA)
		return "quota";
	if (state->resource_failed && state->guard_failed)
		return "resource+guard";
	return state->guard_failed ? "guard" : "resource";
}

/* Blocks of one bucket are listed apart, as they were asked for. */
static json_t *
consumed(const struct engine_result *r)
{
	json_t *list = json_array();
	size_t i;

	if (r->event != ENGINE_REQUEST || !r->allowed)
		return list;
	for (i = 0; i < r->rate.resource_count; i++)
		json_array_append_new(
		    list, json_pack("{s:o,s:i}", "bucket",
			      hex(r->rate.resources[i].id, ID_LEN), "tokens",
			      (int)r->rate.resources[i].tokens));
	return list;
}

static json_t *
samples(const struct pdu_report *report)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < report->count; i++)
		json_array_append_new(
		    list, json_pack("{s:o,s:I}", "tracker",
			      hex(report->samples[i].id, ID_LEN), "ms",
			      (json_int_t)report->samples[i].observed_ms));
	return list;
}

/* A label that is not UTF-8 is shown as hex digits. */
static void
add_label(json_t *line, const struct engine_result *r)
{
	json_t *text;

	if (r->rate.label_len == 0)
		return;
	if (r->state.label_overflow) {
		json_object_set_new(line, "label", json_string("overflow"));
		return;
	}
	text = json_stringn((const char *)r->rate.label, r->rate.label_len);
	if (text != NULL)
		json_object_set_new(line, "label", text);
	else
		json_object_set_new(
		    line, "label_hex", hex(r->rate.label, r->rate.label_len));
}

static void
add_decision(json_t *line, const struct engine_result *r)
{
	json_object_set_new(
	    line, "decision", json_string(r->allowed ? "allowed" : "denied"));
	json_object_set_new(line, "consumed", consumed(r));
	if (r->event != ENGINE_REQUEST)
		return;
	if (!r->allowed)
		json_object_set_new(
		    line, "reason", json_string(deny_reason(&r->state)));
	add_label(line, r);
}

static void
add_details(json_t *line, const struct engine_result *r)
{
	switch (r->event) {
	case ENGINE_REQUEST:
	case ENGINE_DUPLICATE:
		add_decision(line, r);
		break;
	case ENGINE_REPORT:
		json_object_set_new(line, "samples", samples(&r->report));
		break;
	case ENGINE_IGNORED:
		json_object_set_new(
		    line, "reason", json_string(counter_name(r->reason)));
		break;
	}
	if (r->state.quota != QUOTA_NONE)
		json_object_set_new(line, "quota",
		    json_string(state_quota_name(r->state.quota)));
}

/* What befell the answer; nothing is said where nothing did. */
static void
add_faults(
    json_t *line, const struct fault_plan *plan, const struct engine_result *r)
{
	json_t *faults;

	if (r->answer_len == 0)
		return;
	faults = json_object();
	if (plan->delay_ms > 0)
		json_object_set_new(
		    faults, "delay_ms", json_integer(plan->delay_ms));
	if (plan->duplicate)
		json_object_set_new(
		    faults, "copy_ms", json_integer(plan->copy_ms));
	if (plan->corrupt)
		json_object_set_new(
		    faults, "corrupt", json_string(damage_name(r->damage)));
	if (plan->wrong_id != 0)
		json_object_set_new(
		    faults, "wrong_id", events_u64(r->answer_id));
	if (plan->rebind)
		json_object_set_new(faults, "rebind", json_true());
	if (json_object_size(faults) > 0)
		json_object_set_new(line, "faults", faults);
	else
		json_decref(faults);
}

void
events_datagram(struct events *ev, const struct event_source *source,
    const struct engine_result *r)
{
	char from[ADDR_TEXT_MAX];
	json_t *line;

	if (ev->ledger == NULL)
		return;
	addr_format(source->from, from);
	line = json_object();
	json_object_set_new(
	    line, "t_ms", json_integer((json_int_t)source->wall_ms));
	json_object_set_new(
	    line, "server", json_integer((json_int_t)source->server));
	json_object_set_new(line, "server_id", events_u64(source->server_id));
	json_object_set_new(line, "event", json_string(event_name(r->event)));
	json_object_set_new(line, "from", json_string(from));
	if (r->has_head) {
		json_object_set_new(line, "key_id", events_u64(r->head.key_id));
		json_object_set_new(line, "unique_id",
		    hex(r->head.unique_id, PACKET_UNIQUE_LEN));
	}
	add_details(line, r);
	add_faults(line, source->plan, r);
	(void)put_line(ev, ev->ledger, line);
}
