/*
 * Many checks in flight while their connection breaks, goes away, is refused
 * or changes its configuration; and fork. rlshim.c is included to reach the
 * connections.
 */
#include "client-shim/rlshim.c"

#include <sys/wait.h>

#include "tests/unit/rlshim_fixture.h"

/* So many are collected, each allowed, in any order. */
static void
collect_allowed(unsigned count)
{
	while (count-- > 0) {
		collect();
		expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	}
	ck_assert_int_eq(rl_collect(client, &completion), 0);
}

static void
submit_many(unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		submit((unsigned char)i);
}

/* For scripts: reads so many checks. */
static void
read_checks(struct fake *f, int conn, int count)
{
	while (count-- > 0)
		fake_read(f, conn, IPC_CHECK);
}

static uint64_t
id_of(const struct fake *f, size_t n)
{
	return f->seen[n].head.id;
}

/* ---- a connection that breaks ---- */

/* seen: HELLO, 0 1 2, HELLO, 0 2, HELLO, 0 2 3 */
static void
script_breaks_twice(struct fake *f)
{
	int conn = fake_greet(f);

	read_checks(f, conn, 3);
	fake_allow(f, conn, id_of(f, 2));
	fake_close(f, conn);
	f->hash = 0xB2;
	conn = fake_greet(f);
	read_checks(f, conn, 2);
	fake_close(f, conn);
	f->hash = 0xC3;
	conn = fake_greet(f);
	read_checks(f, conn, 2);
	fake_reached(f);
	fake_read(f, conn, IPC_CHECK);
	fake_allow(f, conn, id_of(f, 10));
	fake_allow(f, conn, id_of(f, 8));
	fake_allow(f, conn, id_of(f, 9));
}

START_TEST(resends)
{
	fake_start(&fake, script_breaks_twice);
	submit_many(3);
	ck_assert_uint_eq(collect(), 1);
	collect_nothing_until_reached();
	submit(3);
	collect_allowed(3);
	fake_join(&fake);
	is_first_send(seen(1));
	is_first_send(seen(3));
	is_resend(seen(5), seen(1), 0xA1);
	is_resend(seen(6), seen(3), 0xA1);
	is_resend(seen(8), seen(1), 0xA1);
	is_resend(seen(9), seen(3), 0xA1);
	ck_assert_uint_gt(seen(8)->age_us, seen(5)->age_us);
	ck_assert_uint_gt(id_of(&fake, 5), id_of(&fake, 3));
	is_first_send(seen(10));
	ck_assert_uint_eq(seen_key(10), 3);
}
END_TEST

/* What was cancelled is not asked again. */
static void
script_breaks_after_cancel(struct fake *f)
{
	int conn = fake_greet(f);

	read_checks(f, conn, 2);
	fake_reached(f);
	fake_read(f, conn, IPC_CANCEL);
	fake_close(f, conn);
	serve(f, fake_greet(f));
}

START_TEST(the_cancelled_are_not_resent)
{
	uint64_t ticket;

	fake_start(&fake, script_breaks_after_cancel);
	ticket = submit(0);
	submit(1);
	collect_nothing_until_reached();
	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK);
	ck_assert_uint_eq(collect(), 0);
	expect_cancelled();
	collect_allowed(1);
	fake_join(&fake);
	ck_assert_uint_eq(seen_key(5), 1);
	is_resend(seen(5), seen(2), 0xA1);
}
END_TEST

/* The agent closed while nobody looked: what it never got is a first send. */
static void
script_closes_while_idle(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_close(f, conn);
	fake_reached(f);
	conn = fake_greet(f);
	serve(f, conn);
	serve(f, conn);
}

START_TEST(never_written_is_a_first_send)
{
	fake_start(&fake, script_closes_while_idle);
	submit(0);
	collect_allowed(1);
	fake_await(&fake);
	submit_many(2);
	collect_allowed(2);
	fake_join(&fake);
	is_first_send(seen(3));
	is_first_send(seen(4));
}
END_TEST

