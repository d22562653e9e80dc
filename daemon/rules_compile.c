/*
 * Compiles a configuration's rules and trackers: the ids of names that are
 * the same for every caller, the parts of the others, the size of each rule's
 * datagram, what its names vary with.
 */
#include "daemon/rules_compile.h"

#include <stdlib.h>
#include <string.h>

/* Compiles what is the same for every caller. */
static int
compile_tracker(struct rules *rules, const struct config_tracker *t,
    struct compiled_tracker *out)
{
	int rc = rules_name_init(&out->name, "tracker", t->name);

	out->is = (struct rules_tracker){
	    .ttl_ms = t->ttl_ms,
	    .max_samples = t->max_samples,
	    .buffer_size = t->buffer_size,
	    .min_samples = t->min_samples,
	};
	if (rc != 0 || !out->name.is_fixed)
		return rc;
	rc = rules_tracker_id(rules->ids, PROFILE_V1, &out->is,
	    &out->name.fixed, out->id[PROFILE_V1], NULL);
	if (rc == 0)
		rc = rules_tracker_id(rules->ids, PROFILE_V2, &out->is,
		    &out->name.fixed, out->id[PROFILE_V2], NULL);
	return rc;
}

static int
compile_bucket(struct rules *rules, const struct config_resource *r,
    struct compiled_bucket *out)
{
	int rc = rules_name_init(&out->name, "bucket", r->bucket);

	if (rc != 0 || !out->name.is_fixed)
		return rc;
	return rules_bucket_id(rules->ids, r->window_ms, r->limit,
	    &out->name.fixed, out->id, NULL);
}

/* What a caller's share of the buckets goes by; of the trackers, if none. */
static uint8_t
varies(const struct rules *rules, const struct config_rule *rule,
    const struct compiled_bucket *buckets)
{
	uint8_t set = 0;

	for (size_t i = 0; i < rule->resource_count; i++)
		set |= rules_name_varies(&buckets[i].name);
	for (size_t i = 0; i < rule->guard_count && rule->resource_count == 0;
	     i++)
		set |= rules_name_varies(
		    &rules->trackers[rule->guards[i].tracker].name);
	return set;
}

static int
compile_rule(struct rules *rules, const struct config_rule *rule,
    struct compiled_rule *out)
{
	struct compiled_bucket *buckets = &rules->buckets[out->first];
	int rc = 0;

	out->size = config_request_size(&rules->config->tenants[rule->tenant],
	    rule->guard_count, rule->resource_count, strlen(rule->label));
	for (size_t i = 0; i < rule->resource_count && rc == 0; i++)
		rc = compile_bucket(rules, &rule->resources[i], &buckets[i]);
	if (rc == 0)
		out->varies = varies(rules, rule, buckets);
	return rc;
}

static int
compile(struct rules *rules)
{
	const struct config *c = rules->config;
	size_t next = 0;
	int rc = 0;

	for (size_t i = 0; i < c->tracker_count && rc == 0; i++)
		rc = compile_tracker(
		    rules, &c->trackers[i], &rules->trackers[i]);
	for (size_t i = 0; i < c->rule_count && rc == 0; i++) {
		rules->list[i].first = next;
		rc = compile_rule(rules, &c->rules[i], &rules->list[i]);
		next += c->rules[i].resource_count;
	}
	return rc;
}

struct rules *
rules_new(const struct config *config)
{
	struct rules *rules = calloc(1, sizeof(*rules));

	if (rules == NULL)
		return NULL;
	rules->config = config;
	for (size_t i = 0; i < config->rule_count; i++)
		rules->bucket_count += config->rules[i].resource_count;
	rules->ids = rules_ids_new();
	rules->trackers =
	    calloc(config->tracker_count + 1, sizeof(*rules->trackers));
	rules->list = calloc(config->rule_count + 1, sizeof(*rules->list));
	rules->buckets =
	    calloc(rules->bucket_count + 1, sizeof(*rules->buckets));
	if (rules->ids == NULL || rules->trackers == NULL ||
	    rules->list == NULL || rules->buckets == NULL ||
	    compile(rules) != 0) {
		rules_free(rules);
		return NULL;
	}
	return rules;
}

void
rules_free(struct rules *rules)
{
	if (rules == NULL)
		return;
	for (size_t i = 0;
	     rules->trackers != NULL && i < rules->config->tracker_count; i++)
		rules_name_fini(&rules->trackers[i].name);
	for (size_t i = 0; rules->buckets != NULL && i < rules->bucket_count;
	     i++)
		rules_name_fini(&rules->buckets[i].name);
	rules_ids_free(rules->ids);
	free(rules->trackers);
	free(rules->list);
	free(rules->buckets);
	free(rules);
}
