/* Medians, what a goal means, and what becomes of a row without a value. */
#include "tests/bench/report.h"

#include <math.h>
#include <time.h>

#include <jansson.h>

#include "tests/unit/harness.h"

enum { RATIO, INFORMS, SKIPPED, GOALS };

static const struct report_goal goals[GOALS] = {
    [RATIO] = {"ratio", 1.5},
    [INFORMS] = {"informs", NAN},
    [SKIPPED] = {"skipped", 2},
};

static struct report *
report_of(const double *values, size_t count)
{
	struct report *r = malloc(sizeof(*r));

	ck_assert_ptr_nonnull(r);
	report_init(r, goals, GOALS);
	for (size_t i = 0; i < count; i++) {
		report_add(r, RATIO, values[i]);
		report_add(r, INFORMS, values[i]);
		report_add(r, SKIPPED, values[i]);
	}
	report_skip(r, SKIPPED, "no redis");
	return r;
}

START_TEST(value_is_the_median)
{
	const double odd[] = {9, 1, 1.25}, even[] = {1, 4, 2, 100};
	struct report *r = report_of(odd, 3);

	ck_assert_double_eq(report_value(&r->rows[RATIO]), 1.25);
	free(r);
	r = report_of(even, 4);
	ck_assert_double_eq(report_value(&r->rows[RATIO]), 3);
	free(r);
}
END_TEST

START_TEST(goal_is_an_upper_bound)
{
	const double met[] = {1.5}, near[] = {1.5 + 1e-12}, missed[] = {1.6};
	const double *const all[] = {met, near, missed};
	const int ok[] = {1, 0, 0}; /* near is shown as 1.50 */
	struct report *r;

	for (size_t i = 0; i < 3; i++) {
		r = report_of(all[i], 1);
		ck_assert_int_eq(report_ok(&r->rows[RATIO]), ok[i]);
		ck_assert_int_eq(report_ok(&r->rows[INFORMS]), -1);
		ck_assert_int_eq(report_ok(&r->rows[SKIPPED]), -1);
		free(r);
	}
}
END_TEST

START_TEST(row_that_is_not_judged_has_a_value)
{
	const double met[] = {1}, missed[] = {2};
	const double *const all[] = {met, missed};
	struct report *r;

	for (size_t i = 0; i < 2; i++) {
		r = report_of(all[i], 1);
		r->rows[RATIO].judged = false;
		ck_assert_int_eq(report_ok(&r->rows[RATIO]), -1);
		ck_assert_double_eq(report_value(&r->rows[RATIO]), all[i][0]);
		free(r);
	}
}
END_TEST

START_TEST(set_is_the_only_sample)
{
	const double values[] = {0, 0, 0};
	struct report *r = report_of(values, 3);

	report_set(r, RATIO, 1e-5);
	ck_assert_double_eq(report_value(&r->rows[RATIO]), 1e-5);
	report_set(r, RATIO, 2e-5);
	ck_assert_double_eq(report_value(&r->rows[RATIO]), 2e-5);
	ck_assert_double_eq(report_value(&r->rows[INFORMS]), 0);
	free(r);
}
END_TEST

START_TEST(no_sample_is_no_value)
{
	struct report *r = report_of(NULL, 0);

	for (size_t i = 0; i < GOALS; i++) {
		ck_assert(isnan(report_value(&r->rows[i])));
		ck_assert_int_eq(report_ok(&r->rows[i]), -1);
	}
	free(r);
}
END_TEST

/* Who reads the file comes to the same ok. */
START_TEST(json_is_exact)
{
	const double near[] = {1.5 + 1e-15};
	const char *path = "check_report_exact.json";
	char *const none[] = {NULL};
	struct report *r = report_of(near, 1);
	json_t *root, *row;

	ck_assert_int_eq(report_write(r, none, path), 0);
	root = json_load_file(path, 0, NULL);
	remove(path);
	row = json_array_get(json_object_get(root, "rows"), RATIO);
	ck_assert(json_real_value(json_object_get(row, "value")) > 1.5);
	ck_assert(json_is_false(json_object_get(row, "ok")));
	json_decref(root);
	free(r);
}
END_TEST

START_TEST(rows_are_json)
{
	const double values[] = {2, 1};
	const char *path = "check_report.json";
	char *const none[] = {NULL};
	struct report *r = report_of(values, 2);
	json_t *root, *want;

	report_figure(r, "relay", "us", 2.5);
	ck_assert_int_eq(report_write(r, none, path), 0);
	root = json_load_file(path, 0, NULL);
	remove(path);
	want =
	    json_loads("[{\"name\": \"ratio\", \"value\": 1.5, \"goal\": 1.5,"
		       "  \"ok\": true},"
		       " {\"name\": \"informs\", \"value\": 1.5,"
		       "  \"goal\": null, \"ok\": null},"
		       " {\"name\": \"skipped\", \"value\": null,"
		       "  \"goal\": 2.0, \"ok\": null,"
		       "  \"note\": \"no redis\"}]",
		0, NULL);
	ck_assert(json_equal(json_object_get(root, "rows"), want));
	ck_assert_uint_eq(json_object_size(root), 2);
	ck_assert_ptr_nonnull(json_object_get(
	    json_object_get(json_object_get(root, "raw"), "figures"), "relay"));
	json_decref(want);
	json_decref(root);
	free(r);
}
END_TEST

START_TEST(raw_tells_how_it_was_measured)
{
	const char *path = "check_report_raw.json", *date, *version;
	char bad[] = "\xff", option[] = "--quick";
	char *const arguments[] = {option, bad, NULL};
	struct report *r = report_of(NULL, 0);
	json_t *root, *want = json_loads("[\"--quick\", null]", 0, NULL), *got;
	time_t before = time(NULL), then;
	struct tm tm = {0};

	ck_assert_int_eq(report_write(r, arguments, path), 0);
	root = json_load_file(path, 0, NULL);
	remove(path);
	ck_assert_int_eq(json_unpack(root, "{s:{s:s, s:s, s:o}}", "raw", "date",
			     &date, "version", &version, "arguments", &got),
	    0);
	ck_assert_str_eq(version, PACKAGE_VERSION);
	ck_assert(json_equal(got, want));
	ck_assert_str_eq(strptime(date, "%Y-%m-%dT%H:%M:%S", &tm), "Z");
	then = timegm(&tm);
	ck_assert(then >= before && then <= time(NULL));
	json_decref(want);
	json_decref(root);
	free(r);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("report");
	TCase *tc = tcase_create("report");

	tcase_add_test(tc, value_is_the_median);
	tcase_add_test(tc, goal_is_an_upper_bound);
	tcase_add_test(tc, row_that_is_not_judged_has_a_value);
	tcase_add_test(tc, set_is_the_only_sample);
	tcase_add_test(tc, no_sample_is_no_value);
	tcase_add_test(tc, json_is_exact);
	tcase_add_test(tc, rows_are_json);
	tcase_add_test(tc, raw_tells_how_it_was_measured);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
