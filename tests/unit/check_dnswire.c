/* DNS bytes: questions as RFC 1035 draws them, answers taken apart rightly. */
#include "daemon/io/dnswire.h"

#include <string.h>

#include "tests/unit/dnswire_fixture.h"

#include "proto/err.h"
/* ------------------------------------------------------------ questions */

START_TEST(query_bytes)
{
	static const uint8_t edns[] = {0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0,
	    0, 1,                                          /* header */
	    3, 'A', '_', 'B', 2, 'c', '9', 0, 0, 33, 0, 1, /* question */
	    0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0};       /* OPT, 1232 */
	uint8_t random[DNSWIRE_RANDOM_LEN] = {0x12, 0x34},
		out[DNSWIRE_QUERY_MAX];

	ck_assert_int_eq(
	    dnswire_question_init(&q, "a_b.C9.", DNS_SRV, false), 0);
	/* A bit of 1 is upper case: of bytes 1 and 3. */
	random[2] = 1 << 1 | 1 << 3;
	dnswire_question_mix(&q, random);
	ck_assert_uint_eq(dnswire_query(&q, out), sizeof edns);
	ck_assert_mem_eq(out, edns, sizeof edns);

	q.edns = false;
	q.require_ad = true;
	ck_assert_uint_eq(dnswire_query(&q, out), sizeof edns - 11);
	ck_assert_uint_eq(out[2], 0x01);
	ck_assert_uint_eq(out[3], 0x20);
	ck_assert_uint_eq(out[11], 0);
}
END_TEST

START_TEST(names)
{
	static const char *const bad[] = {"", ".", "..", "a..b", ".a", "a b",
	    "a.b..", "a\x80", "a/b", "a\\.b", "*"};
	char text[400];
	uint8_t out[DNSWIRE_QUERY_MAX];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_int_eq(
		    dnswire_question_init(&q, bad[i], DNS_A, false),
		    RLA_EINVAL);
	ck_assert_int_eq(dnswire_question_init(&q, label63, DNS_A, false), 0);
	snprintf(text, sizeof text, "%sx", label63);
	ck_assert_int_eq(
	    dnswire_question_init(&q, text, DNS_A, false), RLA_EINVAL);
	/* 3 * 64 + 62 + 1: a name of 255 bytes, and one of 256. */
	longest_name(text);
	ck_assert_int_eq(dnswire_question_init(&q, text, DNS_A, false), 0);
	ck_assert_uint_eq(q.len, 255 + 4);
	ck_assert_uint_eq(dnswire_query(&q, out), DNSWIRE_QUERY_MAX);
	snprintf(text, sizeof text, "%s.%s.%s.%.62s", label63, label63, label63,
	    label63);
	ck_assert_int_eq(
	    dnswire_question_init(&q, text, DNS_A, false), RLA_EINVAL);
}
END_TEST

/* Case is drawn per letter; nothing but letters changes. */
START_TEST(random_case)
{
	uint64_t seed = harness_seed();
	uint8_t random[DNSWIRE_RANDOM_LEN];
	struct dnswire_question before;
	unsigned upper = 0, letters = 0;

	ck_assert_int_eq(
	    dnswire_question_init(&before, "s-12_x.AbC.example", DNS_A, false),
	    0);
	for (int round = 0; round < 2000; round++) {
		q = before;
		harness_fill(&seed, random, sizeof random);
		dnswire_question_mix(&q, random);
		ck_assert_uint_eq(q.id, random[0] << 8 | random[1]);
		for (size_t i = 0; i < q.len; i++) {
			uint8_t was = before.bytes[i] | 0x20;

			if (i < q.len - 4 && was >= 'a' && was <= 'z') {
				ck_assert_uint_eq(q.bytes[i] | 0x20, was);
				upper += (q.bytes[i] & 0x20) == 0;
				letters++;
			} else {
				ck_assert_uint_eq(q.bytes[i], before.bytes[i]);
			}
		}
	}
	ck_assert_uint_gt(upper, letters * 2 / 5);
	ck_assert_uint_lt(upper, letters * 3 / 5);
}
END_TEST

