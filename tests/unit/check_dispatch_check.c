/*
 * Checks through a whole agent: every way to a DECISION, what a resend may
 * and may not do, takeover, cancelling.
 */
#include "daemon/dispatch.h"

#include <poll.h>

#include "tests/unit/agent_fixture.h"

static struct ipc_peer a, b;

static const struct tenant_counters *
slow(void)
{
	return tenant_counters(agent->setup->tenants[1]);
}

static void
start(void)
{
	start_agent(&(struct shape){
	    .listeners = ",\"narrow\":{\"path\":\"%s/n.sock\","
			 "\"rules\":[\"pl*\",\"none-*\"],\"adhoc\":false}"});
	join(&a, main_path);
}

static struct peer_base
base(uint32_t operation)
{
	return (struct peer_base){.number = operation, .tokens = 1};
}

static void
check(uint64_t id, const struct peer_base *b0, const char *rule)
{
	peer_check(&a, id, b0, rule, NULL);
}

START_TEST(allowed)
{
	uint8_t id[ID_LEN];
	struct id_hash *hash = id_hash_new();
	struct peer_base m = base(0x01020304);

	start();
	m.tokens = 3;
	peer_check(&a, 1, &m, "checkout", "bob");
	take(0);
	ck_assert_uint_eq(q.head.unique_id[0], 4);
	ck_assert_uint_eq(q.head.unique_id[6], 0x4F);
	ck_assert_uint_eq(q.rate.resources[0].tokens, 6);
	ck_assert_uint_eq(q.rate.resources[0].limit, 100);
	ck_assert_uint_eq(q.rate.guards[0].threshold_ms, 100);
	ck_assert_uint_eq(q.rate.label_len, 8);
	ck_assert_mem_eq(q.rate.label, "checkout", 8);
	id_bucket(hash, "checkout:bob", 12, 1000, 100, id);
	ck_assert_mem_eq(q.rate.resources[0].id, id, ID_LEN);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(decision.has, IPC_HAS_SERVER);
	ck_assert_uint_eq(decision.server_id, 101);
	ck_assert_uint_eq(decision.round, 0);
	ck_assert_str_eq(decision.limit, "");
	ck_assert_uint_gt(decision.elapsed_us, 0);
	ck_assert_uint_lt(decision.elapsed_us, LIMIT_US);
	ck_assert_uint_eq(counters()->allowed, 1);
	ck_assert_uint_eq(counters()->permitted, 1);
	ck_assert_uint_eq(counters()->source_server, 1);
	id_hash_free(hash);
	stop_agent();
}
END_TEST

