/*
 * The asynchronous forms of the limiter calls of the shim against a scripted
 * agent: nobody waits there, so the waits are long. Cancelling, limits,
 * timeouts, connections that break, fork. rlshim.c is included to reach what
 * is kept.
 */
#include "client-shim/rlshim.c"

#include <sys/wait.h>

#include "tests/unit/rlshim_limit.h"

/* Nothing is left of what was submitted. */
static void
is_empty(void)
{
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert_uint_eq(client->live, 0);
	ck_assert_uint_eq(client->checks, 0);
	ck_assert_uint_eq(client->reports, 0);
	ck_assert_ptr_null(client->queue.first);
	ck_assert_ptr_null(client->done.first);
	ck_assert_uint_eq(client->spares, client->row_count);
}

static uint64_t
submit_acquire(const struct rl_acquire *what, unsigned key)
{
	uint64_t ticket = 0;

	ck_assert_int_eq(
	    rl_submit_acquire(client, what, &marks[key], &ticket), RL_OK);
	ck_assert_uint_ne(ticket, 0);
	return ticket;
}

static uint64_t
submit_begin(unsigned key)
{
	uint64_t ticket = 0;

	ck_assert_int_eq(
	    rl_submit_error_begin(client, &smtp, &marks[key], &ticket), RL_OK);
	ck_assert_uint_ne(ticket, 0);
	return ticket;
}

static uint64_t
id_of(const struct fake *f, size_t n)
{
	return f->seen[n].head.id;
}

/* Collects one, which is granted with this wait, by now not waited. */
static void
collect_granted(unsigned key, uint64_t wait_us)
{
	ck_assert_uint_eq(collect(), key);
	expect(RL_ALLOWED, 1, RL_SOURCE_LOCAL, RL_REASON_OK);
	ck_assert_int_eq(decision.by_agent, 1);
	ck_assert_uint_eq(decision.wait_us, wait_us);
}

/* ---- answers ---- */

static void
script_all_kinds(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_ACQUIRE);
	fake_read(f, conn, IPC_TRY_ACQUIRE);
	fake_read(f, conn, IPC_CHECK);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_delay(f, conn, id_of(f, 4), IPC_REASON_OK, 7);
	fake_allow(f, conn, id_of(f, 3));
	fake_delay(f, conn, id_of(f, 2), IPC_REASON_RESOURCE, 30001);
	fake_delay(f, conn, id_of(f, 5), IPC_REASON_OVERLOADED, 0);
	fake_delay(f, conn, id_of(f, 1), IPC_REASON_OK, YEAR_US);
}

START_TEST(collected_at_once)
{
	char limiter[] = "mail", key[] = "k";
	struct rl_acquire first = {
	    .limiter = limiter, .key = key, .key_len = 1, .permits = 3};
	struct rl_acquire second = {
	    .limiter = limiter, .no_longer = 1, .max_wait_us = 30000};
	uint64_t ticket;

	fake_start(&fake, script_all_kinds);
	ticket = submit_acquire(&first, 0);
	submit_acquire(&second, 1);
	/* It has copies. */
	memset(limiter, 'x', sizeof(limiter));
	memset(key, 'x', sizeof(key));
	submit(2);
	submit_begin(3);
	submit_acquire(&mail, 4);
	collect_granted(3, 7);
	ck_assert_uint_eq(collect(), 2);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	ck_assert_uint_eq(decision.wait_us, 0);
	ck_assert_uint_eq(collect(), 1);
	expect(RL_DENIED, 0, RL_SOURCE_LOCAL, RL_REASON_RESOURCE);
	ck_assert_uint_eq(decision.retry_after_ms, 31);
	ck_assert_str_eq(decision.limit, "mail");
	ck_assert_uint_eq(collect(), 4);
	expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_OVERLOADED);
	ck_assert_uint_eq(decision.wait_us, 0);
	collect_granted(0, YEAR_US);
	ck_assert_uint_eq(completion.ticket, ticket);
	is_empty();
	/* rl_last_text() is for the calls that wait. */
	ck_assert_str_eq(rl_last_text(client), "");
}
END_TEST

/* ---- cancelling ---- */

START_TEST(cancelled_before_it_was_sent)
{
	uint64_t ticket = submit_acquire(&mail, 0);

	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK);
	ck_assert_uint_eq(collect(), 0);
	ck_assert_uint_eq(completion.ticket, ticket);
	expect_cancelled();
	ck_assert_str_eq(decision.text, "cancelled");
	ck_assert_int_eq(rl_cancel(client, ticket), RL_EINVAL);
	is_empty();
}
END_TEST

