/*
 * Guarded work against a scripted agent: rl_admit(), rl_begin(), rl_finish()
 * and rl_submit_finish(). A latency is reported exactly once, and only of
 * work that an agent permitted.
 */
#include "client-shim/rlshim.h"

#include <string.h>

#include "tests/unit/rlshim_fixture.h"

static struct rl_work work;

static void
admit(void)
{
	ck_assert_int_eq(
	    rl_admit(client, &simple, &decision, NULL, &work), RL_OK);
}

/* What the agent got as its nth message; key NULL: none. */
static void
expect_report(size_t n, const char *key, size_t key_len)
{
	struct ipc_report_rule got;
	struct reader r;

	ck_assert_uint_lt(n, fake.seen_count);
	ck_assert_uint_eq(fake.seen[n].head.type, IPC_REPORT_RULE);
	reader_init(&r, fake.seen[n].payload, fake.seen[n].payload_len);
	ck_assert_int_eq(ipc_dec_report_rule(&r, &got), 0);
	ck_assert_uint_lt(got.latency_ms, 60000);
	ck_assert_uint_eq(got.options, key != NULL ? IPC_OPT_KEY : 0);
	ck_assert_uint_eq(got.rule.len, 8);
	ck_assert_mem_eq(got.rule.bytes, "checkout", 8);
	ck_assert_uint_eq(got.key.len, key_len);
	ck_assert_mem_eq(got.key.bytes, key != NULL ? key : "", key_len);
}

/* For scripts: reads a report and takes it. */
static void
take(struct fake *f, int conn)
{
	fake_reported(f, conn, fake_read(f, conn, IPC_REPORT_RULE)->head.id,
	    IPC_REASON_OK);
}

/* For scripts: nothing was reported, what comes is a WAIT. */
static void
only_wait(struct fake *f, int conn)
{
	fake_done(
	    f, conn, fake_read(f, conn, IPC_WAIT)->head.id, IPC_REASON_OK, "");
}

/* ---- what is reported ---- */

static void
script_once(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	take(f, conn);
	only_wait(f, conn);
	serve(f, conn);
	take(f, conn);
	serve(f, conn);
	take(f, conn);
}

START_TEST(reported_once)
{
	char rule[] = "checkout", key[] = {'a', 0, 'b'};
	struct rl_check check = {.rule = rule, .key = key, .key_len = 3};

	fake_start(&fake, script_once);
	admit();
	expect(RL_ALLOWED, 1, RL_SOURCE_SERVER, RL_REASON_OK);
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	ck_assert_int_eq(rl_finish(client, &work), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), "work: it was reported before");
	ck_assert_int_eq(rl_submit_finish(client, &work), RL_EINVAL);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	/* It holds copies. */
	ck_assert_int_eq(
	    rl_admit(client, &check, &decision, NULL, &work), RL_OK);
	memset(rule, 'x', sizeof(rule));
	memset(key, 'x', sizeof(key));
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	/* An empty key is one. */
	memcpy(rule, "checkout", 9);
	check.key_len = 0;
	ck_assert_int_eq(
	    rl_admit(client, &check, &decision, NULL, &work), RL_OK);
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	fake_join(&fake);
	expect_report(2, NULL, 0);
	expect_report(5, "a\0b", 3);
	expect_report(7, "", 0);
}
END_TEST

/* In milliseconds, rounded, from the decision on. */
static void
script_takes_one(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	take(f, conn);
}

START_TEST(the_latency)
{
	struct ipc_report_rule got;
	struct reader r;

	fake_start(&fake, script_takes_one);
	admit();
	work.begun_us -= 1234500;
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	fake_join(&fake);
	reader_init(&r, fake.seen[2].payload, fake.seen[2].payload_len);
	ck_assert_int_eq(ipc_dec_report_rule(&r, &got), 0);
	ck_assert_uint_ge(got.latency_ms, 1235);
	ck_assert_uint_lt(got.latency_ms, 60000);
}
END_TEST

