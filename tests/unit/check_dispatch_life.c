/*
 * Readiness and those who wait for it, draining, quitting: who is told what,
 * and that the loop ends.
 */
#include "daemon/dispatch.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "daemon/io/listener.h"
#include "tests/unit/agent_fixture.h"
#include "tests/unit/dnsreply.h"

static struct ipc_peer a, b;

/* A nameserver that answers when the test lets it. */
static int dns;

static void
new_agent_with_dns(void)
{
	static char tenants[512];
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);

	dns = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(dns, (struct sockaddr *)&in, len), 0);
	ck_assert_int_eq(getsockname(dns, (struct sockaddr *)&in, &len), 0);
	snprintf(tenants, sizeof(tenants),
	    "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
	    "\"policy\":{\"unit_ms\":10000,\"completion_delivery\":false},"
	    "\"dns\":{\"name\":\"c-77.example\",\"timeout_ms\":20000,"
	    "\"nameservers\":[\"127.0.0.1:%u\"]}}",
	    ntohs(in.sin_port));
	new_agent(&(struct shape){.tenants = tenants,
	    .rules = "\"plain\":{\"tenant\":\"t\",\"resources\":["
		     "{\"bucket\":\"b\"}],\"on_failure\":\"closed\"}"});
}

/* One question, if it is there: SRV or A of the one server, no AAAA. */
static void
answer_dns(void)
{
	static struct dnsreply out;
	uint8_t bytes[1024];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	size_t at = 12;
	ssize_t n = recvfrom(
	    dns, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_len);

	if (n < 0)
		return;
	while (bytes[at] != 0)
		at += bytes[at] + 1u;
	dnsreply_init(&out, (uint16_t)(bytes[0] << 8 | bytes[1]), bytes + 12,
	    at + 5 - 12);
	if (bytes[at + 2] == 33)
		dnsreply_srv(&out, NULL, 300, server[0].port, "s-101.example");
	else if (bytes[at + 2] == 1)
		dnsreply_address(&out, NULL, 300, "127.0.0.1");
	ck_assert_int_gt(sendto(dns, out.bytes, out.len, 0,
			     (struct sockaddr *)&from, from_len),
	    0);
}

#define become_ready() \
	TURN_UNTIL((answer_dns(), dispatch_is_ready(agent->dispatch)))

static void
stop_agent_with_dns(void)
{
	stop_agent();
	close(dns);
}

static bool
nothing_comes(struct ipc_peer *p)
{
	settle();
	return !peer_take(p, &reply) && !p->eof;
}

START_TEST(a_wait_ends_when_a_decision_is_possible)
{
	new_agent_with_dns();
	join(&a, main_path);
	join(&b, control_path);
	peer_wait(&a, 1, 0);
	expect_done(&a, 1, IPC_REASON_TIMEOUT);
	peer_wait(&a, 2, UINT32_MAX);
	peer_wait(&b, 3, 60000);
	peer_wait(&b, 4, 60000);
	ck_assert(nothing_comes(&a));
	become_ready();
	expect_done(&a, 2, IPC_REASON_OK);
	for (unsigned int i = 0; i < 2; i++) {
		next(&b);
		ck_assert_uint_eq(reply.type, IPC_DONE);
		ck_assert_uint_eq(reply.number, IPC_REASON_OK);
		ck_assert(reply.id == 3 || reply.id == 4);
	}
	peer_wait(&a, 5, 0); /* it is, by now */
	expect_done(&a, 5, IPC_REASON_OK);
	peer_check(&a, 6, &once, "plain", NULL);
	take(0);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 6, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	ck_assert(nothing_comes(&b));
	stop_agent_with_dns();
}
END_TEST

START_TEST(a_wait_ends_by_its_time)
{
	int64_t begun;

	new_agent_with_dns();
	join(&a, main_path);
	begun = loop_now();
	peer_wait(&a, 1, 30);
	peer_wait(&a, 2, 15);
	expect_done(&a, 2, IPC_REASON_TIMEOUT);
	ck_assert_int_ge(loop_now(), begun + 15000);
	expect_done(&a, 1, IPC_REASON_TIMEOUT);
	ck_assert_int_ge(loop_now(), begun + 30000);
	become_ready();
	ck_assert(nothing_comes(&a)); /* once each */
	stop_agent_with_dns();
}
END_TEST

