/*
 * Expectations of one operation: what was sent for it, and how it completed.
 * The line that expects it takes it.
 */
#include "tests/world/expect_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* sent */

struct sent_words {
	bool any_port;
	uint32_t port;
	bool fresh;
	bool again;
};

/* All that is not taken yet of an operation, or NULL for reports. */
static const char *
sent_text(
    char *buf, size_t size, const struct scene *s, const struct scene_op *op)
{
	const struct scene_sent *sent;
	size_t used = (size_t)snprintf(buf, size, "sent");

	for (size_t i = 0; i < s->sent_count && used < size; i++) {
		sent = &s->sent[i];
		if (sent->taken || sent->op != op)
			continue;
		used += (size_t)snprintf(buf + used, size - used,
		    " %u/%" PRIu32 "(p%" PRIu32 "%s)", sent->server, sent->addr,
		    sent->port, sent->fresh ? ", fresh" : "");
	}
	return buf;
}

static bool
take_sent(struct scene *s, const struct scene_op *op, unsigned int server,
    uint32_t addr, const struct sent_words *want)
{
	struct scene_sent *sent;

	for (size_t i = 0; i < s->sent_count; i++) {
		sent = &s->sent[i];
		if (sent->taken || sent->op != op || sent->server != server ||
		    (addr < MEMBERS_MAX_ADDRS && sent->addr != addr) ||
		    (!want->any_port && sent->port != want->port))
			continue;
		sent->taken = true;
		return true;
	}
	return false;
}

static bool
left_sent(const struct scene *s, const struct scene_op *op)
{
	for (size_t i = 0; i < s->sent_count; i++) {
		if (!s->sent[i].taken && s->sent[i].op == op)
			return true;
	}
	return false;
}

/* Is the first that is left a first transmission? */
static bool
begins_fresh(const struct scene *s, const struct scene_op *op)
{
	for (size_t i = 0; i < s->sent_count; i++) {
		if (!s->sent[i].taken && s->sent[i].op == op)
			return s->sent[i].fresh;
	}
	return false;
}

static void
sent_places(struct scene *s, const struct scene_op *op)
{
	struct sent_words want = {.any_port = true};
	uint32_t addr[WORDS_MAX];
	unsigned int server[WORDS_MAX];
	char got[512];
	size_t n = 0;
	bool fresh = begins_fresh(s, op), ok = true;

	sent_text(got, sizeof(got), s, op);
	while (words_have_number(&s->w)) {
		server[n] = scene_place(s, &addr[n]);
		n++;
	}
	if (n == 0)
		words_fault(&s->w, "sent needs servers");
	if (words_accept(&s->w, "from")) {
		want.any_port = false;
		want.port = scene_port(s);
	}
	if (words_accept(&s->w, "fresh"))
		ok = fresh;
	else if (words_accept(&s->w, "again"))
		ok = !fresh;
	for (size_t i = 0; i < n; i++)
		ok = take_sent(s, op, server[i], addr[i], &want) && ok;
	if (!ok || left_sent(s, op))
		expect_mismatch(s, got);
}

void
expect_sent(struct scene *s)
{
	const struct scene_op *op = NULL;
	bool left = false;

	if (words_accept(&s->w, "nothing")) {
		for (size_t i = 0; i < s->sent_count; i++)
			left = left || !s->sent[i].taken;
		if (left)
			expect_mismatch(s, "some datagram");
		return;
	}
	if (!words_accept(&s->w, "report")) {
		op = scene_op(s);
		if (op == NULL)
			return;
	}
	sent_places(s, op);
}

/* complete, pending, silent, refused */

static const char *
completion_text(char *buf, size_t size, const struct scene_op *op)
{
	const struct tenant_result *r = &op->result;
	const char *by = r->guards_pass      ? "resource"
			 : r->resources_pass ? "guard"
					     : "both";
	size_t used;

	if (op->calls == 0) {
		snprintf(buf, size, "no completion");
		return buf;
	}
	used = (size_t)snprintf(buf, size, "%s", policy_end_name(r->end));
	if (r->end == POLICY_SELECTED)
		used += (size_t)snprintf(buf + used, size - used,
		    " %" PRIu64 " %s%s", r->server_id - SCENE_FIRST_ID,
		    r->guards_pass && r->resources_pass ? "allowed"
							: "denied by ",
		    r->guards_pass && r->resources_pass ? "" : by);
	snprintf(buf + used, size - used, " round %" PRIu32 " at %" PRId64,
	    r->round, op->at);
	return buf;
}

static bool
outcome_fits(struct scene *s, const struct tenant_result *r)
{
	if (words_accept(&s->w, "allowed"))
		return r->guards_pass && r->resources_pass;
	if (!words_accept(&s->w, "denied"))
		return true;
	if (!words_accept(&s->w, "by"))
		return !r->guards_pass || !r->resources_pass;
	if (words_accept(&s->w, "guard"))
		return !r->guards_pass && r->resources_pass;
	if (words_accept(&s->w, "resource"))
		return r->guards_pass && !r->resources_pass;
	if (!words_accept(&s->w, "both"))
		words_fault(&s->w, "by guard, resource or both");
	return !r->guards_pass && !r->resources_pass;
}

/* Its blocks are in the request's order, with what the server said. */
static bool
selected_fits(struct scene *s, const struct scene_op *op)
{
	const struct tenant_result *r = &op->result;
	unsigned int server = scene_server(s);

	if (r->end != POLICY_SELECTED ||
	    r->server_id != SCENE_FIRST_ID + server ||
	    r->guard_count != op->rate.guard_count ||
	    r->resource_count != op->rate.resource_count)
		return false;
	return outcome_fits(s, r);
}

void
expect_complete(struct scene *s)
{
	struct scene_op *op = scene_op(s);
	char text[128];
	bool ok;

	if (op == NULL)
		return;
	if (op->calls_told)
		words_fault(&s->w, "%s has completed before", op->name);
	if (words_accept(&s->w, "selected"))
		ok = selected_fits(s, op);
	else
		ok = strcmp(words_next(&s->w),
			 policy_end_name(op->result.end)) == 0 &&
		     op->result.end != POLICY_SELECTED;
	if (words_accept(&s->w, "round"))
		ok = words_number(&s->w, UINT32_MAX) == op->result.round && ok;
	if (words_accept(&s->w, "at"))
		ok = words_time(&s->w) == op->at && ok;
	if (!ok || op->calls == 0)
		expect_mismatch(s, completion_text(text, sizeof(text), op));
	op->calls_told = true;
}

void
expect_pending(struct scene *s)
{
	struct scene_op *op;
	char text[128];

	do {
		op = scene_op(s);
		if (op != NULL && (op->calls > 0 || op->error != 0))
			expect_mismatch(
			    s, completion_text(text, sizeof(text), op));
	} while (op != NULL && words_more(&s->w));
}

/* The tenant is closed, and its caller never heard. */
void
expect_silent(struct scene *s)
{
	struct scene_op *op = scene_op(s);
	char text[128];

	if (op == NULL)
		return;
	if (s->tenant != NULL)
		words_fault(&s->w, "the tenant is not closed");
	else if (op->calls > 0)
		expect_mismatch(s, completion_text(text, sizeof(text), op));
	op->calls_told = true;
}
