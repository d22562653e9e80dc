/*
 * Expectations. What is sent and what completes is taken by the line that
 * expects it (expect_op.c); all else only looks. Each says what was found
 * instead.
 */
#include "tests/world/expect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/err.h"
#include "tests/world/expect_private.h"
#include "tests/world/fake_log.h"
#include "tests/world/fake_loop.h"
#include "tests/world/fake_udp.h"

/* Of an expect line; starts at its second word. */
void
expect_mismatch(struct scene *s, const char *got)
{
	words_fault(&s->w, "expected %s, got %s",
	    s->w.text + strcspn(s->w.text, " ") + 1, got);
}

static void
expect_bool(struct scene *s, bool got, bool want, const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%s", got ? "" : "not ", what);
	if (got != want)
		expect_mismatch(s, text);
}

static void
expect_number(struct scene *s, uint64_t got, const char *what)
{
	uint64_t want = words_number(&s->w, UINT64_MAX);
	char text[128];

	snprintf(text, sizeof(text), "%s %" PRIu64, what, got);
	if (got != want)
		expect_mismatch(s, text);
}

static int
error_named(struct scene *s)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {
	    {"busy", RLA_EBUSY},
	    {"in-flight", RLA_EINVAL},
	    {"too-big", RLA_ETOOBIG},
	    {"no-server", RLA_ENOENT},
	    {"no-socket", RLA_ESYS},
	};
	const char *name = words_next(&s->w);

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].error;
	}
	words_fault(&s->w, "unknown refusal \"%s\"", name);
	return 0;
}

static void
expect_refused(struct scene *s)
{
	struct scene_op *op = scene_op(s);

	if (op == NULL)
		return;
	if (op->error != error_named(s))
		expect_mismatch(
		    s, op->error == 0 ? "no refusal" : err_str(op->error));
	op->error_told = true;
}

/* Reports */

static void
expect_reported(struct scene *s)
{
	bool ok = s->report_error == 0;

	if (s->reports == 0)
		expect_mismatch(s, "no report");
	else if (!ok)
		expect_mismatch(s, err_str(s->report_error));
	else
		expect_number(s, s->report_sent, "reported");
	s->reports_told = true;
}

static void
expect_report_refused(struct scene *s)
{
	int want = error_named(s);

	if (s->reports == 0)
		expect_mismatch(s, "no report");
	else if (s->report_error != want)
		expect_mismatch(s, s->report_error == 0
				       ? "a report"
				       : err_str(s->report_error));
	s->reports_told = true;
}

/* Counters */

static uint64_t
counter_of(const struct tenant_counters *c, const struct counter_row *row)
{
	return *(const uint64_t *)(const void *)((const char *)c + row->offset);
}

static void
expect_counter(struct scene *s)
{
	const char *name = words_next(&s->w);
	const struct counter_row *row = tenant_counter_rows;

	while (row->name != NULL && strcmp(row->name, name) != 0)
		row++;
	if (row->name == NULL)
		words_fault(&s->w, "unknown counter \"%s\"", name);
	else
		expect_number(
		    s, counter_of(tenant_counters(s->tenant), row), name);
}

