/*
 * The asynchronous form of the shim against a scripted agent: submitting,
 * collecting, cancelling, timeouts, limits, and when exactly rl_fd() is
 * readable. Connections that break are in check_rlshim_resume.c. rlshim.c is
 * included to reach what is kept.
 */
#include "client-shim/rlshim.c"

#include "tests/unit/rlshim_fixture.h"

static void
reopen(enum rl_failure on_failure, uint32_t timeout_ms, uint32_t max_inflight)
{
	struct rl_options options = {.socket = fake.path,
	    .timeout_ms = timeout_ms,
	    .on_failure = on_failure,
	    .max_inflight = max_inflight};

	rl_close(client);
	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
}

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

/* ---- answers ---- */

#define MANY 20

static void
script_any_order(struct fake *f)
{
	int i, conn = fake_greet(f);

	for (i = 0; i < MANY; i++)
		fake_read(f, conn, IPC_CHECK);
	for (i = MANY; i > 0; i -= 2) /* after the HELLO */
		fake_allow(f, conn, f->seen[i].head.id);
	for (i = MANY - 1; i > 0; i -= 2)
		fake_deny(f, conn, f->seen[i].head.id);
}

START_TEST(many_in_any_order)
{
	uint64_t tickets[MANY];
	bool got[MANY] = {false};
	unsigned i, key;

	fake_start(&fake, script_any_order);
	for (i = 0; i < MANY; i++)
		tickets[i] = submit((unsigned char)i);
	for (i = 0; i < MANY; i++) {
		key = collect();
		ck_assert_uint_lt(key, MANY);
		ck_assert(!got[key]);
		got[key] = true;
		ck_assert_uint_eq(completion.ticket, tickets[key]);
		ck_assert_int_eq(
		    decision.outcome, key % 2 == 1 ? RL_ALLOWED : RL_DENIED);
		ck_assert_int_eq(decision.by_agent, 1);
		ck_assert_uint_gt(decision.elapsed_us, 0);
	}
	is_empty();
	fake_join(&fake);
	for (i = 0; i < MANY; i++) {
		ck_assert_uint_eq(seen_key(1 + i), i); /* in order */
		is_first_send(seen(1 + i));
		ck_assert_uint_gt(
		    fake.seen[1 + i].head.id, fake.seen[i].head.id);
		ck_assert(
		    i == 0 || memcmp(seen(1 + i)->operation_id,
				  seen(i)->operation_id, IPC_ID_LEN) != 0);
	}
}
END_TEST

/* Submitting waits for nobody, not even for an agent. */
static void
script_serves_two(struct fake *f)
{
	int conn;

	fake_hold(f);
	fake_listen(f);
	conn = fake_greet(f);
	serve(f, conn);
	serve(f, conn);
}

START_TEST(before_the_agent_is_there)
{
	fake_start_later(&fake, script_serves_two);
	submit(0);
	submit(1);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	fake_let(&fake);
	collect();
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	collect();
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	is_empty();
}
END_TEST

static void
script_adhoc(struct fake *f)
{
	static struct ipc_decision out = {.outcome = IPC_DENIED,
	    .reason = IPC_REASON_RESOURCE,
	    .has = IPC_HAS_DETAIL,
	    .limit = {(const uint8_t *)"a", 1},
	    .resource_count = 1,
	    .resources = {{.deficit = 4, .name = {(const uint8_t *)"a", 1}}}};
	uint8_t buf[512];
	struct writer w;
	int conn = fake_greet(f);

	writer_init(&w, buf, sizeof(buf));
	ipc_enc_decision(
	    &w, fake_read(f, conn, IPC_CHECK_ADHOC)->head.id, &out);
	fake_write(f, conn, buf, writer_len(&w));
	fake_read(f, conn, IPC_CHECK_ADHOC);
	fake_close(f, conn);
	fake_vanish(f);
}

