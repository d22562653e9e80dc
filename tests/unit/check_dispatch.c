/*
 * Frames: the greeting, everything that can be wrong with one, and the small
 * messages. Whoever sends nonsense loses its own connection, no other.
 */
#include "daemon/dispatch.h"

#include <jansson.h>

#include "daemon/dispatch_private.h" /* for the frame timeout */
#include "tests/unit/agent_fixture.h"

static struct ipc_peer a, b;

static struct tenant *
slow(void)
{
	return agent->setup->tenants[1]; /* sorted by name */
}

START_TEST(welcome)
{
	struct reader r;

	start_agent(&(struct shape){.listener = ",\"max_inflight\":77"});
	join(&a, main_path);
	ck_assert_uint_eq(reply.id, 0);
	reader_init(&r, reply.payload, reply.len);
	ck_assert_uint_eq(reader_u16(&r), 1);
	ck_assert_uint_eq(reader_u16(&r), 0);
	ck_assert_uint_eq(reader_u32(&r), 16384);
	ck_assert_uint_eq(reader_u32(&r), 77);
	ck_assert_uint_eq(reader_u32(&r), 31000); /* H of "slow", 1 s more */
	ck_assert_mem_eq(
	    reader_bytes(&r, 16), agent->setup->config->hash, CONFIG_HASH_LEN);
	ck_assert_uint_eq(reader_u64(&r), 1);
	ck_assert_uint_eq(reader_u16(&r), strlen(PACKAGE_STRING));
	ck_assert_uint_eq(reader_left(&r), strlen(PACKAGE_STRING));
	expect_alive(&a, 1);
	stop_agent();
}
END_TEST

static void
hello(struct ipc_peer *p, uint32_t magic, uint16_t low, uint16_t high)
{
	struct writer *w;

	peer_open(p, main_path);
	w = peer_begin(p, IPC_HELLO, 9);
	writer_u32(w, magic);
	writer_u16(w, low);
	writer_u16(w, high);
	peer_str(p, "");
	peer_end(p);
}

START_TEST(versions)
{
	static const uint16_t common[][2] = {{0, 1}, {1, 2}, {0, 65535}};
	static const uint16_t none[][2] = {{2, 3}, {0, 0}, {2, 1}, {65535, 0}};

	start_agent(&(struct shape){0});
	for (unsigned int i = 0; i < 3; i++) {
		hello(&a, IPC_MAGIC, common[i][0], common[i][1]);
		next(&a);
		ck_assert_uint_eq(reply.type, IPC_WELCOME);
		peer_close(&a);
	}
	for (unsigned int i = 0; i < 4; i++) {
		hello(&a, IPC_MAGIC, none[i][0], none[i][1]);
		expect_error(&a, 9, IPC_ERR_VERSION);
		peer_close(&a);
	}
	hello(&a, IPC_MAGIC + 1, 1, 1);
	expect_error(&a, 9, IPC_ERR_MALFORMED);
	stop_agent();
}
END_TEST

START_TEST(greeting)
{
	static const uint16_t types[] = {IPC_PING, IPC_CANCEL, IPC_STATUS,
	    IPC_QUIT, IPC_CHECK, IPC_WELCOME, 0x7777};

	start_agent(&(struct shape){0});
	for (unsigned int i = 0; i < sizeof(types) / sizeof(*types); i++) {
		peer_open(&a, main_path);
		peer_empty(&a, types[i], 5);
		expect_error(&a, 5, IPC_ERR_GREETING);
		peer_close(&a);
	}
	join(&a, main_path);
	peer_hello(&a);
	expect_error(&a, 0, IPC_ERR_GREETING);
	ck_assert_uint_eq(counters()->frames_bad, 8);
	stop_agent();
}
END_TEST

static void
raw_length(struct ipc_peer *p, uint32_t length)
{
	uint8_t bytes[16] = {0};

	bytes[0] = (uint8_t)length;
	bytes[1] = (uint8_t)(length >> 8);
	bytes[2] = (uint8_t)(length >> 16);
	bytes[3] = (uint8_t)(length >> 24);
	ck_assert(peer_write(p, bytes, 4));
}

