/*
 * The hash by which agent and shims tell whether a resent check still means
 * what it did: of what decides, and of nothing else, so that another log level
 * or cap interrupts nobody. No secret is part of it.
 */
#ifndef DAEMON_CONFIG_HASH_H
#define DAEMON_CONFIG_HASH_H

#include "daemon/config_walk.h"

/* Of any bytes. 0, or a negative number with the error of source written. */
int config_digest(const char *source, const void *bytes, size_t len,
    uint8_t out[CONFIG_HASH_LEN], char err[CONFIG_ERR_MAX]);
/* Sets w->config->hash; all the rest is parsed. Writes the error itself. */
int config_hash(struct walk *w, json_t *root);

#endif
