/*
 * Operations of a tenant against servers on loopback: what decides and when,
 * what is refused, and that each completes once.
 */
#include "daemon/tenant.h"

#include "proto/err.h"
#include "tests/unit/tenant_fixture.h"

static struct outcome out, other;
static struct fake_request q[SERVERS];
static struct pdu_rate rate;

static void
start(const char *policy, const char *servers)
{
	start_tenant(&(struct shape){.auth = AUTH_COOKIE,
	    .profile = PROFILE_V1,
	    .policy = policy,
	    .servers = servers});
}

static void
take_all(void)
{
	for (unsigned int i = 0; i < SERVERS; i++)
		take(i, &q[i]);
}

START_TEST(the_oldest_decides_at_once)
{
	struct pdu_rate grant;

	start(NO_DELIVER, NULL);
	ask(1, &out);
	ck_assert_uint_eq(tenant_inflight(tenant), 1);
	take_all();
	for (unsigned int i = 0; i < SERVERS; i++) {
		ck_assert_uint_eq(q[i].head.key_id, 77);
		ck_assert_uint_eq(q[i].head.unique_id[0], 1);
		ck_assert(!q[i].head.keep_port && !q[i].head.mgmt);
		ck_assert_uint_eq(q[i].rate.dedup_ttl_ms, 30000);
		ck_assert_uint_eq(q[i].rate.guards[0].threshold_ms, 100);
		ck_assert_uint_eq(q[i].rate.resources[0].limit, 50);
		ck_assert_uint_eq(q[i].len, q[0].len);
		ck_assert_mem_eq(q[i].bytes, q[0].bytes, q[0].len);
	}
	fake_server_grant(&q[0], &grant);
	grant.guards[0].threshold_ms = 60; /* of the response */
	grant.guards[0].current_ms = 59;
	grant.resources[0].limit = 48;
	fake_server_answer(&server[0], &q[0], &grant);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID);
	ck_assert_uint_eq(out.res.round, 0);
	ck_assert(out.res.guards_pass && out.res.resources_pass);
	ck_assert_uint_eq(out.res.guard_count, 1);
	ck_assert_uint_eq(out.guards[0].first, 60);
	ck_assert_uint_eq(out.guards[0].second, 59);
	ck_assert_mem_eq(out.guards[0].id, q[0].rate.guards[0].id, ID_LEN);
	ck_assert_uint_eq(out.res.resource_count, 1);
	ck_assert_uint_eq(out.resources[0].first, 48);
	ck_assert_uint_eq(out.resources[0].second, 0);
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	ck_assert_uint_eq(counters()->operations, 1);
	ck_assert_uint_eq(counters()->selected, 1);
	ck_assert_uint_eq(counters()->answers, 1);
	ck_assert_uint_eq(counters()->requests_sent, 3);
	ck_assert_uint_eq(counters()->replays_sent, 0);
	ck_assert_uint_eq(counters()->deliveries_sent, 0);
	stop_tenant();
	ck_assert_uint_eq(out.calls, 1);
}
END_TEST

/* A guard passes when current < the response's threshold; deficit 0 grants. */
START_TEST(denials)
{
	static const struct {
		uint32_t threshold, current;
		uint16_t deficit;
		bool guards, resources;
	} rows[] = {
	    {100, 99, 1, true, false},
	    {100, 100, 0, false, true},
	    {100, 101, 65535, false, false},
	    {0, 0, 0, false, true}, /* never passes */
	    {UINT32_MAX, UINT32_MAX - 1, 0, true, true},
	    {0, UINT32_MAX, 0, false, true},
	};
	struct pdu_rate answer;

	start(NO_DELIVER, NULL);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		out.calls = 0;
		ask(i, &out);
		take_all();
		fake_server_grant(&q[0], &answer);
		answer.guards[0].threshold_ms = rows[i].threshold;
		answer.guards[0].current_ms = rows[i].current;
		answer.resources[0].tokens = rows[i].deficit;
		fake_server_answer(&server[0], &q[0], &answer);
		TURN_UNTIL(out.calls > 0);
		ck_assert_int_eq(out.res.end, POLICY_SELECTED);
		ck_assert_int_eq(out.res.guards_pass, rows[i].guards);
		ck_assert_int_eq(out.res.resources_pass, rows[i].resources);
		ck_assert_uint_eq(out.resources[0].second, rows[i].deficit);
	}
	stop_tenant();
}
END_TEST

