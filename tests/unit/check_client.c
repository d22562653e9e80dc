/*
 * Who may connect, and every cap: refused at once, freed afterwards, and the
 * control socket out of reach of what uses up the others.
 */
#include "daemon/dispatch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/core/pace.h"
#include "tests/unit/agent_fixture.h"

static struct ipc_peer a, b, c;

static void
expect_refused(const char *path, enum ipc_error_code code)
{
	static struct ipc_peer p;

	peer_open(&p, path);
	expect_error(&p, 0, code);
	peer_close(&p);
}

START_TEST(uids_and_gids)
{
	static char more[1024];
	char path[96];

	snprintf(more, sizeof(more),
	    ",\"uid\":{\"path\":\"%%s/1.sock\",\"uids\":[%u,%u]},"
	    "\"gid\":{\"path\":\"%%s/2.sock\",\"uids\":[%u],\"gids\":[%u]},"
	    "\"not-uid\":{\"path\":\"%%s/3.sock\",\"uids\":[%u]},"
	    "\"not-gid\":{\"path\":\"%%s/4.sock\",\"gids\":[%u]}",
	    getuid() + 1, getuid(), getuid() + 1, getgid(), getuid() + 1,
	    getgid() + 54321);
	start_agent(&(struct shape){.listeners = more});
	for (int i = 1; i <= 4; i++) {
		snprintf(path, sizeof(path), "%s/%d.sock", folder, i);
		if (i <= 2) {
			join(&a, path);
			peer_close(&a);
		} else {
			expect_refused(path, IPC_ERR_UNAUTHORISED);
		}
	}
	ck_assert_uint_eq(counters()->connections_refused, 2);
	ck_assert_uint_eq(counters()->connections, 4);
	stop_agent();
}
END_TEST

START_TEST(connections_of_a_listener)
{
	start_agent(&(struct shape){.listener = ",\"max_connections\":2",
	    .listeners = ",\"other\":{\"path\":\"%s/o.sock\"}"});
	join(&a, main_path);
	join(&b, main_path);
	expect_refused(main_path, IPC_ERR_BUSY);
	expect_refused(main_path, IPC_ERR_BUSY);
	ck_assert_uint_eq(counters()->cap_connections, 2);
	join(&c, control_path);
	peer_close(&c);
	expect_alive(&a, 1);
	peer_close(&b);
	settle();
	join(&b, main_path);
	stop_agent();
}
END_TEST

/* Over all listeners, but not on the control socket. */
START_TEST(connections_of_a_uid)
{
	char path[96];

	start_agent(&(struct shape){.limits = "\"max_connections_per_uid\":2",
	    .listeners = ",\"other\":{\"path\":\"%s/o.sock\"}"});
	snprintf(path, sizeof(path), "%s/o.sock", folder);
	join(&a, main_path);
	join(&b, path);
	expect_refused(path, IPC_ERR_BUSY);
	expect_refused(main_path, IPC_ERR_BUSY);
	join(&c, control_path);
	expect_alive(&c, 1);
	/* A connection of the control socket counts for its uid as well. */
	peer_close(&a);
	peer_close(&b);
	settle();
	join(&a, main_path);
	expect_refused(path, IPC_ERR_BUSY);
	ck_assert_uint_eq(counters()->cap_connections_uid, 3);
	ck_assert_uint_eq(counters()->cap_connections, 0);
	stop_agent();
}
END_TEST

START_TEST(the_control_socket_has_a_cap_too)
{
	static struct ipc_peer many[64];

	start_agent(&(struct shape){0});
	for (unsigned int i = 0; i < 64; i++)
		join(&many[i], control_path);
	expect_refused(control_path, IPC_ERR_BUSY);
	ck_assert_uint_eq(counters()->cap_connections, 1);
	peer_close(&many[7]);
	settle();
	join(&many[7], control_path);
	join(&a, main_path);
	stop_agent();
}
END_TEST

