/*
 * The lines of discovery, on a clock of the test's own, which stands for the
 * loop's as the functions below stand for the log: io/ is not linked.
 */
#include "daemon/discovery_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/loop.h"
#include "daemon/log.h"
#include "tests/unit/harness.h"

#define S INT64_C(1000000)

static struct discovery_log l;
static int64_t now;
static unsigned int warnings, infos;
static uint64_t unsaid; /* that lines told of */
static char line[256];  /* the last one */

int64_t
loop_now(void)
{
	return now;
}

static void note(const char *event, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void
note(const char *event, const char *fmt, va_list ap)
{
	const char *at;
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "%s ", event);
	vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	at = strstr(line, "unsaid=");
	if (at != NULL)
		unsaid += strtoull(at + strlen("unsaid="), NULL, 10);
}

void
log_warning(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(event, fmt, ap);
	va_end(ap);
	warnings++;
}

void
log_info(const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(event, fmt, ap);
	va_end(ap);
	infos++;
}

bool
log_may(
    enum log_level level, struct errorrate *pace, int64_t when, uint64_t *held)
{
	ck_assert_int_eq(level, LOG_LEVEL_INFO);
	return errorrate_try(pace, when, held);
}

static void
setup(void)
{
	now = 100 * S;
	warnings = infos = 0;
	unsaid = 0;
	discovery_log_init(&l, "main");
}

START_TEST(what_is_said)
{
	discovery_log_error(&l, 2, "no answer");
	ck_assert_str_eq(line,
	    "discovery tenant=\"main\" ok=no servers=2 unsaid=0 "
	    "error=\"no answer\"");
	discovery_log_ok(&l, 3);
	ck_assert_str_eq(line, "discovery tenant=\"main\" ok=yes servers=3");
	discovery_log_members(&l, 64, 7);
	ck_assert_str_eq(
	    line, "members tenant=\"main\" servers=64 dropped=7 unsaid=0");
	ck_assert_uint_eq(warnings, 1);
	ck_assert_uint_eq(infos, 2);
}
END_TEST

/* DNS that fails and does not, ten times a second for an hour, and names other
 * servers each time. */
START_TEST(a_flood_is_a_few_lines)
{
	const uint64_t events = 36000;
	unsigned int lines;

	for (uint64_t i = 0; i < events; i++) {
		discovery_log_error(&l, 1, "no such name");
		discovery_log_ok(&l, 1);
		discovery_log_members(&l, 1 + (uint32_t)i % 2, 0);
		now += S / 10;
	}
	/* Five at once, six while the pause doubles to a minute, and one each
	 * minute; an end is told for each error that was. */
	lines = warnings + infos;
	ck_assert_msg(lines >= 60 && lines <= 2 * 75, "%u lines", lines);
	/* Nothing is lost but told by the next one. */
	now += 60 * S;
	discovery_log_error(&l, 1, "the last");
	ck_assert_uint_ge(unsaid + lines, 2 * events);
	ck_assert_uint_le(unsaid, 2 * events);
}
END_TEST

/* The end of what was not said is not said either. */
START_TEST(an_end_for_each_error_that_was_told)
{
	discovery_log_ok(&l, 1);
	ck_assert_uint_eq(infos, 0);
	for (int i = 0; i < 100; i++) {
		discovery_log_error(&l, 1, "no such name");
		discovery_log_ok(&l, 1);
		discovery_log_ok(&l, 1);
	}
	ck_assert_uint_eq(infos, warnings);
	ck_assert_uint_eq(warnings, 6); /* the sixth begins the pause */
	now += S;
	discovery_log_error(&l, 1, "no such name");
	ck_assert_uint_eq(warnings, 7);
	ck_assert_uint_eq(unsaid, 94);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("discovery_log");
	TCase *tc = tcase_create("discovery_log");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, what_is_said);
	tcase_add_test(tc, a_flood_is_a_few_lines);
	tcase_add_test(tc, an_end_for_each_error_that_was_told);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
