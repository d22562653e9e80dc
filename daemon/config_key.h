/*
 * Where a tenant's API key comes from: {"file": PATH}, {"credential": NAME}
 * in $CREDENTIALS_DIRECTORY (systemd), or {"env": VARIABLE}. No text of a key
 * outlives the call, and none is ever part of an error.
 */
#ifndef DAEMON_CONFIG_KEY_H
#define DAEMON_CONFIG_KEY_H

#include "daemon/config_walk.h"

/* A WALK_FUNC function; where is a struct credential. */
int config_key_parse(struct walk *w, json_t *json, void *where);

#endif
