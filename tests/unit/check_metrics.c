/*
 * The table of metrics: names and texts as Prometheus wants them, the manual
 * has the same rows, and the text of an agent has each family once, in order.
 */
#include "daemon/metrics.h"

#include <string.h>

#include "daemon/core/metrics.h"
#include "daemon/log.h"
#include "daemon/metrics_private.h"
#include "tests/unit/agent_fixture.h"

#define LINE_LEN 512

static bool
ends_in(const char *text, const char *with)
{
	const size_t len = strlen(text), end = strlen(with);

	return len >= end && strcmp(text + len - end, with) == 0;
}

START_TEST(names_and_texts)
{
	const struct metric_row *row = &metric_rows[_i];

	ck_assert_msg(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_") ==
			  strlen(row->name),
	    "%s", row->name);
	ck_assert_msg(strncmp(row->name, "rl_agent_", 9) == 0 ||
			  strncmp(row->name, "process_", 8) == 0,
	    "%s", row->name);
	ck_assert_msg(
	    (row->type == METRIC_TYPE_COUNTER) == ends_in(row->name, "_total"),
	    "%s", row->name);
	ck_assert_msg(row->type != METRIC_TYPE_HISTOGRAM ||
			  ends_in(row->name, "_seconds"),
	    "%s", row->name);
	ck_assert_msg(strspn(row->labels, "abcdefghijklmnopqrstuvwxyz_,") ==
			  strlen(row->labels),
	    "%s", row->name);
	ck_assert_msg((row->help[0] >= 'A' && row->help[0] <= 'Z') ||
			  row->help[0] == '0' || row->help[0] == '1',
	    "%s: %s", row->name, row->help);
	for (int i = 0; i < _i; i++)
		ck_assert_str_ne(metric_rows[i].name, row->name);
}
END_TEST

static FILE *
open_manual(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/man/rl-agent-metrics.7",
	    dir != NULL ? dir : ".");
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	return f;
}

static bool
read_line(FILE *f, char line[LINE_LEN])
{
	if (fgets(line, LINE_LEN, f) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* The line of the manual that names a metric. */
static void
manual_item(const struct metric_row *row, char item[LINE_LEN])
{
	const char *at = row->labels, *between = " ; Va ";
	int len;

	len = snprintf(item, LINE_LEN, ".It Sy %s Pq %s", row->name,
	    metric_type_name(row->type));
	while (*at != '\0') {
		len += snprintf(item + len, (size_t)(LINE_LEN - len), "%s%.*s",
		    between, (int)strcspn(at, ","), at);
		at += strcspn(at, ",");
		at += *at == ',';
		between = " , Va ";
	}
}

START_TEST(the_manual_has_each)
{
	char line[LINE_LEN], want[LINE_LEN];
	FILE *f = open_manual();
	int next = 0;

	do
		ck_assert_msg(read_line(f, line), "no METRICS");
	while (strcmp(line, ".Sh METRICS") != 0);
	while (read_line(f, line) && strncmp(line, ".Sh ", 4) != 0) {
		if (strncmp(line, ".It ", 4) != 0)
			continue;
		ck_assert_msg(next < METRIC_COUNT, "%s is none", line);
		manual_item(&metric_rows[next], want);
		ck_assert_str_eq(line, want);
		ck_assert(read_line(f, line));
		snprintf(want, sizeof(want), "%s.", metric_rows[next].help);
		ck_assert_str_eq(line, want);
		next++;
	}
	ck_assert_int_eq(next, METRIC_COUNT);
	fclose(f);
}
END_TEST

/* A text of this agent; it must have each family, in the order of the table. */
static void
expect_families(void)
{
	char *text = metrics_text(agent), *at = text, *type;
	char want[LINE_LEN];

	ck_assert_ptr_nonnull(text);
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *row = &metric_rows[i];

		at = strstr(at, "# HELP ");
		ck_assert_msg(at != NULL, "%s is missing", row->name);
		snprintf(want, sizeof(want), "# HELP %s %s\n# TYPE %s %s\n",
		    row->name, row->help, row->name,
		    metric_type_name(row->type));
		type = at + strlen(want);
		ck_assert_msg(strncmp(at, want, strlen(want)) == 0,
		    "not %s here: %.200s", want, at);
		at = type;
	}
	ck_assert_ptr_null(strstr(at, "# HELP "));
	free(text);
}

START_TEST(each_family_once_and_in_order)
{
	start_agent(&(struct shape){0});
	expect_families();
	stop_agent();
}
END_TEST

/* Neither rules nor limiters nor a server that is known. */
START_TEST(families_without_samples)
{
	new_agent(&(struct shape){.rules = ""});
	expect_families();
	stop_agent();
}
END_TEST

/* The value of a metric without labels. */
static long long
value_of(const char *text, const char *name)
{
	char start[LINE_LEN];
	const char *at;

	snprintf(start, sizeof(start), "\n%s ", name);
	at = strstr(text, start);
	ck_assert_msg(at != NULL, "no %s", name);
	return strtoll(at + strlen(start), NULL, 10);
}

/* However their number is found. */
START_TEST(descriptors)
{
	const int64_t before = metrics_count_descriptors();
	int64_t told;
	char *text;
	int fd;

	ck_assert_int_ge(before, 3);
	fd = dup(0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(metrics_count_descriptors(), before + 1);
	close(fd);
	start_agent(&(struct shape){0});
	text = metrics_text(agent);
	ck_assert_ptr_nonnull(text);
	told = value_of(text, "process_open_fds");
	ck_assert_int_eq(told, metrics_count_descriptors());
	free(text);
	stop_agent();
}
END_TEST

START_TEST(lines_held_back)
{
	struct errorrate pace;
	uint64_t unsaid;
	char *text;

	errorrate_init(&pace, 1, 1000, 1000);
	while (log_may(LOG_LEVEL_ERROR, &pace, 0, &unsaid))
		continue;
	start_agent(&(struct shape){0});
	text = metrics_text(agent);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_ne(log_held(), log_dropped());
	ck_assert_int_eq(
	    value_of(text, "rl_agent_log_lines_held_back_total"), log_held());
	ck_assert_int_eq(
	    value_of(text, "rl_agent_log_lines_dropped_total"), log_dropped());
	free(text);
	stop_agent();
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tc = tcase_create("metrics");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, names_and_texts, 0, METRIC_COUNT);
	tcase_add_test(tc, the_manual_has_each);
	tcase_add_test(tc, each_family_once_and_in_order);
	tcase_add_test(tc, families_without_samples);
	tcase_add_test(tc, descriptors);
	tcase_add_test(tc, lines_held_back);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
