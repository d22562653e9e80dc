/*
 * Bytes as a DNS response. The first one chooses the type of the question
 * (bits 0 and 1), TCP (bit 2), whether AD is required (bit 3) and whether the
 * header and question are put right first (bit 4), so that the rest is
 * reached. What is taken for an answer must be in order, and a message with a
 * byte behind it must not be taken.
 */
#include "daemon/io/dnswire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "_ratelimitly._udp.a.test"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "dns: does not hold: %s\n", what);
		abort();
	}
}

static void
check_target(const char *target)
{
	size_t len = strnlen(target, DNS_MAX_NAME);

	require(len < 254, "a target ends");
	require(target[strspn(target,
		    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		    "0123456789-_.")] == '\0',
	    "a target has host characters");
	require(len == 0 || target[len - 1] != '.', "no trailing dot");
	require(
	    target[0] != '.' && strstr(target, "..") == NULL, "no empty label");
}

static void
check_answer(const struct dnswire_answer *a, enum dns_type type)
{
	uint32_t least = INT32_MAX;

	require(a->status == DNS_OK || a->status == DNS_NODATA ||
		    a->status == DNS_NXDOMAIN,
	    "the status is one of an answer");
	require(a->count <= DNS_MAX_RECORDS, "the records are capped");
	require((a->status == DNS_OK) == (a->count > 0), "OK has records");
	require(a->ttl <= INT32_MAX, "the TTL is sane");
	for (size_t i = 0; i < a->count; i++) {
		require(a->records[i].type == type, "of the type asked for");
		check_target(a->records[i].target);
		if (a->records[i].ttl < least)
			least = a->records[i].ttl;
	}
	if (a->count > 0)
		require(a->ttl == least, "the least TTL");
}

/* Glue is of targets of the same answer, and only beside SRV without AD. */
static void
check_glue(const struct dnswire_answer *a, const struct dnswire_question *q)
{
	require(a->glue_count == 0 || (q->type == DNS_SRV && !q->require_ad),
	    "glue beside SRV without AD");
	for (size_t i = 0; i < a->glue_count; i++) {
		require(a->glue[i].type == DNS_A || a->glue[i].type == DNS_AAAA,
		    "glue is an address");
		require(a->glue[i].record < a->count, "glue has a target");
		require(a->records[a->glue[i].record].target[0] != '\0',
		    "no glue for the root");
		require(a->glue[i].ttl <= INT32_MAX, "its TTL is sane");
	}
}

/* A name that the next question can be made of. */
static void
check_alias(const struct dnswire_answer *a, struct dnswire_question q)
{
	uint8_t out[DNSWIRE_QUERY_MAX];
	size_t at = 0;

	require(a->count == 0, "an alias is all");
	require(a->links > 0 && a->links <= DNS_MAX_CHAIN, "of a short chain");
	require(a->alias.len > 0 && a->alias.len <= DNSSCAN_NAME_MAX,
	    "the alias fits");
	while (at < a->alias.len && a->alias.bytes[at] != 0)
		at += 1 + (size_t)a->alias.bytes[at];
	require(at == a->alias.len - 1, "the alias is one name");
	dnswire_question_rename(&q, &a->alias);
	require(dnswire_query(&q, out) <= sizeof out, "it can be asked for");
}

/* A response to the question, whatever the bytes say. */
static void
put_right(uint8_t *msg, const struct dnswire_question *q)
{
	msg[0] = (uint8_t)(q->id >> 8);
	msg[1] = (uint8_t)q->id;
	msg[2] = (uint8_t)((msg[2] | 0x80) & ~0x78);
	msg[4] = 0;
	msg[5] = 1;
	memcpy(msg + DNSSCAN_HEADER_LEN, q->bytes, q->len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum dns_type types[] = {
	    DNS_A, DNS_AAAA, DNS_SRV, DNS_SRV};
	static struct dnswire_answer answer;
	struct dnswire_question q;
	enum dnswire_verdict verdict;
	uint8_t *msg, *longer;
	size_t len;
	bool tcp;

	if (size == 0)
		return 0;
	require(dnswire_question_init(
		    &q, NAME, types[data[0] & 3], (data[0] & 8) != 0) == 0,
	    "the name is one");
	tcp = (data[0] & 4) != 0;
	len = size - 1;
	/* Of the exact size, so that ASan sees a byte too far. */
	msg = malloc(len > 0 ? len : 1);
	longer = malloc(size);
	if (msg == NULL || longer == NULL)
		goto out;
	memcpy(msg, data + 1, len);
	if ((data[0] & 16) != 0 && len >= DNSSCAN_HEADER_LEN + q.len)
		put_right(msg, &q);
	verdict = dnswire_read(&q, msg, len, tcp, &answer);
	if (verdict == DNSWIRE_ANSWER) {
		check_answer(&answer, q.type);
		check_glue(&answer, &q);
	} else if (verdict == DNSWIRE_ALIAS) {
		check_alias(&answer, q);
	}
	if (verdict == DNSWIRE_ANSWER || verdict == DNSWIRE_ALIAS) {
		memcpy(longer, msg, len);
		longer[len] = 0;
		require(dnswire_read(&q, longer, size, tcp, &answer) ==
			    DNSWIRE_MALFORMED,
		    "no answer with a byte behind it");
	}
out:
	free(longer);
	free(msg);
	return 0;
}
