/*
 * Discoveries that begin with what another one has found, and those that are
 * stopped: what a reload asks of them.
 */
#include "daemon/discovery.h"

#include <string.h>

#include "tests/unit/discovery_fixture.h"

/* What another discovery finds in the zone as it is. */
static struct members *
found_by_another(void)
{
	struct members *members;

	start();
	run_rounds(1);
	ck_assert_int_eq(calls, 1);
	discovery_free(d);
	d = NULL;
	calls = 0;
	members = got;
	got = NULL;
	return members;
}

/* Begins with the two servers of the zone. */
static void
start_known(void)
{
	struct members *members;

	two_servers();
	members = found_by_another();
	start();
	discovery_known(d, members);
	ck_assert_uint_eq(members->refs, 2);
	members_unref(members);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 0);
}

START_TEST(known_ones_are_confirmed)
{
	int64_t began = loop_now();

	start_known();
	ck_assert(discovery_next(d) == POLICY_NEVER); /* a round runs */
	run_rounds(1);
	ck_assert_int_eq(calls, 0);
	ck_assert_uint_eq(discovery_counters(d)->changes, 0);
	ck_assert_uint_eq(discovery_counters(d)->failures, 0);
	ck_assert_str_eq(discovery_error(d), "");
	expect_due(began, 300000, 330000);
}
END_TEST

START_TEST(others_are_found)
{
	start_known();
	zone.srvs[0] = zone.srvs[1];
	zone.srvs[1].target = NULL;
	run_rounds(1);
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(discovery_counters(d)->changes, 1);
	ck_assert_uint_eq(got->count, 1);
	expect_member(0, 5, 1);
}
END_TEST

/* 0 SERVFAIL, 1 REFUSED; each pause is at least twice the one before. */
START_TEST(a_failing_round_serves_them_stale)
{
	int64_t began = loop_now(), failing;

	tenant.dns.forced_min_ms = 100;
	start_known();
	zone.rcode = _i == 0 ? 2 : 5;
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_str_ne(discovery_error(d), "");
	failing = discovery_failing_since(d);
	ck_assert_int_ge(failing, began);
	expect_due(failing, 100, 110);
	discovery_force(d);
	ck_assert_uint_eq(discovery_counters(d)->forced, 0);
	run_rounds(2);
	expect_due(failing + 100 * MS, 200, 220);
	ck_assert_int_eq(discovery_failing_since(d), failing);
	ck_assert_uint_eq(discovery_counters(d)->failures, 2);
	zone.rcode = 0;
	run_rounds(3);
	ck_assert_int_eq(discovery_failing_since(d), 0);
	ck_assert_uint_eq(discovery_counters(d)->changes, 0);
	ck_assert_int_eq(calls, 0);
}
END_TEST

/* 0 NXDOMAIN, 1 no record: believed when it is said twice. */
START_TEST(empty_must_be_confirmed)
{
	start_known();
	zone.rcode = _i == 0 ? 3 : 0;
	zone.srvs[0].target = NULL;
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_uint_eq(discovery_counters(d)->failures, 1);
	ck_assert_int_eq(calls, 0);
	run_rounds(2);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_int_eq(calls, 1);
	ck_assert_uint_eq(got->count, 0);
}
END_TEST

/* 0 a family's lookup fails: it keeps its addresses; 1 both do. */
START_TEST(a_partial_round_keeps_known_addresses)
{
	start_known();
	zone.hosts[1].rcode6 = 2;
	zone.hosts[1].rcode4 = _i == 0 ? 0 : 2;
	run_rounds(1);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, _i);
	ck_assert_uint_eq(discovery_counters(d)->changes, 0);
	ck_assert_int_eq(calls, 0);
}
END_TEST

static struct members_target targets[2] = {
    {.server_id = 3, .addr_count = 1, .addrs = {{.family = 4}}},
    {.server_id = 7, .addr_count = 1, .addrs = {{.family = 4}}},
};

/* 0 the same servers: nothing to report; 1 others. */
START_TEST(static_servers)
{
	struct members *members =
	    members_build(targets, 2 - (size_t)_i, NULL, NULL);

	tenant.servers = targets;
	tenant.server_count = 2;
	start();
	discovery_known(d, members);
	for (int i = 0; i < 20; i++)
		loop_turn(loop);
	ck_assert_int_eq(calls, _i);
	ck_assert_uint_eq(discovery_counters(d)->changes, _i);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_STATIC);
	ck_assert_uint_eq(members->refs, 1);
	members_unref(members);
}
END_TEST

