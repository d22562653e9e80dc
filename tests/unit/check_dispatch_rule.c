/*
 * What is special of a rule: the mode that only watches, reports of its work,
 * what EXPLAIN and RULES tell of it, and what is counted.
 */
#include "daemon/dispatch.h"

#include "tests/unit/agent_fixture.h"

static struct ipc_peer a, control;

#define WATCHING                                                         \
	"\"watch\":{\"tenant\":\"slow\",\"mode\":\"shadow\","            \
	"\"on_failure\":\"closed\",\"resources\":[{\"bucket\":\"w\"}]}," \
	"\"quick\":{\"tenant\":\"quick\",\"mode\":\"shadow\","           \
	"\"on_failure\":\"closed\",\"resources\":[{\"bucket\":\"w\"}]}," \
	"\"guarded\":{\"tenant\":\"slow\",\"guards\":["                  \
	"{\"tracker\":\"inventory\",\"below_ms\":100},"                  \
	"{\"tracker\":\"of-{key}\",\"below_ms\":50}]},"                  \
	"\"plain\":{\"tenant\":\"slow\",\"resources\":[{\"bucket\":\"p\"}]}"

static void
start(void)
{
	start_agent(&(struct shape){.rules = WATCHING,
	    .listener = ",\"rules\":[\"watch\",\"quick\",\"g*\",\"none\"]"});
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
ask(uint64_t id, const char *rule)
{
	static struct peer_base base = {.tokens = 1};

	base.number++;
	peer_check(&a, id, &base, rule, NULL);
}

static void
deny(void)
{
	struct pdu_rate rate;

	fake_server_grant(&q, &rate);
	rate.resources[0].limit = 100;
	rate.resources[0].tokens = 1;
	fake_server_answer(&server[0], &q, &rate);
}

static const struct rule_counters *
of(const char *rule)
{
	const struct config_rule *r =
	    config_rule(agent->setup->config, rule, strlen(rule));

	ck_assert_ptr_nonnull(r);
	return setup_counters(agent->setup, r);
}

START_TEST(a_watching_rule_permits_what_is_denied)
{
	start();
	ask(1, "watch");
	take(0);
	deny();
	expect_decision(
	    &a, 1, IPC_DENIED, true, IPC_SOURCE_SHADOW, IPC_REASON_RESOURCE);
	ck_assert_str_eq(decision.limit, "w");
	ck_assert_uint_gt(decision.retry_after_ms, 0);
	ask(2, "watch");
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 2, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(counters()->denied, 1);
	ck_assert_uint_eq(counters()->source_shadow, 1);
	ck_assert_uint_eq(counters()->permitted, 2);
	ck_assert_uint_eq(of("watch")->checks, 2);
	ck_assert_uint_eq(of("watch")->allowed, 1);
	ck_assert_uint_eq(of("watch")->denied, 1);
	ck_assert_uint_eq(of("watch")->would_deny, 1);
	ck_assert_uint_eq(of("watch")->permitted, 2);
	stop();
}
END_TEST

START_TEST(a_watching_rule_and_failures)
{
	start();
	ask(1, "quick"); /* nobody answers */
	expect_decision(
	    &a, 1, IPC_FAILED, true, IPC_SOURCE_SHADOW, IPC_REASON_TIMEOUT);
	peer_check(&a, 2, &(struct peer_base){.number = 99, .tokens = 0},
	    "watch", NULL);
	expect_failed(&a, 2, false, IPC_REASON_VALIDATION);
	ck_assert_uint_eq(of("quick")->failed, 1);
	ck_assert_uint_eq(of("quick")->would_deny, 1);
	ck_assert_uint_eq(of("watch")->failed, 1);
	ck_assert_uint_eq(of("watch")->would_deny, 0);
	stop();
}
END_TEST

static void
report(struct ipc_peer *p, uint64_t id, uint32_t ms, const char *rule,
    const char *key)
{
	struct writer *w = peer_begin(p, IPC_REPORT_RULE, id);

	writer_u32(w, ms);
	writer_u32(w, key != NULL ? IPC_OPT_KEY : 0);
	peer_str(p, rule);
	peer_str(p, key != NULL ? key : "");
	peer_end(p);
}

static void
expect_reported(uint64_t id, enum ipc_reason reason, unsigned int sent)
{
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_REPORTED);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_msg(reply.number == reason, "%s", reply.text);
	ck_assert_uint_eq(reply.sent, sent);
}