START_TEST(waits_are_bounded_and_in_flight)
{
	new_agent_with_dns();
	join(&a, main_path);
	for (uint64_t i = 1; i <= 17; i++)
		peer_wait(&a, i, 60000);
	expect_done(&a, 17, IPC_REASON_OVERLOADED);
	ck_assert_uint_eq(counters()->cap_waiting, 1);
	join(&b, main_path); /* another connection has its own */
	peer_wait(&b, 1, 60000);
	peer_wait(&b, 2, 60000);
	ck_assert(nothing_comes(&b));
	/* A CANCEL is for checks. */
	peer_empty(&b, IPC_CANCEL, 1);
	ck_assert(nothing_comes(&b));
	/* A wait is in flight like a check is. */
	peer_wait(&b, 2, 60000);
	expect_error(&b, 2, IPC_ERR_ID);
	peer_close(&b);
	join(&b, main_path);
	peer_wait(&b, 1, 60000);
	peer_check(&b, 1, &once, "plain", NULL);
	expect_error(&b, 1, IPC_ERR_ID);
	ck_assert_uint_eq(counters()->checks, 0);
	/* Who leaves waits no more; the rest is answered. */
	become_ready();
	for (unsigned int i = 0; i < 16; i++) {
		next(&a);
		ck_assert_uint_eq(reply.number, IPC_REASON_OK);
	}
	stop_agent_with_dns();
}
END_TEST

START_TEST(the_end_with_waits)
{
	new_agent_with_dns();
	join(&a, main_path);
	peer_wait(&a, 1, 60000);
	ck_assert(nothing_comes(&a));
	stop_agent_with_dns();
	ck_assert(!peer_take(&a, &reply));
	ck_assert(a.eof);
}
END_TEST

/* Before any server is known a check fails at once, by its policy. */
START_TEST(a_check_never_waits_for_discovery)
{
	new_agent_with_dns();
	join(&a, main_path);
	peer_check(&a, 1, &once, "plain", NULL);
	expect_failed(&a, 1, false, IPC_REASON_DISCOVERY);
	ck_assert_uint_lt(decision.elapsed_us, 1000000);
	stop_agent_with_dns();
}
END_TEST

/* GO_AWAY with the last id; what is in flight is still answered. */
START_TEST(draining)
{
	start_agent(&(struct shape){0});
	join(&a, main_path);
	join(&b, main_path);
	expect_alive(&a, 3);
	peer_check(&a, 5, &once, "plain", NULL);
	take(0);
	agent_drain(agent);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	ck_assert_uint_eq(reply.id, 0);
	ck_assert_uint_eq(reply.number, 5);
	ck_assert_uint_ne(reply.text[0], '\0');
	next(&b);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	ck_assert_uint_eq(reply.number, 0);
	/* Nobody else comes in, and nothing is read any more. */
	ck_assert_int_ne(access(main_path, F_OK), 0);
	ck_assert_int_ne(access(control_path, F_OK), 0);
	peer_check(&a, 6, &(struct peer_base){.number = 2, .tokens = 1},
	    "empty", NULL);
	ck_assert(nothing_comes(&a));
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	fake_server_allow(&server[0], &q);
	expect_decision(
	    &a, 5, IPC_ALLOWED, true, IPC_SOURCE_SERVER, IPC_REASON_OK);
	/* That was the last one. */
	TURN_UNTIL((peer_take(&a, &reply), a.eof));
	TURN_UNTIL((peer_take(&b, &reply), b.eof));
	ck_assert_int_eq(agent_run(agent), 0);
	stop_agent();
}
END_TEST

START_TEST(draining_lets_go_of_those_who_leave)
{
	start_agent(&(struct shape){0});
	join(&a, main_path);
	peer_check(&a, 5, &once, "plain", NULL);
	take(0);
	agent_drain(agent);
	peer_close(&a);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 0);
	ck_assert_int_eq(agent_run(agent), 0);
	ck_assert_uint_eq(counters()->cancelled, 1);
	stop_agent();
}
END_TEST