START_TEST(adhoc_with_detail)
{
	static struct rl_detail detail;
	struct rl_resource resource = {"a", 1, 1000, 5, 4};
	struct rl_check check = {
	    .resources = &resource, .resource_count = 1, .timeout_ms = 20000};

	fake_start(&fake, script_adhoc);
	ck_assert_int_eq(
	    rl_submit(client, &check, &detail, marks, NULL), RL_OK);
	memset(&resource, 0, sizeof(resource));
	collect();
	expect(RL_DENIED, 0, RL_SOURCE_SERVER, RL_REASON_RESOURCE);
	ck_assert_uint_eq(detail.resource_count, 1);
	ck_assert_uint_eq(detail.resources[0].deficit, 4);
	/* Of one that nobody decides nothing is left. */
	resource = (struct rl_resource){"a", 1, 1000, 5, 4};
	check.timeout_ms = 100;
	ck_assert_int_eq(
	    rl_submit(client, &check, &detail, marks, NULL), RL_OK);
	collect();
	expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_INTERRUPTED);
	ck_assert_uint_eq(detail.resource_count, 0);
	fake_join(&fake);
	ck_assert_uint_eq(fake.seen[1].base.options, IPC_OPT_DETAIL);
}
END_TEST

/* So many that neither socket nor buffer holds them at once. */
#define FLOOD 6000

static void
script_flood(struct fake *f)
{
	uint64_t *ids = calloc(FLOOD, sizeof(*ids));
	int i, conn = fake_greet(f);

	fake_reached(f);
	fake_hold(f); /* all were submitted */
	for (i = 0; i < FLOOD; i++) {
		f->seen_count = 0;
		ids[i] = fake_read(f, conn, IPC_CHECK)->head.id;
	}
	for (i = FLOOD; i > 0; i--)
		fake_allow(f, conn, ids[i - 1]);
	free(ids);
}

START_TEST(a_flood)
{
	unsigned i, n = 0, allowed = 0;

	reopen(RL_OPEN, 60000, FLOOD);
	fake_start(&fake, script_flood);
	for (i = 0; i < FLOOD; i++)
		submit(i % 64);
	collect_nothing_until_reached();
	ck_assert_ptr_nonnull(client->queue.first);
	ck_assert_int_eq(
	    rl_submit(client, &simple, NULL, NULL, NULL), RL_ENOMEM);
	fake_let(&fake);
	for (n = 0; n < FLOOD; n++) {
		collect();
		allowed += decision.outcome == RL_ALLOWED;
	}
	ck_assert_uint_eq(allowed, FLOOD);
	is_empty();
}
END_TEST

/* ---- when it is readable ---- */

static void
script_in_steps(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_read(f, conn, IPC_CHECK);
	fake_reached(f);
	fake_hold(f);
	fake_allow(f, conn, f->seen[1].head.id);
	fake_deny(f, conn, f->seen[2].head.id);
}

START_TEST(readable_exactly_then)
{
	int fd = rl_fd(client);

	ck_assert_int_ge(fd, 0);
	ck_assert(!readable(fd, 0));
	fake_start(&fake, script_in_steps);
	submit(0);
	submit(1);
	ck_assert_int_eq(rl_fd(client), fd);
	collect_nothing_until_reached();
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 50));
	fake_let(&fake);
	ck_assert(readable(fd, 20000));
	ck_assert_uint_eq(collect(), 0);
	/* The second one waits, or its bytes do. */
	ck_assert(readable(fd, 20000));
	ck_assert_uint_eq(collect(), 1);
	ck_assert(!readable(fd, 0));
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 0));
}
END_TEST

static void
script_silent(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_reached(f);
	fake_hold(f);
	fake_close(f, conn);
}

/* The end of an idle connection is noticed once, and costs nothing. */
static void
script_serves_and_closes(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_hold(f);
	fake_close(f, conn);
	serve(f, fake_greet(f));
}

START_TEST(an_idle_connection_that_ends)
{
	int fd = rl_fd(client);

	fake_start(&fake, script_serves_and_closes);
	submit(0);
	ck_assert_uint_eq(collect(), 0);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 0));
	fake_let(&fake);
	ck_assert(readable(fd, 20000));
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 0));
	ck_assert_ptr_null(client->conns[0]);
	submit(1);
	ck_assert_uint_eq(collect(), 1);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
	is_first_send(seen(3));
}
END_TEST

