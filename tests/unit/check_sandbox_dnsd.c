/*
 * The zone: query bytes in, response bytes out. Good answers are read back
 * with the DNS library, which the strict scan of queries does not use.
 */
#include "sandbox/dnsd.h"

#include <ldns/ldns.h>
#include <string.h>

#include "tests/unit/harness.h"

#define ZONE    "Test.example"
#define SERVICE "_ratelimitly._udp.test.example"

static struct dnsd *zone;
static uint8_t query[2048], answer[DNSD_TCP_MAX];
static size_t query_len, answer_len;
static ldns_pkt *pkt;

static void
add(uint64_t id, const char *first, const char *second)
{
	struct addr addrs[2];
	size_t n = 1;

	ck_assert_int_eq(addr_parse(first, &addrs[0]), 0);
	if (second != NULL) {
		ck_assert_int_eq(addr_parse(second, &addrs[1]), 0);
		n = 2;
	}
	ck_assert_int_eq(dnsd_add(zone, id, addrs, n), 0);
}

static void
setup(void)
{
	zone = dnsd_new(ZONE, 60);
	ck_assert_ptr_nonnull(zone);
	add(11, "127.0.0.1:4001", "[::1]:4001");
	add(UINT64_MAX, "127.0.0.2:4002", NULL);
	pkt = NULL;
}

static void
teardown(void)
{
	ldns_pkt_free(pkt);
	dnsd_free(zone);
}

static void
put16(uint32_t v)
{
	query[query_len++] = (uint8_t)(v >> 8);
	query[query_len++] = (uint8_t)v;
}

static void
put_name(const char *name)
{
	size_t len;

	while (*name != '\0') {
		len = strcspn(name, ".");
		query[query_len++] = (uint8_t)len;
		memcpy(query + query_len, name, len);
		query_len += len;
		name += len + (name[len] == '.');
	}
	query[query_len++] = 0;
}

static void
ask(const char *name, uint16_t type)
{
	query_len = 0;
	put16(0xBEEF);
	put16(0x0100); /* RD */
	put16(1);
	put16(0);
	put16(0);
	put16(0);
	put_name(name);
	put16(type);
	put16(1);
}

static void
add_opt(uint16_t size, uint8_t version, uint16_t flags)
{
	query[11]++;
	query[query_len++] = 0;
	put16(LDNS_RR_TYPE_OPT);
	put16(size);
	put16(version);
	put16(flags);
	put16(0);
}

static void
send_over(bool tcp)
{
	/* A copy of the right size, for the sanitizers to watch its ends. */
	uint8_t *exact = malloc(query_len + 1);

	memcpy(exact, query, query_len);
	answer_len =
	    dnsd_answer(zone, exact, query_len, tcp, answer, sizeof answer);
	free(exact);
	ldns_pkt_free(pkt);
	pkt = NULL;
	if (answer_len > 0)
		ck_assert_int_eq(
		    ldns_wire2pkt(&pkt, answer, answer_len), LDNS_STATUS_OK);
}

static void
expect(int rcode, size_t an, size_t ns, bool aa)
{
	ck_assert_uint_gt(answer_len, 0);
	ck_assert_uint_eq(ldns_pkt_id(pkt), 0xBEEF);
	ck_assert(ldns_pkt_qr(pkt));
	ck_assert_int_eq(ldns_pkt_get_rcode(pkt), rcode);
	ck_assert_uint_eq(ldns_pkt_ancount(pkt), an);
	ck_assert_uint_eq(ldns_pkt_nscount(pkt), ns);
	ck_assert(ldns_pkt_aa(pkt) == aa);
	ck_assert(!ldns_pkt_ra(pkt));
	ck_assert(!ldns_pkt_ad(pkt));
}

/* The n-th record of a section as text. */
static void
record_is(ldns_rr_list *section, size_t n, const char *wanted)
{
	char *text = ldns_rr2str(ldns_rr_list_rr(section, n)), *tab;

	for (tab = text; (tab = strchr(tab, '\t')) != NULL;)
		*tab = ' ';
	text[strcspn(text, "\n")] = '\0';
	ck_assert_str_eq(text, wanted);
	free(text);
}

START_TEST(service_records)
{
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 2, 0, true);
	ck_assert(!ldns_pkt_tc(pkt));
	ck_assert(ldns_pkt_rd(pkt));
	ck_assert(!ldns_pkt_edns(pkt));
	record_is(ldns_pkt_answer(pkt), 0,
	    SERVICE ". 60 IN SRV 0 0 4001 s-11.Test.example.");
	record_is(ldns_pkt_answer(pkt), 1,
	    SERVICE
	    ". 60 IN SRV 0 0 4002 s-18446744073709551615.Test.example.");
}
END_TEST

