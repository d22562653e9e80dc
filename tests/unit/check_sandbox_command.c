/* The commands that steer servers at run time, and what is refused. */
#include "sandbox/command.h"

#include <jansson.h>

#include "sandbox/dnsd.h"
#include "tests/unit/sandbox_fixture.h"

static bool quit;

/* Runs a command; ok says what the answer has to be. Borrowed once. */
static const char *
command(struct dnsd *zone, const char *text, bool ok)
{
	static char dumped[4096];
	struct command_target target = {&cluster, zone};
	char line[256];
	json_t *answer;

	snprintf(line, sizeof line, "%s", text);
	quit = false;
	answer = command_run(&target, line, &quit);
	ck_assert_ptr_nonnull(answer);
	ck_assert_msg(
	    json_is_true(json_object_get(answer, "ok")) == ok, "%s", text);
	if (!ok)
		ck_assert(json_is_string(json_object_get(answer, "error")));
	ck_assert_uint_gt(
	    json_dumpb(answer, dumped, sizeof dumped - 1, JSON_COMPACT), 0);
	json_decref(answer);
	return dumped;
}

START_TEST(commands_steer_servers)
{
	struct dnsd *zone = dnsd_new("test.example", 1);
	struct server *first = start(), *second;
	const struct addr *addrs;
	size_t count;
	int fd;

	sup.index = 1;
	second = start();
	addrs = server_addrs(second, &count);
	ck_assert_int_eq(dnsd_add(zone, 1, addrs, 1), 0);
	ck_assert_int_eq(dnsd_add(zone, 2, addrs, 1), 0);
	command(zone, "stop 1", true);
	ck_assert(server_running(first) && !server_running(second));
	command(zone, "start 1", true);
	ck_assert(server_running(second));
	command(zone, " drop\t1  1.0 \r", true);
	fd = dial(addrs);
	send_request(fd);
	run_until(second, COUNT_DROPPED, 1);
	command(zone, "drop 1 0", true);
	command(zone, "delay 1 1", true);
	send_request(fd);
	run_until(second, COUNT_ANSWERED, 1);
	command(zone, "withdraw 0", true);
	command(zone, "publish 0", true);
	command(NULL, "publish 0", false);
	ck_assert_ptr_nonnull(
	    strstr(command(zone, "counters", true), "\"dropped\":1"));
	ck_assert(!quit);
	command(zone, "quit", true);
	ck_assert(quit);
	close(fd);
	dnsd_free(zone);
}
END_TEST

/* Every fault by its name, and nothing but that fault. */
START_TEST(commands_set_faults)
{
	static const struct {
		enum fault fault;
		enum counter counter;
	} counted[] = {
	    {FAULT_DROP, COUNT_DROPPED},
	    {FAULT_DUPLICATE, COUNT_SENT_TWICE},
	    {FAULT_CORRUPT, COUNT_CORRUPTED},
	    {FAULT_WRONG_ID, COUNT_WRONG_ID},
	    {FAULT_REBIND, COUNT_REBIND_ASKED},
	};
	struct server *s = start();
	char text[64];
	size_t count, i, k;
	int fd = dial(server_addrs(s, &count));

	for (i = 0; i < sizeof counted / sizeof counted[0]; i++) {
		snprintf(
		    text, sizeof text, "%s 0 1", fault_name(counted[i].fault));
		command(NULL, text, true);
		send_request(fd);
		run_until(s, COUNT_RECEIVED, 2 * i + 1);
		snprintf(
		    text, sizeof text, "%s 0 0", fault_name(counted[i].fault));
		command(NULL, text, true);
		send_request(fd);
		run_until(s, COUNT_RECEIVED, 2 * i + 2);
		for (k = 0; k < sizeof counted / sizeof counted[0]; k++)
			ck_assert_uint_eq(
			    server_counters(s)->values[counted[k].counter],
			    k <= i);
	}
	command(NULL, "clock-offset 0 -40000", true);
	send_request(fd);
	run_until(s, COUNT_STALE, 1);
	command(NULL, "clock-offset 0 0", true);
	command(NULL, "jitter 0 60000", true);
	count = server_counters(s)->values[COUNT_ANSWERED];
	send_request(fd);
	run_until(s, COUNT_RECEIVED, 2 * i + 2);
	ck_assert_uint_eq(server_counters(s)->values[COUNT_ANSWERED], count);
	close(fd);
}
END_TEST

START_TEST(bad_commands_are_named)
{
	start();
	ck_assert_ptr_nonnull(strstr(command(NULL, "corrupt 0 2", false),
	    "\"corrupt: not a number from 0 to 1\""));
	ck_assert_ptr_nonnull(strstr(command(NULL, "jitter 0 1e3", false),
	    "\"jitter: not a number from 0 to 60000\""));
	ck_assert_ptr_nonnull(strstr(command(NULL, "publish 0", false),
	    "\"publish: there is no --dns\""));
}
END_TEST

START_TEST(bad_commands_change_nothing)
{
	static const char *const lines[] = {"", " ", "halt", "stop", "stop 1",
	    "stop -1", "stop 0 0", "stop x", "drop 0", "drop 0 1.1",
	    "drop 0 -0.1", "drop 0 nan", "drop 0 0x1", "drop 0 1 1",
	    "delay 0 60001", "delay 0 -1", "delay 0 1.5", "quit 0", "STOP 0",
	    "corrupt 0", "corrupt 0 1.5", "wrong-id 0 x", "rebind 1 0",
	    "duplicate 0 2", "jitter 0 60001", "clock-offset 0 +1",
	    "clock-offset 0 4294967296", "wrong_id 0 1"};

	start();
	command(NULL, lines[_i], false);
	ck_assert(!quit);
	ck_assert(server_running(cluster.servers[0]));
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_command");
	TCase *tc = tcase_create("command");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, commands_steer_servers);
	tcase_add_test(tc, commands_set_faults);
	tcase_add_test(tc, bad_commands_are_named);
	tcase_add_loop_test(tc, bad_commands_change_nothing, 0, 28);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
