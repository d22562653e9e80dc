/*
 * The one exit path of every check: outcome and reason in, permit and source
 * out. Failed and Cancelled are never turned into Allowed; the failure policy
 * touches permit alone, and only for the reasons it covers.
 */
#ifndef DAEMON_DECISION_H
#define DAEMON_DECISION_H

#include <stdbool.h>

#include "daemon/config.h"
#include "daemon/rules.h"
#include "daemon/tenant.h"
#include "proto/ipc.h"

#define DECISION_TEXT_MAX (IPC_MAX_TEXT + 1)

/* Does on_failure decide permit for this reason? */
bool decision_policy_applies(enum ipc_reason reason);

/* Nothing was asked for: allowed, source empty. */
void decision_empty(struct ipc_decision *d);
/* reason is one of those of a failed check; text is borrowed. */
void decision_failed(struct ipc_decision *d, enum ipc_reason reason,
    enum config_failure policy, const char *text);
/* What decision_failed() made for a reason that the policy covers: a local
 * limiter decides instead. wait_us: until it would permit; 0: nobody knows.
 * The text is borrowed from room. */
void decision_local(struct ipc_decision *d, bool granted, int64_t wait_us,
    char room[DECISION_TEXT_MAX]);
void decision_cancelled(struct ipc_decision *d);
/*
 * The rule only watches (mode shadow): what a server or the failure policy
 * refuses is permitted, and the source says so. A request that is wrong, and
 * one that was cancelled, are not permitted all the same.
 */
void decision_watch_only(struct ipc_decision *d);

/*
 * What a server decided. names is the request as it was asked, NULL when
 * nobody needs names (allowed, no detail); it is borrowed by *d.
 */
void decision_selected(struct ipc_decision *d,
    const struct tenant_result *result, const struct rules_request *names,
    bool detail);

#endif
