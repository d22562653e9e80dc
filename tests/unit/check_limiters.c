/*
 * The host-wide limiters of a configuration: each key for itself, the rate
 * that was set, room for keys, the limiters of rules. What a reload does to
 * them is in check_limiters_reload.c.
 */
#include "daemon/limiters.h"

#include "tests/unit/limiters_fixture.h"

static const struct shape narrow = {
    "\"mail\":{\"max_keys\":2}", "\"smtp\":{\"max_keys\":2}", NULL};
static const struct shape slow = {
    .limiters = "\"mail\":{\"permits_per_second\":0.001}"};

START_TEST(as_a_ratelimiter)
{
	begin_one(&usual);
	expect_grant(NO_KEY, 1, 0); /* nothing stored, and nothing owed */
	expect_grant(NO_KEY, 2, 100 * MS);
	expect_grant(NO_KEY, 1, 300 * MS);
	now += SECOND; /* 600 ms of it are stored */
	expect_grant(NO_KEY, 6, 0);
	expect_grant(NO_KEY, 1, 0);
	expect_grant(NO_KEY, 1, 100 * MS);
}
END_TEST

/* There before it is asked for. */
START_TEST(stores_from_the_start)
{
	begin_one(&usual);
	now += SECOND;
	ck_assert_double_eq_tol(shown_limiter().stored, 10, 1e-6);
	expect_grant(NO_KEY, 10, 0);
	expect_grant(NO_KEY, 1, 0);
	expect_grant(NO_KEY, 1, 100 * MS);
}
END_TEST

START_TEST(each_key_for_itself)
{
	static const char nul[2];

	begin_one(&usual);
	expect_grant(KEY("a"), 5, 0);
	expect_grant(KEY("b"), 1, 0);
	expect_grant(NO_KEY, 2, 0);
	expect_grant(KEY(""), 3, 0); /* is a key */
	expect_grant(((struct limiters_key){nul, 1}), 1, 0);
	expect_grant(((struct limiters_key){nul, 2}), 1, 0);
	expect_grant(KEY("a"), 1, 500 * MS);
	expect_grant(KEY("b"), 1, 100 * MS);
	expect_grant(NO_KEY, 1, 200 * MS);
	expect_grant(KEY(""), 1, 300 * MS);
	ck_assert_uint_eq(shown_limiter().keys, 5);
}
END_TEST

/* A key that is new has stored nothing, however old the limiter is. */
START_TEST(a_key_begins_with_nothing)
{
	begin_one(&usual);
	now += 10 * SECOND;
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("a"), 1, 100 * MS);
	now += 10 * SECOND;
	expect_grant(KEY("a"), 10, 0);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("a"), 1, 100 * MS);
}
END_TEST

START_TEST(too_long_to_wait)
{
	begin_one(&usual);
	expect_grant(KEY("a"), 3, 0);
	expect_refusal(KEY("a"), 0, 300 * MS);
	expect_refusal(KEY("a"), 300 * MS - 1, 300 * MS);
	ck_assert_int_eq(acquire(KEY("a"), 1, 300 * MS), LIMITERS_GRANTED);
	expect_grant(KEY("a"), 1, 400 * MS); /* none taken by who was refused */
	ck_assert_uint_eq(limiter_counted().granted, 3);
	ck_assert_uint_eq(limiter_counted().permits, 5);
	ck_assert_uint_eq(limiter_counted().waits, 2);
	ck_assert_uint_eq(limiter_counted().refused, 2);
	ck_assert_uint_eq(limiter_counted().overloaded, 0);
}
END_TEST

START_TEST(over_a_year_is_owed)
{
	begin_one(&slow);
	expect_grant(NO_KEY, 1000000, 0);
	ck_assert_int_eq(
	    acquire(NO_KEY, 1, RATELIMITER_MAX_WAIT_US), LIMITERS_TOO_LONG);
	ck_assert_int_eq(wait_us, 1000000 * 1000 * SECOND);
	ck_assert_int_eq(
	    acquire(NO_KEY, 1, RATELIMITER_MAX_WAIT_US - 1), LIMITERS_REFUSED);
	ck_assert_uint_eq(limiter_counted().refused, 2);
	ck_assert_uint_eq(limiter_counted().permits, 1000000);
}
END_TEST