START_TEST(denied_with_its_limit_and_detail)
{
	struct peer_base m = base(1);
	struct pdu_rate deny;

	start();
	m.options = IPC_OPT_DETAIL;
	m.tokens = 2;
	peer_check(&a, 1, &m, "checkout", "");
	take(0);
	fake_server_grant(&q, &deny);
	deny.resources[0].tokens = 30; /* of 100 in a second */
	deny.guards[0].current_ms = 7;
	fake_server_answer(&server[0], &q, &deny);
	expect_decision(
	    &a, 1, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	ck_assert_str_eq(decision.limit, "checkout:"); /* an empty key */
	ck_assert_uint_eq(decision.retry_after_ms, 300);
	ck_assert_uint_eq(decision.guards, 1);
	ck_assert_str_eq(decision.guard, "inventory");
	ck_assert_uint_eq(decision.below_ms, 100);
	ck_assert_uint_eq(decision.current_ms, 7);
	ck_assert_uint_eq(decision.passed, 1);
	ck_assert_uint_eq(decision.resources, 1);
	ck_assert_str_eq(decision.resource, "checkout:");
	ck_assert_uint_eq(decision.tokens, 4);
	ck_assert_uint_eq(decision.deficit, 30);
	ck_assert_uint_eq(decision.actual, 1);
	ck_assert_uint_eq(counters()->denied, 1);
	ck_assert_uint_eq(counters()->permitted, 0);
	stop_agent();
}
END_TEST

/* Names come back from what was kept of an ad-hoc check. */
START_TEST(ad_hoc)
{
	struct peer_base m = base(1);
	struct pdu_rate deny;

	start();
	m.options = IPC_OPT_DETAIL;
	for (unsigned int blocks = 1; blocks <= 8; blocks += 7) {
		m.number = blocks;
		peer_adhoc(&a, blocks, &m, "slow", blocks, blocks);
		take(0);
		ck_assert_uint_eq(q.rate.guard_count, blocks);
		ck_assert_mem_eq(q.rate.label, "label", 5);
		/* Another one is decoded meanwhile. */
		peer_adhoc(&a, 99,
		    &(struct peer_base){.number = 99, .tokens = 1}, "slow", 0,
		    1);
		TURN_UNTIL(dispatch_inflight(agent->dispatch) == 2);
		fake_server_grant(&q, &deny);
		deny.guards[blocks - 1].current_ms = 50;
		fake_server_answer(&server[0], &q, &deny);
		expect_decision(&a, blocks, IPC_DENIED, false,
		    IPC_SOURCE_SERVER, IPC_REASON_GUARD);
		ck_assert_str_eq(decision.limit, blocks == 1 ? "g0" : "g7");
		ck_assert_uint_eq(decision.guards, blocks);
		ck_assert_uint_eq(decision.resources, blocks);
		ck_assert_str_eq(decision.resource, blocks == 1 ? "r0" : "r7");
		peer_empty(&a, IPC_CANCEL, 99);
		expect_decision(&a, 99, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
		    IPC_REASON_CANCELLED);
		take(0);
	}
	stop_agent();
}
END_TEST

START_TEST(an_empty_request_is_allowed)
{
	struct peer_base m = base(1);

	start();
	check(1, &m, "empty");
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK);
	ck_assert_uint_eq(decision.has, 0);
	peer_adhoc(&a, 2, &m, "slow", 0, 0);
	expect_decision(
	    &a, 2, IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK);
	ck_assert_uint_eq(counters()->source_empty, 2);
	ck_assert_uint_eq(slow()->operations, 0);
	stop_agent();
}
END_TEST

/* None of these permits, whatever on_failure says, and nothing is sent. */
START_TEST(validation)
{
	struct peer_base m = base(1);

	start();
	check(1, &m, "checkout"); /* needs a key */
	expect_failed(&a, 1, false, IPC_REASON_VALIDATION);
	m.tokens = 0;
	peer_check(&a, 2, &m, "checkout", "k");
	expect_failed(&a, 2, false, IPC_REASON_VALIDATION);
	m.tokens = 65536;
	peer_check(&a, 3, &m, "checkout", "k");
	expect_failed(&a, 3, false, IPC_REASON_VALIDATION);
	m.tokens = 32768; /* times 2 is over */
	peer_check(&a, 4, &m, "checkout", "k");
	expect_failed(&a, 4, false, IPC_REASON_VALIDATION);
	m.tokens = UINT32_MAX;
	peer_check(&a, 5, &m, "checkout", "k");
	expect_failed(&a, 5, false, IPC_REASON_VALIDATION);
	m.tokens = 1;
	m.not_uuid = true;
	check(6, &m, "quick");
	expect_failed(&a, 6, false, IPC_REASON_VALIDATION);
	peer_adhoc(&a, 7, &m, "slow", 0, 1);
	expect_failed(&a, 7, false, IPC_REASON_VALIDATION);
	m.not_uuid = false;
	peer_adhoc(&a, 8, &m, "", 0, 1); /* which tenant? */
	expect_failed(&a, 8, false, IPC_REASON_VALIDATION);
	peer_adhoc(&a, 9, &m, "nobody\n", 0, 1);
	expect_failed(&a, 9, false, IPC_REASON_VALIDATION);
	ck_assert_str_eq(decision.text, "tenant: unknown \"nobody?\"");
	peer_adhoc(&a, 10, &m, "slow", 31, 0); /* no datagram holds them */
	expect_failed(&a, 10, false, IPC_REASON_VALIDATION);
	ck_assert_uint_eq(counters()->failed_validation, 10);
	ck_assert_uint_eq(counters()->source_policy, 10);
	ck_assert_uint_eq(counters()->permitted, 0);
	ck_assert_uint_eq(slow()->operations, 0);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 0);
	stop_agent();
}
END_TEST

