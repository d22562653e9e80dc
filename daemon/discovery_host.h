/*
 * The addresses of one SRV target, by family, as a round of discovery finds
 * them, and the member that they make. Embedded in the round, which asks.
 */
#ifndef DAEMON_DISCOVERY_HOST_H
#define DAEMON_DISCOVERY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/members.h"
#include "daemon/io/dns.h"

/* Of one family. DNS_OK: as many as are kept, sorted. */
struct discovery_addrs {
	enum dns_type type; /* DNS_A or DNS_AAAA */
	enum dns_status status;
	uint32_t count;
	uint8_t list[MEMBERS_MAX_ADDRS][16];
};

struct discovery_host {
	char name[DNS_MAX_NAME];
	struct discovery_addrs v4;
	struct discovery_addrs v6;
};

/* name is at most DNS_MAX_NAME with its NUL. */
void discovery_host_init(struct discovery_host *host, const char *name);

/* What a lookup of the family brought. */
void discovery_host_answer(
    struct discovery_addrs *addrs, const struct dns_answer *answer);
/*
 * What came along with the SRV answer, in place of both lookups: of the
 * records r for which hosts[r] is this host. A family that did not come keeps
 * a count of 0. Returns the least TTL in seconds, INT32_MAX without any.
 */
uint32_t discovery_host_glue(struct discovery_host *host,
    const struct dns_answer *answer, const size_t *hosts, size_t self);

bool discovery_host_known(const struct discovery_host *host);
/* Does the status hold until its TTL, other than a failure of the moment? */
bool discovery_host_definite(enum dns_status status);

/*
 * The target for the next snapshot. A family whose lookup failed for the
 * moment keeps what old (may be NULL) has of it, while the other one has some;
 * when neither has, addr_count is 0 and members_build() keeps both.
 */
void discovery_host_target(const struct discovery_host *host,
    uint64_t server_id, uint16_t port, const struct members *old,
    struct members_target *out);

#endif