START_TEST(a_rate_for_all_keys)
{
	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(NO_KEY, 1, 0);
	limiters_set_rate(g->ls, limiter(), 100 * ONE);
	ck_assert_int_eq(shown_limiter().rate, 100 * ONE);
	/* Who is to come pays by the rate of who was there. */
	expect_grant(KEY("a"), 1, 100 * MS);
	expect_grant(KEY("a"), 1, 110 * MS);
	expect_grant(NO_KEY, 1, 100 * MS);
	expect_grant(NO_KEY, 1, 110 * MS);
	expect_grant(KEY("b"), 1, 0);
	expect_grant(KEY("b"), 1, 10 * MS);
}
END_TEST

/* What is stored is worth the same time, though the key was not used since. */
START_TEST(a_rate_for_what_is_stored)
{
	begin_one(&usual);
	expect_grant(KEY("a"), 1, 0);
	now += 600 * MS; /* half a second is stored */
	limiters_set_rate(g->ls, limiter(), 100 * ONE);
	ck_assert_double_eq_tol(shown_limiter().stored, 60, 1e-6);
	now += 200 * MS;
	ck_assert_double_eq_tol(shown_limiter().stored, 80, 1e-6);
	expect_grant(KEY("a"), 70, 0);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("a"), 1, 10 * MS);
}
END_TEST

START_TEST(every_key_owes)
{
	begin_one(&narrow);
	expect_grant(KEY("a"), 1, 0);
	expect_grant(KEY("b"), 2, 0);
	ck_assert_int_eq(
	    acquire(KEY("c"), 1, RATELIMITER_MAX_WAIT_US), LIMITERS_FULL);
	ck_assert_int_eq(wait_us, 0);
	expect_grant(KEY("b"), 1, 200 * MS); /* who is there goes on */
	expect_grant(NO_KEY, 1, 0);
	now += 99 * MS;
	ck_assert_int_eq(acquire(KEY("c"), 1, 0), LIMITERS_FULL);
	now += 1 * MS;
	expect_grant(KEY("c"), 1, 0);
	ck_assert_uint_eq(limiter_counted().overloaded, 2);
	ck_assert_uint_eq(limiter_counted().evictions, 1);
	ck_assert_uint_eq(shown_limiter().keys, 2);
	expect_grant(KEY("b"), 1, 200 * MS);
	now += SECOND;
	expect_grant(KEY("a"), 1, 0); /* instead of c, that was used first */
	expect_grant(KEY("b"), 1, 0);
	ck_assert_uint_eq(limiter_counted().evictions, 2);
}
END_TEST

/* One that was forgotten has stored nothing. */
START_TEST(forgotten_and_fresh)
{
	begin_one(&narrow);
	expect_grant(KEY("a"), 1, 0);
	now += 10 * SECOND;
	expect_grant(KEY("b"), 1, 0);
	expect_grant(KEY("c"), 1, 0);
	now += SECOND;
	expect_grant(KEY("a"), 1, 0);
	expect_refusal(KEY("a"), 0, 100 * MS);
}
END_TEST

/* With its longest name and its longest key. */
START_TEST(a_long_key)
{
	char bytes[REGISTRY_KEY_MAX];
	const struct limiters_key whole = {bytes, sizeof(bytes)};
	const struct limiters_key less = {bytes, sizeof(bytes) - 1};

	memset(bytes, 'k', sizeof(bytes));
	begin_one(&usual);
	expect_grant(whole, 1, 0);
	expect_grant(less, 2, 0);
	expect_grant(whole, 1, 100 * MS);
	expect_grant(less, 1, 200 * MS);
}
END_TEST

