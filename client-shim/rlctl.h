/*
 * What the files of rlctl(1) share: the global options, exit codes and small
 * parsers. One file per group of commands; each command gets its own argv,
 * with its name at argv[0].
 */
#ifndef RLCTL_H
#define RLCTL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client-shim/rlshim.h"

/* Of every command but check, run, acquire and errctl, which exit by the
 * outcome. */
#define RLCTL_OK    0
#define RLCTL_ERROR 1
#define RLCTL_USAGE 64

struct rlctl {
	const char *socket;  /* NULL: the shim's default */
	const char *control; /* NULL: control.sock beside the socket */
	int json;
	uint32_t timeout_ms; /* 0: the default */
};

typedef int rlctl_command(struct rlctl *ctl, int argc, char **argv);

rlctl_command rlctl_check;
rlctl_command rlctl_report;
rlctl_command rlctl_status;
rlctl_command rlctl_servers;
rlctl_command rlctl_policy;
rlctl_command rlctl_rules;
rlctl_command rlctl_explain;
rlctl_command rlctl_run;
rlctl_command rlctl_ping;
rlctl_command rlctl_wait;
rlctl_command rlctl_health;
rlctl_command rlctl_reload;
rlctl_command rlctl_drain;
rlctl_command rlctl_quit;
rlctl_command rlctl_acquire;
rlctl_command rlctl_errctl;
rlctl_command rlctl_limiters;
rlctl_command rlctl_metrics;
rlctl_command rlctl_top;
rlctl_command rlctl_set_rate;
rlctl_command rlctl_bench;
rlctl_command rlctl_key;

/* A decision in the form that was asked for; detail may be NULL. */
void rlctl_print(FILE *to, const struct rlctl *ctl,
    const struct rl_decision *decision, const struct rl_detail *detail);
/* That of a limiter or error control as JSON, with its wait. */
void rlctl_print_wait(FILE *to, const struct rl_decision *decision);
/* A name, any bytes: what could steer a terminal becomes "?". */
void rlctl_write_name(FILE *to, const char *name, size_t len);
void rlctl_print_name(const char *name, size_t len); /* to stdout */
/* Exits 64 when there are arguments from optind on. */
void rlctl_no_more(const char *command, int argc, char **argv);
/* The agent's document of that name, for the caller to json_decref(); NULL
 * after the line that says why there is none. */
struct json_t;
struct json_t *rlctl_document(struct rlctl *ctl, const char *what);
/* The same of a call that was made: takes client and text. */
struct json_t *rlctl_answer(
    struct rl_client *client, const char *what, int status, char *text);
/* To stdout, in one line. */
void rlctl_print_json(const struct json_t *document);
/* A string of an object to stdout, as a name; "-" for none. */
void rlctl_print_field(const struct json_t *from, const char *name);
/* "name: value" lines, two spaces deeper under each name that has its own. */
void rlctl_print_tree(const struct json_t *value, int depth);
/* RLCTL_OK when all of the output was written, or the line and RLCTL_ERROR. */
int rlctl_written(const char *command);
/* A command that shows a document of the agent, --json as it is, else with
 * print. Takes --timeout and --json and no argument. */
int rlctl_show(struct rlctl *ctl, const char *what, int argc, char **argv,
    void (*print)(const struct json_t *document));
/* One line to stderr, "rlctl: ...", cut to 2 KiB. Returns status. */
int rlctl_fail(int status, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A whole decimal number in min..max, or exits 64 naming the option. */
uint32_t rlctl_number(
    const char *option, const char *text, uint32_t min, uint32_t max);
uint64_t rlctl_long_number(
    const char *option, const char *text, uint64_t min, uint64_t max);
/*
 * A client of the application socket, or exits. Until rlctl_close() the first
 * SIGINT and the first SIGTERM interrupt its call; a second of the same kills.
 */
struct rl_client *rlctl_open(struct rlctl *ctl, enum rl_failure on_failure);
/* The same for the control socket. */
struct rl_client *rlctl_open_control(struct rlctl *ctl);
/* Has a signal come in the time of a client, or since the watch? */
int rlctl_signalled(void);
/* Without a client: the first SIGINT and the first SIGTERM end nothing. */
void rlctl_watch_signals(void);
/* The path of the application socket. */
const char *rlctl_socket(const struct rlctl *ctl);
/* That of the control socket, which may be put together in room. */
const char *rlctl_control_socket(
    const struct rlctl *ctl, char *room, size_t size);
/* Takes what they gave. */
void rlctl_close(struct rl_client *client);
/* The line for a call that failed. Returns RLCTL_ERROR. */
int rlctl_call_failed(
    const struct rl_client *client, const char *command, int status);

#endif