/* b has a check in flight and goes on with it whatever happens to a. */
static void
with_another(void)
{
	start_agent(&(struct shape){0});
	join(&b, main_path);
	peer_check(&b, 1, &once, "plain", NULL);
	take(0);
	join(&a, main_path);
}

static void
another_is_undisturbed(void)
{
	expect_alive(&b, 2);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert_uint_eq(decision.server_id, 101);
	stop_agent();
}

START_TEST(lengths)
{
	static const uint32_t bad[] = {0, 1, 15, 16385, 65536, UINT32_MAX};

	with_another();
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		raw_length(&a, bad[i]);
		expect_error(&a, 0, IPC_ERR_MALFORMED);
		peer_close(&a);
		join(&a, main_path);
	}
	ck_assert_uint_eq(counters()->frames_bad, 6);
	another_is_undisturbed();
}
END_TEST

START_TEST(an_unfinished_frame)
{
	new_agent(&(struct shape){0});
	conn_pool_set_frame_timeout(agent->dispatch->pool, 20000);
	join(&b, main_path);
	join(&a, main_path);
	ck_assert(peer_write(&a, "\x20", 1));
	expect_error(&a, 0, IPC_ERR_SLOW);
	ck_assert_uint_eq(counters()->frames_slow, 1);
	ck_assert_uint_eq(counters()->frames_bad, 0);
	expect_alive(&b, 2);
	stop_agent();
}
END_TEST

START_TEST(types)
{
	static const uint16_t bad[] = {0, 2, 0x13, 0x23, 0x49, 0x54, 0x64,
	    0x7FFF, IPC_WELCOME, IPC_DECISION, IPC_DONE, IPC_ERROR,
	    IPC_GO_AWAY};

	with_another();
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		peer_empty(&a, bad[i], 40 + i);
		expect_error(&a, 40 + i, IPC_ERR_TYPE);
		peer_close(&a);
		join(&a, main_path);
	}
	another_is_undisturbed();
}
END_TEST

/* Each message with a byte too many; then each that has a payload, short. */
START_TEST(payloads)
{
	static const uint16_t all[] = {IPC_CHECK, IPC_CHECK_ADHOC, IPC_CANCEL,
	    IPC_REPORT, IPC_REPORT_ADHOC, IPC_REPORT_RULE, IPC_EXPLAIN,
	    IPC_WAIT, IPC_ACQUIRE, IPC_TRY_ACQUIRE, IPC_ERROR_BEGIN,
	    IPC_ERROR_SUCCESS, IPC_SET_RATE, IPC_STATUS, IPC_SERVERS,
	    IPC_POLICY, IPC_RULES, IPC_LIMITERS, IPC_METRICS, IPC_TOP, IPC_QUIT,
	    IPC_RELOAD, IPC_DRAIN, IPC_PING};

	with_another();
	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++) {
		writer_zeros(peer_begin(&a, all[i], 3), 300);
		peer_end(&a);
		expect_error(&a, 3, IPC_ERR_MALFORMED);
		peer_close(&a);
		join(&a, main_path);
	}
	for (unsigned int i = 0; i < 13; i++) {
		if (all[i] == IPC_CANCEL)
			continue;
		writer_zeros(peer_begin(&a, all[i], 3), 3);
		peer_end(&a);
		expect_error(&a, 3, IPC_ERR_MALFORMED);
		peer_close(&a);
		join(&a, main_path);
	}
	ck_assert_uint_eq(counters()->frames_bad, 36);
	ck_assert_uint_eq(counters()->checks, 1);
	another_is_undisturbed();
}
END_TEST

