/*
 * The language of the replay scripts: each line is a command on one operation
 * in virtual time. Every step goes past the oracle, so a script that expects
 * what the specification forbids fails as well.
 */
#include "tests/replay/script_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void
script_fault(struct script *s, const char *format, ...)
{
	va_list ap;

	if (s->fault[0] != '\0')
		return;
	va_start(ap, format);
	vsnprintf(s->fault, sizeof(s->fault), format, ap);
	va_end(ap);
}

/* Of an expect line; starts at its second word. */
static void
mismatch(struct script *s, const char *got)
{
	script_fault(
	    s, "expected %s, got %s", s->text + strcspn(s->text, " ") + 1, got);
}

/* Events. */

static void
run_at(struct script *s)
{
	int64_t to = script_number(s);

	if (to < s->now)
		script_fault(s, "time never runs backwards");
	s->now = s->o.now = to;
}

static void
run_answer(struct script *s)
{
	uint32_t server = script_server(s, s->snapshot);
	enum script_outcome said = script_outcome(s);

	if (said == OUTCOME_NONE)
		script_fault(s, "an answer is allowed or denied");
	s->kept = oracle_answer(&s->o, server);
	if (s->kept)
		s->kept_outcome = said;
}

/*
 * The codec drops what is not valid, so the core never hears of it; the owner
 * wakes up and judges all the same, which must change nothing.
 */
static void
run_invalid(struct script *s)
{
	struct policy_op before;

	oracle_advance(&s->o, s->now);
	before = s->o.op;
	oracle_advance(&s->o, s->now);
	if (memcmp(&before, &s->o.op, sizeof(before)) != 0)
		script_fault(s, "an invalid datagram changed the operation");
}

static void
run_sent(struct script *s)
{
	uint64_t taken = 0;

	if (!script_accept(s, "none")) {
		taken = script_server_set(s, s->snapshot);
		if (taken == 0)
			script_fault(s, "sent needs servers or \"none\"");
	}
	if (s->o.prepared)
		script_fault(s, "nothing was offered for sending");
	else if ((taken & ~s->o.members) != 0)
		script_fault(s, "sent to a server that is not a member");
	else
		oracle_sent(&s->o, taken);
}

/* Expectations. */

static bool
expect_targets(
    struct script *s, enum policy_act act, const struct policy_action *got)
{
	uint64_t want = script_server_set(s, s->snapshot);

	if (want == 0)
		script_fault(s, "expect needs the targets");
	return got->act == act && got->targets == want &&
	       (!script_accept(s, "round") || script_number(s) == got->round);
}

static bool
expect_selected(struct script *s, const struct policy_action *got)
{
	uint32_t server = script_server(s, s->snapshot);
	enum script_outcome said = script_outcome(s);

	if (got->end != POLICY_SELECTED || got->server != server)
		return false;
	if (said != OUTCOME_NONE && said != s->kept_outcome)
		mismatch(s, script_outcome_text(s->kept_outcome));
	return true;
}

static bool
expect_complete(struct script *s, const struct policy_action *got)
{
	bool ok;

	if (script_accept(s, "selected"))
		ok = expect_selected(s, got);
	else
		ok = strcmp(script_word(s), policy_end_name(got->end)) == 0 &&
		     got->end != POLICY_SELECTED;
	if (ok && script_accept(s, "round"))
		ok = script_number(s) == got->round;
	if (got->act != POLICY_COMPLETE)
		return false;
	s->running = false;
	return ok;
}

/* Judges, takes one action and compares it with the rest of the line. */
static void
expect_action(struct script *s, const char *kind)
{
	char text[320];
	struct policy_action got;
	bool ok = false;

	oracle_advance(&s->o, s->now);
	got = oracle_next(&s->o);
	if (strcmp(kind, "send") == 0)
		ok = expect_targets(s, POLICY_SEND, &got);
	else if (strcmp(kind, "deliver") == 0)
		ok = expect_targets(s, POLICY_DELIVER, &got);
	else if (strcmp(kind, "missed") == 0)
		ok = script_server(s, s->snapshot) == got.server &&
		     got.act == POLICY_MISSED;
	else if (strcmp(kind, "complete") == 0)
		ok = expect_complete(s, &got);
	else if (strcmp(kind, "nothing") == 0)
		ok = got.act == POLICY_NOTHING;
	else
		script_fault(s, "unknown expectation \"%s\"", kind);
	if (!ok)
		mismatch(s, script_action_text(text, sizeof(text), &got));
}

static void
expect_timeout(struct script *s)
{
	int64_t want = POLICY_NEVER, got;
	char text[64];

	if (!script_accept(s, "never"))
		want = script_number(s);
	oracle_advance(&s->o, s->now);
	got = policy_op_timeout(&s->o.op);
	if (got == want)
		return;
	if (got == POLICY_NEVER)
		snprintf(text, sizeof(text), "timeout-at never");
	else
		snprintf(text, sizeof(text), "timeout-at %" PRId64, got);
	mismatch(s, text);
}

static void
expect_state(struct script *s)
{
	const char *want = script_word(s), *got;

	oracle_advance(&s->o, s->now);
	got = policy_state_name(s->o.op.state);
	if (strcmp(want, got) != 0)
		mismatch(s, got);
}

