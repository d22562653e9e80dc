/*
 * Compiles a configuration's rules and trackers: the ids of names that are
 * the same for every caller, the size of each rule's datagram, what its names
 * vary with. Also how a name is filled in, here and per check alike.
 */
#include "daemon/rules_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/template.h"
#include "proto/err.h"

/* What a placeholder stands for; NULL when it is a key that is not there. */
static const uint8_t *
placeholder(enum template_part part, const struct rules_caller *caller,
    char number[16], size_t *len)
{
	const char *value = number;

	switch (part) {
	case TEMPLATE_KEY:
		*len = caller->key_len;
		return caller->key;
	case TEMPLATE_UID:
		snprintf(number, 16, "%u", (unsigned)caller->uid);
		break;
	case TEMPLATE_GID:
		snprintf(number, 16, "%u", (unsigned)caller->gid);
		break;
	case TEMPLATE_LISTENER:
		value = caller->listener;
		break;
	case TEMPLATE_TEXT:
	case TEMPLATE_END:
	case TEMPLATE_BAD:
		return NULL;
	}
	*len = strlen(value);
	return (const uint8_t *)value;
}

int
rules_expand(const char *kind, const char *name,
    const struct rules_caller *caller, uint8_t room[CONFIG_NAME_MAX],
    struct ipc_str *out, char text[RULES_TEXT_MAX])
{
	const uint8_t *value;
	const char *at = name, *piece = NULL;
	enum template_part part;
	char number[16];
	size_t len = 0, used = 0;

	while ((part = template_next(&at, &piece, &len)) != TEMPLATE_END) {
		value = part == TEMPLATE_TEXT
			    ? (const uint8_t *)piece
			    : placeholder(part, caller, number, &len);
		if (value == NULL)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" needs a key", kind, name);
		if (len > CONFIG_NAME_MAX - used)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" is longer than %d bytes with its "
			    "placeholders filled in",
			    kind, name, CONFIG_NAME_MAX);
		memcpy(room + used, value, len);
		used += len;
	}
	if (used == 0)
		return rules_fail(RLA_EINVAL, text,
		    "%s \"%s\" is empty with its placeholders filled in", kind,
		    name);
	*out = (struct ipc_str){room, (uint16_t)used};
	return 0;
}

/* Compiles what is the same for every caller. */
static int
compile_tracker(struct rules *rules, const struct config_tracker *t,
    struct compiled_tracker *out)
{
	uint8_t room[CONFIG_NAME_MAX];
	struct ipc_str name;
	int rc;

	out->is = (struct rules_tracker){
	    .ttl_ms = t->ttl_ms,
	    .max_samples = t->max_samples,
	    .buffer_size = t->buffer_size,
	    .min_samples = t->min_samples,
	};
	out->fixed = template_fixed(t->name);
	if (!out->fixed)
		return 0;
	rc = rules_expand("tracker", t->name, NULL, room, &name, NULL);
	if (rc == 0)
		rc = rules_tracker_id(rules->hash, PROFILE_V1, &out->is, &name,
		    out->id[PROFILE_V1], NULL);
	if (rc == 0)
		rc = rules_tracker_id(rules->hash, PROFILE_V2, &out->is, &name,
		    out->id[PROFILE_V2], NULL);
	return rc;
}

static int
compile_bucket(struct rules *rules, const struct config_resource *r,
    struct compiled_bucket *out)
{
	uint8_t room[CONFIG_NAME_MAX];
	struct ipc_str name;
	int rc;

	out->fixed = template_fixed(r->bucket);
	if (!out->fixed)
		return 0;
	rc = rules_expand("bucket", r->bucket, NULL, room, &name, NULL);
	if (rc == 0)
		rc = rules_bucket_id(
		    rules->hash, r->window_ms, r->limit, &name, out->id, NULL);
	return rc;
}

/* Of a name that config_check_template() let through. */
static uint8_t
placeholders(const char *name)
{
	enum template_part part;
	const char *text;
	uint8_t set = 0;
	size_t len;

	while ((part = template_next(&name, &text, &len)) != TEMPLATE_END) {
		if (part != TEMPLATE_TEXT)
			set |= (uint8_t)(1U << part);
	}
	return set;
}

/* What a caller's share of the buckets goes by; of the trackers, if none. */
static uint8_t
varies(const struct config *c, const struct config_rule *rule)
{
	uint8_t set = 0;

	for (size_t i = 0; i < rule->resource_count; i++)
		set |= placeholders(rule->resources[i].bucket);
	for (size_t i = 0; i < rule->guard_count && rule->resource_count == 0;
	     i++)
		set |= placeholders(c->trackers[rule->guards[i].tracker].name);
	return set;
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
		const struct config_rule *rule = &c->rules[i];

		rules->list[i].first = next;
		rules->list[i].varies = varies(c, rule);
		rules->list[i].size = config_request_size(
		    &c->tenants[rule->tenant], rule->guard_count,
		    rule->resource_count, strlen(rule->label));
		for (size_t k = 0; k < rule->resource_count && rc == 0; k++)
			rc = compile_bucket(rules, &rule->resources[k],
			    &rules->buckets[next++]);
	}
	return rc;
}

struct rules *
rules_new(const struct config *config)
{
	struct rules *rules = calloc(1, sizeof(*rules));
	size_t buckets = 1;

	if (rules == NULL)
		return NULL;
	for (size_t i = 0; i < config->rule_count; i++)
		buckets += config->rules[i].resource_count;
	rules->config = config;
	rules->hash = id_hash_new();
	rules->trackers =
	    calloc(config->tracker_count + 1, sizeof(*rules->trackers));
	rules->list = calloc(config->rule_count + 1, sizeof(*rules->list));
	rules->buckets = calloc(buckets, sizeof(*rules->buckets));
	if (rules->hash == NULL || rules->trackers == NULL ||
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
	id_hash_free(rules->hash);
	free(rules->trackers);
	free(rules->list);
	free(rules->buckets);
	free(rules);
}
