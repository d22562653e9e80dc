/*
 * Limiters, error controls and the local limiter of a rule: every key with good
 * and bad values, by the exact line that a bad one gives, every default, and
 * what numbers written as decimals are to the core.
 */
#include "daemon/config.h"

#include "tests/unit/config_edit.h"

#define KEYS(path, shown) RANGE(path, shown, 1, 1000000, 0, 1000001)

/* A RateLimiter, wherever it stands. */
#define RATE(path, shown)                                                     \
	{path ".permits_per_second", "0.001", NULL},                          \
	    {path ".permits_per_second", "1000000", NULL},                    \
	    {path ".permits_per_second", "1e6", NULL},                        \
	    {path ".permits_per_second", "7", NULL},                          \
	    {path ".permits_per_second", "0.0009",                            \
		shown ".permits_per_second: must be 0.001..1000000, not "     \
		      "0.0009"},                                              \
	    {path ".permits_per_second", "0",                                 \
		shown ".permits_per_second: must be 0.001..1000000, not 0"},  \
	    {path ".permits_per_second", "-1",                                \
		shown ".permits_per_second: must be 0.001..1000000, not -1"}, \
	    {path ".permits_per_second", "1e-400",                            \
		shown ".permits_per_second: must be 0.001..1000000, not 0"},  \
	    {path ".permits_per_second", "1000000.5",                         \
		shown ".permits_per_second: must be 0.001..1000000, not "     \
		      "1000000.5"},                                           \
	    {path ".permits_per_second", "1e300",                             \
		shown ".permits_per_second: must be 0.001..1000000, not "     \
		      "1e+300"},                                              \
	    {path ".permits_per_second", "9223372036854775807",               \
		shown ".permits_per_second: must be 0.001..1000000, not "     \
		      "9.22337203685478e+18"},                                \
	    {path ".permits_per_second", "\"10\"",                            \
		shown ".permits_per_second: must be a number"},               \
	    {path ".permits_per_second", "null",                              \
		shown ".permits_per_second: must be a number"},               \
	    {path ".permits_per_second", "true",                              \
		shown ".permits_per_second: must be a number"},               \
	    {path ".max_burst_seconds", "0.001", NULL},                       \
	    {path ".max_burst_seconds", "3600", NULL},                        \
	    {path ".max_burst_seconds", "3600.1",                             \
		shown ".max_burst_seconds: must be 0.001..3600, not 3600.1"}, \
	    {path ".max_burst_seconds", "0.0",                                \
		shown ".max_burst_seconds: must be 0.001..3600, not 0"},      \
	    {path ".max_burst_seconds", "{}",                                 \
		shown ".max_burst_seconds: must be a number"},                \
	    {path ".burst", "1", shown ".burst: unknown key"},                \
	    {path "._burst", "1", NULL},                                      \
	    KEYS(path ".max_keys", shown ".max_keys")

START_TEST(test_limiters)
{
	static const struct edit edits[] = {
	    RATE("limiters.mail", "limiters.mail"),
	    RATE("limiters.na:me", "limiters[\"na.me\"]"),
	    {"limiters", NULL, NULL},
	    {"limiters", "{}", NULL},
	    {"limiters", "{\"_mail\":3}", NULL},
	    {"limiters", "[]", "limiters: must be an object"},
	    {"limiters", "null", "limiters: must be an object"},
	    {"limiters.mail", "{}", NULL},
	    {"limiters.mail", "10", "limiters.mail: must be an object"},
	    {"limiters.mail", "null", "limiters.mail: must be an object"},
	    {"limiters.mail.min_delay_ms", "1",
		"limiters.mail.min_delay_ms: unknown key"},
	};

	RUN(edits);
}
END_TEST

#define E "error_controls.smtp"