START_TEST(work_is_reported_to_every_tracker_of_its_rule)
{
	uint8_t id[ID_LEN];
	struct id_hash *hash = id_hash_new();

	start();
	report(&a, 1, 70, "guarded", "eu");
	expect_reported(1, IPC_REASON_OK, 1);
	take(0);
	ck_assert_uint_eq(q.report.count, 2);
	ck_assert_uint_eq(q.report.samples[0].observed_ms, 70);
	ck_assert_uint_eq(q.report.samples[1].observed_ms, 70);
	id_tracker(hash, PROFILE_V1, "of-eu", 5, 10000, 100, 32, 5, id);
	ck_assert_mem_eq(q.report.samples[1].id, id, ID_LEN);
	report(&a, 2, 70, "guarded", NULL);
	expect_reported(2, IPC_REASON_VALIDATION, 0);
	report(&a, 3, 70, "watch", NULL); /* has no guards */
	expect_reported(3, IPC_REASON_OK, 0);
	report(&a, 4, 70, "plain", NULL); /* not offered here */
	expect_reported(4, IPC_REASON_UNAUTHORISED, 0);
	report(&a, 5, 70, "none", NULL);
	expect_reported(5, IPC_REASON_UNKNOWN_RULE, 0);
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	ck_assert_uint_eq(of("guarded")->reports, 1);
	ck_assert_uint_eq(of("watch")->reports, 0);
	ck_assert_uint_eq(counters()->reports, 2);
	ck_assert_uint_eq(counters()->reports_refused, 3);
	report(&control, 6, 70, "guarded", "eu");
	next(&control);
	ck_assert_uint_eq(reply.number, IPC_REASON_UNAUTHORISED);
	id_hash_free(hash);
	stop();
}
END_TEST

static void
explain(struct ipc_peer *p, uint64_t id, const char *rule)
{
	struct writer *w = peer_begin(p, IPC_EXPLAIN, id);

	writer_u32(w, 0);
	writer_u32(w, 1);
	peer_str(p, rule);
	peer_str(p, "");
	peer_end(p);
}

static bool
says(const char *text)
{
	return memmem(reply.payload, reply.len, text, strlen(text)) != NULL;
}

START_TEST(explain_sends_nothing)
{
	start();
	explain(&a, 1, "watch");
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
	ck_assert(says("\"mode\":\"shadow\""));
	ck_assert(says("\"offered\":true"));
	explain(&a, 2, "plain");
	next(&a);
	ck_assert(says("\"offered\":false"));
	ck_assert(says("\"unauthorised\""));
	explain(&control, 3, "plain");
	next(&control);
	ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
	ck_assert(says("\"offered\":null"));
	explain(&a, 4, "none");
	expect_done(&a, 4, IPC_REASON_UNKNOWN_RULE);
	peer_empty(&a, IPC_RULES, 5);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
	ck_assert(says("\"name\":\"guarded\""));
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	ck_assert_uint_eq(counters()->checks, 0);
	peer_empty(&a, IPC_EXPLAIN, 6);
	expect_error(&a, 6, IPC_ERR_MALFORMED);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_rule");
	TCase *tc = tcase_create("dispatch_rule");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_watching_rule_permits_what_is_denied);
	tcase_add_test(tc, a_watching_rule_and_failures);
	tcase_add_test(tc, work_is_reported_to_every_tracker_of_its_rule);
	tcase_add_test(tc, explain_sends_nothing);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
