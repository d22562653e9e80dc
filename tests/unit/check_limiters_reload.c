/*
 * Limiters over reloads: what goes on, what begins anew, and when a changed
 * setting applies.
 */
#include "daemon/limiters.h"

#include "tests/unit/limiters_fixture.h"

/* The next configuration, in force; its limiters are asked from now on. */
static void
reload(struct generation *to, const struct shape *shape)
{
	load(to, g, shape);
	begin(to);
}

/* All that is owed, with everything of the old one freed. */
START_TEST(what_is_owed_goes_on)
{
	begin_one(&usual);
	expect_grant(NO_KEY, 2, 0);
	expect_grant(KEY("a"), 3, 0);
	for (int i = 0; i < 3; i++)
		expect_delay(KEY("a"), 0);
	expect_delay(KEY("a"), 100 * MS);
	reload(&second, &usual);
	close_generation(&first);
	expect_grant(NO_KEY, 1, 200 * MS);
	expect_grant(KEY("a"), 1, 300 * MS);
	expect_delay(KEY("a"), 300 * MS);
	ck_assert_uint_eq(limiter_counted().granted, 4);
	ck_assert_uint_eq(control_counted().begins, 5);
}
END_TEST

START_TEST(one_that_is_not_taken_changes_nothing)
{
	static const struct shape other = {
	    "\"mail\":{\"permits_per_second\":1,\"max_burst_seconds\":5,"
	    "\"max_keys\":1}",
	    "\"smtp\":{\"burst\":0,\"min_delay_ms\":7,\"max_keys\":1}", NULL};

	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	load(&second, &first, &other);
	expect_grant(KEY("a"), 1, 100 * MS);
	expect_grant(KEY("a"), 1, 200 * MS);
	expect_grant(KEY("b"), 1, 0);
	expect_delay(KEY("a"), 0);
	expect_delay(KEY("b"), 0);
	ck_assert_int_eq(shown_limiter().rate, 10 * ONE);
	close_generation(&second);
	now += 10 * SECOND;
	ck_assert_double_eq_tol(shown_limiter().stored, 10, 1e-6);
	expect_grant(KEY("c"), 1, 0);
	expect_grant(KEY("c"), 1, 100 * MS);
	ck_assert_uint_eq(limiter_counted().evictions, 0);
}
END_TEST

START_TEST(removed_and_added_is_fresh)
{
	begin_one(&usual);
	expect_grant(NO_KEY, 5, 0);
	expect_grant(KEY("a"), 5, 0);
	expect_delay(KEY("a"), 0);
	reload(&second, &(struct shape){.limiters = "\"m\":{},\"mail2\":{}"});
	ck_assert_ptr_null(limiter());
	ck_assert_ptr_null(control());
	reload(&third, &usual);
	expect_grant(NO_KEY, 1, 0);
	expect_grant(KEY("a"), 1, 0);
	ck_assert_uint_eq(limiter_counted().granted, 2);
	ck_assert_uint_eq(shown_control().keys, 0);
	g = &first; /* of a check that began then */
	expect_grant(NO_KEY, 1, 500 * MS);
}
END_TEST

/* The tables change their order; names decide. */
START_TEST(shared_by_name)
{
	begin_one(&(struct shape){
	    "\"a\":{},\"mail\":{},\"z\":{}", "\"a\":{},\"smtp\":{}", NULL});
	expect_grant(NO_KEY, 5, 0);
	expect_delay(KEY("k"), 0);
	reload(
	    &second, &(struct shape){"\"b\":{},\"c\":{},\"d\":{},\"mail\":{}",
			 "\"smtp\":{},\"t\":{}", NULL});
	expect_grant(NO_KEY, 1, 500 * MS);
	ck_assert_uint_eq(control_counted().begins, 1);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(
		    limiters_acquire(g->ls, &g->config->limiters[i], NO_KEY, 1,
			0, now, &wait_us),
		    LIMITERS_GRANTED);
	}
}
END_TEST

