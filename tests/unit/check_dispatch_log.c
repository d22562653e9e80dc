/*
 * The log of decisions: one line for each that is sampled, with what was
 * answered and who asked; nothing when it is off, and no more than there is
 * room for.
 */
#include "daemon/dispatch.h"

#include <string.h>
#include <sys/mman.h>

#include "tests/unit/agent_fixture.h"

#define ALL ",\"log\":{\"decisions\":1}"

static struct ipc_peer a;
static char lines[256 * 1024];

static void
start(const char *sections)
{
	int fd = memfd_create("log", 0);

	start_agent(&(struct shape){.sections = sections});
	join(&a, main_path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
	log_set_level(LOG_LEVEL_INFO);
}

static void
stop(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	peer_close(&a);
	stop_agent();
}

/* The number of such lines so far; they are in lines, alone. */
static unsigned
count(void)
{
	static char all[sizeof(lines)];
	ssize_t len = pread(STDERR_FILENO, all, sizeof(all) - 1, 0);
	char *line, *rest = all, *to = lines;
	unsigned n = 0;

	ck_assert_int_ge(len, 0);
	all[len] = '\0';
	lines[0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strstr(line, ": decision ") == NULL)
			continue;
		to += sprintf(to, "%s\n", line);
		n++;
	}
	return n;
}

/* The next line is this one, but for its elapsed_us and the uid. */
static void
expect(unsigned n, const char *before, const char *after)
{
	char uid[64];
	char *line = lines, *end;

	ck_assert_uint_eq(count(), n);
	while (--n > 0)
		line = strchr(line, '\n') + 1;
	*strchr(line, '\n') = '\0';
	ck_assert_msg(
	    strncmp(line, "rl-agent: info: decision ", 25) == 0, "%s", line);
	ck_assert_msg(
	    strncmp(line + 25, before, strlen(before)) == 0, "%s", line);
	line += 25 + strlen(before);
	ck_assert_msg(strncmp(line, " elapsed_us=", 12) == 0, "%s", line);
	(void)strtoull(line + 12, &end, 10);
	snprintf(
	    uid, sizeof(uid), " listener=\"main\" uid=%u %s", getuid(), after);
	ck_assert_str_eq(end, uid);
}

static void
ask(uint64_t id, const char *rule, const char *key)
{
	static struct peer_base base = {.tokens = 1};

	base.number++;
	base.options = key != NULL ? IPC_OPT_KEY : 0;
	peer_check(&a, id, &base, rule, key);
}

START_TEST(what_a_server_says)
{
	struct pdu_rate rate;

	start(ALL);
	ask(1, "checkout", "a \"key\"\n");
	take(0);
	fake_server_allow(&server[0], &q);
	next(&a);
	expect(1,
	    "rule=\"checkout\" tenant=\"slow\" outcome=allowed permit=yes "
	    "source=server reason=ok limit=\"\" key=\"a \\\"key\\\"\\x0a\"",
	    "server_id=101 unsaid=0");
	ask(2, "plain", NULL);
	take(0);
	fake_server_grant(&q, &rate);
	rate.resources[0].tokens = 1;
	fake_server_answer(&server[0], &q, &rate);
	next(&a);
	expect(2,
	    "rule=\"plain\" tenant=\"slow\" outcome=denied permit=no "
	    "source=server reason=resource limit=\"plain\" key=\"\"",
	    "server_id=101 unsaid=0");
	stop();
}
END_TEST