START_TEST(who_may_ask_for_what)
{
	struct peer_base m = base(1);
	char path[96];

	start();
	check(1, &m, "nowhere");
	expect_failed(&a, 1, false, IPC_REASON_UNKNOWN_RULE);
	ck_assert_str_eq(decision.text, "unknown rule \"nowhere\"");
	check(2, &m, "\xff\x1b[1m");
	expect_failed(&a, 2, false, IPC_REASON_UNKNOWN_RULE);
	ck_assert_str_eq(decision.text, "unknown rule \"??[1m\"");
	snprintf(path, sizeof(path), "%s/n.sock", folder);
	join(&b, path);
	peer_check(&b, 1, &m, "quick", NULL);
	expect_failed(&b, 1, false, IPC_REASON_UNAUTHORISED);
	/* Whether a rule exists is not told to who may not use it. */
	peer_check(&b, 2, &m, "nowhere", NULL);
	expect_failed(&b, 2, false, IPC_REASON_UNAUTHORISED);
	peer_check(&b, 3, &m, "none-here", NULL);
	expect_failed(&b, 3, false, IPC_REASON_UNKNOWN_RULE);
	peer_adhoc(&b, 4, &m, "slow", 0, 1);
	expect_failed(&b, 4, false, IPC_REASON_UNAUTHORISED);
	peer_check(&b, 5, &m, "plain", NULL);
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 5, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	join(&b, control_path);
	peer_check(&b, 1, &m, "plain", NULL);
	expect_failed(&b, 1, false, IPC_REASON_UNAUTHORISED);
	peer_adhoc(&b, 2, &m, "slow", 0, 1);
	expect_failed(&b, 2, false, IPC_REASON_UNAUTHORISED);
	ck_assert_uint_eq(counters()->failed_unauthorised, 5);
	ck_assert_uint_eq(counters()->failed_unknown_rule, 3);
	stop_agent();
}
END_TEST

START_TEST(a_timeout_and_its_policies)
{
	struct peer_base m = base(1);

	start();
	check(1, &m, "quick");
	expect_failed(&a, 1, true, IPC_REASON_TIMEOUT);
	check(2, &m, "shut");
	expect_failed(&a, 2, false, IPC_REASON_TIMEOUT);
	peer_adhoc(&a, 3, &m, "quick", 0, 1); /* the tenant's: closed */
	expect_failed(&a, 3, false, IPC_REASON_TIMEOUT);
	ck_assert_uint_eq(counters()->failed_timeout, 3);
	ck_assert_uint_eq(counters()->permitted, 1);
	stop_agent();
}
END_TEST

START_TEST(transport_and_discovery)
{
	struct peer_base m = base(1);

	start_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"servers\":["
		       "{\"id\":\"1\",\"address\":\"255.255.255.255:%u\"}]}",
	    .rules = "\"r\":{\"tenant\":\"t\",\"resources\":["
		     "{\"bucket\":\"b\"}]}"});
	join(&a, main_path);
	check(1, &m, "r");
	expect_failed(&a, 1, true, IPC_REASON_TRANSPORT);
	ck_assert_uint_eq(counters()->failed_transport, 1);
	stop_agent();
	new_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"dns\":{"
		       "\"name\":\"none.example\","
		       "\"nameservers\":[\"127.0.0.1:1\"]}}",
	    .rules = "\"r\":{\"tenant\":\"t\",\"resources\":["
		     "{\"bucket\":\"b\"}],\"on_failure\":\"closed\"}"});
	join(&a, main_path);
	check(1, &m, "r");
	expect_failed(&a, 1, false, IPC_REASON_DISCOVERY);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 0);
	/* Decided before tenant_check() returned, from an ad-hoc request. */
	peer_adhoc(&a, 2, &m, "", 0, 40);
	expect_failed(&a, 2, false, IPC_REASON_VALIDATION);
	peer_adhoc(&a, 3, &m, "", 1, 1);
	expect_failed(&a, 3, true, IPC_REASON_DISCOVERY);
	stop_agent();
}
END_TEST

