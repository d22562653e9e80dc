/*
 * The sockets of the zone: UDP and TCP on one address and port. Connections
 * are few, bounded and short-lived.
 */
#ifndef SANDBOX_DNSIO_H
#define SANDBOX_DNSIO_H

#include "sandbox/addr.h"

struct dnsd;
struct dnsio;
struct event_base;

/*
 * Binds and serves; with port 0 the kernel chooses one that is free for both.
 * Borrows the base and the zone. NULL with errno on failure.
 */
struct dnsio *dnsio_new(struct event_base *base, const struct dnsd *zone,
    const struct addr *listen);
void dnsio_free(struct dnsio *io);
/* What was bound. */
const struct addr *dnsio_addr(const struct dnsio *io);

#endif
