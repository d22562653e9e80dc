/*
 * The limiter calls of the shim against a scripted agent: what they ask, and
 * what they make of each answer, or of none. The waits are in
 * check_rlshim_limit_wait.c.
 */
#include "client-shim/rlshim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/rlshim_limit.h"

/* ---- what is asked ---- */

static struct ipc_try_acquire
seen_acquire(size_t n)
{
	struct ipc_try_acquire got = {0};
	struct reader r;

	ck_assert_uint_lt(n, fake.seen_count);
	reader_init(&r, fake.seen[n].payload, fake.seen[n].payload_len);
	if (fake.seen[n].head.type == IPC_TRY_ACQUIRE)
		ck_assert_int_eq(ipc_dec_try_acquire(&r, &got), 0);
	else
		ck_assert_int_eq(ipc_dec_acquire(&r, &got.acquire), 0);
	return got;
}

static void
same_key(uint32_t options, struct ipc_str got, const char *key, size_t len)
{
	ck_assert_uint_eq(options, key != NULL ? IPC_OPT_KEY : 0);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.bytes, key != NULL ? key : "", len);
}

static void
script_takes_four(struct fake *f)
{
	int i, conn = fake_greet(f);

	grant(f, conn, 0);
	grant(f, conn, 0);
	for (i = 0; i < 2; i++)
		answer(f, conn, IPC_TRY_ACQUIRE, IPC_REASON_OK, 0);
}

START_TEST(what_an_acquire_asks)
{
	const struct rl_acquire keyed = {.limiter = "mail",
	    .key = "a\0b",
	    .key_len = 3,
	    .permits = RL_MAX_PERMITS};
	const struct rl_acquire now = {
	    .limiter = "mail", .key = "", .no_longer = 1, .permits = 7};
	struct ipc_try_acquire got;

	fake_start(&fake, script_takes_four);
	acquire(&mail);
	expect_granted(0);
	acquire(&keyed);
	acquire(&now);
	acquire(&soon);
	expect_granted(0);
	fake_join(&fake);
	got = seen_acquire(1);
	ck_assert_uint_eq(got.acquire.permits, 1);
	ck_assert_uint_eq(got.acquire.limiter.len, 4);
	ck_assert_mem_eq(got.acquire.limiter.bytes, "mail", 4);
	same_key(got.acquire.options, got.acquire.key, NULL, 0);
	got = seen_acquire(2);
	ck_assert_uint_eq(got.acquire.permits, 1000000);
	same_key(got.acquire.options, got.acquire.key, "a\0b", 3);
	got = seen_acquire(3);
	ck_assert_uint_eq(got.max_wait_us, 0);
	ck_assert_uint_eq(got.acquire.permits, 7);
	same_key(got.acquire.options, got.acquire.key, "", 0);
	got = seen_acquire(4);
	ck_assert_uint_eq(got.max_wait_us, 30000);
	same_key(got.acquire.options, got.acquire.key, NULL, 0);
}
END_TEST

static void
expect_error(size_t n, enum ipc_type type, const char *key, size_t key_len)
{
	struct ipc_error_control got;
	struct reader r;

	ck_assert_uint_lt(n, fake.seen_count);
	ck_assert_uint_eq(fake.seen[n].head.type, type);
	reader_init(&r, fake.seen[n].payload, fake.seen[n].payload_len);
	ck_assert_int_eq(ipc_dec_error_control(&r, &got), 0);
	ck_assert_uint_eq(got.control.len, 4);
	ck_assert_mem_eq(got.control.bytes, "smtp", 4);
	same_key(got.options, got.key, key, key_len);
}

static void
script_error_control(struct fake *f)
{
	int conn = fake_greet(f);

	answer(f, conn, IPC_ERROR_BEGIN, IPC_REASON_OK, 0);
	answer(f, conn, IPC_ERROR_BEGIN, IPC_REASON_OK, 20000);
	fake_done(f, conn, fake_read(f, conn, IPC_ERROR_SUCCESS)->head.id,
	    IPC_REASON_OK, "");
	fake_done(f, conn, fake_read(f, conn, IPC_ERROR_SUCCESS)->head.id,
	    IPC_REASON_UNKNOWN_RULE, "no error control smtp");
	answer(f, conn, IPC_ERROR_BEGIN, IPC_REASON_UNKNOWN_RULE, 0);
}

