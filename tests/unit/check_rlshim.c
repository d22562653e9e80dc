/*
 * The shim's checks against a scripted agent: what goes out, how answers,
 * silence, refusals and garbage become decisions. The other calls are in
 * check_rlshim_calls.c, connections in check_rlshim_conn.c, processes and
 * threads in check_rlshim_process.c, bytes in check_rlshim_codec.c, arguments
 * in check_rlshim_args.c.
 */
#include "client-shim/rlshim.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/ipc_vectors.h"
#include "tests/unit/rlshim_fixture.h"

/* Other options than those of begin(). */
static void
reopen(enum rl_failure on_failure, uint32_t timeout_ms)
{
	rl_close(client);
	open_client(on_failure, timeout_ms);
}

/* ---- answers ---- */

static void
script_allow(struct fake *f)
{
	serve(f, fake_greet(f));
}

START_TEST(allowed)
{
	static const uint8_t zeros[IPC_HASH_LEN];
	const struct ipc_check_base *base = &fake.seen[1].base;
	struct ipc_hello hello;
	struct reader r;

	fake_start(&fake, script_allow);
	check_allowed();
	ck_assert_uint_gt(decision.elapsed_us, 0);
	fake_join(&fake);
	reader_init(&r, fake.seen[0].payload, fake.seen[0].payload_len);
	ck_assert_int_eq(ipc_dec_hello(&r, &hello), 0);
	ck_assert_uint_eq(hello.client.len, 5);
	ck_assert_mem_eq(hello.client.bytes, "check", 5);
	ck_assert_mem_eq(base->config_hash, zeros, IPC_HASH_LEN);
	ck_assert_uint_eq(base->age_us, 0);
	ck_assert_uint_eq(base->tokens, 1);
	ck_assert_uint_eq(base->options, 0);
	ck_assert_uint_gt(base->deadline_ms, 1000);
	ck_assert_uint_le(base->deadline_ms, 20000);
	ck_assert_uint_eq(base->operation_id[6] >> 4, 4);
	ck_assert_uint_eq(base->operation_id[8] >> 6, 2);
	ck_assert_uint_gt(fake.seen[1].head.id, fake.seen[0].head.id);
}
END_TEST

/* Whatever the agent decided is passed on as it is. */
static void
script_verbatim(struct fake *f)
{
	int conn = fake_greet(f);

	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_DENIED,
	    true, IPC_SOURCE_SHADOW, IPC_REASON_GUARD);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_FAILED,
	    true, IPC_SOURCE_LOCAL, IPC_REASON_TIMEOUT);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id, IPC_FAILED,
	    false, IPC_SOURCE_POLICY, IPC_REASON_UNKNOWN_RULE);
	fake_decide(f, conn, fake_read(f, conn, IPC_CHECK)->head.id,
	    IPC_CANCELLED, false, IPC_SOURCE_POLICY, IPC_REASON_CANCELLED);
}

START_TEST(answers_are_passed_on)
{
	fake_start(&fake, script_verbatim);
	check_simple();
	expect(RL_DENIED, 1, RL_SOURCE_SHADOW, RL_REASON_GUARD);
	ck_assert_str_eq(decision.text, "the fake said so");
	check_simple();
	expect(RL_FAILED, 1, RL_SOURCE_LOCAL, RL_REASON_TIMEOUT);
	ck_assert_str_eq(rl_last_text(client), "the fake said so");
	check_simple();
	expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_UNKNOWN_RULE);
	check_simple();
	expect(RL_CANCELLED, 0, RL_SOURCE_POLICY, RL_REASON_CANCELLED);
	fake_join(&fake);
	ck_assert_mem_ne(fake.seen[1].base.operation_id,
	    fake.seen[2].base.operation_id, IPC_ID_LEN);
}
END_TEST

/* Without a timeout of one's own it is the agent's default. */
static void
script_default(struct fake *f)
{
	int conn = fake_greet(f);

	serve(f, conn);
	serve(f, conn);
}