/* -------------------------------------------------------------- answers */

/* Every byte by hand: the example of the r-client specification, 3.1. */
START_TEST(golden_srv)
{
	static const uint8_t message[] = {0, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0,
	    1, /* question */
	    12, '_', 'r', 'a', 't', 'e', 'l', 'i', 'm', 'i', 't', 'l', 'y', 4,
	    '_', 'u', 'd', 'p', 1, 'x', 0, 0, 33, 0, 1, /* SRV */
	    0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0, 18, 0, 0, 0, 0, 0x72, 0x6c,
	    9, 's', '-', '1', '0', '1', '5', '8', '0', '9', 0xc0, 30,
	    /* OPT */
	    0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0};

	ck_assert_int_eq(
	    dnswire_question_init(&q, "_ratelimitly._udp.x", DNS_SRV, false),
	    0);
	memcpy(reply.bytes, message, sizeof message);
	reply.len = sizeof message;
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(answer.records[0].port, 29292);
	ck_assert_str_eq(answer.records[0].target, "s-1015809.x");
	ck_assert_uint_eq(answer.records[0].ttl, 60);
}
END_TEST

START_TEST(addresses)
{
	ask("h.test", DNS_A);
	dnsreply_address(&reply, NULL, 300, "192.0.2.1");
	dnsreply_address(&reply, "H.TEST", 200, "192.0.2.2");
	dnsreply_address(&reply, "other.test", 1, "192.0.2.3");
	dnsreply_address(&reply, NULL, 1, "2001:db8::1");
	expect_answer(DNS_OK, 2, 200);
	ck_assert_mem_eq(answer.records[0].addr, "\xc0\0\2\1", 4);
	ck_assert_mem_eq(answer.records[1].addr, "\xc0\0\2\2", 4);
	ask("h.test", DNS_AAAA);
	dnsreply_address(&reply, NULL, 300, "2001:db8::1");
	expect_answer(DNS_OK, 1, 300);
	ck_assert_mem_eq(answer.records[0].addr,
	    "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
}
END_TEST

START_TEST(alias_chain)
{
	ask("a.test", DNS_A);
	/* In any order; the least TTL on the way counts. */
	dnsreply_address(&reply, "c.test", 100, "192.0.2.1");
	dnsreply_cname(&reply, "B.test", 30, "c.TEST");
	dnsreply_cname(&reply, NULL, 200, "b.test");
	dnsreply_address(&reply, NULL, 5, "192.0.2.9");
	expect_answer(DNS_OK, 1, 30);
	ck_assert_mem_eq(answer.records[0].addr, "\xc0\0\2\1", 4);
	ck_assert_uint_eq(answer.records[0].ttl, 30);
}
END_TEST

static void
chain(int links)
{
	char from[32], to[32];

	ask("n0.test", DNS_A);
	for (int i = 0; i < links; i++) {
		snprintf(from, sizeof from, "n%d.test", i);
		snprintf(to, sizeof to, "n%d.test", i + 1);
		dnsreply_cname(&reply, from, 60, to);
	}
	snprintf(to, sizeof to, "n%d.test", links);
	dnsreply_address(&reply, to, 60, "192.0.2.1");
}

START_TEST(alias_chain_is_bounded)
{
	chain(DNS_MAX_CHAIN);
	expect_answer(DNS_OK, 1, 60);
	chain(DNS_MAX_CHAIN + 1);
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, "a.test", 60, "b.test");
	dnsreply_cname(&reply, "b.test", 60, "a.test");
	expect_malformed();
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 60, "a.test");
	expect_malformed();
}
END_TEST

