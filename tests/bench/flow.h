/*
 * An application that keeps a window of checks in flight: the pipelined side
 * of proto/IPC.md, which the blocking shim does not show. Every decision must
 * be Allowed by a server; anything else fails the run, so that no row can
 * count work that was not done.
 */
#ifndef TESTS_BENCH_FLOW_H
#define TESTS_BENCH_FLOW_H

#include <stddef.h>

struct flow;

/* That many connections, greeted. NULL, having said why. */
struct flow *flow_open(const char *socket, size_t connections);
void flow_close(struct flow *f); /* takes NULL */
/*
 * Asks and collects that many decisions, with window of them in flight on
 * each connection as long as there are enough. 0 or -1.
 */
int flow_run(struct flow *f, size_t window, size_t decisions);
/*
 * Asks that many on the first connection and returns when the agent has taken
 * all of them: it has answered a PING behind them, and decided none yet.
 */
int flow_load(struct flow *f, size_t decisions);
/* Collects what is in flight. */
int flow_drain(struct flow *f);

#endif
