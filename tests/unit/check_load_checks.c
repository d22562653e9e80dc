/* What the agent may answer to a load: each outcome, in any order, what tells
 * that all is in vain, and what ends it. */
#include "client-shim/load.h"

#include "tests/unit/load_fixture.h"

static void
setup(void)
{
	fake_init(&fake);
}

static void
each_outcome(struct fake *f)
{
	const int conn = fake_greet(f);
	uint64_t ids[8];
	int i;

	for (i = 0; i < 8; i++)
		ids[i] = read_check(f, conn);
	fake_decide(f, conn, ids[7], IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	fake_decide(f, conn, ids[0], IPC_FAILED, true, IPC_SOURCE_LOCAL,
	    IPC_REASON_TIMEOUT);
	fake_decide(f, conn, ids[5], IPC_FAILED, true, IPC_SOURCE_POLICY,
	    IPC_REASON_TIMEOUT);
	fake_welcome(f, conn, 0); /* another configuration */
	fake_decide(f, conn, ids[1], IPC_FAILED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_UNKNOWN_RULE);
	fake_decide(f, conn, ids[6], IPC_DENIED, true, IPC_SOURCE_SHADOW,
	    IPC_REASON_GUARD);
	fake_deny(f, conn, ids[2]);
	fake_decide(f, conn, ids[4], IPC_ALLOWED, true, IPC_SOURCE_EMPTY,
	    IPC_REASON_OK);
	fake_allow(f, conn, ids[3]);
	ck_assert(fake_at_end(f, conn));
}

START_TEST(outcomes_in_any_order)
{
	const struct load_options o = load_options(1, 8);
	struct load *l = start_load(each_outcome, &o);
	const struct load_result *r = load_result(l);
	uint64_t reasons = 0;
	int i;

	ran(load_run(l, 8, 0, err));
	ck_assert_uint_eq(r->checks, 8);
	ck_assert_uint_eq(r->allowed, 2);
	ck_assert_uint_eq(r->denied, 2);
	ck_assert_uint_eq(r->failed, 3);
	ck_assert_uint_eq(r->cancelled, 1);
	ck_assert_uint_eq(r->permitted, 5);
	ck_assert_uint_eq(r->empty, 1);
	ck_assert_uint_eq(r->policy, 3);
	ck_assert_uint_eq(r->local, 1);
	ck_assert_uint_eq(r->shadow, 1);
	ck_assert_uint_eq(r->reasons[IPC_REASON_OK], 2);
	ck_assert_uint_eq(r->reasons[IPC_REASON_TIMEOUT], 2);
	ck_assert_uint_eq(r->reasons[IPC_REASON_RESOURCE], 1);
	ck_assert_uint_eq(r->reasons[IPC_REASON_GUARD], 1);
	ck_assert_uint_eq(r->reasons[IPC_REASON_UNKNOWN_RULE], 1);
	ck_assert_uint_eq(r->reasons[IPC_REASON_CANCELLED], 1);
	for (i = 0; i < LOAD_REASONS; i++)
		reasons += r->reasons[i];
	ck_assert_uint_eq(reasons, 8);
	end_load(l);
}
END_TEST

/* Failures. */

/* A decision with this outcome and reason, its text as long as it says. */
static void
fail_with(struct fake *f, int conn, enum ipc_outcome outcome,
    enum ipc_reason reason, struct ipc_str text)
{
	const struct ipc_decision d = {.outcome = (uint8_t)outcome,
	    .source = IPC_SOURCE_POLICY,
	    .reason = (uint8_t)reason,
	    .limit = ipc_text("its limit"),
	    .text = text};
	uint8_t buf[1024];
	struct writer w;

	writer_init(&w, buf, sizeof(buf));
	ck_assert_int_eq(ipc_enc_decision(&w, read_check(f, conn), &d), 0);
	fake_write(f, conn, buf, writer_len(&w));
}

static void
some_fail(struct fake *f)
{
	const int conn = fake_greet(f);

	fake_deny(f, conn, read_check(f, conn));
	fail_with(f, conn, IPC_CANCELLED, IPC_REASON_CANCELLED,
	    ipc_text("the \"first\""));
	fail_with(
	    f, conn, IPC_FAILED, IPC_REASON_TIMEOUT, ipc_text("the second"));
	fail_with(f, conn, IPC_FAILED, IPC_REASON_TIMEOUT, ipc_text(""));
	ck_assert(fake_at_end(f, conn));
}

START_TEST(the_first_failure)
{
	const struct load_options o = load_options(1, 1);
	struct load *l = start_load(some_fail, &o);

	ran(load_run(l, 1, 0, err));
	ck_assert_ptr_null(load_first_failure(l));
	ran(load_run(l, 2, 0, err));
	ck_assert_str_eq(load_first_failure(l), "the \"first\"");
	load_reset(l);
	ck_assert_ptr_null(load_first_failure(l));
	ran(load_run(l, 1, 0, err));
	ck_assert_str_eq(load_first_failure(l), "timeout");
	end_load(l);
}
END_TEST

/* Each of the reasons, then, if this is to be so, another one. */
static void
refuse_all(struct fake *f)
{
	static const enum ipc_reason reasons[] = {IPC_REASON_UNKNOWN_RULE,
	    IPC_REASON_VALIDATION, IPC_REASON_UNAUTHORISED};
	const int conn = fake_greet(f);
	int i;

	for (i = 0; i < 6 && !closed(f, conn); i++)
		fail_with(f, conn, IPC_FAILED,
		    i == 2 && f->hash != 0 ? IPC_REASON_TIMEOUT
					   : reasons[i % 3],
		    ipc_text("no"));
	ck_assert(fake_at_end(f, conn));
}

/* After as many as the window holds. What was asked by then is waited for: it
 * was answered one by one, so that is two more at most. */
START_TEST(refused_and_given_up)
{
	const struct load_options o = load_options(1, 3);
	struct load *l;

	fake.hash = (uint8_t)_i;
	l = start_load(refuse_all, &o);
	ran(load_run(l, _i == 0 ? 1000 : 6, 0, err));
	ck_assert_int_eq(load_result(l)->given_up, _i == 0);
	if (_i == 0)
		ck_assert_uint_lt(load_result(l)->checks, 6);
	else
		ck_assert_uint_eq(load_result(l)->checks, 6);
	ck_assert_uint_eq(load_result(l)->asked, load_result(l)->checks);
	end_load(l);
}
END_TEST

/* Ends. */

static void
refuse(struct fake *f)
{
	const int conn = fake_greet(f);

	fake_allow(f, conn, read_check(f, conn));
	fake_error(f, conn, read_check(f, conn), IPC_ERR_ID);
}

static void
go_away(struct fake *f)
{
	const int conn = fake_greet(f);
	const uint64_t id = read_check(f, conn);

	fake_go_away(f, conn, id);
}

static void
close_the_second(struct fake *f)
{
	(void)fake_greet(f);
	(void)fake_greet(f);
	(void)read_check(f, 0);
	(void)read_check(f, 1);
	fake_close(f, 1);
}

static void
close_in_a_frame(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];
	const size_t len = put_decision(buf, sizeof(buf), read_check(f, conn));

	fake_write(f, conn, buf, len / 2);
	fake_close(f, conn);
}

