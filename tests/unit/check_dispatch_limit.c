/*
 * The limiters of the host through a whole agent: who may call which, what is
 * wrong with a call, how waits grow, keys, and what a reload keeps.
 */
#include "daemon/core/ratelimiter.h"
#include "daemon/dispatch.h"
#include "tests/unit/agent_fixture.h"

#define S INT64_C(1000000)

/* A permit of slow takes 1000 s: how long the test takes does not matter. */
#define SLOW "\"permits_per_second\":0.001,\"max_keys\":3"
#define LIMITERS                                                   \
	",\"limiters\":{\"slow\":{" SLOW "},\"other\":{" SLOW "}," \
	"\"fast\":{\"permits_per_second\":1000000}},"              \
	"\"error_controls\":{\"smtp\":{\"burst\":2,"               \
	"\"min_delay_ms\":1000000,\"max_delay_ms\":3600000,"       \
	"\"max_keys\":2},\"none\":{\"burst\":0,"                   \
	"\"min_delay_ms\":3600000,\"max_delay_ms\":3600000}}"

static struct ipc_peer a, b, control;
static uint64_t last_id;

static const struct shape usual = {
    .listeners = ",\"narrow\":{\"path\":\"%s/n.sock\","
		 "\"limiters\":[\"s*\",\"gone-*\"],"
		 "\"error_controls\":[\"n*\",\"gone-*\"]}",
    .sections = LIMITERS,
};

static void
start(void)
{
	start_agent(&usual);
	join(&a, main_path);
	join(&control, control_path);
}

static void
stop(void)
{
	peer_close(&a);
	peer_close(&control);
	stop_agent();
}

static void
acquire(
    struct ipc_peer *p, uint32_t permits, const char *limiter, const char *key)
{
	peer_acquire(p, ++last_id, limiter, key, permits);
}

static void
try_acquire(struct ipc_peer *p, uint64_t max_wait_us, uint32_t permits,
    const char *limiter, const char *key)
{
	peer_try_acquire(p, ++last_id, limiter, key, permits, max_wait_us);
}

static void
error_begin(struct ipc_peer *p, const char *name, const char *key)
{
	peer_error_begin(p, ++last_id, name, key);
}

static void
error_success(struct ipc_peer *p, const char *name, const char *key)
{
	peer_error_success(p, ++last_id, name, key);
}

static void
set_rate(struct ipc_peer *p, uint64_t rate, const char *limiter)
{
	peer_set_rate(p, ++last_id, limiter, rate);
}

/* The wait of the DELAY that comes. */
static int64_t
delay(struct ipc_peer *p, uint64_t id, enum ipc_reason reason)
{
	next(p);
	ck_assert_uint_eq(reply.type, IPC_DELAY);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_msg(reply.number == reason, "%s: %s",
	    ipc_reason_name((enum ipc_reason)reply.number), reply.text);
	return (int64_t)reply.wait_us;
}

/* The answer to the last call: a wait that began during this test. */
static void
expect_wait(struct ipc_peer *p, enum ipc_reason reason, int64_t us)
{
	const int64_t wait = delay(p, last_id, reason);

	ck_assert_int_le(wait, us);
	ck_assert_int_ge(wait, us - (us > 0 ? LIMIT_US : 0));
}

static void
expect_granted(int64_t us)
{
	expect_wait(&a, IPC_REASON_OK, us);
	ck_assert_str_eq(reply.text, "");
}

static void
expect_refused(struct ipc_peer *p, enum ipc_reason reason, const char *text)
{
	ck_assert_int_eq(delay(p, last_id, reason), 0);
	ck_assert_str_eq(reply.text, text);
}

START_TEST(waits_grow)
{
	start();
	acquire(&a, 1, "slow", NULL);
	expect_granted(0);
	acquire(&a, 1, "slow", NULL);
	expect_granted(1000 * S);
	acquire(&a, 3, "slow", NULL);
	expect_granted(2000 * S);
	acquire(&a, RATELIMITER_MAX_PERMITS, "slow", NULL);
	expect_granted(5000 * S);
	acquire(&a, 1, "other", NULL); /* has nothing to do with it */
	expect_granted(0);
	ck_assert_uint_eq(counters()->limiter_calls, 5);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 0);
	ck_assert_uint_eq(counters()->checks, 0);
	/* Over a year is owed now. */
	acquire(&a, 1, "slow", NULL);
	expect_refused(
	    &a, IPC_REASON_OVERLOADED, "\"slow\" owes a wait of over a year");
	ck_assert_uint_eq(counters()->limiter_calls_failed, 1);
	stop();
}
END_TEST

