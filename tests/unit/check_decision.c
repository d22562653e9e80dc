/*
 * Every row of the one exit path: outcome, reason and policy to permit and
 * source; which limit is named; what a detail holds.
 */
#include "daemon/decision.h"

#include <string.h>

#include "tests/unit/harness.h"

static struct ipc_decision d;
static struct rules_request names;
static struct tenant_result res;
static struct tenant_block guards[PDU_MAX_GUARDS];
static struct tenant_block resources[PDU_MAX_RESOURCES];

static struct ipc_str
str(const char *text)
{
	return (struct ipc_str){
	    .bytes = (const uint8_t *)text, .len = (uint16_t)strlen(text)};
}

static bool
is(const struct ipc_str *s, const char *text)
{
	return s->len == strlen(text) && memcmp(s->bytes, text, s->len) == 0;
}

/* Whatever was in it before must not shine through. */
static void
dirty(void)
{
	memset(&d, 0xA5, sizeof(d));
}

static void
expect(enum ipc_outcome outcome, bool permit, enum ipc_source source,
    enum ipc_reason reason)
{
	ck_assert_uint_eq(d.outcome, outcome);
	ck_assert_uint_eq(d.permit, permit);
	ck_assert_uint_eq(d.source, source);
	ck_assert_uint_eq(d.reason, reason);
}

static void
expect_no_server(void)
{
	ck_assert_uint_eq(d.has, 0);
	ck_assert_uint_eq(d.server_id, 0);
	ck_assert_uint_eq(d.round, 0);
	ck_assert_uint_eq(d.retry_after_ms, 0);
	ck_assert_uint_eq(d.limit.len, 0);
	ck_assert_uint_eq(d.guard_count, 0);
	ck_assert_uint_eq(d.resource_count, 0);
}

/* By the design: these and no other reasons are for the failure policy. */
static const struct {
	enum ipc_reason reason;
	bool policy;
} reasons[] = {
    {IPC_REASON_OK, false},
    {IPC_REASON_RESOURCE, false},
    {IPC_REASON_GUARD, false},
    {IPC_REASON_RESOURCE_GUARD, false},
    {IPC_REASON_VALIDATION, false},
    {IPC_REASON_UNKNOWN_RULE, false},
    {IPC_REASON_UNAUTHORISED, false},
    {IPC_REASON_DISCOVERY, true},
    {IPC_REASON_TRANSPORT, true},
    {IPC_REASON_TIMEOUT, true},
    {IPC_REASON_OVERLOADED, true},
    {IPC_REASON_DRAINING, true},
    {IPC_REASON_INTERRUPTED, true},
    {IPC_REASON_UNAVAILABLE, false},
    {IPC_REASON_CANCELLED, false},
};
#define REASONS ((int)(sizeof(reasons) / sizeof(*reasons)))

START_TEST(failed)
{
	const enum ipc_reason reason = reasons[_i].reason;
	const bool policy = reasons[_i].policy;

	ck_assert_int_eq(reason, _i); /* none is missing */
	ck_assert_int_eq(decision_policy_applies(reason), policy);
	dirty();
	decision_failed(&d, reason, FAILURE_OPEN, "why");
	expect(IPC_FAILED, policy, IPC_SOURCE_POLICY, reason);
	expect_no_server();
	ck_assert(is(&d.text, "why"));
	dirty();
	decision_failed(&d, reason, FAILURE_CLOSED, "");
	expect(IPC_FAILED, false, IPC_SOURCE_POLICY, reason);
	ck_assert_uint_eq(d.text.len, 0);
	dirty();
	decision_failed(&d, reason, FAILURE_LOCAL, "");
	expect(IPC_FAILED, policy, IPC_SOURCE_POLICY, reason);
}
END_TEST