START_TEST(test_error_controls)
{
	static const struct edit edits[] = {
	    RANGE(E ".burst", E ".burst", 0, 1000000, -1, 1000001),
	    RANGE(E ".min_delay_ms", E ".min_delay_ms", 1, 3600000, 0, 3600001),
	    RANGE(E ".max_delay_ms", E ".max_delay_ms", 1, 3600000, 0, 3600001),
	    KEYS(E ".max_keys", E ".max_keys"),
	    {E, "{\"min_delay_ms\":30000}", NULL},
	    {E, "{\"max_delay_ms\":100}", NULL},
	    {E, "{\"min_delay_ms\":30001}",
		E ".min_delay_ms: 30001 is over max_delay_ms, which is 30000"},
	    {E, "{\"max_delay_ms\":99}",
		E ".min_delay_ms: 100 is over max_delay_ms, which is 99"},
	    {E, "{\"max_delay_ms\":7,\"min_delay_ms\":8}",
		E ".min_delay_ms: 8 is over max_delay_ms, which is 7"},
	    {E ".burst", "\"3\"", E ".burst: must be an integer"},
	    {E ".permits_per_second", "1",
		E ".permits_per_second: unknown key"},
	    {E "._burst", "-1", NULL},
	    {E, "{}", NULL},
	    {E, "[]", E ": must be an object"},
	    {"error_controls", "{\"na.me\":{\"max_delay_ms\":1}}",
		"error_controls[\"na.me\"].min_delay_ms: 100 is over "
		"max_delay_ms, which is 1"},
	    {"error_controls", NULL, NULL},
	    {"error_controls", "{}", NULL},
	    {"error_controls", "{\"_smtp\":3}", NULL},
	    {"error_controls", "[]", "error_controls: must be an object"},
	};

	RUN(edits);
}
END_TEST

#define F     "rules.na:me.on_failure"
#define SHOWN "rules[\"na.me\"].on_failure"

START_TEST(test_local_limiters)
{
	static const struct edit edits[] = {
	    RATE(F ".local", SHOWN ".local"),
	    {F, "{\"local\":{}}", NULL},
	    {F, "{\"local\":{\"_\":1},\"_\":2}", NULL},
	    {F, "{}", SHOWN ".local: is missing"},
	    {F, "{\"local\":3}", SHOWN ".local: must be an object"},
	    {F, "{\"local\":{},\"open\":{}}", SHOWN ".open: unknown key"},
	};

	RUN(edits);
}
END_TEST

static struct config *
parse(const char *more)
{
	char text[2048], err[CONFIG_ERR_MAX];
	struct config *c;

	ck_assert_uint_lt(strlen(more), sizeof(text) - 128);
	snprintf(text, sizeof(text), "{\"tenants\":{\"t\":{\"key\":%s}}%s}",
	    ENV("RLA_TEST_AES"), more);
	c = fixture_parse(text, err);
	ck_assert_msg(c != NULL, "%s", err);
	return c;
}

START_TEST(test_defaults)
{
	struct config *c = parse("");

	ck_assert_uint_eq(c->limiter_count, 0);
	ck_assert_uint_eq(c->error_control_count, 0);
	ck_assert_ptr_null(config_limiter(c, "mail", 4));
	ck_assert_ptr_null(config_error_control(c, "smtp", 4));
	config_unref(c);
	c = parse(
	    ",\"limiters\":{\"mail\":{}},\"error_controls\":{\"smtp\":{}},"
	    "\"rules\":{\"r\":{\"on_failure\":{\"local\":{}}}}");
	ck_assert_uint_eq(c->warning_count, 0);
	ck_assert_int_eq(c->limiters[0].is.rate, INT64_C(10000000000000));
	ck_assert_int_eq(c->limiters[0].is.burst_us, 1000000);
	ck_assert_uint_eq(c->limiters[0].is.max_keys, 10000);
	ck_assert_uint_eq(c->error_controls[0].burst, 3);
	ck_assert_int_eq(c->error_controls[0].min_us, 100000);
	ck_assert_int_eq(c->error_controls[0].max_us, 30000000);
	ck_assert_uint_eq(c->error_controls[0].max_keys, 10000);
	ck_assert_int_eq(c->rules[0].on_failure, FAILURE_LOCAL);
	ck_assert_int_eq(c->rules[0].local.rate, INT64_C(10000000000000));
	ck_assert_int_eq(c->rules[0].local.burst_us, 1000000);
	ck_assert_uint_eq(c->rules[0].local.max_keys, 10000);
	config_unref(c);
}
END_TEST

START_TEST(test_each_value_has_its_place)
{
	struct config *c =
	    parse(",\"limiters\":{\"mail\":{\"max_keys\":7,"
		  "\"permits_per_second\":2.5,\"max_burst_seconds\":60}},"
		  "\"error_controls\":{\"smtp\":{\"max_keys\":8,"
		  "\"max_delay_ms\":3600000,\"min_delay_ms\":11,\"burst\":0}},"
		  "\"rules\":{\"r\":{\"on_failure\":{\"local\":{"
		  "\"max_keys\":9,\"permits_per_second\":1e2,"
		  "\"max_burst_seconds\":0.25}}}}");

	ck_assert_int_eq(c->limiters[0].is.rate, INT64_C(2500000000000));
	ck_assert_int_eq(c->limiters[0].is.burst_us, 60000000);
	ck_assert_uint_eq(c->limiters[0].is.max_keys, 7);
	ck_assert_uint_eq(c->error_controls[0].burst, 0);
	ck_assert_int_eq(c->error_controls[0].min_us, 11000);
	ck_assert_int_eq(c->error_controls[0].max_us, INT64_C(3600000000));
	ck_assert_uint_eq(c->error_controls[0].max_keys, 8);
	ck_assert_int_eq(c->rules[0].local.rate, INT64_C(100000000000000));
	ck_assert_int_eq(c->rules[0].local.burst_us, 250000);
	ck_assert_uint_eq(c->rules[0].local.max_keys, 9);
	config_unref(c);
}
END_TEST

