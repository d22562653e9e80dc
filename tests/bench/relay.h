/*
 * relay: the floor. What any program must do that takes checks from a Unix
 * stream socket, asks servers over UDP and answers: the same frames, the same
 * datagrams, the same system calls in batches. It has no policy, no rules, no
 * deadlines, and no cryptography once it runs: requests are sealed before, and
 * answers are believed.
 *
 *   relay.c       options, the turn of the loop, UDP
 *   relay_conn.c  connections and frames
 *   relay_slot.c  checks under way, one for each sealed request
 *
 * A turn: read what is readable, then send all new requests, then all new
 * decisions, one send a connection.
 */
#ifndef TESTS_BENCH_RELAY_H
#define TESTS_BENCH_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/ipc.h"
#include "tests/bench/presealed.h"
#include "tests/bench/wire.h"

#define RELAY_SLOTS    65536
#define RELAY_SERVERS  16
#define RELAY_CONNS    4096
#define RELAY_READ     65536 /* bytes at a time */
#define RELAY_FRAME    512   /* no frame that it understands is longer */
#define RELAY_DECISION 48    /* bytes, with empty texts: the agent's */

/* One check. Free when it waits for no server. */
struct relay_slot {
	uint64_t request; /* the client's number of it */
	uint32_t serial;  /* of its connection */
	uint16_t conn;    /* index */
	uint16_t waits;   /* a bit for each server that has not answered */
};

struct relay_slots {
	struct presealed sealed;
	uint32_t free_count;
	uint32_t fresh_count;
	uint32_t free[RELAY_SLOTS];  /* a stack: the last one used is warm */
	uint32_t fresh[RELAY_SLOTS]; /* taken in this turn, to be sent */
	struct relay_slot at[RELAY_SLOTS];
};

struct relay_conn {
	int fd;          /* -1: none */
	uint32_t serial; /* of the connections at this index */
	bool greeted;
	bool queued;  /* in the list of those with something to send */
	bool blocked; /* the kernel's buffer is full */
	uint8_t *out; /* grows to what was ever needed */
	size_t out_len;
	size_t out_cap;
	size_t rest_len; /* the start of a frame */
	uint8_t rest[RELAY_FRAME];
};

struct relay_conns {
	int listener;
	size_t queued_count;
	uint16_t queued[RELAY_CONNS];
	/* With a request id of 0: as it should be, and of a check that may have
	 * been sent again. */
	uint8_t allowed[RELAY_DECISION];
	uint8_t lost[RELAY_DECISION];
	uint8_t in[RELAY_READ];
	struct relay_conn at[RELAY_CONNS];
};

struct relay_server {
	uint64_t id;
	struct sockaddr_in address;
};

struct relay {
	int epoll;
	/* Something was sent again, and not all has been answered since: what
	 * is decided fails, so that nobody takes this for what the floor costs.
	 */
	bool lossy;
	unsigned server_count;
	struct relay_server servers[RELAY_SERVERS];
	struct relay_slots slots;
	struct relay_conns conns;
	struct wire_in in;
	struct wire_out out;
};

/* What an event of the loop is about: these, or the index of a connection. */
enum { RELAY_LISTENER = RELAY_CONNS, RELAY_UDP };

void relay_slots_init(struct relay_slots *s);
/* A free slot, to be sent in this turn; NULL when all are taken. */
struct relay_slot *relay_slots_take(struct relay_slots *s);
/*
 * The datagram answers a check that still waits for this server. first is
 * whether the check is decided by it: that is server 0's.
 */
struct relay_slot *relay_slots_answer(
    struct relay *r, const uint8_t *datagram, size_t len, bool *first);
/* All that are under way are to be sent again. How many. */
uint32_t relay_slots_again(struct relay_slots *s);

/* Listens. 0 or -1, having said why. */
int relay_conns_init(struct relay *r, const char *path);
void relay_conns_accept(struct relay *r);
/* Reads once, and closes it when that is all it had. */
void relay_conn_read(struct relay *r, uint32_t index);
/* A DECISION for this check, unless its connection is gone. */
void relay_conn_decide(struct relay *r, const struct relay_slot *slot);
/* The kernel takes more now. */
void relay_conn_resume(struct relay *r, uint32_t index);
/* Writes what the turn brought. */
void relay_conns_flush(struct relay *r);

/* One line with the text of errno on stderr. Returns -1. */
int relay_fail(const char *what);

#endif