START_TEST(default_deadline)
{
	struct rl_check own = {.rule = "checkout", .timeout_ms = 7000};

	fake.default_deadline_ms = 50000;
	reopen(RL_OPEN, 0);
	fake_start(&fake, script_default);
	check_simple();
	ck_assert_int_eq(rl_check(client, &own, &decision, NULL), RL_OK);
	fake_join(&fake);
	ck_assert_uint_gt(fake.seen[1].base.deadline_ms, 30000);
	ck_assert_uint_le(fake.seen[1].base.deadline_ms, 50000);
	ck_assert_uint_gt(fake.seen[2].base.deadline_ms, 1000);
	ck_assert_uint_le(fake.seen[2].base.deadline_ms, 7000);
}
END_TEST

static void
script_detail(struct fake *f)
{
	static struct ipc_decision out = {.outcome = IPC_DENIED,
	    .reason = IPC_REASON_RESOURCE,
	    .has = IPC_HAS_DETAIL | IPC_HAS_SERVER,
	    .server_id = 77,
	    .round = 1,
	    .limit = {(const uint8_t *)"a\0b", 3},
	    .resource_count = 1,
	    .resources = {
		{.deficit = 4, .name = {(const uint8_t *)"a\0b", 3}}}};
	uint8_t buf[512];
	struct writer w;
	int conn = fake_greet(f);

	writer_init(&w, buf, sizeof(buf));
	ipc_enc_decision(
	    &w, fake_read(f, conn, IPC_CHECK_ADHOC)->head.id, &out);
	fake_write(f, conn, buf, writer_len(&w));
	serve(f, conn);
}

START_TEST(adhoc_with_detail)
{
	static struct rl_detail detail;
	static const struct rl_resource resource = {"a\0b", 3, 1000, 5, 4};
	struct rl_check check = {.resources = &resource, .resource_count = 1};

	fake_start(&fake, script_detail);
	ck_assert_int_eq(rl_check(client, &check, &decision, &detail), RL_OK);
	expect(RL_DENIED, 0, RL_SOURCE_SERVER, RL_REASON_RESOURCE);
	ck_assert_int_eq(decision.has_server, 1);
	ck_assert_uint_eq(decision.server_id, 77);
	ck_assert_uint_eq(decision.round, 1);
	ck_assert_uint_eq(decision.limit_len, 3);
	ck_assert_mem_eq(decision.limit, "a\0b", 4);
	ck_assert_uint_eq(detail.resource_count, 1);
	ck_assert_uint_eq(detail.guard_count, 0);
	ck_assert_uint_eq(detail.resources[0].deficit, 4);
	ck_assert_uint_eq(detail.resources[0].bucket_len, 3);
	/* An answer without: nothing of the last one is left. */
	ck_assert_int_eq(rl_check(client, &simple, &decision, &detail), RL_OK);
	ck_assert_uint_eq(detail.resource_count, 0);
	fake_join(&fake);
	ck_assert_uint_eq(fake.seen[1].base.options, IPC_OPT_DETAIL);
}
END_TEST

/* Frames in pieces, and several in one piece. */
static void
script_pieces(struct fake *f)
{
	struct ipc_ping late = {{(const uint8_t *)"late", 4}};
	struct ipc_decision out = {.outcome = IPC_ALLOWED, .permit = 1};
	uint8_t buf[512];
	struct writer w;
	size_t i;
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	writer_init(&w, buf, sizeof(buf));
	ipc_enc_decision(&w, id, &out);
	for (i = 0; i < writer_len(&w); i++)
		fake_write(f, conn, buf + i, 1);
	id = fake_read(f, conn, IPC_CHECK)->head.id;
	writer_init(&w, buf, sizeof(buf));
	ipc_enc_pong(&w, id + 1000, &late);
	ipc_enc_decision(&w, id, &out);
	ipc_enc_pong(&w, id + 1001, &late);
	fake_write(f, conn, buf, writer_len(&w) - 1); /* the last one in two */
	fake_read(f, conn, IPC_CHECK);
	fake_write(f, conn, buf + writer_len(&w) - 1, 1);
	fake_allow(f, conn, f->seen[f->seen_count - 1].head.id);
}

START_TEST(frames_in_pieces)
{
	fake_start(&fake, script_pieces);
	check_allowed();
	check_allowed();
	check_allowed();
}
END_TEST