START_TEST(a_try_that_would_wait_takes_nothing)
{
	start();
	try_acquire(&a, 0, 1, "slow", NULL);
	expect_granted(0);
	for (int i = 0; i < 2; i++) {
		try_acquire(&a, 0, 5, "slow", NULL);
		expect_wait(&a, IPC_REASON_RESOURCE, 1000 * S);
		try_acquire(&a, 900 * S, 5, "slow", NULL);
		expect_wait(&a, IPC_REASON_RESOURCE, 1000 * S);
	}
	try_acquire(&a, 1000 * S, 1, "slow", NULL);
	expect_granted(1000 * S);
	try_acquire(&a, RATELIMITER_MAX_WAIT_US, 1, "slow", NULL);
	expect_granted(2000 * S);
	ck_assert_uint_eq(counters()->limiter_calls, 7);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 0);
	stop();
}
END_TEST

/* An empty key is a key; what comes without the option is none. */
START_TEST(each_key_has_its_own)
{
	static const char *const keys[] = {NULL, "", "k", "kk"};

	start();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			acquire(&a, 1, "slow", keys[i]);
			expect_granted(round * 1000 * S);
		}
	}
	writer_u32(peer_begin(&a, IPC_ACQUIRE, ++last_id), 1);
	writer_u32(&a.w, 0);
	peer_str(&a, "slow");
	peer_str(&a, "ignored");
	peer_end(&a);
	expect_granted(2000 * S);
	/* Each of the three owes, so none makes room. */
	acquire(&a, 1, "slow", "one more");
	expect_refused(&a, IPC_REASON_OVERLOADED,
	    "every key of \"slow\" owes a wait (max_keys 3)");
	try_acquire(&a, 0, 1, "slow", "one more");
	expect_refused(&a, IPC_REASON_OVERLOADED,
	    "every key of \"slow\" owes a wait (max_keys 3)");
	acquire(&a, 1, "slow", "kk");
	expect_granted(2000 * S);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 2);
	stop();
}
END_TEST

START_TEST(what_is_wrong_with_an_acquire)
{
	start();
	acquire(&a, 0, "slow", NULL);
	expect_refused(
	    &a, IPC_REASON_VALIDATION, "permits: must be 1..1000000, not 0");
	acquire(&a, UINT32_MAX, "slow", NULL);
	expect_refused(&a, IPC_REASON_VALIDATION,
	    "permits: must be 1..1000000, not 4294967295");
	try_acquire(&a, 0, RATELIMITER_MAX_PERMITS + 1, "slow", NULL);
	expect_refused(&a, IPC_REASON_VALIDATION,
	    "permits: must be 1..1000000, not 1000001");
	try_acquire(&a, RATELIMITER_MAX_WAIT_US + 1, 1, "slow", NULL);
	expect_refused(&a, IPC_REASON_VALIDATION,
	    "max_wait_us: must be 0..31536000000000 (a year), "
	    "not 31536000000001");
	try_acquire(&a, UINT64_MAX, 1, "slow", NULL);
	ck_assert_int_eq(delay(&a, last_id, IPC_REASON_VALIDATION), 0);
	acquire(&a, 0, "mail", NULL);
	expect_refused(&a, IPC_REASON_UNKNOWN_RULE, "unknown limiter \"mail\"");
	acquire(&a, 1, "\xff\x1b[1m", NULL);
	expect_refused(
	    &a, IPC_REASON_UNKNOWN_RULE, "unknown limiter \"??[1m\"");
	error_begin(&a, "slow", NULL);
	expect_refused(
	    &a, IPC_REASON_UNKNOWN_RULE, "unknown error control \"slow\"");
	error_success(&a, "slow", NULL);
	expect_done(&a, last_id, IPC_REASON_UNKNOWN_RULE);
	ck_assert_str_eq(reply.text, "unknown error control \"slow\"");
	ck_assert_uint_eq(counters()->limiter_calls, 9);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 9);
	acquire(&a, 1, "slow", NULL); /* nothing was taken */
	expect_granted(0);
	stop();
}
END_TEST

