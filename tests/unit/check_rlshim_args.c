/*
 * What the shim refuses by itself: every argument out of its range ends in
 * RL_EINVAL, a check also in Failed (validation), with a text that begins
 * with the name of the argument. Nobody listens here, so a call that tried
 * to connect would not come back in time.
 */
#include "client-shim/rlshim.h"

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
	tcase_add_test(tc, options_out_of_range);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(args_suite());
}
