/*
 * on_failure local through a whole agent: which failures a rule's limiter
 * decides, for whom, that it is warm when it is needed, and what a reload
 * keeps.
 */
#include "daemon/dispatch.h"
#include "tests/unit/agent_fixture.h"

#define S INT64_C(1000000)

/* A permit takes 1000 s: how long the test takes does not matter. Three can be
 * stored. */
#define LOCAL                                                    \
	"\"on_failure\":{\"local\":{\"max_burst_seconds\":3600," \
	"\"permits_per_second\":0.001"
#define KEYED                                                             \
	"\"keyed\":{\"tenant\":\"slow\",\"resources\":[{\"bucket\":\"of " \
	"{key}\",\"tokens\":2}]," LOCAL ",\"max_keys\":2}}}"
#define LOCAL_RULES                                                      \
	KEYED ",\"plain\":{\"tenant\":\"slow\",\"resources\":["          \
	      "{\"bucket\":\"plain\",\"tokens\":2}]," LOCAL "}}},"       \
	      "\"quick\":{\"tenant\":\"quick\",\"resources\":["          \
	      "{\"bucket\":\"quick\",\"tokens\":2}]," LOCAL "}}},"       \
	      "\"far\":{\"tenant\":\"far\",\"resources\":["              \
	      "{\"bucket\":\"far\",\"tokens\":2}]," LOCAL "}}},"         \
	      "\"lost\":{\"tenant\":\"lost\",\"resources\":["            \
	      "{\"bucket\":\"lost\",\"tokens\":2}]," LOCAL "}}},"        \
	      "\"watch\":{\"tenant\":\"lost\",\"mode\":\"shadow\","      \
	      "\"resources\":[{\"bucket\":\"watch\"}]," LOCAL "}}},"     \
	      "\"brief\":{\"tenant\":\"slow\",\"resources\":["           \
	      "{\"bucket\":\"{key}\"}],\"on_failure\":{\"local\":{"      \
	      "\"permits_per_second\":50,\"max_burst_seconds\":0.04}}}," \
	      "\"open\":{\"tenant\":\"lost\",\"resources\":["            \
	      "{\"bucket\":\"open\"}]}"

/* Besides those of the fixture, which cannot be sent to and not be found. */
#define LOCAL_TENANTS                                            \
	TENANTS                                                  \
	",\"far\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"          \
	"\"servers\":[{\"id\":\"1\","                            \
	"\"address\":\"255.255.255.255:9\"}]},"                  \
	"\"lost\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"dns\":{" \
	"\"name\":\"none.example\",\"nameservers\":[\"127.0.0.1:1\"]}}"

static const uint8_t other_hash[IPC_HASH_LEN] = {1};
static struct ipc_peer a, b;
static uint64_t last_id;

static const struct shape usual = {
    .tenants = LOCAL_TENANTS,
    .rules = LOCAL_RULES,
    .listeners = ",\"narrow\":{\"path\":\"%s/n.sock\",\"rules\":[\"p*\"],"
		 "\"max_inflight\":1}",
};

static void
start(void)
{
	new_agent(&usual);
	join(&a, main_path);
	TURN_UNTIL(tenant_ready(agent->setup->tenants[3])); /* slow */
}

static void
stop(void)
{
	peer_close(&a);
	stop_agent();
}

/* Of a check that comes for the first time. */
static struct peer_base
first(uint32_t tokens)
{
	return (struct peer_base){
	    .number = (uint32_t)++last_id, .tokens = tokens};
}

static void
ask(uint32_t tokens, const char *rule, const char *key)
{
	const struct peer_base base = first(tokens);

	peer_check(&a, last_id, &base, rule, key);
}

/* A check that was sent under another configuration fails at once. */
static void
interrupted(uint32_t tokens, const char *rule, const char *key)
{
	struct peer_base base = first(tokens);

	base.hash = other_hash;
	base.age_us = 1000;
	peer_check(&a, last_id, &base, rule, key);
}

