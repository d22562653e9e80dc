/*
 * Load on a running agent: connections that keep checks of one rule in flight,
 * as pipelined applications do, or ask at a rate, as many independent callers
 * do, and what came of them. Of rlctl bench and of
 * tests/bench. One thread, nothing of it blocks but load_open() and the runs.
 */
#ifndef CLIENT_SHIM_LOAD_H
#define CLIENT_SHIM_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_MAX_CONNECTIONS 10000
#define LOAD_MAX_WINDOW      65536   /* of one connection */
#define LOAD_MAX_IN_FLIGHT   1000000 /* of all connections */
#define LOAD_MAX_KEYS        UINT64_C(1000000000)
#define LOAD_MAX_RATE        10000000
#define LOAD_GIVE_UP         100
#define LOAD_REASONS         15 /* enum ipc_reason of proto/ipc.h */
#define LOAD_ERR_MAX         1024

enum load_order {
	LOAD_SEQUENTIAL, /* 0, 1, 2, ... keys - 1, 0, ... */
	LOAD_RANDOM,     /* each as likely as any other */
};

struct load_options {
	const char *socket;
	const char *rule;
	/* NULL: no key is sent. The first "{n}" in it becomes the key's number,
	 * with as many digits as the last one has, so that frames are of one
	 * length; it must be there when there is more than one key. */
	const char *key;
	uint64_t keys; /* 1 to LOAD_MAX_KEYS */
	enum load_order order;
	uint32_t tokens;      /* of each check */
	uint32_t deadline_ms; /* 0: the agent's default */
	size_t connections;   /* 1 to LOAD_MAX_CONNECTIONS */
	size_t window;        /* in flight on each: 1 to LOAD_MAX_WINDOW */
	/*
	 * 0: a closed loop, which asks when another check was answered. Else an
	 * open one: so many checks a second on all connections together, 1 to
	 * LOAD_MAX_RATE, evenly spaced and on one connection after the other.
	 * The window then bounds what is in flight: a check that finds no room
	 * waits, and is asked where there is some first.
	 */
	uint32_t rate;
	/* Without any answer that is due for so long it gives up; 0: 20 s more
	 * than a check may take. */
	uint32_t patience_ms;
	/* Asked between waits, of which none is over 100 ms then; true ends a
	 * run early. NULL: never. */
	bool (*stop)(void *arg);
	void *stop_arg;
};

struct load_result {
	uint64_t asked;
	uint64_t checks; /* answered */
	uint64_t allowed;
	uint64_t denied;
	uint64_t failed;
	uint64_t cancelled;
	uint64_t permitted;
	/* By source; of the others a server decided. */
	uint64_t empty, policy, local, shadow;
	uint64_t reasons[LOAD_REASONS];
	int64_t elapsed_us; /* of runs: from the beginning to the last
			     * answer */
	/* With a rate: how long there was something to ask, beginning before
	 * the first check as long as there is between two; and how many checks
	 * were due and had no room until a run's end. */
	int64_t asking_us;
	uint64_t unasked;
	bool given_up; /* asked no more, since none can succeed */
};

struct load;

/* Are they good, but for the socket? 0, or -1 with a line in err. */
int load_check_options(
    const struct load_options *options, char err[LOAD_ERR_MAX]);
/*
 * Connected and greeted, one after another, so that the agent never greets two
 * at once. Raises the limit of open files as far as it may and must. NULL with
 * a line in err; options is not needed any more, but what stop_arg points to.
 */
struct load *load_open(
    const struct load_options *options, char err[LOAD_ERR_MAX]);
void load_close(struct load *load); /* takes NULL */
/*
 * Asks until so many were asked (0: no such bound) or so long has passed (0:
 * no such bound, one of them is needed), at the rate if there is one, and
 * collects all of them. Adds to
 * the result and the latencies since load_reset(). 0, or -1 with a line in
 * err, after which only what was measured can be asked for. A run that was
 * stopped is 0, and leaves what is in flight to the next one.
 *
 * It asks no more when the first answers, as many as may be in flight but at
 * most LOAD_GIVE_UP, all say that the agent does not take such a check: its
 * rule is unknown, or not for this caller, or it is not valid.
 */
int load_run(
    struct load *load, uint64_t checks, int64_t us, char err[LOAD_ERR_MAX]);
/*
 * Asks that many, at most the window of all connections together, and returns
 * when the agent has taken all of them: each connection's PING behind them was
 * answered. load_drain() collects what is in flight. Stopped is -1 here.
 */
int load_fill(struct load *load, uint64_t checks, char err[LOAD_ERR_MAX]);
int load_drain(struct load *load, char err[LOAD_ERR_MAX]);

void load_reset(struct load *load);
const struct load_result *load_result(const struct load *load);
/* Why the first check since load_reset() that failed or was cancelled did so,
 * in the agent's words, any bytes; NULL when none did. */
const char *load_first_failure(const struct load *load);
/*
 * Microseconds from the first try to write a check, with a rate from the time
 * at which it was due, to its answer's being read that a share of the checks
 * since load_reset() do not exceed, within 1 %; 0 when there is none. Share 0
 * is the least and 1 the most, both exactly.
 */
double load_latency(const struct load *load, double share);

#endif
