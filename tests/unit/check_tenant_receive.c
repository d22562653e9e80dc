/*
 * What comes in for a tenant: each kind of datagram that is not a valid
 * answer is counted as its kind and changes nothing, and a valid answer after
 * all of them still decides.
 */
#include "daemon/tenant.h"

#include <errno.h>
#include <unistd.h>

#include <sys/socket.h>

#include "tests/unit/tenant_fixture.h"

static struct outcome out;
static struct fake_request q;

static void
start(enum auth_type auth, enum profile profile, const char *strict)
{
	start_tenant(&(struct shape){
	    .auth = auth, .profile = profile, .strict = strict});
	ask(1, &out);
	take(0, &q);
}

/* Sends to the tenant and waits until one of its counters has counted it. */
static void
expect(const void *bytes, size_t len, size_t offset, const char *what)
{
	const struct tenant_counters before = *counters();
	struct tenant_counters now;
	uint64_t *field = (uint64_t *)(void *)((char *)&now + offset);
	uint64_t was = *(const uint64_t *)((const char *)&before + offset);
	int64_t limit = loop_now() + LIMIT_US;

	fake_server_send(&server[0], &q, bytes, len);
	do {
		loop_turn(loop);
		now = *counters();
		ck_assert_msg(loop_now() < limit, "%s: never counted", what);
	} while (memcmp(&now, &before,
		     offsetof(struct tenant_counters, answers)) == 0 &&
		 *field == was);
	ck_assert_msg(*field == was + 1, "%s: not counted as that", what);
	*field = was;
	ck_assert_msg(memcmp(&now, &before, sizeof(now)) == 0,
	    "%s: counted as something else, too", what);
	ck_assert_msg(out.calls == 0, "%s: decided", what);
	ck_assert_msg(tenant_inflight(tenant) == 1, "%s: ended it", what);
}

#define EXPECT(counter, bytes, len, what) \
	expect(bytes, len, offsetof(struct tenant_counters, counter), what)

static uint8_t datagram[4096], pdu[PACKET_MAX];
static struct pdu_rate answer;

/* The datagram of an answer that grants, by a head that may be spoilt. */
static size_t
sealed(const struct packet_head *head)
{
	size_t len;

	fake_server_grant(&q, &answer);
	ck_assert_int_eq(pdu_encode_response(server[0].profile, &answer, pdu,
			     sizeof(pdu), &len),
	    0);
	return fake_server_seal(&server[0], head, pdu, len, datagram);
}

static size_t
good(void)
{
	struct packet_head head = fake_server_head(&server[0], &q);

	return sealed(&head);
}

/* The same around a PDU of the test's. */
static size_t
around(size_t pdu_len)
{
	struct packet_head head = fake_server_head(&server[0], &q);

	return fake_server_seal(&server[0], &head, pdu, pdu_len, datagram);
}

static void
still_completes(void)
{
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert(out.res.guards_pass && out.res.resources_pass);
	stop_tenant();
	ck_assert_uint_eq(out.calls, 1);
}

static const struct {
	enum auth_type auth;
	enum profile profile;
} kinds[] = {
    {AUTH_NONE, PROFILE_V1},
    {AUTH_NONE, PROFILE_V2},
    {AUTH_COOKIE, PROFILE_V1},
    {AUTH_COOKIE, PROFILE_V2},
    {AUTH_AES, PROFILE_V1},
    {AUTH_AES, PROFILE_V2},
};
#define KINDS ((int)(sizeof(kinds) / sizeof(*kinds)))

static void
start_kind(int i)
{
	start(kinds[i].auth, kinds[i].profile, "false");
}

START_TEST(lengths)
{
	const size_t overhead = packet_overhead(kinds[_i].auth);
	size_t len, n;

	start_kind(_i);
	memset(datagram, 0x41, sizeof(datagram));
	EXPECT(invalid_malformed, datagram, 0, "empty");
	EXPECT(invalid_malformed, datagram, 2048, "junk of 2048 bytes");
	EXPECT(invalid_truncated, datagram, 2049, "longer than any");
	len = good();
	for (n = 0; n < overhead; n++)
		EXPECT(invalid_malformed, datagram, n, "cut in the TLVs");
	/* With AES what is cut has another tag. */
	for (; n < len; n++) {
		if (kinds[_i].auth == AUTH_AES)
			EXPECT(invalid_auth, datagram, n, "cut");
		else
			EXPECT(invalid_malformed, datagram, n, "cut");
	}
	still_completes();
}
END_TEST

