/*
 * The header fields RateLimit-Policy and RateLimit, as of draft
 * ietf-httpapi-ratelimit-headers-11: lists of structured fields, an item for
 * each resource of a rule. An item is called NAME.INDEX, the name of the rule
 * and the place of the resource in it: what buckets are called holds keys.
 */
#ifndef DAEMON_GATEWAY_FIELDS_H
#define DAEMON_GATEWAY_FIELDS_H

#include "daemon/config.h"
#include "proto/ipc.h"

/* Items that do not fit are left out, whole. */
#define GATEWAY_FIELD_MAX 4096

/* q is the limit, w the window; the draft knows whole seconds only, so other
 * windows are not told. "" without resources. */
void gateway_fields_policy(
    const struct config_rule *rule, char out[GATEWAY_FIELD_MAX]);
/*
 * r is what the server has counted to be left, t how long until a resource that
 * was refused could be granted. "" when no server said what it has counted: d
 * has no detail.
 */
void gateway_fields_limit(const struct config_rule *rule,
    const struct ipc_decision *d, char out[GATEWAY_FIELD_MAX]);

/* In whole seconds, rounded up. */
uint32_t gateway_fields_seconds(uint32_t ms);

#endif
