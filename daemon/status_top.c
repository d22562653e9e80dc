/*
 * See status_top.h. What has faded below a half is not shown. Counts are whole:
 * the true one is at most what is shown, and at least that less its error.
 */
#include "daemon/status_top.h"

#include <stdlib.h>

#include "daemon/status_json.h"

/* Sums of what fades are this near to whole numbers where they mean them. */
#define NEAR 1e-6
/* What is shown. */
#define LEAST 0.5

static json_int_t
whole(double v)
{
	return (json_int_t)(v + NEAR);
}

static json_int_t
not_less(double v)
{
	const json_int_t n = whole(v);

	return v - (double)n > NEAR ? n + 1 : n;
}

static json_t *
key_json(const struct topk_key *k)
{
	const json_int_t denied = not_less(k->count);

	return json_pack("{s:o, s:I, s:I}", "key",
	    status_json_name(k->bytes, k->len), "denied", denied, "error",
	    denied - whole(k->count - k->error));
}

/* At most max of them; room is for as many as are kept. */
static json_t *
keys_json(struct topk *t, struct topk_key *room, uint32_t max, int64_t now)
{
	const uint32_t n = topk_list(t, room, now);
	json_t *out = json_array();

	for (uint32_t i = 0; i < n && i < max && room[i].count >= LEAST; i++)
		json_array_append_new(out, key_json(&room[i]));
	return out;
}

/* Has it denied any? */
static bool
has_any(struct topk *t, int64_t now)
{
	return t != NULL && topk_total(t, now) >= LEAST;
}

/* So many of each rule that the document has its bound. */
static uint32_t
share(const struct setup *setup, int64_t now)
{
	uint32_t rules = 0;

	for (size_t i = 0; i < setup->config->rule_count; i++)
		rules += has_any(setup->denied[i], now);
	return rules > 0 ? STATUS_TOP_KEYS / rules : 0;
}

static json_t *
rules_json(const struct setup *setup, int64_t now)
{
	const struct config *c = setup->config;
	struct topk_key *room;
	json_t *out = json_array();
	uint32_t max;

	if (setup->denied == NULL)
		return out;
	room = calloc(c->top_denied_keys, sizeof(*room));
	max = share(setup, now);
	for (size_t i = 0; room != NULL && i < c->rule_count; i++) {
		struct topk *t = setup->denied[i];

		if (!has_any(t, now))
			continue;
		json_array_append_new(
		    out, json_pack("{s:s, s:I, s:o}", "rule", c->rules[i].name,
			     "denied", not_less(topk_total(t, now)), "keys",
			     keys_json(t, room, max, now)));
	}
	if (room == NULL) {
		json_decref(out);
		out = NULL;
	}
	free(room);
	return out;
}

char *
status_top(const struct setup *setup, int64_t now)
{
	json_t *rules = rules_json(setup, now);

	if (rules == NULL)
		return NULL;
	return status_json_dump(json_pack("{s:I, s:I, s:I, s:o}", "generation",
	    (json_int_t)setup->generation, "top_denied_keys",
	    (json_int_t)setup->config->top_denied_keys, "half_life_ms",
	    (json_int_t)(TOPK_HALF_US / 1000), "rules", rules));
}