START_TEST(addresses)
{
	ask("s-11.test.example", LDNS_RR_TYPE_A);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 1, 0, true);
	record_is(
	    ldns_pkt_answer(pkt), 0, "s-11.test.example. 60 IN A 127.0.0.1");
	ask("s-11.test.example", LDNS_RR_TYPE_AAAA);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 1, 0, true);
	record_is(ldns_pkt_answer(pkt), 0, "s-11.test.example. 60 IN AAAA ::1");
	ask("s-11.test.example", LDNS_RR_TYPE_ANY);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 2, 0, true);
}
END_TEST

/* Question and owner names come back letter for letter. */
START_TEST(the_case_of_the_question_is_echoed)
{
	ask("_rAteLimitlY._UDp.teSt.EXAMPLE", LDNS_RR_TYPE_SRV);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 2, 0, true);
	ck_assert_mem_eq(answer + 12, query + 12, query_len - 12);
	record_is(ldns_pkt_answer(pkt), 0,
	    "_rAteLimitlY._UDp.teSt.EXAMPLE. 60 IN SRV 0 0 4001 "
	    "s-11.Test.example.");
	ask("S-11.tEst.example", LDNS_RR_TYPE_A);
	send_over(false);
	record_is(
	    ldns_pkt_answer(pkt), 0, "S-11.tEst.example. 60 IN A 127.0.0.1");
}
END_TEST

START_TEST(no_data)
{
	static const struct {
		const char *name;
		uint16_t type;
	} rows[] = {
	    {SERVICE, LDNS_RR_TYPE_A},
	    {"_udp.test.example", LDNS_RR_TYPE_SRV},
	    {"test.example", LDNS_RR_TYPE_A},
	    {"s-18446744073709551615.test.example", LDNS_RR_TYPE_AAAA},
	};

	ask(rows[_i].name, rows[_i].type);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 0, 1, true);
	/* Compression points at the question's own spelling. */
	record_is(ldns_pkt_authority(pkt), 0,
	    "test.example. 60 IN SOA ns.test.example. "
	    "hostmaster.test.example. 1 3600 600 86400 60");
}
END_TEST

START_TEST(no_such_name)
{
	static const char *const names[] = {"s-12.test.example",
	    "s-011.test.example", "_tcp.test.example", "x.s-11.test.example",
	    "_ratelimitly._tcp.test.example", "x._udp.test.example"};

	ask(names[_i], LDNS_RR_TYPE_A);
	send_over(false);
	expect(LDNS_RCODE_NXDOMAIN, 0, 1, true);
	ck_assert_int_eq(
	    ldns_rr_get_type(ldns_rr_list_rr(ldns_pkt_authority(pkt), 0)),
	    LDNS_RR_TYPE_SOA);
}
END_TEST

START_TEST(the_apex_has_its_soa)
{
	ask("test.example", LDNS_RR_TYPE_SOA);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 1, 0, true);
}
END_TEST

START_TEST(others_are_refused)
{
	static const char *const names[] = {
	    "", "example", "other.example", "xtest.example", "example.test"};

	ask(names[_i], LDNS_RR_TYPE_A);
	send_over(false);
	expect(LDNS_RCODE_REFUSED, 0, 0, false);
	ask(SERVICE, LDNS_RR_TYPE_AXFR);
	send_over(true);
	expect(LDNS_RCODE_REFUSED, 0, 0, false);
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	query[query_len - 1] = 3; /* class CH */
	send_over(false);
	expect(LDNS_RCODE_REFUSED, 0, 0, false);
}
END_TEST

START_TEST(withdrawn_servers_are_not_there)
{
	dnsd_publish(zone, 0, false);
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 1, 0, true);
	ask("s-11.test.example", LDNS_RR_TYPE_A);
	send_over(false);
	expect(LDNS_RCODE_NXDOMAIN, 0, 1, true);
	dnsd_publish(zone, 1, false);
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 0, 1, true);
	dnsd_publish(zone, 0, true);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 1, 0, true);
}
END_TEST

static void
fill_up(void)
{
	char text[32];
	int i;

	for (i = 0; i < 30; i++) {
		snprintf(text, sizeof text, "127.0.1.%d:5000", i);
		add(1000 + (uint64_t)i, text, NULL);
	}
	ask(SERVICE, LDNS_RR_TYPE_SRV);
}

