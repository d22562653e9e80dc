/*
 * Run-time control for tests: one command a line on standard input, one JSON
 * line on standard output for each. Quitting, or the end of the input, ends
 * the event loop.
 */
#ifndef SANDBOX_COMMAND_H
#define SANDBOX_COMMAND_H

#include <stdbool.h>

struct cluster;
struct command;
struct dnsd;
struct event_base;
struct events;
struct json_t;

struct command_target {
	struct cluster *cluster;
	struct dnsd *zone; /* NULL without DNS */
};

/*
 * Carries out one line without its newline, which it changes. Returns the
 * answer, or NULL without memory; sets *quit on "quit".
 */
struct json_t *command_run(
    const struct command_target *target, char *line, bool *quit);

/* Borrows all of them. NULL with errno when fd cannot be watched. */
struct command *command_new(struct event_base *base, int fd,
    const struct command_target *target, struct events *events);
void command_free(struct command *c);

#endif