START_TEST(an_error_control)
{
	const struct rl_error_control keyed = {
	    .control = "smtp", .key = "mx\0", .key_len = 3};

	fake_start(&fake, script_error_control);
	error_begin();
	expect_granted(0);
	ck_assert_int_eq(rl_error_begin(client, &keyed, &decision), RL_OK);
	expect_granted(20000);
	ck_assert_int_eq(rl_error_success(client, &keyed), RL_OK);
	ck_assert_int_eq(rl_error_success(client, &smtp), RL_EREFUSED);
	ck_assert_str_eq(
	    rl_last_text(client), "unknown-rule: no error control smtp");
	error_begin();
	expect_failed(RL_REASON_UNKNOWN_RULE, 0);
	fake_join(&fake);
	expect_error(1, IPC_ERROR_BEGIN, NULL, 0);
	expect_error(2, IPC_ERROR_BEGIN, "mx\0", 3);
	expect_error(3, IPC_ERROR_SUCCESS, "mx\0", 3);
	expect_error(4, IPC_ERROR_SUCCESS, NULL, 0);
}
END_TEST

/* ---- refused ---- */

static const struct {
	uint64_t wait_us;
	uint32_t retry_after_ms;
} refusals[] = {{30001, 31}, {31000, 31}, {1, 1}, {0, 0}, {999, 1}, {1001, 2},
    {UINT64_C(4294967295000), UINT32_MAX},
    {UINT64_C(4294967295001), UINT32_MAX}, {YEAR_US, UINT32_MAX},
    {UINT64_MAX, UINT32_MAX}};

#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static void
script_refuses(struct fake *f)
{
	int conn = fake_greet(f);
	size_t i;

	for (i = 0; i < REFUSALS; i++)
		answer(f, conn, IPC_TRY_ACQUIRE, IPC_REASON_RESOURCE,
		    refusals[i].wait_us);
}

START_TEST(refused)
{
	size_t i;

	fake_start(&fake, script_refuses);
	for (i = 0; i < REFUSALS; i++) {
		acquire(&soon);
		expect(RL_DENIED, 0, RL_SOURCE_LOCAL, RL_REASON_RESOURCE);
		ck_assert_int_eq(decision.by_agent, 1);
		ck_assert_uint_eq(decision.wait_us, refusals[i].wait_us);
		ck_assert_uint_eq(
		    decision.retry_after_ms, refusals[i].retry_after_ms);
		ck_assert_str_eq(decision.limit, "mail");
		ck_assert_uint_eq(decision.limit_len, 4);
		ck_assert_str_eq(decision.text, "the fake said so");
		ck_assert_uint_gt(decision.elapsed_us, 0);
	}
}
END_TEST

/* ---- failed ---- */

static void
script_fails(struct fake *f)
{
	int turn, conn;
	unsigned reason;

	for (turn = 0; turn < 2; turn++) {
		conn = fake_greet(f);
		for (reason = IPC_REASON_GUARD; reason <= IPC_REASON_CANCELLED;
		     reason++)
			answer(f, conn, IPC_ACQUIRE, (enum ipc_reason)reason,
			    YEAR_US);
	}
}

/* All that is neither granted nor refused; the request's own fault never
 * permits. */
static void
expect_failures(int permit)
{
	unsigned i;

	for (i = RL_REASON_GUARD; i <= RL_REASON_CANCELLED; i++) {
		acquire(&mail);
		expect_failed((enum rl_reason)i,
		    i != RL_REASON_VALIDATION && i != RL_REASON_UNKNOWN_RULE &&
			    i != RL_REASON_UNAUTHORISED
			? permit
			: 0);
		ck_assert_int_eq(decision.by_agent, 1);
		ck_assert_str_eq(decision.text, "the fake said so");
		ck_assert_uint_eq(decision.wait_us, 0);
		ck_assert_uint_eq(decision.retry_after_ms, 0);
		ck_assert_uint_eq(decision.limit_len, 0);
	}
}

