/*
 * The calls of the shim that do not decide, against a scripted agent:
 * reports, ping, wait, control, and queries with their documents.
 */
#include "client-shim/rlshim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/unit/rlshim_fixture.h"

static void
script_reports(struct fake *f)
{
	struct ipc_reported out = {IPC_REASON_OK, 3, {NULL, 0}};
	uint8_t buf[256];
	struct writer w;
	int i, conn = fake_greet(f);

	for (i = 0; i < 3; i++) {
		writer_init(&w, buf, sizeof(buf));
		ipc_enc_reported(
		    &w, fake_read(f, conn, IPC_REPORT)->head.id, &out);
		fake_write(f, conn, buf, writer_len(&w));
	}
	out = (struct ipc_reported){
	    IPC_REASON_VALIDATION, 0, {(const uint8_t *)"no such", 7}};
	writer_init(&w, buf, sizeof(buf));
	ipc_enc_reported(
	    &w, fake_read(f, conn, IPC_REPORT_ADHOC)->head.id, &out);
	fake_write(f, conn, buf, writer_len(&w));
	fake_read(f, conn, IPC_REPORT);
	fake_close(f, conn);
	/* Not repeated: next comes what is asked next. */
	conn = fake_greet(f);
	fake_done(
	    f, conn, fake_read(f, conn, IPC_WAIT)->head.id, IPC_REASON_OK, "");
}

/* What the agent got; key NULL: none. */
static void
expect_report(const struct fake_message *m, const char *tenant,
    const char *tracker, const char *key, size_t key_len, uint32_t ms)
{
	struct ipc_report got;
	struct reader r;

	reader_init(&r, m->payload, m->payload_len);
	ck_assert_int_eq(ipc_dec_report(&r, &got), 0);
	ck_assert_uint_eq(got.latency_ms, ms);
	ck_assert_uint_eq(got.options, key != NULL ? IPC_OPT_KEY : 0);
	ck_assert_uint_eq(got.tenant.len, strlen(tenant));
	ck_assert_mem_eq(got.tenant.bytes, tenant, strlen(tenant));
	ck_assert_uint_eq(got.tracker.len, strlen(tracker));
	ck_assert_mem_eq(got.tracker.bytes, tracker, strlen(tracker));
	ck_assert_uint_eq(got.key.len, key_len);
	ck_assert_mem_eq(got.key.bytes, key != NULL ? key : "", key_len);
}

START_TEST(reports)
{
	struct rl_guard tracker = {.tracker = "\0", .tracker_len = 1};

	fake_start(&fake, script_reports);
	ck_assert_int_eq(
	    rl_report(client, "main", "inventory", NULL, 0, 12), RL_OK);
	ck_assert_int_eq(
	    rl_report(client, NULL, "of {key}", "a\0b", 3, 13), RL_OK);
	ck_assert_int_eq(rl_report(client, NULL, "of {key}", "", 0, 14), RL_OK);
	ck_assert_int_eq(
	    rl_report_adhoc(client, NULL, &tracker, 12), RL_EREFUSED);
	ck_assert_str_eq(rl_last_text(client), "validation: no such");
	ck_assert_int_eq(
	    rl_report(client, NULL, "inventory", NULL, 0, 12), RL_EUNAVAILABLE);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
	fake_join(&fake);
	/* After the HELLO. */
	expect_report(&fake.seen[1], "main", "inventory", NULL, 0, 12);
	expect_report(&fake.seen[2], "", "of {key}", "a\0b", 3, 13);
	expect_report(&fake.seen[3], "", "of {key}", "", 0, 14);
}
END_TEST

static void
script_others(struct fake *f)
{
	struct ipc_ping pong;
	struct fake_message *m;
	uint8_t buf[256];
	struct writer w;
	int conn = fake_greet(f);

	m = fake_read(f, conn, IPC_PING);
	pong.bytes = (struct ipc_str){m->payload, (uint16_t)m->payload_len};
	writer_init(&w, buf, sizeof(buf));
	ipc_enc_pong(&w, m->head.id, &pong);
	fake_write(f, conn, buf, writer_len(&w));
	fake_done(f, conn, fake_read(f, conn, IPC_WAIT)->head.id,
	    IPC_REASON_TIMEOUT, "no server");
	fake_done(f, conn, fake_read(f, conn, IPC_QUIT)->head.id,
	    IPC_REASON_UNAUTHORISED, "not here");
	fake_done(
	    f, conn, fake_read(f, conn, IPC_QUIT)->head.id, IPC_REASON_OK, "");
	m = fake_read(f, conn, IPC_PING);
	pong.bytes.len--;
	writer_init(&w, buf, sizeof(buf));
	ipc_enc_pong(&w, m->head.id, &pong);
	fake_write(f, conn, buf, writer_len(&w));
}