START_TEST(many_limiters)
{
	begin_one(&(struct shape){
	    .limiters = "\"a\":{},\"b\":{\"permits_per_second\":1},\"mail\":{}",
	});
	expect_grant(NO_KEY, 1, 0);
	ck_assert_int_eq(
	    limiters_acquire(g->ls, config_limiter(g->config, "b", 1), NO_KEY,
		1, 0, now, &wait_us),
	    LIMITERS_GRANTED);
	ck_assert_int_eq(
	    limiters_acquire(g->ls, config_limiter(g->config, "b", 1), NO_KEY,
		1, 0, now, &wait_us),
	    LIMITERS_REFUSED);
	ck_assert_int_eq(wait_us, SECOND);
	expect_grant(NO_KEY, 1, 100 * MS);
}
END_TEST

START_TEST(errors_of_each_key)
{
	begin_one(&usual);
	for (int i = 0; i < 3; i++) {
		expect_delay(KEY("a"), 0);
		expect_delay(NO_KEY, 0);
	}
	expect_delay(KEY("a"), 100 * MS);
	expect_delay(KEY("a"), 300 * MS);
	expect_delay(NO_KEY, 100 * MS);
	expect_delay(KEY("b"), 0);
	expect_delay(KEY(""), 0);
	success(KEY("a"));
	expect_delay(KEY("a"), 0);
	ck_assert_int_eq(shown_control().delay_us, 200 * MS);
	ck_assert_uint_eq(shown_control().burst, 0);
	ck_assert_int_eq(shown_control().owed_us, 300 * MS);
	success(NO_KEY);
	ck_assert_int_eq(shown_control().delay_us, 100 * MS);
	ck_assert_uint_eq(shown_control().burst, 1);
	ck_assert_int_eq(shown_control().owed_us, 0);
	ck_assert_uint_eq(shown_control().keys, 3);
	ck_assert_uint_eq(control_counted().begins, 12);
	ck_assert_uint_eq(control_counted().delays, 3);
	ck_assert_uint_eq(control_counted().successes, 2);
}
END_TEST

START_TEST(success_of_an_unknown_key)
{
	begin_one(&usual);
	success(KEY("a"));
	ck_assert_uint_eq(shown_control().keys, 0);
	ck_assert_uint_eq(control_counted().successes, 1);
	expect_delay(KEY("a"), 0);
	success(KEY("b"));
	ck_assert_uint_eq(shown_control().keys, 1);
}
END_TEST

START_TEST(every_key_holds_a_delay)
{
	int i;

	begin_one(&narrow);
	for (i = 0; i < 3; i++) {
		expect_delay(KEY("a"), 0);
		expect_delay(KEY("b"), 0);
	}
	expect_delay(KEY("a"), 100 * MS);
	expect_delay(KEY("b"), 100 * MS);
	ck_assert_int_eq(error_begin(KEY("c")), LIMITERS_FULL);
	ck_assert_int_eq(wait_us, 0);
	success(KEY("c"));
	success(KEY("a")); /* holds what it holds */
	ck_assert_int_eq(error_begin(KEY("c")), LIMITERS_FULL);
	now += 100 * MS;
	expect_delay(KEY("c"), 0); /* instead of b: a was used since */
	ck_assert_uint_eq(control_counted().evictions, 1);
	ck_assert_uint_eq(control_counted().overloaded, 2);
	expect_delay(KEY("a"), 0);
	expect_delay(KEY("a"), 100 * MS);
	expect_delay(KEY("b"), 0); /* is fresh */
}
END_TEST

/* A queue of an hour for each begin, and how many a year has. */
START_TEST(a_queue_of_a_year)
{
	const int hours = 365 * 24;
	int granted = 0;

	begin_one(&(struct shape){
	    .controls = "\"smtp\":{\"burst\":0,\"min_delay_ms\":3600000,"
			"\"max_delay_ms\":3600000}",
	});
	while (error_begin(KEY("a")) == LIMITERS_GRANTED)
		granted++;
	ck_assert_int_eq(granted, hours);
	ck_assert_int_eq(error_begin(KEY("a")), LIMITERS_TOO_LONG);
	ck_assert_uint_eq(control_counted().begins, (unsigned)hours);
	ck_assert_uint_eq(control_counted().overloaded, 2);
	now += 3600 * SECOND;
	expect_delay(KEY("a"), RATELIMITER_MAX_WAIT_US);
}
END_TEST