START_TEST(deadlines)
{
	struct peer_base m = base(1);

	start();
	m.deadline_ms = 5;
	check(1, &m, "plain");
	expect_failed(&a, 1, false, IPC_REASON_TIMEOUT);
	ck_assert_uint_ge(decision.elapsed_us, 5000);
	m.deadline_ms = UINT32_MAX;
	m.number = 2;
	check(2, &m, "plain");
	take(0);
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 2, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	stop_agent();
}
END_TEST

/* Ages and hashes of checks that were sent before. */
START_TEST(resends)
{
	static const uint8_t other[16] = {1, 2, 3};
	struct peer_base m = base(1);

	start();
	m.hash = other;
	m.age_us = 1000;
	check(1, &m, "quick");
	expect_failed(&a, 1, true, IPC_REASON_INTERRUPTED);
	m.hash = NULL; /* zeros are no configuration */
	check(2, &m, "plain");
	expect_failed(&a, 2, false, IPC_REASON_INTERRUPTED);
	m.hash = agent->setup->config->hash;
	m.age_us = 30000000; /* H of "slow" */
	check(3, &m, "plain");
	expect_failed(&a, 3, false, IPC_REASON_INTERRUPTED);
	m.age_us = UINT64_MAX;
	check(4, &m, "plain");
	expect_failed(&a, 4, false, IPC_REASON_INTERRUPTED);
	ck_assert_uint_lt(decision.elapsed_us, LIMIT_US);
	m.age_us = (uint64_t)1 << 63;
	m.deadline_ms = UINT32_MAX;
	peer_adhoc(&a, 5, &m, "slow", 0, 1);
	expect_failed(&a, 5, true, IPC_REASON_INTERRUPTED);
	settle();
	ck_assert_uint_eq(slow()->operations, 0);
	ck_assert_uint_eq(counters()->failed_interrupted, 5);
	stop_agent();
}
END_TEST

/*
 * Nobody knows how long a resend has waited in the socket; what is known is
 * when the socket was last empty, and the time since then counts as age.
 */
START_TEST(a_resend_ages_in_the_socket)
{
	struct peer_base m = base(1);
	int64_t begun;

	start();
	m.hash = agent->setup->config->hash;
	m.age_us = 29900000; /* of the 30 s of "slow" */
	check(1, &m, "plain");
	begun = loop_now();
	while (loop_now() - begun < 200000) /* the agent is stopped */
		poll(NULL, 0, 10);
	expect_failed(&a, 1, false, IPC_REASON_INTERRUPTED);
	/* One that came with the HELLO may have waited for ever. */
	peer_open(&b, main_path);
	peer_hello(&b);
	m.age_us = 1000;
	peer_check(&b, 1, &m, "plain", NULL);
	next(&b);
	ck_assert_uint_eq(reply.type, IPC_WELCOME);
	expect_failed(&b, 1, false, IPC_REASON_INTERRUPTED);
	ck_assert_uint_eq(slow()->operations, 0);
	stop_agent();
}
END_TEST

