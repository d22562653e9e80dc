/*
 * What the shim refuses by itself: every argument out of its range ends in
 * RL_EINVAL, what decides also in Failed (validation), with a text that begins
 * with the name of the argument. Nobody listens here, so a call that tried
 * to connect would not come back in time.
 */
#include "client-shim/rlshim.h"

#include <math.h>
#include <string.h>

#include "tests/unit/harness.h"

static struct rl_client *client;
static struct rl_decision decision;
static const struct rl_check simple = {.rule = "checkout"};

static void
begin(void)
{
	struct rl_options options = {
	    .socket = "/nonexistent/agent.sock", .timeout_ms = 300000};

	ck_assert_int_eq(rl_open(&client, &options), RL_OK);
}

static void
end(void)
{
	rl_close(client);
}

static char too_long[258];
static struct rl_resource resource, resources[RL_MAX_RESOURCES + 1];
static struct rl_guard guard, guards[RL_MAX_GUARDS + 1];

/* The check is refused with a text that begins so, and nothing is sent. */
static void
refused(const struct rl_check *check, const char *prefix)
{
	memset(&decision, 0xFF, sizeof(decision));
	ck_assert_int_eq(rl_check(client, check, &decision, NULL), RL_EINVAL);
	ck_assert_int_eq(decision.outcome, RL_FAILED);
	ck_assert_int_eq(decision.reason, RL_REASON_VALIDATION);
	ck_assert_int_eq(decision.source, RL_SOURCE_POLICY);
	ck_assert_int_eq(decision.permit, 0);
	ck_assert_str_eq(rl_last_text(client), decision.text);
	ck_assert_msg(strncmp(decision.text, prefix, strlen(prefix)) == 0,
	    "\"%s\" does not begin with \"%s\"", decision.text, prefix);
}

static void
resource_refused(struct rl_resource bad, const char *prefix)
{
	struct rl_check check = {.resources = &resource, .resource_count = 1};

	resource = bad;
	refused(&check, prefix);
}

START_TEST(checks_out_of_range)
{
	memset(too_long, 'x', sizeof(too_long) - 1);
	refused(NULL, "check");
	ck_assert_int_eq(rl_check(client, &simple, NULL, NULL), RL_EINVAL);
	refused(&(struct rl_check){.rule = ""}, "rule");
	refused(&(struct rl_check){.rule = too_long + 1}, "rule");
	refused(&(struct rl_check){.rule = "r", .tokens = 65536}, "tokens");
	refused(
	    &(struct rl_check){.rule = "r", .key = too_long, .key_len = 256},
	    "key");
	refused(&(struct rl_check){.rule = "r", .key_len = 1}, "key");
	refused(&(struct rl_check){.rule = "r", .tenant = "main"}, "tenant");
	refused(&(struct rl_check){.rule = "r", .label = ""}, "tenant, label");
	refused(&(struct rl_check){.key = "k", .key_len = 1}, "key");
	refused(&(struct rl_check){.tenant = too_long + 1}, "tenant");
	refused(&(struct rl_check){.label = too_long}, "label");
	refused(&(struct rl_check){.resource_count = 1}, "resources");
	refused(&(struct rl_check){.guard_count = 1}, "guards");
	refused(&(struct rl_check){.resources = resources,
		    .resource_count = RL_MAX_RESOURCES + 1},
	    "resource_count");
	refused(&(struct rl_check){.guards = guards,
		    .guard_count = RL_MAX_GUARDS + 1},
	    "guard_count");
}
END_TEST

START_TEST(parts_out_of_range)
{
	struct rl_check check = {.guards = guards, .guard_count = 2};
	size_t i;

	memset(too_long, 'x', sizeof(too_long) - 1);
	resource_refused(
	    (struct rl_resource){NULL, 1, 1, 1, 1}, "resources[0].bucket");
	resource_refused(
	    (struct rl_resource){"b", 0, 1, 1, 1}, "resources[0].bucket");
	resource_refused((struct rl_resource){too_long, 256, 1, 1, 1},
	    "resources[0].bucket");
	resource_refused(
	    (struct rl_resource){"b", 1, 0, 1, 1}, "resources[0].window_ms");
	resource_refused(
	    (struct rl_resource){"b", 1, 1, 0, 1}, "resources[0].limit");
	resource_refused(
	    (struct rl_resource){"b", 1, 1, 1, 0}, "resources[0].tokens");
	resource_refused(
	    (struct rl_resource){"b", 1, 1, 1, 65536}, "resources[0].tokens");
	guards[0] = (struct rl_guard){.tracker = "t", .tracker_len = 1};
	guards[1] = (struct rl_guard){.tracker = "t", .tracker_len = 256};
	refused(&check, "guards[1].tracker");
	/* Each within its range, but a frame holds not all of them. */
	for (i = 0; i < RL_MAX_GUARDS; i++)
		guards[i] = (struct rl_guard){
		    .tracker = too_long, .tracker_len = RL_NAME_MAX};
	for (i = 0; i < RL_MAX_RESOURCES; i++)
		resources[i] =
		    (struct rl_resource){too_long, RL_NAME_MAX, 1, 1, 1};
	check = (struct rl_check){.guards = guards,
	    .guard_count = RL_MAX_GUARDS,
	    .resources = resources,
	    .resource_count = RL_MAX_RESOURCES};
	refused(&check, "resources, guards");
}
END_TEST