START_TEST(ping_wait_control)
{
	uint64_t took = 0;

	fake_start(&fake, script_others);
	ck_assert_int_eq(rl_ping(client, 0, &took), RL_OK);
	ck_assert_uint_gt(took, 0);
	ck_assert_int_eq(rl_wait(client, 10000), RL_ETIMEDOUT);
	ck_assert_str_eq(rl_last_text(client), "timeout: no server");
	ck_assert_int_eq(rl_control(client, "quit", 0), RL_EREFUSED);
	ck_assert_str_eq(rl_last_text(client), "unauthorised: not here");
	ck_assert_int_eq(rl_control(client, "quit", 0), RL_OK);
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EPROTO);
	ck_assert_int_eq(rl_control(client, "reboot", 0), RL_EINVAL);
	ck_assert_int_eq(rl_control(client, NULL, 0), RL_EINVAL);
}
END_TEST

static void
script_documents(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_STATUS)->head.id;

	/* Lost in the middle: asked again, and begun anew. */
	fake_document(f, conn, id, "{\"half\":", true);
	fake_close(f, conn);
	conn = fake_greet(f);
	id = fake_read(f, conn, IPC_STATUS)->head.id;
	fake_document(f, conn, id, "{\"a\"", true);
	fake_document(f, conn, id + 7, "not yours", false);
	fake_document(f, conn, id, "", true);
	fake_document(f, conn, id, ":1}", false);
	id = fake_read(f, conn, IPC_SERVERS)->head.id;
	fake_document(f, conn, id, "", false);
	id = fake_read(f, conn, IPC_POLICY)->head.id;
	fake_document(f, conn, id, "{}", false);
	id = fake_read(f, conn, IPC_SERVERS)->head.id;
	fake_done(f, conn, id, IPC_REASON_UNAUTHORISED, "no");
	id = fake_read(f, conn, IPC_SERVERS)->head.id;
	fake_done(f, conn, id, IPC_REASON_OK, "that is no document");
}

START_TEST(documents)
{
	char *json;

	fake_start(&fake, script_documents);
	ck_assert_int_eq(rl_query(client, "status", 0, &json), RL_OK);
	ck_assert_str_eq(json, "{\"a\":1}");
	free(json);
	ck_assert_int_eq(rl_query(client, "servers", 0, &json), RL_OK);
	ck_assert_str_eq(json, "");
	free(json);
	ck_assert_int_eq(rl_query(client, "policy", 0, &json), RL_OK);
	ck_assert_str_eq(json, "{}");
	free(json);
	ck_assert_int_eq(rl_query(client, "servers", 0, &json), RL_EREFUSED);
	ck_assert_ptr_null(json);
	ck_assert_int_eq(rl_query(client, "servers", 0, &json), RL_EPROTO);
	ck_assert_int_eq(rl_query(client, "counters", 0, &json), RL_EINVAL);
	ck_assert_int_eq(rl_query(client, NULL, 0, &json), RL_EINVAL);
	ck_assert_int_eq(rl_query(client, "status", 0, NULL), RL_EINVAL);
}
END_TEST

static void
script_explains(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_RULES)->head.id;

	fake_document(f, conn, id, "{\"rules\": []}", false);
	id = fake_read(f, conn, IPC_EXPLAIN)->head.id;
	fake_document(f, conn, id, "{\"a\":", true);
	fake_close(f, conn);
	conn = fake_greet(f);
	id = fake_read(f, conn, IPC_EXPLAIN)->head.id;
	fake_document(f, conn, id, "{\"a\":", true);
	fake_document(f, conn, id, "1}", false);
	id = fake_read(f, conn, IPC_EXPLAIN)->head.id;
	fake_done(f, conn, id, IPC_REASON_UNKNOWN_RULE, "no such rule");
}

static void
expect_explain(const struct fake_message *m, uint32_t tokens, const char *key,
    size_t key_len)
{
	struct ipc_explain got;
	struct reader r;

	reader_init(&r, m->payload, m->payload_len);
	ck_assert_int_eq(ipc_dec_explain(&r, &got), 0);
	ck_assert_uint_eq(got.tokens, tokens);
	ck_assert_uint_eq(got.options, key != NULL ? IPC_OPT_KEY : 0);
	ck_assert_uint_eq(got.rule.len, 8);
	ck_assert_mem_eq(got.rule.bytes, "checkout", 8);
	ck_assert_uint_eq(got.key.len, key_len);
	ck_assert_mem_eq(got.key.bytes, key != NULL ? key : "", key_len);
}