START_TEST(failed)
{
	fake_start(&fake, script_fails);
	expect_failures(1);
	rl_close(client);
	open_client(RL_CLOSED, 20000);
	expect_failures(0);
}
END_TEST

/* Late answers are skipped. */
static void
script_answers_late(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t late;

	grant(f, conn, 0);
	late = fake_read(f, conn, IPC_ACQUIRE)->head.id;
	fake_hold(f);
	fake_delay(f, conn, late, IPC_REASON_DRAINING, 0);
	grant(f, conn, 0);
}

START_TEST(no_answer)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 100};

	fake_start(&fake, script_answers_late);
	acquire(&mail);
	acquire(&hasty);
	/* Unless the machine is too slow to have written it in time. */
	if (decision.reason != RL_REASON_UNAVAILABLE) {
		expect_failed(RL_REASON_TIMEOUT, 1);
		ck_assert_uint_ge(decision.elapsed_us, 100000);
	}
	ck_assert_int_eq(decision.by_agent, 0);
	fake_let(&fake);
	acquire(&mail);
	if (decision.reason == RL_REASON_DRAINING)
		acquire(&mail);
	expect_granted(0);
}
END_TEST

START_TEST(no_agent)
{
	const struct rl_acquire hasty = {.limiter = "mail", .timeout_ms = 5};
	const struct rl_error_control slow = {
	    .control = "smtp", .timeout_ms = 5};

	acquire(&hasty);
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_uint_ge(decision.elapsed_us, 5000);
	ck_assert_ptr_nonnull(strstr(decision.text, fake.path));
	ck_assert_int_eq(rl_error_success(client, &slow), RL_EUNAVAILABLE);
	ck_assert_int_eq(rl_set_rate(client, "mail", 10, 5), RL_EUNAVAILABLE);
	rl_close(client);
	open_client(RL_CLOSED, 5);
	error_begin();
	expect_failed(RL_REASON_UNAVAILABLE, 0);
}
END_TEST

/* ---- answers that are none ---- */