/* Some descriptors are kept back for the control socket. */
START_TEST(descriptors)
{
	struct rlimit lim = {.rlim_cur = 64, .rlim_max = 64};
	int last = -1, fd;

	start_agent(&(struct shape){0});
	join(&a, main_path);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	/* Somebody else uses them: 16 of 64 are kept. */
	while ((fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0 && fd < 47)
		last = fd;
	ck_assert_int_ge(last, 0);
	expect_refused(main_path, IPC_ERR_BUSY);
	ck_assert_uint_eq(counters()->cap_descriptors, 1);
	join(&c, control_path);
	expect_alive(&c, 1);
	expect_alive(&a, 1);
	peer_close(&c);
	close(last);
	close(last - 1);
	close(fd);
	join(&b, main_path);
	stop_agent();
}
END_TEST

static void
check(struct ipc_peer *p, uint64_t id, uint32_t operation, const char *rule)
{
	const struct peer_base base = {.number = operation, .tokens = 1};

	peer_check(p, id, &base, rule, NULL);
}

#define CAP(field) offsetof(struct agent_counters, field)

/*
 * Three checks fit; the fourth fails at once, by its rule's policy, and one
 * that ends makes room. cap: the counter of what was in the way.
 */
static void
three_fit(size_t cap)
{
	uint64_t hit;

	join(&a, main_path);
	for (uint32_t i = 1; i <= 3; i++)
		check(&a, i, i, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 3);
	check(&a, 4, 4, "plain");
	expect_failed(&a, 4, false, IPC_REASON_OVERLOADED);
	join(&b, main_path);
	check(&b, 4, 5, "quick");
	expect_failed(&b, 4, true, IPC_REASON_OVERLOADED);
	ck_assert_uint_eq(counters()->failed_overloaded, 2);
	check(&b, 5, 5, "empty"); /* needs no room */
	expect_decision(
	    &b, 5, IPC_ALLOWED, true, IPC_SOURCE_EMPTY, IPC_REASON_OK);
	take(0);
	fake_server_allow(&server[0], &q);
	next(&a);
	check(&b, 6, 6, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 3);
	peer_close(&a);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 1);
	check(&b, 7, 7, "plain");
	check(&b, 8, 8, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 3);
	ck_assert_uint_eq(counters()->failed_overloaded, 2);
	memcpy(&hit, (const char *)counters() + cap, sizeof(hit));
	ck_assert_uint_eq(hit, 2);
	stop_agent();
}

START_TEST(checks_of_a_listener)
{
	char path[96];

	start_agent(&(struct shape){.listener = ",\"max_inflight\":3",
	    .listeners = ",\"other\":{\"path\":\"%s/o.sock\"}"});
	snprintf(path, sizeof(path), "%s/o.sock", folder);
	join(&c, path);
	three_fit(CAP(cap_inflight_listener));
}
END_TEST

START_TEST(checks_of_a_uid)
{
	start_agent(&(struct shape){.limits = "\"max_inflight_per_uid\":3"});
	three_fit(CAP(cap_inflight_uid));
}
END_TEST

START_TEST(checks_of_the_agent)
{
	start_agent(&(struct shape){.limits = "\"max_inflight\":3"});
	three_fit(CAP(cap_inflight));
}
END_TEST

/* Connects as another user and asks for so much; until it is killed. */
static pid_t
another_user(unsigned int checks)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid != 0)
		return pid;
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(1);
	peer_open(&b, main_path);
	peer_hello(&b);
	for (uint32_t i = 1; i <= checks; i++)
		check(&b, i, 1000 + i, "plain");
	for (;;)
		pause();
}

/* Alone a user may fill a listener; beside others it leaves a quarter. */
START_TEST(a_user_leaves_room_for_the_others)
{
	pid_t pid;

	if (geteuid() != 0)
		return; /* cannot be another user */
	start_agent(&(struct shape){
	    .listener = ",\"mode\":\"0666\",\"max_inflight\":8"});
	ck_assert_int_eq(chmod(folder, 0755), 0);
	pid = another_user(20);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 8);
	TURN_UNTIL(counters()->failed_overloaded == 12);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 0);
	join(&a, main_path);
	pid = another_user(20);
	TURN_UNTIL(counters()->failed_overloaded == 12 + 14);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 6);
	for (uint32_t i = 1; i <= 3; i++)
		check(&a, i, i, "plain");
	expect_failed(&a, 3, false, IPC_REASON_OVERLOADED);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 8);
	/* The eight of the first user; its other four were of a full one. */
	ck_assert_uint_eq(counters()->cap_inflight_share, 14);
	ck_assert_uint_eq(counters()->cap_inflight_listener, 12 + 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	stop_agent();
}
END_TEST

/*
 * Beside one who asks, too, a user is held to its window as soon as answers
 * tell of one, and goes on as they come; alone it has what it wants.
 */