START_TEST(ids_in_flight)
{
	with_another();
	peer_check(&a, 7, &(struct peer_base){.number = 2, .tokens = 1},
	    "plain", NULL);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 2);
	expect_alive(&a, 6); /* another id is fine, in any order */
	peer_check(&a, 7, &(struct peer_base){.number = 3, .tokens = 1},
	    "plain", NULL);
	expect_error(&a, 7, IPC_ERR_ID);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 1);
	/* Decided is not in flight: the id may come again. */
	peer_close(&a);
	join(&a, main_path);
	peer_check(&a, 7, &once, "empty", NULL);
	next(&a);
	peer_check(&a, 7, &once, "empty", NULL);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_DECISION);
	another_is_undisturbed();
}
END_TEST

START_TEST(frames_in_pieces_and_in_heaps)
{
	static uint8_t heap[8000];
	size_t len = 0;

	with_another();
	writer_bytes(peer_begin(&a, IPC_PING, 1), "echo", 4);
	writer_patch_u32(&a.w, 0, (uint32_t)writer_len(&a.w));
	for (size_t i = 0; i < writer_len(&a.w); i++) {
		ck_assert(peer_write(&a, a.frame + i, 1));
		settle();
	}
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_PONG);
	while (len + writer_len(&a.w) <= sizeof(heap)) {
		memcpy(heap + len, a.frame, writer_len(&a.w));
		len += writer_len(&a.w);
	}
	ck_assert(peer_write(&a, heap, len));
	for (size_t i = 0; i < len / writer_len(&a.w); i++) {
		next(&a);
		ck_assert_uint_eq(reply.type, IPC_PONG);
	}
	another_is_undisturbed();
}
END_TEST

START_TEST(ping)
{
	static uint8_t bytes[65];

	with_another();
	for (size_t len = 0; len <= 64; len += 32) {
		memset(bytes, (int)len, sizeof(bytes));
		writer_bytes(peer_begin(&a, IPC_PING, len + 1), bytes, len);
		peer_end(&a);
		next(&a);
		ck_assert_uint_eq(reply.type, IPC_PONG);
		ck_assert_uint_eq(reply.len, len);
		ck_assert_mem_eq(reply.payload, bytes, len);
	}
	writer_bytes(peer_begin(&a, IPC_PING, 1), bytes, 65);
	peer_end(&a);
	expect_error(&a, 1, IPC_ERR_MALFORMED);
	another_is_undisturbed();
}
END_TEST

static void
report_keyed(struct ipc_peer *p, uint64_t id, uint32_t ms, const char *tenant,
    const char *tracker, uint32_t options, const char *key)
{
	struct writer *w = peer_begin(p, IPC_REPORT, id);

	writer_u32(w, ms);
	writer_u32(w, options);
	peer_str(p, tenant);
	peer_str(p, tracker);
	peer_str(p, key);
	peer_end(p);
}

static void
report(struct ipc_peer *p, uint64_t id, uint32_t ms, const char *tenant,
    const char *tracker)
{
	report_keyed(p, id, ms, tenant, tracker, 0, "");
}

static void
expect_reported(
    struct ipc_peer *p, uint64_t id, enum ipc_reason reason, uint32_t sent)
{
	next(p);
	ck_assert_uint_eq(reply.type, IPC_REPORTED);
	ck_assert_uint_eq(reply.id, id);
	ck_assert_msg(reply.number == reason, "%u: %s", (unsigned)reply.number,
	    reply.text);
	ck_assert_uint_eq(reply.sent, sent);
	ck_assert_int_eq(reply.text[0] == '\0', reason == IPC_REASON_OK);
}

