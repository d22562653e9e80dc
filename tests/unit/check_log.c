/*
 * The log, read back from a pipe in the place of stderr: whatever is logged
 * is one line of one write, and errno is left alone.
 */
#include "daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static int ends[2];
static char line[8192];

static void
fresh(void)
{
	/* Packets: a read gives what one write gave. */
	ck_assert_int_eq(pipe2(ends, O_NONBLOCK | O_DIRECT), 0);
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
}

static void
setup(void)
{
	fresh();
	log_set_level(LOG_LEVEL_DEBUG);
}

static void
teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

/* One line without its end, or NULL when nothing was written. */
static const char *
logged(void)
{
	ssize_t n = read(ends[0], line, sizeof(line) - 1);

	if (n < 0) {
		ck_assert_int_eq(errno, EAGAIN);
		return NULL;
	}
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
	line[n - 1] = '\0';
	return line;
}

START_TEST(levels)
{
	static void (*const fns[])(const char *, const char *, ...) = {
	    log_error, log_warning, log_info, log_debug};
	static const char *const expected[] = {
	    "rl-agent: error: start n=1",
	    "rl-agent: warning: start n=1",
	    "rl-agent: info: start n=1",
	    "rl-agent: debug: start n=1",
	};

	for (int level = 0; level < 4; level++) {
		log_set_level((enum log_level)level);
		for (int i = 0; i < 4; i++) {
			fns[i]("start", "n=%d", 1);
			if (i <= level)
				ck_assert_str_eq(logged(), expected[i]);
			ck_assert_ptr_null(logged());
		}
	}
}
END_TEST

START_TEST(the_usual_level_is_info)
{
	log_debug("a", "n=%d", 1);
	log_info("b", "n=%d", 2);
	ck_assert_str_eq(logged(), "rl-agent: info: b n=2");
	ck_assert_ptr_null(logged());
}
END_TEST

START_TEST(a_line_stays_a_line)
{
	log_info("peer", "name=\"%s\"",
	    "a\nb\r\x1b[31m\x7f\tc\xc2\x9b"
	    "d");
	ck_assert_str_eq(logged(),
	    "rl-agent: info: peer "
	    "name=\"a\\x0ab\\x0d\\x1b[31m\\x7f\\x09c\\xc2\\x9bd\"");
	log_info("peer", "name=\"%s\"", "gr\xc3\xbc\xc3\x9f dich");
	ck_assert_str_eq(
	    logged(), "rl-agent: info: peer name=\"gr\xc3\xbc\xc3\x9f dich\"");
	ck_assert_ptr_null(logged());
}
END_TEST

START_TEST(a_key_is_no_text)
{
	log_error("start", "error=\"%s\"", "no file rl-aes1qvqqqqqqqq");
	ck_assert_str_eq(
	    logged(), "rl-agent: error: start error=\"no file rl-aes1...\"");
}
END_TEST

START_TEST(a_long_line_is_cut)
{
	static char text[5000];
	size_t len;

	memset(text, 'x', sizeof(text) - 1);
	log_info("long", "text=\"%s\" n=%d", text, 1);
	len = strlen(logged());
	ck_assert_uint_gt(len, 1900);
	ck_assert_uint_lt(len, 2048);
	ck_assert_str_eq(line + len - 2, "x\"");
	ck_assert_ptr_null(logged());
}
END_TEST

/* As systemd tells whose pipe or socket stderr is. */
static void
say_stream(const char *fmt)
{
	char text[64];
	struct stat st;

	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(text, sizeof(text), fmt, (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	ck_assert_int_eq(setenv("JOURNAL_STREAM", text, 1), 0);
	log_find_journal();
}

START_TEST(the_journal_gets_priorities)
{
	say_stream("%ju:%ju");
	log_error("a", "n=%d", 1);
	ck_assert_str_eq(logged(), "<3>error: a n=1");
	log_warning("a", "n=%d", 1);
	ck_assert_str_eq(logged(), "<4>warning: a n=1");
	log_info("a", "n=%d", 1);
	ck_assert_str_eq(logged(), "<6>info: a n=1");
	log_debug("a", "n=%d", 1);
	ck_assert_str_eq(logged(), "<7>debug: a n=1");
	log_refusal("no\nfile");
	ck_assert_str_eq(logged(), "<3>no?file");
}
END_TEST

/* What the environment names is not what stderr is. */
START_TEST(others_do_not)
{
	static const char *const others[] = {
	    "%ju:1%ju", "1%ju:%ju", "%ju:%ju ", "%ju", "%ju:", ""};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		say_stream(others[i]);
		log_error("a", "n=%d", 1);
		ck_assert_str_eq(logged(), "rl-agent: error: a n=1");
	}
	say_stream("%ju:%ju");
	fresh(); /* redirected since */
	log_find_journal();
	log_refusal("no file");
	ck_assert_str_eq(logged(), "rl-agent: no file");
	ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
	log_find_journal();
	log_error("a", "n=%d", 1);
	ck_assert_str_eq(logged(), "rl-agent: error: a n=1");
}
END_TEST

/* A debugging line that nobody would see is not missed. */
START_TEST(lines_held_back_are_counted)
{
	const uint64_t before = log_held();
	struct errorrate pace;
	uint64_t unsaid = 0;

	log_set_level(LOG_LEVEL_INFO);
	errorrate_init(&pace, 1, 1000, 1000);
	ck_assert(log_may(LOG_LEVEL_INFO, &pace, 0, &unsaid));
	while (log_may(LOG_LEVEL_INFO, &pace, 0, &unsaid))
		continue;
	ck_assert_uint_eq(unsaid, 1);
	ck_assert_uint_eq(log_held(), before + 1);
	ck_assert(!log_may(LOG_LEVEL_WARNING, &pace, 0, &unsaid));
	ck_assert_uint_eq(log_held(), before + 2);
	ck_assert(!log_may(LOG_LEVEL_DEBUG, &pace, 0, &unsaid));
	ck_assert_uint_eq(unsaid, 3);
	ck_assert_uint_eq(log_held(), before + 2);
	log_set_level(LOG_LEVEL_DEBUG);
	ck_assert(!log_may(LOG_LEVEL_DEBUG, &pace, 0, &unsaid));
	ck_assert_uint_eq(log_held(), before + 3);
}
END_TEST

START_TEST(errno_is_kept)
{
	errno = ENOSPC;
	log_warning("disk", "error=\"%m\"");
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_str_eq(logged(),
	    "rl-agent: warning: disk error=\"No space left on device\"");
	/* Also when nobody takes the line, or it is below the level. */
	close(ends[0]);
	close(STDERR_FILENO);
	errno = EPERM;
	log_error("gone", "error=\"%m\"");
	ck_assert_int_eq(errno, EPERM);
	log_set_level(LOG_LEVEL_ERROR);
	log_debug("gone", "error=\"%m\"");
	ck_assert_int_eq(errno, EPERM);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("log");
	TCase *tc = tcase_create("log");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, levels);
	tcase_add_test(tc, a_line_stays_a_line);
	tcase_add_test(tc, a_key_is_no_text);
	tcase_add_test(tc, a_long_line_is_cut);
	tcase_add_test(tc, lines_held_back_are_counted);
	tcase_add_test(tc, errno_is_kept);
	tcase_add_test(tc, the_journal_gets_priorities);
	tcase_add_test(tc, others_do_not);
	suite_add_tcase(suite, tc);
	tc = tcase_create("fresh");
	tcase_add_checked_fixture(tc, fresh, teardown);
	tcase_add_test(tc, the_usual_level_is_info);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
