/*
 * The words of one line of a script, and the first fault of the whole script.
 * Invariant: the first fault is kept, and after it nothing counts.
 */
#ifndef TESTS_WORLD_WORDS_H
#define TESTS_WORLD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_MAX      64
#define WORDS_LINE_LEN 512

struct words {
	int line;
	char text[WORDS_LINE_LEN]; /* of the line, without its comment */
	char bytes[WORDS_LINE_LEN];
	char *list[WORDS_MAX];
	int count;
	int at; /* the next word to look at */
	char fault[1024];
};

/* Takes the next line apart. */
void words_split(struct words *w, const char *line);

void words_fault(struct words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool words_failed(const struct words *w);

bool words_more(const struct words *w);
/* Those that find another word than they need make it a fault. */
const char *words_next(struct words *w);
bool words_accept(struct words *w, const char *want);
/* The same for the start of the next word; *rest is what follows it. */
bool words_accept_prefix(struct words *w, const char *want, const char **rest);
/* Is the next word a number? */
bool words_have_number(const struct words *w);
/* Decimal, up to max. */
uint64_t words_number(struct words *w, uint64_t max);
/* Microseconds; with the endings us, ms or s. */
int64_t words_time(struct words *w);
/* on or off */
bool words_switch(struct words *w);

#endif
