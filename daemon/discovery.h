/*
 * One tenant's discovery: SRV, then A and AAAA of each target, refreshed by
 * TTL, retried with back-off, forced on demand; the last good membership is
 * served stale while a refresh fails, and an empty answer must be confirmed
 * before it removes members. Owns its resolver; reports new snapshots.
 *
 * At most one round runs, so what is sent is bounded by discovery_round.h for
 * each; rounds begin forced_min_ms apart or more, and while they fail the
 * pause doubles up to 30 s, and is up to a tenth longer by chance, whatever
 * callers ask for.
 */
#ifndef DAEMON_DISCOVERY_H
#define DAEMON_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/core/members.h"
#include "daemon/io/loop.h"
#include "proto/random.h"

enum discovery_state {
	DISCOVERY_STATIC,      /* static servers: nothing to do */
	DISCOVERY_RUNNING,     /* the first answer is not in */
	DISCOVERY_READY,       /* members are known, maybe being refreshed */
	DISCOVERY_UNAVAILABLE, /* no member is known; a retry is due */
};

/* Lends the snapshot; members_ref() to keep it. Not called when equal. */
typedef void discovery_fn(void *arg, struct members *members);

struct discovery;

/*
 * Starts at once: with static servers the first snapshot is reported from a
 * deferred task, else when the first SRV round is complete. Borrows tenant,
 * loop and random for its life. NULL without memory.
 */
struct discovery *discovery_new(struct loop *loop, struct random_pool *random,
    const struct config_tenant *tenant, discovery_fn *fn, void *arg);
void discovery_free(struct discovery *d); /* takes NULL */
/* The same with another file than /etc/resolv.conf, borrowed for its life. */
struct discovery *discovery_new_with(struct loop *loop,
    struct random_pool *random, const struct config_tenant *tenant,
    const char *resolv_conf, discovery_fn *fn, void *arg);

/*
 * Right after discovery_new(): these members are the last good ones, as if an
 * earlier round had found them. They are not reported; the round that runs
 * already refreshes them. Takes its own reference. With static servers it only
 * keeps a report back that would say the same.
 */
void discovery_known(struct discovery *d, struct members *members);
/* No round any more, whatever callers ask for; one that runs ends without a
 * result. What is known stays. May be called from inside the report. */
void discovery_stop(struct discovery *d);

/*
 * Asks for a refresh soon: forced_min_ms after the last one at the earliest,
 * and later by up to jitter_ms. While rounds fail it changes nothing, since
 * the retry is due by its own pace; and after five that found the servers
 * that were known, the pause doubles from forced_min_ms to 30 s, until other
 * servers are found or nobody asks for a while.
 */
void discovery_force(struct discovery *d);

enum discovery_state discovery_state(const struct discovery *d);
/* "static", "discovering", "ready" or "unavailable". */
const char *discovery_state_name(enum discovery_state state);

struct discovery_counters {
	uint64_t refreshes; /* rounds begun */
	uint64_t forced;
	uint64_t failures;    /* rounds that brought nothing usable */
	uint64_t bad_targets; /* SRV targets without a server id or port */
	uint64_t missing_addresses; /* targets whose addresses failed */
	uint64_t dropped;           /* servers past the most that are kept */
	uint64_t changes;           /* snapshots reported */
};
const struct discovery_counters *discovery_counters(const struct discovery *d);
/* Why the last round failed, or "" when it did not; for status. */
const char *discovery_error(const struct discovery *d);
/* When the first of the rounds failed that have failed since the last good one;
 * 0 when the last one was good. */
int64_t discovery_failing_since(const struct discovery *d);
/* Of its resolver; NULL with static servers. */
struct dns_counters;
const struct dns_counters *discovery_dns(const struct discovery *d);
/* loop_now() time when DNS last named servers; 0: never, or static servers. */
int64_t discovery_found_at(const struct discovery *d);
/* loop_now() time of the next round, or POLICY_NEVER. */
int64_t discovery_next(const struct discovery *d);

#endif
