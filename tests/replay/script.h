/*
 * One replay script and the operation that it plays. See README for the
 * language. Invariant: the first fault stops the script and is kept.
 */
#ifndef TESTS_REPLAY_SCRIPT_H
#define TESTS_REPLAY_SCRIPT_H

#include <stdio.h>

#include "daemon/core/members.h"
#include "tests/unit/policy_oracle.h"

#define SCRIPT_WORDS_MAX 80
#define SCRIPT_LINE_LEN  512

enum script_outcome { OUTCOME_NONE, OUTCOME_ALLOWED, OUTCOME_DENIED };

struct script {
	int line;
	char text[SCRIPT_LINE_LEN]; /* of the line, without its comment */
	char *words[SCRIPT_WORDS_MAX];
	int count;
	int at; /* the next word to look at */

	struct policy policy;
	bool have_policy;
	bool accepted;
	uint32_t servers;
	struct members *members;  /* as discovered; NULL: only a number */
	struct members *snapshot; /* of the last operation */
	bool running; /* an operation was started and has not completed */
	int64_t now;
	struct oracle o;
	bool kept; /* the last answer became the candidate */
	enum script_outcome kept_outcome; /* what the candidate said */
	unsigned expects;

	char fault[1024]; /* empty, or what went wrong in line */
};

/* Plays a whole script; s->fault tells how it went. */
void script_play(struct script *s, FILE *f);

#endif
