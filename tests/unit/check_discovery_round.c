/*
 * One round, seen through discovery: bad and equal targets, missing addresses,
 * families, caps, and being freed at any time.
 */
#include "daemon/discovery_round.h"

#include <string.h>

#include "tests/unit/discovery_fixture.h"

/* More servers than a snapshot holds, by TCP: the oldest stay. */
START_TEST(very_many_servers)
{
	static char names[100][16];

	zone.hosts[0] = (struct host){.name = "*", .v4 = {"192.0.2.1"}};
	for (unsigned i = 0; i < 100; i++) {
		snprintf(names[i], sizeof names[i], "s-%u.a", 99 - i);
		zone.srvs[i] = (struct srv){names[i], 1};
	}
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, MEMBERS_MAX);
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		expect_member(i, i, 1);
	ck_assert_uint_eq(zone.srv_asked, 1);
	ck_assert_uint_eq(zone.a_asked, 100);
}
END_TEST

START_TEST(bad_targets_are_counted)
{
	static const char *const bad[] = {"x-1.a.test", "s-01.a.test",
	    "s-.a.test", "s-18446744073709551616.a.test", "s-1x.a.test",
	    "a.s-1.test", "s-1 .a.test"};
	size_t n = 2, i;

	two_servers();
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		zone.srvs[n++] = (struct srv){bad[i], 1};
	zone.srvs[n++] = (struct srv){"s-5.a.test", 0};
	zone.srvs[n] = (struct srv){NULL, 0};
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 2);
	ck_assert_uint_eq(discovery_counters(d)->bad_targets, 8);
	ck_assert_uint_eq(zone.a_asked, 2);
}
END_TEST

START_TEST(equal_targets_merge)
{
	two_servers();
	zone.srvs[2] = (struct srv){"s-5.A.TEST", 29292};
	zone.srvs[3] = (struct srv){"s-5.a.test", 29999};
	zone.srvs[4] = (struct srv){"s-5.c.test", 30000};
	zone.srvs[5] = (struct srv){NULL, 0};
	zone.hosts[2] =
	    (struct host){.name = "s-5.c.test", .v4 = {"192.0.2.6"}};
	start();
	run_rounds(1);
	/* Each host is asked for once. */
	ck_assert_uint_eq(zone.a_asked, 3);
	ck_assert_uint_eq(got->count, 2);
	expect_member(0, 5, 3);
	expect_addr(0, 0, "192.0.2.5", 29292);
	expect_addr(0, 1, "192.0.2.5", 29999);
	expect_addr(0, 2, "192.0.2.6", 30000);
}
END_TEST

START_TEST(families_alternate_within_the_cap)
{
	zone.srvs[0] = (struct srv){"s-1.a", 7};
	zone.hosts[0] = (struct host){
	    .name = "s-1.a",
	    .v4 = {"192.0.2.12", "192.0.2.11", "192.0.2.19", "192.0.2.18",
		"192.0.2.17", "192.0.2.16", "192.0.2.15", "192.0.2.14",
		"192.0.2.13", "192.0.2.11"},
	    .v6 = {"2001:db8::2", "2001:db8::1"},
	};
	start();
	run_rounds(1);
	expect_member(0, 1, MEMBERS_MAX_ADDRS);
	expect_addr(0, 0, "192.0.2.11", 7);
	expect_addr(0, 1, "2001:db8::1", 7);
	expect_addr(0, 2, "192.0.2.12", 7);
	expect_addr(0, 3, "2001:db8::2", 7);
	expect_addr(0, 4, "192.0.2.13", 7);
	expect_addr(0, 7, "192.0.2.16", 7);
}
END_TEST

/* ------------------------------------------------------------- aliases */

/* A target ought not to be an alias; it is resolved all the same. */
START_TEST(target_is_an_alias)
{
	int64_t began = loop_now();

	two_servers();
	zone.hosts[0] = (struct host){.name = "s-5.a.test", .alias = "h.test"};
	zone.hosts[2] = (struct host){.name = "h.test", .v4 = {"192.0.2.55"}};
	zone.host_ttl = 77;
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 2);
	expect_addr(0, 0, "192.0.2.55", 29292);
	expect_due(began, 77000, 85000);
	ck_assert_uint_eq(zone.a_asked, 3);
}
END_TEST

/* ---------------------------------------------------------------- glue */

static void
glued_servers(void)
{
	two_servers();
	zone.glue[0] = (struct glue){"S-5.a.TEST", "192.0.2.51", 40};
	zone.glue[1] = (struct glue){"s-9.b.test", "2001:db8::91", 30};
	zone.glue[2] = (struct glue){"s-9.b.test", "192.0.2.91", 50};
	zone.glue[3] = (struct glue){"s-9.b.test", "192.0.2.90", 60};
}