/* Which counters have moved since the last time, all of them. */
static void
expect_counted(struct scene *s)
{
	const struct tenant_counters *now = tenant_counters(s->tenant);
	const struct counter_row *row;
	char got[512] = "counted", want[512] = "counted";
	char name[WORDS_MAX][64];
	uint64_t by[WORDS_MAX];
	size_t n = 0, used = strlen(got), wanted = used;

	if (!words_accept(&s->w, "nothing")) {
		do {
			snprintf(
			    name[n], sizeof(*name), "%s", words_next(&s->w));
			by[n++] = words_have_number(&s->w)
				      ? words_number(&s->w, UINT32_MAX)
				      : 1;
		} while (words_more(&s->w));
	}
	for (row = tenant_counter_rows; row->name != NULL; row++) {
		uint64_t moved =
		    counter_of(now, row) - counter_of(&s->counted, row);

		if (moved != 0 && used < sizeof(got))
			used += (size_t)snprintf(got + used, sizeof(got) - used,
			    " %s %" PRIu64, row->name, moved);
		for (size_t i = 0; i < n && wanted < sizeof(want); i++) {
			if (strcmp(name[i], row->name) == 0) {
				wanted += (size_t)snprintf(want + wanted,
				    sizeof(want) - wanted, " %s %" PRIu64,
				    row->name, by[i]);
				name[i][0] = '\0';
			}
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (name[i][0] != '\0')
			words_fault(&s->w, "unknown counter \"%s\"", name[i]);
	}
	if (strcmp(got, want) != 0)
		expect_mismatch(s, got);
	s->counted = *now;
}

/* Servers, discovery, sockets, the log */

/* What the tenant knows of the server of the next word; zeros: nothing. */
static struct peer
peer_word(struct scene *s)
{
	const uint64_t id = SCENE_FIRST_ID + scene_server(s);
	const struct peers *peers = tenant_peers(s->tenant);

	for (uint32_t i = 0; i < peers->count; i++) {
		if (peers->list[i].server_id == id)
			return peers->list[i];
	}
	return (struct peer){.server_id = id};
}

static void
expect_server(struct scene *s)
{
	const struct peer peer = peer_word(s);

	do {
		if (words_accept(&s->w, "sent"))
			expect_number(s, peer.sent, "sent");
		else if (words_accept(&s->w, "answered"))
			expect_number(s, peer.answered, "answered");
		else if (words_accept(&s->w, "selected"))
			expect_number(s, peer.selected, "selected");
		else
			words_fault(
			    &s->w, "expected sent, answered or selected");
	} while (words_more(&s->w) && !words_failed(&s->w));
}

static void
expect_suspected(struct scene *s, bool want)
{
	const struct peer peer = peer_word(s);

	expect_bool(s, suspect_is(&peer.suspect, s->config.plan.suspect_after),
	    want, "suspected");
}

static void
expect_members(struct scene *s)
{
	const struct members *m = tenant_members(s->tenant);
	uint64_t want = words_accept(&s->w, "none") ? 0 : scene_servers(s);
	uint64_t got = 0;
	char text[32];

	for (uint32_t i = 0; i < m->count; i++)
		got |= UINT64_C(1) << (m->list[i].server_id - SCENE_FIRST_ID);
	snprintf(text, sizeof(text), "bits %#" PRIx64, got);
	if (got != want)
		expect_mismatch(s, text);
}

static void
expect_discovery(struct scene *s)
{
	const struct discovery_counters *c =
	    discovery_counters(tenant_discovery(s->tenant));

	if (words_accept(&s->w, "refreshes"))
		expect_number(s, c->refreshes, "refreshes");
	else if (words_accept(&s->w, "forced"))
		expect_number(s, c->forced, "forced");
	else if (words_accept(&s->w, "failures"))
		expect_number(s, c->failures, "failures");
	else if (words_accept(&s->w, "changes"))
		expect_number(s, c->changes, "changes");
	else
		words_fault(&s->w, "unknown discovery counter");
}

static void
expect_transport(struct scene *s)
{
	const struct transport *t = tenant_transport(s->tenant);
	const struct transport_counters *c = transport_counters(t);
	struct udp_counters v4, v6;

	transport_udp(t, 4, &v4);
	transport_udp(t, 6, &v6);
	if (words_accept(&s->w, "rebinds"))
		expect_number(s, c->rebinds, "rebinds");
	else if (words_accept(&s->w, "failures"))
		expect_number(s, c->rebind_failures, "failures");
	else if (words_accept(&s->w, "old-ports"))
		expect_number(s, transport_old_ports(t), "old-ports");
	else if (words_accept(&s->w, "refused"))
		expect_number(s, v4.refused + v6.refused, "refused");
	else
		words_fault(&s->w, "unknown number of the transport");
}

/* The states of section 6.1, by their names. */
static void
expect_state_name(struct scene *s)
{
	const char *want = words_next(&s->w);
	const char *got = tenant_state_name(tenant_state(s->tenant));

	if (strcmp(want, got) != 0)
		expect_mismatch(s, got);
}

/* Exactly these are open. */
static void
expect_ports(struct scene *s)
{
	char got[128] = "ports";
	size_t used = strlen(got);
	uint32_t wanted = 0, open = 0;
	bool ok = true;

	while (words_more(&s->w)) {
		ok = fake_udp_is_open(scene_port(s)) && ok;
		wanted++;
	}
	for (uint32_t p = 1; p <= fake_udp_opened(); p++) {
		if (!fake_udp_is_open(p))
			continue;
		open++;
		if (used < sizeof(got))
			used += (size_t)snprintf(
			    got + used, sizeof(got) - used, " p%" PRIu32, p);
	}
	if (!ok || open != wanted)
		expect_mismatch(s, got);
}

static void
expect_log(struct scene *s)
{
	const char *event = words_next(&s->w);

	expect_number(s, fake_log_count(event), event);
}

static const struct {
	const char *name;
	bool closed; /* also after the tenant's end */
	void (*run)(struct scene *s);
} kinds[] = {
    {"sent", true, expect_sent},
    {"complete", true, expect_complete},
    {"pending", true, expect_pending},
    {"silent", true, expect_silent},
    {"refused", true, expect_refused},
    {"reported", true, expect_reported},
    {"report-refused", true, expect_report_refused},
    {"ports", true, expect_ports},
    {"log", true, expect_log},
    {"counter", false, expect_counter},
    {"counted", false, expect_counted},
    {"server", false, expect_server},
    {"members", false, expect_members},
    {"discovery", false, expect_discovery},
    {"transport", false, expect_transport},
    {"state", false, expect_state_name},
};

/* Those of one word and a state of the running tenant. */
static bool
expect_state(struct scene *s, const char *kind)
{
	if (strcmp(kind, "ready") == 0 || strcmp(kind, "unready") == 0)
		expect_bool(
		    s, tenant_ready(s->tenant), kind[0] == 'r', "ready");
	else if (strcmp(kind, "decides") == 0 || strcmp(kind, "doubts") == 0)
		expect_bool(
		    s, tenant_decides(s->tenant), kind[1] == 'e', "decides");
	else if (strcmp(kind, "heard") == 0 || strcmp(kind, "unheard") == 0)
		expect_bool(
		    s, tenant_heard(s->tenant), kind[0] == 'h', "heard");
	else if (strcmp(kind, "suspected") == 0 || strcmp(kind, "trusted") == 0)
		expect_suspected(s, kind[0] == 's');
	else if (strcmp(kind, "idle") == 0 || strcmp(kind, "busy") == 0)
		expect_bool(s, tenant_idle(s->tenant), kind[0] == 'i', "idle");
	else if (strcmp(kind, "inflight") == 0)
		expect_number(s, tenant_inflight(s->tenant), "inflight");
	else
		return false;
	return true;
}

static void
run_kind(struct scene *s)
{
	const char *kind = words_next(&s->w);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].name, kind) != 0)
			continue;
		if (s->tenant == NULL && !kinds[i].closed)
			words_fault(&s->w, "the tenant is closed");
		else
			kinds[i].run(s);
		return;
	}
	if (s->tenant == NULL || !expect_state(s, kind))
		words_fault(&s->w, "unknown expectation \"%s\"", kind);
}

void
expect_run(struct scene *s)
{
	bool old = words_accept(&s->w, "old");

	s->expects++;
	if (s->loop == NULL || (old && s->old == NULL)) {
		words_fault(&s->w, "there is no such tenant");
		return;
	}
	scene_settle(s);
	if (old)
		scene_swap(s);
	run_kind(s);
	if (old)
		scene_swap(s);
}