/* Whoever in the agent permitted it: the work ran. */
static void
script_permits(struct fake *f)
{
	int conn = fake_greet(f);

	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_FAILED,
	    true, IPC_SOURCE_POLICY, IPC_REASON_TIMEOUT);
	take(f, conn);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_FAILED,
	    true, IPC_SOURCE_LOCAL, IPC_REASON_DISCOVERY);
	take(f, conn);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_DENIED,
	    true, IPC_SOURCE_SHADOW, IPC_REASON_GUARD);
	take(f, conn);
}

START_TEST(permitted_by_the_agents_policy)
{
	int i;

	fake_start(&fake, script_permits);
	for (i = 0; i < 3; i++) {
		admit();
		ck_assert_int_eq(decision.permit, 1);
		ck_assert_int_eq(decision.by_agent, 1);
		ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	}
}
END_TEST

/* ---- what is not ---- */

static void
script_permits_nothing(struct fake *f)
{
	int conn = fake_greet(f);

	fake_deny(f, conn, fake_read(f, conn, IPC_CHECK)->head.id);
	only_wait(f, conn);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id,
	    IPC_CANCELLED, false, IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
	only_wait(f, conn);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_FAILED,
	    false, IPC_SOURCE_POLICY, IPC_REASON_TIMEOUT);
	only_wait(f, conn);
}

START_TEST(not_permitted)
{
	int i;

	fake_start(&fake, script_permits_nothing);
	for (i = 0; i < 3; i++) {
		admit();
		ck_assert_int_eq(decision.permit, 0);
		ck_assert_int_eq(rl_finish(client, &work), RL_OK);
		ck_assert_int_eq(rl_finish(client, &work), RL_OK);
		ck_assert_int_eq(rl_submit_finish(client, &work), RL_OK);
		ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	}
}
END_TEST

/* This library permitted it, since no agent could. */
static void
script_keeps_silent(struct fake *f)
{
	int conn = fake_greet(f);

	fake_read(f, conn, IPC_CHECK);
	fake_read(f, conn, IPC_CANCEL);
	only_wait(f, conn);
}

START_TEST(permitted_by_the_library)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 5};

	ck_assert_int_eq(
	    rl_admit(client, &hasty, &decision, NULL, &work), RL_OK);
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	/* A report would wait for an agent. */
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	fake_start(&fake, script_keeps_silent);
	hasty.timeout_ms = 1000;
	ck_assert_int_eq(
	    rl_admit(client, &hasty, &decision, NULL, &work), RL_OK);
	expect_failed(RL_REASON_TIMEOUT, 1);
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
}
END_TEST

START_TEST(interrupted)
{
	rl_interrupt(client);
	admit();
	expect_cancelled();
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
}
END_TEST

static void
script_loses(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_read(f, conn, IPC_REPORT_RULE);
	fake_close(f, conn);
	conn = fake_greet(f);
	only_wait(f, conn);
	serve(f, conn);
	fake_reported(f, conn, fake_read(f, conn, IPC_REPORT_RULE)->head.id,
	    IPC_REASON_UNKNOWN_RULE);
}

/* A lost sample is better than a doubled one. */
START_TEST(lost_or_refused)
{
	fake_start(&fake, script_loses);
	admit();
	ck_assert_int_eq(rl_finish(client, &work), RL_EUNAVAILABLE);
	ck_assert_int_eq(rl_finish(client, &work), RL_EINVAL);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	admit();
	ck_assert_int_eq(rl_finish(client, &work), RL_EREFUSED);
	ck_assert_str_eq(rl_last_text(client), "unknown-rule");
	ck_assert_int_eq(rl_finish(client, &work), RL_EINVAL);
}
END_TEST

/* ---- arguments ---- */