START_TEST(heads)
{
	struct packet_head head;
	size_t len;

	start_kind(_i);
	head = fake_server_head(&server[0], &q);
	head.unique_id[15] ^= 1;
	len = sealed(&head);
	EXPECT(invalid_operation, datagram, len, "unknown operation");
	head = fake_server_head(&server[0], &q);
	head.key_id = FIRST_ID + SERVERS;
	len = sealed(&head);
	EXPECT(invalid_server, datagram, len, "outside the snapshot");
	head.key_id = 77; /* a client's key id is no server */
	len = sealed(&head);
	EXPECT(invalid_server, datagram, len, "the key's id");
	still_completes();
}
END_TEST

START_TEST(contents)
{
	size_t len;
	uint8_t id[ID_LEN];

	start_kind(_i);
#define SPOILT(what)                                                    \
	do {                                                            \
		ck_assert_int_eq(pdu_encode_response(server[0].profile, \
				     &answer, pdu, sizeof(pdu), &len),  \
		    0);                                                 \
		len = around(len);                                      \
		EXPECT(invalid_content, datagram, len, what);           \
		fake_server_grant(&q, &answer);                         \
	} while (0)
	fake_server_grant(&q, &answer);
	answer.guard_count = 0;
	answer.resource_count = 0;
	SPOILT("an empty response");
	answer.guard_count = 0;
	SPOILT("no guard");
	answer.resource_count = 0;
	SPOILT("no resource");
	answer.guards[1] = answer.guards[0];
	answer.guard_count = 2;
	SPOILT("one guard more");
	answer.resources[1] = answer.resources[0];
	answer.resource_count = 2;
	SPOILT("one resource more");
	answer.guards[0].id[15] ^= 1;
	SPOILT("another guard's id");
	answer.resources[0].id[0] ^= 0x80;
	SPOILT("another resource's id");
	memcpy(id, answer.guards[0].id, ID_LEN);
	memcpy(answer.guards[0].id, answer.resources[0].id, ID_LEN);
	memcpy(answer.resources[0].id, id, ID_LEN);
	SPOILT("guard and resource swapped");
	/* What a server never sends: a request, a report, a broken header. */
	ck_assert_int_eq(pdu_encode_request(server[0].profile, &q.rate, pdu,
			     sizeof(pdu), &len),
	    0);
	len = around(len);
	EXPECT(invalid_malformed, datagram, len, "a request comes back");
	memset(pdu, 0xFF, 64);
	len = around(64);
	EXPECT(invalid_malformed, datagram, len, "no PDU");
	len = around(0);
	EXPECT(invalid_malformed, datagram, len, "an empty PDU");
	still_completes();
}
END_TEST

START_TEST(order_matters)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80, [0] = 5};
	struct pdu_resource first;
	struct pdu_rate rate;
	struct tenant_op *op;
	size_t len;

	start_tenant(&(struct shape){.auth = AUTH_AES});
	make_rate(&rate, 0, 2);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &out, &op), 0);
	take(0, &q);
	fake_server_grant(&q, &answer);
	first = answer.resources[0];
	answer.resources[0] = answer.resources[1];
	answer.resources[1] = first;
	SPOILT("the other order");
	still_completes();
}
END_TEST

/* Each auth type against each other one, and a wrong secret. */
START_TEST(authentication)
{
	static const enum auth_type types[] = {
	    AUTH_NONE, AUTH_COOKIE, AUTH_AES};
	struct credential cred;
	struct packet_key *own;
	size_t len;

	start_kind(_i);
	own = server[0].key;
	for (unsigned int i = 0; i < 3; i++) {
		if (types[i] == kinds[_i].auth)
			continue;
		make_key(types[i], &cred);
		server[0].key = packet_key_new(&cred);
		len = good();
		EXPECT(invalid_auth, datagram, len, "another auth type");
		packet_key_free(server[0].key);
	}
	server[0].key = own;
	if (kinds[_i].auth != AUTH_NONE) {
		make_key(kinds[_i].auth, &cred);
		cred.secret[31] ^= 1;
		server[0].key = packet_key_new(&cred);
		len = good();
		EXPECT(invalid_auth, datagram, len, "another secret");
		packet_key_free(server[0].key);
		server[0].key = own;
	}
	still_completes();
}
END_TEST