START_TEST(what_does_not_fit_is_truncated)
{
	fill_up();
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 0, 0, true);
	ck_assert(ldns_pkt_tc(pkt));
	ck_assert_uint_le(answer_len, 512);
	ck_assert_uint_eq(ldns_pkt_qdcount(pkt), 1);
	send_over(true);
	expect(LDNS_RCODE_NOERROR, 32, 0, true);
	ck_assert(!ldns_pkt_tc(pkt));
	ck_assert_uint_gt(answer_len, 512);
}
END_TEST

START_TEST(edns_makes_room)
{
	size_t whole;

	fill_up();
	send_over(true);
	whole = answer_len;
	add_opt((uint16_t)(whole + 11), 0, 0x8000);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 32, 0, true);
	ck_assert(!ldns_pkt_tc(pkt));
	ck_assert_uint_eq(answer_len, whole + 11);
	ck_assert(ldns_pkt_edns(pkt));
	ck_assert(ldns_pkt_edns_do(pkt));
	ck_assert_uint_eq(ldns_pkt_edns_udp_size(pkt), 1232);
	/* One byte less, and it is truncated. */
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt((uint16_t)(whole + 10), 0, 0);
	send_over(false);
	ck_assert(ldns_pkt_tc(pkt));
	ck_assert_uint_eq(ldns_pkt_ancount(pkt), 0);
	ck_assert(!ldns_pkt_edns_do(pkt));
}
END_TEST

START_TEST(tiny_edns_sizes_mean_512)
{
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt(0, 0, 0);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 2, 0, true);
}
END_TEST

START_TEST(edns_versions)
{
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt(1232, 1, 0);
	send_over(false);
	expect(LDNS_RCODE_NOERROR, 0, 0, false); /* the low bits of 16 */
	ck_assert_uint_eq(ldns_pkt_edns_extended_rcode(pkt), 1);
}
END_TEST

START_TEST(what_gets_no_answer)
{
	size_t i;

	ask(SERVICE, LDNS_RR_TYPE_SRV);
	for (i = 0; i < 12; i++) {
		query_len = i;
		send_over(i % 2 == 0);
		ck_assert_uint_eq(answer_len, 0);
	}
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	query[2] |= 0x80; /* a response */
	send_over(false);
	ck_assert_uint_eq(answer_len, 0);
}
END_TEST

START_TEST(other_opcodes_are_not_implemented)
{
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	query[2] |= 4 << 3; /* NOTIFY */
	send_over(false);
	expect(LDNS_RCODE_NOTIMPL, 0, 0, false);
}
END_TEST

static void
form_error(void)
{
	send_over(false);
	expect(LDNS_RCODE_FORMERR, 0, 0, false);
	ck_assert_uint_eq(ldns_pkt_qdcount(pkt), 0);
	ck_assert_uint_eq(answer_len, 12);
}

START_TEST(every_truncation_is_a_format_error)
{
	size_t whole, i;

	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt(1232, 0, 0);
	whole = query_len;
	for (i = 12; i < whole; i++) {
		query_len = i;
		form_error();
	}
}
END_TEST

START_TEST(wrong_counts_are_format_errors)
{
	static const struct {
		size_t at;
		uint8_t value;
	} rows[] = {{5, 0}, {5, 2}, {7, 1}, {9, 1}, {11, 1}, {11, 2}, {4, 1}};

	ask(SERVICE, LDNS_RR_TYPE_SRV);
	query[rows[_i].at] = rows[_i].value;
	form_error();
}
END_TEST

START_TEST(hostile_names_are_format_errors)
{
	size_t i;

	/* A pointer to itself, and one forwards. */
	ask("", LDNS_RR_TYPE_SRV);
	query_len = 12;
	put16(0xC00C);
	put16(LDNS_RR_TYPE_SRV);
	put16(1);
	form_error();
	/* A reserved label type. */
	ask("abc", LDNS_RR_TYPE_SRV);
	query[12] = 0x43;
	form_error();
	/* 256 bytes of name. */
	ask("", LDNS_RR_TYPE_SRV);
	query_len = 12;
	for (i = 0; i < 127; i++) {
		query[query_len++] = 1;
		query[query_len++] = 'a';
	}
	query[query_len++] = 1;
	query[query_len++] = 'a';
	query[query_len++] = 0;
	put16(LDNS_RR_TYPE_SRV);
	put16(1);
	form_error();
	/* Bytes after the end. */
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	query[query_len++] = 0;
	form_error();
	/* An additional record that is no OPT. */
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt(1232, 0, 0);
	query[query_len - 9] = LDNS_RR_TYPE_A;
	form_error();
	/* OPT data that is longer than the packet. */
	ask(SERVICE, LDNS_RR_TYPE_SRV);
	add_opt(1232, 0, 0);
	query[query_len - 1] = 1;
	form_error();
}
END_TEST

