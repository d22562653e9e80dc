/* See setup.h. Tenants hang from shares, which count the setups that use
 * them; nobody else holds one. */
#include "daemon/setup.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/io/loop.h"
#include "proto/random.h"

struct setup_share {
	uint32_t refs; /* setups */
	struct config *config;
	struct tenant *tenant;
};

static void
share_unref(struct setup_share *share)
{
	if (share == NULL || --share->refs > 0)
		return;
	tenant_free(share->tenant);
	config_unref(share->config);
	free(share);
}

static struct setup_share *
share_new(struct loop *loop, struct random_pool *random, struct config *config,
    size_t index, char err[SETUP_ERR_MAX])
{
	struct setup_share *share = calloc(1, sizeof(*share));

	if (share == NULL)
		return NULL;
	share->refs = 1;
	share->config = config_ref(config);
	share->tenant = tenant_new(loop, random, &config->tenants[index],
	    config->limits.max_inflight, err);
	if (share->tenant != NULL)
		return share;
	share_unref(share);
	return NULL;
}

/* The place of the tenant of that name in another setup; -1: none. */
static ptrdiff_t
find_tenant(const struct setup *in, const struct config_tenant *tenant)
{
	const struct config_tenant *found;

	if (in == NULL)
		return -1;
	found = config_tenant(in->config, tenant->name, strlen(tenant->name));
	return found != NULL ? found - in->config->tenants : -1;
}

/* The same tenant, or another one in its place, with what it knows. */
static struct setup_share *
share_of(struct loop *loop, struct random_pool *random, struct config *config,
    size_t index, const struct setup *before, char err[SETUP_ERR_MAX])
{
	const struct config_tenant *tenant = &config->tenants[index];
	ptrdiff_t at = find_tenant(before, tenant);
	const struct config_tenant *old =
	    at >= 0 ? &before->config->tenants[at] : NULL;
	struct setup_share *share;

	if (old != NULL && config_tenant_equal(old, tenant)) {
		before->shares[at]->refs++;
		return before->shares[at];
	}
	share = share_new(loop, random, config, index, err);
	if (share != NULL && old != NULL &&
	    config_tenant_same_servers(old, tenant))
		tenant_inherit(share->tenant, before->tenants[at]);
	return share;
}

static int
open_tenants(struct setup *s, struct loop *loop, struct random_pool *random,
    const struct setup *before, char err[SETUP_ERR_MAX])
{
	size_t i;

	for (i = 0; i < s->config->tenant_count; i++) {
		s->shares[i] =
		    share_of(loop, random, s->config, i, before, err);
		if (s->shares[i] == NULL)
			return -1;
		s->tenants[i] = s->shares[i]->tenant;
	}
	return 0;
}

static struct limiters *
open_limiters(struct random_pool *random, const struct config *config,
    const struct setup *before)
{
	uint64_t seed[2];

	if (random_bytes(random, seed, sizeof(seed)) != 0)
		return NULL;
	return limiters_new(
	    config, before != NULL ? before->limiters : NULL, seed, loop_now());
}

/* Where the keys are kept that each rule denies most. */
static int
open_denied(struct setup *s, struct random_pool *random)
{
	const struct config *c = s->config;
	uint64_t seed[2];

	if (c->top_denied_keys == 0)
		return 0;
	s->denied = calloc(c->rule_count + 1, sizeof(*s->denied));
	if (s->denied == NULL || random_bytes(random, seed, sizeof(seed)) != 0)
		return -1;
	for (size_t i = 0; i < c->rule_count; i++) {
		if (!rules_uses_key(s->rules, &c->rules[i]))
			continue;
		s->denied[i] = topk_new(c->top_denied_keys, seed);
		if (s->denied[i] == NULL)
			return -1;
	}
	return 0;
}