/* Half of a frame is not a check. */
static void
script_reads_half(struct fake *f)
{
	uint8_t half[100];
	int conn = fake_greet(f);

	serve(f, conn);
	fake_reached(f);
	fake_hold(f);
	ck_assert_int_eq(recv(f->conns[conn], half, sizeof(half), MSG_WAITALL),
	    sizeof(half));
	fake_close(f, conn);
	conn = fake_greet(f);
	fake_allow(f, conn, fake_read(f, conn, IPC_CHECK_ADHOC)->head.id);
}

START_TEST(half_written_is_a_first_send)
{
	static char name[RL_NAME_MAX];
	struct rl_resource resources[RL_MAX_RESOURCES];
	struct rl_check check = {
	    .resources = resources, .resource_count = RL_MAX_RESOURCES};
	int i, small = 1;

	for (i = 0; i < RL_MAX_RESOURCES; i++)
		resources[i] =
		    (struct rl_resource){name, RL_NAME_MAX, 1000, 1, 1};
	fake_start(&fake, script_reads_half);
	submit(0);
	collect_allowed(1);
	fake_await(&fake);
	ck_assert_int_eq(setsockopt(client->conns[0]->fd, SOL_SOCKET, SO_SNDBUF,
			     &small, sizeof(small)),
	    0);
	ck_assert_int_eq(rl_submit(client, &check, NULL, marks, NULL), RL_OK);
	ck_assert_uint_gt(client->conns[0]->out_len, 0);
	fake_let(&fake);
	collect_allowed(1);
	fake_join(&fake);
	is_first_send(&fake.seen[3].base);
}
END_TEST

/* ---- GO_AWAY ---- */

/* seen: HELLO, 0 1 2 3, HELLO, 2 3 4 */
static void
script_goes_away(struct fake *f)
{
	int old = fake_greet(f), conn;

	read_checks(f, old, 4);
	fake_go_away(f, old, id_of(f, 2));
	f->hash = 0xB2;
	conn = fake_greet(f);
	read_checks(f, conn, 2);
	fake_reached(f);
	fake_read(f, conn, IPC_CHECK);
	fake_allow(f, conn, id_of(f, 7));
	fake_allow(f, old, id_of(f, 2));
	fake_allow(f, conn, id_of(f, 8));
	fake_allow(f, conn, id_of(f, 6));
	fake_allow(f, old, id_of(f, 1));
	ck_assert(fake_at_end(f, old)); /* when the last one is answered */
	serve(f, conn);
}

START_TEST(some_were_accepted)
{
	fake_start(&fake, script_goes_away);
	submit_many(4);
	collect_nothing_until_reached();
	submit(4);
	collect_allowed(5);
	check_allowed();
	fake_join(&fake);
	ck_assert_uint_eq(seen_key(6), 2);
	ck_assert_uint_eq(seen_key(7), 3);
	ck_assert_uint_eq(seen_key(8), 4);
	is_first_send(seen(6));
	is_first_send(seen(7));
	ck_assert_mem_eq(
	    seen(6)->operation_id, seen(3)->operation_id, IPC_ID_LEN);
	ck_assert_uint_le(seen(6)->deadline_ms, seen(3)->deadline_ms);
	ck_assert_int_eq(fake.conn_count, 2);
}
END_TEST

/* Cancelled, and then told that it was never begun: it is not begun now.
 * seen: HELLO, 0 1, CANCEL, HELLO, 2 */
static void
script_goes_after_cancel(struct fake *f)
{
	int conn, old = fake_greet(f);

	read_checks(f, old, 2);
	fake_reached(f);
	fake_read(f, old, IPC_CANCEL);
	fake_go_away(f, old, id_of(f, 1));
	fake_allow(f, old, id_of(f, 1));
	conn = fake_greet(f);
	serve(f, conn);
}

