/*
 * A tenant whose servers are sockets of the test, and what came of its
 * operations. For the check_tenant programs.
 */
#ifndef TESTS_UNIT_TENANT_FIXTURE_H
#define TESTS_UNIT_TENANT_FIXTURE_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tenant.h"
#include "tests/unit/fake_server.h"
#include "tests/unit/harness.h"

#define SERVERS  3 /* ids 101, 102, 103: the first is the oldest */
#define FIRST_ID 101
#define LIMIT_US (20 * INT64_C(1000000))
#define MS(n)    ((n)*INT64_C(1000))
/* H is 3 of these; nothing times out in a test that has patience. */
#define PATIENT    "{\"unit_ms\":10000}"
#define QUICK      "{\"unit_ms\":5}"
#define NO_DELIVER "{\"unit_ms\":10000,\"completion_delivery\":false}"

struct outcome {
	unsigned int calls;
	struct tenant_result res;
	struct tenant_block guards[PDU_MAX_GUARDS];
	struct tenant_block resources[PDU_MAX_RESOURCES];
	int64_t at;
	void (*then)(struct outcome *); /* from inside the callback */
};

struct shape {
	enum auth_type auth;
	enum profile profile;
	const char *policy;  /* JSON; NULL: patient */
	const char *strict;  /* JSON; NULL: null */
	const char *servers; /* JSON, %u for the ports; NULL: all three */
	const char *dns;     /* JSON instead of servers */
	uint32_t max_ops;    /* 0: plenty */
};

static struct loop *loop;
static struct random_pool *randoms;
static struct config *config;
static struct tenant *tenant;
static struct fake_server server[SERVERS];

