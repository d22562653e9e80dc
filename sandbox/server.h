/*
 * One server of the cluster: its UDP sockets, its faults, and the engine that
 * they feed. Stopping closes the sockets and forgets the answers still under
 * way; what the engine remembers stays.
 */
#ifndef SANDBOX_SERVER_H
#define SANDBOX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/addr.h"
#include "sandbox/counters.h"
#include "sandbox/fault.h"
#include "sandbox/keyring.h"

#define SERVER_MAX_ADDRS 4
/* Most delayed answers under way; one more is not sent. */
#define SERVER_MAX_DELAYED 65536

struct event_base;
struct events;
struct server;

struct server_setup {
	struct event_base *base; /* borrowed, as are the next two */
	const struct keyring *ring;
	struct events *events;
	uint32_t index;
	uint64_t server_id;
	uint64_t seed;      /* of the faults */
	uint64_t hash_seed; /* secret */
	uint32_t tolerance_ms;
	struct faults faults;
	struct addr addrs[SERVER_MAX_ADDRS]; /* all with the same port */
	size_t addr_count;
};

/* NULL without memory or crypto. Nothing is bound yet. */
struct server *server_new(const struct server_setup *setup);
void server_free(struct server *s);
/*
 * Binds every address. With port 0 the kernel chooses one port that is free
 * on all of them; a later start takes the same one. Returns 0 or RLA_ESYS
 * with errno, and *failed (may be NULL) the address that could not be had.
 */
int server_start(struct server *s, struct addr *failed);
void server_stop(struct server *s);
bool server_running(const struct server *s);
/* From the next datagram on; the value is in the range of the fault. */
void server_set_fault(struct server *s, enum fault fault, double value);
uint64_t server_id(const struct server *s);
const struct addr *server_addrs(const struct server *s, size_t *count);
const struct counters *server_counters(const struct server *s);

#endif