/* Whether there is such a limiter is not told to who may not use it. */
START_TEST(who_may_call_what)
{
	static const char *const controls[] = {"smtp", "absent"};
	static const char *const limiters[] = {"fast", "nobody"};
	char path[96];

	start();
	snprintf(path, sizeof(path), "%s/n.sock", folder);
	join(&b, path);
	for (int i = 0; i < 2; i++) {
		acquire(&b, 0, limiters[i], NULL);
		expect_refused(&b, IPC_REASON_UNAUTHORISED,
		    "this listener does not offer the limiter");
		try_acquire(&b, 0, 1, limiters[i], NULL);
		expect_refused(&b, IPC_REASON_UNAUTHORISED,
		    "this listener does not offer the limiter");
		error_begin(&b, controls[i], NULL);
		expect_refused(&b, IPC_REASON_UNAUTHORISED,
		    "this listener does not offer the error control");
		error_success(&b, controls[i], NULL);
		expect_done(&b, last_id, IPC_REASON_UNAUTHORISED);
	}
	acquire(&b, 1, "gone-mail", NULL);
	expect_refused(
	    &b, IPC_REASON_UNKNOWN_RULE, "unknown limiter \"gone-mail\"");
	error_begin(&b, "gone-smtp", NULL);
	expect_refused(
	    &b, IPC_REASON_UNKNOWN_RULE, "unknown error control \"gone-smtp\"");
	acquire(&b, 1, "slow", NULL);
	expect_wait(&b, IPC_REASON_OK, 0);
	error_begin(&b, "none", NULL);
	expect_wait(&b, IPC_REASON_OK, 3600 * S);
	peer_close(&b);
	/* The control socket has no rights of applications. */
	acquire(&control, 1, "slow", NULL);
	expect_refused(&control, IPC_REASON_UNAUTHORISED,
	    "the control socket takes no acquires");
	error_begin(&control, "smtp", NULL);
	expect_refused(&control, IPC_REASON_UNAUTHORISED,
	    "the control socket takes no begins and successes");
	error_success(&control, "smtp", NULL);
	expect_done(&control, last_id, IPC_REASON_UNAUTHORISED);
	stop();
}
END_TEST

START_TEST(delays_double_and_queue)
{
	start();
	for (int i = 0; i < 2; i++) {
		error_begin(&a, "smtp", NULL);
		expect_granted(0);
	}
	error_begin(&a, "smtp", NULL);
	expect_granted(1000 * S);
	error_begin(&a, "smtp", NULL); /* after that one */
	expect_granted(3000 * S);
	error_begin(&a, "smtp", "k");
	expect_granted(0);
	error_success(&a, "smtp", NULL);
	expect_done(&a, last_id, IPC_REASON_OK);
	ck_assert_str_eq(reply.text, "");
	error_begin(&a, "smtp", NULL); /* the burst has one again */
	expect_granted(0);
	ck_assert_uint_eq(counters()->limiter_calls, 7);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 0);
	stop();
}
END_TEST

START_TEST(every_key_holds_a_delay)
{
	start();
	for (int i = 0; i < 3; i++) {
		error_begin(&a, "smtp", "k");
		expect_granted(i < 2 ? 0 : 1000 * S);
		error_begin(&a, "smtp", "");
		expect_granted(i < 2 ? 0 : 1000 * S);
	}
	error_begin(&a, "smtp", "one more");
	expect_refused(&a, IPC_REASON_OVERLOADED,
	    "every key of \"smtp\" holds a delay (max_keys 2)");
	/* Nothing to give back, and no room needed. */
	error_success(&a, "smtp", "one more");
	expect_done(&a, last_id, IPC_REASON_OK);
	ck_assert_uint_eq(counters()->limiter_calls_failed, 1);
	stop();
}
END_TEST

