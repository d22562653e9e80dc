/*
 * From a decision to an HTTP answer: every outcome, source and reason has its
 * status, its fields and its line, and what is not known is not said.
 */
#include "daemon/gateway_answer.h"

#include <string.h>

#include "tests/unit/harness.h"

#define DENY 418

static struct gateway_answer a;
static struct config_resource resource = {
    .bucket = "bucket:{key}", .window_ms = 1000, .limit = 5, .tokens = 1};
static struct config_rule rule = {
    .name = "r", .resource_count = 1, .resources = &resource};

static const char *
field(const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; i < a.is.field_count; i++) {
		if (strcmp(a.is.fields[i].name, name) != 0)
			continue;
		ck_assert_ptr_null(found);
		found = a.is.fields[i].value;
	}
	return found;
}

static void
expect(const char *name, const char *value)
{
	const char *is = field(name);

	ck_assert_msg(
	    value == NULL ? is == NULL : is != NULL && strcmp(is, value) == 0,
	    "%s: %s, not %s", name, is, value);
}

static void
expect_line(const char *line)
{
	ck_assert_uint_eq(a.is.len, strlen(line));
	ck_assert_mem_eq(a.is.body, line, a.is.len);
}

static struct ipc_decision
decision(enum ipc_outcome outcome, bool permit, enum ipc_source source,
    enum ipc_reason reason)
{
	return (struct ipc_decision){
	    .outcome = (uint8_t)outcome,
	    .permit = permit,
	    .source = (uint8_t)source,
	    .reason = (uint8_t)reason,
	    .limit = ipc_text("bucket:42"),
	    .text = ipc_text("10.0.0.1 did not answer"),
	};
}

START_TEST(test_statuses)
{
	static const struct {
		enum ipc_outcome outcome;
		bool permit;
		enum ipc_source source;
		enum ipc_reason reason;
		unsigned int status;
		const char *line;
	} cases[] = {
	    {IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK, 200,
		"allowed\n"},
	    {IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK, 200,
		"allowed\n"},
	    {IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE, DENY,
		"denied: resource\n"},
	    {IPC_DENIED, true, IPC_SOURCE_SHADOW, IPC_REASON_GUARD, 200,
		"denied: guard\n"},
	    {IPC_FAILED, true, IPC_SOURCE_POLICY, IPC_REASON_TIMEOUT, 200,
		"failed: timeout\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_TIMEOUT, 503,
		"failed: timeout\n"},
	    {IPC_FAILED, false, IPC_SOURCE_LOCAL, IPC_REASON_DISCOVERY, 503,
		"failed: discovery\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_TRANSPORT, 503,
		"failed: transport\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_OVERLOADED, 503,
		"failed: overloaded\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_DRAINING, 503,
		"failed: draining\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_VALIDATION, 400,
		"failed: validation: 10.0.0.1 did not answer\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_UNAUTHORISED, 403,
		"failed: unauthorised: 10.0.0.1 did not answer\n"},
	    {IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_UNKNOWN_RULE, 404,
		"failed: unknown-rule: 10.0.0.1 did not answer\n"},
	    {IPC_CANCELLED, false, IPC_SOURCE_POLICY, IPC_REASON_CANCELLED, 503,
		"cancelled: cancelled\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ipc_decision d = decision(cases[i].outcome,
		    cases[i].permit, cases[i].source, cases[i].reason);

		gateway_answer_decision(&a, &rule, &d, DENY);
		ck_assert_uint_eq(a.is.status, cases[i].status);
		expect_line(cases[i].line);
		expect(
		    "RateLimitly-Outcome", ipc_outcome_name(cases[i].outcome));
		expect("RateLimitly-Source", ipc_source_name(cases[i].source));
		expect("RateLimitly-Reason",
		    cases[i].reason == IPC_REASON_OK
			? NULL
			: ipc_reason_name(cases[i].reason));
		expect("RateLimit-Policy", "\"r.0\";q=5;w=1");
		expect("RateLimit", NULL);
		expect("Retry-After", NULL);
		expect("Cache-Control", "no-store");
		expect("Content-Type", "text/plain; charset=utf-8");
		ck_assert(!a.is.last);
	}
}
END_TEST

START_TEST(test_what_is_known)
{
	struct ipc_decision d =
	    decision(IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);

	d.retry_after_ms = 1001;
	d.has = IPC_HAS_DETAIL;
	d.resource_count = 1;
	d.resources[0] = (struct ipc_resource_result){.window_ms = 5005,
	    .limit = 5,
	    .tokens = 1,
	    .deficit = 1,
	    .actual_rate = 5};
	gateway_answer_decision(&a, &rule, &d, DENY);
	expect("Retry-After", "2");
	expect("RateLimit", "\"r.0\";r=0;t=2");
	/* A rule that only watches keeps nobody waiting. */
	d.permit = true;
	gateway_answer_decision(&a, &rule, &d, DENY);
	expect("Retry-After", NULL);
	expect("RateLimit", "\"r.0\";r=0;t=2");
	/* Of a rule that is not known there is nothing to tell. */
	d = decision(IPC_FAILED, false, IPC_SOURCE_LOCAL, IPC_REASON_TIMEOUT);
	d.retry_after_ms = 1;
	gateway_answer_decision(&a, NULL, &d, DENY);
	expect("RateLimit-Policy", NULL);
	expect("Retry-After", "1");
}
END_TEST

/* Header and line stay what they are. */
START_TEST(test_hostile_text)
{
	struct ipc_decision d = decision(
	    IPC_FAILED, false, IPC_SOURCE_POLICY, IPC_REASON_UNKNOWN_RULE);
	char text[IPC_MAX_TEXT + 1];

	d.text = ipc_text("a\r\nSet-Cookie: b");
	gateway_answer_decision(&a, NULL, &d, DENY);
	ck_assert_ptr_null(memchr(a.is.body, '\r', a.is.len));
	ck_assert_ptr_eq(
	    memchr(a.is.body, '\n', a.is.len), a.is.body + a.is.len - 1);
	memset(text, 'x', IPC_MAX_TEXT);
	text[IPC_MAX_TEXT] = '\0';
	d.text = ipc_text(text);
	gateway_answer_decision(&a, NULL, &d, DENY);
	ck_assert_int_eq(a.is.body[a.is.len - 1], '\n');
	ck_assert_uint_gt(a.is.len, IPC_MAX_TEXT);
}
END_TEST

START_TEST(test_documents)
{
	gateway_answer_document(&a, "text/x", "some\ntext\n");
	ck_assert_uint_eq(a.is.status, 200);
	expect("Content-Type", "text/x");
	expect("Cache-Control", "no-store");
	expect_line("some\ntext\n");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("gateway_answer");
	TCase *tc = tcase_create("answer");

	tcase_add_test(tc, test_statuses);
	tcase_add_test(tc, test_what_is_known);
	tcase_add_test(tc, test_hostile_text);
	tcase_add_test(tc, test_documents);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
