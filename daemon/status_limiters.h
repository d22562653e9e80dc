/*
 * The document that LIMITERS answers with, as JSON text: what there is of
 * limiters, error controls and local limiters of rules, and what became of
 * them. Field names are in rlctl(1).
 */
#ifndef DAEMON_STATUS_LIMITERS_H
#define DAEMON_STATUS_LIMITERS_H

#include "daemon/config.h"
#include "daemon/setup.h"

/* by: the listener that asks, NULL for the control socket. malloc()ed, the
 * caller's; NULL without memory. */
char *status_limiters(
    const struct setup *setup, const struct config_listener *by, int64_t now);

#endif