static void
report_refused(const char *tenant, const char *tracker, const char *key,
    size_t key_len, const char *text)
{
	ck_assert_int_eq(
	    rl_report(client, tenant, tracker, key, key_len, 1), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), text);
}

START_TEST(reports_out_of_range)
{
	memset(too_long, 'x', sizeof(too_long) - 1);
	guard = (struct rl_guard){.tracker = "t", .tracker_len = 0};
	report_refused(NULL, NULL, NULL, 0, "tracker: 1 to 255 bytes");
	report_refused(NULL, "", NULL, 0, "tracker: 1 to 255 bytes");
	report_refused(NULL, too_long, NULL, 0, "tracker: 1 to 255 bytes");
	report_refused(too_long, "t", NULL, 0, "tenant: at most 255 bytes");
	report_refused(NULL, "t", too_long, 256, "key: at most 255 bytes");
	report_refused(NULL, "t", NULL, 1, "key: NULL, but key_len is not 0");
	ck_assert_int_eq(rl_report_adhoc(client, NULL, NULL, 1), RL_EINVAL);
	ck_assert_int_eq(rl_report_adhoc(client, NULL, &guard, 1), RL_EINVAL);
	guard.tracker_len = 256;
	ck_assert_int_eq(rl_report_adhoc(client, NULL, &guard, 1), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), "tracker: 1 to 255 bytes");
}
END_TEST

/* The same of an acquire, of which nothing is submitted either. */
static void
acquire_refused(struct rl_acquire bad, const char *text)
{
	memset(&decision, 0xFF, sizeof(decision));
	ck_assert_int_eq(rl_acquire(client, &bad, &decision), RL_EINVAL);
	ck_assert_int_eq(decision.outcome, RL_FAILED);
	ck_assert_int_eq(decision.reason, RL_REASON_VALIDATION);
	ck_assert_int_eq(decision.source, RL_SOURCE_POLICY);
	ck_assert_int_eq(decision.permit, 0);
	ck_assert_uint_eq(decision.wait_us, 0);
	ck_assert_str_eq(decision.text, text);
	ck_assert_str_eq(rl_last_text(client), text);
	ck_assert_int_eq(rl_ping(client, 1, NULL), RL_EUNAVAILABLE);
	ck_assert_int_eq(
	    rl_submit_acquire(client, &bad, NULL, NULL), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), text);
}

START_TEST(acquires_out_of_range)
{
	const uint64_t year = UINT64_C(31536000000000);

	memset(too_long, 'x', sizeof(too_long) - 1);
	acquire_refused(
	    (struct rl_acquire){.permits = 1}, "limiter: 1 to 255 bytes");
	acquire_refused(
	    (struct rl_acquire){.limiter = ""}, "limiter: 1 to 255 bytes");
	acquire_refused((struct rl_acquire){.limiter = too_long + 1},
	    "limiter: 1 to 255 bytes");
	acquire_refused((struct rl_acquire){.limiter = "m", .permits = 1000001},
	    "permits: at most 1000000");
	acquire_refused((struct rl_acquire){.limiter = "m", .key_len = 1},
	    "key: NULL, but key_len is not 0");
	acquire_refused(
	    (struct rl_acquire){
		.limiter = "m", .key = too_long, .key_len = 256},
	    "key: at most 255 bytes");
	acquire_refused(
	    (struct rl_acquire){
		.limiter = "m", .no_longer = 1, .max_wait_us = year + 1},
	    "max_wait_us: at most 31536000000000");
	acquire_refused((struct rl_acquire){.limiter = "m", .max_wait_us = 1},
	    "max_wait_us: only with no_longer");
	ck_assert_int_eq(rl_acquire(client, NULL, &decision), RL_EINVAL);
	ck_assert_str_eq(decision.text, "acquire: NULL");
	ck_assert_int_eq(
	    rl_submit_acquire(client, NULL, NULL, NULL), RL_EINVAL);
	ck_assert_int_eq(
	    rl_acquire(client, &(struct rl_acquire){.limiter = "m"}, NULL),
	    RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), "decision: NULL");
}
END_TEST

