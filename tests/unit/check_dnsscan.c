/*
 * Hostile DNS messages, through the decoder that the scan protects: every kind
 * refused, and at a bounded cost.
 */
#include "daemon/io/dnsscan.h"

#include <string.h>
#include <time.h>

#include "tests/unit/dnswire_fixture.h"

START_TEST(trailing_junk)
{
	ask("a.test", DNS_A);
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	reply.bytes[reply.len++] = 0;
	expect_malformed();
}
END_TEST

START_TEST(wrong_counts)
{
	ask("a.test", DNS_A);
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	for (size_t at = 7; at < DNSSCAN_HEADER_LEN; at += 2) {
		reply.bytes[at]++;
		expect_malformed();
		reply.bytes[at]--;
	}
	reply.bytes[7] = 0;
	expect_malformed();
	memset(reply.bytes + 6, 0xff, 6);
	expect_malformed();
}
END_TEST

struct rdata_case {
	uint16_t type;
	size_t len;
	uint8_t bytes[40];
};

/* An RDLENGTH that its fields do not fill exactly, or fields that overrun. */
static const struct rdata_case wrong_rdata[] = {
    {1, 0, {0}},
    {1, 3, {0}},
    {1, 5, {0}},
    {1, 16, {0}},
    {28, 4, {0}},
    {28, 15, {0}},
    {28, 17, {0}},
    {33, 0, {0}},
    {33, 2, {0}},
    {33, 6, {0, 0, 0, 0, 0, 1}},
    {33, 7, {0, 0, 0, 0, 0, 1, 1}},
    {33, 8, {0, 0, 0, 0, 0, 1, 1, 'a'}},
    {33, 8, {0, 0, 0, 0, 0, 1, 0, 0}},
    {33, 8, {0, 0, 0, 0, 0, 1, 0xc0, 0xff}},
    {33, 7, {0, 0, 0, 0, 0, 1, 0xc0}},
    {5, 0, {0}},
    {5, 1, {1}},
    {5, 2, {0, 0}},
    {5, 1, {0xc0}},
    {5, 3, {0xc0, 12, 0}},
    {5, 2, {0x40, 0}},
    {5, 2, {0x80, 0}},
    {6, 0, {0}},
    {6, 21, {0}},
    {6, 23, {0}},
    {6, 24, {0xc0, 12}},
};

START_TEST(wrong_rdlength)
{
	const struct rdata_case *c = &wrong_rdata[_i];

	for (int section = 0; section < 3; section++) {
		ask("a.test", DNS_SRV);
		dnsreply_record(
		    &reply, section, NULL, c->type, 60, c->bytes, c->len);
		expect_malformed();
		/* Room behind it does not help. */
		dnsreply_address(&reply, NULL, 60, "192.0.2.1");
		expect_malformed();
	}
}
END_TEST

/* The same rdata in types and classes that nobody reads is fine. */
START_TEST(unread_records)
{
	ask("a.test", DNS_A);
	dnsreply_record(
	    &reply, DNSREPLY_ANSWER, NULL, 16, 60, "\377\377", 2); /* TXT */
	/* An A of class CH has another form. */
	dnsreply_raw(
	    &reply, DNSREPLY_ANSWER, "\300\014\0\1\0\3\0\0\0\1\0\1x", 13);
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	dnsreply_record(
	    &reply, DNSREPLY_AUTHORITY, NULL, 2, 60, "\300\300", 2); /* NS */
	expect_answer(DNS_OK, 1, 60);
}
END_TEST

/* Two bytes at the end of a message, as the owner of a record. */
static void
pointer_owner(unsigned target)
{
	uint8_t record[] = {(uint8_t)(0xc0 | target >> 8), (uint8_t)target, 0,
	    1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};

	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ANSWER, record, sizeof record);
}

START_TEST(pointers)
{
	unsigned own = DNSSCAN_HEADER_LEN + 12; /* offset of the record */

	pointer_owner(12);
	expect_answer(DNS_OK, 1, 60);
	pointer_owner(14); /* "test": another name */
	expect_answer(DNS_NODATA, 0, 0);
	for (unsigned target = 0; target < 12; target++) {
		pointer_owner(target); /* into the header */
		expect_malformed();
	}
	pointer_owner(own); /* itself */
	expect_malformed();
	pointer_owner(own + 1);
	expect_malformed();
	pointer_owner(own + 2); /* forward */
	expect_malformed();
	pointer_owner(0x3fff); /* out of the message */
	expect_malformed();
}
END_TEST