/* A limiter, an error control and a rule of one name are three things. */
START_TEST(kinds_are_apart)
{
	static const struct shape all = {"\"r\":{},\"mail\":{}",
	    "\"r\":{},\"mail\":{}", LOCAL("\"permits_per_second\":1")};
	const struct config_limiter *l;

	begin_one(&all);
	l = config_limiter(g->config, "r", 1);
	ck_assert_int_eq(
	    limiters_acquire(g->ls, l, NO_KEY, 9, 0, now, &wait_us),
	    LIMITERS_GRANTED);
	reload(&second, &(struct shape){.rules = all.rules});
	expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	expect_local(NO_KEY, 1, LIMITERS_REFUSED);
	reload(&third, &all);
	l = config_limiter(g->config, "r", 1);
	ck_assert_int_eq(
	    limiters_acquire(g->ls, l, NO_KEY, 1, 0, now, &wait_us),
	    LIMITERS_GRANTED);                     /* fresh */
	expect_local(NO_KEY, 1, LIMITERS_REFUSED); /* as before */
}
END_TEST

/* Only a rule that was local before has a limiter to go on with. */
START_TEST(a_rule_changes_its_kind)
{
	begin_one(&local);
	expect_local(NO_KEY, 5, LIMITERS_GRANTED);
	reload(&second,
	    &(struct shape){
		.rules = "\"q\":{\"tenant\":\"t\",\"on_failure\":\"closed\"},"
			 "\"r\":{\"tenant\":\"t\",\"on_failure\":\"open\"}"});
	reload(&third, &local);
	expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	g = &first; /* of a check that began then: still its own */
	expect_local(NO_KEY, 1, LIMITERS_REFUSED);
	ck_assert_int_eq(wait_us, 5 * SECOND);
}
END_TEST

/* A check that began under the old configuration asks the same limiter. */
START_TEST(an_old_rule_asks_the_shared_one)
{
	begin_one(&local);
	warm(KEY("a"));
	reload(&second,
	    &(struct shape){.rules = LOCAL("\"permits_per_second\":2")});
	now += SECOND;
	g = &first;
	ck_assert_int_eq(shown_local().rate, 2 * ONE);
	expect_local(KEY("a"), 1, LIMITERS_GRANTED);
	expect_local(NO_KEY, 2, LIMITERS_GRANTED);
	g = &second;
	expect_local(KEY("a"), 2, LIMITERS_GRANTED);
	expect_local(KEY("a"), 1, LIMITERS_REFUSED);
	ck_assert_int_eq(wait_us, 500 * MS);
	expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	close_generation(&first);
	expect_local(KEY("a"), 1, LIMITERS_REFUSED);
	ck_assert_uint_eq(local_counted().granted, 4);
}
END_TEST

START_TEST(a_changed_rate)
{
	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(NO_KEY, 1, 0);
	load(&second, g,
	    &(struct shape){.limiters = "\"mail\":{\"permits_per_second\":1}"});
	expect_grant(KEY("a"), 1, 100 * MS);
	begin(&second);
	ck_assert_int_eq(shown_limiter().rate, ONE);
	expect_grant(KEY("a"), 1, 200 * MS);
	expect_grant(KEY("a"), 1, 1200 * MS);
	expect_grant(NO_KEY, 1, 100 * MS);
	expect_grant(NO_KEY, 1, 1100 * MS);
	expect_grant(KEY("b"), 1, 0);
	expect_grant(KEY("b"), 1, SECOND);
}
END_TEST

/* More is stored than there will be room for, by a key that is not used. */
START_TEST(a_changed_burst)
{
	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("b"), 1, 0);
	now += 10 * SECOND;
	reload(
	    &second, &(struct shape){
			 .limiters = "\"mail\":{\"max_burst_seconds\":0.5}"});
	ck_assert_double_eq_tol(shown_limiter().stored, 5, 1e-6);
	expect_grant(KEY("a"), 5, 0);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("a"), 1, 100 * MS);
	reload(&third,
	    &(struct shape){.limiters = "\"mail\":{\"max_burst_seconds\":2}"});
	ck_assert_double_eq_tol(shown_limiter().stored, 5, 1e-6);
	now += 10 * SECOND;
	ck_assert_double_eq_tol(shown_limiter().stored, 20, 1e-6);
	expect_grant(KEY("c"), 1, 0);
	now += 10 * SECOND;
	expect_grant(KEY("c"), 20, 0);
	expect_grant(KEY("c"), 1, 0);
	expect_grant(KEY("c"), 1, 100 * MS);
}
END_TEST

