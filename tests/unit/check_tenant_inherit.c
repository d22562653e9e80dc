/*
 * A tenant that takes over from another one, as after a reload: what it knows
 * at once, two keys of the same servers side by side, and when the old one may
 * go. With the clock in hand this is tests/world/reload-*.wrl.
 */
#include "daemon/tenant.h"

#include <sys/socket.h>

#include "proto/err.h"
#include "tests/unit/tenant_fixture.h"

#define OLD_KEY_ID 77
#define NEW_KEY_ID 78

static struct outcome out, other;
static struct fake_request q, r;

/* The first one, while "tenant" is the one that took over. */
static struct tenant *old;
static struct config *old_config;
/* The servers' other key; their sockets are those of server[]. */
static struct fake_server young[SERVERS];

/* "tenant" becomes another one. */
static void
start_another_of(const struct shape *shape, uint64_t key_id, int secret)
{
	char err[TENANT_ERR_MAX] = "";
	struct credential cred;

	old = tenant;
	old_config = config;
	make_key_of(shape->auth, key_id, secret, &cred);
	for (unsigned int i = 0; i < SERVERS; i++) {
		young[i] = server[i];
		young[i].key = packet_key_new(&cred);
		ck_assert_ptr_nonnull(young[i].key);
	}
	config = make_config(shape);
	tenant = tenant_new(loop, randoms, &config->tenants[0], 65536, err);
	ck_assert_msg(tenant != NULL, "%s", err);
	ck_assert(!tenant_ready(tenant));
}

/* With another key. */
static void
start_another(const struct shape *shape)
{
	start_another_of(shape, NEW_KEY_ID, 0x33);
}

static void
stop_both(void)
{
	tenant_free(old);
	old = NULL;
	config_unref(old_config);
	for (unsigned int i = 0; i < SERVERS; i++)
		packet_key_free(young[i].key);
	stop_tenant();
}

/* Which key is the datagram of that came to a server? 0: there is none. */
static uint64_t
key_of_next(unsigned int i)
{
	struct packet_view view;
	uint8_t bytes[2048];
	ssize_t n = recv(server[i].fd, bytes, sizeof(bytes), MSG_PEEK);

	if (n < 0)
		return 0;
	ck_assert_int_eq(packet_peek(bytes, (size_t)n, &view), 0);
	return view.head.key_id;
}

/* The next one has to be of the new key. */
static void
take_young(unsigned int i, struct fake_request *req)
{
	TURN_UNTIL(key_of_next(i) != 0);
	ck_assert_uint_eq(key_of_next(i), NEW_KEY_ID);
	ck_assert(fake_server_take(&young[i], req));
}

static unsigned int told;

static void
on_ready(void *arg)
{
	ck_assert(tenant_ready(arg));
	told++;
}

/* Ready at once and for good; the servers are reported to nobody again. */
START_TEST(static_servers_are_known_at_once)
{
	const struct shape shape = {.auth = AUTH_AES};

	start_tenant(&shape);
	start_another(&shape);
	tenant_on_ready(tenant, on_ready, tenant);
	tenant_inherit(tenant, old);
	ck_assert(tenant_ready(tenant));
	ck_assert_int_eq(tenant_state(tenant), TENANT_READY);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(tenant_peers(tenant)->count, SERVERS);
	ask(1, &out); /* before anything has run */
	take_young(0, &q);
	fake_server_allow(&young[0], &q);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	settle();
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(
	    discovery_counters(tenant_discovery(tenant))->changes, 0);
	/* They are its own, whatever becomes of the old one. */
	tenant_free(old);
	old = NULL;
	ck_assert_uint_eq(tenant_members(tenant)->count, SERVERS);
	stop_both();
}
END_TEST