START_TEST(over_a_year_of_delays)
{
	start();
	for (int i = 0; i < 8760; i++) {
		error_begin(&a, "none", NULL);
		if (i % 64 == 63)
			settle();
		while (peer_take(&a, &reply))
			ck_assert_uint_eq(reply.type, IPC_DELAY);
	}
	expect_alive(&control, 1);
	do
		next(&a);
	while (reply.id != last_id);
	error_begin(&a, "none", NULL);
	expect_refused(
	    &a, IPC_REASON_OVERLOADED, "\"none\" owes a wait of over a year");
	stop();
}
END_TEST

START_TEST(another_rate)
{
	const uint64_t second = RATELIMITER_ONE;

	start();
	acquire(&a, 1, "slow", NULL);
	expect_granted(0);
	acquire(&a, 1, "slow", "k");
	expect_granted(0);
	set_rate(&control, second / 100, "slow");
	expect_done(&control, last_id, IPC_REASON_OK);
	/* What was taken before costs what it cost then. */
	acquire(&a, 1, "slow", NULL);
	expect_granted(1000 * S);
	acquire(&a, 1, "slow", NULL);
	expect_granted(1100 * S);
	acquire(&a, 1, "slow", "k");
	expect_granted(1000 * S);
	acquire(&a, 1, "slow", "k");
	expect_granted(1100 * S);
	acquire(&a, 1, "slow", "new");
	expect_granted(0);
	acquire(&a, 1, "slow", "new");
	expect_granted(100 * S);
	acquire(&a, 1, "other", NULL);
	expect_granted(0);
	acquire(&a, 1, "other", NULL);
	expect_granted(1000 * S);
	ck_assert_uint_eq(
	    counters()->limiter_calls, 10); /* no set-rate in it */
	stop();
}
END_TEST

START_TEST(what_is_wrong_with_a_rate)
{
	static const uint64_t rates[] = {
	    0, RATELIMITER_MIN_RATE - 1, RATELIMITER_MAX_RATE + 1, UINT64_MAX};

	start();
	set_rate(&a, RATELIMITER_ONE, "slow");
	expect_done(&a, last_id, IPC_REASON_UNAUTHORISED);
	ck_assert_str_eq(reply.text, "only on the control socket");
	set_rate(&control, 0, "mail");
	expect_done(&control, last_id, IPC_REASON_UNKNOWN_RULE);
	ck_assert_str_eq(reply.text, "unknown limiter \"mail\"");
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		set_rate(&control, rates[i], "slow");
		expect_done(&control, last_id, IPC_REASON_VALIDATION);
		ck_assert_str_eq(reply.text,
		    "rate: must be 0.001..1000000 permits a second");
	}
	set_rate(&control, RATELIMITER_MIN_RATE, "slow");
	expect_done(&control, last_id, IPC_REASON_OK);
	set_rate(&control, RATELIMITER_MAX_RATE, "slow");
	expect_done(&control, last_id, IPC_REASON_OK);
	stop();
}
END_TEST

/* In one write, answered in order. */
START_TEST(pipelined)
{
	static struct ipc_peer many;
	static uint8_t bytes[64 * 64];
	size_t len = 0;
	uint64_t first;

	start();
	join(&many, main_path);
	first = last_id + 1;
	for (int i = 0; i < 64; i++) {
		struct writer w;

		writer_init(&w, bytes + len, sizeof(bytes) - len);
		writer_u32(&w, IPC_HEAD_LEN + 16);
		writer_u16(&w, IPC_ACQUIRE);
		writer_u16(&w, 0);
		writer_u64(&w, ++last_id);
		writer_u32(&w, 1);
		writer_u32(&w, 0);
		writer_u16(&w, 4);
		writer_bytes(&w, "slow", 4);
		writer_u16(&w, 0);
		len += writer_len(&w);
	}
	ck_assert(peer_write(&many, bytes, len));
	for (int i = 0; i < 64; i++) {
		int64_t wait = delay(&many, first + (uint64_t)i, IPC_REASON_OK);

		ck_assert_int_le(wait, i * 1000 * S);
		ck_assert_int_ge(wait, i * 1000 * S - LIMIT_US);
	}
	peer_close(&many);
	stop();
}
END_TEST

