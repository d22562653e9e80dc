/*
 * A whole agent in this process, with its sockets in a folder of its own and
 * servers that are the test's. For the programs that test dispatch.
 */
#ifndef TESTS_UNIT_AGENT_FIXTURE_H
#define TESTS_UNIT_AGENT_FIXTURE_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/agent.h"
#include "daemon/log.h"
#include "tests/unit/fake_server.h"
#include "tests/unit/harness.h"
#include "tests/unit/ipc_peer.h"

#define LIMIT_US (20 * INT64_C(1000000))

/* Tenant "slow" is patient and has server 101, "quick" gives up at 9 ms and
 * has server 201, which never answers by itself. */
#define TENANTS                                                         \
	"\"slow\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"                 \
	"\"policy\":{\"unit_ms\":10000,\"completion_delivery\":false}," \
	"\"servers\":[{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"}]}," \
	"\"quick\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"                \
	"\"policy\":{\"unit_ms\":3},\"on_failure\":\"closed\","         \
	"\"servers\":[{\"id\":\"201\",\"address\":\"127.0.0.1:%u\"}]}"

#define RULES                                                               \
	"\"checkout\":{\"tenant\":\"slow\",\"label\":\"checkout\","         \
	"\"resources\":[{\"bucket\":\"checkout:{key}\",\"window_ms\":1000," \
	"\"limit\":100,\"tokens\":2}],"                                     \
	"\"guards\":[{\"tracker\":\"inventory\",\"below_ms\":100}]},"       \
	"\"plain\":{\"tenant\":\"slow\",\"on_failure\":\"closed\","         \
	"\"resources\":[{\"bucket\":\"plain\"}]},"                          \
	"\"quick\":{\"tenant\":\"quick\","                                  \
	"\"resources\":[{\"bucket\":\"quick\"}]},"                          \
	"\"shut\":{\"tenant\":\"quick\",\"on_failure\":\"closed\","         \
	"\"resources\":[{\"bucket\":\"shut\"}]},"                           \
	"\"empty\":{\"tenant\":\"slow\",\"on_failure\":\"closed\"}"

static struct agent *agent;
static struct fake_server server[2];
static struct fake_request q;
static char folder[64], main_path[96], control_path[96];
static struct reply reply;
static struct peer_decision decision;

#define TURN_UNTIL(condition)                                          \
	do {                                                           \
		int64_t limit_ = loop_now() + LIMIT_US;                \
		while (!(condition)) {                                 \
			if (loop_now() > limit_)                       \
				ck_abort_msg("never: %s", #condition); \
			loop_turn(agent->loop);                        \
			sched_yield();                                 \
		}                                                      \
	} while (0)

static inline void
make_key(void)
{
	char text[CREDENTIAL_TEXT_MAX];
	struct credential cred = {
	    .auth = AUTH_COOKIE,
	    .format = KEY_UNVERSIONED,
	    .key_id = 77,
	    .quotas = {1024, 1024, 1024, 64, 0, UINT32_MAX},
	};

	memset(cred.secret, 0x5A, sizeof(cred.secret));
	ck_assert_int_eq(credential_format(&cred, text, sizeof(text)), 0);
	setenv("RLA_TEST_KEY", text, 1);
	fake_server_open(&server[0], 101, &cred, PROFILE_V1);
	fake_server_open(&server[1], 201, &cred, PROFILE_V1);
}

static inline void
make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/rla-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(main_path, sizeof(main_path), "%s/a.sock", folder);
	snprintf(control_path, sizeof(control_path), "%s/control.sock", folder);
}

/* All NULL: the usual. tenants: JSON instead of those above. listener: more
 * of the listener's keys. listeners: more of them; %s is the folder. */
struct shape {
	const char *tenants;
	const char *rules;
	const char *listener;
	const char *listeners;
	const char *limits;
	const char *sections; /* after these, each with a comma before it */
};

/* The text of a configuration; the next call overwrites it. */
static inline const char *
config_text(const struct shape *s)
{
	static char text[64 * 1024], tenants[16 * 1024], more[4096];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(tenants, sizeof(tenants),
	    s->tenants != NULL ? s->tenants : TENANTS, server[0].port,
	    server[1].port);
	snprintf(more, sizeof(more), s->listeners != NULL ? s->listeners : "",
	    folder, folder, folder, folder);
#pragma GCC diagnostic pop
	snprintf(text, sizeof(text),
	    "{\"tenants\":{%s},"
	    "\"trackers\":{\"inventory\":{},\"per-{listener}\":{},"
	    "\"of-{key}\":{}},"
	    "\"rules\":{%s},"
	    "\"listeners\":{\"main\":{\"path\":\"%s\"%s}%s},"
	    "\"limits\":{%s}%s}",
	    tenants, s->rules != NULL ? s->rules : RULES, main_path,
	    s->listener != NULL ? s->listener : "", more,
	    s->limits != NULL ? s->limits : "",
	    s->sections != NULL ? s->sections : "");
	return text;
}