struct setup *
setup_new(struct loop *loop, struct random_pool *random, struct config *config,
    const struct setup *before, char err[SETUP_ERR_MAX])
{
	struct setup *s = calloc(1, sizeof(*s));

	snprintf(err, SETUP_ERR_MAX, "out of memory or randomness");
	if (s == NULL)
		return NULL;
	s->config = config_ref(config);
	s->shares = calloc(config->tenant_count, sizeof(*s->shares));
	s->tenants = calloc(config->tenant_count, sizeof(*s->tenants));
	/* One more: no rules are no lack of memory. */
	s->counters = calloc(config->rule_count + 1, sizeof(*s->counters));
	s->tallies = calloc(
	    config->rule_count + config->tenant_count + 1, sizeof(*s->tallies));
	s->samples = calloc(config->rule_count + 1, sizeof(*s->samples));
	s->limiters = open_limiters(random, config, before);
	if (s->shares == NULL || s->tenants == NULL || s->counters == NULL ||
	    s->tallies == NULL || s->samples == NULL || s->limiters == NULL) {
		setup_free(s);
		return NULL;
	}
	s->rules = rules_new(config);
	if (s->rules == NULL) {
		snprintf(err, SETUP_ERR_MAX,
		    "out of memory, or the crypto library has no BLAKE2s-256");
		setup_free(s);
		return NULL;
	}
	if (open_denied(s, random) == 0 &&
	    open_tenants(s, loop, random, before, err) == 0)
		return s;
	setup_free(s);
	return NULL;
}

void
setup_free(struct setup *s)
{
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; s->shares != NULL && i < s->config->tenant_count; i++)
		share_unref(s->shares[i]);
	for (i = 0; s->denied != NULL && i < s->config->rule_count; i++)
		topk_free(s->denied[i]);
	free(s->denied);
	limiters_free(s->limiters);
	rules_free(s->rules);
	config_unref(s->config);
	free(s->tallies);
	free(s->samples);
	free(s->counters);
	free(s->tenants);
	free(s->shares);
	free(s);
}

struct setup *
setup_ref(struct setup *s)
{
	s->refs++;
	return s;
}

void
setup_unref(struct setup *s)
{
	assert(s->refs > 0);
	s->refs--;
}

/* Is it one of this configuration, and not of another one? */
static bool
is_own(const struct config *c, const struct config_rule *rule)
{
	return c->rule_count > 0 && rule >= c->rules &&
	       rule < c->rules + c->rule_count;
}

/* The rule of that name; NULL: none. */
static const struct config_rule *
rule_of(const struct config *c, const struct config_rule *rule)
{
	if (is_own(c, rule))
		return rule;
	return config_rule(c, rule->name, strlen(rule->name));
}

/* In exchange for the empty ones, which are freed with before. */
static void
go_on_with_denied(struct setup *s, struct setup *before)
{
	const struct config *c = s->config;
	const struct config_rule *old;
	struct topk *fresh;
	size_t i;

	if (s->denied == NULL || before == NULL || before->denied == NULL ||
	    c->top_denied_keys != before->config->top_denied_keys)
		return;
	for (i = 0; i < c->rule_count; i++) {
		old = rule_of(before->config, &c->rules[i]);
		fresh = s->denied[i];
		if (fresh == NULL || old == NULL)
			continue;
		if (before->denied[old - before->config->rules] == NULL)
			continue;
		s->denied[i] = before->denied[old - before->config->rules];
		before->denied[old - before->config->rules] = fresh;
	}
}

/* Those of a rule that has moved to another tenant are others. */
static void
go_on_with_tallies(struct setup *s, const struct setup *before)
{
	const struct config *c = s->config, *old = before->config;
	const struct config_rule *rule;
	const struct tally *t;

	for (size_t i = 0; i < c->rule_count; i++) {
		rule = rule_of(old, &c->rules[i]);
		if (rule != NULL &&
		    strcmp(old->tenants[rule->tenant].name,
			c->tenants[c->rules[i].tenant].name) == 0)
			s->tallies[i] = *setup_tally(before, rule, NULL);
	}
	for (size_t i = 0; i < c->tenant_count; i++) {
		t = setup_tally(before, NULL, &c->tenants[i]);
		if (t != NULL)
			*setup_tally(s, NULL, &c->tenants[i]) = *t;
	}
	*setup_tally(s, NULL, NULL) = *setup_tally(before, NULL, NULL);
}

