/*
 * The agent owns everything: loop, the setup in force and those whose last
 * checks are not answered yet, dispatcher, and the ways to end. State hangs
 * from here, not from globals.
 */
#ifndef DAEMON_AGENT_H
#define DAEMON_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/agent_notify.h"
#include "daemon/config.h"
#include "daemon/core/errorrate.h"
#include "daemon/dispatch.h"
#include "daemon/io/activation.h"
#include "daemon/io/loop.h"
#include "daemon/setup.h"

#define AGENT_ERR_MAX CONFIG_ERR_MAX

/* What became of the last load of the configuration, for status; written by
 * whoever loads it. */
struct agent_loading {
	char error[CONFIG_ERR_MAX]; /* "" after a good one */
	uint64_t failures;
	int64_t at; /* loop_now() when the setup in force began */
	bool watching;
};

/* A long document; those who ask soon after get the same one. */
struct agent_kept {
	char *text; /* NULL: none */
	uint64_t generation;
	const struct config_listener *by;
	int64_t until; /* it is kept */
};

struct agent {
	struct loop *loop;
	struct random_pool *random;
	struct activation *activation; /* sockets that it was started with */
	struct setup *setup;           /* in force */
	struct setup *retired;         /* freed by the reaper, oldest last */
	struct dispatch *dispatch;
	struct gateway *gateway; /* NULL: no configuration had one yet */
	struct loop_signal *sigterm;
	struct loop_signal *sigint;
	struct loop_timer *drain_timer;
	struct loop_timer *open_timer;
	struct loop_timer *reap_timer;
	struct loop_task leave; /* after answers are out */
	struct agent_loading loading;
	struct agent_notify notify;
	struct agent_kept rules;
	struct agent_kept limiters;
	struct agent_kept metrics;
	loop_fn *on_reload; /* a RELOAD came; NULL: nobody takes it */
	loop_fn *on_ready;  /* a tenant became ready, or stopped to be */
	void *reload_arg;
	int64_t started; /* loop_now() time */
	uint64_t started_wall_ms;
	int64_t expect_until; /* while it drains; 0: nothing more is begun */
	int64_t drain_until;
	uint32_t longest_horizon_ms; /* of all setups so far */
	bool draining;
	bool ending; /* quit: nothing is opened any more */
	bool failed; /* the loop was left for an error */
	bool ready;
	struct errorrate ready_lines; /* DNS decides how often it changes */
	uint64_t ready_unsaid;
	struct loop_timer *ready_timer; /* for one that was held back */
	bool ready_told;
};

/*
 * Takes the sockets that it was started with, binds the others, and starts
 * discovery. Takes over a reference of config, on
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

/* Its level of the log holds from now on. */
void agent_apply_level(const struct config *config);
void agent_log_warnings(const struct config *config);

/* The next setup, made for this configuration beside the one in force; the
 * caller's until agent_follow() takes it. NULL with err set. */
struct setup *agent_prepare(
    struct agent *agent, struct config *config, char err[AGENT_ERR_MAX]);
/* next is in force from now on: 0, and it is the agent's. -1 with err set and
 * nothing changed: it is still the caller's. Not from a tenant's callback. */
int agent_follow(
    struct agent *agent, struct setup *next, char err[AGENT_ERR_MAX]);

#endif