/* Made late, it knows of what is under way. */
START_TEST(a_late_descriptor)
{
	int fd;

	fake_start(&fake, script_any_order);
	for (fd = 0; fd < MANY; fd++)
		submit((unsigned char)fd);
	ck_assert_int_eq(client->epoll, -1);
	fd = rl_fd(client);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(
	    fcntl(client->timer, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert(readable(fd, 20000));
	for (fd = 0; fd < MANY; fd++)
		collect();
	is_empty();
}
END_TEST

/* Without rl_fd() it is a matter of calling often enough. */
START_TEST(without_a_descriptor)
{
	unsigned n;

	fake_start(&fake, script_any_order);
	for (n = 0; n < MANY; n++)
		submit((unsigned char)n);
	for (n = 0; n < MANY;)
		n += (unsigned)rl_collect(client, &completion);
	ck_assert_int_eq(client->epoll, -1);
	is_empty();
}
END_TEST

/* A daemon that closes everything: there is another one then. */
START_TEST(a_descriptor_closed_behind_its_back)
{
	fake_start(&fake, script_serves_and_closes);
	ck_assert_int_ge(rl_fd(client), 0);
	close(client->epoll);
	close(client->timer);
	submit(0);
	ck_assert_uint_eq(collect(), 0);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_let(&fake);
	check_allowed();
}
END_TEST

/* ---- timeouts ---- */

START_TEST(without_an_agent)
{
	int fd = rl_fd(client);

	reopen(RL_OPEN, 60, 0);
	fd = rl_fd(client);
	submit(0);
	submit(1);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert_uint_eq(collect(), 0);
	expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_UNAVAILABLE);
	ck_assert_ptr_nonnull(strstr(decision.text, fake.path));
	ck_assert_int_eq(decision.by_agent, 0);
	ck_assert_uint_ge(decision.elapsed_us, 60000);
	ck_assert_uint_eq(collect(), 1);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert(!readable(fd, 0));
	ck_assert_int_eq(client->timer_when == NEVER, 1);
	reopen(RL_CLOSED, 5, 0);
	submit(2);
	collect();
	expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_UNAVAILABLE);
}
END_TEST

static void
script_late_answer(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t late = fake_read(f, conn, IPC_CHECK)->head.id;

	ck_assert_uint_eq(fake_read(f, conn, IPC_CANCEL)->head.id, late);
	fake_deny(f, conn, late);
	serve(f, conn);
}

START_TEST(a_silent_agent)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 100};

	fake_start(&fake, script_late_answer);
	ck_assert_int_eq(
	    rl_submit(client, &hasty, NULL, &marks[7], NULL), RL_OK);
	ck_assert_uint_eq(collect(), 7);
	/* Unless the machine is too slow to have written it in time. */
	if (decision.reason != RL_REASON_UNAVAILABLE) {
		expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_TIMEOUT);
		ck_assert_uint_ge(decision.elapsed_us, 200000);
	}
	submit(8);
	ck_assert_uint_eq(collect(), 8);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
	ck_assert_int_eq(fake.conn_count, 1);
}
END_TEST

/* Each ends at its own time, whatever the order of submitting. */
START_TEST(timeouts_in_order)
{
	static const uint32_t ms[] = {90, 10, 60, 30, 120, 1, 45};
	uint64_t tickets[7];
	uint32_t last = 0;
	unsigned i, key;
	struct op *op;
	int64_t now;

	for (i = 0; i < 7; i++)
		tickets[i] = submit((unsigned char)i);
	/* From the same time on, however slow the machine is. */
	now = now_us();
	for (i = 0; i < 7; i++) {
		op = rows_find(client, tickets[i]);
		ck_assert_ptr_nonnull(op);
		op->deadline = now + ms[i] * MS;
		op_rekey(client, op);
	}
	for (i = 0; i < 7; i++) {
		key = collect();
		ck_assert_uint_gt(ms[key], last);
		last = ms[key];
		ck_assert_uint_ge(decision.elapsed_us, last * 1000);
	}
	is_empty();
}
END_TEST

/* ---- limits ---- */

START_TEST(max_inflight)
{
	uint64_t first;

	reopen(RL_OPEN, 20000, 2);
	first = submit(0);
	submit(1);
	ck_assert_int_eq(
	    rl_submit(client, &simple, NULL, NULL, NULL), RL_ENOMEM);
	ck_assert_str_eq(
	    rl_last_text(client), "max_inflight: 2 requests are in flight");
	/* One that is decided, but not collected, counts as well. */
	ck_assert_int_eq(rl_cancel(client, first), RL_OK);
	ck_assert_int_eq(
	    rl_submit(client, &simple, NULL, NULL, NULL), RL_ENOMEM);
	ck_assert_uint_eq(collect(), 0);
	submit(2);
}
END_TEST