/* What is just within its range is asked: nobody is there to answer. */
START_TEST(acquires_within_their_range)
{
	struct rl_acquire acquire = {.limiter = too_long + 2,
	    .key = too_long + 2,
	    .key_len = RL_NAME_MAX,
	    .permits = RL_MAX_PERMITS,
	    .no_longer = 1,
	    .max_wait_us = UINT64_C(31536000000000),
	    .timeout_ms = 1};

	memset(too_long, 'x', sizeof(too_long) - 1);
	ck_assert_int_eq(rl_acquire(client, &acquire, &decision), RL_OK);
	ck_assert_int_eq(decision.reason, RL_REASON_UNAVAILABLE);
}
END_TEST

static void
control_refused(const struct rl_error_control *bad, const char *text)
{
	memset(&decision, 0xFF, sizeof(decision));
	ck_assert_int_eq(rl_error_begin(client, bad, &decision), RL_EINVAL);
	ck_assert_int_eq(decision.outcome, RL_FAILED);
	ck_assert_int_eq(decision.reason, RL_REASON_VALIDATION);
	ck_assert_int_eq(decision.permit, 0);
	ck_assert_str_eq(decision.text, text);
	ck_assert_int_eq(rl_error_success(client, bad), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), text);
	ck_assert_int_eq(
	    rl_submit_error_begin(client, bad, NULL, NULL), RL_EINVAL);
	ck_assert_int_eq(rl_submit_error_success(client, bad), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), text);
}

START_TEST(error_controls_out_of_range)
{
	memset(too_long, 'x', sizeof(too_long) - 1);
	control_refused(NULL, "control: NULL");
	control_refused(
	    &(struct rl_error_control){0}, "control: 1 to 255 bytes");
	control_refused(&(struct rl_error_control){.control = ""},
	    "control: 1 to 255 bytes");
	control_refused(&(struct rl_error_control){.control = too_long + 1},
	    "control: 1 to 255 bytes");
	control_refused(
	    &(struct rl_error_control){
		.control = "s", .key = too_long, .key_len = 256},
	    "key: at most 255 bytes");
	control_refused(
	    &(struct rl_error_control){.control = "s", .key_len = 1},
	    "key: NULL, but key_len is not 0");
	ck_assert_int_eq(rl_error_begin(client,
			     &(struct rl_error_control){.control = "s"}, NULL),
	    RL_EINVAL);
}
END_TEST

static void
rate_refused(const char *limiter, double rate, const char *text)
{
	ck_assert_int_eq(rl_set_rate(client, limiter, rate, 0), RL_EINVAL);
	ck_assert_str_eq(rl_last_text(client), text);
}

START_TEST(rates_out_of_range)
{
	static const char range[] = "permits_per_second: 0.001 to 1000000";

	memset(too_long, 'x', sizeof(too_long) - 1);
	rate_refused("m", NAN, range);
	rate_refused("m", -NAN, range);
	rate_refused("m", INFINITY, range);
	rate_refused("m", -INFINITY, range);
	rate_refused("m", 0, range);
	rate_refused("m", -1, range);
	rate_refused("m", 0.00099999999, range);
	rate_refused("m", 1000000.0001, range);
	rate_refused("m", 1e300, range);
	rate_refused(NULL, 1, "limiter: 1 to 255 bytes");
	rate_refused("", 1, "limiter: 1 to 255 bytes");
	rate_refused(too_long + 1, 1, "limiter: 1 to 255 bytes");
}
END_TEST

START_TEST(options_out_of_range)
{
	struct rl_client *other;
	struct rl_options options = {.socket = "/tmp/a"};

	memset(too_long, 'x', sizeof(too_long) - 1);
	ck_assert_int_eq(rl_open(NULL, &options), RL_EINVAL);
	options.socket = too_long;
	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	ck_assert_ptr_null(other);
	options.socket = "";
	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	options.socket = too_long + sizeof(too_long) - 108; /* 107 bytes */
	ck_assert_int_eq(rl_open(&other, &options), RL_OK);
	rl_close(other);
	options.socket = too_long + sizeof(too_long) - 109;
	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	options.socket = NULL;
	options.name = too_long;
	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	options.name = NULL;
	options.on_failure = (enum rl_failure)2;
	ck_assert_int_eq(rl_open(&other, &options), RL_EINVAL);
	ck_assert_int_eq(rl_open(&other, NULL), RL_OK);
	ck_assert_str_eq(rl_last_text(other), "");
	rl_close(other);
	rl_close(NULL);
}
END_TEST

static Suite *
args_suite(void)
{
	Suite *s = suite_create("rlshim_args");
	TCase *tc = tcase_create("args");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, checks_out_of_range);
	tcase_add_test(tc, parts_out_of_range);
	tcase_add_test(tc, reports_out_of_range);
	tcase_add_test(tc, acquires_out_of_range);
	tcase_add_test(tc, acquires_within_their_range);
	tcase_add_test(tc, error_controls_out_of_range);
	tcase_add_test(tc, rates_out_of_range);
	tcase_add_test(tc, options_out_of_range);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(args_suite());
}
