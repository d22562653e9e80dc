/*
 * A small authoritative zone: _ratelimitly._udp.<zone> SRV, and A and AAAA of
 * the targets s-<server_id>.<zone>. Query bytes in, response bytes out; no
 * I/O. Queries are scanned strictly by hand, since the sandbox must stand
 * what anybody sends; only our own records go through the DNS library.
 */
#ifndef SANDBOX_DNSD_H
#define SANDBOX_DNSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/addr.h"

#define DNSD_UDP_MAX 4096 /* most that EDNS can ask for */
#define DNSD_TCP_MAX 65535
#define DNSD_MAX_TTL 604800

struct dnsd;

/* NULL when the zone is no usable domain name, or without memory. */
struct dnsd *dnsd_new(const char *zone, uint32_t ttl_s);
void dnsd_free(struct dnsd *d);
/* The zone as text, without the final dot. */
const char *dnsd_zone(const struct dnsd *d);
/* A published server, all its addresses with one port. 0 or RLA_ENOMEM. */
int dnsd_add(struct dnsd *d, uint64_t server_id, const struct addr *addrs,
    size_t addr_count);
/* Takes a server (by the order of dnsd_add) out of the zone or back in. */
void dnsd_publish(struct dnsd *d, size_t index, bool published);
/*
 * Answers one query in at most cap bytes, over UDP in what the query allows.
 * Returns the length; 0 for what gets no answer, which is less than a header
 * or itself a response.
 */
size_t dnsd_answer(const struct dnsd *d, const uint8_t *query, size_t len,
    bool tcp, uint8_t *out, size_t cap);

#endif