/* The nearest integer to what is written, as far as a double goes: of 10^-12
 * a second for the rate, of microseconds for the burst. */
START_TEST(test_numbers)
{
	static const struct {
		const char *text;
		int64_t rate;
	} rates[] = {
	    {"0.001", INT64_C(1000000000)},
	    {"0.0010000000004", INT64_C(1000000000)},
	    {"0.0010000000006", INT64_C(1000000001)},
	    {"1e-2", INT64_C(10000000000)},
	    {"0.1", INT64_C(100000000000)},
	    {"0.3333333333333333", INT64_C(333333333333)},
	    {"0.6666666666666666", INT64_C(666666666667)},
	    {"1", INT64_C(1000000000000)},
	    {"3.1", INT64_C(3100000000000)},
	    /* From 2^52 on a half more would make these another integer. */
	    {"4503.600000000001", INT64_C(4503600000000001)},
	    {"8191.999999999999", INT64_C(8191999999999999)},
	    {"123456.7", INT64_C(123456700000000000)},
	    {"700000.1", INT64_C(700000100000000000)},
	    {"999999.9999", INT64_C(999999999900000000)},
	    {"1000000.0", INT64_C(1000000000000000000)},
	};
	static const struct {
		const char *text;
		int64_t burst_us;
	} bursts[] = {{"0.001", 1000}, {"0.0010004", 1000}, {"0.0010006", 1001},
	    {"0.1", 100000}, {"1.1", 1100000}, {"2", 2000000},
	    {"3599.999999", INT64_C(3599999999)},
	    {"3600", INT64_C(3600000000)}};
	struct config *c;
	char text[256];

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		snprintf(text, sizeof(text),
		    ",\"limiters\":{\"m\":{\"permits_per_second\":%s}}",
		    rates[i].text);
		c = parse(text);
		ck_assert_int_eq(c->limiters[0].is.rate, rates[i].rate);
		config_unref(c);
	}
	for (size_t i = 0; i < sizeof(bursts) / sizeof(*bursts); i++) {
		snprintf(text, sizeof(text),
		    ",\"limiters\":{\"m\":{\"max_burst_seconds\":%s}}",
		    bursts[i].text);
		c = parse(text);
		ck_assert_int_eq(
		    c->limiters[0].is.burst_us, bursts[i].burst_us);
		config_unref(c);
	}
}
END_TEST

/* Any name but those that no table takes; a brace is a brace. */
START_TEST(test_names)
{
	static const char *const tables[] = {"limiters", "error_controls"};
	static const struct {
		const char *name;
		const char
		    *error; /* after the table's name; NULL: it is good */
	} cases[] = {
	    {"m", NULL},
	    {"{key}", NULL},
	    {"a{", NULL},
	    {"caf\\u00e9 *", NULL},
	    {"", "[\"\"]: must be 1..255 bytes long"},
	    {"a\\nb", "[\"a\\u000ab\"]: must not hold control characters"},
	    {"\\u007f", "[\"\\u007f\"]: must not hold control characters"},
	};
	char name[258], value[300], error[400];

	for (size_t t = 0; t < 2; t++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			snprintf(
			    value, sizeof(value), "{\"%s\":{}}", cases[i].name);
			snprintf(error, sizeof(error), "%s%s", tables[t],
			    cases[i].error == NULL ? "" : cases[i].error);
			run_edits(&(struct edit){tables[t], value,
				      cases[i].error == NULL ? NULL : error},
			    1);
		}
		memset(name, 'n', sizeof(name));
		for (size_t len = 255; len < 257; len++) {
			snprintf(value, sizeof(value), "{\"%.*s\":{}}",
			    (int)len, name);
			snprintf(error, sizeof(error),
			    "%s.%.*s: must be 1..255 bytes long", tables[t],
			    (int)len, name);
			run_edits(&(struct edit){tables[t], value,
				      len < 256 ? NULL : error},
			    1);
		}
	}
}
END_TEST

