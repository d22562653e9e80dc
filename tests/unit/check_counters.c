/*
 * The tables of counters: a row for each field of the struct, in order, with
 * a name that a metric can have and a sentence; no name twice; and the manual
 * has the same rows.
 */
#include "daemon/core/counters.h"

#include <string.h>

#include "tests/unit/harness.h"

/* In the order of the manual. */
static const struct {
	const struct counter_row *rows;
	size_t size;
} tables[] = {
    {agent_counter_rows, sizeof(struct agent_counters)},
    {rule_counter_rows, sizeof(struct rule_counters)},
    {limiter_counter_rows, sizeof(struct limiter_counters)},
    {error_control_counter_rows, sizeof(struct error_control_counters)},
    {tenant_counter_rows, sizeof(struct tenant_counters)},
};
#define TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

START_TEST(a_row_for_each_field)
{
	const struct counter_row *row = tables[_i].rows;
	size_t n;

	for (n = 0; row[n].name != NULL; n++) {
		ck_assert_uint_eq(row[n].offset, n * sizeof(uint64_t));
		ck_assert_ptr_nonnull(row[n].help);
	}
	ck_assert_uint_eq(n * sizeof(uint64_t), tables[_i].size);
}
END_TEST

START_TEST(names_and_texts)
{
	const struct counter_row *row = tables[_i].rows, *earlier;

	for (; row->name != NULL; row++) {
		ck_assert_msg(strspn(row->name,
				  "abcdefghijklmnopqrstuvwxyz0123456789_") ==
				  strlen(row->name),
		    "%s", row->name);
		ck_assert_msg(row->help[0] >= 'A' && row->help[0] <= 'Z',
		    "%s: %s", row->name, row->help);
		for (earlier = tables[_i].rows; earlier < row; earlier++) {
			ck_assert_str_ne(earlier->name, row->name);
			ck_assert_str_ne(earlier->help, row->help);
		}
	}
}
END_TEST

START_TEST(a_row_finds_its_field)
{
	struct agent_counters agent = {.failed_interrupted = 7};
	struct tenant_counters tenant = {.rebind_asked = 9};
	struct rule_counters rule = {.would_deny = 11};
	const struct counter_row *row;
	uint64_t sum = 0, v;

	for (row = agent_counter_rows; row->name != NULL; row++) {
		memcpy(&v, (const char *)&agent + row->offset, sizeof(v));
		ck_assert_uint_eq(
		    v, strcmp(row->name, "failed_interrupted") == 0 ? 7 : 0);
		sum += v;
	}
	for (row = tenant_counter_rows; row->name != NULL; row++) {
		memcpy(&v, (const char *)&tenant + row->offset, sizeof(v));
		ck_assert_uint_eq(
		    v, strcmp(row->name, "rebind_asked") == 0 ? 9 : 0);
		sum += v;
	}
	for (row = rule_counter_rows; row->name != NULL; row++) {
		memcpy(&v, (const char *)&rule + row->offset, sizeof(v));
		ck_assert_uint_eq(
		    v, strcmp(row->name, "would_deny") == 0 ? 11 : 0);
		sum += v;
	}
	ck_assert_uint_eq(sum, 27);
}
END_TEST

#define LINE_MAX_LEN 256

static FILE *
open_manual(void)
{
	const char *dir = getenv("srcdir");
	char path[4096];
	FILE *f;

	snprintf(
	    path, sizeof(path), "%s/man/rl-agent.8", dir != NULL ? dir : ".");
	f = fopen(path, "re");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	return f;
}

static bool
read_line(FILE *f, char line[LINE_MAX_LEN])
{
	if (fgets(line, LINE_MAX_LEN, f) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* The next name of the section and the line below it; false at its end. */
static bool
next_item(FILE *f, char name[LINE_MAX_LEN], char text[LINE_MAX_LEN])
{
	static const char item[] = ".It Sy ";
	char line[LINE_MAX_LEN];

	while (read_line(f, line) && strncmp(line, ".Sh ", 4) != 0) {
		if (strncmp(line, item, strlen(item)) == 0) {
			strcpy(name, line + strlen(item));
			return read_line(f, text);
		}
	}
	return false;
}

START_TEST(the_manual_has_each)
{
	char name[LINE_MAX_LEN], text[LINE_MAX_LEN], want[LINE_MAX_LEN];
	const struct counter_row *row;
	FILE *f = open_manual();
	bool there;

	do
		ck_assert_msg(read_line(f, text), "no COUNTERS");
	while (strcmp(text, ".Sh COUNTERS") != 0);
	for (int i = 0; i < TABLES; i++) {
		for (row = tables[i].rows; row->name != NULL; row++) {
			there = next_item(f, name, text);
			ck_assert_msg(there, "%s is missing", row->name);
			ck_assert_str_eq(name, row->name);
			snprintf(want, sizeof(want), "%s.", row->help);
			ck_assert_str_eq(text, want);
		}
	}
	there = next_item(f, name, text);
	ck_assert_msg(!there, "%s is no counter", name);
	fclose(f);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("counters");
	TCase *tc = tcase_create("counters");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_row_for_each_field, 0, TABLES);
	tcase_add_loop_test(tc, names_and_texts, 0, TABLES);
	tcase_add_test(tc, a_row_finds_its_field);
	tcase_add_test(tc, the_manual_has_each);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
