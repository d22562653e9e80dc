/*
 * The stub resolver: which nameserver is asked when, EDNS and AD, its bounds,
 * and being cancelled at any time.
 */
#include "daemon/io/dns.h"

#include <ctype.h>
#include <event2/event.h>
#include <string.h>

#include "tests/unit/dns_fixture.h"

START_TEST(one_question)
{
	const struct seen *seen = &scripts[0].seen[0];

	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(scripts[0].asked, 1);
	ck_assert_uint_eq(scripts[1].asked, 0);
	ck_assert_uint_eq(seen->flags, 0x0100); /* RD alone */
	ck_assert(seen->edns && !seen->tcp);
	ck_assert_uint_eq(dns_counters(dns)->queries, 1);
	ck_assert_uint_eq(dns_counters(dns)->answers, 1);
	ck_assert_uint_eq(dns_counters(dns)->malformed, 0);
}
END_TEST

START_TEST(negative_answers)
{
	PLAY(0, NAME_ERROR, NAME_ERROR, NOTHING);
	resolve(DNS_NXDOMAIN);
	ck_assert_uint_eq(last.count, 0);
	ck_assert_uint_eq(last.ttl, 7);
	resolve(DNS_NODATA);
	ck_assert_uint_eq(last.ttl, 8);
	/* They are answers: nobody else is asked. */
	ck_assert_uint_eq(scripts[1].asked, 0);
	ck_assert_uint_eq(dns_counters(dns)->failures, 0);
}
END_TEST

static bool
small_letters(const struct seen *seen)
{
	return memcmp(seen->question, "\4host\4test", 11) == 0;
}

/* A nameserver that compares names with their case knows none but this. */
START_TEST(no_such_name_in_that_case)
{
	PLAY(0, NAME_ERROR, GOOD);
	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert(small_letters(&scripts[0].seen[1]));
	ck_assert(scripts[0].seen[1].edns);
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

/* One that folds the case, or is silent on EDNS, is heard at last. */
START_TEST(the_second_round_is_plain)
{
	PLAY(0, SERVFAIL, GOOD);
	PLAY(1, SERVFAIL);
	resolve(DNS_OK);
	expect_from(1);
	ck_assert(scripts[0].seen[0].edns && scripts[1].seen[0].edns);
	ck_assert(!scripts[0].seen[1].edns);
	ck_assert(small_letters(&scripts[0].seen[1]));
}
END_TEST

/* Id, letter case and port are new with each try. */
START_TEST(every_try_is_fresh)
{
	unsigned ids = 0, ports = 0, cases = 0;
	const struct seen *seen = scripts[0].seen;

	for (int i = 0; i < 32; i++)
		resolve(DNS_OK);
	for (int i = 1; i < 32; i++) {
		ids += seen[i].id != seen[i - 1].id;
		ports += seen[i].port != seen[i - 1].port;
		cases += memcmp(seen[i].question, seen[i - 1].question,
			     sizeof seen[i].question) != 0;
	}
	ck_assert_uint_gt(ids, 24);
	ck_assert_uint_gt(ports, 24);
	ck_assert_uint_gt(cases, 24);
}
END_TEST

START_TEST(silence_everywhere)
{
	int64_t begin = loop_now();

	PLAY(0, SILENT);
	PLAY(1, SILENT);
	options.timeout_ms = 30;
	resolve(DNS_TIMEOUT);
	expect_error("no answer in 30 ms", "no answer in 30 ms");
	ck_assert_int_ge(loop_now() - begin, 4 * 30 * 1000);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert_uint_eq(scripts[1].asked, 2);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 4);
	ck_assert_uint_eq(dns_counters(dns)->queries, 4);
}
END_TEST

START_TEST(second_round)
{
	PLAY(0, SERVFAIL, GOOD);
	PLAY(1, REFUSED);
	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(dns_counters(dns)->failures, 2);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
}
END_TEST

START_TEST(refused_everywhere)
{
	PLAY(0, REFUSED);
	PLAY(1, SERVFAIL);
	resolve(DNS_REFUSED);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert_uint_eq(scripts[1].asked, 2);
}
END_TEST