static const struct fault {
	enum ipc_type asked, type;
	uint16_t reason;
	uint64_t wait_us;
	size_t len; /* of the payload, which is of 14 bytes */
	const char *words;
} faults[] = {
    {IPC_ACQUIRE, IPC_DELAY, 0, YEAR_US + 1, 14, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 0, UINT64_MAX, 14, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 15, 0, 14, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 0x100, 0, 14, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 0, 0, 13, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 0, 0, 15, "malformed delay frame"},
    {IPC_ACQUIRE, IPC_DELAY, 1, 5, 14, "a delay that is refused"},
    {IPC_ERROR_BEGIN, IPC_DELAY, 1, 5, 14, "a delay that is refused"},
    {IPC_TRY_ACQUIRE, IPC_DELAY, 0, 30001, 14, "a delay that is too long"},
    {IPC_ACQUIRE, IPC_DONE, 0, 0, 14, "an answer of a wrong type"},
    {IPC_ERROR_SUCCESS, IPC_DELAY, 0, 0, 14, "an answer of a wrong type"},
    {IPC_SET_RATE, IPC_DELAY, 0, 0, 14, "an answer of a wrong type"},
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static void
script_faults(struct fake *f)
{
	uint8_t buf[64];
	struct writer w;
	size_t i;
	int conn;

	for (i = 0; i < FAULTS; i++) {
		conn = fake_greet(f);
		writer_init(&w, buf, sizeof(buf));
		writer_u32(&w, (uint32_t)(IPC_HEAD_LEN + faults[i].len));
		writer_u16(&w, (uint16_t)faults[i].type);
		writer_u16(&w, 0);
		writer_u64(&w, fake_read(f, conn, faults[i].asked)->head.id);
		writer_u16(&w, faults[i].reason);
		writer_u16(&w, 0);
		writer_u64(&w, faults[i].wait_us);
		writer_u32(&w, 0); /* an empty text, and two bytes */
		fake_write(f, conn, buf, IPC_HEAD_LEN + faults[i].len);
		ck_assert(fake_at_end(f, conn));
		fake_close(f, conn);
	}
}

START_TEST(faults_of_the_agent)
{
	size_t i;

	fake_start(&fake, script_faults);
	for (i = 0; i < FAULTS; i++) {
		if (faults[i].asked == IPC_ERROR_SUCCESS) {
			ck_assert_int_eq(
			    rl_error_success(client, &smtp), RL_EPROTO);
		} else if (faults[i].asked == IPC_SET_RATE) {
			ck_assert_int_eq(
			    rl_set_rate(client, "mail", 1, 0), RL_EPROTO);
		} else {
			if (faults[i].asked == IPC_ERROR_BEGIN)
				error_begin();
			else
				acquire(faults[i].asked == IPC_ACQUIRE ? &mail
								       : &soon);
			expect_failed(RL_REASON_INTERRUPTED, 1);
		}
		ck_assert_msg(
		    strstr(rl_last_text(client), faults[i].words) != NULL,
		    "%zu: %s", i, rl_last_text(client));
	}
}
END_TEST

/* ---- another rate ---- */

static const struct {
	double rate;
	uint64_t units;
} rates[] = {
    {10, UINT64_C(10000000000000)},
    {0.001, UINT64_C(1000000000)},
    {1000000, UINT64_C(1000000000000000000)},
    {0.1, UINT64_C(100000000000)},
    {1.0 / 3, UINT64_C(333333333333)},
    {2.0 / 3, UINT64_C(666666666667)},
    {0.0010000000006, UINT64_C(1000000001)},
    {0.0010000000004, UINT64_C(1000000000)},
    {4503.599627370497, UINT64_C(4503599627370497)}, /* 2^52 and 1 */
    {700000.1, UINT64_C(700000100000000000)},
};

#define RATES (sizeof(rates) / sizeof(rates[0]))

static void
script_set_rates(struct fake *f)
{
	int conn = fake_greet(f);
	size_t i;

	for (i = 0; i < RATES; i++)
		fake_done(f, conn, fake_read(f, conn, IPC_SET_RATE)->head.id,
		    IPC_REASON_OK, "");
	fake_done(f, conn, fake_read(f, conn, IPC_SET_RATE)->head.id,
	    IPC_REASON_UNAUTHORISED, "only on the control socket");
}

START_TEST(set_rates)
{
	struct ipc_set_rate got;
	struct reader r;
	size_t i;

	fake_start(&fake, script_set_rates);
	for (i = 0; i < RATES; i++)
		ck_assert_int_eq(
		    rl_set_rate(client, "mail", rates[i].rate, 0), RL_OK);
	ck_assert_int_eq(rl_set_rate(client, "mail", 10, 0), RL_EREFUSED);
	ck_assert_str_eq(
	    rl_last_text(client), "unauthorised: only on the control socket");
	fake_join(&fake);
	for (i = 0; i < RATES; i++) {
		reader_init(
		    &r, fake.seen[1 + i].payload, fake.seen[1 + i].payload_len);
		ck_assert_int_eq(ipc_dec_set_rate(&r, &got), 0);
		ck_assert_uint_eq(got.rate, rates[i].units);
		ck_assert_uint_eq(got.limiter.len, 4);
		ck_assert_mem_eq(got.limiter.bytes, "mail", 4);
	}
}
END_TEST

/* ---- the document ---- */

static void
script_limiters(struct fake *f)
{
	int conn = fake_greet(f);

	fake_document(f, conn, fake_read(f, conn, IPC_LIMITERS)->head.id,
	    "{\"limiters\": []}", false);
}

START_TEST(the_document)
{
	char *json;

	fake_start(&fake, script_limiters);
	ck_assert_int_eq(rl_query(client, "limiters", 0, &json), RL_OK);
	ck_assert_str_eq(json, "{\"limiters\": []}");
	free(json);
}
END_TEST

static Suite *
limit_suite(void)
{
	Suite *s = suite_create("rlshim_limit");
	TCase *tc = tcase_create("limit");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, what_an_acquire_asks);
	tcase_add_test(tc, an_error_control);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, failed);
	tcase_add_test(tc, no_answer);
	tcase_add_test(tc, no_agent);
	tcase_add_test(tc, faults_of_the_agent);
	tcase_add_test(tc, set_rates);
	tcase_add_test(tc, the_document);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(limit_suite());
}