static const struct rule_counters *
of(const char *rule)
{
	return setup_counters(agent->setup,
	    config_rule(agent->setup->config, rule, strlen(rule)));
}

/* The limiter of a rule. */
static struct limiters_shown
shown(const char *rule)
{
	return limiters_show_local(agent->setup->limiters,
	    config_rule(agent->setup->config, rule, strlen(rule)), loop_now());
}

static void
expect_local(bool permit, enum ipc_reason reason)
{
	const char *end = permit ? "; the local limiter permits"
				 : "; the local limiter refuses";
	size_t len;

	expect_decision(
	    &a, last_id, IPC_FAILED, permit, IPC_SOURCE_LOCAL, reason);
	len = strlen(decision.text);
	ck_assert_uint_gt(len, strlen(end));
	ck_assert_str_eq(decision.text + len - strlen(end), end);
	if (permit)
		ck_assert_uint_eq(decision.retry_after_ms, 0);
}

/* As before, and when it will permit: a wait that began during this test. */
static void
expect_refused(enum ipc_reason reason, int64_t us)
{
	expect_local(false, reason);
	ck_assert_int_le(decision.retry_after_ms, us / 1000);
	ck_assert_int_ge(decision.retry_after_ms, (us - LIMIT_US) / 1000);
}

static const struct {
	const char *rule;
	enum ipc_reason reason;
} reasons[] = {
    {"lost", IPC_REASON_DISCOVERY},
    {"far", IPC_REASON_TRANSPORT},
    {"quick", IPC_REASON_TIMEOUT},
    {"plain", IPC_REASON_INTERRUPTED},
};

/* As many permits as tokens, whatever the resources' own are. */
START_TEST(every_reason_that_the_policy_covers)
{
	const char *rule = reasons[_i].rule;
	const enum ipc_reason reason = reasons[_i].reason;

	start();
	for (int i = 0; i < 2; i++) {
		if (reason == IPC_REASON_INTERRUPTED)
			interrupted(3, rule, NULL);
		else
			ask(3, rule, NULL);
		if (i == 0)
			expect_local(true, reason);
		else
			expect_refused(reason, 3000 * S);
	}
	ck_assert_uint_eq(counters()->source_local, 2);
	ck_assert_uint_eq(counters()->source_policy, 0);
	ck_assert_uint_eq(counters()->failed, 2);
	ck_assert_uint_eq(counters()->permitted, 1);
	ck_assert_uint_eq(of(rule)->local, 2);
	ck_assert_uint_eq(of(rule)->failed, 2);
	ck_assert_uint_eq(of(rule)->permitted, 1);
	ask(1, "open", NULL); /* as ever */
	expect_failed(&a, last_id, true, IPC_REASON_DISCOVERY);
	ck_assert_uint_eq(of("open")->local, 0);
	stop();
}
END_TEST

/* Nobody waits here for what others took on credit. */
START_TEST(more_than_can_be_stored)
{
	start();
	interrupted(4, "plain", NULL);
	expect_local(false, IPC_REASON_INTERRUPTED);
	ck_assert_uint_eq(decision.retry_after_ms, 0);
	interrupted(3, "plain", NULL);
	expect_local(true, IPC_REASON_INTERRUPTED);
	stop();
}
END_TEST

START_TEST(overloaded)
{
	struct peer_base base;
	char path[96];

	start();
	snprintf(path, sizeof(path), "%s/n.sock", folder);
	join(&b, path);
	base = first(1);
	peer_check(&b, last_id, &base, "plain", NULL);
	take(0);
	for (int i = 0; i < 2; i++) {
		base = first(2);
		peer_check(&b, last_id, &base, "plain", NULL);
		expect_decision(&b, last_id, IPC_FAILED, i == 0,
		    IPC_SOURCE_LOCAL, IPC_REASON_OVERLOADED);
	}
	ck_assert_uint_gt(decision.retry_after_ms, 1900 * 1000);
	peer_close(&b);
	stop();
}
END_TEST