/* Wrong ids and duplicates touch no decision. */
static void
script_ids(struct fake *f)
{
	int conn = fake_greet(f);
	uint64_t id = fake_read(f, conn, IPC_CHECK)->head.id;

	fake_deny(f, conn, id + 1);
	fake_deny(f, conn, id - 1);
	fake_deny(f, conn, UINT64_MAX);
	fake_allow(f, conn, id);
	fake_deny(f, conn, id);
	fake_deny(f, conn, id);
	serve(f, conn);
}

START_TEST(wrong_ids_and_duplicates)
{
	fake_start(&fake, script_ids);
	check_allowed();
	check_allowed();
}
END_TEST

/* ---- no agent, or a silent one ---- */

START_TEST(without_an_agent)
{
	static struct rl_detail detail;
	uint64_t took;

	reopen(RL_OPEN, 40);
	detail.guard_count = 9;
	ck_assert_int_eq(rl_check(client, &simple, &decision, &detail), RL_OK);
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_ptr_nonnull(strstr(decision.text, fake.path));
	ck_assert_uint_eq(detail.guard_count, 0);
	ck_assert_uint_ge(decision.elapsed_us, 40000);
	ck_assert_int_eq(rl_ping(client, 5, &took), RL_EUNAVAILABLE);
	ck_assert_int_eq(rl_wait(client, 5), RL_EUNAVAILABLE);
	ck_assert_int_eq(
	    rl_report(client, NULL, "inventory", NULL, 0, 1), RL_EUNAVAILABLE);
	reopen(RL_CLOSED, 5);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 0);
}
END_TEST

/* What trying again cannot mend is told at once. */
START_TEST(not_a_stream_socket)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(sun.sun_path, fake.path, strlen(fake.path));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_uint_lt(decision.elapsed_us, 15000000);
	close(fd);
}
END_TEST

static void
script_stalls(struct fake *f)
{
	uint64_t late;
	int conn = fake_greet(f);

	serve(f, conn);
	late = fake_read(f, conn, IPC_CHECK)->head.id;
	fake_read(f, conn, IPC_CANCEL);
	ck_assert_uint_eq(f->seen[f->seen_count - 1].head.id, late);
	fake_read(f, conn, IPC_CHECK);
	fake_deny(f, conn, late);
	fake_allow(f, conn, f->seen[f->seen_count - 1].head.id);
}

START_TEST(silence_then_a_late_answer)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 100};

	fake_start(&fake, script_stalls);
	check_simple();
	ck_assert_int_eq(rl_check(client, &hasty, &decision, NULL), RL_OK);
	expect_failed(RL_REASON_TIMEOUT, 1);
	ck_assert_uint_ge(decision.elapsed_us, 200000); /* with the grace */
	check_allowed();
	fake_join(&fake);
	ck_assert_int_eq(fake.conn_count, 1);
}
END_TEST

static void
script_last_word(struct fake *f)
{
	struct timespec until;
	struct fake_message *m;
	int conn = fake_greet(f);

	serve(f, conn);
	m = fake_read(f, conn, IPC_CHECK);

	/* The deadline is what is tested, so it has to pass. */
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(m->base.deadline_ms + 1) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	fake_decide(f, conn, m->head.id, IPC_FAILED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_TIMEOUT);
}

/*
 * The agent's own answer at the deadline counts within the grace. On a
 * machine that is too slow for that, the grace must have been waited for.
 */
START_TEST(the_agent_has_the_last_word)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 100};

	fake_start(&fake, script_last_word);
	check_simple();
	ck_assert_int_eq(rl_check(client, &hasty, &decision, NULL), RL_OK);
	ck_assert_uint_ge(decision.elapsed_us, 99000);
	if (strcmp(decision.text, "the fake said so") == 0)
		expect(RL_FAILED, 0, RL_SOURCE_POLICY, RL_REASON_TIMEOUT);
	else
		ck_assert_uint_ge(decision.elapsed_us, 200000);
}
END_TEST

static void
script_no_greeting(struct fake *f)
{
	int conn = fake_accept(f);

	fake_read(f, conn, IPC_HELLO);
	ck_assert(fake_at_end(f, conn));
	conn = fake_accept(f);
	fake_read(f, conn, IPC_HELLO);
	ck_assert(fake_at_end(f, conn));
}