START_TEST(arguments_out_of_range)
{
	struct rl_options options = {.socket = "/a", .max_inflight = 65537};
	struct rl_check check = {.rule = ""};
	struct rl_client *other;

	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	options.max_inflight = 65536;
	ck_assert_int_eq(rl_open(&other, &options), RL_OK);
	rl_close(other);
	ck_assert_int_eq(
	    rl_submit(client, &check, NULL, NULL, NULL), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), "rule: 1 to 255 bytes");
	ck_assert_int_eq(rl_submit(client, NULL, NULL, NULL, NULL), RL_EINVAL);
	ck_assert_int_eq(rl_cancel(client, 0), RL_EINVAL);
	ck_assert_int_eq(rl_cancel(client, 1), RL_EINVAL);
	ck_assert_int_eq(rl_cancel(client, UINT64_MAX), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), "ticket: not in flight");
	is_empty();
}
END_TEST

/* ---- cancelling ---- */

START_TEST(cancelled_before_it_was_sent)
{
	uint64_t ticket = submit(0);
	int fd = rl_fd(client);

	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK);
	ck_assert(readable(fd, 0));
	ck_assert_int_eq(rl_cancel(client, ticket), RL_EINVAL);
	ck_assert_uint_eq(collect(), 0);
	ck_assert_uint_eq(completion.ticket, ticket);
	expect_cancelled();
	ck_assert_str_eq(decision.text, "cancelled");
	ck_assert_int_eq(rl_cancel(client, ticket), RL_EINVAL);
	ck_assert(!readable(fd, 0));
	is_empty();
}
END_TEST

/* Of three cancelled: one ends so, one was decided, one has no answer. */
static void
script_cancels(struct fake *f)
{
	uint64_t ids[3];
	int i, conn = fake_greet(f);

	for (i = 0; i < 3; i++)
		ids[i] = fake_read(f, conn, IPC_CHECK)->head.id;
	fake_reached(f);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(
		    fake_read(f, conn, IPC_CANCEL)->head.id, ids[i]);
	fake_allow(f, conn, ids[1]);
	fake_decide(f, conn, ids[0], IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	fake_read(f, conn, IPC_CHECK);
	fake_allow(f, conn, ids[2]);
	fake_allow(f, conn, f->seen[f->seen_count - 1].head.id);
}

START_TEST(cancelled_when_it_was_sent)
{
	uint64_t tickets[3];
	unsigned i, key;

	fake_start(&fake, script_cancels);
	for (i = 0; i < 3; i++)
		tickets[i] = submit((unsigned char)i);
	collect_nothing_until_reached();
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(rl_cancel(client, tickets[i]), RL_OK);
		ck_assert_int_eq(rl_cancel(client, tickets[i]), RL_OK);
	}
	for (i = 0; i < 3; i++) {
		key = collect();
		if (key == 1 && decision.outcome == RL_ALLOWED)
			continue; /* else the machine was too slow */
		expect_cancelled();
	}
	is_empty();
	submit(3);
	ck_assert_uint_eq(collect(), 3);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
}
END_TEST