START_TEST(arguments)
{
	struct rl_resource resource = {"a", 1, 1000, 5, 1};
	struct rl_check adhoc = {.resources = &resource, .resource_count = 1};

	ck_assert_int_eq(
	    rl_admit(client, &adhoc, &decision, NULL, &work), RL_EINVAL);
	expect_failed(RL_REASON_VALIDATION, 0);
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
	ck_assert_int_eq(
	    rl_admit(client, NULL, &decision, NULL, &work), RL_EINVAL);
	expect_failed(RL_REASON_VALIDATION, 0);
	ck_assert_int_eq(
	    rl_admit(client, &simple, &decision, NULL, NULL), RL_EINVAL);
	expect_failed(RL_REASON_VALIDATION, 0);
	ck_assert_int_eq(
	    rl_admit(client, &simple, NULL, NULL, &work), RL_EINVAL);
	ck_assert_int_eq(rl_finish(client, NULL), RL_EINVAL);
	ck_assert_int_eq(rl_submit_finish(client, NULL), RL_EINVAL);
	/* An ad-hoc check has no rule to report for. */
	decision = (struct rl_decision){.permit = 1, .by_agent = 1};
	rl_begin(&work, &adhoc, &decision);
	ck_assert_int_eq(rl_finish(client, &work), RL_OK);
}
END_TEST

/* ---- the asynchronous form ---- */

static void
script_async(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	fake_read(f, conn, IPC_REPORT_RULE);
	fake_reached(f);
	serve(f, conn);
	fake_reported(
	    f, conn, f->seen[f->seen_count - 2].head.id, IPC_REASON_OK);
	only_wait(f, conn);
}

START_TEST(submitted)
{
	fake_start(&fake, script_async);
	submit(7);
	ck_assert_uint_eq(collect(), 7);
	rl_begin(&work, &simple, &decision);
	ck_assert_int_eq(rl_submit_finish(client, &work), RL_OK);
	ck_assert_int_eq(rl_submit_finish(client, &work), RL_EINVAL);
	ck_assert_int_eq(rl_finish(client, &work), RL_EINVAL);
	fake_await(&fake);
	/* It takes no place from the checks, and is never collected. */
	submit(8);
	ck_assert_uint_eq(collect(), 8);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	fake_join(&fake);
	expect_report(2, NULL, 0);
}
END_TEST

/* Without an agent they are bounded, and forgotten in time. */
START_TEST(submitted_without_an_agent)
{
	struct rl_options options = {
	    .socket = fake.path, .timeout_ms = 50, .max_inflight = 2};
	int i, fd;

	rl_close(client);
	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
	fd = rl_fd(client);
	decision = (struct rl_decision){.permit = 1, .by_agent = 1};
	for (i = 0; i < 2; i++) {
		rl_begin(&work, &simple, &decision);
		ck_assert_int_eq(rl_submit_finish(client, &work), RL_OK);
	}
	rl_begin(&work, &simple, &decision);
	ck_assert_int_eq(rl_submit_finish(client, &work), RL_ENOMEM);
	submit(0);
	ck_assert_uint_eq(collect(), 0);
	while (readable(fd, 0))
		ck_assert_int_eq(rl_collect(client, &completion), 0);
	ck_assert_int_eq(rl_collect(client, &completion), 0);
	rl_begin(&work, &simple, &decision);
	ck_assert_int_eq(rl_submit_finish(client, &work), RL_OK);
}
END_TEST

static Suite *
work_suite(void)
{
	Suite *s = suite_create("rlshim_work");
	TCase *tc = tcase_create("work");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, reported_once);
	tcase_add_test(tc, the_latency);
	tcase_add_test(tc, permitted_by_the_agents_policy);
	tcase_add_test(tc, not_permitted);
	tcase_add_test(tc, permitted_by_the_library);
	tcase_add_test(tc, interrupted);
	tcase_add_test(tc, lost_or_refused);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, submitted);
	tcase_add_test(tc, submitted_without_an_agent);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(work_suite());
}