/* A check that was sent before may have consumed then, whatever fails now. */
START_TEST(the_reason_of_a_resend)
{
	struct peer_base base;

	start();
	base = first(1);
	base.hash = agent->setup->config->hash;
	base.age_us = 1000;
	peer_check(&a, last_id, &base, "lost", NULL);
	expect_local(true, IPC_REASON_INTERRUPTED);
	stop();
}
END_TEST

START_TEST(each_key_has_its_own)
{
	static const char *const keys[] = {"k", ""};

	start();
	for (int i = 0; i < 2; i++) {
		interrupted(1, "keyed", keys[i]);
		expect_local(true, IPC_REASON_INTERRUPTED);
	}
	ck_assert_uint_eq(shown("keyed").keys, 2);
	for (int i = 0; i < 2; i++) {
		interrupted(1, "keyed", keys[i]);
		expect_refused(IPC_REASON_INTERRUPTED, 1000 * S);
	}
	/* Each owes, so none makes room; nobody knows when one will. */
	interrupted(1, "keyed", "one more");
	expect_local(false, IPC_REASON_INTERRUPTED);
	ck_assert_uint_eq(decision.retry_after_ms, 0);
	/* The bucket of this one is the same for all keys. */
	interrupted(1, "plain", "k");
	expect_local(true, IPC_REASON_INTERRUPTED);
	interrupted(1, "plain", "kk");
	expect_refused(IPC_REASON_INTERRUPTED, 1000 * S);
	ck_assert_uint_eq(shown("plain").keys, 0);
	stop();
}
END_TEST

START_TEST(refused_and_permitted_later)
{
	int64_t begun, wait = 0;

	start();
	do { /* until two come within the time of a permit */
		begun = loop_now();
		interrupted(1, "brief", "k");
		next(&a);
		peer_decision(&reply, &decision);
		ck_assert_uint_eq(decision.source, IPC_SOURCE_LOCAL);
		wait = (int64_t)decision.retry_after_ms * 1000;
	} while (decision.permit);
	ck_assert_int_gt(wait, 0);
	ck_assert_int_le(wait, 1000 + S / 50);
	TURN_UNTIL(loop_now() > begun + S / 50);
	interrupted(1, "brief", "k");
	expect_local(true, IPC_REASON_INTERRUPTED);
	stop();
}
END_TEST

START_TEST(a_rule_that_watches)
{
	start();
	ask(1, "watch", NULL);
	expect_local(true, IPC_REASON_DISCOVERY);
	ask(1, "watch", NULL);
	expect_decision(&a, last_id, IPC_FAILED, true, IPC_SOURCE_SHADOW,
	    IPC_REASON_DISCOVERY);
	ck_assert_ptr_nonnull(
	    strstr(decision.text, "; the local limiter refuses"));
	ck_assert_uint_gt(decision.retry_after_ms, 900 * 1000);
	ck_assert_uint_eq(of("watch")->local, 1);
	ck_assert_uint_eq(of("watch")->would_deny, 1);
	ck_assert_uint_eq(counters()->source_shadow, 1);
	stop();
}
END_TEST