/* What came along is not asked for; its TTL counts; the rest is asked for. */
START_TEST(glue_replaces_lookups)
{
	int64_t began = loop_now();

	glued_servers();
	zone.hosts[0].v6[0] = "2001:db8::5";
	start();
	run_rounds(1);
	expect_member(0, 5, 2);
	expect_addr(0, 0, "192.0.2.51", 29292);
	expect_addr(0, 1, "2001:db8::5", 29292);
	expect_member(1, 9, 3);
	expect_addr(1, 0, "192.0.2.90", 29293);
	expect_addr(1, 1, "2001:db8::91", 29293);
	expect_addr(1, 2, "192.0.2.91", 29293);
	ck_assert_uint_eq(zone.a_asked, 0);
	ck_assert_uint_eq(zone.aaaa_asked, 1); /* of s-5 alone */
	expect_due(began, 30000, 33000);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 0);
}
END_TEST

/* A round of one question. */
START_TEST(glue_of_everything)
{
	glued_servers();
	zone.glue[4] = (struct glue){"s-5.a.test", "2001:db8::51", 60};
	start();
	run_rounds(1);
	ck_assert_uint_eq(zone.asked, 1);
	ck_assert_uint_eq(got->count, 2);
	expect_member(0, 5, 2);
	expect_member(1, 9, 3);
}
END_TEST

/* 0 for other names, 1 AD is required, 2 of a truncated message */
START_TEST(glue_that_is_not_taken)
{
	glued_servers();
	for (size_t i = 0; _i == 0 && i < 4; i++)
		zone.glue[i].owner = i % 2 == 0 ? "s-7.a.test" : "a.test";
	tenant.dns.require_ad = _i == 1;
	zone.flags = _i == 1 ? DNSREPLY_AD : 0;
	zone.truncate_glued = _i == 2;
	start();
	run_rounds(1);
	ck_assert_uint_eq(zone.a_asked, 2);
	ck_assert_uint_ge(zone.aaaa_asked, 2);
	expect_addr(0, 0, "192.0.2.5", 29292);
	expect_addr(1, 0, "192.0.2.9", 29293);
}
END_TEST

/* A target that is not used has no addresses either, whatever came along. */
START_TEST(glue_of_bad_targets)
{
	two_servers();
	zone.srvs[0] = (struct srv){"x-9.b.test", 29293};
	zone.srvs[2] = (struct srv){"s-5.a.test", 0};
	zone.srvs[3] = (struct srv){NULL, 0};
	zone.glue[0] = (struct glue){"x-9.b.test", "192.0.2.91", 1};
	zone.glue[1] = (struct glue){"s-5.a.test", "192.0.2.51", 40};
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 1);
	expect_member(0, 5, 1);
	expect_addr(0, 0, "192.0.2.51", 29292);
	ck_assert_int_ge(discovery_next(d), loop_now() + 39000 * MS);
	ck_assert_uint_eq(discovery_counters(d)->bad_targets, 2);
}
END_TEST

/* --------------------------------------------------------------- bounds */

static void
many_servers(unsigned count)
{
	static char names[140][16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "s-%u.a", i);
		zone.srvs[i] = (struct srv){names[i], 1};
	}
}

/* No more than 128 targets are looked at: 257 questions, one again by TCP. */
START_TEST(a_round_is_bounded)
{
	zone.hosts[0] = (struct host){
	    .name = "*", .v4 = {"192.0.2.1"}, .v6 = {"2001:db8::1"}};
	many_servers(140);
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, MEMBERS_MAX);
	ck_assert_uint_eq(
	    discovery_dns(d)->queries, 2 + 2 * (uint64_t)DNS_MAX_RECORDS);
}
END_TEST

/* And when each of those leads to eight others, the allowance ends it. */
START_TEST(a_hostile_round_is_bounded)
{
	zone.hosts[0] = (struct host){.name = "*", .alias = "+"};
	many_servers(128);
	start();
	run_rounds(1);
	ck_assert_uint_eq(discovery_dns(d)->queries, DISCOVERY_MAX_SENT);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_str_eq(discovery_error(d),
	    "no SRV target has an address: A s-0.a: CNAME records without an "
	    "end");
	/* The next one has its own. */
	zone.hosts[0] = (struct host){.name = "*", .v4 = {"192.0.2.1"}};
	run_rounds(2);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
}
END_TEST

