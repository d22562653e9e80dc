/*
 * The network of a scenario: what becomes of one copy of a request. A pure
 * function of the scenario, the operation, the server, the number of the copy
 * and the time of its sending, so whoever sends the same copies meets the same
 * answers. Operations and servers count by key and id, not by their place.
 */
#ifndef TESTS_SIM_NETWORK_H
#define TESTS_SIM_NETWORK_H

#include <stddef.h>

#include "tests/sim/scenario.h"

/* At most so many datagrams come back for one copy. */
#define NETWORK_ANSWERS_MAX 2
/* The copy that an operation sent in its life before it was sent again. */
#define NETWORK_FORMER_COPY 63

enum network_kind {
	NETWORK_ALLOWED,
	NETWORK_DENIED,
	NETWORK_GARBAGE,  /* no codec takes it */
	NETWORK_STRANGER, /* well-formed, of a server that nobody knows */
};

struct network_datagram {
	int64_t at; /* when it can be read; later than its request was sent */
	uint32_t op;
	uint32_t server;
	uint32_t copy;
	uint32_t twin; /* 1: the network's duplicate */
	enum network_kind kind;
};

/* An answer that counts. */
static inline bool
network_valid(const struct network_datagram *d)
{
	return d->kind == NETWORK_ALLOWED || d->kind == NETWORK_DENIED;
}

/* The order in which datagrams are read, a total one: less than 0, more than
 * 0, or 0 for the same one. */
int network_order(
    const struct network_datagram *a, const struct network_datagram *b);

/*
 * Does the kernel refuse to send this copy? Copies are counted from 0 for each
 * server, the refused ones as well.
 */
bool network_refuses(const struct scenario *sc, uint32_t op, uint32_t server,
    uint32_t copy, bool first_transmission);

/* What comes back for a copy that was sent; returns how much. */
size_t network_carry(const struct scenario *sc, uint32_t op, uint32_t server,
    uint32_t copy, int64_t sent_at,
    struct network_datagram out[NETWORK_ANSWERS_MAX]);

#endif
