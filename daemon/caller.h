/*
 * Whoever may ask for checks: a client over IPC, a request over HTTP. The same
 * path and the same caps for all of them; only how a decision is told differs,
 * and that is the hooks' business. Embedded by its owner, who fills in hooks,
 * uid and gid. Its port and what its uid uses are the dispatcher's.
 */
#ifndef DAEMON_CALLER_H
#define DAEMON_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config.h"
#include "proto/ipc.h"

/* Of a caller that the kernel tells nothing of: no process has them. */
#define CALLER_NO_UID ((uid_t)-1)
#define CALLER_NO_GID ((gid_t)-1)

struct caller;
struct dispatch;
struct port;
struct request;
struct use;

struct caller_hooks {
	/* Once for each check. All is borrowed for the call; rule is NULL for
	 * an ad-hoc check, and when the rule is not known. */
	void (*decided)(struct caller *c, uint64_t id,
	    const struct config_rule *rule, const struct ipc_decision *d);
	/* It is leaving, and nothing of it is in flight any more. */
	void (*left)(struct caller *c);
	/* What is being read was written after this, loop_now() time; negative
	 * when nobody knows. Asked of resends only. */
	int64_t (*empty_at)(const struct caller *c);
};

struct caller {
	const struct caller_hooks *hooks;
	struct dispatch *dispatch;
	struct port *port;
	struct use *all;          /* of its uid, on all ports */
	struct use *here;         /* on this one */
	struct request *requests; /* in flight */
	uint64_t serial;          /* no other one ever has it */
	uid_t uid;
	gid_t gid;
	bool leaving; /* was told to go away; closed when all is answered */
};

/*
 * Admits one that came through the port on a socket: counts it, and returns
 * NULL, or else what it is refused for. Then it is not to be ended.
 */
const char *caller_admit(struct caller *c, struct port *port, int fd);
/* Its checks are cancelled; each is told of first. */
void caller_end(struct caller *c);

/* Is its port still there? Not after a reload that closed it. */
bool caller_may_stay(const struct caller *c);

/* The gateway that it came through; NULL for IPC, and when it may not stay. */
const struct config_gateway *caller_gateway(const struct caller *c);
/* Is it one that the kernel tells nothing of: over TCP? */
bool caller_is_unknown(const struct caller *c);

/* A check of a rule; arrived: when it came, loop_now() time. */
void dispatch_check_rule(
    struct caller *c, uint64_t id, const struct ipc_check *m, int64_t arrived);
void dispatch_cancel(struct caller *c, uint64_t id);

#endif