START_TEST(reports_by_name)
{
	uint8_t id[ID_LEN];
	struct id_hash *hash = id_hash_new();

	start_agent(
	    &(struct shape){.listeners = ",\"narrow\":{\"path\":\"%s/n.sock\","
					 "\"trackers\":[\"inv*\"]}"});
	join(&a, main_path);
	report(&a, 1, 250, "slow", "inventory");
	expect_reported(&a, 1, IPC_REASON_OK, 1);
	take(0);
	ck_assert_uint_eq(q.report.count, 1);
	ck_assert_uint_eq(q.report.samples[0].observed_ms, 250);
	id_tracker(hash, PROFILE_V1, "inventory", 9, 10000, 100, 32, 5, id);
	ck_assert_mem_eq(q.report.samples[0].id, id, ID_LEN);
	/* Placeholders are the kernel's and the socket's. */
	report(&a, 2, 0, "slow", "per-{listener}");
	expect_reported(&a, 2, IPC_REASON_OK, 1);
	take(0);
	id_tracker(hash, PROFILE_V1, "per-main", 8, 10000, 100, 32, 5, id);
	ck_assert_mem_eq(q.report.samples[0].id, id, ID_LEN);
	report(&a, 3, 250, "", "inventory"); /* which of the two? */
	expect_reported(&a, 3, IPC_REASON_VALIDATION, 0);
	report(&a, 4, 250, "fast", "inventory");
	expect_reported(&a, 4, IPC_REASON_VALIDATION, 0);
	report(&a, 5, 250, "slow", "inventor\x1b");
	expect_reported(&a, 5, IPC_REASON_VALIDATION, 0);
	ck_assert_str_eq(reply.text, "unknown tracker \"inventor?\"");
	peer_open(&b, main_path);
	peer_close(&b);
	snprintf(main_path, sizeof(main_path), "%s/n.sock", folder);
	join(&b, main_path);
	report(&b, 1, 1, "slow", "inventory");
	expect_reported(&b, 1, IPC_REASON_OK, 1);
	report(&b, 2, 1, "slow", "per-{listener}");
	expect_reported(&b, 2, IPC_REASON_UNAUTHORISED, 0);
	join(&b, control_path);
	report(&b, 1, 1, "slow", "inventory");
	expect_reported(&b, 1, IPC_REASON_UNAUTHORISED, 0);
	ck_assert_uint_eq(counters()->reports, 3);
	ck_assert_uint_eq(counters()->reports_refused, 5);
	id_hash_free(hash);
	stop_agent();
}
END_TEST

/* The next report went to the tracker of this name. */
static void
expect_sample(const char *name, uint32_t ms)
{
	struct id_hash *hash = id_hash_new();
	uint8_t id[ID_LEN];

	take(0);
	ck_assert_uint_eq(q.report.count, 1);
	ck_assert_uint_eq(q.report.samples[0].observed_ms, ms);
	id_tracker(hash, PROFILE_V1, name, strlen(name), 10000, 100, 32, 5, id);
	ck_assert_mem_eq(q.report.samples[0].id, id, ID_LEN);
	id_hash_free(hash);
}

START_TEST(reports_with_a_key)
{
	start_agent(&(struct shape){.rules = RULES});
	join(&a, main_path);
	report_keyed(&a, 1, 7, "slow", "of-{key}", IPC_OPT_KEY, "eu");
	expect_reported(&a, 1, IPC_REASON_OK, 1);
	expect_sample("of-eu", 7);
	report_keyed(&a, 2, 8, "slow", "of-{key}", IPC_OPT_KEY, "");
	expect_reported(&a, 2, IPC_REASON_OK, 1);
	expect_sample("of-", 8);
	/* The option says that there is one, not its length. */
	report_keyed(&a, 3, 9, "slow", "of-{key}", 0, "eu");
	expect_reported(&a, 3, IPC_REASON_VALIDATION, 0);
	report_keyed(&a, 4, 9, "slow", "of-eu", IPC_OPT_KEY, "eu");
	expect_reported(&a, 4, IPC_REASON_VALIDATION, 0);
	/* One that is not needed. */
	report_keyed(&a, 5, 10, "slow", "inventory", IPC_OPT_KEY, "eu");
	expect_reported(&a, 5, IPC_REASON_OK, 1);
	expect_sample("inventory", 10);
	settle();
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	ck_assert_uint_eq(counters()->reports, 3);
	ck_assert_uint_eq(counters()->reports_refused, 2);
	stop_agent();
}
END_TEST