START_TEST(rules_and_explain)
{
	struct rl_check check = {
	    .rule = "checkout", .key = "a\0b", .key_len = 3, .tokens = 7};
	struct rl_check adhoc = {.label = "x"};
	char *json;

	fake_start(&fake, script_explains);
	ck_assert_int_eq(rl_query(client, "rules", 0, &json), RL_OK);
	ck_assert_str_eq(json, "{\"rules\": []}");
	free(json);
	ck_assert_int_eq(rl_explain(client, &check, &json), RL_OK);
	ck_assert_str_eq(json, "{\"a\":1}");
	free(json);
	ck_assert_int_eq(rl_explain(client, &simple, &json), RL_EREFUSED);
	ck_assert_ptr_null(json);
	ck_assert_str_eq(rl_last_text(client), "unknown-rule: no such rule");
	ck_assert_int_eq(rl_explain(client, &adhoc, &json), RL_EINVAL);
	ck_assert_int_eq(rl_explain(client, NULL, &json), RL_EINVAL);
	ck_assert_int_eq(rl_explain(client, &simple, NULL), RL_EINVAL);
	check.tokens = 65536;
	ck_assert_int_eq(rl_explain(client, &check, &json), RL_EINVAL);
	ck_assert_ptr_null(json);
	fake_join(&fake);
	expect_explain(&fake.seen[4], 7, "a\0b", 3);
	expect_explain(&fake.seen[5], 1, NULL, 0);
}
END_TEST

static void
script_controls(struct fake *f)
{
	int conn = fake_greet(f);

	fake_done(f, conn, fake_read(f, conn, IPC_RELOAD)->head.id,
	    IPC_REASON_VALIDATION, "a.json: rules: not an object");
	fake_done(f, conn, fake_read(f, conn, IPC_RELOAD)->head.id,
	    IPC_REASON_OK, "");
	fake_done(
	    f, conn, fake_read(f, conn, IPC_DRAIN)->head.id, IPC_REASON_OK, "");
	/* Not asked again when nobody knows whether it was done. */
	fake_read(f, conn, IPC_RELOAD);
	fake_close(f, conn);
	conn = fake_greet(f);
	fake_done(
	    f, conn, fake_read(f, conn, IPC_WAIT)->head.id, IPC_REASON_OK, "");
}

START_TEST(controls)
{
	fake_start(&fake, script_controls);
	ck_assert_int_eq(rl_control(client, "reload", 0), RL_EREFUSED);
	ck_assert_str_eq(
	    rl_last_text(client), "validation: a.json: rules: not an object");
	ck_assert_int_eq(rl_control(client, "reload", 0), RL_OK);
	ck_assert_int_eq(rl_control(client, "drain", 0), RL_OK);
	ck_assert_int_eq(rl_control(client, "reload", 0), RL_EUNAVAILABLE);
	ck_assert_int_eq(rl_wait(client, 0), RL_OK);
}
END_TEST

/*
 * A reload and a document take the agent longer than a check: without a
 * timeout of their own they have time, but only when there is an agent.
 */
static void
script_takes_its_time(struct fake *f)
{
	struct timespec longer = {.tv_sec = 1, .tv_nsec = 100000000};
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_RELOAD)->head.id;

	nanosleep(&longer, NULL);
	fake_done(f, conn, id, IPC_REASON_OK, "");
	id = fake_read(f, conn, IPC_STATUS)->head.id;
	nanosleep(&longer, NULL);
	fake_document(f, conn, id, "{}", false);
	fake_read(f, conn, IPC_RELOAD);
	ck_assert(fake_at_end(f, conn));
}

START_TEST(time_for_a_reload)
{
	char *json;

	rl_close(client);
	open_client(RL_OPEN, 1000);
	fake_start(&fake, script_takes_its_time);
	ck_assert_int_eq(rl_control(client, "reload", 0), RL_OK);
	ck_assert_int_eq(rl_query(client, "status", 0, &json), RL_OK);
	free(json);
	ck_assert_int_eq(rl_control(client, "reload", 50), RL_ETIMEDOUT);
	fake_join(&fake);
	fake_vanish(&fake);
	rl_close(client);
	open_client(RL_OPEN, 5);
	ck_assert_int_eq(rl_control(client, "reload", 0), RL_EUNAVAILABLE);
}
END_TEST

/* Some more than the 64 megabytes that the shim takes. */
static void
script_endless(struct fake *f)
{
	static uint8_t frame[IPC_MAX_FRAME];
	static uint8_t piece[IPC_MAX_FRAME - IPC_HEAD_LEN];
	struct writer w;
	size_t i;
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_STATUS)->head.id;

	memset(piece, ' ', sizeof(piece));
	writer_init(&w, frame, sizeof(frame));
	ipc_enc_document(&w, id, piece, sizeof(piece), true);
	for (i = 0; i < 4200; i++)
		if (send(f->conns[conn], frame, sizeof(frame), MSG_NOSIGNAL) <
		    0)
			return;
	ck_abort_msg("it was all taken");
}

START_TEST(a_document_without_end)
{
	char *json;

	fake_start(&fake, script_endless);
	ck_assert_int_eq(rl_query(client, "status", 0, &json), RL_EPROTO);
	ck_assert_ptr_null(json);
}
END_TEST

static Suite *
calls_suite(void)
{
	Suite *s = suite_create("rlshim_calls");
	TCase *tc = tcase_create("calls");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, reports);
	tcase_add_test(tc, ping_wait_control);
	tcase_add_test(tc, documents);
	tcase_add_test(tc, rules_and_explain);
	tcase_add_test(tc, controls);
	tcase_add_test(tc, time_for_a_reload);
	tcase_add_test(tc, a_document_without_end);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(calls_suite());
}
