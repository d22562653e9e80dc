/*
 * Trackers, and the check of names that may hold placeholders: those of
 * trackers and of buckets.
 */
#include "daemon/config_parse.h"

#include <stdlib.h>

#include "daemon/template.h"
#include "proto/err.h"

int
config_check_template(struct walk *w, const char *name)
{
	const char *text;
	size_t len;

	for (;;) {
		switch (template_next(&name, &text, &len)) {
		case TEMPLATE_END:
			return 0;
		case TEMPLATE_BAD:
			return walk_fail(w,
			    "a brace must be part of {key}, {uid}, {gid}, "
			    "{listener}, {{ or }}");
		case TEMPLATE_TEXT:
		case TEMPLATE_KEY:
		case TEMPLATE_UID:
		case TEMPLATE_GID:
		case TEMPLATE_LISTENER:
			break;
		}
	}
}

static const struct walk_key tracker_keys[] = {
    WALK_POSITIVE("ttl_ms", struct config_tracker, ttl_ms),
    WALK_POSITIVE("max_samples", struct config_tracker, max_samples),
    WALK_POSITIVE("buffer_size", struct config_tracker, buffer_size),
    WALK_POSITIVE("min_samples", struct config_tracker, min_samples),
    {.name = NULL},
};

static int
parse_tracker(struct walk *w, json_t *json, void *row)
{
	struct config_tracker *t = row;

	t->ttl_ms = 10000;
	t->max_samples = 100;
	t->buffer_size = 32;
	t->min_samples = 5;
	if (config_check_template(w, t->name) != 0)
		return RLA_EINVAL;
	return walk_object(w, json, tracker_keys, t);
}

int
config_parse_trackers(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 0, CONFIG_MAX_TRACKERS, &count);
	if (rc != 0 || count == 0)
		return rc;
	c->trackers = calloc(count, sizeof(*c->trackers));
	if (c->trackers == NULL)
		return walk_nomem(w);
	return walk_table(w, json, c->trackers, sizeof(*c->trackers),
	    &c->tracker_count, parse_tracker);
}
