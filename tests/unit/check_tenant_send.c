/*
 * What the operations of a tenant send: when, to which address, and what
 * becomes of it when the kernel does not take it. sendmmsg() is this
 * program's, to have a full buffer on loopback.
 */
#include "daemon/tenant.h"

#include <errno.h>

#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/unit/tenant_fixture.h"

/* While it is blocked the kernel's buffer is full; then the script's results,
 * one datagram each, -1 ends it: all is as the kernel says. An error counts
 * when it comes twice: the first may be that of an earlier datagram. */
static bool blocked;
static int script[8] = {-1};
static unsigned int script_at;

int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	int error = 0;

	if (blocked) {
		errno = EAGAIN;
		return -1;
	}
	if (script[script_at] >= 0) {
		error = script[script_at++];
		n = 1;
	}
	if (error != 0) {
		errno = error;
		return -1;
	}
	return (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

static struct outcome out;
static struct fake_request q[SERVERS];

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

/* A broadcast address without SO_BROADCAST: the kernel refuses. */
START_TEST(nothing_sent_fails_at_once)
{
	int64_t begun;

	start(PATIENT, "[{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"102\",\"address\":\"255.255.255.255:%u\"}]");
	begun = loop_now();
	ask(1, &out);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_NOT_SENT);
	ck_assert_int_lt(out.at, begun + MS(10000));
	ck_assert_uint_eq(counters()->not_sent, 1);
	ck_assert_uint_eq(counters()->send_errors, 3);
	ck_assert_uint_eq(counters()->requests_sent, 0);
	stop_tenant();
	ck_assert_uint_eq(out.calls, 1);
}
END_TEST

START_TEST(one_server_sent_is_enough)
{
	start(PATIENT, "[{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"102\",\"address\":\"127.0.0.1:%u\"}]");
	ask(1, &out);
	take(1, &q[1]);
	settle();
	ck_assert_uint_eq(out.calls, 0);
	ck_assert_uint_eq(counters()->requests_sent, 1);
	fake_server_allow(&server[1], &q[1]);
	TURN_UNTIL(counters()->answers == 1);
	ck_assert_uint_eq(out.calls, 0); /* the preference is not over */
	stop_tenant();
}
END_TEST

/* Server 101 has three addresses, two of which the kernel refuses. */
START_TEST(a_send_error_tries_the_next_address)
{
	start(PATIENT, "[{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"101\",\"address\":\"255.255.255.255:%u\"},"
		       "{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"}]");
	ask(1, &out);
	take(2, &q[0]);
	settle();
	ck_assert_uint_eq(counters()->requests_sent, 1);
	ck_assert_uint_eq(counters()->send_errors, 2);
	server[2].id = FIRST_ID;
	fake_server_allow(&server[2], &q[0]);
	TURN_UNTIL(out.calls > 0);
	ck_assert_uint_eq(out.res.round, 0);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID);
	ck_assert_uint_eq(fake_server_count(&server[2], &q[1]), 0);
	stop_tenant();
}
END_TEST

/* Rounds 0, 1, 2, 3 of one server with three addresses. */
START_TEST(each_replay_starts_with_the_next_address)
{
	start("{\"unit_ms\":5,\"replay_count\":3}",
	    "[{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"},"
	    "{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"},"
	    "{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"}]");
	ask(1, &out);
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_uint_ge(fake_server_count(&server[0], &q[0]), 1);
	if (counters()->requests_sent == 4) { /* no round was stalled over */
		ck_assert_uint_eq(fake_server_count(&server[1], &q[1]), 1);
		ck_assert_uint_eq(fake_server_count(&server[2], &q[2]), 1);
		ck_assert_mem_eq(q[1].bytes, q[0].bytes, q[0].len);
	}
	stop_tenant();
}
END_TEST

/* Round 0 is still queued when round 1 comes; the kernel takes none of it. */
static void
two_rounds_queued(const int results[8])
{
	int64_t begun;

	start("{\"unit_ms\":150,\"final_receive_units\":70}",
	    "[{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"},"
	    "{\"id\":\"101\",\"address\":\"127.0.0.1:%u\"}]");
	blocked = true;
	begun = loop_now();
	ask(1, &out);
	TURN_UNTIL(loop_now() > begun + MS(300));
	settle();
	ck_assert_uint_eq(out.calls, 0);
	memcpy(script, results, sizeof(script));
	blocked = false;
}

/* What the kernel refuses of it goes to the next address; round 0 is over. */
START_TEST(a_stale_round_is_not_sent)
{
	two_rounds_queued((const int[8]){EACCES, EACCES, 0, -1});
	take(0, &q[0]);
	settle();
	ck_assert_uint_eq(fake_server_count(&server[0], &q[1]), 0);
	ck_assert_uint_eq(fake_server_count(&server[1], &q[1]), 0);
	ck_assert_uint_eq(counters()->requests_sent, 1);
	ck_assert_uint_eq(counters()->replays_sent, 1);
	ck_assert_uint_eq(counters()->send_errors, 1);
	ck_assert_uint_eq(out.calls, 0);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls > 0);
	ck_assert_uint_eq(out.res.round, 2); /* the final interval */
	stop_tenant();
}
END_TEST