static void
expect_alias(const char *name, unsigned links, uint32_t ttl)
{
	uint8_t wire[256];
	size_t len = dnsreply_name(name, wire);

	ck_assert_int_eq(judge(), DNSWIRE_ALIAS);
	ck_assert_uint_eq(answer.count, 0);
	ck_assert_uint_eq(answer.links, links);
	ck_assert_uint_eq(answer.ttl, ttl);
	ck_assert_uint_eq(answer.alias.len, len);
	ck_assert_mem_eq(answer.alias.bytes, wire, len);
}

/* A chain that leaves the message is to be followed by another question. */
START_TEST(alias_leads_out)
{
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 200, "b.test");
	expect_alias("b.test", 1, 200);
	dnsreply_cname(&reply, "B.test", 30, "C.other");
	expect_alias("C.other", 2, 30);
	/* An authoritative server, with the name servers of its own zone. */
	dnsreply_clear(&reply, DNSREPLY_RA);
	dnsreply_set(&reply, DNSREPLY_AA);
	expect_alias("C.other", 2, 30);
	/* Its word on its own zone is none on the other one. */
	dnsreply_soa(&reply, "test", 50, 70);
	expect_alias("C.other", 2, 30);

	/* Records of another type or name there are not what was asked for. */
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 200, "b.test");
	dnsreply_address(&reply, "b.test", 60, "2001:db8::1");
	dnsreply_address(&reply, "c.test", 60, "192.0.2.1");
	expect_alias("b.test", 1, 200);

	/* That there is no such name is about the end of the chain. */
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 200, "b.test");
	dnsreply_rcode(&reply, 3);
	expect_answer(DNS_NXDOMAIN, 0, 0);

	ask("_s._udp.test", DNS_SRV);
	dnsreply_cname(&reply, NULL, 9, "_s._udp.other");
	expect_alias("_s._udp.other", 1, 9);
}
END_TEST

START_TEST(renamed_question)
{
	struct dnswire_name name, other;
	struct dnswire_question want;

	ck_assert_int_eq(
	    dnswire_question_init(&q, "a.test", DNS_AAAA, true), 0);
	ck_assert_int_eq(
	    dnswire_question_init(&want, "Longer.b.test", DNS_AAAA, true), 0);
	dnswire_question_name(&want, &name);
	ck_assert_uint_eq(name.len, want.len - 4);
	dnswire_question_rename(&q, &name);
	ck_assert_uint_eq(q.len, want.len);
	ck_assert_mem_eq(q.bytes, want.bytes, want.len);
	ck_assert(q.require_ad && q.type == DNS_AAAA);
	other = name;
	other.bytes[1] ^= 0x20;
	ck_assert(dnswire_same_name(&name, &other));
	other.bytes[1]++;
	ck_assert(!dnswire_same_name(&name, &other));
	other = name;
	other.len--;
	ck_assert(!dnswire_same_name(&name, &other));
}
END_TEST

/* ----------------------------------------------------------------- glue */

static void
expect_glue(
    size_t at, enum dns_type type, size_t record, uint32_t ttl, uint8_t last)
{
	const struct dns_glue *glue = &answer.glue[at];

	ck_assert_uint_lt(at, answer.glue_count);
	ck_assert_int_eq(glue->type, type);
	ck_assert_uint_eq(glue->record, record);
	ck_assert_uint_eq(glue->ttl, ttl);
	ck_assert_uint_eq(glue->addr[type == DNS_A ? 3 : 15], last);
	/* The rest of an IPv4 address is zero, so that they compare. */
	ck_assert(type != DNS_A || memcmp(glue->addr + 4, "\0\0\0\0", 4) == 0);
}

static void
glued(const char *owner)
{
	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, "s-1.Test");
	dnsreply_srv(&reply, NULL, 60, 2, "s-2.test");
	dnsreply_srv(&reply, NULL, 60, 3, "s-2.test");
	dnsreply_glue(&reply, owner, 50, "192.0.2.1");
}

