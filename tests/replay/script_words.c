/*
 * The words of a line: numbers, servers, sets of them, and what is said of an
 * action when it is not the expected one.
 */
#include "tests/replay/script_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *
script_word(struct script *s)
{
	if (s->at < s->count)
		return s->words[s->at++];
	script_fault(s, "the line ends too early");
	return "";
}

bool
script_accept(struct script *s, const char *want)
{
	if (s->at >= s->count || strcmp(s->words[s->at], want) != 0)
		return false;
	s->at++;
	return true;
}

int64_t
script_number(struct script *s)
{
	const char *text = script_word(s);
	char *end;
	int64_t n = strtoll(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0')
		script_fault(s, "expected a number, got \"%s\"", text);
	return n;
}

uint32_t
script_u32(struct script *s)
{
	int64_t n = script_number(s);

	if (n > UINT32_MAX)
		script_fault(s, "%" PRId64 " is over 4294967295", n);
	return (uint32_t)n;
}

/* One part of an id, up to its end character, which is passed over. */
static uint64_t
id_part(struct script *s, const char **text, uint64_t most, char stop)
{
	char *end;
	uint64_t n = strtoull(*text, &end, 10);

	if (**text < '0' || **text > '9' || *end != stop || n > most)
		script_fault(s, "not a part of a server id: \"%s\"", *text);
	*text = *end != '\0' ? end + 1 : end;
	return n;
}

static uint64_t
id_text(struct script *s, const char *text)
{
	uint64_t id;

	if (strchr(text, '/') == NULL)
		return id_part(s, &text, UINT64_MAX, '\0');
	id = id_part(s, &text, UINT64_MAX >> 23, '/') << 23;
	id |= id_part(s, &text, 255, '/') << 15;
	return id | id_part(s, &text, 32767, '\0');
}

uint64_t
script_id(struct script *s)
{
	return id_text(s, script_word(s));
}

uint32_t
script_server(struct script *s, const struct members *m)
{
	const bool by_id = s->at < s->count && s->words[s->at][0] == '@';
	uint64_t id;
	int64_t place;
	int found;

	if (!by_id) {
		place = script_number(s);
		return place < POLICY_MAX_SERVERS ? (uint32_t)place
						  : POLICY_MAX_SERVERS;
	}
	id = id_text(s, script_word(s) + 1);
	if (m == NULL) {
		script_fault(s, "these servers have no ids");
		return POLICY_MAX_SERVERS;
	}
	found = members_find(m, id);
	return found >= 0 ? (uint32_t)found : POLICY_MAX_SERVERS;
}

static bool
more_servers(const struct script *s)
{
	const char c = s->at < s->count ? s->words[s->at][0] : '\0';

	return (c >= '0' && c <= '9') || c == '@';
}

uint64_t
script_server_set(struct script *s, const struct members *m)
{
	uint64_t set = 0;
	uint32_t server;

	while (more_servers(s)) {
		server = script_server(s, m);
		if (server == POLICY_MAX_SERVERS)
			script_fault(
			    s, "no such server: %s", s->words[s->at - 1]);
		else
			set |= UINT64_C(1) << server;
	}
	return set;
}

enum script_outcome
script_outcome(struct script *s)
{
	if (script_accept(s, "allowed"))
		return OUTCOME_ALLOWED;
	if (script_accept(s, "denied"))
		return OUTCOME_DENIED;
	return OUTCOME_NONE;
}

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

const char *
script_outcome_text(enum script_outcome outcome)
{
	switch (outcome) {
	case OUTCOME_NONE:
		return "nothing";
	case OUTCOME_ALLOWED:
		return "allowed";
	case OUTCOME_DENIED:
		return "denied";
	}
	return "unknown";
}

const char *
script_action_text(char *buf, size_t size, const struct policy_action *a)
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
			    policy_end_name(a->end), a->round);
		break;
	}
	return buf;
}
