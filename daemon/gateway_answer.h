/*
 * From a decision, or what keeps one from being asked for, to the status, the
 * fields and the one line of an HTTP answer.
 */
#ifndef DAEMON_GATEWAY_ANSWER_H
#define DAEMON_GATEWAY_ANSWER_H

#include "daemon/gateway_fields.h"
#include "daemon/io/http.h"

#define GATEWAY_LINE_MAX (IPC_MAX_TEXT + 32)

/* An answer and what it borrows. */
struct gateway_answer {
	struct http_answer is;
	char line[GATEWAY_LINE_MAX];
	char retry_after[16];
	char policy[GATEWAY_FIELD_MAX];
	char limit[GATEWAY_FIELD_MAX];
};

/* text, less than GATEWAY_LINE_MAX, gets a newline. */
void gateway_answer_line(
    struct gateway_answer *a, unsigned int status, const char *text);
/* Any text, which is borrowed, of another type. */
void gateway_answer_document(
    struct gateway_answer *a, const char *type, const char *text);
/* A value is borrowed; "" is left out. */
void gateway_answer_field(
    struct gateway_answer *a, const char *name, const char *value);
/* rule may be NULL. Borrows nothing of d and rule. */
void gateway_answer_decision(struct gateway_answer *a,
    const struct config_rule *rule, const struct ipc_decision *d,
    unsigned int deny_status);

#endif