START_TEST(the_cancelled_are_not_sent_afresh)
{
	uint64_t ticket;
	unsigned i, key;

	fake_start(&fake, script_goes_after_cancel);
	submit(0);
	ticket = submit(1);
	collect_nothing_until_reached();
	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK);
	for (i = 0; i < 2; i++) {
		key = collect();
		ck_assert_int_eq(
		    decision.outcome, key == 1 ? RL_CANCELLED : RL_ALLOWED);
	}
	submit(2);
	collect_allowed(1);
	fake_join(&fake);
	ck_assert_uint_eq(seen_key(5), 2);
}
END_TEST

/* The old one breaks with one that it had accepted: a resend, and of the
 * hash of that connection. seen: HELLO, 0 1, HELLO, 1 0 */
static void
script_breaks_the_old(struct fake *f)
{
	int old = fake_greet(f), conn;

	read_checks(f, old, 2);
	fake_go_away(f, old, id_of(f, 1));
	f->hash = 0xB2;
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_close(f, old);
	fake_read(f, conn, IPC_CHECK);
	fake_allow(f, conn, id_of(f, 4));
	fake_allow(f, conn, id_of(f, 5));
}

START_TEST(the_old_connection_breaks)
{
	fake_start(&fake, script_breaks_the_old);
	submit_many(2);
	collect_allowed(2);
	fake_join(&fake);
	ck_assert_uint_eq(seen_key(4), 1);
	is_first_send(seen(4));
	ck_assert_uint_eq(seen_key(5), 0);
	is_resend(seen(5), seen(1), 0xA1);
}
END_TEST

/* More agents go away than connections are kept: the oldest counts as lost. */
static void
script_many_go_away(struct fake *f)
{
	int i, conns[CONN_MAX + 1];

	for (i = 0; i <= CONN_MAX; i++) {
		conns[i] = fake_greet(f);
		fake_read(f, conns[i], IPC_CHECK);
		if (i == CONN_MAX) /* and the first one again */
			fake_read(f, conns[i], IPC_CHECK);
		else
			fake_go_away(
			    f, conns[i], f->seen[f->seen_count - 1].head.id);
		fake_reached(f);
		fake_hold(f);
	}
	ck_assert(fake_at_end(f, conns[0]));
	for (i = 1; i < CONN_MAX; i++)
		fake_allow(f, conns[i], id_of(f, 1 + 2 * (size_t)i));
	fake_allow(f, conns[i], f->seen[f->seen_count - 1].head.id);
	fake_allow(f, conns[i], f->seen[f->seen_count - 2].head.id);
}

START_TEST(they_all_go_away)
{
	unsigned i;

	fake_start(&fake, script_many_go_away);
	for (i = 0; i <= CONN_MAX; i++) {
		submit((unsigned char)i);
		collect_nothing_until_reached();
		while (i < CONN_MAX && client->conns[0] != NULL &&
		       client->conns[0]->state != CONN_RETIRING)
			ck_assert_int_eq(rl_collect(client, &completion), 0);
		fake_let(&fake);
	}
	collect_allowed(CONN_MAX + 1);
}
END_TEST

/* A blocking call goes to the new one, while the old one is waited for. */
static void
script_goes_with_one_left(struct fake *f)
{
	int conn, old = fake_greet(f);

	fake_read(f, old, IPC_CHECK);
	fake_go_away(f, old, id_of(f, 1));
	conn = fake_greet(f);
	serve(f, conn);
	fake_allow(f, old, id_of(f, 1));
	ck_assert(fake_at_end(f, old));
}

START_TEST(a_blocking_call_on_the_new_one)
{
	fake_start(&fake, script_goes_with_one_left);
	submit(0);
	while (client->conns[0] == NULL ||
	       client->conns[0]->state != CONN_RETIRING) {
		ck_assert_int_eq(rl_collect(client, &completion), 0);
		if (client->conns[1] != NULL)
			break;
	}
	check_allowed();
	collect_allowed(1);
}
END_TEST

/* ---- WELCOME again ---- */

