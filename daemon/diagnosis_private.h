/*
 * What the files of the diagnosis module share: diagnosis.c (the judgements),
 * diagnosis_server.c and diagnosis_tenant.c (their words) and diagnosis_words.c
 * (how words are put together). Nobody else includes this.
 */
#ifndef DAEMON_DIAGNOSIS_PRIVATE_H
#define DAEMON_DIAGNOSIS_PRIVATE_H

#include "daemon/diagnosis.h"

#define DIAGNOSIS_ONE(code, name, meaning) +1
#define DIAGNOSIS_CODES                    (0 DIAGNOSES(DIAGNOSIS_ONE))

struct server_view {
	const struct diagnosis_facts *facts;
	const struct peer *peer;
	bool others_answer; /* since it was asked; for the words alone */
};

struct tenant_view {
	const struct diagnosis_facts *facts;
	uint32_t counts[DIAGNOSIS_CODES]; /* servers, by their code */
	uint32_t clocks;                  /* servers that ever answered */
	uint32_t ahead;                   /* of this one for sure, too far */
	uint32_t behind;
	uint32_t refusing; /* servers, by ICMP, since they answered */
	enum diagnosis_code codes[MEMBERS_MAX];
};

/* Of n values, at least one, which it sorts; the lower of two. */
int64_t diagnosis_median(int64_t *values, size_t n);

/* Has it been tried, and does not answer as it should? */
bool diagnosis_unwell(enum diagnosis_code code);

/* Operations without guards were answered, with guards not one; and every plain
 * one has been, up to the last. */
bool diagnosis_only_guards(const struct peers *peers);

/* An ICMP error came back since it answered last. */
bool diagnosis_refusing(const struct peer *peer);

/* 1: its clock is ahead of this one for sure by more than DIAGNOSIS_CLOCK_MS,
 * -1: behind, 0: neither is known. */
int diagnosis_clock_sign(const struct peer *peer);

/* A sentence being put together; begins as all zero. */
struct words {
	size_t len;
	char text[DIAGNOSIS_TEXT_MAX];
};
void words_add(struct words *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "0.3 s", "45 s", "12 min", "7 h", "3 days", to the nearest. */
void words_span(struct words *w, int64_t us);
/* That, and "ago". */
void words_ago(
    struct words *w, const struct diagnosis_facts *facts, int64_t when);
/* "by 20 s"; the sign is for the caller to say. */
void words_apart(struct words *w, int64_t ms);
/* "; 18 datagrams came back from servers that were not asked", without the
 * semicolon. */
void words_strangers(struct words *w, const struct diagnosis_facts *facts);
/* "1 request", "2 requests" */
void words_count(
    struct words *w, uint64_t n, const char *one, const char *many);
void words_finish(const struct words *w, struct diagnosis *out);

/* Fill out->text for out->code. */
void diagnosis_say_server(const struct server_view *v, struct diagnosis *out);
void diagnosis_say_tenant(const struct tenant_view *v, struct diagnosis *out);

#endif