/* Any block that fails denies, wherever it stands. */
START_TEST(one_of_many_denies)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct pdu_rate answer;
	struct tenant_op *op;

	start(NO_DELIVER, NULL);
	for (unsigned int i = 0; i < 9; i++) {
		make_rate(&rate, 4, 4);
		id[0] = (uint8_t)i;
		out.calls = 0;
		ck_assert_int_eq(
		    ask_with(&rate, id, loop_now(), POLICY_NEVER, &out, &op),
		    0);
		take_all();
		fake_server_grant(&q[0], &answer);
		if (i < 4)
			answer.guards[i].current_ms = 1000;
		else if (i < 8)
			answer.resources[i - 4].tokens = 1;
		fake_server_answer(&server[0], &q[0], &answer);
		TURN_UNTIL(out.calls > 0);
		ck_assert_int_eq(out.res.guards_pass, i >= 4);
		ck_assert_int_eq(out.res.resources_pass, i < 4 || i == 8);
		ck_assert_uint_eq(out.resources[3].first, 4);
	}
	stop_tenant();
}
END_TEST

START_TEST(younger_first_then_the_oldest)
{
	struct pdu_rate deny;

	start(NO_DELIVER, NULL);
	ask(1, &out);
	take_all();
	fake_server_grant(&q[2], &deny);
	deny.resources[0].tokens = 7;
	fake_server_answer(&server[2], &q[2], &deny);
	TURN_UNTIL(counters()->answers == 1);
	fake_server_answer(&server[1], &q[1], &deny);
	TURN_UNTIL(counters()->answers == 2);
	settle();
	ck_assert_uint_eq(out.calls, 0); /* within the preference */
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls > 0);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID);
	ck_assert(out.res.resources_pass);
	stop_tenant();
}
END_TEST

/* Two answers that are readable together are weighed together, and a
 * younger one's content never replaces an older one's. */
START_TEST(a_batch_is_weighed_whole)
{
	struct pdu_rate deny;

	/* After P(0) = 0 the first answer would decide. */
	start("{\"unit_ms\":10000,\"preference\":{\"fixed\":0}}", NULL);
	ask(1, &out);
	take_all();
	fake_server_grant(&q[0], &deny);
	deny.resources[0].tokens = 9;
	fake_server_answer(&server[1], &q[1], &deny);
	fake_server_allow(&server[2], &q[2]);
	fake_server_allow(&server[2], &q[2]);
	settle();
	ck_assert_uint_eq(out.calls, 1);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + 1);
	ck_assert_uint_eq(out.resources[0].second, 9);
	/* The other way round. */
	out.calls = 0;
	ask(2, &out);
	take_all();
	fake_server_allow(&server[2], &q[2]);
	fake_server_answer(&server[1], &q[1], &deny);
	settle();
	ck_assert_uint_eq(out.calls, 1);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + 1);
	ck_assert_uint_eq(out.resources[0].second, 9);
	ck_assert_uint_eq(counters()->answers, 4);
	ck_assert_uint_eq(counters()->answers_duplicate, 1);
	stop_tenant();
}
END_TEST

/* A loop that was stalled past H: what is readable goes first, also when one
 * wake-up (256 datagrams) does not read it all. */
START_TEST(answers_go_before_a_deadline_that_is_due)
{
	int64_t begun;

	start(QUICK, NULL);
	begun = loop_now();
	ask(1, &out);
	loop_turn(loop);
	while (!fake_server_take(&server[1], &q[1]))
		ck_assert_int_lt(loop_now(), begun + LIMIT_US);
	for (unsigned int i = 0; i < 300; i++)
		fake_server_send(&server[1], &q[1], "junk", 4);
	fake_server_allow(&server[1], &q[1]);
	while (loop_now() < begun + MS(20))
		continue;
	loop_turn(loop);
	ck_assert_uint_eq(out.calls, 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + 1);
	stop_tenant();
}
END_TEST

static void
wait_until(int64_t when)
{
	while (loop_now() < when)
		continue;
}

/* Many deadlines at once are no long turn: others have theirs in between. */
START_TEST(a_crowd_of_deadlines_is_judged_in_turns)
{
	enum { CROWD = 1000, MOST = 256 };
	unsigned int before, turns = 0;

	start(QUICK, NULL);
	for (uint32_t i = 1; i <= CROWD; i++)
		ask(i, &out);
	wait_until(loop_now() + MS(20));
	while (out.calls < CROWD) {
		before = out.calls;
		loop_turn(loop);
		ck_assert_uint_le(out.calls - before, MOST);
		turns++;
	}
	ck_assert_uint_ge(turns, CROWD / MOST);
	ck_assert_uint_eq(counters()->timeouts, CROWD);
	stop_tenant();
}
END_TEST

