/*
 * The limiter calls of the shim while they wait, against a scripted agent:
 * that a wait is waited, what goes on meanwhile, what ends it, and a
 * connection that breaks. Lower bounds only: a slow machine fails nothing.
 */
#include "client-shim/rlshim.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "tests/unit/rlshim_limit.h"

static void
sleep_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

/* ---- the wait ---- */

static void
script_makes_wait(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, 20000);
	answer(f, conn, IPC_TRY_ACQUIRE, IPC_REASON_OK, 30000);
	fake_read(f, conn, IPC_ACQUIRE);
	sleep_ms(30);
	answered_us = clock_us();
	fake_delay(
	    f, conn, f->seen[f->seen_count - 1].head.id, IPC_REASON_OK, 20000);
}

START_TEST(waits_as_long_as_it_was_told)
{
	fake_start(&fake, script_makes_wait);
	acquire(&mail);
	expect_granted(20000);
	acquire(&soon);
	expect_granted(30000);
	/* From the answer on, not from the call on. */
	acquire(&mail);
	expect_granted(20000);
	ck_assert_uint_ge(decision.elapsed_us, 50000);
}
END_TEST

/* The timeout is for the answer. */
static void
script_waits_past_the_timeout(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, 0);
	grant(f, conn, 80000);
}

START_TEST(the_timeout_does_not_bound_the_wait)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 60};

	fake_start(&fake, script_waits_past_the_timeout);
	acquire(&mail);
	acquire(&hasty);
	/* Unless the machine is too slow to write it in time, or to answer. */
	if (decision.reason == RL_REASON_UNAVAILABLE)
		acquire(&mail);
	if (decision.reason != RL_REASON_TIMEOUT)
		expect_granted(80000);
}
END_TEST

static void
script_dies_meanwhile(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, 30000);
	fake_vanish(f);
	fake_close(f, conn);
}

START_TEST(the_agent_may_end_meanwhile)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 5};

	fake_start(&fake, script_dies_meanwhile);
	acquire(&mail);
	expect_granted(30000);
	acquire(&hasty);
	expect_failed(RL_REASON_UNAVAILABLE, 1);
}
END_TEST

/*
 * What was submitted goes on while a call waits: here it is sent again, on a
 * new connection, before the script ends the wait.
 */
static void
script_goes_on(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	grant(f, conn, LONG_US);
	fake_close(f, conn);
	serve(f, fake_greet(f));
	rl_interrupt(client);
}

START_TEST(submitted_checks_go_on_meanwhile)
{
	fake_start(&fake, script_goes_on);
	submit(3);
	acquire(&mail);
	expect_cancelled();
	ck_assert_uint_eq(collect(), 3);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
	is_resend(seen(4), seen(1), 0xA1);
}
END_TEST

/* ---- what ends it ---- */

static void
script_interrupts(struct fake *f)
{
	int conn = fake_greet(f);

	grant(f, conn, LONG_US);
	rl_interrupt(client);
	answer(f, conn, IPC_ERROR_BEGIN, IPC_REASON_OK, LONG_US);
	rl_interrupt(client);
	grant(f, conn, 0);
}

/* Cancelled, and yet spent. */
static void
expect_spent(const char *text)
{
	expect_cancelled();
	ck_assert_uint_eq(decision.wait_us, LONG_US);
	ck_assert_int_eq(decision.by_agent, 1);
	ck_assert_uint_gt(decision.elapsed_us, 0);
	ck_assert_str_eq(decision.text, text);
	ck_assert_str_eq(rl_last_text(client), text);
}

START_TEST(interrupted_while_it_waits)
{
	fake_start(&fake, script_interrupts);
	acquire(&mail);
	expect_spent("interrupted while it waited: the permits are spent");
	error_begin();
	expect_spent("interrupted while it waited: what was begun counts");
	/* Each interrupt ended one wait. */
	acquire(&mail);
	expect_granted(0);
}
END_TEST

static pthread_t waiting;
static _Atomic int signals;

static void
on_signal(int signo)
{
	(void)signo;
	signals++;
}

static void
on_signal_interrupt(int signo)
{
	(void)signo;
	rl_interrupt(client);
}

static void
handle(void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler};

	waiting = pthread_self();
	ck_assert_int_eq(sigaction(SIGUSR1, &sa, NULL), 0);
}

static void
script_signals(struct fake *f)
{
	int i, conn = fake_greet(f);

	grant(f, conn, 30000);
	for (i = 0; i < 3; i++) {
		pthread_kill(waiting, SIGUSR1);
		sleep_ms(2);
	}
}

START_TEST(a_signal_alone_ends_nothing)
{
	handle(on_signal);
	fake_start(&fake, script_signals);
	acquire(&mail);
	expect_granted(30000);
	fake_join(&fake);
	ck_assert_int_ge(signals, 1);
}
END_TEST

static void
script_signals_once(struct fake *f)
{
	grant(f, fake_greet(f), LONG_US);
	pthread_kill(waiting, SIGUSR1);
}

