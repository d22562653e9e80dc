/*
 * The shim's connections against a scripted agent: restarts and resends,
 * GO_AWAY, rl_interrupt(). rlshim.c is included to reach the address.
 */
#include "client-shim/rlshim.c"

#include <signal.h>

#include "tests/unit/rlshim_fixture.h"

/* ---- an agent that starts, and one that restarts ---- */

static void
script_starts_late(struct fake *f)
{
	struct timespec delay = {.tv_nsec = 50000000};

	nanosleep(&delay, NULL); /* the shim has found nothing meanwhile */
	fake_listen(f);
	serve(f, fake_greet(f));
}

START_TEST(the_agent_appears)
{
	fake_start_later(&fake, script_starts_late);
	check_allowed();
	ck_assert_uint_ge(decision.elapsed_us, 45000);
}
END_TEST

/* A file without a listener, as a killed agent leaves behind. */
static void
script_replaces_a_stale_socket(struct fake *f)
{
	struct timespec delay = {.tv_nsec = 20000000};

	nanosleep(&delay, NULL);
	unlink(f->path);
	fake_listen(f);
	serve(f, fake_greet(f));
}

START_TEST(a_stale_socket)
{
	fake_listen(&fake);
	close(fake.listener);
	fake_start_later(&fake, script_replaces_a_stale_socket);
	check_allowed();
}
END_TEST

/* A full backlog answers EAGAIN, until the agent takes connections. */
static void
script_drains_its_backlog(struct fake *f)
{
	struct timespec delay = {.tv_nsec = 20000000};
	int fd;

	nanosleep(&delay, NULL);
	/* The one that fills it, which closed meanwhile or does not talk. */
	fd = accept(f->listener, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	close(fd);
	serve(f, fake_greet(f));
}

START_TEST(a_full_backlog)
{
	int fd;

	fake_listen(&fake);
	ck_assert_int_eq(listen(fake.listener, 0), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&client->address,
			     sizeof(client->address)),
	    0);
	fake_start_later(&fake, script_drains_its_backlog);
	check_allowed();
	close(fd);
}
END_TEST

static void
script_restarts_between(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_close(f, conn);
	fake_reached(f);
	serve(f, fake_greet(f));
}

/* Also: writing to a dead connection raises no SIGPIPE. */
START_TEST(a_restart_between_two_checks)
{
	fake_start(&fake, script_restarts_between);
	check_allowed();
	fake_await(&fake);
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(1));
	is_first_send(seen(3));
	ck_assert_mem_ne(
	    seen(1)->operation_id, seen(3)->operation_id, IPC_ID_LEN);
}
END_TEST

/* Three agents in turn, each with a configuration of its own. */
static void
script_dies_twice(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_close(f, conn);
	f->hash = 0xB2;
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_close(f, conn);
	f->hash = 0xC3;
	conn = fake_greet(f);
	serve(f, conn);
	serve(f, conn);
}

START_TEST(resends)
{
	fake_start(&fake, script_dies_twice);
	check_allowed();
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(1));
	is_resend(seen(3), seen(1), 0xA1);
	is_resend(seen(5), seen(1), 0xA1);
	ck_assert_uint_gt(seen(5)->age_us, seen(3)->age_us);
	ck_assert_uint_ne(fake.seen[1].head.id, fake.seen[3].head.id);
	ck_assert_uint_ne(fake.seen[3].head.id, fake.seen[5].head.id);
	is_first_send(seen(6));
}
END_TEST

/* A started frame that was thought too slow counts as a lost connection. */
static void
script_slow(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_error(f, conn, 0, IPC_ERR_SLOW);
	serve(f, fake_greet(f));
}

START_TEST(error_slow)
{
	fake_start(&fake, script_slow);
	check_allowed();
	fake_join(&fake);
	is_resend(seen(3), seen(1), 0xA1);
}
END_TEST

