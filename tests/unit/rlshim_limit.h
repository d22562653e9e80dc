/*
 * What the tests of the shim's limiter calls share, over rlshim_fixture.h:
 * requests, answers, and what they have to come to. Include after that. Tests
 * only.
 */
#ifndef TESTS_UNIT_RLSHIM_LIMIT_H
#define TESTS_UNIT_RLSHIM_LIMIT_H

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "tests/unit/rlshim_fixture.h"

#define YEAR_US UINT64_C(31536000000000)
#define LONG_US 20000000 /* a wait that only an interrupt can end */

static const struct rl_acquire mail = {.limiter = "mail"};
static const struct rl_acquire soon = {
    .limiter = "mail", .no_longer = 1, .max_wait_us = 30000};
static const struct rl_error_control smtp = {.control = "smtp"};

/* Set by the script, just before it answered. */
static _Atomic int64_t answered_us;

static inline int64_t
clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* For scripts: reads a request of this type and answers it so. */
static inline void
answer(struct fake *f, int conn, enum ipc_type type, enum ipc_reason reason,
    uint64_t wait_us)
{
	uint64_t id = fake_read(f, conn, type)->head.id;

	answered_us = clock_us();
	fake_delay(f, conn, id, reason, wait_us);
}

static inline void
grant(struct fake *f, int conn, uint64_t wait_us)
{
	answer(f, conn, IPC_ACQUIRE, IPC_REASON_OK, wait_us);
}

static inline void
acquire(const struct rl_acquire *what)
{
	memset(&decision, 0xFF, sizeof(decision));
	ck_assert_int_eq(rl_acquire(client, what, &decision), RL_OK);
}

static inline void
error_begin(void)
{
	memset(&decision, 0xFF, sizeof(decision));
	ck_assert_int_eq(rl_error_begin(client, &smtp, &decision), RL_OK);
}

/* Granted by the agent, with this wait, which is over now. */
static inline void
expect_granted(uint64_t wait_us)
{
	expect(RL_ALLOWED, 1, RL_SOURCE_LOCAL, RL_REASON_OK);
	ck_assert_int_eq(decision.by_agent, 1);
	ck_assert_int_eq(decision.has_server, 0);
	ck_assert_uint_eq(decision.wait_us, wait_us);
	ck_assert_uint_eq(decision.retry_after_ms, 0);
	ck_assert_uint_eq(decision.limit_len, 0);
	ck_assert_uint_ge(decision.elapsed_us, wait_us);
	ck_assert_int_ge(clock_us() - answered_us, (int64_t)wait_us);
}

#endif