/* seen: HELLO, 0, WAIT, 1, HELLO, 0 1 */
static void
script_new_configuration(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	f->hash = 0xB2;
	f->default_deadline_ms = 40000;
	fake_welcome(f, conn, 0);
	fake_done(
	    f, conn, fake_read(f, conn, IPC_WAIT)->head.id, IPC_REASON_OK, "");
	fake_read(f, conn, IPC_CHECK);
	f->hash = 0xC3;
	fake_close(f, conn);
	conn = fake_greet(f);
	read_checks(f, conn, 2);
	fake_allow(f, conn, id_of(f, 5));
	fake_allow(f, conn, id_of(f, 6));
}

START_TEST(welcome_again)
{
	rl_close(client);
	open_client(RL_OPEN, 0);
	fake_start(&fake, script_new_configuration);
	submit(0);
	ck_assert_int_eq(rl_wait(client, 20000), RL_OK);
	submit(1);
	collect_allowed(2);
	fake_join(&fake);
	/* Each repeats what it was first written under. */
	is_resend(seen(5), seen(1), 0xA1);
	is_resend(seen(6), seen(3), 0xB2);
	ck_assert_uint_le(seen(1)->deadline_ms, 20000);
	ck_assert_uint_gt(seen(3)->deadline_ms, 20000);
}
END_TEST

/* Before the greeting it means nothing, and malformed it is a fault. */
static void
script_odd_welcomes(struct fake *f)
{
	static const uint8_t bad[] = {
	    20, 0, 0, 0, 0x01, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
	int conn = fake_accept(f);
	uint64_t id = fake_read(f, conn, IPC_HELLO)->head.id;

	f->hash = 0xEE;
	fake_welcome(f, conn, 0);
	f->hash = 0xA1;
	fake_welcome(f, conn, id);
	fake_read(f, conn, IPC_CHECK);
	fake_close(f, conn);
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_write(f, conn, bad, sizeof(bad));
	ck_assert(fake_at_end(f, conn));
}

START_TEST(odd_welcomes)
{
	fake_start(&fake, script_odd_welcomes);
	check_simple();
	expect_failed(RL_REASON_INTERRUPTED, 1);
	fake_join(&fake);
	is_resend(seen(3), seen(1), 0xA1);
}
END_TEST

/* ---- ERROR ---- */

/* seen: HELLO, 0 1 2, HELLO, 0 2 */
static void
script_faults_one(struct fake *f)
{
	int conn = fake_greet(f);

	read_checks(f, conn, 3);
	fake_error(f, conn, id_of(f, 2), IPC_ERR_MALFORMED);
	conn = fake_greet(f);
	serve(f, conn);
	serve(f, conn);
}

START_TEST(an_error_for_one)
{
	fake_start(&fake, script_faults_one);
	submit_many(3);
	ck_assert_uint_eq(collect(), 1);
	expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_UNAVAILABLE);
	ck_assert_str_eq(decision.text, "the fake's error");
	collect_allowed(2);
	fake_join(&fake);
	is_resend(seen(5), seen(1), 0xA1);
	is_resend(seen(6), seen(3), 0xA1);
}
END_TEST

static void
script_faults_all(struct fake *f)
{
	int conn = fake_greet(f);

	read_checks(f, conn, 3);
	fake_reached(f);
	fake_read(f, conn, IPC_CANCEL);
	fake_error(f, conn, 0, IPC_ERR_MALFORMED);
}

START_TEST(an_error_for_all)
{
	uint64_t ticket;
	unsigned i;

	fake_start(&fake, script_faults_all);
	ticket = submit(0);
	submit(1);
	submit(2);
	collect_nothing_until_reached();
	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(collect(), i);
		if (i == 0)
			expect_cancelled();
		else
			expect(RL_FAILED, 1, RL_SOURCE_POLICY,
			    RL_REASON_INTERRUPTED);
	}
}
END_TEST

static void
script_refuses(struct fake *f)
{
	int i, conn;

	for (i = 0; i < 3; i++) {
		conn = fake_accept(f);
		fake_read(f, conn, IPC_HELLO);
		fake_error(f, conn, 0, IPC_ERR_BUSY);
	}
	conn = fake_greet(f);
	serve(f, conn);
	serve(f, conn);
	fake_read(f, conn, IPC_CHECK);
	fake_error(f, conn, 0, IPC_ERR_UNAUTHORISED);
	conn = fake_accept(f);
	fake_read(f, conn, IPC_HELLO);
	fake_error(f, conn, 0, IPC_ERR_UNAUTHORISED);
}

