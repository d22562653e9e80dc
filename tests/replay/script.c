/*
 * The language of the replay scripts: each line is a command on one operation
 * in virtual time. Every step goes past the oracle, so a script that expects
 * what the specification forbids fails as well.
 */
#include "tests/replay/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void fault(struct script *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first fault is the one that is reported. */
static void
fault(struct script *s, const char *format, ...)
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
	fault(
	    s, "expected %s, got %s", s->text + strcspn(s->text, " ") + 1, got);
}

/* Words of a line. */

static const char *
word(struct script *s)
{
	if (s->at < s->count)
		return s->words[s->at++];
	fault(s, "the line ends too early");
	return "";
}

static bool
accept_word(struct script *s, const char *want)
{
	if (s->at >= s->count || strcmp(s->words[s->at], want) != 0)
		return false;
	s->at++;
	return true;
}

static int64_t
number(struct script *s)
{
	const char *text = word(s);
	char *end;
	int64_t n = strtoll(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0')
		fault(s, "expected a number, got \"%s\"", text);
	return n;
}

static bool
more_numbers(const struct script *s)
{
	return s->at < s->count && s->words[s->at][0] >= '0' &&
	       s->words[s->at][0] <= '9';
}

/* Server indexes up to the end of the line or the next keyword. */
static uint64_t
server_set(struct script *s)
{
	uint64_t set = 0;
	int64_t server;

	while (more_numbers(s)) {
		server = number(s);
		if (server >= POLICY_MAX_SERVERS)
			fault(s, "no such server: %" PRId64, server);
		else
			set |= UINT64_C(1) << server;
	}
	return set;
}

static enum script_outcome
outcome(struct script *s)
{
	if (accept_word(s, "allowed"))
		return OUTCOME_ALLOWED;
	if (accept_word(s, "denied"))
		return OUTCOME_DENIED;
	return OUTCOME_NONE;
}

/* Texts for people. */

static const char *
set_text(char *buf, size_t size, uint64_t set)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < POLICY_MAX_SERVERS && used < size; i++) {
		if ((set >> i & 1) != 0)
			used +=
			    (size_t)snprintf(buf + used, size - used, " %d", i);
	}
	return buf;
}

static const char *
end_text(enum policy_end end)
{
	switch (end) {
	case POLICY_SELECTED:
		return "selected";
	case POLICY_TIMEOUT:
		return "timeout";
	case POLICY_NO_SERVER:
		return "no-server";
	case POLICY_NOT_SENT:
		return "not-sent";
	case POLICY_STOPPED:
		return "stopped";
	}
	return "unknown";
}

static const char *
outcome_text(enum script_outcome r)
{
	switch (r) {
	case OUTCOME_NONE:
		return "nothing";
	case OUTCOME_ALLOWED:
		return "allowed";
	case OUTCOME_DENIED:
		return "denied";
	}
	return "unknown";
}

/* An action in the words of the script that would expect it. */
static const char *
action_text(char *buf, size_t size, const struct policy_action *a)
{
	char set[256];

	switch (a->act) {
	case POLICY_NOTHING:
		snprintf(buf, size, "nothing");
		break;
	case POLICY_SEND:
	case POLICY_DELIVER:
		snprintf(buf, size, "%s%s round %u",
		    a->act == POLICY_SEND ? "send" : "deliver",
		    set_text(set, sizeof(set), a->targets), a->round);
		break;
	case POLICY_MISSED:
		snprintf(buf, size, "missed %u", a->server);
		break;
	case POLICY_COMPLETE:
		if (a->end == POLICY_SELECTED)
			snprintf(buf, size, "complete selected %u round %u",
			    a->server, a->round);
		else
			snprintf(buf, size, "complete %s round %u",
			    end_text(a->end), a->round);
		break;
	}
	return buf;
}

/* Commands that set the scene. */

