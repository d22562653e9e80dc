/*
 * The documents that STATUS, SERVERS and POLICY answer with, as JSON text.
 * Field names are in rlctl(1); no secret is in them.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/agent.h"

/* malloc()ed, the caller's; NULL without memory. */
char *status_document(const struct agent *agent);
char *status_servers(const struct agent *agent);
char *status_policy(const struct agent *agent);

/* What is wrong with a tenant, by its name in daemon/diagnosis.h; static. */
const char *status_diagnosis(const struct tenant *tenant);

#endif