/* Sorted by their bytes, whatever the order of the file. */
START_TEST(test_look_up)
{
	struct config *c =
	    parse(",\"limiters\":{\"z\":{\"max_keys\":3},\"_\":1,"
		  "\"a b\":{\"max_keys\":1},"
		  "\"caf\\u00e9\":{\"max_keys\":2}},"
		  "\"error_controls\":{\"b\":{\"burst\":3},"
		  "\"ab\":{\"burst\":2},\"a\":{\"burst\":1}}");
	static const char *const limiters[] = {"a b", "caf\xc3\xa9", "z"};
	static const char *const controls[] = {"a", "ab", "b"};

	ck_assert_uint_eq(c->limiter_count, 3);
	ck_assert_uint_eq(c->error_control_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct config_limiter *l = &c->limiters[i];
		const struct config_error_control *e = &c->error_controls[i];

		ck_assert_str_eq(l->name, limiters[i]);
		ck_assert_uint_eq(l->is.max_keys, i + 1);
		ck_assert_ptr_eq(
		    config_limiter(c, limiters[i], strlen(limiters[i])), l);
		ck_assert_str_eq(e->name, controls[i]);
		ck_assert_uint_eq(e->burst, i + 1);
		ck_assert_ptr_eq(
		    config_error_control(c, controls[i], strlen(controls[i])),
		    e);
	}
	ck_assert_ptr_null(config_limiter(c, "a", 1));
	ck_assert_ptr_null(config_limiter(c, "z\0", 2));
	ck_assert_ptr_null(config_limiter(c, NULL, 0));
	ck_assert_ptr_null(config_error_control(c, "abc", 3));
	ck_assert_ptr_null(config_error_control(c, "a\0", 2));
	ck_assert_ptr_null(config_error_control(c, NULL, 0));
	/* One name, two things. */
	ck_assert_ptr_null(config_limiter(c, "ab", 2));
	ck_assert_ptr_null(config_error_control(c, "z", 1));
	config_unref(c);
}
END_TEST

static char *
many(const char *table, int count)
{
	size_t size = 256 + (size_t)count * 16;
	char *text = malloc(size);
	size_t len;

	ck_assert_ptr_nonnull(text);
	len = (size_t)snprintf(text, size,
	    "{\"tenants\":{\"t\":{\"key\":%s}},\"%s\":{\"_\":0",
	    ENV("RLA_TEST_AES"), table);
	for (int i = 0; i < count; i++)
		len +=
		    (size_t)snprintf(text + len, size - len, ",\"n%d\":{}", i);
	snprintf(text + len, size - len, "}}");
	return text;
}

START_TEST(test_how_many)
{
	static const char *const tables[] = {"limiters", "error_controls"};
	char err[CONFIG_ERR_MAX], expected[128], *text;
	struct config *c;

	for (size_t t = 0; t < 2; t++) {
		text = many(tables[t], 4096);
		c = fixture_parse(text, err);
		ck_assert_msg(c != NULL, "%s", err);
		ck_assert_uint_eq(
		    c->limiter_count + c->error_control_count, 4096);
		config_unref(c);
		free(text);
		text = many(tables[t], 4097);
		ck_assert_ptr_null(fixture_parse(text, err));
		snprintf(expected, sizeof(expected),
		    "t.json: %s: must have 0..4096 entries, not 4097",
		    tables[t]);
		ck_assert_str_eq(err, expected);
		free(text);
	}
}
END_TEST

/* The same name twice is none of them. */
START_TEST(test_duplicates)
{
	char err[CONFIG_ERR_MAX];

	ck_assert_ptr_null(
	    fixture_parse("{\"limiters\":{\"mail\":{},\n\"mail\":{}}}", err));
	ck_assert_str_eq(err, "t.json:2:6: duplicate object key \"mail\"");
	ck_assert_ptr_null(fixture_parse(
	    "{\"error_controls\":{\"smtp\":{},\n\"smtp\":{}}}", err));
	ck_assert_str_eq(err, "t.json:2:6: duplicate object key \"smtp\"");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("config_limiter");
	TCase *tc = tcase_create("limiters");

	tcase_set_timeout(tc, 60);
	tcase_add_unchecked_fixture(tc, fixture_keys, NULL);
	tcase_add_test(tc, test_limiters);
	tcase_add_test(tc, test_error_controls);
	tcase_add_test(tc, test_local_limiters);
	tcase_add_test(tc, test_defaults);
	tcase_add_test(tc, test_each_value_has_its_place);
	tcase_add_test(tc, test_numbers);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_look_up);
	tcase_add_test(tc, test_how_many);
	tcase_add_test(tc, test_duplicates);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
