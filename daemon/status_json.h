/*
 * Values that stand alike in several of the status documents. Each is new, the
 * caller's, and may be NULL without memory.
 */
#ifndef DAEMON_STATUS_JSON_H
#define DAEMON_STATUS_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/counters.h"
#include "daemon/core/policy.h"

/* An object of every row of a table of counters. */
json_t *status_json_counters(
    const struct counter_row *rows, const void *counters);

/* 64-bit identifiers are strings: many JSON readers know doubles only. */
json_t *status_json_u64(uint64_t v);

/* At most 16 bytes, hexadecimal: an id, a hash. */
json_t *status_json_bytes(const uint8_t *bytes, size_t len);

/* A name of any bytes: itself, or, when that is not UTF-8, with \xNN for each
 * byte that is not printable ASCII, as rlctl shows those of decisions. */
json_t *status_json_name(const uint8_t *bytes, size_t len);

/* As the configuration has them: 10^-12 permits a second in permits a second,
 * microseconds in seconds. */
json_t *status_json_rate(int64_t rate);
json_t *status_json_seconds(int64_t us);

/* In the form of the configuration. */
json_t *status_json_policy(const struct policy *policy);

/* The text, malloc()ed; takes json. NULL without memory, or for NULL. */
char *status_json_dump(json_t *json);

#endif
