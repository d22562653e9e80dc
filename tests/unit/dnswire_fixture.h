/*
 * One question, a reply to it under construction, and its verdict: what the
 * tests of dnswire and dnsscan share. Include it after the header under test.
 */
#ifndef TESTS_UNIT_DNSWIRE_FIXTURE_H
#define TESTS_UNIT_DNSWIRE_FIXTURE_H

#include <string.h>

#include "daemon/io/dnswire.h"
#include "tests/unit/dnsreply.h"
#include "tests/unit/harness.h"

/* As long as a label may be. */
static const char label63[] =
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-0123456789";

static struct dnswire_question q;
static struct dnsreply reply;
static struct dnswire_answer answer;

/* The question for a name with a fixed id and letter case, and its reply. */
static inline void
ask(const char *name, enum dns_type type)
{
	uint8_t random[DNSWIRE_RANDOM_LEN];

	ck_assert_int_eq(dnswire_question_init(&q, name, type, false), 0);
	memset(random, 0x5a, sizeof random);
	dnswire_question_mix(&q, random);
	dnsreply_init(&reply, q.id, q.bytes, q.len);
}

/* Judged from an allocation of the exact size, so that ASan sees overruns. */
static inline enum dnswire_verdict
judge(void)
{
	uint8_t *copy = malloc(reply.len > 0 ? reply.len : 1);
	enum dnswire_verdict verdict;

	memcpy(copy, reply.bytes, reply.len);
	memset(&answer, 0xee, sizeof answer);
	verdict = dnswire_read(&q, copy, reply.len, false, &answer);
	free(copy);
	return verdict;
}

static inline void
expect_answer(enum dns_status status, size_t count, uint32_t ttl)
{
	ck_assert_int_eq(judge(), DNSWIRE_ANSWER);
	ck_assert_int_eq(answer.status, status);
	ck_assert_uint_eq(answer.count, count);
	ck_assert_uint_eq(answer.ttl, ttl);
}

static inline void
expect_malformed(void)
{
	ck_assert_int_eq(judge(), DNSWIRE_MALFORMED);
}

/* Four labels to 255 bytes with their lengths, the most there may be. */
static inline void
longest_name(char text[400])
{
	snprintf(
	    text, 400, "%s.%s.%s.%.61s", label63, label63, label63, label63);
}

#endif
