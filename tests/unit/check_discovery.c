/*
 * When discovery asks and what it believes: refresh by TTL, stale service,
 * back-off, confirmation of an empty answer, forced rounds.
 */
#include "daemon/discovery.h"

#include <string.h>

#include "tests/unit/discovery_fixture.h"

/* ---------------------------------------------------------- first answer */

START_TEST(first_discovery)
{
	two_servers();
	start();
	ck_assert_int_eq(discovery_state(d), DISCOVERY_RUNNING);
	ck_assert(discovery_next(d) == POLICY_NEVER);
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(got->count, 2);
	expect_member(0, 5, 1);
	expect_addr(0, 0, "192.0.2.5", 29292);
	expect_member(1, 9, 2);
	expect_addr(1, 0, "192.0.2.9", 29293);
	expect_addr(1, 1, "2001:db8::9", 29293);
	ck_assert_str_eq(discovery_error(d), "");
	ck_assert_uint_eq(discovery_counters(d)->changes, 1);
	ck_assert_uint_eq(discovery_counters(d)->failures, 0);
	ck_assert_uint_eq(discovery_counters(d)->bad_targets, 0);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 0);
}
END_TEST

START_TEST(static_servers)
{
	struct members_target targets[2] = {
	    {.server_id = 7, .addr_count = 1, .addrs = {{.family = 4}}},
	    {.server_id = 3, .addr_count = 1, .addrs = {{.family = 4}}},
	};

	tenant.servers = targets;
	tenant.server_count = 2;
	start();
	ck_assert_int_eq(discovery_state(d), DISCOVERY_STATIC);
	ck_assert(discovery_next(d) == POLICY_NEVER);
	while (calls == 0)
		step();
	expect_member(0, 3, 1);
	expect_member(1, 7, 1);
	discovery_force(d);
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_STATIC);
	ck_assert_uint_eq(discovery_counters(d)->refreshes, 0);
	ck_assert_uint_eq(zone.srv_asked, 0);
}
END_TEST

/* Freed before the deferred report: no report. */
START_TEST(static_servers_freed_early)
{
	struct members_target target = {
	    .server_id = 7, .addr_count = 1, .addrs = {{.family = 4}}};

	tenant.servers = &target;
	tenant.server_count = 1;
	start();
	discovery_free(d);
	d = NULL;
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_int_eq(calls, 0);
}
END_TEST

/* ----------------------------------------------------------------- pace */

START_TEST(refresh_follows_the_least_ttl)
{
	int64_t began = loop_now();

	two_servers();
	zone.ttl = 100;
	zone.host_ttl = 50;
	start();
	run_rounds(1);
	expect_due(began, 50000, 55000);
}
END_TEST

START_TEST(refresh_is_capped)
{
	int64_t began = loop_now();

	two_servers();
	zone.ttl = zone.host_ttl = 86400;
	tenant.dns.refresh_ms = 200000;
	start();
	run_rounds(1);
	expect_due(began, 200000, 220000);
}
END_TEST

START_TEST(refresh_has_a_least_pause)
{
	int64_t began = loop_now();

	two_servers();
	zone.ttl = 0;
	tenant.dns.forced_min_ms = 3000;
	start();
	run_rounds(1);
	expect_due(began, 3000, 3300);
}
END_TEST

/* Over many draws the spread is used, and within its tenth. */
START_TEST(refresh_is_spread)
{
	int64_t least = INT64_MAX, most = 0, wait;

	two_servers();
	tenant.dns.refresh_ms = 100000;
	for (int i = 0; i < 40; i++) {
		start();
		run_rounds(1);
		wait = discovery_next(d) - loop_now();
		if (wait < least)
			least = wait;
		if (wait > most)
			most = wait;
		discovery_free(d);
		d = NULL;
		calls = 0;
	}
	ck_assert_int_gt(most - least, 3000 * MS);
	ck_assert_int_le(most, 110000 * MS);
}
END_TEST