/* Nothing is taken for what the policy does not cover. */
START_TEST(not_for_what_is_wrong)
{
	struct peer_base base;
	char path[96];

	start();
	ask(0, "plain", NULL);
	expect_failed(&a, last_id, false, IPC_REASON_VALIDATION);
	interrupted(65536, "plain", NULL);
	expect_failed(&a, last_id, false, IPC_REASON_VALIDATION);
	interrupted(1, "keyed", NULL);
	expect_failed(&a, last_id, false, IPC_REASON_VALIDATION);
	base = first(1);
	base.not_uuid = true;
	peer_check(&a, last_id, &base, "plain", NULL);
	expect_failed(&a, last_id, false, IPC_REASON_VALIDATION);
	ask(1, "nobody", NULL);
	expect_failed(&a, last_id, false, IPC_REASON_UNKNOWN_RULE);
	ask(1, "plain", NULL);
	take(0);
	peer_empty(&a, IPC_CANCEL, last_id);
	expect_decision(&a, last_id, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	snprintf(path, sizeof(path), "%s/n.sock", folder);
	join(&b, path);
	base = first(1);
	peer_check(&b, last_id, &base, "keyed", "k");
	expect_failed(&b, last_id, false, IPC_REASON_UNAUTHORISED);
	peer_close(&b);
	ck_assert_uint_eq(shown("keyed").keys, 0);
	ck_assert_int_eq(shown("plain").owed_us, 0);
	ck_assert_uint_eq(counters()->source_local, 0);
	stop();
}
END_TEST

static void
answer(bool allow)
{
	struct pdu_rate rate;

	take(0);
	fake_server_grant(&q, &rate);
	if (!allow)
		rate.resources[0].tokens = 1;
	fake_server_answer(&server[0], &q, &rate);
	next(&a);
	peer_decision(&reply, &decision);
	ck_assert_uint_eq(decision.outcome, allow ? IPC_ALLOWED : IPC_DENIED);
	ck_assert_uint_eq(decision.source, IPC_SOURCE_SERVER);
}

/* Two permits are stored in the 40 ms after a check that needed none. */
START_TEST(warm_before_it_is_needed)
{
	int64_t begun;

	start();
	ask(1, "brief", "k");
	answer(_i == 0);
	ck_assert_uint_eq(shown("brief").keys, 1);
	begun = loop_now();
	TURN_UNTIL(loop_now() > begun + 40 * 1000);
	interrupted(2, "brief", "k");
	interrupted(1, "brief", "k");
	interrupted(1, "brief", "cold");
	last_id -= 2;
	expect_local(true, IPC_REASON_INTERRUPTED);
	last_id++;
	expect_local(true, IPC_REASON_INTERRUPTED);
	last_id++;
	expect_local(true, IPC_REASON_INTERRUPTED);
	ck_assert_uint_eq(of("brief")->local, 3);
	stop();
}
END_TEST

START_TEST(a_cancelled_check_warms)
{
	start();
	ask(1, "brief", "k");
	take(0);
	peer_empty(&a, IPC_CANCEL, last_id);
	next(&a);
	ck_assert_uint_eq(shown("brief").keys, 1);
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
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_WELCOME);
}

START_TEST(what_a_reload_keeps)
{
	const struct peer_base unused = {.tokens = 1};
	struct peer_base base = unused;

	start();
	interrupted(1, "keyed", "k");
	expect_local(true, IPC_REASON_INTERRUPTED);
	interrupted(1, "plain", NULL);
	expect_local(true, IPC_REASON_INTERRUPTED);
	/* Ends as it began: under a rule that is gone then. */
	base = first(1);
	base.deadline_ms = 20;
	peer_check(&a, last_id, &base, "plain", NULL);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 1);
	follow(&(struct shape){.tenants = LOCAL_TENANTS, .rules = KEYED});
	expect_refused(IPC_REASON_TIMEOUT, 1000 * S);
	TURN_UNTIL(agent->retired == NULL);
	interrupted(1, "keyed", "k");
	expect_refused(IPC_REASON_INTERRUPTED, 1000 * S);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_local");
	TCase *tc = tcase_create("dispatch_local");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, every_reason_that_the_policy_covers, 0,
	    (int)(sizeof(reasons) / sizeof(*reasons)));
	tcase_add_test(tc, more_than_can_be_stored);
	tcase_add_test(tc, overloaded);
	tcase_add_test(tc, the_reason_of_a_resend);
	tcase_add_test(tc, each_key_has_its_own);
	tcase_add_test(tc, refused_and_permitted_later);
	tcase_add_test(tc, a_rule_that_watches);
	tcase_add_test(tc, not_for_what_is_wrong);
	tcase_add_loop_test(tc, warm_before_it_is_needed, 0, 2);
	tcase_add_test(tc, a_cancelled_check_warms);
	tcase_add_test(tc, what_a_reload_keeps);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
