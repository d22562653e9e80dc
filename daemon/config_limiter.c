/*
 * The host-wide limiters: RateLimiters and ErrorRateControls by name, and the
 * RateLimiter that a rule has of its own. What is written as decimals is kept
 * as integers, in the units that the core counts in: nothing is rounded later.
 */
#include "daemon/config_parse.h"

#include <stdlib.h>

#include "daemon/core/ratelimiter.h"

#define BURST_MAX    1000000
#define DELAY_MAX_MS 3600000
#define MS           1000 /* in microseconds */

/* As they are written. */
struct rate_draft {
	double permits_per_second;
	double max_burst_seconds;
	uint32_t max_keys;
};

static const struct walk_key rate_keys[] = {
    {.name = "permits_per_second",
	.kind = WALK_REAL,
	.offset = offsetof(struct rate_draft, permits_per_second),
	.low = 0.001,
	.high = 1000000},
    {.name = "max_burst_seconds",
	.kind = WALK_REAL,
	.offset = offsetof(struct rate_draft, max_burst_seconds),
	.low = 0.001,
	.high = 3600},
    {.name = "max_keys",
	.kind = WALK_U32,
	.offset = offsetof(struct rate_draft, max_keys),
	.min = 1,
	.max = CONFIG_MAX_KEYS},
    {.name = NULL},
};

/* Times a power of ten, to the nearest integer. Adding a half first would
 * round twice where a double has no halves left. */
static int64_t
scaled(double value, int64_t unit)
{
	const double exact = value * (double)unit;
	const int64_t whole = (int64_t)exact;

	return exact - (double)whole >= 0.5 ? whole + 1 : whole;
}

int
config_parse_rate(struct walk *w, json_t *json, void *where)
{
	struct rate_draft draft = {10, 1, CONFIG_KEYS};
	struct config_rate *rate = where;
	int rc = walk_object(w, json, rate_keys, &draft);

	rate->rate = scaled(draft.permits_per_second, RATELIMITER_ONE);
	rate->burst_us = scaled(draft.max_burst_seconds, 1000 * MS);
	rate->max_keys = draft.max_keys;
	return rc;
}

static int
parse_limiter(struct walk *w, json_t *json, void *row)
{
	struct config_limiter *l = row;

	return config_parse_rate(w, json, &l->is);
}

int
config_parse_limiters(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 0, CONFIG_MAX_LIMITERS, &count);
	if (rc != 0 || count == 0)
		return rc;
	c->limiters = calloc(count, sizeof(*c->limiters));
	if (c->limiters == NULL)
		return walk_nomem(w);
	return walk_table(w, json, c->limiters, sizeof(*c->limiters),
	    &c->limiter_count, parse_limiter);
}

struct control_draft {
	uint32_t burst;
	uint32_t min_delay_ms;
	uint32_t max_delay_ms;
	uint32_t max_keys;
};

static const struct walk_key control_keys[] = {
    {.name = "burst",
	.kind = WALK_U32,
	.offset = offsetof(struct control_draft, burst),
	.min = 0,
	.max = BURST_MAX},
    {.name = "min_delay_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct control_draft, min_delay_ms),
	.min = 1,
	.max = DELAY_MAX_MS},
    {.name = "max_delay_ms",
	.kind = WALK_U32,
	.offset = offsetof(struct control_draft, max_delay_ms),
	.min = 1,
	.max = DELAY_MAX_MS},
    {.name = "max_keys",
	.kind = WALK_U32,
	.offset = offsetof(struct control_draft, max_keys),
	.min = 1,
	.max = CONFIG_MAX_KEYS},
    {.name = NULL},
};

static int
parse_error_control(struct walk *w, json_t *json, void *row)
{
	struct control_draft draft = {3, 100, 30000, CONFIG_KEYS};
	struct config_error_control *e = row;
	int rc = walk_object(w, json, control_keys, &draft);

	if (rc == 0 && draft.min_delay_ms > draft.max_delay_ms) {
		walk_enter(w, "min_delay_ms");
		return walk_fail(w, "%u is over max_delay_ms, which is %u",
		    draft.min_delay_ms, draft.max_delay_ms);
	}
	e->burst = draft.burst;
	e->min_us = (int64_t)draft.min_delay_ms * MS;
	e->max_us = (int64_t)draft.max_delay_ms * MS;
	e->max_keys = draft.max_keys;
	return rc;
}

int
config_parse_error_controls(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 0, CONFIG_MAX_LIMITERS, &count);
	if (rc != 0 || count == 0)
		return rc;
	c->error_controls = calloc(count, sizeof(*c->error_controls));
	if (c->error_controls == NULL)
		return walk_nomem(w);
	return walk_table(w, json, c->error_controls,
	    sizeof(*c->error_controls), &c->error_control_count,
	    parse_error_control);
}
