/*
 * The format, byte by byte: escapes, numbers, histograms, families of several
 * owners; and that a text without memory is none.
 */
#include "daemon/metrics_write.h"

#include <string.h>

#include "daemon/core/counters.h"
#include "tests/unit/harness.h"

#define READY    "rl_agent_ready"
#define DURATION "rl_agent_decision_duration_seconds"

static struct metrics_writer w;

static void
setup(void)
{
	w = (struct metrics_writer){0};
}

static void
expect(const char *want)
{
	char *text = metrics_write_end(&w);

	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, want);
	free(text);
}

START_TEST(nothing)
{
	expect("");
	expect("");
}
END_TEST

START_TEST(families_and_samples)
{
	char want[1024];

	metrics_write_one(&w, METRIC_READY, 1);
	metrics_write_count(&w, METRIC_READY, "a=\"b\"", NULL, 0);
	metrics_write_count(&w, METRIC_READY, "", "c=\"d\"", UINT64_MAX);
	metrics_write_count(&w, METRIC_READY, "a=\"b\"", "c=\"d\"", 10);
	snprintf(want, sizeof(want),
	    "# HELP " READY " %s\n# TYPE " READY " gauge\n" READY " 1\n" READY
	    "{a=\"b\"} 0\n" READY "{c=\"d\"} 18446744073709551615\n" READY
	    "{a=\"b\",c=\"d\"} 10\n",
	    metric_rows[METRIC_READY].help);
	expect(want);
}
END_TEST

static const struct {
	int64_t us;
	const char *text;
} times[] = {
    {INT64_MIN, "0"},
    {-1, "0"},
    {0, "0"},
    {1, "0.000001"},
    {100000, "0.1"},
    {999999, "0.999999"},
    {1000000, "1"},
    {1000001, "1.000001"},
    {60500000, "60.5"},
    {10000000, "10"},
    {INT64_MAX, "9223372036854.775807"},
};

START_TEST(seconds)
{
	char want[128];

	metrics_write_seconds(&w, METRIC_CONFIG_AGE, "", times[_i].us);
	snprintf(want, sizeof(want), "rl_agent_config_in_force_seconds %s\n",
	    times[_i].text);
	expect(want);
}
END_TEST

START_TEST(values_are_escaped)
{
	static const struct {
		const char *value;
		const char *text;
	} rows[] = {
	    {"", "n=\"\""},
	    {"plain {}=,#", "n=\"plain {}=,#\""},
	    {"\"", "n=\"\\\"\""},
	    {"\\", "n=\"\\\\\""},
	    {"\n", "n=\"\\n\""},
	    {"a\\n\"b\n\n", "n=\"a\\\\n\\\"b\\n\\n\""},
	    {"\xC3\xA4\t", "n=\"\xC3\xA4\t\""},
	};
	struct metrics_owners o = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		metrics_own(&o, NULL, "n", rows[i].value, NULL);
	metrics_own(&o, NULL, "n", "1", "m", "\"", NULL);
	ck_assert(!o.failed);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_str_eq(o.list[i].labels, rows[i].text);
	ck_assert_str_eq(o.list[o.count - 1].labels, "n=\"1\",m=\"\\\"\"");
	metrics_own_free(&o);
	ck_assert_uint_eq(o.count, 0);
}
END_TEST

START_TEST(histograms)
{
	struct latency l = {0};

	latency_note(&l, 250);
	latency_note(&l, 3000);
	latency_note(&l, 3000);
	latency_note(&l, 20000000);
	metrics_write_histogram(&w, METRIC_DURATION, "a=\"b\"", &l);
#define BUCKET(le, n) DURATION "_bucket{a=\"b\",le=\"" le "\"} " n "\n"
	expect(BUCKET("0.00025", "1") BUCKET("0.0005", "1") BUCKET("0.001", "1")
		BUCKET("0.0025", "1") BUCKET("0.005", "3") BUCKET("0.01", "3")
		    BUCKET("0.025", "3") BUCKET("0.05", "3") BUCKET("0.1", "3")
			BUCKET("0.25", "3") BUCKET("0.5", "3") BUCKET("1", "3")
			    BUCKET("2.5", "3") BUCKET("5", "3")
				BUCKET("10", "3") BUCKET("+Inf", "4") DURATION
	    "_sum{a=\"b\"} 20.00625\n" DURATION "_count{a=\"b\"} 4\n");
}
END_TEST

