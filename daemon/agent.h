/*
 * The agent owns everything: loop, configuration, tenants, dispatcher, and
 * the ways to end. State hangs from here, not from globals.
 */
#ifndef DAEMON_AGENT_H
#define DAEMON_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/dispatch.h"
#include "daemon/io/loop.h"
#include "daemon/tenant.h"

#define AGENT_ERR_MAX 512

struct agent {
	struct loop *loop;
	struct random_pool *random;
	struct config *config;
	struct rules *rules;
	struct tenant **tenants; /* as config->tenants */
	struct dispatch *dispatch;
	struct loop_signal *sigterm;
	struct loop_signal *sigint;
	struct loop_signal *sighup;
	struct loop_timer *drain_timer;
	struct loop_timer *open_timer;
	struct loop_task leave; /* after answers are out */
	int64_t started;        /* loop_now() time */
	int64_t drain_until;
	uint64_t generation;
	bool draining;
	bool ending; /* quit: nothing is opened any more */
	bool failed; /* the loop was left for an error */
	bool ready;  /* as last logged */
};

/*
 * Binds sockets and starts discovery. Takes over a reference of config, on
 * success only. NULL with err set to one line.
 *
 * Applications are let in when every tenant knows its servers, or after
 * AGENT_OPEN_MS at the latest: a client that waits for an agent that starts
 * again need not hear that no server is known yet.
 */
#define AGENT_OPEN_MS 1000
struct agent *agent_new(struct config *config, char err[AGENT_ERR_MAX]);
/* Lets them in now. */
void agent_open(struct agent *agent);
void agent_free(struct agent *agent); /* takes NULL */

/* Runs until quit or drained. Returns 0, or RLA_ESYS. */
int agent_run(struct agent *agent);

/* Stops accepting, lets operations end within their horizon, then ends. The
 * second call ends at once. */
void agent_drain(struct agent *agent);
/* Operations in flight become Cancelled; ends at once. */
void agent_quit(struct agent *agent);

#endif
