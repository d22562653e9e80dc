/*
 * The commands that set the scene: which policy, which servers, and the start
 * of an operation, which then keeps the membership that it began with.
 */
#include "tests/replay/script_private.h"

#include <stdlib.h>
#include <string.h>

static struct schedule
schedule(struct script *s)
{
	struct schedule out = {.kind = SCHEDULE_FIXED};

	if (script_accept(s, "fixed")) {
		out.initial = script_u32(s);
		return out;
	}
	if (script_accept(s, "linear"))
		out.kind = SCHEDULE_LINEAR;
	else if (script_accept(s, "exponential"))
		out.kind = SCHEDULE_EXPONENTIAL;
	else
		script_fault(s, "expected fixed, linear or exponential");
	out.initial = script_u32(s);
	out.growth = script_u32(s);
	out.max = script_u32(s);
	return out;
}

static void
preference(struct script *s)
{
	s->policy.first_round = script_accept(s, "first-round");
	if (!s->policy.first_round)
		s->policy.preference = schedule(s);
}

static void
delivery(struct script *s)
{
	s->policy.completion_delivery = script_accept(s, "on");
	if (!s->policy.completion_delivery && !script_accept(s, "off"))
		script_fault(s, "expected on or off");
}

static void
policy_field(struct script *s)
{
	struct policy *p = &s->policy;
	const char *field = script_word(s);

	if (strcmp(field, "unit") == 0)
		p->unit_ms = script_u32(s);
	else if (strcmp(field, "replays") == 0)
		p->replay_count = script_u32(s);
	else if (strcmp(field, "gap") == 0)
		p->gap = schedule(s);
	else if (strcmp(field, "prefer") == 0)
		preference(s);
	else if (strcmp(field, "final") == 0)
		p->final_units = script_u32(s);
	else if (strcmp(field, "prefer-final") == 0)
		p->final_preference_units = script_u32(s);
	else if (strcmp(field, "deliver") == 0)
		delivery(s);
	else if (strcmp(field, "suspect-after") == 0)
		p->suspect_after = script_u32(s);
	else
		script_fault(s, "unknown policy field \"%s\"", field);
}

/* Starts from the recommended defaults; names what differs. */
void
script_policy(struct script *s)
{
	if (s->running) {
		script_fault(s, "the policy of a running operation is frozen");
		return;
	}
	policy_defaults(&s->policy);
	while (s->at < s->count)
		policy_field(s);
	s->have_policy = true;
	s->accepted = oracle_policy(&s->o, &s->policy);
}

void
script_servers(struct script *s)
{
	int64_t servers = script_number(s);

	if (servers > POLICY_MAX_SERVERS)
		script_fault(s, "more than %d servers", POLICY_MAX_SERVERS);
	s->servers = (uint32_t)servers;
	members_unref(s->members);
	s->members = NULL;
}

/* The addresses are of no matter here; without one a server is none. */
void
script_members(struct script *s)
{
	struct members_target targets[SCRIPT_WORDS_MAX];
	size_t count = 0;

	while (s->at < s->count) {
		targets[count] = (struct members_target){
		    .server_id = script_id(s),
		    .addr_count = 1,
		    .addrs = {{.family = 4, .port = 29292}},
		};
		count++;
	}
	members_unref(s->members);
	s->members = members_build(targets, count, NULL, NULL);
	if (s->members == NULL)
		abort();
	s->servers = s->members->count;
}

/* Who is in the operation does not change any more, whoever is discovered. */
static void
take_snapshot(struct script *s)
{
	members_unref(s->snapshot);
	s->snapshot = s->members != NULL ? members_ref(s->members) : NULL;
}

const char *
script_refused(const struct script *s)
{
	return s->o.why.key != NULL ? s->o.why.key : "horizon";
}

void
script_start(struct script *s)
{
	int64_t age = 0, deadline = POLICY_NEVER;
	uint64_t suspected = 0;

	if (!s->have_policy || s->running)
		script_fault(s, "%s",
		    s->running ? "the last one is not complete"
			       : "there is no policy");
	else if (!oracle_policy(&s->o, &s->policy))
		script_fault(
		    s, "the policy was refused: %s", script_refused(s));
	if (script_accept(s, "age"))
		age = script_number(s);
	if (script_accept(s, "deadline"))
		deadline = script_number(s);
	if (script_accept(s, "suspect"))
		suspected = script_server_set(s, s->members);
	if (s->fault[0] != '\0')
		return;
	take_snapshot(s);
	s->running = true;
	s->kept = false;
	s->kept_outcome = OUTCOME_NONE;
	oracle_start(
	    &s->o, s->servers, suspected, s->now - age, deadline, s->now);
}
