/*
 * Endpoints as text and as socket addresses. The one parser and the one
 * printer of addresses: configuration, resolv.conf, status and sockets all
 * use these. No lookups of names but those of interfaces (%eth0).
 */
#ifndef DAEMON_IO_ADDRESS_H
#define DAEMON_IO_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/core/endpoint.h"

/* "[", 45 of an address, "%", 10 of a scope, "]:", 5 of a port, a NUL. */
#define ADDRESS_TEXT_MAX 65

union address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/*
 * ADDRESS, ADDRESS:PORT (IPv4), [ADDRESS] or [ADDRESS]:PORT, where an IPv6
 * address may have a %SCOPE, the name or number of an interface. Port 0, or
 * none without a default, is refused. An IPv4 address mapped into IPv6 is made
 * IPv4 again: a socket of one family cannot send to it otherwise. False, with
 * *out as it was, for anything else.
 */
bool address_parse(
    const char *text, uint16_t default_port, struct endpoint *out);

/*
 * "192.0.2.1:53", "[2001:db8::1]:53", "[fe80::1%3]:53": what address_parse()
 * reads back. Returns buf.
 */
const char *address_format(
    const struct endpoint *e, char buf[ADDRESS_TEXT_MAX]);

/* Returns the length of what it fills in. */
socklen_t address_to_sockaddr(const struct endpoint *e, union address *out);
/* Of another family than the two: an endpoint of zeros, equal to no other. */
void address_from_sockaddr(const union address *from, struct endpoint *out);

#endif
