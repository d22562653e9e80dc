/*
 * The world before a tenant runs in it: the policy, the servers and their
 * addresses, the key. The configuration is made here and not parsed, so that
 * no file and no environment has a say.
 */
#include "tests/world/scene.h"

#include <stdlib.h>
#include <string.h>

#include "tests/world/fake_dns.h"
#include "tests/world/fake_loop.h"

#define PORT_BASE 5000

/* 192.0.2.(16 S + A + 1) or 2001:db8::S:A, one port for all of a server. */
static struct endpoint
endpoint_of(unsigned int server, uint32_t addr, unsigned int family)
{
	struct endpoint e = {
	    .family = (uint8_t)family, .port = (uint16_t)(PORT_BASE + server)};

	if (family == 4)
		memcpy(e.addr,
		    (uint8_t[]){192, 0, 2, (uint8_t)(16 * server + addr + 1)},
		    4);
	else
		memcpy(e.addr,
		    (uint8_t[]){0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
			(uint8_t)server, 0, (uint8_t)addr},
		    16);
	return e;
}

static void
set_addresses(struct scene *s, unsigned int server,
    const unsigned int *families, uint32_t count)
{
	struct members_target *t = &s->targets[server];

	*t = (struct members_target){
	    .server_id = SCENE_FIRST_ID + server, .addr_count = count};
	for (uint32_t i = 0; i < count; i++)
		t->addrs[i] = endpoint_of(server, i, families[i]);
}

void
scene_init(struct scene *s, bool timers_first)
{
	memset(s, 0, sizeof(*s));
	s->timers_first = timers_first;
	policy_defaults(&s->policy);
	for (unsigned int i = 0; i < SCENE_SERVERS; i++)
		set_addresses(s, i, (unsigned int[]){4}, 1);
}

/* address S FAMILY... */
void
scene_addresses(struct scene *s)
{
	unsigned int server = scene_server(s), families[MEMBERS_MAX_ADDRS];
	uint32_t n = 0;

	while (words_more(&s->w)) {
		if (n == MEMBERS_MAX_ADDRS) {
			words_fault(&s->w, "too many addresses");
			return;
		}
		families[n] = (unsigned int)words_number(&s->w, 6);
		if (families[n] != 4 && families[n] != 6)
			words_fault(&s->w, "an address is of family 4 or 6");
		n++;
	}
	if (n == 0)
		words_fault(&s->w, "a server without an address is no server");
	set_addresses(s, server, families, n);
}

static size_t
choose(struct scene *s, struct members_target *out)
{
	uint64_t set = words_accept(&s->w, "none") ? 0 : scene_servers(s);
	size_t n = 0;

	for (unsigned int i = 0; i < SCENE_SERVERS; i++) {
		if ((set >> i & 1) != 0)
			out[n++] = s->targets[i];
	}
	return n;
}

/* members S... : static ones, before the start */
void
scene_members(struct scene *s)
{
	if (s->tenant != NULL || s->config.servers != NULL || s->zone) {
		words_fault(&s->w, "the servers are chosen already");
		return;
	}
	s->config.servers = calloc(SCENE_SERVERS, sizeof(*s->config.servers));
	if (s->config.servers == NULL)
		abort();
	s->config.server_count = choose(s, s->config.servers);
	if (s->config.server_count == 0)
		words_fault(&s->w, "no static server is DNS");
}

/* dns S...|none : what the zone holds from now on */
void
scene_dns(struct scene *s)
{
	struct members_target servers[SCENE_SERVERS];

	if (s->config.servers != NULL) {
		words_fault(&s->w, "the servers are static");
		return;
	}
	s->zone = true;
	fake_dns_serve(servers, choose(s, servers));
}

