/*
 * One configuration in force: the configuration, its rules made ready, its
 * tenants, and what is counted of its rules. Whoever has a check in flight
 * keeps a reference to the setup that it began under, so that it ends as it
 * began. A tenant that a new configuration does not change is shared with the
 * setup before: its operations, sockets and servers go on.
 *
 * Nothing is freed by setup_unref(), which may run inside a tenant's own
 * callback: the owner frees a setup that is setup_over().
 */
#ifndef DAEMON_SETUP_H
#define DAEMON_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/core/counters.h"
#include "daemon/core/sample.h"
#include "daemon/core/topk.h"
#include "daemon/limiters.h"
#include "daemon/rules.h"
#include "daemon/tally.h"
#include "daemon/tenant.h"

#define SETUP_ERR_MAX 512

struct setup_share; /* a tenant and the configuration that it borrows */

struct setup {
	uint32_t refs; /* of checks in flight */
	uint64_t generation;
	struct config *config;
	struct rules *rules;
	struct limiters *limiters;
	struct setup_share **shares;
	struct tenant **tenants;        /* as config->tenants */
	struct rule_counters *counters; /* as config->rules */
	struct tally
	    *tallies; /* of rules, of ad-hoc checks by tenant, and one */
	struct sample *samples; /* as config->rules, for the log */
	struct topk **denied;   /* likewise; NULL for a rule without a key, and
				 * for all when none are to be kept */
	struct setup *next;     /* of the owner's list */
};

/*
 * Opens the tenants that before, which may be NULL, does not have, each with
 * the servers that are known already when it finds them in the same way.
 * Takes a reference of config of its own. The counts of rules go on by name,
 * and so do the keys that are denied most, when as many are to be kept.
 * NULL with err set; before is as it was.
 */
struct setup *setup_new(struct loop *loop, struct random_pool *random,
    struct config *config, const struct setup *before, char err[SETUP_ERR_MAX]);
/* Whatever is in flight. Takes NULL. */
void setup_free(struct setup *setup);

struct setup *setup_ref(struct setup *setup);
void setup_unref(struct setup *setup);

/*
 * It is in force from now on, instead of before, which may be NULL: the counts
 * go on in it, and the tenants keep to its limits.
 */
void setup_begin(struct setup *setup, struct setup *before);
/* It is not any more: the tenants that next, which may be NULL, does not share
 * are closed. What is in flight goes on. */
void setup_end(struct setup *setup, const struct setup *next);
/* Ended, and would setup_free() lose nothing? */
bool setup_over(const struct setup *setup);
/* Does every tenant know a server? */
bool setup_ready(const struct setup *setup);
/* And do they answer, as far as is known? */
bool setup_decides(const struct setup *setup);
/* The first tenant for which no decision is possible now, and why not; NULL:
 * there is none. */
const struct config_tenant *setup_unready(
    const struct setup *setup, const char **why);

/* The tenant that goes with one of the configuration. */
struct tenant *setup_tenant(
    const struct setup *setup, const struct config_tenant *tenant);

/* The counts of a rule, of this setup's configuration or of another one, by
 * name; NULL when this one has none of that name. */
struct rule_counters *setup_counters(
    const struct setup *setup, const struct config_rule *rule);
/* Likewise, which of its decisions are logged. */
struct sample *setup_sample(
    const struct setup *setup, const struct config_rule *rule);
/* Likewise, the keys that it denies most; NULL when none are kept. */
struct topk *setup_denied(
    const struct setup *setup, const struct config_rule *rule);
/*
 * The tally of a rule, or, when that is NULL, of ad-hoc checks of the tenant;
 * without a tenant, too, of checks that named nothing that there is. By name as
 * above, NULL likewise.
 */
struct tally *setup_tally(const struct setup *setup,
    const struct config_rule *rule, const struct config_tenant *tenant);

#endif