static void
script_dies(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_vanish(f);
	fake_close(f, conn);
}

START_TEST(never_resumed)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 500};

	fake_start(&fake, script_dies);
	ck_assert_int_eq(rl_check(client, &hasty, &decision, NULL), RL_OK);
	expect_failed(RL_REASON_INTERRUPTED, 1);
	ck_assert_uint_ge(decision.elapsed_us, 500000);
}
END_TEST

/* An ERROR with the check's id says that it was not begun. */
static void
script_disowns(struct fake *f)
{
	int conn = fake_greet(f);

	fake_error(
	    f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_ERR_MALFORMED);
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_error(f, conn, 0, IPC_ERR_MALFORMED);
}

START_TEST(error_for_the_check)
{
	fake_start(&fake, script_disowns);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	check_simple();
	expect_failed(RL_REASON_INTERRUPTED, 1);
}
END_TEST

/* A frame that takes several writes, as the agent makes room. */
static void
script_reads_slowly(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_allow(f, conn, fake_read(f, conn, IPC_CHECK_ADHOC)->head.id);
}

START_TEST(a_frame_in_several_writes)
{
	static char name[RL_NAME_MAX];
	struct rl_resource resources[RL_MAX_RESOURCES];
	struct rl_check check = {
	    .resources = resources, .resource_count = RL_MAX_RESOURCES};
	int i, small = 1;

	for (i = 0; i < RL_MAX_RESOURCES; i++)
		resources[i] =
		    (struct rl_resource){name, RL_NAME_MAX, 1000, 1, 1};
	fake_start(&fake, script_reads_slowly);
	check_allowed();
	/* The kernel makes of it the least that it allows. */
	ck_assert_int_eq(setsockopt(client->conns[0]->fd, SOL_SOCKET, SO_SNDBUF,
			     &small, sizeof(small)),
	    0);
	ck_assert_int_eq(rl_check(client, &check, &decision, NULL), RL_OK);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
	ck_assert_uint_gt(fake.seen[2].payload_len, 10000);
}
END_TEST

/* Too many, told with the check's id: not begun, and so asked afresh. */
static void
script_busy_for_one(struct fake *f)
{
	int conn = fake_greet(f);

	fake_error(
	    f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_ERR_BUSY);
	serve(f, fake_greet(f));
}

START_TEST(busy_for_the_check)
{
	fake_start(&fake, script_busy_for_one);
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(3));
	ck_assert_mem_eq(
	    seen(1)->operation_id, seen(3)->operation_id, IPC_ID_LEN);
}
END_TEST

static void
script_small_frames(struct fake *f)
{
	int conn = fake_greet(f);

	ck_assert(fake_at_end(f, conn));
}

START_TEST(an_agent_of_small_frames)
{
	fake.max_frame = 60;
	fake_start(&fake, script_small_frames);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_str_eq(
	    decision.text, "the agent takes frames of 60 bytes at most");
}
END_TEST

/* The last words count, though what is written finds nobody any more. */
static void
script_refuses_while_idle(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_hold(f);
	fake_error(f, conn, 0, IPC_ERR_UNAUTHORISED);
	fake_reached(f);
}

START_TEST(an_error_while_idle)
{
	fake_start(&fake, script_refuses_while_idle);
	check_allowed();
	fake_let(&fake);
	fake_await(&fake);
	check_simple();
	expect_failed(RL_REASON_UNAUTHORISED, 0);
}
END_TEST

/* ---- GO_AWAY ---- */

static void
script_not_accepted(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	fake_go_away(f, conn, id - 1);
	f->hash = 0xB2;
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_close(f, conn); /* and now it is a resend, of the second */
	f->hash = 0xC3;
	conn = fake_greet(f);
	id = fake_read(f, conn, IPC_CHECK)->head.id;
	fake_go_away(f, conn, id - 1); /* and still one */
	serve(f, fake_greet(f));
}