static inline struct config *
make_config(const struct shape *s)
{
	const char *text = config_text(s);
	char err[CONFIG_ERR_MAX] = "";
	struct config *config = config_parse(text, strlen(text), "t.json", err);

	ck_assert_msg(config != NULL, "%s", err);
	return config;
}

/* Without a turn of its loop yet. */
static inline void
new_agent(const struct shape *s)
{
	char err[AGENT_ERR_MAX] = "";

	log_set_level(LOG_LEVEL_ERROR);
	make_key();
	make_folder();
	agent = agent_new(make_config(s), err);
	ck_assert_msg(agent != NULL, "%s", err);
	agent_open(agent); /* does not wait for the first answer of DNS */
}

static inline void
start_agent(const struct shape *s)
{
	new_agent(s);
	TURN_UNTIL(dispatch_is_ready(agent->dispatch));
}

static inline void
stop_agent(void)
{
	char path[300];

	agent_free(agent);
	fake_server_close(&server[0]);
	fake_server_close(&server[1]);
	/* The sockets are gone, their locks stay. */
	ck_assert_int_ne(access(main_path, F_OK), 0);
	snprintf(path, sizeof(path), "rm -rf %s", folder);
	ck_assert_int_eq(system(path), 0);
}

/* The next frame, which must come. */
static inline void
next(struct ipc_peer *p)
{
	TURN_UNTIL(peer_take(p, &reply));
}

static inline void
join(struct ipc_peer *p, const char *path)
{
	peer_open(p, path);
	peer_hello(p);
	next(p);
	ck_assert_uint_eq(reply.type, IPC_WELCOME);
}

static inline void
expect_done(struct ipc_peer *p, uint64_t id, enum ipc_reason reason)
{
	next(p);
	ck_assert_uint_eq(reply.type, IPC_DONE);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_uint_eq(reply.number, reason);
}

/* The agent says why, and closes. */
static inline void
expect_error(struct ipc_peer *p, uint64_t id, enum ipc_error_code code)
{
	next(p);
	ck_assert_uint_eq(reply.type, IPC_ERROR);
	ck_assert_uint_eq(reply.number, code);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_uint_ne(reply.text[0], '\0');
	TURN_UNTIL((peer_take(p, &reply), p->eof));
	ck_assert_uint_eq(p->len, 0);
}

static inline void
expect_decision(struct ipc_peer *p, uint64_t id, enum ipc_outcome outcome,
    bool permit, enum ipc_source source, enum ipc_reason reason)
{
	next(p);
	ck_assert_uint_eq(reply.id, id);
	peer_decision(&reply, &decision);
	ck_assert_msg(
	    decision.outcome == outcome && decision.permit == permit &&
		decision.source == source && decision.reason == reason,
	    "%s, permit %d, %s, %s: %s",
	    ipc_outcome_name((enum ipc_outcome)decision.outcome),
	    decision.permit, ipc_source_name((enum ipc_source)decision.source),
	    ipc_reason_name((enum ipc_reason)decision.reason), decision.text);
}

static inline void
expect_failed(
    struct ipc_peer *p, uint64_t id, bool permit, enum ipc_reason reason)
{
	expect_decision(p, id, IPC_FAILED, permit, IPC_SOURCE_POLICY, reason);
	ck_assert_uint_ne(decision.text[0], '\0');
}

/* A frame there and back: the connection works. */
static inline void
expect_alive(struct ipc_peer *p, uint64_t id)
{
	writer_bytes(peer_begin(p, IPC_PING, id), "echo", 4);
	peer_end(p);
	next(p);
	ck_assert_uint_eq(reply.type, IPC_PONG);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_uint_eq(reply.len, 4);
	ck_assert_mem_eq(reply.payload, "echo", 4);
}

static inline const struct agent_counters *
counters(void)
{
	return dispatch_counters(agent->dispatch);
}

/* Turns in which everything that is under way is done. */
static inline void
settle(void)
{
	for (unsigned int i = 0; i < 6; i++)
		loop_turn(agent->loop);
}

static inline void
take(unsigned int i)
{
	TURN_UNTIL(fake_server_take(&server[i], &q));
}

static const struct peer_base once = {.number = 1, .tokens = 1};

#endif