static void
report_adhoc(struct ipc_peer *p, uint64_t id, uint32_t buffer, const char *name)
{
	struct writer *w = peer_begin(p, IPC_REPORT_ADHOC, id);

	writer_u32(w, 33);
	writer_u32(w, 10000);
	writer_u32(w, 100);
	writer_u32(w, buffer);
	writer_u32(w, 5);
	peer_str(p, "slow");
	peer_str(p, name);
	peer_end(p);
}

START_TEST(reports_ad_hoc)
{
	uint8_t id[ID_LEN];
	struct id_hash *hash = id_hash_new();

	start_agent(
	    &(struct shape){.listeners = ",\"narrow\":{\"path\":\"%s/n.sock\","
					 "\"adhoc\":false}"});
	join(&a, main_path);
	report_adhoc(&a, 1, 32, "any {key}");
	expect_reported(&a, 1, IPC_REASON_OK, 1);
	take(0);
	id_tracker(hash, PROFILE_V1, "any {key}", 9, 10000, 100, 32, 5, id);
	ck_assert_mem_eq(q.report.samples[0].id, id, ID_LEN);
	ck_assert_uint_eq(q.report.samples[0].observed_ms, 33);
	report_adhoc(&a, 2, 65, "any"); /* over the key's quota: not sent */
	expect_reported(&a, 2, IPC_REASON_VALIDATION, 0);
	report_adhoc(&a, 3, 32, "");
	expect_reported(&a, 3, IPC_REASON_VALIDATION, 0);
	snprintf(main_path, sizeof(main_path), "%s/n.sock", folder);
	join(&b, main_path);
	report_adhoc(&b, 4, 32, "any");
	expect_reported(&b, 4, IPC_REASON_UNAUTHORISED, 0);
	settle();
	ck_assert_uint_eq(fake_server_count(&server[0], &q), 0);
	ck_assert_uint_eq(tenant_counters(slow())->reports_sent, 1);
	id_hash_free(hash);
	stop_agent();
}
END_TEST

START_TEST(a_report_without_a_server)
{
	/* No nameserver at port 1. */
	new_agent(&(struct shape){
	    .tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},\"dns\":{"
		       "\"name\":\"none.example\","
		       "\"nameservers\":[\"127.0.0.1:1\"]}}",
	    .rules = ""});
	join(&a, main_path);
	report(&a, 1, 1, "", "inventory"); /* the only tenant */
	expect_reported(&a, 1, IPC_REASON_DISCOVERY, 0);
	stop_agent();
}
END_TEST

/* The whole document, and how many frames it took. */
static json_t *
document(struct ipc_peer *p, uint16_t type, uint64_t id, unsigned int *frames)
{
	static char text[256 * 1024];
	json_error_t error;
	size_t len = 0;
	json_t *json;

	peer_empty(p, type, id);
	*frames = 0;
	do {
		next(p);
		ck_assert_uint_eq(reply.type, IPC_DOCUMENT);
		ck_assert_uint_eq(reply.id, id);
		ck_assert_uint_lt(len + reply.len, sizeof(text));
		memcpy(text + len, reply.payload, reply.len);
		len += reply.len;
		++*frames;
	} while ((reply.flags & 1) != 0);
	json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	ck_assert_msg(json != NULL, "%s", error.text);
	text[len] = '\0';
	ck_assert_ptr_null(strstr(text, "rl-cookie")); /* no key in it */
	return json;
}

static json_int_t
number(json_t *json, const char *a_key, const char *b_key)
{
	json_t *at = json_object_get(json, a_key);

	if (b_key != NULL)
		at = json_object_get(at, b_key);
	ck_assert_msg(json_is_integer(at), "%s.%s", a_key, b_key);
	return json_integer_value(at);
}