START_TEST(go_away_before_the_check)
{
	fake_start(&fake, script_not_accepted);
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(1));
	is_first_send(seen(3));
	ck_assert_uint_le(seen(3)->deadline_ms, seen(1)->deadline_ms);
	is_resend(seen(5), seen(3), 0xB2);
	is_resend(seen(7), seen(3), 0xB2);
}
END_TEST

static void
script_accepted(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	fake_go_away(f, conn, id);
	fake_allow(f, conn, id);
	ck_assert(fake_at_end(f, conn));
	fake_reached(f);
	serve(f, fake_greet(f));
}

START_TEST(go_away_after_the_check)
{
	fake_start(&fake, script_accepted);
	check_allowed();
	fake_await(&fake); /* an agent that drains need not wait for us */
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(3));
}
END_TEST

/* It may come before WELCOME, and be the last that comes. */
static void
script_goes_at_once(struct fake *f)
{
	int conn = fake_accept(f);

	fake_read(f, conn, IPC_HELLO);
	fake_go_away(f, conn, 0);
	ck_assert(fake_at_end(f, conn));
	serve(f, fake_greet(f));
}

START_TEST(go_away_at_the_greeting)
{
	fake_start(&fake, script_goes_at_once);
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(2));
}
END_TEST

/* Between two calls: the second was never begun on the old connection. */
static void
script_goes_while_idle(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_go_away(f, conn, f->seen[f->seen_count - 1].head.id);
	serve(f, fake_greet(f));
}

START_TEST(go_away_while_idle)
{
	fake_start(&fake, script_goes_while_idle);
	check_allowed();
	check_allowed();
	fake_join(&fake);
	is_first_send(seen(fake.seen_count - 1));
	ck_assert_int_eq(fake.seen[fake.seen_count - 1].conn, 1);
}
END_TEST

/* ---- rl_interrupt() ---- */

static void
script_cancels(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	rl_interrupt(client);
	ck_assert_uint_eq(fake_read(f, conn, IPC_CANCEL)->head.id, id);
	rl_interrupt(client); /* once more changes nothing */
	fake_decide(f, conn, id, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	serve(f, conn);
}

START_TEST(interrupted_by_a_thread)
{
	fake_start(&fake, script_cancels);
	check_simple();
	expect_cancelled();
	/* The second may have come after the answer: then it counts now. */
	check_simple();
	if (decision.outcome == RL_CANCELLED)
		check_simple();
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
}
END_TEST

static void
script_decided_already(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	rl_interrupt(client);
	fake_read(f, conn, IPC_CANCEL);
	rl_interrupt(client); /* a cancelled call is not cancelled again */
	fake_allow(f, conn, id);
}

START_TEST(interrupted_after_the_decision)
{
	fake_start(&fake, script_decided_already);
	check_allowed();
}
END_TEST

static void
script_ignores_cancel(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	rl_interrupt(client);
	fake_read(f, conn, IPC_CANCEL);
	fake_read(f, conn, IPC_CHECK);
	fake_deny(f, conn, id);
	fake_allow(f, conn, f->seen[f->seen_count - 1].head.id);
}

START_TEST(interrupted_and_no_last_word)
{
	fake_start(&fake, script_ignores_cancel);
	check_simple();
	expect_cancelled();
	check_allowed();
}
END_TEST

/* With a result of its own, not of the call that it interrupts. */
static void
on_signal(int number)
{
	int saved = errno;

	(void)number;
	errno = 4711;
	rl_interrupt(client);
	if (errno != 4711)
		abort();
	errno = saved;
}

static void
script_signals(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	kill(getpid(), SIGUSR1);
	fake_read(f, conn, IPC_CANCEL);
	fake_decide(f, conn, id, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
}

START_TEST(interrupted_by_a_signal_handler)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &sa, NULL);
	fake_start(&fake, script_signals);
	check_simple();
	expect_cancelled();
}
END_TEST