START_TEST(sources_of_several)
{
	static const struct metrics_source sources[] = {
	    {METRIC_LIMITER_ACQUIRES, "result=\"granted\"",
		offsetof(struct limiter_counters, granted)},
	    {METRIC_LIMITER_ACQUIRES, "result=\"refused\"",
		offsetof(struct limiter_counters, refused)},
	    {METRIC_LIMITER_PERMITS, NULL,
		offsetof(struct limiter_counters, permits)},
	};
	const struct limiter_counters one = {.granted = 1, .refused = 2},
				      two = {.permits = 3};
	struct metrics_owners o = {0};

	metrics_own(&o, &one, "limiter", "one", NULL);
	metrics_own(&o, NULL, "limiter", "none", NULL);
	metrics_own(&o, &two, "limiter", "two", NULL);
	metrics_write_sources(&w, sources, 3, &o);
	metrics_own_free(&o);
#define ACQUIRES "rl_agent_limiter_acquires_total"
#define PERMITS  "rl_agent_limiter_permits_total"
	expect("# HELP " ACQUIRES " Acquires of a limiter of this host\n"
	       "# TYPE " ACQUIRES " counter\n" ACQUIRES
	       "{limiter=\"one\",result=\"granted\"} 1\n" ACQUIRES
	       "{limiter=\"one\",result=\"refused\"} 2\n" ACQUIRES
	       "{limiter=\"two\",result=\"granted\"} 0\n" ACQUIRES
	       "{limiter=\"two\",result=\"refused\"} 0\n"
	       "# HELP " PERMITS " Permits granted\n# TYPE " PERMITS
	       " counter\n" PERMITS "{limiter=\"one\"} 0\n" PERMITS
	       "{limiter=\"two\"} 3\n");
}
END_TEST

START_TEST(a_long_text)
{
	const size_t lines = 100000;
	char *text, *at;
	size_t n = 0;

	for (size_t i = 0; i < lines; i++)
		metrics_write_count(&w, METRIC_READY, "a=\"b\"", NULL, i);
	text = metrics_write_end(&w);
	ck_assert_ptr_nonnull(text);
	for (at = text; *at != '\0'; at = strchr(at, '\n') + 1, n++) {
		char want[64];

		snprintf(want, sizeof(want), READY "{a=\"b\"} %zu\n", n);
		ck_assert(strncmp(at, want, strlen(want)) == 0);
	}
	ck_assert_uint_eq(n, lines);
	free(text);
}
END_TEST

/* What a list or a text lacked is told at the end, whatever comes after. */
START_TEST(without_memory_there_is_no_text)
{
	const struct metrics_owners failed = {.failed = true};

	metrics_write_one(&w, METRIC_READY, 1);
	metrics_write_sources(&w, NULL, 0, &failed);
	metrics_write_one(&w, METRIC_READY, 1);
	ck_assert_ptr_null(metrics_write_end(&w));
	expect(""); /* it can be used again */
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("metrics_write");
	TCase *tc = tcase_create("metrics_write");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, nothing);
	tcase_add_test(tc, families_and_samples);
	tcase_add_loop_test(
	    tc, seconds, 0, (int)(sizeof(times) / sizeof(times[0])));
	tcase_add_test(tc, values_are_escaped);
	tcase_add_test(tc, histograms);
	tcase_add_test(tc, sources_of_several);
	tcase_add_test(tc, a_long_text);
	tcase_add_test(tc, without_memory_there_is_no_text);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