/* No CANCEL: an agent that answers at once has nothing to give up. */
static void
script_cancelled(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_ACQUIRE);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_reached(f);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_delay(f, conn, id_of(f, 1), IPC_REASON_OK, 5);
	fake_delay(f, conn, id_of(f, 2), IPC_REASON_OK, 5);
	fake_delay(f, conn, id_of(f, 3), IPC_REASON_OK, 6);
}

START_TEST(cancelled_when_it_was_sent)
{
	uint64_t first, second, third;
	struct op *op;

	fake_start(&fake, script_cancelled);
	first = submit_acquire(&mail, 0);
	second = submit_begin(1);
	collect_nothing_until_reached();
	/* There is no last word to wait for, as for a check. */
	op = client->conns[0]->pending.first;
	ck_assert_int_eq(op_until(op), op->deadline);
	ck_assert_int_eq(rl_cancel(client, first), RL_OK);
	/* At once. */
	ck_assert_int_eq(rl_collect(client, &completion), 1);
	decision = completion.decision;
	expect_cancelled();
	ck_assert_str_eq(
	    decision.text, "given up; the agent may have granted it");
	ck_assert_uint_eq(decision.wait_us, 0);
	ck_assert_int_eq(rl_cancel(client, second), RL_OK);
	ck_assert_uint_eq(collect(), 1);
	expect_cancelled();
	is_empty();
	third = submit_acquire(&mail, 2);
	collect_granted(2, 6);
	/* Too late: it is answered. */
	ck_assert_int_eq(rl_cancel(client, third), RL_EINVAL);
	is_empty();
	fake_join(&fake);
	ck_assert_int_eq(fake.conn_count, 1);
}
END_TEST

/* ---- limits ---- */

START_TEST(max_inflight)
{
	struct rl_options options = {
	    .socket = fake.path, .timeout_ms = 20000, .max_inflight = 3};

	rl_close(client);
	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
	submit(0);
	submit_acquire(&mail, 1);
	submit_begin(2);
	ck_assert_int_eq(
	    rl_submit_acquire(client, &mail, NULL, NULL), RL_ENOMEM);
	ck_assert_str_eq(
	    rl_last_text(client), "max_inflight: 3 requests are in flight");
	ck_assert_int_eq(
	    rl_submit_error_begin(client, &smtp, NULL, NULL), RL_ENOMEM);
	ck_assert_int_eq(
	    rl_submit(client, &simple, NULL, NULL, NULL), RL_ENOMEM);
	/* Successes are counted with the reports. */
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_ENOMEM);
	ck_assert_str_eq(
	    rl_last_text(client), "max_inflight: 3 reports are in flight");
}
END_TEST

static void
script_is_silent(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, 4);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_delay(f, conn, id_of(f, 2), IPC_REASON_OK, 5);
	fake_delay(f, conn, id_of(f, 3), IPC_REASON_OK, 6);
}

START_TEST(no_answer)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 100};

	fake_start(&fake, script_is_silent);
	submit_acquire(&mail, 0);
	collect_granted(0, 4);
	submit_acquire(&hasty, 0);
	ck_assert_uint_eq(collect(), 0);
	ck_assert_uint_ge(decision.elapsed_us, 100000);
	/* Unless the machine is too slow to have written it in time. */
	if (decision.reason == RL_REASON_UNAVAILABLE)
		submit_acquire(&mail, 0);
	else
		expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_TIMEOUT);
	submit_acquire(&mail, 1);
	while (collect() != 1)
		continue;
	expect(RL_ALLOWED, 1, RL_SOURCE_LOCAL, RL_REASON_OK);
	ck_assert_uint_eq(decision.wait_us, 6);
	is_empty();
}
END_TEST

/* ---- successes ---- */

static void
script_successes(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_ERROR_SUCCESS);
	fake_read(f, conn, IPC_ERROR_SUCCESS);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_done(f, conn, id_of(f, 1), IPC_REASON_OK, "");
	fake_done(f, conn, id_of(f, 2), IPC_REASON_UNKNOWN_RULE, "none");
	fake_delay(f, conn, id_of(f, 3), IPC_REASON_OK, 100);
}