START_TEST(silence_at_the_greeting)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 30};

	fake_start(&fake, script_no_greeting);
	ck_assert_int_eq(rl_check(client, &hasty, &decision, NULL), RL_OK);
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_int_eq(rl_ping(client, 30, NULL), RL_ETIMEDOUT);
}
END_TEST

/* ---- refusals ---- */

static void
refuse(struct fake *f, enum ipc_error_code number)
{
	int conn = fake_accept(f);

	fake_read(f, conn, IPC_HELLO);
	fake_error(f, conn, 0, number);
}

static void
script_version(struct fake *f)
{
	refuse(f, IPC_ERR_VERSION);
	refuse(f, IPC_ERR_VERSION);
}

START_TEST(no_common_version)
{
	fake_start(&fake, script_version);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_str_eq(decision.text, "the fake's error");
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EPROTO);
	ck_assert_str_eq(rl_last_text(client), "the fake's error");
}
END_TEST

static void
script_unauthorised(struct fake *f)
{
	refuse(f, IPC_ERR_UNAUTHORISED);
	refuse(f, IPC_ERR_UNAUTHORISED);
}

START_TEST(unauthorised_never_permits)
{
	fake_start(&fake, script_unauthorised);
	check_simple();
	expect_failed(RL_REASON_UNAUTHORISED, 0);
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EREFUSED);
}
END_TEST

static void
script_busy(struct fake *f)
{
	int conn;

	refuse(f, IPC_ERR_BUSY);
	refuse(f, IPC_ERR_BUSY);
	refuse(f, IPC_ERR_BUSY);
	conn = fake_greet(f);
	serve(f, conn);
}

START_TEST(busy_is_tried_again)
{
	fake_start(&fake, script_busy);
	check_allowed();
}
END_TEST

/* Refuses for as long as the test says so; the last one gets no answer. */
static atomic_bool refusing = true;

static void
script_busy_for_ever(struct fake *f)
{
	int conn;

	for (;;) {
		f->conn_count = 0;
		f->seen_count = 0;
		conn = fake_accept(f);
		fake_read(f, conn, IPC_HELLO);
		if (!atomic_load(&refusing))
			return;
		fake_error(f, conn, 0, IPC_ERR_BUSY);
	}
}

START_TEST(busy_until_the_deadline)
{
	struct rl_check hasty = {.rule = "checkout", .timeout_ms = 300};

	fake_start(&fake, script_busy_for_ever);
	ck_assert_int_eq(rl_check(client, &hasty, &decision, NULL), RL_OK);
	expect_failed(RL_REASON_OVERLOADED, 1);
	ck_assert_int_eq(rl_ping(client, 300, NULL), RL_EREFUSED);
	atomic_store(&refusing, false);
	ck_assert_int_eq(rl_ping(client, 300, NULL), RL_ETIMEDOUT);
}
END_TEST

/* ---- an agent that is none, or broken ---- */

static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

static void
script_http(struct fake *f)
{
	int conn = fake_accept(f);

	fake_write(f, conn, http, sizeof(http) - 1);
	conn = fake_accept(f);
	fake_write(f, conn, http, sizeof(http) - 1);
	conn = fake_greet(f);
	fake_read(f, conn, IPC_CHECK);
	fake_write(f, conn, http, sizeof(http) - 1);
}

START_TEST(garbage)
{
	fake_start(&fake, script_http);
	check_simple();
	expect_failed(RL_REASON_UNAVAILABLE, 1);
	ck_assert_int_eq(rl_ping(client, 0, NULL), RL_EPROTO);
	/* It was sent: who knows what came of it. */
	check_simple();
	expect_failed(RL_REASON_INTERRUPTED, 1);
}
END_TEST

/* A vector of the agent's with another request id; NULL: no more. */
static const json_t *
next_malformed(size_t *i)
{
	const json_t *all = vec_member(vectors, "malformed");
	const json_t *vector;

	while ((vector = json_array_get(all, (*i)++)) != NULL)
		if (!vec_from_client(vector))
			return vector;
	return NULL;
}