START_TEST(the_pace_of_the_preferred)
{
	int64_t begun, took;

	start(NO_DELIVER, NULL);
	begun = loop_now();
	ask(1, &out);
	take_all();
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 1);
	took = out.at - begun;
	ck_assert_int_eq(out.res.pace, PACE_EVEN);
	begun = loop_now();
	ask(2, &out);
	take_all();
	wait_until(begun + 2 * took + MS(1));
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 2);
	ck_assert_int_eq(out.res.pace, PACE_LATE);
	stop_tenant();
}
END_TEST

/* Another decides for it; or it is only this one that it was late with. */
START_TEST(the_pace_of_what_is_dead_and_of_what_is_not)
{
	start("{\"unit_ms\":100,\"completion_delivery\":false}", NULL);
	ask(1, &out);
	take_all();
	fake_server_allow(&server[1], &q[1]);
	TURN_UNTIL(out.calls == 1);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + 1);
	ck_assert_int_eq(out.res.pace, PACE_UNKNOWN);
	ask(2, &out);
	take_all();
	fake_server_allow(&server[1], &q[1]);
	ask(3, &other);
	take_all();
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 2);
	ck_assert_uint_eq(other.calls, 1);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + 1);
	ck_assert_int_eq(out.res.pace, PACE_LATE);
	/* Nobody at all. */
	ask(4, &out);
	TURN_UNTIL(out.calls == 3);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_eq(out.res.pace, PACE_UNKNOWN);
	stop_tenant();
}
END_TEST

/* A caller that waits less than a server may take, or one whose operation began
 * elsewhere, tells nothing. */
START_TEST(the_pace_of_a_caller_in_a_hurry)
{
	uint8_t id[16] = {[0] = 1, [6] = 0x40, [8] = 0x80};
	struct tenant_check check = {.rate = &rate, .unique_id = id};
	struct tenant_op *op;

	start(NO_DELIVER, NULL);
	make_rate(&rate, 1, 1);
	check.now = check.start = loop_now();
	check.deadline = check.start + MS(20);
	ck_assert_int_eq(tenant_check(tenant, &check, done, &out, &op), 0);
	take_all();
	ask(2, &other);
	take_all();
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 1 && other.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_eq(out.res.pace, PACE_UNKNOWN);
	id[0] = 3;
	check.resent = true;
	check.now = loop_now();
	check.deadline = POLICY_NEVER;
	ck_assert_int_eq(tenant_check(tenant, &check, done, &out, &op), 0);
	take_all();
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 2);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_int_eq(out.res.pace, PACE_UNKNOWN);
	stop_tenant();
}
END_TEST

START_TEST(no_server_fails_at_once)
{
	const struct discovery *d;

	/* Nobody serves DNS at port 1: refused, and the retry is far. */
	start_tenant(&(struct shape){.auth = AUTH_COOKIE,
	    .dns = "{\"name\":\"none.example\",\"forced_min_ms\":30000,"
		   "\"nameservers\":[\"127.0.0.1:1\"]}"});
	d = tenant_discovery(tenant);
	TURN_UNTIL(discovery_state(d) == DISCOVERY_UNAVAILABLE);
	ask(1, &out);
	ck_assert_uint_eq(out.calls, 1); /* before tenant_check() returned */
	ck_assert_int_eq(out.res.end, POLICY_NO_SERVER);
	ck_assert_uint_eq(counters()->no_server, 1);
	ck_assert_int_ne(discovery_next(d), POLICY_NEVER);
	ck_assert_uint_eq(tenant_inflight(tenant), 0);
	stop_tenant();
	ck_assert_uint_eq(out.calls, 1);
}
END_TEST