#define TURN_UNTIL(condition)                                          \
	do {                                                           \
		int64_t limit_ = loop_now() + LIMIT_US;                \
		while (!(condition)) {                                 \
			if (loop_now() > limit_)                       \
				ck_abort_msg("never: %s", #condition); \
			loop_turn(loop);                               \
			sched_yield();                                 \
		}                                                      \
	} while (0)

static inline void
make_key_of(
    enum auth_type auth, uint64_t key_id, int secret, struct credential *cred)
{
	char text[CREDENTIAL_TEXT_MAX];

	*cred = (struct credential){
	    .auth = auth,
	    .format = auth == AUTH_NONE ? KEY_FORMAT_1 : KEY_UNVERSIONED,
	    .key_id = key_id,
	    .quotas = {1024, 1024, 1024, 64, auth == AUTH_NONE ? 2000 : 0,
		UINT32_MAX},
	};
	if (auth != AUTH_NONE)
		memset(cred->secret, secret, sizeof(cred->secret));
	ck_assert_int_eq(credential_format(cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_KEY", text, 1);
}

static inline void
make_key(enum auth_type auth, struct credential *cred)
{
	make_key_of(auth, 77, 0x5A, cred);
}

static inline struct config *
make_config(const struct shape *shape)
{
	static const char all[] =
	    "[{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"},"
	    "{\"id\":\"102\",\"address\":\"127.0.0.1:%u\"},"
	    "{\"id\":\"103\",\"address\":\"127.0.0.1:%u\"}]";
	char text[2048], where[1024], err[CONFIG_ERR_MAX] = "";
	struct config *c;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(where, sizeof(where),
	    shape->dns != NULL       ? shape->dns
	    : shape->servers != NULL ? shape->servers
				     : all,
	    server[0].port, server[1].port, server[2].port);
#pragma GCC diagnostic pop
	snprintf(text, sizeof(text),
	    "{\"tenants\":{\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
	    "\"profile\":\"%s\",\"strict_source\":%s,\"policy\":%s,"
	    "\"%s\":%s}}}",
	    shape->profile == PROFILE_V1 ? "v1" : "v2",
	    shape->strict != NULL ? shape->strict : "null",
	    shape->policy != NULL ? shape->policy : "{}",
	    shape->dns != NULL ? "dns" : "servers", where);
	c = config_parse(text, strlen(text), "t.json", err);
	ck_assert_msg(c != NULL, "%s", err);
	/* Keys of rl-none allow 2 s at most: too short for a slow machine. */
	if (shape->policy == NULL) {
		policy_defaults(&c->tenants[0].policy);
		c->tenants[0].policy.unit_ms = 10000;
		ck_assert_int_eq(policy_plan_init(&c->tenants[0].plan,
				     &c->tenants[0].policy, NULL),
		    0);
	}
	return c;
}

static inline void
start_tenant(const struct shape *shape)
{
	char err[TENANT_ERR_MAX] = "";
	struct credential cred;

	make_key(shape->auth, &cred);
	for (unsigned int i = 0; i < SERVERS; i++)
		fake_server_open(
		    &server[i], FIRST_ID + i, &cred, shape->profile);
	loop = loop_new();
	randoms = random_pool_new();
	config = make_config(shape);
	tenant = tenant_new(loop, randoms, &config->tenants[0],
	    shape->max_ops != 0 ? shape->max_ops : 65536, err);
	ck_assert_msg(tenant != NULL, "%s", err);
	ck_assert(!tenant_ready(tenant));
	if (shape->dns == NULL)
		TURN_UNTIL(tenant_ready(tenant));
}

static inline void
stop_tenant(void)
{
	tenant_free(tenant);
	for (unsigned int i = 0; i < SERVERS; i++)
		fake_server_close(&server[i]);
	loop_free(loop);
	random_pool_free(randoms);
	config_unref(config);
}

static inline void
done(void *arg, const struct tenant_result *res)
{
	struct outcome *o = arg;

	o->calls++;
	o->res = *res;
	o->at = loop_now();
	if (res->end == POLICY_SELECTED) {
		memcpy(o->guards, res->guards,
		    res->guard_count * sizeof(*res->guards));
		memcpy(o->resources, res->resources,
		    res->resource_count * sizeof(*res->resources));
	}
	if (o->then != NULL)
		o->then(o);
}

/* So many guards and resources, with ids that tell them apart. */
static inline void
make_rate(struct pdu_rate *rate, size_t guards, size_t resources)
{
	memset(rate, 0, sizeof(*rate));
	rate->guard_count = guards;
	rate->resource_count = resources;
	for (size_t i = 0; i < guards; i++) {
		rate->guards[i] = (struct pdu_guard){
		    .ttl_ms = 1000,
		    .max_samples = 10,
		    .min_samples = 1,
		    .threshold_ms = 100 + (uint32_t)i,
		};
		memset(rate->guards[i].id, (int)(0x10 + i), ID_LEN);
	}
	for (size_t i = 0; i < resources; i++) {
		rate->resources[i] = (struct pdu_resource){
		    .window_ms = 1000, .limit = 50, .tokens = 2};
		memset(rate->resources[i].id, (int)(0x80 + i), ID_LEN);
	}
}

static inline int
ask_with(struct pdu_rate *rate, const uint8_t id[16], int64_t begun,
    int64_t deadline, struct outcome *o, struct tenant_op **op)
{
	const struct tenant_check check = {
	    .rate = rate,
	    .unique_id = id,
	    .now = loop_now(),
	    .start = begun,
	    .deadline = deadline,
	};

	return tenant_check(tenant, &check, done, o, op);
}

/* One guard and one resource; its unique id is made of number. */
static inline struct tenant_op *
ask(uint32_t number, struct outcome *o)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct tenant_op *op = NULL;
	struct pdu_rate rate;

	memcpy(id, &number, sizeof(number));
	make_rate(&rate, 1, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, o, &op), 0);
	return op;
}

/* Turns until a datagram has come to the server. */
static inline void
take(unsigned int i, struct fake_request *q)
{
	TURN_UNTIL(fake_server_take(&server[i], q));
}

static inline const struct tenant_counters *
counters(void)
{
	return tenant_counters(tenant);
}

/* A turn that has read all that was sent to the tenant before it. */
static inline void
settle(void)
{
	for (unsigned int i = 0; i < 4; i++)
		loop_turn(loop);
}

#endif