static struct schedule
schedule(struct script *s)
{
	struct schedule out = {.kind = SCHEDULE_FIXED};

	if (accept_word(s, "fixed")) {
		out.initial = (uint32_t)number(s);
		return out;
	}
	if (accept_word(s, "linear"))
		out.kind = SCHEDULE_LINEAR;
	else if (accept_word(s, "exponential"))
		out.kind = SCHEDULE_EXPONENTIAL;
	else
		fault(s, "expected fixed, linear or exponential");
	out.initial = (uint32_t)number(s);
	out.growth = (uint32_t)number(s);
	out.max = (uint32_t)number(s);
	return out;
}

static void
policy_field(struct script *s)
{
	struct policy *p = &s->policy;
	const char *field = word(s);

	if (strcmp(field, "unit") == 0)
		p->unit_ms = (uint32_t)number(s);
	else if (strcmp(field, "replays") == 0)
		p->replay_count = (uint32_t)number(s);
	else if (strcmp(field, "gap") == 0)
		p->gap = schedule(s);
	else if (strcmp(field, "prefer") == 0) {
		p->first_round = accept_word(s, "first-round");
		if (!p->first_round)
			p->preference = schedule(s);
	} else if (strcmp(field, "final") == 0)
		p->final_units = (uint32_t)number(s);
	else if (strcmp(field, "prefer-final") == 0)
		p->final_preference_units = (uint32_t)number(s);
	else if (strcmp(field, "deliver") == 0) {
		p->completion_delivery = accept_word(s, "on");
		if (!p->completion_delivery && !accept_word(s, "off"))
			fault(s, "expected on or off");
	} else
		fault(s, "unknown policy field \"%s\"", field);
}

/* Starts from the recommended defaults; names what differs. */
static void
run_policy(struct script *s)
{
	if (s->running) {
		fault(s, "the policy of a running operation is frozen");
		return;
	}
	policy_defaults(&s->policy);
	while (s->at < s->count)
		policy_field(s);
	s->have_policy = true;
	s->accepted = oracle_policy(&s->o, &s->policy);
}

static void
run_servers(struct script *s)
{
	int64_t servers = number(s);

	if (servers > POLICY_MAX_SERVERS)
		fault(s, "more than %d servers", POLICY_MAX_SERVERS);
	s->servers = (uint32_t)servers;
}

static void
run_start(struct script *s)
{
	int64_t age = 0, deadline = POLICY_NEVER;

	if (!s->have_policy || s->running)
		fault(s, "%s",
		    s->running ? "the last one is not complete"
			       : "there is no policy");
	else if (!oracle_policy(&s->o, &s->policy))
		fault(s, "the policy was refused: %s", s->o.why);
	if (accept_word(s, "age"))
		age = number(s);
	if (accept_word(s, "deadline"))
		deadline = number(s);
	if (s->fault[0] != '\0')
		return;
	s->running = true;
	s->kept = false;
	s->kept_outcome = OUTCOME_NONE;
	oracle_start(&s->o, s->servers, s->now - age, deadline, s->now);
}

/* Events. */

static void
run_at(struct script *s)
{
	int64_t to = number(s);

	if (to < s->now)
		fault(s, "time never runs backwards");
	s->now = s->o.now = to;
}

static void
run_answer(struct script *s)
{
	int64_t server = number(s);
	enum script_outcome said = outcome(s);

	if (said == OUTCOME_NONE)
		fault(s, "an answer is allowed or denied");
	s->kept = oracle_answer(&s->o, (uint32_t)server);
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
		fault(s, "an invalid datagram changed the operation");
}

static void
run_sent(struct script *s)
{
	uint64_t taken = 0;

	if (!accept_word(s, "none")) {
		taken = server_set(s);
		if (taken == 0)
			fault(s, "sent needs servers or \"none\"");
	}
	if (s->o.prepared)
		fault(s, "nothing was offered for sending");
	else if ((taken & ~s->o.members) != 0)
		fault(s, "sent to a server that is not a member");
	else
		oracle_sent(&s->o, taken);
}

/* Expectations. */