START_TEST(what_nobody_says)
{
	start(ALL);
	ask(1, "quick", "k");
	next(&a);
	expect(1,
	    "rule=\"quick\" tenant=\"quick\" outcome=failed permit=yes "
	    "source=policy reason=timeout limit=\"\" key=\"k\"",
	    "server_id=\"\" unsaid=0");
	ask(2, "gh\"ost", "k");
	next(&a);
	expect(2,
	    "rule=\"gh\\\"ost\" tenant=\"\" outcome=failed permit=no "
	    "source=policy reason=unknown-rule limit=\"\" key=\"k\"",
	    "server_id=\"\" unsaid=0");
	ask(3, "empty", "rl-aes1qvqqqqqqqq");
	next(&a);
	expect(3,
	    "rule=\"empty\" tenant=\"slow\" outcome=allowed permit=yes "
	    "source=empty reason=ok limit=\"\" key=\"rl-aes1...\"",
	    "server_id=\"\" unsaid=0");
	ask(4, "checkout", NULL); /* which needs one */
	next(&a);
	expect(4,
	    "rule=\"checkout\" tenant=\"slow\" outcome=failed permit=no "
	    "source=policy reason=validation limit=\"\" key=\"\"",
	    "server_id=\"\" unsaid=0");
	ask(5, "plain", NULL);
	take(0);
	peer_empty(&a, IPC_CANCEL, 5);
	next(&a);
	expect(5,
	    "rule=\"plain\" tenant=\"slow\" outcome=cancelled permit=no "
	    "source=policy reason=cancelled limit=\"\" key=\"\"",
	    "server_id=\"\" unsaid=0");
	stop();
}
END_TEST

START_TEST(ad_hoc_checks)
{
	const struct peer_base base = {.number = 1000, .tokens = 1};

	start(ALL);
	peer_adhoc(&a, 1, &base, "slow", 0, 1);
	take(0);
	fake_server_allow(&server[0], &q);
	next(&a);
	expect(1,
	    "rule=\"\" tenant=\"slow\" outcome=allowed permit=yes "
	    "source=server reason=ok limit=\"\" key=\"\"",
	    "server_id=101 unsaid=0");
	peer_adhoc(&a, 2, &base, "ghost", 0, 1);
	next(&a);
	expect(2,
	    "rule=\"\" tenant=\"\" outcome=failed permit=no "
	    "source=policy reason=validation limit=\"\" key=\"\"",
	    "server_id=\"\" unsaid=0");
	stop();
}
END_TEST

START_TEST(a_share_of_each_rule)
{
	start(",\"log\":{\"decisions\":0.1}");
	for (uint64_t id = 1; id <= 40; id++) {
		ask(id, "empty", "busy");
		next(&a);
	}
	ask(41, "shut", NULL); /* once a day */
	next(&a);
	ck_assert_uint_eq(count(), 5);
	ck_assert_ptr_nonnull(strstr(lines, "rule=\"shut\""));
	stop();
}
END_TEST

START_TEST(none_by_default)
{
	start("");
	ask(1, "empty", NULL);
	next(&a);
	ask(2, "ghost", NULL);
	next(&a);
	ask(3, "quick", NULL);
	next(&a);
	ck_assert_uint_eq(count(), 0);
	stop();
}
END_TEST

/* However long it takes, there is a bound, and what is over is counted. */
START_TEST(a_flood_has_a_bound)
{
	const unsigned flood = 3000;
	const int64_t began = loop_now();
	unsigned seconds, n, unsaid;

	start(ALL);
	for (uint64_t id = 1; id <= flood; id++) {
		ask(id, "empty", NULL);
		next(&a);
	}
	n = count();
	seconds = (unsigned)((loop_now() - began) / 1000000);
	ck_assert_uint_ge(n, 80);
	ck_assert_uint_le(n, (seconds + 2) * 100);
	ck_assert_uint_eq(counters()->decisions_unsaid, flood - n);
	/* Another rule is seen all the same, and tells of them. */
	ask(flood + 1, "ghost", NULL);
	next(&a);
	ck_assert_uint_eq(count(), n + 1);
	unsaid = 0;
	for (char *at = lines; (at = strstr(at, " unsaid=")) != NULL; at++)
		unsaid += (unsigned)strtoul(at + 8, NULL, 10);
	ck_assert_uint_eq(unsaid, flood - n);
	stop();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("dispatch_log");
	TCase *tc = tcase_create("dispatch_log");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, what_a_server_says);
	tcase_add_test(tc, what_nobody_says);
	tcase_add_test(tc, ad_hoc_checks);
	tcase_add_test(tc, a_share_of_each_rule);
	tcase_add_test(tc, none_by_default);
	tcase_add_test(tc, a_flood_has_a_bound);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