START_TEST(a_greedy_user_is_held_beside_others)
{
	enum { GREED = 250 };
	int64_t answered;
	pid_t pid;

	if (geteuid() != 0)
		return; /* cannot be another user */
	for (unsigned int beside = 0; beside < 2; beside++) {
		start_agent(&(struct shape){.listener = ",\"mode\":\"0666\""});
		ck_assert_int_eq(chmod(folder, 0755), 0);
		join(&a, main_path);
		if (beside > 0) {
			check(&a, 1, 1, "plain");
			take(0);
			fake_server_allow(&server[0], &q);
			next(&a);
		}
		pid = another_user(GREED);
		take(0);
		fake_server_allow(&server[0], &q);
		TURN_UNTIL(counters()->allowed == 1 + beside);
		answered = loop_now();
		for (int i = 0; i < 200; i++)
			loop_turn(agent->loop);
		if (beside > 0)
			ck_assert_uint_lt(
			    dispatch_inflight(agent->dispatch), GREED - 1);
		/* Later the answer would be forgotten, and nobody held. */
		while (beside == 0 &&
		       dispatch_inflight(agent->dispatch) < GREED - 1) {
			loop_turn(agent->loop);
			ck_assert_int_lt(loop_now(), answered + PACE_FRESH_US);
		}
		TURN_UNTIL((fake_server_take(&server[0], &q)
				? fake_server_allow(&server[0], &q)
				: (void)0,
		    counters()->allowed == GREED + beside));
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		stop_agent();
	}
}
END_TEST

/* Even with their datagrams still queued, and while answers may come. */
START_TEST(cancelled_checks_make_room)
{
	start_agent(&(struct shape){.limits = "\"max_inflight\":3"});
	join(&a, main_path);
	for (uint32_t i = 1; i <= 3; i++) {
		check(&a, i, i, "plain");
		peer_empty(&a, IPC_CANCEL, i);
	}
	check(&a, 4, 4, "plain"); /* all of it is read in one turn */
	for (uint32_t i = 1; i <= 3; i++)
		expect_decision(&a, i, IPC_CANCELLED, false, IPC_SOURCE_POLICY,
		    IPC_REASON_CANCELLED);
	ck_assert_uint_eq(dispatch_inflight(agent->dispatch), 1);
	for (uint32_t i = 5; i <= 6; i++)
		check(&a, i, i, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 3);
	stop_agent();
}
END_TEST

START_TEST(a_full_listener_leaves_another_alone)
{
	char path[96];

	start_agent(&(struct shape){.listener = ",\"max_inflight\":1",
	    .listeners = ",\"other\":{\"path\":\"%s/o.sock\"}"});
	snprintf(path, sizeof(path), "%s/o.sock", folder);
	join(&a, main_path);
	join(&b, path);
	check(&a, 1, 1, "plain");
	check(&b, 1, 2, "plain");
	check(&b, 2, 3, "plain");
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 3);
	check(&a, 2, 4, "plain");
	expect_failed(&a, 2, false, IPC_REASON_OVERLOADED);
	stop_agent();
}
END_TEST

#define MANY 6000

/*
 * It has thousands of checks in flight, with long answers, and never reads:
 * reading from it stops, and when the answers come it is closed.
 */
START_TEST(unread_answers_end_the_connection)
{
	static char rules[16 * 1024];
	const struct peer_base detail = {
	    .tokens = 1, .options = IPC_OPT_DETAIL};
	struct peer_base base = detail;
	size_t len;

	len = (size_t)snprintf(rules, sizeof(rules),
	    "\"long\":{\"tenant\":\"slow\",\"resources\":[");
	for (int i = 0; i < 20; i++)
		len += (size_t)snprintf(rules + len, sizeof(rules) - len,
		    "%s{\"bucket\":\"%0200d\"}", i > 0 ? "," : "", i);
	snprintf(rules + len, sizeof(rules) - len, "]}");
	start_agent(&(struct shape){.rules = rules});
	join(&b, main_path);
	join(&a, main_path);
	for (base.number = 0; base.number < MANY; base.number++) {
		peer_check(&a, base.number + 1, &base, "long", NULL);
		if (base.number % 32 == 0)
			settle();
	}
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == MANY);
	TURN_UNTIL((fake_server_take(&server[0], &q)
			? fake_server_allow(&server[0], &q)
			: (void)0,
	    counters()->connections_unread == 1));
	TURN_UNTIL(dispatch_inflight(agent->dispatch) == 0);
	ck_assert_uint_gt(counters()->allowed, 500);
	ck_assert_uint_gt(counters()->cancelled, 0);
	expect_alive(&b, 1);
	stop_agent();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("client");
	TCase *tc = tcase_create("client");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, uids_and_gids);
	tcase_add_test(tc, connections_of_a_listener);
	tcase_add_test(tc, connections_of_a_uid);
	tcase_add_test(tc, the_control_socket_has_a_cap_too);
	tcase_add_test(tc, descriptors);
	tcase_add_test(tc, checks_of_a_listener);
	tcase_add_test(tc, checks_of_a_uid);
	tcase_add_test(tc, checks_of_the_agent);
	tcase_add_test(tc, a_user_leaves_room_for_the_others);
	tcase_add_test(tc, a_greedy_user_is_held_beside_others);
	tcase_add_test(tc, cancelled_checks_make_room);
	tcase_add_test(tc, a_full_listener_leaves_another_alone);
	tcase_add_test(tc, unread_answers_end_the_connection);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