/* Backward and with labels between, round and round. */
START_TEST(pointer_loop)
{
	static const uint8_t loop[] = {
	    1, 'x', 0xc0, 24, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};

	ask("a.test", DNS_A);
	ck_assert_uint_eq(reply.len, 24);
	dnsreply_raw(&reply, DNSREPLY_ANSWER, loop, sizeof loop);
	expect_malformed();
}
END_TEST

/* Labels of more than 255 bytes in all, by help of a pointer. */
START_TEST(name_too_long)
{
	uint8_t record[1 + 63 + 2 + 14] = {63};
	char text[400];

	longest_name(text);
	ask(text, DNS_A);
	memset(record + 1, 'x', 63);
	record[64] = 0xc0;
	record[65] = 12 + 64; /* 191 bytes: 255 with the label before it */
	/* A type that ldns never sees: the scan alone must notice. */
	memcpy(record + 66, "\0\20\0\1\0\0\0\74\0\4\300\0\2\1", 14);
	dnsreply_raw(&reply, DNSREPLY_ANSWER, record, sizeof record);
	expect_answer(DNS_NODATA, 0, 0);
	reply.bytes[reply.len - sizeof record + 65] = 12; /* 319 */
	expect_malformed();
}
END_TEST

/* Each owner points to the owner before it. */
static void
ladder(unsigned records)
{
	uint8_t record[] = {0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0};
	unsigned target = 12;

	ask("a.test", DNS_A);
	for (unsigned i = 0; i < records; i++) {
		record[0] = (uint8_t)(0xc0 | target >> 8);
		record[1] = (uint8_t)target;
		target = (unsigned)reply.len;
		dnsreply_raw(&reply, DNSREPLY_ANSWER, record, sizeof record);
	}
}

START_TEST(pointer_ladder)
{
	ladder(64);
	expect_answer(DNS_NODATA, 0, 0);
	ladder(65);
	expect_malformed();
}
END_TEST

/*
 * 64 KiB of pointers, each to the one before it, and records that enter at
 * its far end: 125 ms of work for ldns alone, so far less is the bound here.
 */
START_TEST(pointer_chain_is_cheap)
{
	struct timespec begin, end;
	uint8_t opt[65000] = {0, 0, 16, 0, 1};
	size_t at, len = 0x3f00;
	double ms;

	ask("a.test", DNS_A);
	opt[9] = (uint8_t)(len >> 8);
	opt[10] = (uint8_t)len;
	at = reply.len + 11;
	for (size_t i = 0; i + 2 <= len && at + i - 2 < 0x4000; i += 2) {
		size_t target = i == 0 ? 12 : at + i - 2;

		opt[11 + i] = (uint8_t)(0xc0 | target >> 8);
		opt[12 + i] = (uint8_t)target;
	}
	dnsreply_raw(&reply, DNSREPLY_ANSWER, opt, 11 + len);
	for (int i = 0; i < 1000; i++)
		dnsreply_raw(&reply, DNSREPLY_ANSWER,
		    "\376\0\0\1\0\1\0\0\0\74\0\4\300\0\2\1", 16);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < 20; i++)
		expect_malformed();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
	     (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
	ck_assert_msg(ms / 20 < 10, "%.3f ms each", ms / 20);
}
END_TEST

/* The dearest kind that passes: all its records at the deepest pointer. */
START_TEST(deepest_answers_are_bounded)
{
	struct timespec begin, end;
	double ms;
	uint8_t record[] = {0, 0, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1};
	size_t deepest;

	ladder(63);
	deepest = reply.len - 12;
	record[0] = (uint8_t)(0xc0 | deepest >> 8);
	record[1] = (uint8_t)deepest;
	for (int i = 63; i < DNSSCAN_MAX_RECORDS; i++)
		dnsreply_raw(&reply, DNSREPLY_ANSWER, record, sizeof record);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	expect_answer(DNS_OK, DNS_MAX_RECORDS, 60);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
	     (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
	ck_assert_msg(ms < 50, "%.3f ms", ms);
}
END_TEST

START_TEST(signatures)
{
	static const uint8_t tsig[] = {0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0};
	static const uint8_t sig0[] = {0, 0, 24, 0, 255, 0, 0, 0, 0, 0, 0};

	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, tsig, sizeof tsig);
	expect_malformed();
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, tsig, sizeof tsig);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, sig0, sizeof sig0);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ANSWER, tsig, sizeof tsig);
	expect_malformed();
}
END_TEST