START_TEST(glue)
{
	glued("S-1.tEST");
	dnsreply_glue(&reply, "s-2.test", 0x80000000, "2001:db8::2");
	expect_answer(DNS_OK, 3, 60);
	ck_assert_uint_eq(answer.glue_count, 2);
	expect_glue(0, DNS_A, 0, 50, 1);
	expect_glue(1, DNS_AAAA, 1, 0, 2);
	/* Another answer has none of it. */
	ask("s-1.test", DNS_A);
	dnsreply_address(&reply, NULL, 60, "192.0.2.9");
	dnsreply_glue(&reply, "s-1.test", 50, "192.0.2.1");
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(answer.glue_count, 0);
}
END_TEST

/* Only in the additional section, for exactly a target of this answer. */
START_TEST(glue_of_others)
{
	static const char *const foreign[] = {"s-3.test", "test", "",
	    "x.s-1.test", "s-1.test.other", "_s._udp.test", "s 1.test"};

	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		glued(foreign[i]);
		expect_answer(DNS_OK, 3, 60);
		ck_assert_msg(answer.glue_count == 0, "%s", foreign[i]);
	}
	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, "s-1.test");
	dnsreply_address(&reply, "s-1.test", 60, "192.0.2.1");
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(answer.glue_count, 0);
	/* The root as target has no addresses. */
	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, "");
	dnsreply_glue(&reply, "", 50, "192.0.2.1");
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(answer.glue_count, 0);
	/* What is broken there is broken all the same. */
	glued("s-1.test");
	dnsreply_record(
	    &reply, DNSREPLY_ADDITIONAL, "s-1.test", DNS_A, 60, "abc", 3);
	expect_malformed();
}
END_TEST

/* AD does not cover the additional section. */
START_TEST(glue_is_not_authentic)
{
	glued("s-1.test");
	dnsreply_set(&reply, DNSREPLY_AD);
	expect_answer(DNS_OK, 3, 60);
	ck_assert_uint_eq(answer.glue_count, 1);
	q.require_ad = true;
	expect_answer(DNS_OK, 3, 60);
	ck_assert_uint_eq(answer.glue_count, 0);
}
END_TEST

START_TEST(glue_is_capped)
{
	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, "s-1.test");
	for (int i = 1; i < DNSSCAN_MAX_RECORDS; i++)
		dnsreply_glue(&reply, "s-1.test", 60, "192.0.2.1");
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(answer.glue_count, DNSSCAN_MAX_RECORDS - 1);
	dnsreply_glue(&reply, "s-1.test", 60, "192.0.2.1");
	expect_malformed();
}
END_TEST

START_TEST(odd_ttls)
{
	ask("a.test", DNS_A);
	dnsreply_address(&reply, NULL, 0x80000000, "192.0.2.1");
	expect_answer(DNS_OK, 1, 0);
	ask("a.test", DNS_A);
	dnsreply_address(&reply, NULL, 0x7fffffff, "192.0.2.1");
	expect_answer(DNS_OK, 1, 0x7fffffff);
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 0xffffffff, "b.test");
	dnsreply_address(&reply, "b.test", 60, "192.0.2.1");
	expect_answer(DNS_OK, 1, 0);
}
END_TEST

START_TEST(negative)
{
	ask("a.b.test", DNS_A);
	dnsreply_rcode(&reply, 3);
	expect_answer(DNS_NXDOMAIN, 0, 0);
	dnsreply_soa(&reply, "test", 900, 70);
	expect_answer(DNS_NXDOMAIN, 0, 70);

	ask("a.b.test", DNS_A);
	dnsreply_soa(&reply, "b.test", 50, 70);
	expect_answer(DNS_NODATA, 0, 50);
	/* An SOA of somebody else, and one that only looks like a suffix. */
	ask("a.b.test", DNS_A);
	dnsreply_soa(&reply, "c.test", 50, 70);
	expect_answer(DNS_NODATA, 0, 0);
	ask("ab.test", DNS_A);
	dnsreply_soa(&reply, "b.test", 50, 70);
	expect_answer(DNS_NODATA, 0, 0);
	/* The end of an alias decides, and its TTL counts. */
	ask("a.test", DNS_A);
	dnsreply_cname(&reply, NULL, 20, "x.other");
	dnsreply_soa(&reply, "other", 50, 70);
	expect_answer(DNS_NODATA, 0, 20);
}
END_TEST