static bool
expect_targets(
    struct script *s, enum policy_act act, const struct policy_action *got)
{
	uint64_t want = server_set(s);

	if (want == 0)
		fault(s, "expect needs the targets");
	return got->act == act && got->targets == want &&
	       (!accept_word(s, "round") || number(s) == got->round);
}

static bool
expect_selected(struct script *s, const struct policy_action *got)
{
	int64_t server = number(s);
	enum script_outcome said = outcome(s);

	if (got->end != POLICY_SELECTED || got->server != server)
		return false;
	if (said != OUTCOME_NONE && said != s->kept_outcome)
		mismatch(s, outcome_text(s->kept_outcome));
	return true;
}

static bool
expect_complete(struct script *s, const struct policy_action *got)
{
	bool ok;

	if (accept_word(s, "selected"))
		ok = expect_selected(s, got);
	else
		ok = strcmp(word(s), end_text(got->end)) == 0 &&
		     got->end != POLICY_SELECTED;
	if (ok && accept_word(s, "round"))
		ok = number(s) == got->round;
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
	else if (strcmp(kind, "complete") == 0)
		ok = expect_complete(s, &got);
	else if (strcmp(kind, "nothing") == 0)
		ok = got.act == POLICY_NOTHING;
	else
		fault(s, "unknown expectation \"%s\"", kind);
	if (!ok)
		mismatch(s, action_text(text, sizeof(text), &got));
}

static void
expect_timeout(struct script *s)
{
	int64_t want = POLICY_NEVER, got;
	char text[64];

	if (!accept_word(s, "never"))
		want = number(s);
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
	const char *want = word(s), *got;

	oracle_advance(&s->o, s->now);
	got = policy_state_name(s->o.op.state);
	if (strcmp(want, got) != 0)
		mismatch(s, got);
}

static void
expect_refused(struct script *s)
{
	const char *field = word(s);
	const size_t len = strlen(field);

	if (s->accepted)
		mismatch(s, "an accepted policy");
	else if (strncmp(s->o.why, field, len) != 0 || s->o.why[len] != ':')
		mismatch(s, s->o.why);
}

/* Needs no running operation: a completed one stays silent. */
static void
run_expect(struct script *s)
{
	const char *kind = word(s);

	s->expects++;
	if (strcmp(kind, "refused") == 0) {
		if (s->have_policy)
			expect_refused(s);
		else
			fault(s, "there is no policy");
	} else if (s->o.op.plan == NULL)
		fault(s, "nothing was started");
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
		fault(s, "nothing was started");
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
		fault(s, "unknown command \"%s\"", verb);
}

static void
run_line(struct script *s)
{
	const char *verb = word(s);

	if (strcmp(verb, "policy") == 0)
		run_policy(s);
	else if (strcmp(verb, "servers") == 0)
		run_servers(s);
	else if (strcmp(verb, "start") == 0)
		run_start(s);
	else if (strcmp(verb, "at") == 0)
		run_at(s);
	else if (strcmp(verb, "expect") == 0)
		run_expect(s);
	else
		run_event(s, verb);
	if (s->at < s->count)
		fault(s, "not understood from \"%s\" on", s->words[s->at]);
	if (s->o.broken != NULL)
		fault(s, "does not hold: %s", s->o.broken);
}

/* A script says everything that happens: nothing may be left over. */
static void
check_end(struct script *s)
{
	char text[320];
	struct policy_action left;

	if (s->expects == 0)
		fault(s, "the script expects nothing");
	if (s->fault[0] != '\0' || s->o.op.plan == NULL)
		return;
	oracle_advance(&s->o, s->now);
	left = oracle_next(&s->o);
	if (left.act != POLICY_NOTHING)
		fault(s, "left untaken at the end: %s",
		    action_text(text, sizeof(text), &left));
	else if (s->running)
		fault(s, "the operation is not complete at the end");
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
			fault(s, "too many words");
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
			fault(s, "the line is too long or has no end");
		split(s, line);
		if (s->count > 0)
			run_line(s);
	}
	check_end(s);
}
