/*
 * One round of discovery: SRV, then A and AAAA of each distinct target at
 * once, but for what came along with the SRV answer, to the targets that the
 * next snapshot is built from. It decides nothing about time; discovery does.
 * Owned by discovery.
 *
 * Bounds of a round: one answer's DNS_MAX_RECORDS targets, so 1 + 2 *
 * DNS_MAX_RECORDS queries of DNS_QUERY_COST() each; of all these together
 * DISCOVERY_MAX_SENT datagrams and connections, the rest counts as unanswered.
 * In time, what two queries in a row may take (the SRV one and the last one)
 * and DISCOVERY_MAX_SENT / DNS_MAX_ACTIVE times the timeout of a try. Memory
 * is the struct in discovery_round.c and the queries' own.
 */
#ifndef DAEMON_DISCOVERY_ROUND_H
#define DAEMON_DISCOVERY_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/members.h"
#include "daemon/io/dns.h"

#define DISCOVERY_ERROR_MAX (2 * DNS_MAX_NAME + DNS_ERROR_MAX)
/* Enough to ask eight nameservers once for each of 256 sets of addresses. */
#define DISCOVERY_MAX_SENT 2048

enum discovery_verdict {
	DISCOVERY_FOUND, /* at least one target has an address */
	DISCOVERY_EMPTY, /* DNS says that there is no server: no such record,
			    no such name, or the root as target */
	DISCOVERY_FAILED,
};

struct discovery_result {
	enum discovery_verdict verdict;
	uint32_t ttl; /* seconds; of FOUND the least of SRV and addresses, of
			 EMPTY how long a cache keeps that answer */
	bool partial; /* FOUND, but some target may have more next time */
	uint32_t bad_targets;
	uint32_t missing_addresses;
	size_t count; /* of FOUND */
	const struct members_target *targets;
	const char *error; /* "" for FOUND */
};

struct discovery_round;

/*
 * Called once, from the loop, with what the round lends; the callee frees the
 * round.
 */
typedef void discovery_round_fn(
    void *arg, const struct discovery_result *result);

/*
 * Asks for the SRV records of _ratelimitly._udp.<name>. Borrows dns and old,
 * the snapshot in force (may be NULL), for its life. NULL without memory or
 * when that is no name.
 */
struct discovery_round *discovery_round_new(struct dns *dns, const char *name,
    const struct members *old, discovery_round_fn *fn, void *arg);
/* Before anything has come back: this is the snapshot in force. Borrowed. */
void discovery_round_known(
    struct discovery_round *round, const struct members *old);
/* Cancels what is open. Takes NULL. */
void discovery_round_free(struct discovery_round *round);

#endif