START_TEST(opt_records)
{
	static const uint8_t opt[] = {0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0};
	static const uint8_t named[] = {
	    0xc0, 12, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0};
	static const uint8_t options[] = {0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 10,
	    0, 10, 0, 2, 'a', 'b', 0, 3, 0, 0};

	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, opt, sizeof opt);
	expect_answer(DNS_NODATA, 0, 0);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, opt, sizeof opt);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ANSWER, opt, sizeof opt);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, named, sizeof named);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, options, sizeof options);
	expect_answer(DNS_NODATA, 0, 0);
	reply.bytes[reply.len - 1] = 1; /* an option that overruns */
	expect_malformed();
}
END_TEST

/* Whatever comes out must be in order. */
static void
check_answer(void)
{
	size_t i;

	ck_assert_uint_le(answer.count, DNS_MAX_RECORDS);
	ck_assert(answer.status == DNS_OK || answer.status == DNS_NODATA ||
		  answer.status == DNS_NXDOMAIN);
	ck_assert_int_eq(answer.status == DNS_OK, answer.count > 0);
	ck_assert_uint_le(answer.ttl, INT32_MAX);
	for (i = 0; i < answer.count; i++) {
		ck_assert_int_eq(answer.records[i].type, q.type);
		ck_assert_ptr_nonnull(
		    memchr(answer.records[i].target, 0, DNS_MAX_NAME));
	}
}

/* Good messages with some bytes changed, cut or doubled, under ASan. */
START_TEST(mutations)
{
	uint64_t seed = harness_seed();
	static struct dnsreply good;
	size_t taken = 0;

	for (int round = 0; round < 30000; round++) {
		if (round % 1000 == 0) {
			ask("_s._udp.a.test",
			    round % 3000 == 0 ? DNS_SRV : DNS_A);
			dnsreply_cname(&reply, NULL, 60, "b.test");
			dnsreply_srv(&reply, "b.test", 60, 9, "s-1.a.test");
			dnsreply_srv(&reply, "b.test", 60, 9, "s-2.a.test");
			dnsreply_address(&reply, "b.test", 9, "192.0.2.1");
			dnsreply_soa(&reply, "test", 60, 60);
			dnsreply_raw(&reply, DNSREPLY_ADDITIONAL,
			    "\0\0\51\4\320\0\0\0\0\0\0", 11);
			good = reply;
		}
		reply.len = good.len;
		memcpy(reply.bytes, good.bytes, good.len);
		for (unsigned n = harness_below(&seed, 4); n > 0; n--) {
			size_t at = harness_below(&seed, (uint32_t)reply.len);

			/* The question stays, else nothing is reached. */
			if (at >= 6 && (at < 12 || at >= 12 + q.len))
				reply.bytes[at] =
				    (uint8_t)harness_random(&seed);
		}
		if (round % 16 == 0)
			reply.len -= harness_below(&seed, 40);
		if (judge() == DNSWIRE_ANSWER) {
			check_answer();
			taken++;
		}
	}
	ck_assert_uint_gt(taken, 1000);
}
END_TEST

/* Noise after an intact question. */
START_TEST(noise)
{
	uint64_t seed = harness_seed();

	for (int round = 0; round < 30000; round++) {
		ask("a.test", DNS_SRV);
		reply.bytes[7] = (uint8_t)(1 + harness_below(&seed, 4));
		reply.len += harness_below(&seed, 120);
		harness_fill(&seed, reply.bytes + 24, reply.len - 24);
		for (size_t i = 24; i < reply.len; i++) {
			/* Much of a message is zeros and small numbers. */
			if (harness_below(&seed, 2) == 0)
				reply.bytes[i] %= 16;
			if (harness_below(&seed, 16) == 0)
				reply.bytes[i] = 0xc0;
		}
		if (judge() == DNSWIRE_ANSWER)
			check_answer();
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dnsscan");
	TCase *tc = tcase_create("dnsscan");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, trailing_junk);
	tcase_add_test(tc, wrong_counts);
	tcase_add_loop_test(
	    tc, wrong_rdlength, 0, sizeof wrong_rdata / sizeof wrong_rdata[0]);
	tcase_add_test(tc, unread_records);
	tcase_add_test(tc, pointers);
	tcase_add_test(tc, pointer_loop);
	tcase_add_test(tc, name_too_long);
	tcase_add_test(tc, pointer_ladder);
	tcase_add_test(tc, pointer_chain_is_cheap);
	tcase_add_test(tc, deepest_answers_are_bounded);
	tcase_add_test(tc, signatures);
	tcase_add_test(tc, opt_records);
	tcase_add_test(tc, mutations);
	tcase_add_test(tc, noise);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