START_TEST(status)
{
	unsigned int frames;
	json_t *json, *tenant;

	with_another();
	json = document(&a, IPC_STATUS, 1, &frames);
	ck_assert_uint_eq(frames, 1);
	ck_assert(json_is_true(json_object_get(json, "ready")));
	ck_assert(json_is_false(json_object_get(json, "draining")));
	ck_assert_int_eq(number(json, "inflight", NULL), 1);
	ck_assert_int_eq(number(json, "counters", "checks"), 1);
	ck_assert_int_eq(number(json, "counters", "connections"), 2);
	ck_assert_int_eq(
	    json_array_size(json_object_get(json, "listeners")), 2);
	ck_assert_int_eq(json_array_size(json_object_get(json, "tenants")), 2);
	tenant = json_array_get(json_object_get(json, "tenants"), 1);
	ck_assert_str_eq(
	    json_string_value(json_object_get(tenant, "name")), "slow");
	ck_assert_str_eq(
	    json_string_value(json_object_get(tenant, "key_id")), "77");
	ck_assert_int_eq(number(tenant, "inflight", NULL), 1);
	ck_assert_int_eq(number(tenant, "horizon_ms", NULL), 30000);
	ck_assert_int_eq(number(tenant, "counters", "requests_sent"), 1);
	json_decref(json);
	another_is_undisturbed();
}
END_TEST

START_TEST(servers)
{
	unsigned int frames;
	json_t *json, *s;

	with_another();
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &b, 1, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	json = document(&a, IPC_SERVERS, 1, &frames);
	ck_assert_uint_eq(frames, 1);
	ck_assert_int_eq(json_array_size(json_object_get(json, "servers")), 2);
	s = json_array_get(json_object_get(json, "servers"), 1);
	ck_assert_str_eq(
	    json_string_value(json_object_get(s, "server_id")), "101");
	ck_assert_int_eq(number(s, "sent", NULL), 1);
	ck_assert_int_eq(number(s, "answered", NULL), 1);
	ck_assert_int_eq(number(s, "selected", NULL), 1);
	json_decref(json);
	stop_agent();
}
END_TEST

/* Answered on the listener of applications and on the control socket. */
START_TEST(policy)
{
	unsigned int frames;
	json_t *json, *tenant;

	with_another();
	json = document(&a, IPC_POLICY, 1, &frames);
	ck_assert_uint_eq(frames, 1);
	tenant = json_array_get(json_object_get(json, "tenants"), 1);
	ck_assert_str_eq(
	    json_string_value(json_object_get(tenant, "name")), "slow");
	ck_assert_int_eq(number(tenant, "policy", "unit_ms"), 10000);
	json_decref(json);
	peer_close(&a);
	join(&a, control_path);
	json = document(&a, IPC_POLICY, 1, &frames);
	ck_assert_uint_eq(json_array_size(json_object_get(json, "tenants")), 2);
	json_decref(json);
	another_is_undisturbed();
}
END_TEST

/* Many servers: several frames, and other answers may come in between. */
START_TEST(a_long_document_spans_frames)
{
	static char tenants[24 * 1024];
	unsigned int frames;
	size_t len = 0;
	json_t *json;

	for (unsigned int t = 0; t < 4; t++) {
		len += (size_t)snprintf(tenants + len, sizeof(tenants) - len,
		    "%s\"t%u\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
		    "\"servers\":[",
		    t > 0 ? "," : "", t);
		for (unsigned int i = 0; i < 64; i++)
			len += (size_t)snprintf(tenants + len,
			    sizeof(tenants) - len,
			    "%s{\"id\":\"%u\",\"address\":\"127.0.0.1:9\"}",
			    i > 0 ? "," : "", i);
		len += (size_t)snprintf(
		    tenants + len, sizeof(tenants) - len, "]}");
	}
	start_agent(&(struct shape){.tenants = tenants, .rules = ""});
	join(&a, main_path);
	json = document(&a, IPC_SERVERS, 1, &frames);
	ck_assert_uint_gt(frames, 2);
	ck_assert_int_eq(
	    json_array_size(json_object_get(json, "servers")), 256);
	json_decref(json);
	expect_alive(&a, 2);
	stop_agent();
}
END_TEST

/* Asks for documents, never reads: it is no longer read from, the agent does
 * not grow, and others go on. */
