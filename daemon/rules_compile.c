/*
 * Compiles a configuration's rules and trackers: the ids of names that are
 * the same for every caller, the size of each rule's datagram. Also how a name
 * is filled in and hashed, here and per check alike.
 */
#include "daemon/rules_compile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/message.h"
#include "daemon/template.h"
#include "proto/err.h"
#include "proto/packet.h"

int
rules_fail(int rc, char text[RULES_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message_vformat(text, RULES_TEXT_MAX, fmt, ap);
	va_end(ap);
	return rc;
}

int
rules_fail_size(char text[RULES_TEXT_MAX], size_t size)
{
	if (size == SIZE_MAX)
		return rules_fail(RLA_ETOOBIG, text,
		    "the request has more than a datagram of %d bytes holds",
		    PACKET_MAX);
	return rules_fail(RLA_ETOOBIG, text,
	    "the request of %zu bytes does not fit a datagram of %d", size,
	    PACKET_MAX);
}

int
rules_hash_bucket(struct rules *rules, const struct config_resource *r,
    const uint8_t *name, size_t len, uint8_t id[ID_LEN])
{
	return id_bucket(rules->hash, name, len, r->window_ms, r->limit, id);
}

int
rules_hash_tracker(struct rules *rules, enum profile profile,
    const struct config_tracker *t, const uint8_t *name, size_t len,
    uint8_t id[ID_LEN])
{
	return id_tracker(rules->hash, profile, name, len, t->ttl_ms,
	    t->max_samples, t->buffer_size, t->min_samples, id);
}

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
    const struct rules_caller *caller, uint8_t out[CONFIG_NAME_MAX],
    size_t *out_len, char text[RULES_TEXT_MAX])
{
	const uint8_t *value;
	const char *at = name, *piece = NULL;
	enum template_part part;
	char number[16];
	size_t len = 0;

	*out_len = 0;
	while ((part = template_next(&at, &piece, &len)) != TEMPLATE_END) {
		value = part == TEMPLATE_TEXT
			    ? (const uint8_t *)piece
			    : placeholder(part, caller, number, &len);
		if (value == NULL)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" needs a key", kind, name);
		if (len > CONFIG_NAME_MAX - *out_len)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" is longer than %d bytes with its "
			    "placeholders filled in",
			    kind, name, CONFIG_NAME_MAX);
		memcpy(out + *out_len, value, len);
		*out_len += len;
	}
	if (*out_len == 0)
		return rules_fail(RLA_EINVAL, text,
		    "%s \"%s\" is empty with its placeholders filled in", kind,
		    name);
	return 0;
}

/* Compiles what is the same for every caller. */
static int
compile_trackers(struct rules *rules)
{
	const struct config *c = rules->config;
	uint8_t name[CONFIG_NAME_MAX];
	char text[RULES_TEXT_MAX];
	size_t len;
	int rc = 0;

	for (size_t i = 0; i < c->tracker_count && rc == 0; i++) {
		const struct config_tracker *t = &c->trackers[i];
		struct tracker_id *out = &rules->trackers[i];

		out->fixed = template_fixed(t->name);
		if (!out->fixed)
			continue;
		rc = rules_expand("tracker", t->name, NULL, name, &len, text);
		if (rc == 0)
			rc = rules_hash_tracker(rules, PROFILE_V1, t, name, len,
			    out->id[PROFILE_V1]);
		if (rc == 0)
			rc = rules_hash_tracker(rules, PROFILE_V2, t, name, len,
			    out->id[PROFILE_V2]);
	}
	return rc;
}

static int
compile_rule(struct rules *rules, const struct config_rule *rule,
    struct bucket_id *buckets)
{
	uint8_t name[CONFIG_NAME_MAX];
	char text[RULES_TEXT_MAX];
	size_t len;
	int rc = 0;

	for (size_t i = 0; i < rule->resource_count && rc == 0; i++) {
		const struct config_resource *r = &rule->resources[i];

		buckets[i].fixed = template_fixed(r->bucket);
		if (!buckets[i].fixed)
			continue;
		rc = rules_expand("bucket", r->bucket, NULL, name, &len, text);
		if (rc == 0)
			rc = rules_hash_bucket(
			    rules, r, name, len, buckets[i].id);
	}
	return rc;
}

static int
compile_rules(struct rules *rules)
{
	const struct config *c = rules->config;
	size_t next = 0;
	int rc = 0;

	for (size_t i = 0; i < c->rule_count && rc == 0; i++) {
		const struct config_rule *rule = &c->rules[i];

		rules->list[i].first = next;
		rules->list[i].size = config_request_size(
		    &c->tenants[rule->tenant], rule->guard_count,
		    rule->resource_count, strlen(rule->label));
		rc = compile_rule(rules, rule, &rules->buckets[next]);
		next += rule->resource_count;
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
	    compile_trackers(rules) != 0 || compile_rules(rules) != 0) {
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