/* 255 bytes are a name, and not one of ours. */
START_TEST(the_longest_name_is_understood)
{
	size_t i;

	ask("", LDNS_RR_TYPE_SRV);
	query_len = 12;
	for (i = 0; i < 127; i++) {
		query[query_len++] = 1;
		query[query_len++] = (uint8_t)i;
	}
	query[query_len++] = 0;
	put16(LDNS_RR_TYPE_SRV);
	put16(1);
	send_over(false);
	expect(LDNS_RCODE_REFUSED, 0, 0, false);
}
END_TEST

START_TEST(noise_is_survived)
{
	uint64_t state = harness_seed();
	size_t whole, i;
	int round;

	for (round = 0; round < 5000; round++) {
		ask(round % 2 ? SERVICE : "s-11.test.example",
		    LDNS_RR_TYPE_SRV);
		add_opt(1232, 0, 0);
		whole = query_len;
		for (i = harness_below(&state, 6) + 1; i > 0; i--)
			query[harness_below(&state, (uint32_t)whole)] =
			    (uint8_t)harness_random(&state);
		if (harness_below(&state, 3) == 0)
			query_len = harness_below(&state, (uint32_t)whole);
		answer_len = dnsd_answer(zone, query, query_len,
		    harness_below(&state, 2) == 0, answer, sizeof answer);
		if (answer_len == 0)
			continue;
		ck_assert_uint_ge(answer_len, 12);
		ck_assert_mem_eq(answer, query, 2);
		ck_assert(answer[2] & 0x80);
	}
}
END_TEST

START_TEST(zones_that_cannot_be)
{
	char name[256];
	struct addr a;

	ck_assert_ptr_null(dnsd_new("", 60));
	ck_assert_ptr_null(dnsd_new(".", 60));
	ck_assert_ptr_null(dnsd_new("a..b", 60));
	memset(name, 'a', sizeof name);
	name[64] = '\0';
	ck_assert_ptr_null(dnsd_new(name, 60)); /* a label of 64 */
	memset(name, 'a', sizeof name);
	name[60] = name[120] = name[180] = '.';
	name[245] = '\0';
	ck_assert_ptr_null(dnsd_new(name, 60)); /* no room for the service */
	/* Room for the service, but not for this server's target. */
	name[232] = '\0';
	dnsd_free(zone);
	zone = dnsd_new(name, 60);
	ck_assert_ptr_nonnull(zone);
	ck_assert_int_eq(addr_parse("127.0.0.1:1", &a), 0);
	ck_assert_int_lt(dnsd_add(zone, UINT64_MAX, &a, 1), 0);
	ck_assert_int_eq(dnsd_add(zone, 1, &a, 1), 0);
}
END_TEST

START_TEST(a_final_dot_is_the_same_zone)
{
	struct dnsd *dotted = dnsd_new("test.example.", 60);

	ck_assert_ptr_nonnull(dotted);
	ck_assert_str_eq(dnsd_zone(dotted), "test.example");
	dnsd_free(dotted);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("sandbox_dnsd");
	TCase *tc = tcase_create("dnsd");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, service_records);
	tcase_add_test(tc, addresses);
	tcase_add_test(tc, the_case_of_the_question_is_echoed);
	tcase_add_loop_test(tc, no_data, 0, 4);
	tcase_add_loop_test(tc, no_such_name, 0, 6);
	tcase_add_test(tc, the_apex_has_its_soa);
	tcase_add_loop_test(tc, others_are_refused, 0, 5);
	tcase_add_test(tc, withdrawn_servers_are_not_there);
	tcase_add_test(tc, what_does_not_fit_is_truncated);
	tcase_add_test(tc, edns_makes_room);
	tcase_add_test(tc, tiny_edns_sizes_mean_512);
	tcase_add_test(tc, edns_versions);
	tcase_add_test(tc, what_gets_no_answer);
	tcase_add_test(tc, other_opcodes_are_not_implemented);
	tcase_add_test(tc, every_truncation_is_a_format_error);
	tcase_add_loop_test(tc, wrong_counts_are_format_errors, 0, 7);
	tcase_add_test(tc, hostile_names_are_format_errors);
	tcase_add_test(tc, the_longest_name_is_understood);
	tcase_add_test(tc, noise_is_survived);
	tcase_add_test(tc, zones_that_cannot_be);
	tcase_add_test(tc, a_final_dot_is_the_same_zone);
	suite_add_tcase(suite, tc);
	return harness_run(suite);
}