START_TEST(a_rule_never_waits)
{
	begin_one(&local);
	expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	expect_local(NO_KEY, 1, LIMITERS_REFUSED);
	ck_assert_int_eq(wait_us, SECOND);
	now += SECOND;
	/* More than is ever stored is not to be had on credit. */
	expect_local(NO_KEY, 65535, LIMITERS_TOO_LONG);
	expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	expect_local(KEY("a"), 1, LIMITERS_GRANTED);
	expect_local(KEY("a"), 1, LIMITERS_REFUSED);
	ck_assert_uint_eq(local_counted().granted, 3);
	ck_assert_uint_eq(local_counted().permits, 3);
	ck_assert_uint_eq(local_counted().refused, 3);
	ck_assert_int_eq(shown_local().rate, ONE);
	ck_assert_int_eq(shown_local().owed_us, SECOND);
}
END_TEST

START_TEST(a_rule_is_warm)
{
	begin_one(&local);
	warm(KEY("a"));
	now += 3 * SECOND;
	warm(KEY("a")); /* once more changes nothing */
	warm(NO_KEY);
	ck_assert_double_eq_tol(shown_local().stored, 3, 1e-6);
	for (int i = 0; i < 4; i++) {
		expect_local(KEY("a"), 1, LIMITERS_GRANTED);
		expect_local(NO_KEY, 1, LIMITERS_GRANTED);
	}
	expect_local(KEY("a"), 1, LIMITERS_REFUSED);
	expect_local(NO_KEY, 1, LIMITERS_REFUSED);
	expect_local(KEY("cold"), 1, LIMITERS_GRANTED);
	expect_local(KEY("cold"), 1, LIMITERS_REFUSED);
	ck_assert_uint_eq(shown_local().keys, 2);
}
END_TEST

/* Warming may not take the place of one that owes, nor is it a failure. */
START_TEST(no_room_to_warm)
{
	begin_one(&local);
	expect_local(KEY("a"), 1, LIMITERS_GRANTED);
	expect_local(KEY("b"), 1, LIMITERS_GRANTED);
	warm(KEY("c"));
	ck_assert_uint_eq(shown_local().keys, 2);
	ck_assert_uint_eq(local_counted().overloaded, 0);
	expect_local(KEY("c"), 1, LIMITERS_FULL);
	ck_assert_uint_eq(local_counted().overloaded, 1);
	now += SECOND;
	warm(KEY("c"));
	ck_assert_uint_eq(shown_local().keys, 2);
	ck_assert_uint_eq(local_counted().evictions, 1);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("limiters");
	TCase *tc = tcase_create("limiters");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, as_a_ratelimiter);
	tcase_add_test(tc, stores_from_the_start);
	tcase_add_test(tc, each_key_for_itself);
	tcase_add_test(tc, a_key_begins_with_nothing);
	tcase_add_test(tc, too_long_to_wait);
	tcase_add_test(tc, over_a_year_is_owed);
	tcase_add_test(tc, a_rate_for_all_keys);
	tcase_add_test(tc, a_rate_for_what_is_stored);
	tcase_add_test(tc, every_key_owes);
	tcase_add_test(tc, forgotten_and_fresh);
	tcase_add_test(tc, a_long_key);
	tcase_add_test(tc, many_limiters);
	tcase_add_test(tc, errors_of_each_key);
	tcase_add_test(tc, success_of_an_unknown_key);
	tcase_add_test(tc, every_key_holds_a_delay);
	tcase_add_test(tc, a_queue_of_a_year);
	tcase_add_test(tc, a_rule_never_waits);
	tcase_add_test(tc, a_rule_is_warm);
	tcase_add_test(tc, no_room_to_warm);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