/* GO_AWAY promises an answer to all up to the last id, waits included. */
START_TEST(draining_answers_waits)
{
	new_agent_with_dns();
	join(&a, main_path);
	peer_wait(&a, 4, 60000);
	ck_assert(nothing_comes(&a));
	agent_drain(agent);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	ck_assert_uint_eq(reply.number, 4);
	expect_done(&a, 4, IPC_REASON_DRAINING);
	ck_assert_int_eq(agent_run(agent), 0);
	stop_agent_with_dns();
}
END_TEST

START_TEST(draining_twice_ends_at_once)
{
	start_agent(&(struct shape){0});
	join(&a, main_path);
	peer_check(&a, 5, &once, "plain", NULL);
	take(0);
	agent_drain(agent);
	settle();
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	agent_drain(agent);
	ck_assert_int_eq(agent_run(agent), 0);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	expect_decision(&a, 5, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	TURN_UNTIL((peer_take(&a, &reply), a.eof));
	stop_agent();
}
END_TEST

START_TEST(signals_drain)
{
	static const int signals[] = {SIGTERM, SIGINT};

	start_agent(&(struct shape){0});
	join(&a, main_path);
	ck_assert_int_eq(raise(signals[_i]), 0);
	ck_assert_int_eq(agent_run(agent), 0);
	next(&a);
	ck_assert_uint_eq(reply.type, IPC_GO_AWAY);
	stop_agent();
}
END_TEST

/* Thousands of answers that a client reads late: all of them arrive. */
START_TEST(draining_waits_for_readers)
{
	const unsigned int many = 6000;
	unsigned int answers = 0;

	start_agent(&(struct shape){0});
	join(&a, main_path);
	for (unsigned int i = 1; i <= many; i++) {
		peer_check(&a, i, &(struct peer_base){.number = i, .tokens = 1},
		    "empty", NULL);
		if (i % 32 == 0)
			loop_turn(agent->loop);
	}
	TURN_UNTIL(counters()->allowed == many);
	agent_drain(agent);
	settle();
	while (!a.eof) {
		loop_turn(agent->loop);
		while (peer_take(&a, &reply))
			answers += reply.type == IPC_DECISION;
	}
	ck_assert_uint_eq(answers, many);
	stop_agent();
}
END_TEST

/*
 * Applications are let in with the first answer of DNS, so that those who
 * wait for an agent that starts again hear of no failure; the control socket
 * is open before.
 */
START_TEST(applications_are_let_in_when_servers_are_known)
{
	char err[AGENT_ERR_MAX] = "";
	int64_t begun;

	log_set_level(LOG_LEVEL_ERROR);
	make_key();
	make_folder();
	agent = agent_new(
	    make_config(&(struct shape){
		.tenants = "\"t\":{\"key\":{\"env\":\"RLA_TEST_KEY\"},"
			   "\"dns\":{\"name\":\"none.example\","
			   "\"nameservers\":[\"127.0.0.1:1\"]}}",
		.rules = ""}),
	    err);
	ck_assert_msg(agent != NULL, "%s", err);
	begun = loop_now();
	join(&b, control_path);
	expect_alive(&b, 1);
	while (!peer_reach(&a, main_path)) {
		loop_turn(agent->loop);
		ck_assert_int_lt(loop_now() - begun, LIMIT_US);
	}
	ck_assert_int_ge(loop_now() - begun, AGENT_OPEN_MS * 1000 - 100000);
	stop_agent();
}
END_TEST

/* Told to quit in its first second, it opens nothing any more. */
START_TEST(a_quit_before_it_opens)
{
	char err[AGENT_ERR_MAX] = "";

	log_set_level(LOG_LEVEL_ERROR);
	make_key();
	make_folder();
	agent = agent_new(make_config(&(struct shape){0}), err);
	ck_assert_msg(agent != NULL, "%s", err);
	agent_quit(agent);
	agent_open(agent);
	agent_drain(agent);
	agent_quit(agent);
	ck_assert_int_eq(agent_run(agent), 0);
	stop_agent();
}
END_TEST

/* Only on the control socket; then everybody else's work is Cancelled. */
START_TEST(quit)
{
	start_agent(&(struct shape){0});
	join(&a, main_path);
	peer_empty(&a, IPC_QUIT, 1);
	expect_done(&a, 1, IPC_REASON_UNAUTHORISED);
	peer_check(&a, 2, &once, "quick", NULL);
	expect_failed(&a, 2, true, IPC_REASON_TIMEOUT); /* it goes on */
	peer_check(&a, 3, &once, "plain", NULL);
	take(0);
	join(&b, control_path);
	peer_empty(&b, IPC_QUIT, 9);
	ck_assert_int_eq(agent_run(agent), 0);
	expect_done(&b, 9, IPC_REASON_OK);
	expect_decision(&a, 3, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
	    IPC_REASON_CANCELLED);
	TURN_UNTIL((peer_take(&a, &reply), a.eof));
	TURN_UNTIL((peer_take(&b, &reply), b.eof));
	stop_agent();
}
END_TEST

/* No quit, no drain: connections and checks just end. */
START_TEST(the_end_with_work_under_way)
{
	start_agent(&(struct shape){0});
	join(&a, main_path);
	peer_open(&b, main_path);
	for (uint32_t i = 1; i <= 40; i++)
		peer_adhoc(&a, i, &(struct peer_base){.number = i, .tokens = 1},
		    "slow", i % 5, i % 7);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 39);
	stop_agent();
}
END_TEST