/* A TTL of one second, waited for: the new servers come by themselves. */
START_TEST(refresh_by_ttl)
{
	int64_t began = loop_now();

	two_servers();
	zone.ttl = 1;
	start();
	run_rounds(1);
	zone.srvs[1] = (struct srv){NULL, 0};
	while (calls < 2)
		step();
	ck_assert_int_ge(loop_now() - began, 1000 * MS);
	ck_assert_uint_eq(got->count, 1);
	expect_member(0, 9, 2);
	ck_assert_uint_eq(discovery_counters(d)->refreshes, 2);
}
END_TEST

START_TEST(equal_answers_are_not_reported)
{
	two_servers();
	tenant.dns.refresh_ms = 5;
	start();
	run_rounds(1);
	/* Another order is no other membership. */
	zone.srvs[0] = (struct srv){"s-5.A.test", 29292};
	zone.srvs[1] = (struct srv){"s-9.b.test", 29293};
	while (discovery_counters(d)->refreshes < 5)
		step();
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(discovery_counters(d)->changes, 1);
}
END_TEST

/* ------------------------------------------------------------- failures */

START_TEST(failing_refresh_serves_stale)
{
	two_servers();
	start();
	run_rounds(1);
	zone.rcode = 2;
	discovery_force(d);
	run_rounds(2);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(discovery_counters(d)->failures, 1);
	expect_fault("SERVFAIL");
	run_rounds(4);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_uint_eq(discovery_counters(d)->failures, 3);
	zone.rcode = 0;
	run_rounds(5);
	ck_assert_str_eq(discovery_error(d), "");
	ck_assert_int_eq(calls, 1);
	/* Back to the pace of TTLs. */
	expect_due(loop_now() - 1000 * MS, 299000, 330000);
}
END_TEST

/* Each failure doubles the wait, by up to a tenth more; success resets it. */
START_TEST(retries_back_off)
{
	int64_t began = loop_now(), wait = 20;

	zone.rcode = 5;
	start();
	for (uint64_t n = 1; n <= 5; n++) {
		run_rounds(n);
		expect_due(began, wait, wait + wait / 10);
		began = loop_now();
		wait *= 2;
	}
	two_servers();
	zone.rcode = 0;
	run_rounds(6);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	zone.rcode = 5;
	discovery_force(d);
	run_rounds(7);
	expect_due(began, 20, 22);
}
END_TEST

/* A minimum over 30 seconds is the maximum too. */
START_TEST(retries_with_a_long_minimum)
{
	int64_t began = loop_now();

	zone.rcode = 5;
	tenant.dns.forced_min_ms = 60000;
	start();
	run_rounds(1);
	expect_due(began, 60000, 66000);
}
END_TEST

/* Calls force at every turn for some time; returns that in milliseconds. */
static int64_t
storm(int64_t ms)
{
	int64_t began = loop_now();

	while (loop_now() < began + ms * MS) {
		discovery_force(d);
		loop_turn(loop);
	}
	return (loop_now() - began) / MS;
}

/* How many pauses that double from a millisecond begin within so many. */
static uint64_t
doublings(int64_t ms)
{
	uint64_t n = 1;

	for (int64_t pause = 1; pause <= ms; ms -= pause, pause *= 2)
		n++;
	return n;
}

/* Whatever is asked for, a dead DNS is asked at the pace of retries. */
START_TEST(nobody_forces_a_retry)
{
	int64_t ms;

	two_servers();
	tenant.dns.forced_min_ms = 1;
	start();
	run_rounds(1);
	zone.rcode = _i == 0 ? 2 : 3;
	discovery_force(d);
	run_rounds(2);
	zone.asked = 0;
	ms = storm(700);
	ck_assert_uint_ge(zone.asked, 3);
	/* Of one nameserver, two tries a round; of NXDOMAIN in either case. */
	ck_assert_uint_le(zone.asked, 2 * doublings(ms));
	ck_assert_uint_eq(discovery_counters(d)->forced, 1);
	/* A single flight is all there is, so this is the number of rounds. */
	ck_assert_uint_le(discovery_counters(d)->refreshes, 2 + doublings(ms));
}
END_TEST