/* Every bit of an AES answer: nothing but the whole one is an answer. */
START_TEST(a_flipped_bit_changes_nothing)
{
	struct tenant_counters was;
	size_t len;

	start(AUTH_AES, PROFILE_V1, "false");
	len = good();
	was = *counters();
	for (size_t bit = 0; bit < len * 8; bit++) {
		datagram[bit / 8] ^= (uint8_t)(1 << bit % 8);
		fake_server_send(&server[0], &q, datagram, len);
		datagram[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (bit % 64 == 0)
			settle();
	}
	TURN_UNTIL(counters()->invalid_malformed + counters()->invalid_auth +
		       counters()->invalid_operation +
		       counters()->invalid_server ==
		   len * 8);
	ck_assert_uint_eq(counters()->answers, 0);
	ck_assert_uint_eq(counters()->invalid_content, 0);
	ck_assert_uint_eq(counters()->source_mismatch, was.source_mismatch);
	ck_assert_uint_eq(counters()->rebind_asked, 0);
	ck_assert_uint_eq(out.calls, 0);
	still_completes();
}
END_TEST

static const struct peer *
peer_of(uint64_t server_id)
{
	const struct peers *peers = tenant_peers(tenant);

	for (uint32_t i = 0; i < peers->count; i++) {
		if (peers->list[i].server_id == server_id)
			return &peers->list[i];
	}
	ck_abort_msg("no such server");
	return NULL;
}

/*
 * Servers that answer after the decision are alive: it shows in what is known
 * of them, once, and changes nothing else. At the horizon nobody listens.
 */
START_TEST(late_answers_are_heard)
{
	const struct peer *seen;
	struct fake_request late;

	start(AUTH_AES, PROFILE_V2, "false");
	seen = peer_of(FIRST_ID + 1);
	ck_assert_int_eq(seen->last_answer, 0);
	TURN_UNTIL(fake_server_take(&server[1], &late));
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	fake_server_allow(&server[1], &late);
	TURN_UNTIL(counters()->answers_late == 1);
	fake_server_allow(&server[1], &late);
	TURN_UNTIL(counters()->answers_duplicate == 1);
	ck_assert_uint_eq(seen->answered, 2); /* of two that were sent */
	ck_assert_uint_eq(seen->selected, 0);
	ck_assert_int_gt(seen->last_answer, 0);
	ck_assert_uint_eq(counters()->answers, 1);
	ck_assert_uint_eq(counters()->invalid_operation, 0);
	ck_assert_uint_eq(out.calls, 1);
	stop_tenant();
}
END_TEST

/* A server that is slower than the horizon is not taken for a wrong key. */
START_TEST(answers_after_the_horizon)
{
	const struct peer *seen;

	start(AUTH_AES, PROFILE_V2, "false");
	ck_assert(!tenant_heard(tenant));
	q.head.unique_id[0] ^= 0xff; /* nobody remembers it */
	/* One that was recorded long ago says nothing of now. */
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(counters()->invalid_operation == 1);
	ck_assert(!tenant_heard(tenant));
	server[0].stamp = loop_wall_ms();
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(counters()->invalid_operation == 2);
	seen = peer_of(FIRST_ID);
	ck_assert_int_gt(seen->last_answer, 0);
	ck_assert_uint_eq(seen->answered, 0);
	ck_assert(tenant_heard(tenant));
	ck_assert_uint_eq(out.calls, 0);
	stop_tenant();
}
END_TEST

/* The kernel's word on who sent it: from server 1's socket with id 101. */
START_TEST(strict_source)
{
	size_t len;

	start(AUTH_COOKIE, PROFILE_V1, NULL); /* null: strict for cookies */
	len = good();
	fake_server_send(&server[1], &q, datagram, len);
	TURN_UNTIL(counters()->invalid_source == 1);
	settle();
	ck_assert_uint_eq(out.calls, 0);
	ck_assert_uint_eq(counters()->answers, 0);
	ck_assert_uint_eq(counters()->source_mismatch, 0);
	still_completes();
}
END_TEST

START_TEST(another_source_is_counted)
{
	size_t len;

	start(AUTH_AES, PROFILE_V1, NULL); /* null: not strict for AES */
	len = good();
	fake_server_send(&server[1], &q, datagram, len);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID);
	ck_assert_uint_eq(counters()->source_mismatch, 1);
	ck_assert_uint_eq(counters()->invalid_source, 0);
	stop_tenant();
}
END_TEST

