/*
 * One question to one nameserver, seen through the resolver: silence, closed
 * ports, forged and broken answers, truncation and TCP that fails.
 */
#include "daemon/io/dnsexchange.h"

#include "tests/unit/dns_fixture.h"

START_TEST(silence_moves_on)
{
	PLAY(0, SILENT);
	options.timeout_ms = 50;
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 1);
}
END_TEST

/* ECONNREFUSED is an answer of its own: the time to wait is never spent. */
START_TEST(closed_port_moves_on)
{
	endpoints[1] = endpoints[0];
	endpoints[0] = closed_port();
	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
	ck_assert_uint_eq(dns_counters(dns)->queries, 2);
}
END_TEST

START_TEST(closed_ports_everywhere)
{
	options.nameserver_count = 1;
	endpoints[0] = closed_port();
	resolve(DNS_UNREACHABLE);
	expect_error("Connection refused", NULL);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
}
END_TEST

/* No route at all: port 0 cannot be sent to. */
START_TEST(unsendable)
{
	options.nameserver_count = 2;
	endpoints[0].port = 0;
	endpoints[1].port = 0;
	resolve(DNS_UNREACHABLE);
	ck_assert_uint_eq(scripts[0].asked + scripts[1].asked, 0);
}
END_TEST

START_TEST(forgeries_are_waited_out)
{
	PLAY(0, FORGED);
	resolve(DNS_OK);
	expect_from(1);
	/* All but the one from elsewhere, which the kernel kept away. */
	ck_assert_uint_eq(dns_counters(dns)->malformed, 8);
	ck_assert_uint_eq(dns_counters(dns)->queries, 1);
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

START_TEST(broken_answers_only)
{
	PLAY(0, BROKEN_RR);
	PLAY(1, BROKEN_RR);
	options.timeout_ms = 30;
	resolve(DNS_BAD);
	expect_error("malformed answer", "malformed answer");
	ck_assert_uint_eq(dns_counters(dns)->malformed, 4);
	ck_assert_uint_eq(dns_counters(dns)->answers, 0);
}
END_TEST

START_TEST(truncated_then_tcp)
{
	PLAY(0, TC_GOOD);
	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(dns_counters(dns)->tcp, 1);
	ck_assert_uint_eq(dns_counters(dns)->queries, 2);
	ck_assert(scripts[0].seen[1].tcp);
}
END_TEST

START_TEST(many_records_over_tcp)
{
	PLAY(0, TC_BIG);
	resolve(DNS_OK);
	ck_assert_uint_eq(last.count, DNS_MAX_RECORDS);
	ck_assert_uint_eq(
	    records[DNS_MAX_RECORDS - 1].addr[3], DNS_MAX_RECORDS - 1);
}
END_TEST

START_TEST(tcp_breaks_off)
{
	PLAY(0, TC_BROKEN);
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(dns_counters(dns)->failures, 1);
}
END_TEST

START_TEST(tcp_faults_are_told)
{
	PLAY(0, TC_BROKEN);
	PLAY(1, TC_WRONG_ID);
	resolve(DNS_REFUSED);
	expect_error("TCP connection failed", "malformed answer");
}
END_TEST

START_TEST(tcp_stalls)
{
	PLAY(0, TC_STALL);
	options.timeout_ms = 100;
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 1);
}
END_TEST

START_TEST(tcp_answers_wrongly)
{
	PLAY(0, TC_WRONG_ID);
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(dns_counters(dns)->malformed, 1);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
}
END_TEST

START_TEST(tcp_refused)
{
	PLAY(0, TC_GOOD);
	fakedns_close_tcp(servers[0]);
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(dns_counters(dns)->failures, 1);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
}
END_TEST

START_TEST(nameserver_over_ipv6)
{
	struct fakedns *six = fakedns_new(loop, 6, on_question, &scripts[1]);

	if (six == NULL)
		return; /* no IPv6 on this host */
	endpoints[0] = fakedns_endpoint(six);
	PLAY(1, TC_GOOD);
	resolve(DNS_OK);
	expect_from(2);
	fakedns_free(six);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dnsexchange");
	TCase *tc = tcase_create("dnsexchange");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, silence_moves_on);
	tcase_add_test(tc, closed_port_moves_on);
	tcase_add_test(tc, closed_ports_everywhere);
	tcase_add_test(tc, unsendable);
	tcase_add_test(tc, forgeries_are_waited_out);
	tcase_add_test(tc, broken_answers_only);
	tcase_add_test(tc, truncated_then_tcp);
	tcase_add_test(tc, many_records_over_tcp);
	tcase_add_test(tc, tcp_breaks_off);
	tcase_add_test(tc, tcp_faults_are_told);
	tcase_add_test(tc, tcp_stalls);
	tcase_add_test(tc, tcp_answers_wrongly);
	tcase_add_test(tc, tcp_refused);
	tcase_add_test(tc, nameserver_over_ipv6);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