/* A new server without addresses is dropped, a known one keeps its last. */
START_TEST(one_target_without_addresses)
{
	two_servers();
	zone.srvs[2] = (struct srv){"s-7.none.test", 1};
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 2);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 1);
	ck_assert_str_eq(discovery_error(d), "");
	/* NXDOMAIN is an answer that holds for the TTL. */
	ck_assert_int_ge(discovery_next(d), loop_now() + 299000 * MS);

	zone.hosts[0].v4[0] = NULL;
	zone.hosts[1].v4[0] = "192.0.2.99";
	discovery_force(d);
	run_rounds(2);
	ck_assert_int_eq(calls, 2);
	ck_assert_uint_eq(got->count, 2);
	expect_member(0, 5, 1);
	expect_addr(0, 0, "192.0.2.5", 29292);
	expect_addr(1, 0, "192.0.2.99", 29293);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 3);
}
END_TEST

/* A target that may resolve the next time is not left for a whole TTL. */
START_TEST(address_failure_is_retried_soon)
{
	int64_t began;

	two_servers();
	zone.hosts[0].rcode4 = 2;
	start();
	began = loop_now();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 1);
	expect_due(began, 20, 22);
	run_rounds(2);
	ck_assert_int_le(discovery_next(d), loop_now() + 44 * MS);
	zone.hosts[0].rcode4 = 0;
	run_rounds(3);
	ck_assert_uint_eq(got->count, 2);
	ck_assert_int_ge(discovery_next(d), loop_now() + 299000 * MS);
	ck_assert_uint_eq(discovery_counters(d)->failures, 0);
}
END_TEST

/* 0 no such record, 1 SERVFAIL, 2 silence: IPv4 alone is enough. */
START_TEST(one_family_is_enough)
{
	two_servers();
	zone.hosts[1].v6[0] = NULL;
	zone.hosts[1].rcode6 = _i == 0 ? 0 : _i == 1 ? 2 : 99;
	tenant.dns.timeout_ms = 50;
	start();
	run_rounds(1);
	ck_assert_uint_eq(got->count, 2);
	expect_member(1, 9, 1);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 0);
	ck_assert_int_ge(discovery_next(d), loop_now() + 299000 * MS);
}
END_TEST

/* Nor does a failure of one family take known addresses away. */
START_TEST(failing_family_is_kept)
{
	two_servers();
	start();
	run_rounds(1);
	expect_member(1, 9, 2);
	zone.hosts[1].rcode6 = 2;
	discovery_force(d);
	run_rounds(2);
	ck_assert_int_eq(calls, 1);
	/* That there is none is another matter. */
	zone.hosts[1].rcode6 = 0;
	zone.hosts[1].v6[0] = NULL;
	discovery_force(d);
	run_rounds(3);
	ck_assert_int_eq(calls, 2);
	expect_member(1, 9, 1);
}
END_TEST

START_TEST(no_target_has_an_address)
{
	two_servers();
	zone.hosts[0].name = NULL;
	start();
	run_rounds(1);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_UNAVAILABLE);
	ck_assert_str_eq(discovery_error(d), "no SRV target has an address");
	ck_assert_uint_eq(discovery_counters(d)->failures, 1);
	ck_assert_uint_eq(discovery_counters(d)->missing_addresses, 2);
	two_servers();
	run_rounds(2);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	/* And with members known they stay, however often. */
	zone.hosts[0].name = NULL;
	discovery_force(d);
	run_rounds(4);
	ck_assert_int_eq(discovery_state(d), DISCOVERY_READY);
	ck_assert_int_eq(calls, 1);
}
END_TEST

/* At every stage of a round. */
START_TEST(freed_at_work)
{
	for (int turns = 0; turns < 40; turns++) {
		two_servers();
		start();
		for (int i = 0; i < turns; i++)
			loop_turn(loop);
		discovery_free(d);
		d = NULL;
		calls = 0;
		for (int i = 0; i < 10; i++)
			loop_turn(loop);
		ck_assert_int_eq(calls, 0);
	}
	discovery_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("discovery_round");
	TCase *tc = tcase_create("discovery_round");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, very_many_servers);
	tcase_add_test(tc, bad_targets_are_counted);
	tcase_add_test(tc, equal_targets_merge);
	tcase_add_test(tc, families_alternate_within_the_cap);
	tcase_add_test(tc, target_is_an_alias);
	tcase_add_test(tc, glue_replaces_lookups);
	tcase_add_test(tc, glue_of_everything);
	tcase_add_loop_test(tc, glue_that_is_not_taken, 0, 3);
	tcase_add_test(tc, glue_of_bad_targets);
	tcase_add_test(tc, a_round_is_bounded);
	tcase_add_test(tc, a_hostile_round_is_bounded);
	tcase_add_test(tc, one_target_without_addresses);
	tcase_add_test(tc, address_failure_is_retried_soon);
	tcase_add_loop_test(tc, one_family_is_enough, 0, 3);
	tcase_add_test(tc, failing_family_is_kept);
	tcase_add_test(tc, no_target_has_an_address);
	tcase_add_test(tc, freed_at_work);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
