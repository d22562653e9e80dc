/*
 * An address with its port, as the daemon passes it around: a plain value,
 * without sockets or text (those are daemon/io/address.h).
 */
#ifndef DAEMON_CORE_ENDPOINT_H
#define DAEMON_CORE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct endpoint {
	uint8_t family;   /* 4 or 6 */
	uint8_t addr[16]; /* network order; 4 bytes used for IPv4 */
	uint16_t port;    /* host order */
	uint32_t scope;   /* IPv6 scope id, else 0 */
};

/*
 * The same address, port and scope? A link-local address means another host
 * on another interface, so the scope counts.
 */
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

#endif