static void
script_malformed(struct fake *f)
{
	const json_t *vector;
	uint8_t *frame;
	size_t len, i = 0;
	uint64_t id;
	int conn, k;

	while ((vector = next_malformed(&i)) != NULL) {
		f->seen_count = 0;
		f->conn_count = 0;
		conn = fake_greet(f);
		id = fake_read(f, conn, IPC_CHECK)->head.id;
		vec_used = 0;
		len = vec_frame(vector, &frame);
		for (k = 0; k < 8; k++)
			frame[8 + k] = (uint8_t)(id >> (8 * k));
		fake_write(f, conn, frame, len);
		ck_assert(fake_at_end(f, conn));
		fake_close(f, conn);
	}
}

/* Each kind of broken frame ends the connection and the check with it. */
START_TEST(malformed_frames)
{
	size_t i = 0, n = 0;

	vec_load();
	fake_start(&fake, script_malformed);
	while (next_malformed(&i) != NULL) {
		check_simple();
		expect_failed(RL_REASON_INTERRUPTED, 1);
		n++;
	}
	ck_assert_uint_gt(n, 20);
	fake_join(&fake);
	vec_free();
}
END_TEST

/* An agent that reads nothing more: buffers fill up, nothing hangs. */
#define UNREAD 60

START_TEST(an_agent_that_does_not_read)
{
	static char names[RL_MAX_RESOURCES][RL_NAME_MAX];
	struct rl_resource resources[RL_MAX_RESOURCES];
	struct rl_check check = {.timeout_ms = 10,
	    .resources = resources,
	    .resource_count = RL_MAX_RESOURCES};
	ssize_t got;
	int i, unread = 0;

	for (i = 0; i < RL_MAX_RESOURCES; i++)
		resources[i] =
		    (struct rl_resource){names[i], RL_NAME_MAX, 1000, 1, 1};
	fake_start(&fake, script_allow);
	check_simple();
	fake_join(&fake);
	for (i = 0; i < UNREAD; i++)
		ck_assert_int_eq(
		    rl_submit(client, &check, NULL, marks, NULL), RL_OK);
	for (i = 0; i < UNREAD; i++) {
		collect();
		ck_assert_int_eq(decision.outcome, RL_FAILED);
		if (decision.reason == RL_REASON_TIMEOUT)
			continue;
		unread++;
		expect(RL_FAILED, 1, RL_SOURCE_POLICY, RL_REASON_UNAVAILABLE);
		ck_assert_str_eq(decision.text, "the agent does not read");
	}
	ck_assert_int_gt(unread, 0);
	/* Nothing is asked of that connection any more. */
	while ((got = recv(fake.conns[0], names, sizeof(names), 0)) > 0)
		continue;
	ck_assert_int_eq(got, 0);
}
END_TEST

START_TEST(socket_from_the_environment)
{
	fake_start(&fake, script_allow);
	rl_close(client);
	setenv("RL_AGENT_SOCKET", fake.path, 1);
	ck_assert_int_eq(rl_open(&client, NULL), RL_OK);
	check_allowed();
}
END_TEST

static Suite *
rlshim_suite(void)
{
	Suite *s = suite_create("rlshim");
	TCase *tc = tcase_create("checks");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, allowed);
	tcase_add_test(tc, answers_are_passed_on);
	tcase_add_test(tc, default_deadline);
	tcase_add_test(tc, adhoc_with_detail);
	tcase_add_test(tc, frames_in_pieces);
	tcase_add_test(tc, wrong_ids_and_duplicates);
	tcase_add_test(tc, without_an_agent);
	tcase_add_test(tc, not_a_stream_socket);
	tcase_add_test(tc, silence_then_a_late_answer);
	tcase_add_test(tc, the_agent_has_the_last_word);
	tcase_add_test(tc, silence_at_the_greeting);
	tcase_add_test(tc, no_common_version);
	tcase_add_test(tc, unauthorised_never_permits);
	tcase_add_test(tc, busy_is_tried_again);
	tcase_add_test(tc, busy_until_the_deadline);
	tcase_add_test(tc, garbage);
	tcase_add_test(tc, malformed_frames);
	tcase_add_test(tc, an_agent_that_does_not_read);
	tcase_add_test(tc, socket_from_the_environment);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return harness_run(rlshim_suite());
}
