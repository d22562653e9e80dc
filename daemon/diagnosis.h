/*
 * What is wrong with a tenant, or with one of its servers: one table of
 * judgements, of which the first that holds is given, with the facts that speak
 * for it. It claims no more than is known: the wire shows a wrong key, a clock
 * that is off and a request that never arrived alike, as silence. Pure.
 */
#ifndef DAEMON_DIAGNOSIS_H
#define DAEMON_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/clock.h"
#include "daemon/core/peer.h"
#include "daemon/discovery.h"

/* X(code, name, meaning). In rlctl(1) by these names. */
#define DIAGNOSES(X)                                                         \
	X(OK, "ok", "answers come")                                          \
	X(UNASKED, "unasked", "nothing was sent yet")                        \
	X(WAITING, "waiting", "asked, and nothing is overdue yet")           \
	X(DISCOVERING, "discovering", "DNS has not answered yet")            \
	X(DNS, "dns", "no server is known, for DNS fails")                   \
	X(DNS_STALE, "dns-stale", "answers come, but DNS fails")             \
	X(NOT_SENT, "not-sent", "the kernel takes no datagram")              \
	X(REFUSED, "refused", "ICMP says that nothing listens there")        \
	X(UNREACHABLE, "unreachable", "ICMP says that it cannot be reached") \
	X(INVALID, "invalid", "what comes back is no valid answer")          \
	X(PROFILE, "profile", "requests with guards alone are unanswered")   \
	X(SLOW, "slow", "answers come, but too late")                        \
	X(NEVER, "never-answered", "silent from the start")                  \
	X(CLOCK_STEP, "clock-stepped", "silent since the clock was set")     \
	X(SILENT, "silent", "answered before, silent now")                   \
	X(PARTIAL, "partial", "some servers answer, others do not")          \
	X(CLOCK_OFF, "clock-off", "answers come, but clocks differ")

#define DIAGNOSIS_ENUM(code, name, meaning) DIAGNOSIS_##code,
enum diagnosis_code { DIAGNOSES(DIAGNOSIS_ENUM) };

/* Clocks that differ by more than this differ; hosts that a time daemon keeps
 * are within a tenth of it. */
#define DIAGNOSIS_CLOCK_MS 1000

#define DIAGNOSIS_TEXT_MAX 1000

struct diagnosis {
	enum diagnosis_code code;
	char text[DIAGNOSIS_TEXT_MAX]; /* one line of UTF-8 */
};

/* What it judges by. */
struct diagnosis_facts {
	int64_t now;
	int64_t horizon_us;     /* of an operation */
	int64_t prefer_us;      /* how long its oldest server is waited for */
	uint32_t suspect_after; /* of the policy */
	uint64_t key_id;
	const char *auth; /* the key's, as in "aes" */
	const struct peers *peers;
	uint64_t strangers; /* datagrams of servers that were not asked */
	enum discovery_state discovery;
	const char *dns_error;     /* of the last refresh, or "" */
	int64_t dns_failing_since; /* with an error */
	enum clock_sync sync;
	int64_t stepped_ms;      /* clock_stepped_ms() */
	const char *odd_profile; /* the configured profile, when the key's
				  * format says the other; NULL */
};

void diagnosis_server(const struct diagnosis_facts *facts,
    const struct peer *peer, struct diagnosis *out);
void diagnosis_tenant(
    const struct diagnosis_facts *facts, struct diagnosis *out);
/* "ok", "never-answered", ... */
const char *diagnosis_name(enum diagnosis_code code);

/* How far the clocks of the servers are ahead of this one, by the median of
 * those that are known. False when none is. */
bool diagnosis_offset(const struct peers *peers, int64_t *offset_ms);

#endif