START_TEST(a_rate_that_was_set_stays)
{
	static const struct shape other = {
	    "\"mail\":{\"max_burst_seconds\":2}", NULL, NULL};
	static const struct shape faster = {
	    "\"mail\":{\"permits_per_second\":20}", NULL, NULL};

	begin_one(&usual);
	limiters_set_rate(g->ls, limiter(), 100 * ONE);
	reload(&second, &other);
	ck_assert_int_eq(shown_limiter().rate, 100 * ONE);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("a"), 1, 10 * MS);
	close_generation(&first);
	reload(&first, &faster);
	ck_assert_int_eq(shown_limiter().rate, 20 * ONE);
	expect_grant(KEY("a"), 1, 20 * MS);
	expect_grant(KEY("a"), 1, 70 * MS);
	reload(&third, &usual);
	ck_assert_int_eq(shown_limiter().rate, 10 * ONE);
}
END_TEST

/* Between the loading of the next one and its beginning, too. */
START_TEST(a_rate_that_is_set_meanwhile)
{
	begin_one(&usual);
	load(&second, g, &usual);
	limiters_set_rate(g->ls, limiter(), 100 * ONE);
	begin(&second);
	ck_assert_int_eq(shown_limiter().rate, 100 * ONE);
	load(&third, g,
	    &(struct shape){
		.limiters = "\"mail\":{\"permits_per_second\":20}"});
	limiters_set_rate(g->ls, limiter(), 50 * ONE);
	begin(&third);
	ck_assert_int_eq(shown_limiter().rate, 20 * ONE);
}
END_TEST

START_TEST(less_and_more_room_for_keys)
{
	static const struct shape one = {
	    "\"mail\":{\"max_keys\":1}", "\"smtp\":{\"max_keys\":1}", NULL};

	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("b"), 1, 0);
	expect_delay(KEY("a"), 0);
	reload(&second, &one);
	ck_assert_uint_eq(shown_limiter().keys, 2);
	ck_assert_int_eq(acquire(KEY("c"), 1, 0), LIMITERS_FULL);
	expect_delay(KEY("b"), 0);
	ck_assert_uint_eq(shown_control().keys, 1);
	now += 100 * MS;
	expect_grant(KEY("c"), 1, 0);
	ck_assert_uint_eq(shown_limiter().keys, 1);
	ck_assert_uint_eq(limiter_counted().evictions, 2);
	reload(&third, &usual);
	expect_grant(KEY("a"), 1, 0);
	ck_assert_uint_eq(shown_limiter().keys, 2);
}
END_TEST

/* burst, min and max before and after; begins before; what is then told. */
static const struct {
	const char *from, *to;
	int begins, successes;
	uint32_t burst;
	int64_t delay_ms, owed_ms;
} controls[] = {
    /* As if it were new. */
    {"3,100,800", "5,50,200", 0, 0, 5, 50, 0},
    {"3,100,800", "1,900,999", 0, 0, 1, 900, 0},
    {"3,100,800", "0,900,999", 0, 0, 0, 900, 900},
    {"0,100,800", "2,100,800", 0, 0, 2, 100, 0},
    /* What has passed has passed. */
    {"3,100,800", "5,100,800", 2, 0, 3, 100, 0},
    {"3,100,800", "2,100,800", 1, 0, 1, 100, 0},
    {"3,100,800", "1,100,800", 2, 0, 0, 100, 100},
    {"3,100,800", "3,100,800", 3, 0, 0, 100, 100},
    /* A delay of 400 is the next one, and 300 are held. */
    {"0,100,800", "0,100,800", 2, 0, 0, 400, 700},
    {"0,100,800", "0,300,800", 2, 0, 0, 400, 700},
    {"0,100,800", "0,500,800", 2, 0, 0, 500, 800},
    {"0,100,800", "0,10,50", 2, 0, 0, 50, 350},
    {"0,100,400", "0,100,800", 9, 0, 0, 400, 3500},
    /* One is given back. */
    {"3,100,800", "2,100,800", 3, 1, 0, 100, 100},
    {"3,100,800", "4,100,800", 3, 1, 2, 100, 0},
};