START_TEST(nothing_of_one_that_is_not_ready)
{
	const struct shape shape = {.auth = AUTH_AES,
	    .dns = "{\"name\":\"none.example\",\"forced_min_ms\":30000,"
		   "\"nameservers\":[\"127.0.0.1:1\"]}"};

	start_tenant(&shape);
	TURN_UNTIL(tenant_state(tenant) == TENANT_UNAVAILABLE);
	start_another(&shape);
	tenant_on_ready(tenant, on_ready, tenant);
	tenant_inherit(tenant, old);
	ck_assert(!tenant_ready(tenant));
	ck_assert_int_eq(tenant_state(tenant), TENANT_DISCOVERING);
	TURN_UNTIL(tenant_state(tenant) == TENANT_UNAVAILABLE);
	ck_assert_uint_eq(told, 0);
	stop_both();
}
END_TEST

/* What makes it another client, or none of it. */
static const struct client {
	uint64_t key_id;
	int secret;
	enum profile profile;
	bool same;
} clients[] = {
    {OLD_KEY_ID, 0x5A, PROFILE_V1, true},
    {NEW_KEY_ID, 0x5A, PROFILE_V1, false},
    {OLD_KEY_ID, 0x33, PROFILE_V1, false},
    {OLD_KEY_ID, 0x5A, PROFILE_V2, false},
};
#define CLIENTS ((int)(sizeof(clients) / sizeof(*clients)))

static uint8_t spoilt[PACKET_MAX];

/* One good answer, with a clock of its own, and a forged one. */
static void
learn_something(void)
{
	struct packet_head head;

	ask(1, &out);
	take(0, &q);
	take(1, &r);
	head = fake_server_head(&server[1], &r);
	fake_server_send(&server[1], &r, spoilt,
	    fake_server_seal(&young[1], &head, r.pdu, 8, spoilt));
	TURN_UNTIL(counters()->invalid_auth == 1);
	server[0].stamp = loop_wall_ms() + 5000;
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
}

/* How servers are reached, and that they have answered; but no faults. */
START_TEST(what_goes_along)
{
	const struct client *client = &clients[_i];
	const struct peer *had, *has;
	struct credential cred;

	start_tenant(&(struct shape){.auth = AUTH_AES, .policy = NO_DELIVER});
	make_key_of(AUTH_AES, NEW_KEY_ID, 0x44, &cred);
	young[1] = server[1];
	young[1].key = packet_key_new(&cred);
	learn_something();
	packet_key_free(young[1].key);
	had = &tenant_peers(tenant)->list[0];
	start_another_of(&(struct shape){.auth = AUTH_AES,
			     .profile = client->profile,
			     .policy = NO_DELIVER},
	    client->key_id, client->secret);
	tenant_inherit(tenant, old);
	has = &tenant_peers(tenant)->list[0];
	ck_assert(has->suspect.heard);
	ck_assert(has->suspect.answered_at == had->suspect.answered_at);
	ck_assert(tenant_clock(tenant)->marked);
	ck_assert(had->last_answer > 0 && had->last_in_time > 0);
	ck_assert(had->clock.known);
	ck_assert_int_eq(tenant_heard(tenant), client->same);
	ck_assert(has->last_answer == (client->same ? had->last_answer : 0));
	ck_assert(has->last_in_time == (client->same ? had->last_in_time : 0));
	ck_assert_int_eq(has->clock.known, client->same);
	ck_assert_uint_eq(has->sent + has->answered + has->selected, 0);
	ck_assert_int_eq(has->asked_since, 0);
	for (uint32_t i = 0; i < SERVERS; i++)
		ck_assert_uint_eq(
		    tenant_peers(tenant)->list[i].invalid[PEER_AUTH].count, 0);
	ck_assert_uint_eq(
	    tenant_peers(old)->list[1].invalid[PEER_AUTH].count, 1);
	stop_both();
}
END_TEST