START_TEST(without_edns)
{
	PLAY(0, NO_OPT);
	resolve(DNS_OK);
	expect_from(1);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert(scripts[0].seen[0].edns && !scripts[0].seen[1].edns);
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

/* One more try without EDNS, not more; the next server gets EDNS again. */
START_TEST(format_error_anyway)
{
	PLAY(0, FORMERR);
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert(scripts[1].seen[0].edns);
	PLAY(1, FORMERR);
	resolve(DNS_REFUSED);
	/* With EDNS and without, and in the plain round once more. */
	ck_assert_uint_eq(scripts[0].asked, 5);
	ck_assert_uint_eq(scripts[1].asked, 4);
}
END_TEST

START_TEST(ad_required)
{
	PLAY(1, AUTHENTIC);
	options.require_ad = true;
	resolve(DNS_OK);
	expect_from(2);
	ck_assert_uint_eq(scripts[0].seen[0].flags, 0x0120); /* RD, AD */
	ck_assert_uint_eq(dns_counters(dns)->malformed, 1);
	ck_assert_uint_eq(dns_counters(dns)->timeouts, 0);
	PLAY(1, GOOD);
	resolve(DNS_BAD);
}
END_TEST

/* ------------------------------------------------------------- aliases */

static void
expect_question(size_t n, const char *name)
{
	uint8_t wire[256];
	size_t len = dnsreply_name(name, wire);

	for (size_t i = 0; i < len; i++)
		ck_assert_int_eq(
		    tolower(scripts[0].seen[n].question[i]), wire[i]);
}

/* An authoritative server says what it knows: the rest is asked for anew. */
START_TEST(alias_is_followed)
{
	PLAY(0, ALIAS, ALIAS, GOOD);
	resolve(DNS_OK);
	ck_assert_uint_eq(scripts[0].asked, 3);
	expect_question(0, "host.test");
	expect_question(1, "n1.test");
	expect_question(2, "n2.test");
	/* Each step is as hard to forge as the first one. */
	ck_assert(scripts[0].seen[2].edns);
	ck_assert_uint_ne(scripts[0].seen[1].port, scripts[0].seen[2].port);
	/* 49, 48, and 60 of the address. */
	ck_assert_uint_eq(last.count, 1);
	ck_assert_uint_eq(last.ttl, 48);
	ck_assert_uint_eq(records[0].ttl, 48);
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

/* That the last name has no address is an answer, and holds as long as that. */
START_TEST(alias_of_nothing)
{
	PLAY(0, ALIAS, NOTHING, NOTHING);
	resolve(DNS_NODATA);
	ck_assert_uint_eq(last.ttl, 8);
	ck_assert_uint_eq(last.count, 0);
}
END_TEST

/* One that does not answer in the middle of it is replaced by the other. */
START_TEST(alias_with_failover)
{
	PLAY(0, ALIAS, SERVFAIL);
	resolve(DNS_OK);
	ck_assert_uint_eq(last.count, 1);
	ck_assert_uint_eq(last.ttl, 49);
	ck_assert_int_eq(records[0].addr[3], 2);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert_uint_eq(scripts[1].asked, 1);
}
END_TEST

/* Eight records over all answers, not nine. */
START_TEST(alias_chain_is_bounded)
{
	PLAY(0, ALIAS, ALIAS, ALIAS, ALIAS, ALIAS, ALIAS, ALIAS, ALIAS, GOOD);
	resolve(DNS_OK);
	ck_assert_uint_eq(scripts[0].asked, 9);
	scripts[0].asked = 0;
	PLAY(0, ALIAS);
	resolve(DNS_BAD);
	ck_assert_uint_eq(scripts[0].asked, 9);
	scripts[0].asked = 0;
	PLAY(0, ALIAS_2);
	resolve(DNS_BAD);
	ck_assert_uint_eq(scripts[0].asked, 5);
	/* The other server has the same zone: it is not asked. */
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

START_TEST(alias_loop_is_refused)
{
	PLAY(0, ALIAS_LOOP);
	resolve(DNS_BAD);
	ck_assert_uint_eq(scripts[0].asked, 2);
	ck_assert_uint_eq(scripts[1].asked, 0);
}
END_TEST

/* Each of the answers needs the bit. */
START_TEST(alias_with_ad)
{
	options.require_ad = true;
	PLAY(0, ALIAS);
	PLAY(1, ALIAS);
	resolve(DNS_BAD);
	ck_assert_uint_eq(dns_counters(dns)->malformed, 4);
	expect_question(1, "host.test");
}
END_TEST

/* ------------------------------------------------------ what it may cost */

/*
 * The dearest query that there is: every answer needs TCP; a nameserver wants
 * it without EDNS, then has no such name, then eight aliases, then breaks off.
 * It costs what is said, to the last connection.
 */
START_TEST(a_query_is_bounded)
{
	PLAY(0, TC_FORMERR, TC_NAME_ERROR, TC_ALIAS, TC_ALIAS, TC_ALIAS,
	    TC_ALIAS, TC_ALIAS, TC_ALIAS, TC_ALIAS, TC_ALIAS, TC_BROKEN);
	PLAY(1, TC_FORMERR, TC_NAME_ERROR, TC_BROKEN);
	resolve(DNS_REFUSED);
	ck_assert_uint_eq(dns_counters(dns)->queries, DNS_QUERY_COST(2, 2));
	ck_assert_uint_eq(dns_counters(dns)->tcp, DNS_QUERY_COST(2, 2) / 2);
}
END_TEST

START_TEST(allowance)
{
	PLAY(0, REFUSED);
	PLAY(1, REFUSED);
	dns = dns_new(loop, &options);
	for (uint64_t left = 0; left <= 4; left++) {
		uint64_t before = dns_counters(dns)->queries;

		dns_allow(dns, left);
		resolve(left == 0 ? DNS_TIMEOUT : DNS_REFUSED);
		ck_assert_uint_eq(dns_counters(dns)->queries - before, left);
	}
	/* A connection is of it, too. */
	PLAY(0, TC_GOOD);
	PLAY(1, TC_GOOD);
	dns_allow(dns, 1);
	resolve(DNS_REFUSED);
	dns_allow(dns, 2);
	resolve(DNS_OK);
	dns_allow(dns, 0);
	resolve(DNS_TIMEOUT);
}
END_TEST

/* ---------------------------------------------------------- resolv.conf */

START_TEST(resolv_conf_is_read_per_query)
{
	char path[] = "/tmp/check_dns.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	dprintf(fd, "nameserver [127.0.0.1]:%u\n", endpoints[1].port);
	options.nameserver_count = 0;
	options.resolv_conf = path;
	dns = dns_new(loop, &options);
	ck_assert(!dns_changed(dns)); /* from what? */
	resolve(DNS_OK);
	expect_from(2);
	ck_assert(!dns_changed(dns));
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert(dns_changed(dns));
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	dprintf(fd, "#nameserver [127.0.0.1]:%u\nnameserver [127.0.0.1]:%u\n",
	    endpoints[1].port, endpoints[0].port);
	ck_assert(dns_changed(dns));
	resolve(DNS_OK);
	expect_from(1);
	ck_assert(!dns_changed(dns));
	close(fd);
	unlink(path);
	ck_assert(dns_changed(dns));
	/* With nameservers of its own it does not matter. */
	dns_free(dns);
	options.nameserver_count = 1;
	dns = dns_new(loop, &options);
	resolve(DNS_OK);
	ck_assert(!dns_changed(dns));
}
END_TEST

START_TEST(bad_names)
{
	dns = dns_new(loop, &options);
	ck_assert_ptr_null(dns_query_new(dns, "", DNS_A, on_answer, NULL));
	ck_assert_ptr_null(dns_query_new(dns, "a..b", DNS_A, on_answer, NULL));
	ck_assert_ptr_null(dns_query_new(dns, "a b", DNS_A, on_answer, NULL));
}
END_TEST

/* ------------------------------------------------------------ bounds */

static void
answer_held(void)
{
	struct dnsreply *reply = malloc(sizeof *reply);

	for (size_t i = 0; i < held_count; i++) {
		dnsreply_init(reply, held[i].id,
		    held[i].bytes + DNSREPLY_HEADER, held[i].question_len);
		good(&scripts[0], reply);
		fakedns_send(&held[i], reply->bytes, reply->len);
	}
	held_count = 0;
	free(reply);
}

static void
turn_until_held(size_t count)
{
	while (held_count < count)
		event_base_loop(
		    loop_base(loop), EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
	/* One more would be on its way by now. */
	for (int i = 0; i < 100; i++)
		loop_turn(loop);
	ck_assert_uint_eq(held_count, count);
}

START_TEST(concurrency_is_capped)
{
	PLAY(0, HOLD);
	dns = dns_new(loop, &options);
	for (int i = 0; i < 80; i++)
		ck_assert_ptr_nonnull(
		    dns_query_new(dns, "host.test", DNS_A, on_answer, NULL));
	turn_until_held(32);
	answer_held();
	turn_until_held(32);
	ck_assert_int_eq(calls, 32);
	answer_held();
	turn_until_held(16);
	ck_assert_int_eq(calls, 64);
	answer_held();
	while (calls < 80)
		loop_run(loop);
	ck_assert_uint_eq(held_most, 32);
	ck_assert_uint_eq(scripts[0].asked, 80);
}
END_TEST

START_TEST(the_queue_is_capped)
{
	int accepted = 0;

	dns = dns_new(loop, &options);
	while (accepted < 5000 &&
	       dns_query_new(dns, "host.test", DNS_A, on_answer, NULL) != NULL)
		accepted++;
	ck_assert_int_eq(accepted, 1024);
	while (calls < accepted)
		loop_run(loop);
	ck_assert_ptr_nonnull(
	    dns_query_new(dns, "host.test", DNS_A, on_answer, NULL));
}
END_TEST

START_TEST(cancelled_queries_are_silent)
{
	struct dns_query *queries[80];

	PLAY(0, HOLD);
	dns = dns_new(loop, &options);
	for (int i = 0; i < 80; i++)
		queries[i] =
		    dns_query_new(dns, "host.test", DNS_A, on_answer, NULL);
	dns_query_cancel(queries[79]); /* waiting, never begun */
	turn_until_held(32);
	for (int i = 0; i < 32; i++)
		dns_query_cancel(queries[i]); /* running */
	answer_held();                        /* to closed ports */
	turn_until_held(32);                  /* their places are taken */
	for (int i = 32; i < 79; i++)
		dns_query_cancel(queries[i]);
	for (int i = 0; i < 100; i++)
		loop_turn(loop);
	ck_assert_int_eq(calls, 0);
	ck_assert_uint_eq(scripts[0].asked, 64);
}
END_TEST

START_TEST(freed_at_work)
{
	PLAY(0, HOLD, HOLD, TC_STALL);
	dns = dns_new(loop, &options);
	for (int i = 0; i < 40; i++)
		dns_query_new(dns, "host.test", DNS_A, on_answer, NULL);
	while (dns_counters(dns)->tcp < 4)
		event_base_loop(
		    loop_base(loop), EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
	dns_free(dns);
	dns = NULL;
	answer_held();
	for (int i = 0; i < 100; i++)
		loop_turn(loop);
	ck_assert_int_eq(calls, 0);
}
END_TEST

static void
on_answer_free(void *arg, const struct dns_answer *answer)
{
	on_answer(arg, answer);
	dns_free(dns);
	dns = NULL;
}

/* The owner may free the resolver from any kind of last callback. */
START_TEST(freed_in_the_callback)
{
	static const enum move moves[] = {
	    GOOD, SILENT, REFUSED, TC_GOOD, TC_BROKEN, TC_STALL};

	for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
		play(0, 1, &moves[i]);
		options.nameserver_count = 1;
		options.tries = 1;
		options.timeout_ms = 50;
		dns = dns_new(loop, &options);
		for (int n = 0; n < 3; n++)
			dns_query_new(
			    dns, "host.test", DNS_A, on_answer_free, NULL);
		loop_run(loop);
		ck_assert_int_eq(calls, (int)i + 1);
		ck_assert_ptr_null(dns);
	}
	endpoints[0].port = 0;
	dns = dns_new(loop, &options);
	dns_query_new(dns, "host.test", DNS_A, on_answer_free, NULL);
	loop_run(loop);
	ck_assert_ptr_null(dns);
}
END_TEST

static int again;

static void
on_answer_again(void *arg, const struct dns_answer *answer)
{
	if (again-- > 0)
		ck_assert_ptr_nonnull(dns_query_new(
		    dns, "host.test", DNS_A, on_answer_again, arg));
	else
		on_answer(arg, answer);
}

START_TEST(asked_again_in_the_callback)
{
	again = 20;
	dns = dns_new(loop, &options);
	dns_query_new(dns, "host.test", DNS_A, on_answer_again, NULL);
	loop_run(loop);
	ck_assert_uint_eq(scripts[0].asked, 21);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dns");
	TCase *tc = tcase_create("dns");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_question);
	tcase_add_test(tc, negative_answers);
	tcase_add_test(tc, no_such_name_in_that_case);
	tcase_add_test(tc, the_second_round_is_plain);
	tcase_add_test(tc, every_try_is_fresh);
	tcase_add_test(tc, silence_everywhere);
	tcase_add_test(tc, second_round);
	tcase_add_test(tc, refused_everywhere);
	tcase_add_test(tc, without_edns);
	tcase_add_test(tc, format_error_anyway);
	tcase_add_test(tc, ad_required);
	tcase_add_test(tc, alias_is_followed);
	tcase_add_test(tc, alias_of_nothing);
	tcase_add_test(tc, alias_with_failover);
	tcase_add_test(tc, alias_chain_is_bounded);
	tcase_add_test(tc, alias_loop_is_refused);
	tcase_add_test(tc, alias_with_ad);
	tcase_add_test(tc, a_query_is_bounded);
	tcase_add_test(tc, allowance);
	tcase_add_test(tc, resolv_conf_is_read_per_query);
	tcase_add_test(tc, bad_names);
	tcase_add_test(tc, concurrency_is_capped);
	tcase_add_test(tc, the_queue_is_capped);
	tcase_add_test(tc, cancelled_queries_are_silent);
	tcase_add_test(tc, freed_at_work);
	tcase_add_test(tc, freed_in_the_callback);
	tcase_add_test(tc, asked_again_in_the_callback);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