static void
expect_refused(struct script *s)
{
	const char *field = script_word(s);

	if (s->accepted)
		mismatch(s, "an accepted policy");
	else if (strcmp(script_refused(s), field) != 0)
		mismatch(s, script_refused(s));
}

static void
expect_ttl(struct script *s)
{
	const uint32_t want = script_u32(s), got = s->o.plan.ttl_ms;
	char text[32];

	if (!s->accepted) {
		mismatch(s, script_refused(s));
	} else if (got != want) {
		snprintf(text, sizeof(text), "%" PRIu32, got);
		mismatch(s, text);
	}
}

static void
expect_order(struct script *s)
{
	const struct members *m = s->members;
	uint32_t i = 0;
	bool same = m != NULL;

	for (; s->at < s->count; i++) {
		const uint64_t id = script_id(s);

		same = same && i < m->count && m->list[i].server_id == id;
	}
	if (!same || i != m->count)
		mismatch(s, "another order");
}

/* What needs no operation. */
static bool
expect_scene(struct script *s, const char *kind)
{
	if (strcmp(kind, "order") == 0) {
		expect_order(s);
		return true;
	}
	if (strcmp(kind, "refused") != 0 && strcmp(kind, "ttl") != 0)
		return false;
	if (!s->have_policy)
		script_fault(s, "there is no policy");
	else if (kind[0] == 'r')
		expect_refused(s);
	else
		expect_ttl(s);
	return true;
}

/* Needs no running operation: a completed one stays silent. */
static void
run_expect(struct script *s)
{
	const char *kind = script_word(s);

	s->expects++;
	if (expect_scene(s, kind))
		return;
	if (s->o.op.plan == NULL)
		script_fault(s, "nothing was started");
	else if (strcmp(kind, "timeout-at") == 0)
		expect_timeout(s);
	else if (strcmp(kind, "state") == 0)
		expect_state(s);
	else if (strcmp(kind, "kept") == 0 || strcmp(kind, "ignored") == 0) {
		if (s->kept != (kind[0] == 'k'))
			mismatch(s, s->kept ? "kept" : "ignored");
	} else
		expect_action(s, kind);
}

/* Lines and files. */

static void
run_event(struct script *s, const char *verb)
{
	if (s->o.op.plan == NULL)
		script_fault(s, "nothing was started");
	else if (strcmp(verb, "answer") == 0)
		run_answer(s);
	else if (strcmp(verb, "invalid") == 0)
		run_invalid(s);
	else if (strcmp(verb, "sent") == 0)
		run_sent(s);
	else if (strcmp(verb, "cancel") == 0)
		oracle_cancel(&s->o);
	else if (strcmp(verb, "advance") == 0)
		oracle_advance(&s->o, s->now);
	else
		script_fault(s, "unknown command \"%s\"", verb);
}

static void
run_line(struct script *s)
{
	const char *verb = script_word(s);

	if (strcmp(verb, "policy") == 0)
		script_policy(s);
	else if (strcmp(verb, "servers") == 0)
		script_servers(s);
	else if (strcmp(verb, "members") == 0)
		script_members(s);
	else if (strcmp(verb, "start") == 0)
		script_start(s);
	else if (strcmp(verb, "at") == 0)
		run_at(s);
	else if (strcmp(verb, "expect") == 0)
		run_expect(s);
	else
		run_event(s, verb);
	if (s->at < s->count)
		script_fault(
		    s, "not understood from \"%s\" on", s->words[s->at]);
	if (s->o.broken != NULL)
		script_fault(s, "does not hold: %s", s->o.broken);
}

/* A script says everything that happens: nothing may be left over. */
static void
check_end(struct script *s)
{
	char text[320];
	struct policy_action left;

	if (s->expects == 0)
		script_fault(s, "the script expects nothing");
	if (s->fault[0] != '\0' || s->o.op.plan == NULL)
		return;
	oracle_advance(&s->o, s->now);
	left = oracle_next(&s->o);
	if (left.act != POLICY_NOTHING)
		script_fault(s, "left untaken at the end: %s",
		    script_action_text(text, sizeof(text), &left));
	else if (s->running)
		script_fault(s, "the operation is not complete at the end");
}

static void
split(struct script *s, char *line)
{
	char *save = NULL;

	line[strcspn(line, "#\n")] = '\0';
	snprintf(s->text, sizeof(s->text), "%s", line);
	s->count = s->at = 0;
	for (char *w = strtok_r(line, " \t", &save); w != NULL;
	     w = strtok_r(NULL, " \t", &save)) {
		if (s->count == SCRIPT_WORDS_MAX)
			script_fault(s, "too many words");
		else
			s->words[s->count++] = w;
	}
}

void
script_play(struct script *s, FILE *f)
{
	char line[SCRIPT_LINE_LEN];

	memset(s, 0, sizeof(*s));
	while (s->fault[0] == '\0' && fgets(line, sizeof(line), f) != NULL) {
		s->line++;
		if (strchr(line, '\n') == NULL)
			script_fault(s, "the line is too long or has no end");
		split(s, line);
		if (s->count > 0)
			run_line(s);
	}
	check_end(s);
	members_unref(s->members);
	members_unref(s->snapshot);
	s->members = s->snapshot = NULL;
}