/* It is no longer read from, the agent does not grow, and others go on. */
START_TEST(who_never_reads)
{
	unsigned int asked = 0;

	start();
	join(&b, main_path);
	writer_u32(peer_begin(&a, IPC_ACQUIRE, 1), 1);
	writer_u32(&a.w, 0);
	peer_str(&a, "fast");
	peer_str(&a, "");
	writer_patch_u32(&a.w, 0, (uint32_t)writer_len(&a.w));
	while (asked < 200000 && peer_write(&a, a.frame, writer_len(&a.w))) {
		asked++;
		if (asked % 256 == 0)
			settle();
	}
	ck_assert_uint_lt(asked, 200000); /* it was stopped */
	settle();
	ck_assert_uint_lt(counters()->limiter_calls, asked);
	acquire(&b, 1, "slow", NULL);
	expect_wait(&b, IPC_REASON_OK, 0);
	peer_close(&b);
	stop();
}
END_TEST

static bool
says(const char *text)
{
	return memmem(reply.payload, reply.len, text, strlen(text)) != NULL;
}

START_TEST(the_document)
{
	start();
	acquire(&a, 2, "slow", NULL);
	expect_granted(0);
	peer_empty(&a, IPC_LIMITERS, 1);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
	ck_assert(says("\"name\":\"slow\""));
	ck_assert(says("\"permits\":2,"));
	ck_assert(says("\"offered\":true"));
	ck_assert(!says("\"offered\":null"));
	peer_empty(&control, IPC_LIMITERS, 1);
	next(&control);
	ck_assert(says("\"permits\":2,"));
	ck_assert(says("\"offered\":null"));
	stop();
}
END_TEST

static void
follow(const struct shape *shape)
{
	struct config *config = make_config(shape);
	char err[AGENT_ERR_MAX];
	struct setup *s = agent_prepare(agent, config, err);

	ck_assert_msg(s != NULL, "%s", err);
	ck_assert_int_eq(agent_follow(agent, s, err), 0);
	config_unref(config);
	TURN_UNTIL(agent->retired == NULL);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_WELCOME);
}

START_TEST(what_a_reload_keeps)
{
	start();
	acquire(&a, 1, "slow", NULL);
	expect_granted(0);
	acquire(&a, 1, "slow", "k");
	expect_granted(0);
	for (int i = 0; i < 3; i++) {
		error_begin(&a, "smtp", NULL);
		expect_granted(i < 2 ? 0 : 1000 * S);
	}
	set_rate(&control, RATELIMITER_ONE / 100, "slow");
	expect_done(&control, last_id, IPC_REASON_OK);
	follow(&(struct shape){.limits = "\"max_inflight\":99",
	    .listeners = usual.listeners,
	    .sections = usual.sections});
	acquire(&a, 1, "slow", NULL);
	expect_granted(1000 * S);
	acquire(&a, 1, "slow", "k");
	expect_granted(1000 * S);
	acquire(&a, 1, "slow", NULL); /* at the rate that was set */
	expect_granted(1100 * S);
	error_begin(&a, "smtp", NULL);
	expect_granted(3000 * S);
	/* Another rate, and one that is gone. */
	follow(&(struct shape){
	    .sections =
		",\"limiters\":{\"slow\":{\"permits_per_second\":0.005}}"});
	acquire(&a, 1, "slow", NULL);
	expect_granted(1200 * S);
	acquire(&a, 1, "slow", NULL);
	expect_granted(1400 * S);
	acquire(&a, 1, "other", NULL);
	expect_refused(
	    &a, IPC_REASON_UNKNOWN_RULE, "unknown limiter \"other\"");
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_limit");
	TCase *tc = tcase_create("dispatch_limit");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, waits_grow);
	tcase_add_test(tc, a_try_that_would_wait_takes_nothing);
	tcase_add_test(tc, each_key_has_its_own);
	tcase_add_test(tc, what_is_wrong_with_an_acquire);
	tcase_add_test(tc, who_may_call_what);
	tcase_add_test(tc, delays_double_and_queue);
	tcase_add_test(tc, every_key_holds_a_delay);
	tcase_add_test(tc, over_a_year_of_delays);
	tcase_add_test(tc, another_rate);
	tcase_add_test(tc, what_is_wrong_with_a_rate);
	tcase_add_test(tc, pipelined);
	tcase_add_test(tc, who_never_reads);
	tcase_add_test(tc, the_document);
	tcase_add_test(tc, what_a_reload_keeps);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