void
setup_begin(struct setup *s, struct setup *before)
{
	const struct config *c = s->config;
	const struct rule_counters *n;
	size_t i;

	for (i = 0; i < c->tenant_count; i++)
		tenant_limit(s->tenants[i], c->limits.max_inflight);
	limiters_begin(s->limiters, loop_now());
	go_on_with_denied(s, before);
	for (i = 0; before != NULL && i < c->rule_count; i++) {
		n = setup_counters(before, &c->rules[i]);
		if (n != NULL)
			s->counters[i] = *n;
	}
	if (before != NULL)
		go_on_with_tallies(s, before);
}

static bool
uses(const struct setup *s, const struct tenant *tenant)
{
	size_t i;

	for (i = 0; s != NULL && i < s->config->tenant_count; i++) {
		if (s->tenants[i] == tenant)
			return true;
	}
	return false;
}

void
setup_end(struct setup *s, const struct setup *next)
{
	size_t i;

	for (i = 0; i < s->config->tenant_count; i++) {
		if (!uses(next, s->tenants[i]))
			tenant_close(s->tenants[i]);
	}
}

bool
setup_over(const struct setup *s)
{
	size_t i;

	if (s->refs > 0)
		return false;
	for (i = 0; i < s->config->tenant_count; i++) {
		if (s->shares[i]->refs == 1 && !tenant_idle(s->tenants[i]))
			return false;
	}
	return true;
}

bool
setup_ready(const struct setup *s)
{
	size_t i;

	for (i = 0; i < s->config->tenant_count; i++) {
		if (!tenant_ready(s->tenants[i]))
			return false;
	}
	return true;
}

bool
setup_decides(const struct setup *s)
{
	size_t i;

	for (i = 0; i < s->config->tenant_count; i++) {
		if (!tenant_decides(s->tenants[i]))
			return false;
	}
	return true;
}

const struct config_tenant *
setup_unready(const struct setup *s, const char **why)
{
	size_t i;

	*why = "";
	for (i = 0; i < s->config->tenant_count; i++) {
		if (tenant_decides(s->tenants[i]))
			continue;
		*why = tenant_ready(s->tenants[i])
			   ? "no server answers, see rlctl servers"
			   : discovery_error(tenant_discovery(s->tenants[i]));
		if (**why == '\0')
			*why = "discovery is not finished";
		return &s->config->tenants[i];
	}
	return NULL;
}

struct tenant *
setup_tenant(const struct setup *s, const struct config_tenant *tenant)
{
	assert(tenant >= s->config->tenants &&
	       tenant < s->config->tenants + s->config->tenant_count);
	return s->tenants[tenant - s->config->tenants];
}

struct rule_counters *
setup_counters(const struct setup *s, const struct config_rule *rule)
{
	rule = rule_of(s->config, rule);
	return rule != NULL ? &s->counters[rule - s->config->rules] : NULL;
}

struct topk *
setup_denied(const struct setup *s, const struct config_rule *rule)
{
	if (s->denied == NULL)
		return NULL;
	rule = rule_of(s->config, rule);
	return rule != NULL ? s->denied[rule - s->config->rules] : NULL;
}

struct sample *
setup_sample(const struct setup *s, const struct config_rule *rule)
{
	rule = rule_of(s->config, rule);
	return rule != NULL ? &s->samples[rule - s->config->rules] : NULL;
}

static bool
is_own_tenant(const struct config *c, const struct config_tenant *tenant)
{
	return tenant >= c->tenants && tenant < c->tenants + c->tenant_count;
}

struct tally *
setup_tally(const struct setup *s, const struct config_rule *rule,
    const struct config_tenant *tenant)
{
	const struct config *c = s->config;
	struct tally *of_tenants = s->tallies + c->rule_count;

	if (rule != NULL) {
		rule = rule_of(c, rule);
		return rule != NULL ? &s->tallies[rule - c->rules] : NULL;
	}
	if (tenant == NULL)
		return &of_tenants[c->tenant_count];
	if (!is_own_tenant(c, tenant))
		tenant = config_tenant(c, tenant->name, strlen(tenant->name));
	return tenant != NULL ? &of_tenants[tenant - c->tenants] : NULL;
}
