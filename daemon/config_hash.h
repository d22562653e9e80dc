/*
 * The hash by which agent and shims tell whether a resent check still means
 * what it did: of what decides, and of nothing else, so that another log level
 * or cap interrupts nobody. No secret is part of it.
 */
#ifndef DAEMON_CONFIG_HASH_H
#define DAEMON_CONFIG_HASH_H

#include "daemon/config_walk.h"

/* Sets w->config->hash; all the rest is parsed. Writes the error itself. */
int config_hash(struct walk *w, json_t *root);

#endif
