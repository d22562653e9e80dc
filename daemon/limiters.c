/*
 * See limiters.h. The limiters of a configuration in the order of its tables,
 * each with a reference that it may share with another configuration's.
 */
#include "daemon/limiters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/limiters_private.h"

struct limiters {
	const struct config *config;
	struct limiters_rate **rates;   /* as config->limiters */
	struct limiters_error **errors; /* as config->error_controls */
	struct limiters_rate **locals;  /* as config->rules; NULL: not local */
};

/* Is there one of this name to go on with? */
static struct limiters_rate *
rate_before(const struct limiters *before, const struct config_limiter *limiter)
{
	const struct config_limiter *found;

	if (before == NULL)
		return NULL;
	found = config_limiter(
	    before->config, limiter->name, strlen(limiter->name));
	if (found == NULL)
		return NULL;
	return before->rates[found - before->config->limiters];
}

static struct limiters_error *
error_before(
    const struct limiters *before, const struct config_error_control *control)
{
	const struct config_error_control *found;

	if (before == NULL)
		return NULL;
	found = config_error_control(
	    before->config, control->name, strlen(control->name));
	if (found == NULL)
		return NULL;
	return before->errors[found - before->config->error_controls];
}

static struct limiters_rate *
local_before(const struct limiters *before, const struct config_rule *rule)
{
	const struct config_rule *found;

	if (before == NULL)
		return NULL;
	found = config_rule(before->config, rule->name, strlen(rule->name));
	if (found == NULL)
		return NULL;
	return before->locals[found - before->config->rules];
}

static struct limiters_rate *
rate_of(struct limiters_rate *before, const struct config_rate *is,
    const uint64_t seed[2], int64_t now)
{
	if (before == NULL)
		return limiters_rate_new(is, seed, now);
	before->refs++;
	return before;
}

static struct limiters_error *
error_of(struct limiters_error *before, const struct config_error_control *is,
    const uint64_t seed[2])
{
	if (before == NULL)
		return limiters_error_new(is, seed);
	before->refs++;
	return before;
}

static int
open_all(struct limiters *ls, const struct limiters *before,
    const uint64_t seed[2], int64_t now)
{
	const struct config *c = ls->config;
	size_t i;

	for (i = 0; i < c->limiter_count; i++) {
		ls->rates[i] = rate_of(rate_before(before, &c->limiters[i]),
		    &c->limiters[i].is, seed, now);
		if (ls->rates[i] == NULL)
			return -1;
	}
	for (i = 0; i < c->error_control_count; i++) {
		ls->errors[i] =
		    error_of(error_before(before, &c->error_controls[i]),
			&c->error_controls[i], seed);
		if (ls->errors[i] == NULL)
			return -1;
	}
	for (i = 0; i < c->rule_count; i++) {
		if (c->rules[i].on_failure != FAILURE_LOCAL)
			continue;
		ls->locals[i] = rate_of(local_before(before, &c->rules[i]),
		    &c->rules[i].local, seed, now);
		if (ls->locals[i] == NULL)
			return -1;
	}
	return 0;
}

struct limiters *
limiters_new(const struct config *config, const struct limiters *before,
    const uint64_t seed[2], int64_t now)
{
	struct limiters *ls = calloc(1, sizeof(*ls));

	if (ls == NULL)
		return NULL;
	ls->config = config;
	/* One more: that there are none is no lack of memory. */
	ls->rates = calloc(config->limiter_count + 1, sizeof(*ls->rates));
	ls->errors =
	    calloc(config->error_control_count + 1, sizeof(*ls->errors));
	ls->locals = calloc(config->rule_count + 1, sizeof(*ls->locals));
	if (ls->rates != NULL && ls->errors != NULL && ls->locals != NULL &&
	    open_all(ls, before, seed, now) == 0)
		return ls;
	limiters_free(ls);
	return NULL;
}

void
limiters_free(struct limiters *ls)
{
	size_t i;

	if (ls == NULL)
		return;
	for (i = 0; ls->rates != NULL && i < ls->config->limiter_count; i++)
		limiters_rate_unref(ls->rates[i]);
	for (i = 0; ls->errors != NULL && i < ls->config->error_control_count;
	     i++)
		limiters_error_unref(ls->errors[i]);
	for (i = 0; ls->locals != NULL && i < ls->config->rule_count; i++)
		limiters_rate_unref(ls->locals[i]);
	free(ls->rates);
	free(ls->errors);
	free(ls->locals);
	free(ls);
}

