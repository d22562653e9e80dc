/*
 * The hash by which agent and shims tell one configuration from another: of
 * all that decides, and of no secret.
 */
#ifndef DAEMON_CONFIG_HASH_H
#define DAEMON_CONFIG_HASH_H

#include "daemon/config_walk.h"

/* Sets w->config->hash; the tenants are parsed. Writes the error itself. */
int config_hash(struct walk *w, json_t *root);

#endif