/* It may have consumed the first time, whatever stops it now. */
START_TEST(a_resend_that_cannot_be_asked)
{
	struct peer_base m = base(1);

	new_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"dns\":{"
		       "\"name\":\"none.example\","
		       "\"nameservers\":[\"127.0.0.1:1\"]},"
		       "\"policy\":{\"unit_ms\":10000}}",
	    .rules = "\"r\":{\"tenant\":\"t\",\"resources\":["
		     "{\"bucket\":\"b\"}]}",
	    .limits = "\"max_inflight\":1"});
	join(&a, main_path);
	m.hash = agent->setup->config->hash;
	m.age_us = 1000;
	check(1, &m, "r");
	expect_failed(&a, 1, true, IPC_REASON_INTERRUPTED);
	ck_assert_ptr_nonnull(strstr(decision.text, "no server is known"));
	stop_agent();
}
END_TEST

/* Within H it goes on: the same id to the servers, and what time is left. */
START_TEST(a_resend_goes_on)
{
	struct peer_base m = base(5);

	start();
	m.hash = agent->setup->config->hash;
	m.age_us = 12000000; /* in round 1: 10 to 20 s */
	check(1, &m, "plain");
	take(0);
	ck_assert_uint_eq(q.head.unique_id[0], 5);
	ck_assert_uint_eq(q.rate.dedup_ttl_ms, 30000);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(decision.round, 1);
	ck_assert_uint_lt(decision.elapsed_us, 12000000);
	/* The deadline counts from the first write: over already. */
	m.number = 6;
	m.deadline_ms = 11999;
	check(2, &m, "plain");
	expect_failed(&a, 2, false, IPC_REASON_TIMEOUT);
	/* The last of it: no send is left, an answer could still come. */
	m.number = 7;
	m.deadline_ms = 0;
	m.age_us = 29990000;
	check(3, &m, "plain");
	expect_failed(&a, 3, false, IPC_REASON_TIMEOUT);
	settle();
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	stop_agent();
}
END_TEST

/* The operation goes on as it is: nothing is sent again, nothing is lost. */
START_TEST(a_new_connection_takes_over)
{
	struct peer_base m = base(8);

	start();
	check(1, &m, "plain");
	take(0);
	join(&b, main_path);
	m.hash = agent->setup->config->hash;
	m.age_us = 1000;
	/* Not for another question. */
	m.tokens = 2;
	peer_check(&b, 3, &m, "plain", NULL);
	expect_failed(&b, 3, false, IPC_REASON_VALIDATION);
	m.tokens = 1;
	peer_check(&b, 4, &m, "plain", NULL);
	expect_alive(&b, 5);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	/* On its own connection an operation id is in flight once. */
	peer_check(&b, 6, &m, "plain", NULL);
	expect_failed(&b, 6, false, IPC_REASON_VALIDATION);
	/* The connection that broke takes nothing with it. */
	peer_close(&a);
	expect_alive(&b, 7);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 4, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(slow()->operations, 1);
	ck_assert_uint_eq(counters()->cancelled, 0);
	ck_assert_uint_eq(
	    counters()->checks, counters()->allowed + counters()->failed);
	stop_agent();
}
END_TEST

/* The name of the listener may be in the bucket's: not the same question. */
START_TEST(another_listener_takes_nothing_over)
{
	struct peer_base m = base(8);
	char path[96];

	start();
	check(1, &m, "plain");
	take(0);
	snprintf(path, sizeof(path), "%s/n.sock", folder);
	join(&b, path);
	m.hash = agent->setup->config->hash;
	m.age_us = 1000;
	peer_check(&b, 4, &m, "plain", NULL);
	expect_failed(&b, 4, false, IPC_REASON_VALIDATION);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	stop_agent();
}
END_TEST

START_TEST(a_first_send_takes_nothing_over)
{
	struct peer_base m = base(8);

	start();
	check(1, &m, "plain");
	take(0);
	join(&b, main_path);
	peer_check(&b, 4, &m, "plain", NULL);
	expect_failed(&b, 4, false, IPC_REASON_VALIDATION);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	stop_agent();
}
END_TEST

