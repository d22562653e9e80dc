/* See status_json.h. */
#include "daemon/status_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "daemon/core/ratelimiter.h"
#include "proto/id.h"

json_t *
status_json_counters(const struct counter_row *rows, const void *counters)
{
	json_t *out = json_object();
	uint64_t v;

	for (; rows->name != NULL; rows++) {
		memcpy(&v, (const char *)counters + rows->offset, sizeof(v));
		json_object_set_new(
		    out, rows->name, json_integer((json_int_t)v));
	}
	return out;
}

json_t *
status_json_u64(uint64_t v)
{
	return json_sprintf("%" PRIu64, v);
}

/* Digits of a number that is not whole: a tenth is 0.1. */
#define DIGITS 15

/* The longest of both fits below. */
_Static_assert(ID_LEN <= CONFIG_HASH_LEN, "bytes");

json_t *
status_json_bytes(const uint8_t *bytes, size_t len)
{
	char text[2 * CONFIG_HASH_LEN + 1] = "";

	for (size_t i = 0; i < len && i < CONFIG_HASH_LEN; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	return json_string(text);
}

json_t *
status_json_name(const uint8_t *bytes, size_t len)
{
	json_t *json = json_stringn((const char *)bytes, len);
	char text[4 * CONFIG_NAME_MAX + 1] = "", *to = text;

	if (json != NULL)
		return json;
	for (size_t i = 0; i < len && i < CONFIG_NAME_MAX; i++)
		to += sprintf(to,
		    bytes[i] >= ' ' && bytes[i] <= '~' ? "%c" : "\\x%02x",
		    bytes[i]);
	return json_string(text);
}

json_t *
status_json_rate(int64_t rate)
{
	return json_real((double)rate / (double)RATELIMITER_ONE);
}

json_t *
status_json_seconds(int64_t us)
{
	return json_real((double)us / 1e6);
}

static json_t *
growing_json(const struct schedule *s, const char *kind, const char *growth)
{
	return json_pack("{s:{s:I, s:I, s:I}}", kind, "initial",
	    (json_int_t)s->initial, growth, (json_int_t)s->growth, "max",
	    (json_int_t)s->max);
}

static json_t *
schedule_json(const struct schedule *s)
{
	switch (s->kind) {
	case SCHEDULE_FIXED:
		return json_pack("{s:I}", "fixed", (json_int_t)s->initial);
	case SCHEDULE_LINEAR:
		return growing_json(s, "linear", "step");
	case SCHEDULE_EXPONENTIAL:
		return growing_json(s, "exponential", "factor");
	}
	return NULL;
}

json_t *
status_json_policy(const struct policy *p)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:I, s:I, s:b, s:I}", "unit_ms",
	    (json_int_t)p->unit_ms, "replay_count", (json_int_t)p->replay_count,
	    "replay_gap", schedule_json(&p->gap), "preference",
	    p->first_round ? json_string("first-round")
			   : schedule_json(&p->preference),
	    "final_receive_units", (json_int_t)p->final_units,
	    "final_preference_units", (json_int_t)p->final_preference_units,
	    "completion_delivery", p->completion_delivery, "suspect_after",
	    (json_int_t)p->suspect_after);
}

char *
status_json_dump(json_t *json)
{
	char *text =
	    json != NULL
		? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS))
		: NULL;

	json_decref(json);
	return text;
}