static void
ignore(void *arg, struct members *members)
{
	(void)arg;
	(void)members;
}

/* Another discovery is the clock: so many rounds would have been. */
static void
await_rounds_of_another(uint64_t n)
{
	struct discovery *other =
	    discovery_new(loop, pool, &tenant, ignore, NULL);

	ck_assert_ptr_nonnull(other);
	while (discovery_counters(other)->refreshes < n)
		step();
	discovery_free(other);
}

/* 0 between rounds, 1 while a retry is due, 2 while a round runs. */
START_TEST(stopped)
{
	const uint64_t rounds = _i == 2 ? 2 : 1;

	two_servers();
	zone.ttl = 0; /* a refresh is due in 20 ms */
	start();
	run_rounds(1);
	zone.rcode = _i == 1 ? 2 : 0;
	if (_i == 1) {
		discovery_free(d);
		calls = 0;
		start();
		run_rounds(1);
	}
	while (discovery_counters(d)->refreshes < rounds)
		step();
	discovery_stop(d);
	ck_assert(discovery_next(d) == POLICY_NEVER);
	zone.rcode = 0;
	zone.srvs[1].target = NULL;
	calls = 0;
	discovery_force(d);
	await_rounds_of_another(4);
	discovery_force(d);
	await_rounds_of_another(4);
	ck_assert_uint_eq(discovery_counters(d)->refreshes, rounds);
	ck_assert_uint_eq(discovery_counters(d)->forced, 0);
	ck_assert(discovery_next(d) == POLICY_NEVER);
	ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(discovery_state(d),
	    _i == 1 ? DISCOVERY_UNAVAILABLE : DISCOVERY_READY);
}
END_TEST

/* Other nameservers, which end the pause of a retry, do not begin a round. */
START_TEST(stopped_while_it_looks_at_resolv_conf)
{
	char dir[] = "/tmp/check_discovery_known.XXXXXX", path[64];
	struct discovery *other;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/resolv.conf", dir);
	write_resolv_conf(path, 1); /* nobody is there */
	two_servers();
	tenant.dns.nameserver_count = 0;
	tenant.dns.forced_min_ms = 30000;
	d = discovery_new_with(loop, pool, &tenant, path, on_members, &tenant);
	run_rounds(1);
	other = discovery_new_with(loop, pool, &tenant, path, ignore, NULL);
	while (discovery_state(other) != DISCOVERY_UNAVAILABLE)
		step();
	discovery_stop(d);
	tenant.dns.forced_min_ms = 0;
	write_resolv_conf(path, fakedns_endpoint(server).port);
	while (discovery_state(other) != DISCOVERY_READY)
		step();
	ck_assert_uint_eq(discovery_counters(d)->refreshes, 1);
	discovery_free(other);
	unlink(path);
	rmdir(dir);
}
END_TEST

static void
stop_in_report(void *arg, struct members *members)
{
	on_members(arg, members);
	discovery_stop(d);
}

START_TEST(stopped_in_the_report)
{
	two_servers();
	zone.ttl = 0;
	d = discovery_new(loop, pool, &tenant, stop_in_report, &tenant);
	while (calls == 0)
		step();
	ck_assert(discovery_next(d) == POLICY_NEVER);
	await_rounds_of_another(4);
	ck_assert_uint_eq(discovery_counters(d)->refreshes, 1);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
}
END_TEST

/* They have no round to stop, and are told of all the same. */
START_TEST(stopped_static_servers)
{
	tenant.servers = targets;
	tenant.server_count = 2;
	start();
	discovery_stop(d);
	while (calls == 0)
		step();
	ck_assert_uint_eq(got->count, 2);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("discovery_known");
	TCase *tc = tcase_create("discovery_known");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, known_ones_are_confirmed);
	tcase_add_test(tc, others_are_found);
	tcase_add_loop_test(tc, a_failing_round_serves_them_stale, 0, 2);
	tcase_add_loop_test(tc, empty_must_be_confirmed, 0, 2);
	tcase_add_loop_test(tc, a_partial_round_keeps_known_addresses, 0, 2);
	tcase_add_loop_test(tc, static_servers, 0, 2);
	tcase_add_loop_test(tc, stopped, 0, 3);
	tcase_add_test(tc, stopped_while_it_looks_at_resolv_conf);
	tcase_add_test(tc, stopped_in_the_report);
	tcase_add_test(tc, stopped_static_servers);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