/* The horizon passes over a full buffer: nothing leaves afterwards. */
START_TEST(nothing_leaves_after_the_horizon)
{
	start(QUICK, NULL);
	blocked = true;
	ask(1, &out);
	TURN_UNTIL(out.calls > 0);
	blocked = false;
	settle();
	for (unsigned int i = 0; i < SERVERS; i++)
		ck_assert_uint_eq(fake_server_count(&server[i], &q[i]), 0);
	ck_assert_uint_eq(counters()->requests_sent, 0);
	stop_tenant();
}
END_TEST

START_TEST(silence_is_a_timeout_at_the_horizon)
{
	struct fake_request replay;
	int64_t begun;

	start("{\"unit_ms\":60,\"replay_count\":2}", NULL);
	begun = loop_now();
	ask(1, &out);
	take_all();
	TURN_UNTIL(out.calls > 0);
	ck_assert_int_eq(out.res.end, POLICY_TIMEOUT);
	ck_assert_int_ge(out.at, begun + MS(240));
	ck_assert_int_lt(out.at, begun + LIMIT_US);
	ck_assert_uint_eq(counters()->timeouts, 1);
	ck_assert_uint_eq(counters()->requests_sent, 9);
	ck_assert_uint_eq(counters()->replays_sent, 6);
	for (unsigned int i = 0; i < SERVERS; i++) {
		for (unsigned int n = 0; n < 2; n++) {
			take(i, &replay);
			ck_assert_uint_eq(replay.len, q[i].len);
			ck_assert_mem_eq(replay.bytes, q[i].bytes, q[i].len);
		}
		ck_assert_uint_eq(fake_server_count(&server[i], &replay), 0);
	}
	stop_tenant();
}
END_TEST

/* A server that answered gets no replay; then delivery to the others only. */
START_TEST(completion_delivery_goes_to_those_without_an_answer)
{
	struct fake_request again;

	start(PATIENT, NULL);
	ask(1, &out);
	take_all();
	fake_server_allow(&server[2], &q[2]);
	TURN_UNTIL(counters()->answers == 1);
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls > 0);
	take(1, &again);
	ck_assert_uint_eq(again.len, q[1].len);
	ck_assert_mem_eq(again.bytes, q[1].bytes, q[1].len);
	settle();
	ck_assert_uint_eq(fake_server_count(&server[0], &again), 0);
	ck_assert_uint_eq(fake_server_count(&server[2], &again), 0);
	ck_assert_uint_eq(counters()->deliveries_sent, 1);
	ck_assert_uint_eq(counters()->requests_sent, 4);
	/* Its answer comes too late for anything. */
	fake_server_allow(&server[1], &q[1]);
	TURN_UNTIL(counters()->answers_late == 1);
	ck_assert_uint_eq(out.calls, 1);
	stop_tenant();
}
END_TEST

/*
 * The answer of a server that got a delivery tells the round trip when the
 * decision came before the preference deadline: the first copy is answered.
 * After it nobody knows which copy is.
 */
START_TEST(a_delivery_and_the_round_trip)
{
	static const char hasty[] =
	    "{\"unit_ms\":5,\"replay_gap\":{\"fixed\":4000}}";
	struct fake_request again;
	const struct peer *peer;
	const bool prompt = _i == 0;

	start(prompt ? PATIENT : hasty, NULL);
	peer = &tenant_peers(tenant)->list[2];
	ask(1, &out);
	take_all();
	fake_server_allow(&server[prompt ? 0 : 1], &q[prompt ? 0 : 1]);
	TURN_UNTIL(out.calls > 0);
	ck_assert_uint_eq(out.res.server_id, FIRST_ID + (prompt ? 0U : 1U));
	take(2, &again);
	fake_server_allow(&server[2], &q[2]);
	TURN_UNTIL(counters()->answers_late == 1);
	ck_assert_uint_eq(peer->answered, 1);
	ck_assert_int_eq(peer->rtt_us > 0, prompt);
	stop_tenant();
}
END_TEST

/* The same when the delivery has waited for the kernel until then: the first
 * copy may be lost, and its answer be that to the delivery. */
START_TEST(a_delivery_that_waited_tells_no_round_trip)
{
	struct fake_request again;
	const struct peer *peer;
	int64_t begun;

	start("{\"unit_ms\":50,\"replay_gap\":{\"fixed\":400}}", NULL);
	peer = &tenant_peers(tenant)->list[2];
	begun = loop_now();
	ask(1, &out);
	take_all();
	blocked = true;
	fake_server_allow(&server[0], &q[0]);
	TURN_UNTIL(out.calls > 0);
	TURN_UNTIL(loop_now() > begun + MS(60));
	blocked = false;
	take(2, &again);
	fake_server_allow(&server[2], &again);
	TURN_UNTIL(counters()->answers_late == 1);
	ck_assert_uint_eq(peer->answered, 1);
	ck_assert_int_eq(peer->rtt_us, 0);
	stop_tenant();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("tenant_send");
	TCase *tc = tcase_create("tenant_send");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_sent_fails_at_once);
	tcase_add_test(tc, one_server_sent_is_enough);
	tcase_add_test(tc, a_send_error_tries_the_next_address);
	tcase_add_test(tc, each_replay_starts_with_the_next_address);
	tcase_add_test(tc, a_stale_round_is_not_sent);
	tcase_add_test(tc, nothing_leaves_after_the_horizon);
	tcase_add_test(tc, silence_is_a_timeout_at_the_horizon);
	tcase_add_test(tc, completion_delivery_goes_to_those_without_an_answer);
	tcase_add_loop_test(tc, a_delivery_and_the_round_trip, 0, 2);
	tcase_add_test(tc, a_delivery_that_waited_tells_no_round_trip);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