START_TEST(interrupted_by_a_signal_handler)
{
	handle(on_signal_interrupt);
	fake_start(&fake, script_signals_once);
	acquire(&mail);
	expect_spent("interrupted while it waited: the permits are spent");
}
END_TEST

/* Before the answer nobody knows; there is no CANCEL, and no wait for one. */
static void
script_interrupts_before(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t late = fake_read(f, conn, IPC_ACQUIRE)->head.id;

	rl_interrupt(client);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_delay(f, conn, late, IPC_REASON_OK, LONG_US);
	fake_delay(
	    f, conn, f->seen[f->seen_count - 1].head.id, IPC_REASON_OK, 0);
}

START_TEST(interrupted_before_the_answer)
{
	fake_start(&fake, script_interrupts_before);
	acquire(&mail);
	expect_cancelled();
	ck_assert_str_eq(
	    decision.text, "given up; the agent may have granted it");
	ck_assert_uint_eq(decision.wait_us, 0);
	ck_assert_int_eq(decision.by_agent, 0);
	acquire(&mail);
	expect_granted(0);
	fake_join(&fake);
	ck_assert_int_eq(fake.conn_count, 1);
}
END_TEST

START_TEST(interrupted_before_it_was_sent)
{
	rl_interrupt(client);
	acquire(&mail);
	expect_cancelled();
	ck_assert_str_eq(decision.text, "interrupted");
	rl_interrupt(client);
	ck_assert_int_eq(rl_error_success(client, &smtp), RL_EINTERRUPTED);
	rl_interrupt(client);
	ck_assert_int_eq(rl_set_rate(client, "mail", 10, 0), RL_EINTERRUPTED);
}
END_TEST

/* ---- a connection that breaks ---- */

/* Reads it, and dies; the next one answers. */
static void
ask_twice(struct fake *f, enum ipc_type type, uint64_t wait_us)
{
	int conn = fake_greet(f);

	fake_read(f, conn, type);
	fake_close(f, conn);
	conn = fake_greet(f);
	answer(f, conn, type, IPC_REASON_OK, wait_us);
	fake_close(f, conn);
}

static void
script_breaks(struct fake *f)
{
	int conn;

	ask_twice(f, IPC_ACQUIRE, 20000);
	ask_twice(f, IPC_TRY_ACQUIRE, 0);
	ask_twice(f, IPC_ERROR_BEGIN, 20000);
	conn = fake_greet(f);
	fake_read(f, conn, IPC_SET_RATE);
	fake_close(f, conn);
	conn = fake_greet(f);
	fake_done(f, conn, fake_read(f, conn, IPC_SET_RATE)->head.id,
	    IPC_REASON_OK, "");
	/* Not asked again: what comes next is something else. */
	fake_read(f, conn, IPC_ERROR_SUCCESS);
	fake_close(f, conn);
	conn = fake_greet(f);
	grant(f, conn, 0);
	fake_read(f, conn, IPC_ACQUIRE);
	fake_vanish(f);
	fake_close(f, conn);
}

static void
same_request(size_t a, size_t b)
{
	ck_assert_uint_eq(fake.seen[a].payload_len, fake.seen[b].payload_len);
	ck_assert_mem_eq(fake.seen[a].payload, fake.seen[b].payload,
	    fake.seen[a].payload_len);
}

START_TEST(asked_again_when_the_connection_breaks)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 500};

	fake_start(&fake, script_breaks);
	acquire(&mail);
	expect_granted(20000);
	acquire(&soon);
	expect_granted(0);
	error_begin();
	expect_granted(20000);
	ck_assert_int_eq(rl_set_rate(client, "mail", 2.5, 0), RL_OK);
	ck_assert_int_eq(rl_error_success(client, &smtp), RL_EUNAVAILABLE);
	acquire(&mail);
	expect_granted(0);
	/* Until its deadline. */
	acquire(&hasty);
	expect_failed(RL_REASON_INTERRUPTED, 1);
	ck_assert_uint_ge(decision.elapsed_us, 500000);
	fake_join(&fake);
	same_request(1, 3);
	same_request(5, 7);
	same_request(9, 11);
	same_request(13, 15);
}
END_TEST

static Suite *
limit_wait_suite(void)
{
	Suite *s = suite_create("rlshim_limit_wait");
	TCase *tc = tcase_create("wait");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, waits_as_long_as_it_was_told);
	tcase_add_test(tc, the_timeout_does_not_bound_the_wait);
	tcase_add_test(tc, the_agent_may_end_meanwhile);
	tcase_add_test(tc, submitted_checks_go_on_meanwhile);
	tcase_add_test(tc, interrupted_while_it_waits);
	tcase_add_test(tc, a_signal_alone_ends_nothing);
	tcase_add_test(tc, interrupted_by_a_signal_handler);
	tcase_add_test(tc, interrupted_before_the_answer);
	tcase_add_test(tc, interrupted_before_it_was_sent);
	tcase_add_test(tc, asked_again_when_the_connection_breaks);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(limit_wait_suite());
}