/* Another age does not make another question of an ad-hoc check. */
START_TEST(taking_over_an_ad_hoc_check)
{
	struct peer_base m = base(8);
	struct pdu_rate deny;

	start();
	peer_adhoc(&a, 1, &m, "slow", 3, 3);
	take(0);
	join(&b, main_path);
	m.hash = agent->setup->config->hash;
	m.age_us = 1000;
	peer_adhoc(&b, 3, &m, "slow", 3, 2);
	expect_failed(&b, 3, false, IPC_REASON_VALIDATION);
	peer_adhoc(&b, 4, &m, "slow", 3, 3);
	expect_alive(&b, 5);
	fake_server_grant(&q, &deny);
	deny.resources[2].tokens = 1;
	fake_server_answer(&server[0], &q, &deny);
	expect_decision(
	    &b, 4, IPC_DENIED, false, IPC_SOURCE_SERVER, IPC_REASON_RESOURCE);
	ck_assert_uint_eq(slow()->operations, 1);
	stop_agent();
}
END_TEST

START_TEST(cancel)
{
	struct peer_base m = base(1);

	start();
	peer_empty(&a, IPC_CANCEL, 1); /* nothing of that id: ignored */
	check(1, &m, "plain");
	take(0);
	join(&b, main_path);
	peer_empty(&b, IPC_CANCEL, 1); /* another connection's id */
	expect_alive(&b, 2);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	peer_empty(&a, IPC_CANCEL, 1);
	expect_decision(&a, 1, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 0);
	/* After the decision it changes nothing. */
	peer_empty(&a, IPC_CANCEL, 1);
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(slow()->answers_late == 1);
	expect_alive(&a, 2);
	ck_assert_uint_eq(counters()->cancelled, 1);
	ck_assert_uint_eq(slow()->cancelled, 1);
	stop_agent();
}
END_TEST

START_TEST(a_closed_connection_cancels)
{
	struct peer_base m = base(0);

	start();
	for (m.number = 0; m.number < 50; m.number++)
		check(m.number + 1, &m, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 50);
	peer_close(&a);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 0);
	ck_assert_uint_eq(slow()->cancelled, 50);
	ck_assert_uint_eq(counters()->cancelled, 50);
	ck_assert_uint_eq(tenant_inflight(agent->setup->tenants[1]), 0);
	join(&a, main_path);
	expect_alive(&a, 1);
	stop_agent();
}
END_TEST

/* A wrong frame ends the connection, and what was in flight on it. */
START_TEST(an_error_cancels)
{
	struct peer_base m = base(1);

	start();
	check(1, &m, "plain");
	take(0);
	peer_empty(&a, 0x7777, 2);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 0);
	ck_assert_uint_eq(slow()->cancelled, 1);
	stop_agent();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_check");
	TCase *tc = tcase_create("dispatch_check");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, allowed);
	tcase_add_test(tc, denied_with_its_limit_and_detail);
	tcase_add_test(tc, ad_hoc);
	tcase_add_test(tc, an_empty_request_is_allowed);
	tcase_add_test(tc, validation);
	tcase_add_test(tc, who_may_ask_for_what);
	tcase_add_test(tc, a_timeout_and_its_policies);
	tcase_add_test(tc, transport_and_discovery);
	tcase_add_test(tc, deadlines);
	tcase_add_test(tc, resends);
	tcase_add_test(tc, a_resend_ages_in_the_socket);
	tcase_add_test(tc, a_resend_that_cannot_be_asked);
	tcase_add_test(tc, a_resend_goes_on);
	tcase_add_test(tc, a_new_connection_takes_over);
	tcase_add_test(tc, another_listener_takes_nothing_over);
	tcase_add_test(tc, a_first_send_takes_nothing_over);
	tcase_add_test(tc, taking_over_an_ad_hoc_check);
	tcase_add_test(tc, cancel);
	tcase_add_test(tc, a_closed_connection_cancels);
	tcase_add_test(tc, an_error_cancels);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