/* Nor is a DNS that is well, when all it says is what is known. */
START_TEST(wishes_in_vain_back_off)
{
	uint64_t before;
	int64_t ms;

	two_servers();
	tenant.dns.forced_min_ms = 1;
	start();
	run_rounds(1);
	ms = storm(500);
	ck_assert_uint_ge(discovery_counters(d)->forced, 8);
	ck_assert_uint_le(discovery_counters(d)->forced, 6 + doublings(ms));
	/* Until there is something new to be had. */
	zone.srvs[1] = (struct srv){NULL, 0};
	while (calls < 2) {
		discovery_force(d);
		step();
	}
	before = discovery_counters(d)->forced;
	while (discovery_counters(d)->forced < before + 5) {
		discovery_force(d);
		if (discovery_next(d) != POLICY_NEVER)
			ck_assert_int_le(
			    discovery_next(d), loop_now() + 10 * MS);
		step();
	}
}
END_TEST

/* Until the next round is at least 3500 ms away. */
static int64_t
await_long_pause(void)
{
	int64_t due;

	do {
		step();
		due = discovery_next(d);
	} while (due == POLICY_NEVER || due < loop_now() + 3500 * MS);
	return due;
}

/*
 * A retry that is far away does not wait for its time when resolv.conf has
 * become another one; nor do the new nameservers pay for the old ones. Here it
 * is a file in its place, and then a symbolic link.
 */
START_TEST(new_resolv_conf_is_noticed)
{
	char dir[] = "/tmp/check_discovery.XXXXXX", path[64], other[64];
	const uint16_t port = tenant.dns.nameservers[0].port;
	int64_t due;
	uint64_t rounds;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/resolv.conf", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	write_resolv_conf(path, 1); /* nobody is there */
	two_servers();
	tenant.dns.nameserver_count = 0;
	tenant.dns.forced_min_ms = 500;
	d = discovery_new_with(loop, pool, &tenant, path, on_members, &tenant);
	ck_assert_ptr_nonnull(d);
	due = await_long_pause();
	rounds = discovery_counters(d)->refreshes;
	write_resolv_conf(path, 2);
	run_rounds(rounds + 1);
	ck_assert_int_lt(loop_now(), due);
	ck_assert_int_le(discovery_next(d), loop_now() + 550 * MS);

	due = await_long_pause();
	write_resolv_conf(other, port);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("other", path), 0);
	while (calls == 0)
		step();
	ck_assert_int_lt(loop_now(), due);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	unlink(other);
	unlink(path);
	rmdir(dir);
}
END_TEST