static void
say_nothing(struct fake *f)
{
	const int conn = fake_greet(f);

	(void)read_check(f, conn);
	ck_assert(fake_at_end(f, conn));
}

/* Until it has gone. What it is told is no answer. */
static void
greet_for_ever(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t byte;

	(void)read_check(f, conn);
	while (recv(f->conns[conn], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN)
		fake_welcome(f, conn, 1);
}

static void
delay(struct fake *f)
{
	const int conn = fake_greet(f);

	fake_delay(f, conn, read_check(f, conn), IPC_REASON_OK, 1);
}

static void
other_id(struct fake *f)
{
	const int conn = fake_greet(f);

	fake_allow(f, conn, read_check(f, conn) + (1 << 16));
}

static void
other_slot(struct fake *f)
{
	const int conn = fake_greet(f);

	fake_allow(f, conn, read_check(f, conn) + 1);
}

static void
no_id(struct fake *f)
{
	const int conn = fake_greet(f);

	(void)read_check(f, conn);
	fake_allow(f, conn, 0);
}

static void
twice(struct fake *f)
{
	const int conn = fake_greet(f);
	const uint64_t id = read_check(f, conn);

	fake_allow(f, conn, id);
	fake_allow(f, conn, id);
}

static void
wrong_length(struct fake *f)
{
	const int conn = fake_greet(f);
	static const uint8_t bytes[] = {15, 0, 0, 0};

	(void)read_check(f, conn);
	fake_write(f, conn, bytes, sizeof(bytes));
}

static void
pong_unasked(struct fake *f)
{
	const int conn = fake_greet(f);

	pong(f, conn, read_check(f, conn));
}

#define SILENCE "no answer of the agent for 50 ms"

static const struct {
	const char *name;
	void (*script)(struct fake *f);
	size_t connections;
	const char *want;
	uint64_t checks; /* answered until then */
} ends[] = {
    {"refused", refuse, 1, "the agent refuses: the fake's error", 1},
    {"go away", go_away, 1, "the agent ends, or sends this away: the fake goes",
	0},
    {"closed", close_the_second, 2, "the agent closed a connection", 0},
    {"half a frame", close_in_a_frame, 1, "the agent closed a connection", 0},
    {"silence", say_nothing, 1, SILENCE, 0},
    {"greetings", greet_for_ever, 1, SILENCE, 0},
    {"delay", delay, 1, "the agent sent a frame of type 0x8051", 0},
    {"other id", other_id, 1, "the agent decided what is not in flight", 0},
    {"other slot", other_slot, 1, "the agent decided what is not in flight", 0},
    {"no id", no_id, 1, "the agent decided what is not in flight", 0},
    {"twice", twice, 1, "the agent decided what is not in flight", 1},
    {"length", wrong_length, 1, "the agent sent no frame", 0},
    {"pong", pong_unasked, 1, "the agent answered no ping", 0},
};

START_TEST(what_ends_a_run)
{
	struct load_options o = load_options(ends[_i].connections, 1);
	struct load *l;

	if (strcmp(ends[_i].want, SILENCE) == 0)
		o.patience_ms = 50;
	l = start_load(ends[_i].script, &o);
	if (load_run(l, 10, 0, err) != -1 || strcmp(err, ends[_i].want) != 0)
		ck_abort_msg("%s: \"%s\"", ends[_i].name, err);
	ck_assert_uint_eq(load_result(l)->checks, ends[_i].checks);
	end_load(l);
}
END_TEST

/* In one piece, so that nothing new can have the slot in between. */
static void
first_twice(struct fake *f)
{
	const int conn = fake_greet(f);
	uint8_t buf[512];
	size_t len;

	len = put_decision(buf, sizeof(buf), read_check(f, conn));
	memcpy(buf + len, buf, len);
	(void)read_check(f, conn);
	fake_write(f, conn, buf, 2 * len);
}

START_TEST(one_twice_is_not_two)
{
	const struct load_options o = load_options(1, 2);
	struct load *l = start_load(first_twice, &o);

	failed_with(
	    load_run(l, 2, 0, err), "the agent decided what is not in flight");
	ck_assert_uint_eq(load_result(l)->checks, 1);
	end_load(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("load_checks");
	TCase *tc = tcase_create("load_checks");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, outcomes_in_any_order);
	tcase_add_test(tc, the_first_failure);
	tcase_add_loop_test(tc, refused_and_given_up, 0, 2);
	tcase_add_loop_test(
	    tc, what_ends_a_run, 0, (int)(sizeof(ends) / sizeof(ends[0])));
	tcase_add_test(tc, one_twice_is_not_two);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