void
limiters_begin(struct limiters *ls, int64_t now)
{
	const struct config *c = ls->config;
	size_t i;

	for (i = 0; i < c->limiter_count; i++)
		limiters_rate_apply(ls->rates[i], &c->limiters[i].is, now);
	for (i = 0; i < c->error_control_count; i++)
		limiters_error_apply(ls->errors[i], &c->error_controls[i]);
	for (i = 0; i < c->rule_count; i++) {
		if (ls->locals[i] != NULL)
			limiters_rate_apply(
			    ls->locals[i], &c->rules[i].local, now);
	}
}

static struct limiters_rate *
rate_at(const struct limiters *ls, const struct config_limiter *limiter)
{
	const struct config *c = ls->config;

	assert(
	    limiter >= c->limiters && limiter < c->limiters + c->limiter_count);
	return ls->rates[limiter - c->limiters];
}

static struct limiters_error *
error_at(const struct limiters *ls, const struct config_error_control *control)
{
	const struct config *c = ls->config;

	assert(control >= c->error_controls &&
	       control < c->error_controls + c->error_control_count);
	return ls->errors[control - c->error_controls];
}

static struct limiters_rate *
local_at(const struct limiters *ls, const struct config_rule *rule)
{
	const struct config *c = ls->config;

	assert(rule >= c->rules && rule < c->rules + c->rule_count);
	assert(rule->on_failure == FAILURE_LOCAL);
	return ls->locals[rule - c->rules];
}

enum limiters_answer
limiters_acquire(struct limiters *ls, const struct config_limiter *limiter,
    struct limiters_key key, uint32_t permits, int64_t max_wait_us, int64_t now,
    int64_t *wait_us)
{
	return limiters_rate_acquire(
	    rate_at(ls, limiter), key, permits, max_wait_us, now, wait_us);
}

void
limiters_set_rate(
    struct limiters *ls, const struct config_limiter *limiter, int64_t rate)
{
	rate_at(ls, limiter)->rate = rate;
}

enum limiters_answer
limiters_error_begin(struct limiters *ls,
    const struct config_error_control *control, struct limiters_key key,
    int64_t now, int64_t *wait_us)
{
	return limiters_error_wait(error_at(ls, control), key, now, wait_us);
}

void
limiters_error_success(struct limiters *ls,
    const struct config_error_control *control, struct limiters_key key,
    int64_t now)
{
	limiters_error_done(error_at(ls, control), key, now);
}

void
limiters_local_warm(struct limiters *ls, const struct config_rule *rule,
    struct limiters_key key, int64_t now)
{
	limiters_rate_instance(local_at(ls, rule), key, now);
}

/* More than it can ever store: granted on credit, as a limiter that is waited
 * for does, it would keep the key busy for long, and with it the room of
 * others. One permit is always a fair question. */
static bool
never_stored(const struct limiters_rate *s, uint32_t permits)
{
	const double most = (double)s->rate / (double)RATELIMITER_ONE *
			    (double)s->burst_us / 1e6;

	/* Doubles: what is just as many must not fail for their rounding. */
	return permits > 1 && (double)permits > most * (1 + 1e-9);
}

enum limiters_answer
limiters_local_acquire(struct limiters *ls, const struct config_rule *rule,
    struct limiters_key key, uint32_t permits, int64_t now, int64_t *wait_us)
{
	struct limiters_rate *s = local_at(ls, rule);

	*wait_us = 0;
	if (never_stored(s, permits)) {
		s->counters.refused++;
		return LIMITERS_TOO_LONG;
	}
	return limiters_rate_acquire(s, key, permits, 0, now, wait_us);
}

struct limiters_shown
limiters_show(const struct limiters *ls, const struct config_limiter *limiter,
    int64_t now)
{
	return limiters_rate_show(rate_at(ls, limiter), now);
}

struct limiters_error_shown
limiters_show_error(const struct limiters *ls,
    const struct config_error_control *control, int64_t now)
{
	return limiters_error_show(error_at(ls, control), now);
}

struct limiters_shown
limiters_show_local(
    const struct limiters *ls, const struct config_rule *rule, int64_t now)
{
	return limiters_rate_show(local_at(ls, rule), now);
}