static void
nobody(void *arg, int fd)
{
	(void)arg;
	close(fd);
}

/* Its control socket is somebody else's: then it opens none. */
START_TEST(what_cannot_be_opened)
{
	struct loop *loop = loop_new();
	char err[AGENT_ERR_MAX] = "";
	struct listener *holder;
	struct config *config;

	make_key();
	make_folder();
	holder = listener_new(
	    loop, control_path, 0600, (gid_t)-1, nobody, NULL, err);
	ck_assert_msg(holder != NULL, "%s", err);
	ck_assert_int_eq(listener_start(holder, err), 0);
	config = make_config(&(struct shape){0});
	ck_assert_ptr_null(agent_new(config, err));
	ck_assert_ptr_nonnull(strstr(err, "in use"));
	ck_assert_ptr_nonnull(strstr(err, control_path));
	ck_assert_int_ne(access(main_path, F_OK), 0);
	ck_assert_int_eq(access(control_path, F_OK), 0);
	config_unref(config);
	listener_free(holder);
	loop_free(loop);
	agent_free(NULL);
	stop_agent();
}
END_TEST

START_TEST(ports)
{
	struct dispatch_port port;

	start_agent(&(struct shape){0});
	join(&a, main_path);
	peer_check(&a, 1, &once, "plain", NULL);
	take(0);
	ck_assert(dispatch_port(agent->dispatch, 0, &port));
	ck_assert_str_eq(port.name, "main");
	ck_assert_str_eq(port.path, main_path);
	ck_assert_uint_eq(port.connections, 1);
	ck_assert_uint_eq(port.inflight, 1);
	ck_assert_uint_eq(port.accept_pauses, 0);
	ck_assert(dispatch_port(agent->dispatch, 1, &port));
	ck_assert_str_eq(port.name, "control");
	ck_assert_str_eq(port.path, control_path);
	ck_assert_uint_eq(port.connections, 0);
	ck_assert(!dispatch_port(agent->dispatch, 2, &port));
	stop_agent();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_life");
	TCase *tc = tcase_create("dispatch_life");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_wait_ends_when_a_decision_is_possible);
	tcase_add_test(tc, a_wait_ends_by_its_time);
	tcase_add_test(tc, waits_are_bounded_and_in_flight);
	tcase_add_test(tc, the_end_with_waits);
	tcase_add_test(tc, a_check_never_waits_for_discovery);
	tcase_add_test(tc, draining);
	tcase_add_test(tc, draining_lets_go_of_those_who_leave);
	tcase_add_test(tc, draining_answers_waits);
	tcase_add_test(tc, draining_waits_for_readers);
	tcase_add_test(tc, a_quit_before_it_opens);
	tcase_add_test(tc, applications_are_let_in_when_servers_are_known);
	tcase_add_test(tc, draining_twice_ends_at_once);
	tcase_add_loop_test(tc, signals_drain, 0, 2);
	tcase_add_test(tc, quit);
	tcase_add_test(tc, the_end_with_work_under_way);
	tcase_add_test(tc, what_cannot_be_opened);
	tcase_add_test(tc, ports);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