START_TEST(refusals)
{
	fake_start(&fake, script_refuses);
	submit_many(2);
	collect_allowed(2);
	submit(2);
	collect();
	expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_UNAUTHORISED);
	submit_many(2);
	collect();
	expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_UNAUTHORISED);
	collect();
	expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_UNAUTHORISED);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
}
END_TEST

/* ---- fork ---- */

/* seen: HELLO, 0, HELLO, 5 */
static void
script_family(struct fake *f)
{
	int child, parent = fake_greet(f);

	fake_read(f, parent, IPC_CHECK);
	fake_reached(f);
	child = fake_greet(f);
	serve(f, child);
	ck_assert(fake_at_end(f, child));
	fake_allow(f, parent, id_of(f, 1));
}

/* Without Check's own machinery. */
static int
in_the_child(uint64_t ticket)
{
	struct pollfd p = {-1, POLLIN, 0};

	if (rl_collect(client, &completion) != 0)
		return 1;
	if (rl_cancel(client, ticket) != RL_EINVAL)
		return 2;
	p.fd = rl_fd(client);
	if (p.fd < 0 || poll(&p, 1, 0) != 0)
		return 3;
	if (rl_submit(client, &simple, NULL, &marks[5], NULL) != RL_OK)
		return 4;
	while (rl_collect(client, &completion) == 0)
		if (poll(&p, 1, 20000) != 1)
			return 5;
	if (completion.user != &marks[5] ||
	    completion.decision.outcome != RL_ALLOWED)
		return 6;
	rl_close(client);
	return 0;
}

START_TEST(a_child_has_none_of_them)
{
	int status = -1, fd = rl_fd(client);
	uint64_t ticket;
	pid_t pid;

	fake_start(&fake, script_family);
	ticket = submit(0);
	collect_nothing_until_reached();
	pid = fork();
	if (pid == 0)
		_exit(in_the_child(ticket));
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(readable(fd, 20000)); /* still the parent's own */
	ck_assert_int_eq(rl_fd(client), fd);
	ck_assert_uint_eq(collect(), 0);
	ck_assert_uint_eq(completion.ticket, ticket);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
}
END_TEST

/* A copy of the socket in a child keeps the parent's epoll from forgetting
 * it by itself: a connection that is over must not stay readable. */
static void
script_ends_with_a_child(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_hold(f);
	shutdown(f->conns[conn], SHUT_RDWR); /* a child has it, too */
}

START_TEST(a_child_that_keeps_the_socket)
{
	int ends[2], status = -1, fd = rl_fd(client);
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	fake_start(&fake, script_ends_with_a_child);
	submit(0);
	collect_allowed(1);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
	}
	fake_let(&fake);
	ck_assert(readable(fd, 20000));
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 0));
	close(ends[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(ends[0]);
}
END_TEST

static Suite *
resume_suite(void)
{
	Suite *s = suite_create("rlshim_resume");
	TCase *tc = tcase_create("resume");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, resends);
	tcase_add_test(tc, the_cancelled_are_not_resent);
	tcase_add_test(tc, never_written_is_a_first_send);
	tcase_add_test(tc, half_written_is_a_first_send);
	tcase_add_test(tc, some_were_accepted);
	tcase_add_test(tc, the_cancelled_are_not_sent_afresh);
	tcase_add_test(tc, the_old_connection_breaks);
	tcase_add_test(tc, they_all_go_away);
	tcase_add_test(tc, a_blocking_call_on_the_new_one);
	tcase_add_test(tc, welcome_again);
	tcase_add_test(tc, odd_welcomes);
	tcase_add_test(tc, an_error_for_one);
	tcase_add_test(tc, an_error_for_all);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, a_child_has_none_of_them);
	tcase_add_test(tc, a_child_that_keeps_the_socket);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(resume_suite());
}