/* Also when the write to the eventfd fails. */
START_TEST(an_interrupt_leaves_errno_alone)
{
	uint64_t most = UINT64_MAX - 1;

	ck_assert_int_eq(write(atomic_load(&client->wake), &most, sizeof(most)),
	    sizeof(most));
	errno = 4711;
	rl_interrupt(client);
	ck_assert_int_eq(errno, 4711);
	check_simple();
	expect_cancelled();
}
END_TEST

/* Signals that do not interrupt do no harm. */
static void
on_nothing(int number)
{
	(void)number;
}

static pthread_t pestered;

static void
script_pesters(struct fake *f)
{
	int i, conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	for (i = 0; i < 100; i++)
		pthread_kill(pestered, SIGUSR2);
	fake_allow(f, conn, id);
}

START_TEST(other_signals)
{
	struct sigaction sa = {.sa_handler = on_nothing};

	sigaction(SIGUSR2, &sa, NULL);
	pestered = pthread_self();
	fake_start(&fake, script_pesters);
	check_allowed();
}
END_TEST

START_TEST(interrupted_before_the_call)
{
	rl_interrupt(client);
	rl_interrupt(client);
	check_simple();
	expect_cancelled();
	rl_interrupt(client);
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EINTERRUPTED);
	/* Both are used up. */
	ck_assert_int_eq(rl_ping(client, 5, NULL), RL_EUNAVAILABLE);
}
END_TEST

static void
script_interrupts_a_wait(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_WAIT);
	rl_interrupt(client);
	ck_assert(fake_at_end(f, conn));
}

START_TEST(other_calls_are_interrupted)
{
	fake_start(&fake, script_interrupts_a_wait);
	ck_assert_int_eq(rl_wait(client, 0), RL_EINTERRUPTED);
}
END_TEST

static void *
interrupt_soon(void *arg)
{
	struct timespec delay = {.tv_nsec = 20000000};

	nanosleep(&delay, NULL); /* sooner or later: the result is the same */
	rl_interrupt(arg);
	return NULL;
}

START_TEST(interrupted_without_an_agent)
{
	pthread_t thread;

	pthread_create(&thread, NULL, interrupt_soon, client);
	check_simple();
	expect_cancelled();
	pthread_join(thread, NULL);
}
END_TEST

static Suite *
conn_suite(void)
{
	Suite *s = suite_create("rlshim_conn");
	TCase *tc = tcase_create("connections");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, the_agent_appears);
	tcase_add_test(tc, a_stale_socket);
	tcase_add_test(tc, a_full_backlog);
	tcase_add_test(tc, a_restart_between_two_checks);
	tcase_add_test(tc, resends);
	tcase_add_test(tc, error_slow);
	tcase_add_test(tc, never_resumed);
	tcase_add_test(tc, error_for_the_check);
	tcase_add_test(tc, a_frame_in_several_writes);
	tcase_add_test(tc, busy_for_the_check);
	tcase_add_test(tc, an_agent_of_small_frames);
	tcase_add_test(tc, an_error_while_idle);
	tcase_add_test(tc, go_away_at_the_greeting);
	tcase_add_test(tc, go_away_before_the_check);
	tcase_add_test(tc, go_away_after_the_check);
	tcase_add_test(tc, go_away_while_idle);
	tcase_add_test(tc, interrupted_by_a_thread);
	tcase_add_test(tc, interrupted_after_the_decision);
	tcase_add_test(tc, interrupted_and_no_last_word);
	tcase_add_test(tc, interrupted_by_a_signal_handler);
	tcase_add_test(tc, an_interrupt_leaves_errno_alone);
	tcase_add_test(tc, other_signals);
	tcase_add_test(tc, interrupted_before_the_call);
	tcase_add_test(tc, other_calls_are_interrupted);
	tcase_add_test(tc, interrupted_without_an_agent);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(conn_suite());
}