START_TEST(a_callers_deadline_ends_it)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct tenant_op *op;
	int64_t begun;

	start(PATIENT, NULL);
	begun = loop_now();
	make_rate(&rate, 1, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, begun, begun + MS(30), &out, &op), 0);
	id[0] = 1;
	ck_assert_int_eq(
	    ask_with(&rate, id, begun, begun + MS(60), &other, &op), 0);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_ge(out.at, begun + MS(30));
	ck_assert_int_lt(out.at, begun + MS(10000));
	/* With a candidate it is selected there, delivery included. */
	take(2, &q[2]);
	take(2, &q[2]);
	ck_assert_uint_eq(q[2].head.unique_id[0], 1);
	ck_assert_uint_eq(q[2].rate.dedup_ttl_ms, 30000);
	fake_server_allow(&server[2], &q[2]);
	TURN_UNTIL(other.calls > 0);
	if (counters()->answers == 1) { /* not on a very slow machine */
		ck_assert_int_eq(other.res.end, POLICY_SELECTED);
		ck_assert_uint_eq(other.res.server_id, FIRST_ID + 2);
		TURN_UNTIL(counters()->deliveries_sent == 2);
	}
	ck_assert_int_ge(other.at, begun + MS(60));
	stop_tenant();
}
END_TEST

START_TEST(extreme_deadlines_and_starts)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct tenant_op *op;

	start(PATIENT, NULL);
	make_rate(&rate, 0, 1);
	/* Past its deadline, and past its horizon: nothing is sent. */
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), loop_now() - 1, &out, &op), 0);
	ck_assert_uint_eq(out.calls, 1);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_eq(ask_with(&rate, id, 0, POLICY_NEVER, &other, &op), 0);
	ck_assert_uint_eq(other.calls, 1);
	ck_assert_int_eq(other.res.end, POLICY_TIMEOUT);
	ck_assert_int_eq(ask_with(&rate, id, 0, 0, &other, &op), 0);
	settle();
	ck_assert_uint_eq(counters()->requests_sent, 0);
	ck_assert_uint_eq(counters()->timeouts, 3);
	stop_tenant();
}
END_TEST

/* What was asked 1.5 rounds ago goes on in round 1, and ends at its H. */
START_TEST(a_resumed_operation_runs_what_remains)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct tenant_op *op;
	int64_t begun;

	start("{\"unit_ms\":100}", NULL);
	begun = loop_now() - MS(150);
	make_rate(&rate, 1, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, begun, POLICY_NEVER, &out, &op), 0);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_ge(out.at, begun + MS(300));
	ck_assert_uint_eq(counters()->requests_sent, 3);
	ck_assert_uint_eq(fake_server_count(&server[0], &q[0]), 1);
	ck_assert_uint_eq(q[0].rate.dedup_ttl_ms, 300);
	stop_tenant();
}
END_TEST

START_TEST(a_cancel_and_a_late_answer)
{
	struct tenant_op *op;

	start(PATIENT, NULL);
	op = ask(1, &out);
	take_all();
	ck_assert_ptr_eq(tenant_find(tenant, q[0].head.unique_id), &out);
	tenant_cancel(op);
	ck_assert_uint_eq(out.calls, 1);
	ck_assert_int_eq(out.res.end, POLICY_STOPPED);
	ck_assert_ptr_null(tenant_find(tenant, q[0].head.unique_id));
	ck_assert_uint_eq(counters()->cancelled, 1);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(counters()->answers_late == 1);
	ck_assert_uint_eq(counters()->deliveries_sent, 0);
	stop_tenant();
	ck_assert_uint_eq(out.calls, 1);
}
END_TEST

/* Its slot waits for the kernel's answer, and is not another's meanwhile. */
START_TEST(a_cancel_before_anything_was_sent)
{
	start(PATIENT, NULL);
	tenant_cancel(ask(1, &out));
	ask(2, &other);
	take_all(); /* the sends of the first leave as well */
	take_all();
	ck_assert_uint_eq(q[0].head.unique_id[0], 2);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(other.calls > 0);
	ck_assert_int_eq(other.res.end, POLICY_SELECTED);
	ck_assert_int_eq(out.res.end, POLICY_STOPPED);
	stop_tenant();
}
END_TEST

START_TEST(a_unique_id_is_in_flight_once)
{
	uint8_t id[16] = {[0] = 1, [6] = 0x40, [8] = 0x80};
	struct tenant_op *op, *none = NULL;

	start(PATIENT, NULL);
	op = ask(1, &out);
	make_rate(&rate, 1, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &other, &none),
	    RLA_EINVAL);
	ck_assert_ptr_null(none);
	ck_assert_uint_eq(other.calls, 0);
	tenant_cancel(op);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &other, &none), 0);
	stop_tenant();
	ck_assert_uint_eq(other.calls, 0);
}
END_TEST