/* 0 AES, 1 cookie: each tenant takes the answers under its own key alone. */
START_TEST(two_keys_side_by_side)
{
	const struct shape shape = {
	    .auth = _i == 0 ? AUTH_AES : AUTH_COOKIE,
	    .policy = NO_DELIVER,
	};

	start_tenant(&shape);
	ask(1, &out);
	take(0, &q);
	start_another(&shape);
	tenant_inherit(tenant, old);
	tenant_close(old);
	ask(2, &other);
	take_young(0, &r);
	fake_server_allow(&young[0], &q);
	TURN_UNTIL(tenant_counters(old)->invalid_auth == 1);
	fake_server_allow(&server[0], &r);
	TURN_UNTIL(counters()->invalid_auth == 1);
	ck_assert_uint_eq(out.calls + other.calls, 0);
	ck_assert(!tenant_heard(old) && !tenant_heard(tenant));
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert(tenant_heard(old) && !tenant_heard(tenant));
	ck_assert_uint_eq(other.calls, 0);
	fake_server_allow(&young[0], &r);
	TURN_UNTIL(other.calls == 1);
	ck_assert_int_eq(other.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(tenant_counters(old)->answers, 1);
	ck_assert_uint_eq(counters()->answers, 1);
	stop_both();
}
END_TEST

/* A server that lacks the new key is silent, and decides for the old one. */
START_TEST(one_unique_id_under_two_keys)
{
	const struct shape shape = {.auth = AUTH_AES, .policy = NO_DELIVER};

	start_tenant(&shape);
	ask(1, &out);
	take(0, &q);
	start_another(&shape);
	tenant_inherit(tenant, old);
	ask(1, &other);
	ck_assert_ptr_eq(tenant_find(tenant, q.head.unique_id), &other);
	ck_assert_ptr_eq(tenant_find(old, q.head.unique_id), &out);
	fake_server_allow(&server[0], &q);
	TURN_UNTIL(out.calls == 1);
	settle();
	ck_assert_uint_eq(other.calls, 0);
	ck_assert_uint_eq(tenant_inflight(tenant), 1);
	stop_both();
}
END_TEST

/* When it may go */

START_TEST(busy_until_all_have_answered)
{
	struct fake_request late[SERVERS];

	start_tenant(
	    &(struct shape){.auth = AUTH_COOKIE, .policy = NO_DELIVER});
	ck_assert(tenant_idle(tenant));
	ask(1, &out);
	ck_assert(!tenant_idle(tenant));
	for (unsigned int i = 0; i < SERVERS; i++)
		take(i, &late[i]);
	fake_server_allow(&server[0], &late[0]);
	TURN_UNTIL(out.calls == 1);
	settle();
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	ck_assert(!tenant_idle(tenant)); /* it listens for the others */
	tenant_close(tenant);
	fake_server_allow(&server[1], &late[1]);
	TURN_UNTIL(counters()->answers_late == 1);
	ck_assert(!tenant_idle(tenant));
	fake_server_allow(&server[2], &late[2]);
	TURN_UNTIL(tenant_idle(tenant)); /* long before the horizon */
	ck_assert_uint_eq(counters()->answers_late, 2);
	stop_tenant();
}
END_TEST

/* Nobody answers: the horizon and a while after it. */
START_TEST(busy_for_so_long_at_the_most)
{
	int64_t began;

	start_tenant(&(struct shape){.auth = AUTH_COOKIE, .policy = QUICK});
	began = loop_now();
	ask(1, &out);
	TURN_UNTIL(out.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	TURN_UNTIL(tenant_idle(tenant));
	ck_assert_int_ge(loop_now(),
	    began + config->tenants[0].plan.horizon_us + TENANT_LISTEN_US);
	stop_tenant();
}
END_TEST

/* 0 of an operation that is over, 1 of a report. */
START_TEST(busy_while_a_datagram_waits)
{
	struct pdu_report report = {.count = 1};
	uint32_t sent = 0;

	start_tenant(&(struct shape){.auth = AUTH_COOKIE});
	if (_i == 0)
		tenant_cancel(ask(1, &out));
	else
		ck_assert_int_eq(tenant_report(tenant, &report, &sent), 0);
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	ck_assert(!tenant_idle(tenant));
	TURN_UNTIL(tenant_idle(tenant));
	ck_assert_uint_eq(counters()->reports_sent, sent);
	stop_tenant();
}
END_TEST

#define MANY 500

static struct outcome many[MANY];

/* All that its callers and its servers were to get, they got. */
START_TEST(an_idle_one_goes_without_loss)
{
	unsigned int got = 0;
	uint64_t sent;

	start_tenant(&(struct shape){.auth = AUTH_AES});
	for (uint32_t i = 0; i < MANY; i++)
		ask(i, &many[i]);
	tenant_close(tenant);
	TURN_UNTIL(fake_server_take(&server[0], &q));
	do {
		fake_server_allow(&server[0], &q);
		got++;
		TURN_UNTIL(tenant_inflight(tenant) == 0 ||
			   fake_server_take(&server[0], &q));
	} while (tenant_inflight(tenant) > 0);
	while (!tenant_idle(tenant)) {
		loop_turn(loop);
		for (unsigned int i = 0; i < SERVERS; i++) {
			while (fake_server_take(&server[i], &q)) {
				fake_server_allow(&server[i], &q);
				got++;
			}
		}
	}
	sent = counters()->requests_sent;
	tenant_free(tenant);
	tenant = NULL;
	ck_assert_uint_eq(got, sent);
	for (unsigned int i = 0; i < MANY; i++) {
		ck_assert_uint_eq(many[i].calls, 1);
		ck_assert_int_eq(many[i].res.end, POLICY_SELECTED);
	}
	stop_tenant();
}
END_TEST

/* Another cap */

static int
ask_one_more(uint32_t number)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80, [12] = 1};
	struct tenant_op *op;
	struct pdu_rate rate;

	memcpy(id, &number, sizeof(number));
	make_rate(&rate, 1, 1);
	return ask_with(&rate, id, loop_now(), POLICY_NEVER, &other, &op);
}