static const char *
control_text(const char *numbers)
{
	static char text[128];
	unsigned burst, min, max;

	ck_assert_int_eq(sscanf(numbers, "%u,%u,%u", &burst, &min, &max), 3);
	snprintf(text, sizeof(text),
	    "\"smtp\":{\"burst\":%u,\"min_delay_ms\":%u,\"max_delay_ms\":%u}",
	    burst, min, max);
	return text;
}

/* Without a key and with one: the latter shows itself by its next begin. */
START_TEST(a_changed_error_control)
{
	int i;

	begin_one(&(struct shape){.controls = control_text(controls[_i].from)});
	for (i = 0; i < controls[_i].begins; i++) {
		error_begin(NO_KEY);
		error_begin(KEY("a"));
	}
	for (i = 0; i < controls[_i].successes; i++) {
		success(NO_KEY);
		success(KEY("a"));
	}
	reload(&second,
	    &(struct shape){.controls = control_text(controls[_i].to)});
	ck_assert_uint_eq(shown_control().burst, controls[_i].burst);
	ck_assert_int_eq(shown_control().delay_us, controls[_i].delay_ms * MS);
	ck_assert_int_eq(shown_control().owed_us, controls[_i].owed_ms * MS);
	expect_delay(NO_KEY, controls[_i].owed_ms * MS);
	if (controls[_i].begins > 0)
		expect_delay(KEY("a"), controls[_i].owed_ms * MS);
	/* A new key has the settings that are in force. */
	i = 0;
	while (error_begin(KEY("new")) == LIMITERS_GRANTED && wait_us == 0)
		i++;
	ck_assert_int_eq(i, atoi(controls[_i].to));
}
END_TEST

/* It doubles up to the new maximum and halves down to the new minimum. */
START_TEST(delays_in_a_new_range)
{
	begin_one(&(struct shape){.controls = control_text("0,100,200")});
	expect_delay(KEY("a"), 100 * MS);
	reload(&second, &(struct shape){.controls = control_text("0,50,300")});
	now += SECOND;
	expect_delay(KEY("a"), 200 * MS);
	now += SECOND;
	expect_delay(KEY("a"), 300 * MS);
	now += SECOND;
	expect_delay(KEY("a"), 300 * MS);
	success(KEY("a"));
	success(KEY("a"));
	now += SECOND;
	expect_delay(KEY("a"), 75 * MS);
	for (int i = 0; i < 4; i++)
		success(KEY("a"));
	now += SECOND;
	expect_delay(KEY("a"), 50 * MS);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("limiters_reload");
	TCase *tc = tcase_create("limiters_reload");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_owed_goes_on);
	tcase_add_test(tc, one_that_is_not_taken_changes_nothing);
	tcase_add_test(tc, removed_and_added_is_fresh);
	tcase_add_test(tc, shared_by_name);
	tcase_add_test(tc, kinds_are_apart);
	tcase_add_test(tc, a_rule_changes_its_kind);
	tcase_add_test(tc, an_old_rule_asks_the_shared_one);
	tcase_add_test(tc, a_changed_rate);
	tcase_add_test(tc, a_changed_burst);
	tcase_add_test(tc, a_rate_that_was_set_stays);
	tcase_add_test(tc, a_rate_that_is_set_meanwhile);
	tcase_add_test(tc, less_and_more_room_for_keys);
	tcase_add_loop_test(tc, a_changed_error_control, 0,
	    sizeof(controls) / sizeof(*controls));
	tcase_add_test(tc, delays_in_a_new_range);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