START_TEST(a_local_limiter_decides)
{
	static const struct {
		int64_t wait_us;
		uint32_t retry_ms;
	} rows[] = {{0, 0}, {1, 1}, {1000, 1}, {1001, 2},
	    {INT64_C(4294967295000), UINT32_MAX},
	    {INT64_C(4294967295001), UINT32_MAX},
	    {INT64_C(31536000000000), UINT32_MAX}};
	char room[DECISION_TEXT_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		dirty();
		decision_failed(
		    &d, IPC_REASON_TIMEOUT, FAILURE_LOCAL, "no answer");
		decision_local(&d, false, rows[i].wait_us, room);
		expect(IPC_FAILED, false, IPC_SOURCE_LOCAL, IPC_REASON_TIMEOUT);
		ck_assert_uint_eq(d.retry_after_ms, rows[i].retry_ms);
		ck_assert(is(&d.text, "no answer; the local limiter refuses"));
	}
	decision_watch_only(&d);
	expect(IPC_FAILED, true, IPC_SOURCE_SHADOW, IPC_REASON_TIMEOUT);
	ck_assert_uint_eq(d.retry_after_ms, UINT32_MAX);
	dirty();
	decision_failed(&d, IPC_REASON_DISCOVERY, FAILURE_LOCAL, "none");
	decision_local(&d, true, 0, room);
	expect(IPC_FAILED, true, IPC_SOURCE_LOCAL, IPC_REASON_DISCOVERY);
	expect_no_server();
	ck_assert(is(&d.text, "none; the local limiter permits"));
	decision_watch_only(&d); /* nothing is refused */
	expect(IPC_FAILED, true, IPC_SOURCE_LOCAL, IPC_REASON_DISCOVERY);
}
END_TEST

/* What the failure policy would refuse; never what is wrong. */
START_TEST(a_rule_that_watches_a_failure)
{
	const enum ipc_reason reason = reasons[_i].reason;
	const bool policy = reasons[_i].policy;

	decision_failed(&d, reason, FAILURE_CLOSED, "why");
	decision_watch_only(&d);
	expect(IPC_FAILED, policy,
	    policy ? IPC_SOURCE_SHADOW : IPC_SOURCE_POLICY, reason);
	ck_assert(is(&d.text, "why"));
	decision_failed(&d, reason, FAILURE_OPEN, "");
	decision_watch_only(&d);
	expect(IPC_FAILED, policy, IPC_SOURCE_POLICY, reason);
}
END_TEST

