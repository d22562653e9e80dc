/*
 * The documents that are asked for over IPC or HTTP, made when they are, or
 * kept for a while where making them takes long. Part of the agent.
 */
#ifndef DAEMON_AGENT_DOCUMENT_H
#define DAEMON_AGENT_DOCUMENT_H

#include <stdint.h>

#include "daemon/config.h"
#include "daemon/rules.h"

struct agent;

/* As the hooks of dispatch.h; arg is the agent. */
char *agent_document(
    void *arg, uint16_t type, const struct config_listener *by);
char *agent_explain(void *arg, const struct config_listener *by,
    const struct config_rule *rule, const struct rules_caller *caller,
    uint32_t tokens);
/* Those that are kept. */
void agent_documents_free(struct agent *agent);

#endif
