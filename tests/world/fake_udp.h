/*
 * The network of a world: daemon/io/udp.h without a kernel. Keeps what was
 * sent and from which port, hands datagrams to a port, fails sends by their
 * address, blocks ports, fails to open sockets. It also watches the contract:
 * no socket is opened or freed inside a receive callback.
 *
 * Ports are named by the order in which they were opened: the first is 1.
 */
#ifndef TESTS_WORLD_FAKE_UDP_H
#define TESTS_WORLD_FAKE_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/io/udp.h"

#define FAKE_DATAGRAM_MAX 1200

/* A datagram that the network took. */
struct fake_sent {
	int64_t clock; /* of the script, when it left */
	uint64_t left; /* fake_udp_event() when it did */
	uint32_t port;
	struct endpoint to;
	size_t len;
	uint8_t bytes[FAKE_DATAGRAM_MAX];
};

/* Before a world begins. What is open then is a fault of the last one. */
void fake_udp_reset(void);

/* Hands every readable datagram to its socket: one turn's worth. */
void fake_udp_read(void);
/* Is something readable? */
bool fake_udp_readable(void);

/* In the order of leaving. */
size_t fake_udp_sent_count(void);
const struct fake_sent *fake_udp_sent(size_t i);

/* Counts what happens: datagrams that leave, datagrams that are read. */
uint64_t fake_udp_event(void);

/*
 * To be read in the next turn; false when that port is not open. *read, which
 * may be NULL, gets the event of the reading unless it has one.
 */
bool fake_udp_deliver(uint32_t port, const struct endpoint *from,
    const uint8_t *bytes, size_t len, bool truncated, uint64_t *read);

/* The network gave back what was sent to an address from a port: told in the
 * next turn. False when that port is not open. */
bool fake_udp_refuse(uint32_t port, const struct endpoint *to, int error);

/* Sends to this address fail with error, until 0. NULL: to any address. */
void fake_udp_fail(const struct endpoint *to, int error);
/* The buffer of a port is full, or not any more. False: no such port. */
bool fake_udp_block(uint32_t port, bool blocked);
/* udp_new() of a family fails with error, until 0. */
void fake_udp_fail_open(int family, int error);

bool fake_udp_is_open(uint32_t port);
/* How many udp_new() have succeeded: the name of the newest port. */
uint32_t fake_udp_opened(void);

#endif