START_TEST(the_cap_is_the_cap)
{
	uint8_t id[16] = {[0] = 9, [6] = 0x40, [8] = 0x80};
	struct tenant_op *first, *none;

	start_tenant(&(struct shape){.auth = AUTH_AES, .max_ops = 3});
	first = ask(1, &out);
	ask(2, &out);
	ask(3, &out);
	make_rate(&rate, 1, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &other, &none),
	    RLA_EBUSY);
	tenant_cancel(first);
	settle(); /* its sends are answered: the slot is free */
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &other, &none), 0);
	ck_assert_uint_eq(tenant_inflight(tenant), 3);
	stop_tenant();
}
END_TEST

START_TEST(too_much_for_a_datagram)
{
	uint8_t id[16] = {[6] = 0x40, [8] = 0x80};
	struct tenant_op *none;

	start(PATIENT, NULL);
	make_rate(&rate, PDU_MAX_GUARDS, 1);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &out, &none),
	    RLA_ETOOBIG);
	make_rate(&rate, 0, PDU_MAX_RESOURCES);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &out, &none),
	    RLA_ETOOBIG);
	settle();
	ck_assert_uint_eq(counters()->operations, 0);
	ck_assert_uint_eq(fake_server_count(&server[0], &q[0]), 0);
	/* The most that a cookie leaves room for: it uses a large slot. */
	make_rate(&rate, 0, 39);
	ck_assert_int_eq(
	    ask_with(&rate, id, loop_now(), POLICY_NEVER, &out, &none), 0);
	take(0, &q[0]);
	ck_assert_uint_eq(q[0].rate.resource_count, 39);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls > 0);
	ck_assert_uint_eq(out.res.resource_count, 39);
	ck_assert_uint_eq(out.resources[38].first, 39);
	ck_assert_uint_eq(out.resources[38].id[0], 0x80 + 38);
	stop_tenant();
}
END_TEST

static struct tenant_op *victim;
static struct outcome next;

static void
ask_again(struct outcome *o)
{
	(void)o;
	ask(1, &next); /* the same unique id: it is free by now */
	if (other.calls == 0)
		tenant_cancel(victim);
}

/* The callback starts an operation and cancels another. */
START_TEST(the_callback_may_do_anything)
{
	start(NO_DELIVER, NULL);
	out.then = ask_again;
	ask(1, &out);
	victim = ask(2, &other);
	take(0, &q[0]);
	take(0, &q[1]);
	/* Both in one batch: the victim is cancelled with its answer in. */
	fake_server_allow(&server[0], &q[1]);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls == 1 && other.calls == 1);
	ck_assert_int_eq(out.res.end, POLICY_SELECTED);
	ck_assert_uint_eq(tenant_inflight(tenant), 1);
	take(0, &q[0]);
	ck_assert_uint_eq(q[0].head.unique_id[0], 1);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(next.calls == 1);
	ck_assert_uint_eq(other.calls, 1);
	stop_tenant();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tenant_op");
	TCase *tc = tcase_create("tenant_op");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_oldest_decides_at_once);
	tcase_add_test(tc, denials);
	tcase_add_test(tc, one_of_many_denies);
	tcase_add_test(tc, younger_first_then_the_oldest);
	tcase_add_test(tc, a_batch_is_weighed_whole);
	tcase_add_test(tc, answers_go_before_a_deadline_that_is_due);
	tcase_add_test(tc, a_crowd_of_deadlines_is_judged_in_turns);
	tcase_add_test(tc, the_pace_of_the_preferred);
	tcase_add_test(tc, the_pace_of_what_is_dead_and_of_what_is_not);
	tcase_add_test(tc, the_pace_of_a_caller_in_a_hurry);
	tcase_add_test(tc, no_server_fails_at_once);
	tcase_add_test(tc, a_callers_deadline_ends_it);
	tcase_add_test(tc, extreme_deadlines_and_starts);
	tcase_add_test(tc, a_resumed_operation_runs_what_remains);
	tcase_add_test(tc, a_cancel_and_a_late_answer);
	tcase_add_test(tc, a_cancel_before_anything_was_sent);
	tcase_add_test(tc, a_unique_id_is_in_flight_once);
	tcase_add_test(tc, the_cap_is_the_cap);
	tcase_add_test(tc, too_much_for_a_datagram);
	tcase_add_test(tc, the_callback_may_do_anything);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