START_TEST(a_peer_that_never_reads)
{
	struct dispatch_queues queues;
	unsigned int asked = 0;

	with_another();
	dispatch_queues(agent->dispatch, &queues);
	ck_assert_uint_eq(queues.unsent, 0);
	peer_begin(&a, IPC_STATUS, 1);
	writer_patch_u32(&a.w, 0, (uint32_t)writer_len(&a.w));
	while (asked < 100000 && peer_write(&a, a.frame, writer_len(&a.w))) {
		asked++;
		if (asked % 64 == 0)
			settle();
	}
	ck_assert_uint_lt(asked, 100000); /* it was stopped */
	settle();
	dispatch_queues(agent->dispatch, &queues);
	ck_assert_uint_ge(queues.unsent, CONN_OUT_HIGH);
	another_is_undisturbed();
}
END_TEST

/* Frames of every type with payloads that are almost right: the agent lives,
 * and b, whose check is in flight all the while. */
START_TEST(any_bytes)
{
	static const uint16_t kinds[] = {IPC_CHECK, IPC_CHECK_ADHOC, IPC_CANCEL,
	    IPC_REPORT, IPC_REPORT_ADHOC, IPC_PING, IPC_WAIT, IPC_STATUS,
	    IPC_SERVERS, IPC_POLICY, IPC_LIMITERS, IPC_METRICS, IPC_ACQUIRE,
	    IPC_TRY_ACQUIRE, IPC_ERROR_BEGIN, IPC_ERROR_SUCCESS, IPC_SET_RATE,
	    IPC_QUIT, IPC_TOP};
	uint64_t seed = harness_seed();
	struct peer_base base;
	uint8_t bytes[300];
	unsigned int kind;

	with_another();
	for (unsigned int i = 0; i < 1500; i++) {
		kind = harness_below(&seed, 4);
		base = (struct peer_base){
		    .number = (uint32_t)harness_random(&seed) | 1,
		    .age_us = kind == 0 ? harness_random(&seed) : 0,
		    .hash = kind == 0 ? agent->setup->config->hash : NULL,
		    .deadline_ms = harness_below(&seed, 3),
		    .options = (uint32_t)harness_random(&seed),
		    .tokens = harness_below(&seed, 4),
		};
		if (kind < 2) {
			peer_adhoc(&a, i + 1, &base, "quick",
			    harness_below(&seed, 32), harness_below(&seed, 41));
		} else if (kind == 2) {
			peer_check(&a, i + 1, &base,
			    i % 2 == 0 ? "quick" : "checkout", NULL);
		} else {
			harness_fill(&seed, bytes, sizeof(bytes));
			writer_bytes(peer_begin(&a,
					 kinds[harness_below(&seed,
					     sizeof(kinds) / sizeof(*kinds))],
					 harness_below(&seed, 9)),
			    bytes, harness_below(&seed, sizeof(bytes)));
			peer_end(&a);
		}
		loop_turn(agent->loop);
		while (peer_take(&a, &reply))
			continue;
		if (a.eof || kind == 3) {
			peer_close(&a);
			join(&a, main_path);
		}
	}
	peer_close(&a);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 1);
	another_is_undisturbed();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch");
	TCase *tc = tcase_create("dispatch");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, welcome);
	tcase_add_test(tc, versions);
	tcase_add_test(tc, greeting);
	tcase_add_test(tc, lengths);
	tcase_add_test(tc, an_unfinished_frame);
	tcase_add_test(tc, types);
	tcase_add_test(tc, payloads);
	tcase_add_test(tc, ids_in_flight);
	tcase_add_test(tc, frames_in_pieces_and_in_heaps);
	tcase_add_test(tc, ping);
	tcase_add_test(tc, reports_by_name);
	tcase_add_test(tc, reports_with_a_key);
	tcase_add_test(tc, reports_ad_hoc);
	tcase_add_test(tc, a_report_without_a_server);
	tcase_add_test(tc, status);
	tcase_add_test(tc, servers);
	tcase_add_test(tc, policy);
	tcase_add_test(tc, a_long_document_spans_frames);
	tcase_add_test(tc, a_peer_that_never_reads);
	tcase_add_test(tc, any_bytes);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
