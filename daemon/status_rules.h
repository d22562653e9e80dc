/*
 * The documents of RULES and EXPLAIN: the rules in force, and what a check of
 * one of them would send. malloc()ed JSON, or NULL without memory.
 */
#ifndef DAEMON_STATUS_RULES_H
#define DAEMON_STATUS_RULES_H

#include <stdint.h>

#include "daemon/rules.h"
#include "daemon/setup.h"

/* by: the listener that asks, NULL for the control socket. */
char *status_rules(const struct setup *setup, const struct config_listener *by);

/* A rule of that setup. Nothing is sent or counted. */
char *status_explain(const struct setup *setup,
    const struct config_listener *by, const struct config_rule *rule,
    const struct rules_caller *caller, uint32_t tokens);

#endif
