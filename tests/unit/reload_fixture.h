/*
 * A whole agent with a real file, which is loaded again: what the programs that
 * test reloads share.
 */
#ifndef TESTS_UNIT_RELOAD_FIXTURE_H
#define TESTS_UNIT_RELOAD_FIXTURE_H

#include "daemon/reload.h"
#include "tests/unit/agent_fixture.h"

static struct ipc_peer a, control;
static struct reload *reload;
static char file[128];
/* Of a second listener. */
static char extra_path[96];

static inline void
write_text(const char *text)
{
	char path[sizeof(file) + 4];
	FILE *f;

	snprintf(path, sizeof(path), "%s.new", file);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(rename(path, file), 0);
}

static inline void
write_file(const struct shape *s)
{
	write_text(config_text(s));
}

static inline void
start(const struct shape *s)
{
	char err[CONFIG_ERR_MAX] = "";
	struct config *config;

	log_set_level(LOG_LEVEL_ERROR);
	make_key();
	make_folder();
	snprintf(file, sizeof(file), "%s/rl-agent.json", folder);
	snprintf(extra_path, sizeof(extra_path), "%s/b.sock", folder);
	write_file(s);
	config = config_load(file, err);
	ck_assert_msg(config != NULL, "%s", err);
	agent = agent_new(config, err);
	ck_assert_msg(agent != NULL, "%s", err);
	agent_open(agent);
	reload = reload_new(agent);
	ck_assert_ptr_nonnull(reload);
	TURN_UNTIL(dispatch_is_ready(agent->dispatch));
	join(&control, control_path);
	join(&a, main_path);
}

static inline void
stop(void)
{
	peer_close(&a);
	peer_close(&control);
	reload_free(reload);
	stop_agent();
}

/* With an answer; the text is in reply.text. */
static inline void
ask_reload(uint64_t id, enum ipc_reason reason)
{
	peer_empty(&control, IPC_RELOAD, id);
	for (;;) {
		next(&control);
		if (reply.type != IPC_WELCOME)
			break;
	}
	ck_assert_uint_eq(reply.type, IPC_DONE);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_msg(reply.number == reason, "%s", reply.text);
}

static inline void
load(const struct shape *s, uint64_t id)
{
	write_file(s);
	ask_reload(id, IPC_REASON_OK);
}

static inline void
refuse(const struct shape *s, uint64_t id, const char *text)
{
	write_file(s);
	ask_reload(id, IPC_REASON_VALIDATION);
	ck_assert_msg(strstr(reply.text, text) != NULL, "%s", reply.text);
	ck_assert_msg(
	    strstr(agent->loading.error, text) != NULL, "%s", reply.text);
}

/* The WELCOME that comes of itself. */
static inline void
expect_welcome(struct ipc_peer *p, uint64_t generation)
{
	uint64_t got;

	next(p);
	ck_assert_uint_eq(reply.type, IPC_WELCOME);
	ck_assert_uint_eq(reply.id, 0);
	memcpy(&got, reply.payload + 32, sizeof(got));
	ck_assert_uint_eq(got, generation);
	ck_assert_mem_eq(
	    reply.payload + 16, agent->setup->config->hash, IPC_HASH_LEN);
}

static inline void
expect_go_away(struct ipc_peer *p, uint64_t last)
{
	next(p);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	ck_assert_uint_eq(reply.number, last);
}

static inline void
expect_closed(struct ipc_peer *p)
{
	TURN_UNTIL((peer_take(p, &reply), p->eof));
	ck_assert_uint_eq(p->len, 0);
}

static inline void
deny(struct fake_server *s)
{
	struct pdu_rate rate;

	fake_server_grant(&q, &rate);
	rate.resources[0].limit = 100;
	rate.resources[0].tokens = 1;
	fake_server_answer(s, &q, &rate);
}

#define ONE_RULE(rest)                                   \
	"\"plain\":{\"tenant\":\"slow\",\"resources\":[" \
	"{\"bucket\":\"second\",\"window_ms\":500,\"limit\":7}]" rest "}"

static const struct shape usual, other = {.rules = ONE_RULE("")};

static struct peer_base base = {.tokens = 1};

static inline void
ask(struct ipc_peer *p, uint64_t id, const char *rule)
{
	base.number++;
	peer_check(p, id, &base, rule, NULL);
}

#endif
