/*
 * What the tests of the shim against a scripted agent share: one agent, one
 * client of it with a timeout that is never reached, one decision. Include
 * after the shim. Tests only.
 */
#ifndef TESTS_UNIT_RLSHIM_FIXTURE_H
#define TESTS_UNIT_RLSHIM_FIXTURE_H

#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "client-shim/rlshim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/harness.h"

static struct fake fake;
static struct rl_client *client;
static struct rl_decision decision;
static const struct rl_check simple = {.rule = "checkout"};

static inline void
open_client(enum rl_failure on_failure, uint32_t timeout_ms)
{
	struct rl_options options = {.socket = fake.path,
	    .name = "check",
	    .timeout_ms = timeout_ms,
	    .on_failure = on_failure};

	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
}

static inline void
begin(void)
{
	fake_init(&fake);
	open_client(RL_OPEN, 20000);
}

static inline void
end(void)
{
	rl_close(client);
	fake_stop(&fake);
}

static inline void
expect(enum rl_outcome outcome, int permit, enum rl_source source,
    enum rl_reason reason)
{
	ck_assert_str_eq(
	    rl_outcome_name(decision.outcome), rl_outcome_name(outcome));
	ck_assert_str_eq(
	    rl_reason_name(decision.reason), rl_reason_name(reason));
	ck_assert_str_eq(
	    rl_source_name(decision.source), rl_source_name(source));
	ck_assert_int_eq(decision.permit, permit);
}

static inline void
check_simple(void)
{
	ck_assert_int_eq(rl_check(client, &simple, &decision, NULL), RL_OK);
}

static inline void
check_allowed(void)
{
	check_simple();
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
}

/* A decision that the shim made itself, with its words. */
static inline void
expect_failed(enum rl_reason reason, int permit)
{
	expect(RL_FAILED, permit, RL_SOURCE_POLICY, reason);
	ck_assert_uint_gt(strlen(decision.text), 0);
	ck_assert_str_eq(rl_last_text(client), decision.text);
}

static inline void
expect_cancelled(void)
{
	expect(RL_CANCELLED, 0, RL_SOURCE_POLICY, RL_REASON_CANCELLED);
}

/* ---- the asynchronous form ---- */

static struct rl_completion completion;
static char marks[64]; /* what the user pointers point to */

/* Submits a check with a key of one byte, which tells it from others. */
static inline uint64_t
submit(unsigned char key)
{
	char rule[] = "checkout";
	char bytes[] = {(char)key};
	struct rl_check check = {.rule = rule, .key = bytes, .key_len = 1};
	uint64_t ticket = 0;

	ck_assert_int_eq(
	    rl_submit(client, &check, NULL, &marks[key], &ticket), RL_OK);
	ck_assert_uint_ne(ticket, 0);
	memset(rule, 'x', sizeof(rule));
	memset(bytes, 'x', sizeof(bytes));
	return ticket;
}

/* Is it readable now, or in so many milliseconds? */
static inline bool
readable(int fd, int ms)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

/* Waits for one decision; which one. */
static inline unsigned
collect(void)
{
	int fd = rl_fd(client);

	ck_assert_int_ge(fd, 0);
	while (rl_collect(client, &completion) == 0)
		ck_assert_msg(readable(fd, 20000), "nothing to collect");
	decision = completion.decision;
	return (unsigned)((char *)completion.user - marks);
}

/* Goes on until the script has come to its fake_reached(). */
static inline void
collect_nothing_until_reached(void)
{
	struct pollfd p = {rl_fd(client), POLLIN, 0};

	while (sem_trywait(&fake.step) != 0) {
		ck_assert_int_eq(rl_collect(client, &completion), 0);
		poll(&p, 1, 1);
	}
}

/* The key of the check that the agent saw as its nth message. */
static inline unsigned
seen_key(size_t n)
{
	const struct fake_message *m = &fake.seen[n];

	ck_assert_uint_lt(n, fake.seen_count);
	ck_assert_uint_eq(m->head.type, IPC_CHECK);
	return m->payload[m->payload_len - 1];
}

/* ---- scripts, and what they saw ---- */

/* For scripts: reads a check and allows it. */
static inline void
serve(struct fake *f, int conn)
{
	fake_allow(f, conn, fake_read(f, conn, IPC_CHECK)->head.id);
}

/* The check that the agent saw as its nth message. */
static inline const struct ipc_check_base *
seen(size_t n)
{
	ck_assert_uint_lt(n, fake.seen_count);
	ck_assert_uint_eq(fake.seen[n].head.type, IPC_CHECK);
	return &fake.seen[n].base;
}

static inline void
is_first_send(const struct ipc_check_base *base)
{
	static const uint8_t zeros[IPC_HASH_LEN];

	ck_assert_mem_eq(base->config_hash, zeros, IPC_HASH_LEN);
	ck_assert_uint_eq(base->age_us, 0);
}

/* base repeats first, which was written to an agent of that hash. */
static inline void
is_resend(const struct ipc_check_base *base, const struct ipc_check_base *first,
    uint8_t hash)
{
	uint8_t hashes[IPC_HASH_LEN];

	memset(hashes, hash, sizeof(hashes));
	ck_assert_mem_eq(base->operation_id, first->operation_id, IPC_ID_LEN);
	ck_assert_mem_eq(base->config_hash, hashes, IPC_HASH_LEN);
	ck_assert_uint_gt(base->age_us, 0);
	ck_assert_uint_eq(base->deadline_ms, first->deadline_ms);
}

#endif