START_TEST(unreachable_nameserver)
{
	fakedns_free(server);
	server = NULL;
	start();
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	expect_fault("Connection refused");
	ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(no_name)
{
	static char bad[] = "not a name";

	tenant.dns.name = bad;
	start();
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_str_ne(discovery_error(d), "");
	run_rounds(3);
	ck_assert_uint_eq(discovery_counters(d)->failures, 3);
	ck_assert_uint_eq(zone.srv_asked, 0);
}
END_TEST

/* -------------------------------------------------------- empty answers */

START_TEST(nothing_known_and_nothing_found)
{
	int64_t began = loop_now();

	zone.rcode = 3;
	start();
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_str_eq(discovery_error(d),
	    "SRV " SERVICE ": NXDOMAIN: DNS says that there is no server; "
	    "is dns.name right?");
	expect_due(began, 20, 22);
	ck_assert_int_eq(calls, 0);
	run_rounds(2);
	ck_assert_int_eq(calls, 0);
	two_servers();
	zone.rcode = 0;
	run_rounds(3);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
}
END_TEST

/* 0 NXDOMAIN, 1 no record, 2 the root as target */
START_TEST(empty_must_be_said_twice)
{
#define NO_SERVER "DNS says that there is no server"
	static const char *const texts[] = {
	    ("NXDOMAIN: " NO_SERVER "; is dns.name right?"),
	    ("no such record: " NO_SERVER "; is dns.name right?"),
	    ("no such service: " NO_SERVER)};
	char want[256];

	two_servers();
	start();
	run_rounds(1);
	zone.rcode = _i == 0 ? 3 : 0;
	zone.srvs[0].target = _i == 2 ? "" : NULL;
	zone.srvs[1].target = NULL;
	zone.ttl = 0;
	discovery_force(d);
	run_rounds(2);
	snprintf(want, sizeof want, "SRV %s: %s", SERVICE, texts[_i]);
	ck_assert_str_eq(discovery_error(d), want);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
	/* At the pace of retries, not of the TTL. */
	ck_assert_int_le(discovery_next(d), loop_now() + 22 * MS);
	run_rounds(3);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_int_eq(calls, 2);
	ck_assert_uint_eq(got->count, 0);
	run_rounds(4);
	ck_assert_int_eq(calls, 2);
	ck_assert_uint_eq(discovery_counters(d)->bad_targets, 0);
}
END_TEST

static const struct {
	struct srv srvs[2];
	const char *error;
} unusable[] = {
    {{{"x-9.test", 1}}, "x-9.test: no s-ID label"},
    {{{"s-09.test", 1}, {"x.test", 1}}, "s-09.test: no s-ID label"},
    {{{"s-9.test", 0}}, "s-9.test: port 0"},
    {{{"s 9.test", 1}}, "not a host name"},
    {{{"", 0}, {"x.test", 1}}, "x.test: no s-ID label"},
};

/* Records that are of no use are a mistake, and not the end of the service. */
START_TEST(unusable_is_not_empty)
{
	char want[256];

	two_servers();
	start();
	run_rounds(1);
	memset(zone.srvs, 0, sizeof zone.srvs);
	memcpy(zone.srvs, unusable[_i].srvs, sizeof unusable[_i].srvs);
	discovery_force(d);
	run_rounds(4);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
	snprintf(want, sizeof want, "SRV %s: no usable target: %s", SERVICE,
	    unusable[_i].error);
	ck_assert_str_eq(discovery_error(d), want);
	ck_assert_uint_eq(discovery_counters(d)->failures, 3);
	ck_assert_uint_eq(discovery_counters(d)->bad_targets, _i == 1 ? 6 : 3);
	/* Nor does it confirm what was said once. */
	zone.srvs[0].target = NULL;
	run_rounds(5);
	zone.srvs[0] = unusable[0].srvs[0];
	run_rounds(6);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
}
END_TEST

/* Nor by a cache that says the same answer again: not before its TTL is over,
 * though the retries go on. */
START_TEST(a_cached_answer_confirms_nothing)
{
	int64_t said;

	two_servers();
	start();
	run_rounds(1);
	zone.rcode = 3;
	zone.negative_ttl = 1;
	said = loop_now();
	discovery_force(d);
	run_rounds(3);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
	for (uint64_t n = 4; calls < 2; n++)
		run_rounds(n);
	ck_assert_int_ge(loop_now(), said + 1000 * MS);
	ck_assert_uint_eq(got->count, 0);
}
END_TEST

/* A good answer in between takes the first one back; a failure does not. */
START_TEST(empty_is_forgotten_by_success)
{
	two_servers();
	start();
	run_rounds(1);
	for (uint64_t n = 1; n <= 5; n += 2) {
		zone.rcode = 3;
		discovery_force(d);
		run_rounds(n + 1);
		zone.rcode = 0;
		discovery_force(d);
		run_rounds(n + 2);
	}
	ck_assert_int_eq(calls, 1);
	zone.rcode = 3;
	discovery_force(d);
	run_rounds(8);
	zone.rcode = 2;
	run_rounds(9);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	zone.rcode = 3;
	run_rounds(10);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
}
END_TEST

/* --------------------------------------------------------------- forced */

START_TEST(forced_rounds_are_paced)
{
	int64_t began, last = 0;

	two_servers();
	tenant.dns.forced_min_ms = 30;
	start();
	discovery_force(d); /* the first round serves it */
	ck_assert_uint_eq(discovery_counters(d)->forced, 0);
	began = loop_now();
	run_rounds(1);
	for (uint64_t n = 2; n <= 6; n++) {
		for (int i = 0; i < 50; i++)
			discovery_force(d);
		ck_assert_uint_eq(discovery_counters(d)->forced, n - 1);
		last = discovery_next(d);
		ck_assert_int_le(last, loop_now() + 30 * MS);
		run_rounds(n);
		/* Not one of the 50 is left over. */
		ck_assert_int_ge(discovery_next(d), loop_now() + 299000 * MS);
	}
	ck_assert_int_ge(last - began, 5 * 30 * MS - MS);
	ck_assert_uint_eq(zone.srv_asked, 6);
}
END_TEST

START_TEST(forced_after_a_long_pause)
{
	two_servers();
	tenant.dns.forced_min_ms = 1;
	start();
	run_rounds(1);
	for (int64_t end = loop_now() + 3 * MS; loop_now() < end;)
		loop_turn(loop);
	discovery_force(d);
	ck_assert_int_le(discovery_next(d), loop_now());
	run_rounds(2);
}
END_TEST

START_TEST(forced_rounds_have_jitter)
{
	int64_t least = INT64_MAX, most = 0, wait, began;

	two_servers();
	tenant.dns.forced_min_ms = 1000;
	tenant.dns.jitter_ms = 1000;
	for (int i = 0; i < 40; i++) {
		began = loop_now();
		start();
		run_rounds(1);
		/* The first draw counts; asking often does not hurry it. */
		discovery_force(d);
		wait = discovery_next(d);
		for (int n = 0; n < 50; n++)
			discovery_force(d);
		ck_assert(discovery_next(d) == wait);
		ck_assert_uint_eq(discovery_counters(d)->forced, 1);
		wait = discovery_next(d) - began;
		ck_assert_int_ge(wait, 1000 * MS);
		if (wait < least)
			least = wait;
		if (wait > most)
			most = wait;
		discovery_free(d);
		d = NULL;
		calls = 0;
	}
	ck_assert_int_gt(most - least, 300 * MS);
}
END_TEST

/* A round that is due sooner anyway is not put off. */
START_TEST(force_never_delays)
{
	int64_t next;

	two_servers();
	tenant.dns.refresh_ms = 10;
	tenant.dns.forced_min_ms = 5000;
	start();
	run_rounds(1);
	next = discovery_next(d);
	discovery_force(d);
	ck_assert(discovery_next(d) == next);
	ck_assert_uint_eq(discovery_counters(d)->forced, 0);
}
END_TEST

static void
on_members_free(void *arg, struct members *members)
{
	(void)arg;
	(void)members;
	calls++;
	discovery_free(d);
	d = NULL;
}

START_TEST(freed_in_the_callback)
{
	two_servers();
	d = discovery_new(loop, pool, &tenant, on_members_free, NULL);
	while (calls == 0)
		step();
	ck_assert_ptr_null(d);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("discovery");
	TCase *tc = tcase_create("discovery");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, first_discovery);
	tcase_add_test(tc, static_servers);
	tcase_add_test(tc, static_servers_freed_early);
	tcase_add_test(tc, refresh_follows_the_least_ttl);
	tcase_add_test(tc, refresh_is_capped);
	tcase_add_test(tc, refresh_has_a_least_pause);
	tcase_add_test(tc, refresh_is_spread);
	tcase_add_test(tc, refresh_by_ttl);
	tcase_add_test(tc, equal_answers_are_not_reported);
	tcase_add_test(tc, failing_refresh_serves_stale);
	tcase_add_test(tc, retries_back_off);
	tcase_add_test(tc, retries_with_a_long_minimum);
	tcase_add_loop_test(tc, nobody_forces_a_retry, 0, 2);
	tcase_add_test(tc, wishes_in_vain_back_off);
	tcase_add_test(tc, new_resolv_conf_is_noticed);
	tcase_add_test(tc, unreachable_nameserver);
	tcase_add_test(tc, no_name);
	tcase_add_test(tc, nothing_known_and_nothing_found);
	tcase_add_loop_test(tc, empty_must_be_said_twice, 0, 3);
	tcase_add_loop_test(
	    tc, unusable_is_not_empty, 0, sizeof unusable / sizeof unusable[0]);
	tcase_add_test(tc, a_cached_answer_confirms_nothing);
	tcase_add_test(tc, empty_is_forgotten_by_success);
	tcase_add_test(tc, forced_rounds_are_paced);
	tcase_add_test(tc, forced_after_a_long_pause);
	tcase_add_test(tc, forced_rounds_have_jitter);
	tcase_add_test(tc, force_never_delays);
	tcase_add_test(tc, freed_in_the_callback);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