START_TEST(a_rule_that_watches_nothing_refused)
{
	decision_empty(&d);
	decision_watch_only(&d);
	expect(IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK);
	decision_cancelled(&d);
	decision_watch_only(&d);
	expect(IPC_CANCELLED, false, IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
}
END_TEST

START_TEST(no_reason_after_the_last)
{
	ck_assert_str_eq(ipc_reason_name((enum ipc_reason)REASONS), "unknown");
	ck_assert(!decision_policy_applies((enum ipc_reason)REASONS));
}
END_TEST

START_TEST(a_long_text_fits_the_message)
{
	static char text[2 * IPC_MAX_TEXT], room[DECISION_TEXT_MAX];

	memset(text, 'x', sizeof(text) - 1);
	decision_failed(&d, IPC_REASON_TIMEOUT, FAILURE_OPEN, text);
	ck_assert_uint_eq(d.text.len, IPC_MAX_TEXT);
	decision_local(&d, false, 1, room);
	ck_assert_uint_eq(d.text.len, IPC_MAX_TEXT);
}
END_TEST

START_TEST(empty)
{
	dirty();
	decision_empty(&d);
	expect(IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK);
	expect_no_server();
	ck_assert_uint_eq(d.text.len, 0);
}
END_TEST

START_TEST(cancelled_never_permits)
{
	dirty();
	decision_cancelled(&d);
	expect(IPC_CANCELLED, false, IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
	expect_no_server();
	ck_assert_uint_eq(d.text.len, 0);
}
END_TEST

/* Two guards and three resources, all passing. */
static void
make_result(void)
{
	static const char *const buckets[] = {"minute", "hour", "day"};

	memset(&names, 0, sizeof(names));
	memset(&res, 0, sizeof(res));
	names.rate.guard_count = res.guard_count = 2;
	names.rate.resource_count = res.resource_count = 3;
	names.guard_names[0] = str("db");
	names.guard_names[1] = str("disk");
	guards[0] = (struct tenant_block){.first = 100, .second = 99};
	guards[1] = (struct tenant_block){.first = 200, .second = 0};
	for (unsigned int i = 0; i < 3; i++) {
		names.resource_names[i] = str(buckets[i]);
		names.rate.resources[i] = (struct pdu_resource){
		    .window_ms = 1000 * (i + 1),
		    .limit = 10,
		    .tokens = (uint16_t)(i + 1),
		};
		resources[i] = (struct tenant_block){.first = 4 + i};
	}
	res.end = POLICY_SELECTED;
	res.round = 3;
	res.server_id = UINT64_MAX - 1;
	res.guards = guards;
	res.resources = resources;
	res.guards_pass = res.resources_pass = true;
}

static void
selected(bool detail)
{
	dirty();
	decision_selected(&d, &res, &names, detail);
	ck_assert_uint_eq(d.has & IPC_HAS_SERVER, IPC_HAS_SERVER);
	ck_assert_uint_eq(d.server_id, UINT64_MAX - 1);
	ck_assert_uint_eq(d.round, 3);
	ck_assert_uint_eq(d.text.len, 0);
	ck_assert_int_eq((d.has & IPC_HAS_DETAIL) != 0, detail);
}

START_TEST(allowed)
{
	make_result();
	selected(false);
	expect(IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(d.limit.len, 0);
	ck_assert_uint_eq(d.retry_after_ms, 0);
	ck_assert_uint_eq(d.guard_count, 0);
	ck_assert_uint_eq(d.resource_count, 0);
	dirty();
	decision_selected(&d, &res, NULL, true); /* without names: no detail */
	expect(IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(d.has, IPC_HAS_SERVER);
}
END_TEST

/* What denied, the limit that must be named, and when to come again. */
START_TEST(denied)
{
	static const struct {
		uint32_t deficits[3];
		uint32_t currents[2];
		enum ipc_reason reason;
		const char *limit;
		uint32_t retry_ms;
	} rows[] = {
	    {{1, 0, 0}, {0, 0}, IPC_REASON_RESOURCE, "minute", 100},
	    {{0, 0, 2}, {0, 0}, IPC_REASON_RESOURCE, "day", 600},
	    /* The first is named, the largest is waited for. */
	    {{1, 1, 1}, {0, 0}, IPC_REASON_RESOURCE, "minute", 300},
	    {{9, 1, 0}, {0, 0}, IPC_REASON_RESOURCE, "minute", 900},
	    /* After a window without traffic all is there. */
	    {{11, 1, 0}, {0, 0}, IPC_REASON_RESOURCE, "minute", 1000},
	    {{0, 3, 0}, {500, 500}, IPC_REASON_RESOURCE_GUARD, "hour", 600},
	    {{0, 0, 0}, {100, 0}, IPC_REASON_GUARD, "db", 0},
	    {{0, 0, 0}, {99, 200}, IPC_REASON_GUARD, "disk", 0},
	    {{0, 0, 0}, {100, 200}, IPC_REASON_GUARD, "db", 0},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		make_result();
		for (unsigned int k = 0; k < 3; k++) {
			resources[k].second = rows[i].deficits[k];
			if (resources[k].second != 0)
				res.resources_pass = false;
		}
		for (unsigned int k = 0; k < 2; k++) {
			guards[k].second = rows[i].currents[k];
			if (guards[k].second >= guards[k].first)
				res.guards_pass = false;
		}
		selected(i % 2 == 0);
		expect(IPC_DENIED, false, IPC_SOURCE_SERVER, rows[i].reason);
		ck_assert_msg(is(&d.limit, rows[i].limit), "row %u: limit", i);
		ck_assert_uint_eq(d.retry_after_ms, rows[i].retry_ms);
		decision_selected(&d, &res, NULL, true);
		expect(IPC_DENIED, false, IPC_SOURCE_SERVER, rows[i].reason);
		ck_assert_uint_eq(d.limit.len, 0);
	}
}
END_TEST

/* The rate in the window says more than the deficit. */
START_TEST(the_wait_is_for_the_rate_too)
{
	make_result();
	resources[1].first = 12; /* with 2 tokens 4 over the limit of 10 */
	resources[1].second = 1;
	res.resources_pass = false;
	selected(false);
	ck_assert_uint_eq(d.retry_after_ms, 800);
}
END_TEST

START_TEST(the_wait_does_not_overflow)
{
	make_result();
	names.rate.resources[1].window_ms = UINT32_MAX;
	names.rate.resources[1].limit = 1;
	names.rate.resources[1].tokens = 1;
	resources[1].first = UINT32_MAX;
	resources[1].second = 65535;
	res.resources_pass = false;
	selected(false);
	ck_assert_uint_eq(d.retry_after_ms, UINT32_MAX);
}
END_TEST

/* No estimate for what can never be granted, whatever else is short. */
START_TEST(more_than_the_limit)
{
	make_result();
	names.rate.resources[0].limit = 10;
	names.rate.resources[0].tokens = 11;
	resources[0].second = 1;
	resources[1].second = 1;
	res.resources_pass = false;
	decision_selected(&d, &res, &names, false);
	ck_assert_uint_eq(d.outcome, IPC_DENIED);
	ck_assert_uint_eq(d.retry_after_ms, 0);
	ck_assert_uint_gt(d.text.len, 0);
}
END_TEST

START_TEST(detail)
{
	make_result();
	resources[2].second = 7;
	res.resources_pass = false;
	guards[0].second = 100;
	res.guards_pass = false;
	selected(true);
	ck_assert_uint_eq(d.guard_count, 2);
	ck_assert(is(&d.guards[0].name, "db"));
	ck_assert_uint_eq(d.guards[0].below_ms, 100);
	ck_assert_uint_eq(d.guards[0].current_ms, 100);
	ck_assert_uint_eq(d.guards[0].passed, 0);
	ck_assert(is(&d.guards[1].name, "disk"));
	ck_assert_uint_eq(d.guards[1].passed, 1);
	ck_assert_uint_eq(d.resource_count, 3);
	for (unsigned int i = 0; i < 3; i++) {
		ck_assert_uint_eq(d.resources[i].window_ms, 1000 * (i + 1));
		ck_assert_uint_eq(d.resources[i].limit, 10);
		ck_assert_uint_eq(d.resources[i].tokens, i + 1);
		ck_assert_uint_eq(d.resources[i].actual_rate, 4 + i);
		ck_assert_uint_eq(d.resources[i].deficit, i == 2 ? 7 : 0);
	}
	ck_assert(is(&d.resources[2].name, "day"));
}
END_TEST

/* The most blocks that there can be, with the longest names and text. */
START_TEST(the_largest_detail_is_encoded)
{
	static uint8_t frame[IPC_MAX_FRAME];
	static char name[IPC_MAX_NAME + 1], text[IPC_MAX_TEXT + 1];
	struct writer w;

	memset(name, 'n', IPC_MAX_NAME);
	memset(text, 't', IPC_MAX_TEXT);
	make_result();
	res.guard_count = 0;
	res.resource_count = PDU_MAX_BLOCKS;
	for (unsigned int i = 0; i < PDU_MAX_BLOCKS; i++)
		names.resource_names[i] = str(name);
	resources[0].second = 1;
	res.resources_pass = false;
	selected(true);
	ck_assert_uint_eq(d.resource_count, PDU_MAX_BLOCKS);
	d.text = str(text);
	d.elapsed_us = 0;
	writer_init(&w, frame, sizeof(frame));
	ck_assert_int_eq(ipc_enc_decision(&w, 1, &d), 0);
	ck_assert_uint_gt(writer_len(&w), 11000);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("decision");
	TCase *tc = tcase_create("decision");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, failed, 0, REASONS);
	tcase_add_test(tc, a_local_limiter_decides);
	tcase_add_loop_test(tc, a_rule_that_watches_a_failure, 0, REASONS);
	tcase_add_test(tc, a_rule_that_watches_nothing_refused);
	tcase_add_test(tc, no_reason_after_the_last);
	tcase_add_test(tc, a_long_text_fits_the_message);
	tcase_add_test(tc, empty);
	tcase_add_test(tc, cancelled_never_permits);
	tcase_add_test(tc, allowed);
	tcase_add_test(tc, denied);
	tcase_add_test(tc, the_wait_is_for_the_rate_too);
	tcase_add_test(tc, the_wait_does_not_overflow);
	tcase_add_test(tc, more_than_the_limit);
	tcase_add_test(tc, detail);
	tcase_add_test(tc, the_largest_detail_is_encoded);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
