/*
 * Loads the configuration again while the agent runs: on SIGHUP, on RELOAD,
 * and when the file or a key file has changed. A file that is not good changes
 * nothing; a good one is in force as soon as its tenants know their servers,
 * or after RELOAD_READY_US at the latest. Owns what is loaded and not in force
 * yet.
 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "daemon/agent.h"

#define RELOAD_READY_US 5000000
/* While the last load failed, it is tried again, in case that what it lacked
 * (a key, a right, a group) is there by now. */
#define RELOAD_AGAIN_US 5000000

struct reload;

/* Borrows the agent. NULL without memory; without inotify it does not watch. */
struct reload *reload_new(struct agent *agent);
/* Before the agent. Takes NULL. */
void reload_free(struct reload *reload);

#endif
