/*
 * One scenario of the simulator: a policy, servers, their links, and what
 * happens to a handful of overlapping operations, all of it in numbers. Plain
 * data that knows nothing of daemon/: what plays it on the core (driver.h) and
 * what predicts it (oracle.h) have only this and network.h in common.
 *
 * Times are microseconds since the scenario began. The same scenario always
 * gives the same run.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SCENARIO_SERVERS_MAX 64
#define SCENARIO_OPS_MAX     10
#define SCENARIO_STALLS_MAX  4
#define SCENARIO_OUTAGES_MAX 2
#define SCENARIO_VIEWS_MAX   4
#define SCENARIO_LISTED_MAX  80
#define SCENARIO_NEVER       INT64_MAX

enum scenario_growth_kind { GROWTH_FIXED, GROWTH_LINEAR, GROWTH_EXPONENTIAL };

struct scenario_growth {
	enum scenario_growth_kind kind;
	uint32_t first; /* units */
	uint32_t by;    /* the step or the factor */
	uint32_t most;  /* units; not of a fixed one */
};

struct scenario_policy {
	uint32_t unit_ms;
	uint32_t replays;
	struct scenario_growth gap;
	struct scenario_growth preference;
	bool first_round; /* the preset; then preference means nothing */
	uint32_t final_units;
	uint32_t final_preference;
	bool delivery;
	uint32_t suspect_after;
};

/* From one time until, but without, another. */
struct scenario_span {
	int64_t from;
	int64_t until;
};

/* A server and the link to it. Chances are in thousandths of datagrams. */
struct scenario_server {
	uint64_t id;
	uint16_t lost; /* requests and answers alike */
	uint16_t doubled;
	uint16_t corrupted;
	int64_t delay_us; /* there and back */
	int64_t jitter_us;
	uint32_t outages;
	struct scenario_span outage[SCENARIO_OUTAGES_MAX];
};

/* The membership that discovery finds at a time, in the order of its finding;
 * servers may come twice in it. */
struct scenario_view {
	int64_t at;
	uint32_t count;
	uint8_t listed[SCENARIO_LISTED_MAX];
};

struct scenario_op {
	uint32_t key; /* its id as far as the network goes */
	int64_t at;
	int64_t age;        /* it was asked for so long before */
	bool again;         /* and sent: what that brings still comes in */
	int64_t patience;   /* the caller's deadline, from at on; or never */
	int64_t gives_up;   /* the caller cancels, from at on; or never */
	uint16_t refused;   /* by the kernel, in thousandths of sends */
	bool refused_first; /* nothing of the first transmission is taken */
	uint64_t deaf;      /* servers that never get to answer it */
};

struct scenario {
	uint64_t seed;    /* it was made from, or whose shrunken form it is */
	uint64_t weather; /* of the network's dice */
	int64_t tick_us;  /* delays are multiples of it */
	struct scenario_policy policy;
	uint32_t servers;
	struct scenario_server server[SCENARIO_SERVERS_MAX];
	uint32_t views; /* by time, the first at 0 */
	struct scenario_view view[SCENARIO_VIEWS_MAX];
	uint32_t ops;
	struct scenario_op op[SCENARIO_OPS_MAX];
	uint32_t stalls; /* when the event loop does not run */
	struct scenario_span stall[SCENARIO_STALLS_MAX];
};

/* A time plus a while that may be "never". */
int64_t scenario_after(int64_t at, int64_t while_us);

/* When the event loop gets to what is due at a time. */
int64_t scenario_awake(const struct scenario *sc, int64_t at);

/* The text of it, for people, after prefix on each line; every field is there.
 */
void scenario_print(const struct scenario *sc, const char *prefix, FILE *f);

/* splitmix64's output function. */
static inline uint64_t
scenario_mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