/* More CANCELs than there is room for: they go as there is some. */
static void
script_flood_of_cancels(struct fake *f)
{
	int i, conn = fake_greet(f);

	for (i = 0; i < FLOOD; i++) {
		f->seen_count = 0;
		fake_read(f, conn, IPC_CHECK);
	}
	fake_reached(f);
	fake_hold(f);
	for (i = 0; i < FLOOD; i++) {
		f->seen_count = 0;
		fake_read(f, conn, IPC_CANCEL);
		fake_decide(f, conn, f->seen[0].head.id, IPC_CANCELLED, false,
		    IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
	}
}

START_TEST(a_flood_of_cancels)
{
	uint64_t *tickets = calloc(FLOOD, sizeof(*tickets));
	struct op *op;
	unsigned i;

	reopen(RL_OPEN, 60000, FLOOD);
	fake_start(&fake, script_flood_of_cancels);
	for (i = 0; i < FLOOD; i++)
		tickets[i] = submit(i % 64);
	collect_nothing_until_reached();
	for (i = 0; i < FLOOD; i++) {
		ck_assert_int_eq(rl_cancel(client, tickets[i]), RL_OK);
		/* However slow the machine is. */
		op = rows_find(client, tickets[i]);
		ck_assert_ptr_nonnull(op);
		op->cancel_until += 20000 * MS;
		op_rekey(client, op);
	}
	free(tickets);
	ck_assert_uint_gt(client->conns[0]->owed, 1000);
	fake_let(&fake);
	for (i = 0; i < FLOOD; i++) {
		collect();
		expect(RL_CANCELLED, 0, RL_SOURCE_POLICY, RL_REASON_CANCELLED);
		ck_assert_int_eq(decision.by_agent, 1);
	}
	is_empty();
}
END_TEST

/* ---- blocking calls in between ---- */

static void
script_between(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t first = fake_read(f, conn, IPC_CHECK)->head.id;
	uint64_t blocking = fake_read(f, conn, IPC_CHECK)->head.id;

	fake_allow(f, conn, first);
	fake_deny(f, conn, blocking);
	first = fake_read(f, conn, IPC_CHECK)->head.id;
	blocking = fake_read(f, conn, IPC_WAIT)->head.id;
	fake_reached(f);
	fake_done(f, conn, blocking, IPC_REASON_OK, "");
	fake_hold(f);
	fake_allow(f, conn, first);
}

START_TEST(a_blocking_call_in_between)
{
	int fd = rl_fd(client);

	fake_start(&fake, script_between);
	submit(0);
	check_simple();
	expect(RL_DENIED, 0, RL_SOURCE_SERVER, RL_REASON_RESOURCE);
	/* It took the other one in. */
	ck_assert_ptr_nonnull(client->done.first);
	ck_assert(readable(fd, 0));
	ck_assert_uint_eq(collect(), 0);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	submit(1);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	ck_assert(!readable(fd, 0));
	fake_let(&fake);
	ck_assert_uint_eq(collect(), 1);
	is_empty();
}
END_TEST

/* rl_interrupt() is for calls that block: what was submitted goes on. */
static void
script_interrupted(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t first = fake_read(f, conn, IPC_CHECK)->head.id;
	uint64_t blocking = fake_read(f, conn, IPC_CHECK)->head.id;

	rl_interrupt(client);
	ck_assert_uint_eq(fake_read(f, conn, IPC_CANCEL)->head.id, blocking);
	fake_allow(f, conn, first);
	fake_decide(f, conn, blocking, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
}

START_TEST(an_interrupt_in_between)
{
	fake_start(&fake, script_interrupted);
	submit(0);
	check_simple();
	expect_cancelled();
	ck_assert_uint_eq(collect(), 0);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	rl_interrupt(client);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EINTERRUPTED);
	is_empty();
}
END_TEST

/* A blocking call that times out leaves the connection to the others. */
static void
script_one_timeout(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_read(f, conn, IPC_PING);
	fake_hold(f);
	fake_allow(f, conn, f->seen[1].head.id);
}

START_TEST(a_timeout_in_between)
{
	fake_start(&fake, script_one_timeout);
	submit(0);
	ck_assert_int_eq(rl_ping(client, 1000, NULL), RL_ETIMEDOUT);
	fake_let(&fake);
	ck_assert_uint_eq(collect(), 0);
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	fake_join(&fake);
	ck_assert_int_eq(fake.conn_count, 1);
}
END_TEST

START_TEST(closed_with_all_of_it_under_way)
{
	uint64_t ticket;

	submit(0); /* in the queue */
	ticket = submit(1);
	ck_assert_int_eq(rl_cancel(client, ticket), RL_OK); /* done */
	fake_start(&fake, script_silent);
	collect();
	submit(2);
	collect_nothing_until_reached();
	reopen(RL_OPEN, 20000, 0);
	fake_let(&fake);
}
END_TEST

static Suite *
async_suite(void)
{
	Suite *s = suite_create("rlshim_async");
	TCase *tc = tcase_create("async");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, many_in_any_order);
	tcase_add_test(tc, before_the_agent_is_there);
	tcase_add_test(tc, adhoc_with_detail);
	tcase_add_test(tc, a_flood);
	tcase_add_test(tc, readable_exactly_then);
	tcase_add_test(tc, an_idle_connection_that_ends);
	tcase_add_test(tc, a_late_descriptor);
	tcase_add_test(tc, without_a_descriptor);
	tcase_add_test(tc, a_descriptor_closed_behind_its_back);
	tcase_add_test(tc, without_an_agent);
	tcase_add_test(tc, a_silent_agent);
	tcase_add_test(tc, timeouts_in_order);
	tcase_add_test(tc, max_inflight);
	tcase_add_test(tc, arguments_out_of_range);
	tcase_add_test(tc, cancelled_before_it_was_sent);
	tcase_add_test(tc, cancelled_when_it_was_sent);
	tcase_add_test(tc, a_flood_of_cancels);
	tcase_add_test(tc, a_blocking_call_in_between);
	tcase_add_test(tc, an_interrupt_in_between);
	tcase_add_test(tc, a_timeout_in_between);
	tcase_add_test(tc, closed_with_all_of_it_under_way);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(async_suite());
}