/* An empty answer of a server that does not look further says nothing. */
START_TEST(referral)
{
	static const uint8_t ns[] = {2, 'n', 's', 0};

	ask("a.test", DNS_A);
	dnsreply_record(
	    &reply, DNSREPLY_AUTHORITY, "test", 2, 60, ns, sizeof ns);
	expect_answer(DNS_NODATA, 0, 0);
	dnsreply_clear(&reply, DNSREPLY_RA);
	ck_assert_int_eq(judge(), DNSWIRE_FAILED);
	dnsreply_set(&reply, DNSREPLY_AA);
	expect_answer(DNS_NODATA, 0, 0);
}
END_TEST

START_TEST(srv_targets)
{
	uint8_t odd[] = {0, 0, 0, 0, 0, 9, 3, 'a', 0, 'b', 0};

	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, "s-1.A_b.example");
	dnsreply_srv(&reply, NULL, 50, 0, "");
	dnsreply_srv(&reply, NULL, 5, 2, "sp ace.example");
	dnsreply_record(
	    &reply, DNSREPLY_ANSWER, NULL, DNS_SRV, 5, odd, sizeof odd);
	dnsreply_srv(&reply, NULL, 40, 65535, "\xc3\xa9.example");
	expect_answer(DNS_OK, 2, 50);
	ck_assert_uint_eq(answer.skipped, 3);
	ck_assert_str_eq(answer.records[0].target, "s-1.A_b.example");
	ck_assert_uint_eq(answer.records[0].port, 1);
	ck_assert_str_eq(answer.records[1].target, "");
}
END_TEST

/* The longest name there is, as a target. */
START_TEST(longest_target)
{
	char text[400];

	longest_name(text);
	ask("_s._udp.test", DNS_SRV);
	dnsreply_srv(&reply, NULL, 60, 1, text);
	expect_answer(DNS_OK, 1, 60);
	ck_assert_uint_eq(strlen(text), 253);
	ck_assert_str_eq(answer.records[0].target, text);
}
END_TEST

START_TEST(records_are_capped)
{
	ask("a.test", DNS_A);
	for (int i = 0; i < DNSSCAN_MAX_RECORDS; i++)
		dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	expect_answer(DNS_OK, DNS_MAX_RECORDS, 60);
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	expect_malformed();
}
END_TEST

/* ------------------------------------------------------------- verdicts */

START_TEST(rcodes)
{
	static const enum dnswire_verdict want[] = {DNSWIRE_ANSWER,
	    DNSWIRE_NO_EDNS, DNSWIRE_FAILED, DNSWIRE_ANSWER, DNSWIRE_NO_EDNS,
	    DNSWIRE_FAILED, DNSWIRE_FAILED};
	static const uint8_t badvers[] = {0, 0, 41, 4, 0xd0, 1, 0, 0, 0, 0, 0};

	for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++) {
		ask("a.test", DNS_A);
		dnsreply_rcode(&reply, i);
		ck_assert_int_eq(judge(), want[i]);
		q.edns = false;
		ck_assert_int_eq(judge(),
		    want[i] == DNSWIRE_NO_EDNS ? DNSWIRE_FAILED : want[i]);
	}
	/* The upper bits are in the OPT record. */
	ask("a.test", DNS_A);
	dnsreply_raw(&reply, DNSREPLY_ADDITIONAL, badvers, sizeof badvers);
	ck_assert_int_eq(judge(), DNSWIRE_NO_EDNS);
	reply.bytes[3] |= 7; /* 23, BADCOOKIE */
	ck_assert_int_eq(judge(), DNSWIRE_FAILED);
}
END_TEST