static struct schedule
schedule(struct scene *s)
{
	struct schedule out = {.kind = SCHEDULE_FIXED};

	if (words_accept(&s->w, "fixed")) {
		out.initial = (uint32_t)words_number(&s->w, UINT32_MAX);
		return out;
	}
	if (words_accept(&s->w, "linear"))
		out.kind = SCHEDULE_LINEAR;
	else if (words_accept(&s->w, "exponential"))
		out.kind = SCHEDULE_EXPONENTIAL;
	else
		words_fault(&s->w, "expected fixed, linear or exponential");
	out.initial = (uint32_t)words_number(&s->w, UINT32_MAX);
	out.growth = (uint32_t)words_number(&s->w, UINT32_MAX);
	out.max = (uint32_t)words_number(&s->w, UINT32_MAX);
	return out;
}

static void
policy_field(struct scene *s)
{
	static const struct {
		const char *name;
		size_t offset;
	} numbers[] = {
	    {"unit", offsetof(struct policy, unit_ms)},
	    {"replays", offsetof(struct policy, replay_count)},
	    {"final", offsetof(struct policy, final_units)},
	    {"prefer-final", offsetof(struct policy, final_preference_units)},
	    {"suspect", offsetof(struct policy, suspect_after)},
	};
	struct policy *p = &s->policy;
	const char *field = words_next(&s->w);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strcmp(field, numbers[i].name) == 0) {
			*(uint32_t *)(void *)((char *)p + numbers[i].offset) =
			    (uint32_t)words_number(&s->w, UINT32_MAX);
			return;
		}
	}
	if (strcmp(field, "gap") == 0)
		p->gap = schedule(s);
	else if (strcmp(field, "prefer") != 0 && strcmp(field, "deliver") != 0)
		words_fault(&s->w, "unknown policy field \"%s\"", field);
	else if (field[0] == 'd')
		p->completion_delivery = words_switch(&s->w);
	else if (words_accept(&s->w, "first-round"))
		p->first_round = true;
	else
		p->preference = schedule(s);
}

/* policy [FIELD...] : the recommended defaults but for these */
void
scene_policy(struct scene *s)
{
	if (s->tenant != NULL)
		words_fault(&s->w, "the policy of a running tenant is frozen");
	policy_defaults(&s->policy);
	while (words_more(&s->w))
		policy_field(s);
}

/* A key of the words' type, without a limit on the horizon. */
static void
make_key(struct scene *s)
{
	s->cred = (struct credential){
	    .key_id = SCENE_KEY_ID,
	    .quotas = {1024, 1024, 1024, 64, 0, UINT32_MAX},
	};
	if (words_accept(&s->w, "aes"))
		s->cred.auth = AUTH_AES;
	else if (words_accept(&s->w, "cookie"))
		s->cred.auth = AUTH_COOKIE;
	else if (!words_accept(&s->w, "none"))
		words_fault(&s->w, "expected aes, cookie or none");
	if (s->cred.auth != AUTH_NONE)
		memset(s->cred.secret, 0x5A, sizeof(s->cred.secret));
}

/* tenant aes|cookie|none [v1|v2] [strict on|off] [max N] */
void
scene_tenant(struct scene *s)
{
	if (s->loop != NULL || (s->config.servers == NULL && !s->zone)) {
		words_fault(&s->w, "%s",
		    s->loop != NULL ? "there is a tenant already"
				    : "there are no servers yet");
		return;
	}
	make_key(s);
	s->max_ops = SCENE_OPS;
	s->config.profile = PROFILE_V1;
	s->config.strict_source = s->cred.auth != AUTH_AES;
	while (words_more(&s->w) && !words_failed(&s->w)) {
		if (words_accept(&s->w, "v2"))
			s->config.profile = PROFILE_V2;
		else if (words_accept(&s->w, "strict"))
			s->config.strict_source = words_switch(&s->w);
		else if (words_accept(&s->w, "max"))
			s->max_ops = (uint32_t)words_number(&s->w, SCENE_OPS);
		else if (!words_accept(&s->w, "v1"))
			words_fault(&s->w, "expected v1, v2, strict or max");
	}
	if (!words_failed(&s->w))
		scene_start(s);
}
