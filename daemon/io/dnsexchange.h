/*
 * One question to one nameserver: UDP from a fresh connected socket, so that
 * the port is new, the kernel checks the source and a closed port is known at
 * once; TCP to the same server when the answer is truncated. Datagrams that do
 * not fit are counted and waited out, so a forger cannot end the exchange.
 */
#ifndef DAEMON_IO_DNSEXCHANGE_H
#define DAEMON_IO_DNSEXCHANGE_H

#include "daemon/io/dns.h"
#include "daemon/io/dnsfault.h"
#include "daemon/io/dnswire.h"

enum dnsexchange_result {
	DNSEXCHANGE_ANSWER,      /* env.answer is filled in */
	DNSEXCHANGE_ALIAS,       /* so it is, and another name is to be asked */
	DNSEXCHANGE_NO_EDNS,     /* ask the same server without EDNS */
	DNSEXCHANGE_FAILED,      /* the server said so, or broke TCP off */
	DNSEXCHANGE_BAD,         /* malformed, or AD is missing */
	DNSEXCHANGE_TIMEOUT,     /* silence */
	DNSEXCHANGE_UNREACHABLE, /* nothing could be sent there */
};

/* What all exchanges of a resolver share; borrowed for their life. */
struct dnsexchange_env {
	struct loop *loop;
	uint32_t timeout_ms; /* of UDP, and again of TCP */
	struct dns_counters *counters;
	uint64_t *left; /* datagrams and connections that may be spent yet */
	struct dnswire_answer *answer; /* valid during the result's call */
};

struct dnsexchange;

/*
 * Called from the loop, once for each start that returned 0. The exchange is
 * idle again: the callee may start or free it.
 */
typedef void dnsexchange_fn(void *arg, enum dnsexchange_result result);

/* NULL without memory. */
struct dnsexchange *dnsexchange_new(
    const struct dnsexchange_env *env, dnsexchange_fn *fn, void *arg);
/* Ends what is running without a call. Takes NULL. */
void dnsexchange_free(struct dnsexchange *x);

/*
 * Sends the question, which is copied. Only on an idle exchange. Returns 0, or
 * RLA_ESYS, RLA_ENOMEM or RLA_EBUSY (nothing left) when nothing was sent; then
 * there is no call.
 */
int dnsexchange_start(struct dnsexchange *x, const struct dnswire_question *q,
    const struct endpoint *server);
/* Why the last start failed, or its result was none of the first three. */
struct dnsfault dnsexchange_fault(const struct dnsexchange *x);

#endif