START_TEST(truncation)
{
	uint8_t *msg = reply.bytes;

	ask("a.test", DNS_A);
	dnsreply_set(&reply, DNSREPLY_TC);
	msg[7] = 99; /* records that are not there */
	ck_assert_int_eq(judge(), DNSWIRE_TRUNCATED);
	ck_assert_int_eq(
	    dnswire_read(&q, msg, reply.len, true, &answer), DNSWIRE_MALFORMED);
}
END_TEST

START_TEST(authentic_data)
{
	ask("a.test", DNS_A);
	q.require_ad = true;
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	ck_assert_int_eq(judge(), DNSWIRE_UNAUTHENTIC);
	dnsreply_set(&reply, DNSREPLY_AD);
	expect_answer(DNS_OK, 1, 60);
	ask("a.test", DNS_A);
	q.require_ad = true;
	dnsreply_rcode(&reply, 3);
	ck_assert_int_eq(judge(), DNSWIRE_UNAUTHENTIC);
	ask("a.test", DNS_A);
	q.require_ad = true;
	dnsreply_cname(&reply, NULL, 60, "b.test");
	ck_assert_int_eq(judge(), DNSWIRE_UNAUTHENTIC);
	dnsreply_set(&reply, DNSREPLY_AD);
	expect_alias("b.test", 1, 60);
}
END_TEST

START_TEST(mismatches)
{
	size_t whole;

	ask("a.test", DNS_A);
	dnsreply_address(&reply, NULL, 60, "192.0.2.1");
	whole = reply.len;
	ck_assert_int_eq(judge(), DNSWIRE_ANSWER);
	/* Each bit of the id, QR, opcode, QDCOUNT and the question counts. */
	for (size_t bit = 0; bit < 8 * (DNSSCAN_HEADER_LEN + q.len); bit++) {
		size_t at = bit / 8;
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		if ((at == 2 && mask < 0x08) || at == 3 ||
		    (at >= 6 && at < DNSSCAN_HEADER_LEN))
			continue;
		reply.bytes[at] ^= mask;
		ck_assert_msg(judge() == DNSWIRE_MISMATCH, "bit %zu", bit);
		reply.bytes[at] ^= mask;
	}
	for (reply.len = 0; reply.len < DNSSCAN_HEADER_LEN + q.len; reply.len++)
		ck_assert_int_eq(judge(), DNSWIRE_MISMATCH);
	for (; reply.len < whole; reply.len++)
		ck_assert_int_eq(judge(), DNSWIRE_MALFORMED);
	ck_assert_int_eq(judge(), DNSWIRE_ANSWER);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dnswire");
	TCase *tc = tcase_create("dnswire");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, query_bytes);
	tcase_add_test(tc, names);
	tcase_add_test(tc, random_case);
	tcase_add_test(tc, golden_srv);
	tcase_add_test(tc, addresses);
	tcase_add_test(tc, alias_chain);
	tcase_add_test(tc, alias_chain_is_bounded);
	tcase_add_test(tc, alias_leads_out);
	tcase_add_test(tc, renamed_question);
	tcase_add_test(tc, glue);
	tcase_add_test(tc, glue_of_others);
	tcase_add_test(tc, glue_is_not_authentic);
	tcase_add_test(tc, glue_is_capped);
	tcase_add_test(tc, odd_ttls);
	tcase_add_test(tc, negative);
	tcase_add_test(tc, referral);
	tcase_add_test(tc, srv_targets);
	tcase_add_test(tc, longest_target);
	tcase_add_test(tc, records_are_capped);
	tcase_add_test(tc, rcodes);
	tcase_add_test(tc, truncation);
	tcase_add_test(tc, authentic_data);
	tcase_add_test(tc, mismatches);
	suite_add_tcase(s, tc);
	return harness_run(s);
}