/* Ignored by wire.md's table: more TLV, more bytes, flags and words. */
START_TEST(what_is_ignored)
{
	struct packet_head head;
	size_t len;

	start(AUTH_COOKIE, PROFILE_V1, NULL);
	head = fake_server_head(&server[0], &q);
	head.mgmt = true;
	head.keep_port = false;
	head.time_stamp = UINT64_MAX;
	fake_server_grant(&q, &answer);
	answer.dedup_ttl_ms = UINT32_MAX;
	ck_assert_int_eq(
	    pdu_encode_response(PROFILE_V1, &answer, pdu, sizeof(pdu), &len),
	    0);
	memset(pdu + len, 0xEE, 13);
	len = fake_server_seal(&server[0], &head, pdu, len + 13, datagram);
	/* A tenant TLV of 48 bytes. */
	memmove(datagram + 48, datagram + 40, len - 40);
	memset(datagram + 40, 0xDD, 8);
	datagram[2] = 48;
	fake_server_send(&server[0], &q, datagram, len + 8);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(counters()->rebind_asked, 1);
	stop_tenant();
}
END_TEST

START_TEST(duplicates)
{
	struct pdu_rate deny;

	start(AUTH_AES, PROFILE_V2, NULL);
	take(1, &q);
	fake_server_allow(&server[1], &q);
	TURN_UNTIL(counters()->answers == 1);
	/* Another word of the same server changes nothing. */
	fake_server_grant(&q, &deny);
	deny.resources[0].tokens = 5;
	fake_server_answer(&server[1], &q, &deny);
	TURN_UNTIL(counters()->answers_duplicate == 1);
	ck_assert_uint_eq(counters()->answers, 1);
	ck_assert_uint_eq(out.calls, 0);
	stop_tenant();
}
END_TEST

START_TEST(what_is_known_of_a_server)
{
	const struct peer *s;
	int64_t begun = loop_now();

	start(AUTH_AES, PROFILE_V1, NULL);
	s = peer_of(FIRST_ID);
	ck_assert_uint_eq(s->sent, 1);
	ck_assert_uint_eq(s->answered, 0);
	ck_assert_int_eq(s->last_answer, 0);
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
	ck_assert_uint_eq(s->server_id, FIRST_ID);
	ck_assert_uint_eq(s->answered, 1);
	ck_assert_uint_eq(s->selected, 1);
	ck_assert_int_gt(s->last_answer, begun);
	ck_assert_int_gt(s->rtt_us, 0);
	ck_assert_int_le(s->rtt_us, loop_now() - begun);
	ck_assert_int_gt(peer_rtt(s, 500, loop_now()), 0);
	ck_assert_uint_eq(peer_of(FIRST_ID + 1)->answered, 0);
	stop_tenant();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tenant_receive");
	TCase *tc = tcase_create("tenant_receive");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, lengths, 0, KINDS);
	tcase_add_loop_test(tc, heads, 0, KINDS);
	tcase_add_loop_test(tc, contents, 0, KINDS);
	tcase_add_loop_test(tc, authentication, 0, KINDS);
	tcase_add_test(tc, order_matters);
	tcase_add_test(tc, answers_after_the_horizon);
	tcase_add_test(tc, late_answers_are_heard);
	tcase_add_test(tc, a_flipped_bit_changes_nothing);
	tcase_add_test(tc, strict_source);
	tcase_add_test(tc, another_source_is_counted);
	tcase_add_test(tc, what_is_ignored);
	tcase_add_test(tc, duplicates);
	tcase_add_test(tc, what_is_known_of_a_server);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