START_TEST(a_lower_limit)
{
	struct tenant_op *op[3];

	start_tenant(&(struct shape){.auth = AUTH_COOKIE, .max_ops = 3});
	for (uint32_t i = 0; i < 3; i++)
		op[i] = ask(i, &out);
	tenant_limit(tenant, 2);
	ck_assert_uint_eq(tenant_inflight(tenant), 3);
	ck_assert_int_eq(ask_one_more(1), RLA_EBUSY);
	tenant_cancel(op[0]);
	ck_assert_int_eq(ask_one_more(1), RLA_EBUSY);
	tenant_cancel(op[1]);
	ck_assert_int_eq(ask_one_more(1), 0);
	ck_assert_int_eq(ask_one_more(2), RLA_EBUSY);
	stop_tenant();
}
END_TEST

/* Also past what there was room for. */
START_TEST(a_higher_limit)
{
	const uint32_t most = 20000;

	start_tenant(&(struct shape){.auth = AUTH_COOKIE, .max_ops = 1});
	ck_assert_int_eq(ask_one_more(0), 0);
	ck_assert_int_eq(ask_one_more(1), RLA_EBUSY);
	tenant_limit(tenant, most);
	for (uint32_t i = 1; i < most; i++)
		ck_assert_int_eq(ask_one_more(i), 0);
	ck_assert_int_eq(ask_one_more(most), RLA_EBUSY);
	ck_assert_uint_eq(tenant_inflight(tenant), most);
	stop_tenant();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tenant_inherit");
	TCase *tc = tcase_create("tenant_inherit");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, static_servers_are_known_at_once);
	tcase_add_test(tc, nothing_of_one_that_is_not_ready);
	tcase_add_loop_test(tc, what_goes_along, 0, CLIENTS);
	tcase_add_loop_test(tc, two_keys_side_by_side, 0, 2);
	tcase_add_test(tc, one_unique_id_under_two_keys);
	tcase_add_test(tc, busy_until_all_have_answered);
	tcase_add_test(tc, busy_for_so_long_at_the_most);
	tcase_add_loop_test(tc, busy_while_a_datagram_waits, 0, 2);
	tcase_add_test(tc, an_idle_one_goes_without_loss);
	tcase_add_test(tc, a_lower_limit);
	tcase_add_test(tc, a_higher_limit);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
