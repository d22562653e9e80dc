/*
 * What a policy would do, estimated: many operations of the policy's own state
 * machine (policy.h) in virtual time over a network that loses datagrams. Pure:
 * the same input gives the same figures.
 *
 * The model: every server is alive and takes the same time to answer, rtt_us
 * from the moment that a request is sent. Each request datagram and each answer
 * is lost with probability loss, all independently. A server answers each copy
 * that reaches it. Answers that arrive at the same time come in random order,
 * and each is judged by itself: the agent need not find them together. An
 * answer that is there when a deadline falls due goes before it. No operation
 * has a deadline of its own, no server is suspected, and no stall, queue,
 * duplicate or refused send is part of the model.
 */
#ifndef DAEMON_CORE_ESTIMATE_H
#define DAEMON_CORE_ESTIMATE_H

#include <stdint.h>

#include "daemon/core/policy.h"

#define ESTIMATE_MAX_RTT_US (INT64_C(3600) * 1000000)
/* So many of the longest horizon add up to less than INT64_MAX us. */
#define ESTIMATE_MAX_OPERATIONS 1000000

struct estimate_input {
	const struct policy_plan *plan; /* borrowed for the call */
	uint32_t servers;               /* 1..POLICY_MAX_SERVERS */
	int64_t rtt_us;                 /* 0..ESTIMATE_MAX_RTT_US */
	double loss;         /* 0..1, of each datagram in either direction */
	uint32_t operations; /* 1..ESTIMATE_MAX_OPERATIONS */
	uint64_t seed;
};

struct estimate {
	uint32_t operations;
	uint32_t decided;
	uint32_t by_oldest; /* decided by the answer of server 0 */
	/* Decided in each round; [plan->rounds] is the final interval. */
	uint32_t by_round[POLICY_MAX_REPLAYS + 2];
	uint64_t requests;   /* datagrams sent, of undecided operations too */
	uint64_t deliveries; /* those among them of completion delivery */
	int64_t mean_us;     /* of decided operations; 0 without one */
	int64_t
	    p99_us; /* the least time within which 99 % of these were done */
};

/* Returns 0, or -1 without memory. */
int estimate_run(const struct estimate_input *in, struct estimate *out);

#endif