START_TEST(successes_are_not_collected)
{
	fake_start(&fake, script_successes);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	submit_begin(0);
	collect_granted(0, 100);
	is_empty();
	ck_assert_str_eq(rl_last_text(client), "");
}
END_TEST

/* ---- a connection that breaks ---- */

/* seen: HELLO, A B S, HELLO, A B */
static void
script_breaks(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_ACQUIRE);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_read(f, conn, IPC_ERROR_SUCCESS);
	fake_close(f, conn);
	conn = fake_greet(f);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_delay(f, conn, id_of(f, 5), IPC_REASON_OK, 5);
	fake_delay(f, conn, id_of(f, 6), IPC_REASON_OK, 6);
	/* The success was not asked again: what follows is something else. */
	fake_read(f, conn, IPC_ACQUIRE);
	fake_delay(f, conn, id_of(f, 7), IPC_REASON_OK, 7);
}

START_TEST(asked_again_in_their_order)
{
	fake_start(&fake, script_breaks);
	submit_acquire(&mail, 0);
	submit_begin(1);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	collect_granted(0, 5);
	collect_granted(1, 6);
	ck_assert_uint_eq(client->reports, 0);
	submit_acquire(&mail, 2);
	collect_granted(2, 7);
	is_empty();
	fake_join(&fake);
	ck_assert_uint_gt(id_of(&fake, 5), id_of(&fake, 3));
}
END_TEST

/* What GO_AWAY says was never begun is begun elsewhere, the success, too. */
static void
script_goes_away(struct fake *f)
{
	int conn, old = fake_greet(f);

	fake_read(f, old, IPC_ACQUIRE);
	fake_read(f, old, IPC_ERROR_BEGIN);
	fake_read(f, old, IPC_ERROR_SUCCESS);
	fake_go_away(f, old, id_of(f, 1));
	conn = fake_greet(f);
	fake_read(f, conn, IPC_ERROR_BEGIN);
	fake_read(f, conn, IPC_ERROR_SUCCESS);
	fake_done(f, conn, id_of(f, 6), IPC_REASON_OK, "");
	fake_delay(f, conn, id_of(f, 5), IPC_REASON_OK, 6);
	fake_hold(f);
	fake_delay(f, old, id_of(f, 1), IPC_REASON_DRAINING, 0);
	ck_assert(fake_at_end(f, old));
}

START_TEST(an_agent_that_goes_away)
{
	fake_start(&fake, script_goes_away);
	submit_acquire(&mail, 0);
	submit_begin(1);
	ck_assert_int_eq(rl_submit_error_success(client, &smtp), RL_OK);
	collect_granted(1, 6);
	fake_let(&fake);
	ck_assert_uint_eq(collect(), 0);
	expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_DRAINING);
	is_empty();
}
END_TEST

/* ---- fork ---- */

static void
script_family(struct fake *f)
{
	int child, parent = fake_greet(f);

	fake_read(f, parent, IPC_ACQUIRE);
	fake_reached(f);
	child = fake_greet(f);
	grant(f, child, 20000);
	ck_assert(fake_at_end(f, child));
	fake_delay(f, parent, id_of(f, 1), IPC_REASON_OK, 5);
}

START_TEST(a_child_has_none_of_them)
{
	int status = -1;
	pid_t pid;

	fake_start(&fake, script_family);
	submit_acquire(&mail, 0);
	collect_nothing_until_reached();
	pid = fork();
	if (pid == 0) {
		if (rl_collect(client, &completion) != 0)
			_exit(1);
		rl_acquire(client, &mail, &decision);
		rl_close(client);
		_exit(decision.outcome == RL_ALLOWED &&
			      decision.elapsed_us >= 20000
			  ? 0
			  : 2);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	    "the child ended with %#x", (unsigned)status);
	collect_granted(0, 5);
	is_empty();
}
END_TEST

static Suite *
limit_async_suite(void)
{
	Suite *s = suite_create("rlshim_limit_async");
	TCase *tc = tcase_create("async");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, collected_at_once);
	tcase_add_test(tc, cancelled_before_it_was_sent);
	tcase_add_test(tc, cancelled_when_it_was_sent);
	tcase_add_test(tc, max_inflight);
	tcase_add_test(tc, no_answer);
	tcase_add_test(tc, successes_are_not_collected);
	tcase_add_test(tc, asked_again_in_their_order);
	tcase_add_test(tc, an_agent_that_goes_away);
	tcase_add_test(tc, a_child_has_none_of_them);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(limit_async_suite());
}
