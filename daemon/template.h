/*
 * Names with placeholders: {key}, {uid}, {gid} and {listener}; {{ and }} stand
 * for one brace. The configuration checks a template with this, the rules
 * expand it, so both read it alike. Pure: no memory, no state.
 */
#ifndef DAEMON_TEMPLATE_H
#define DAEMON_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

enum template_part {
	TEMPLATE_END,
	TEMPLATE_TEXT, /* *text and *len hold a piece to copy */
	TEMPLATE_KEY,
	TEMPLATE_UID,
	TEMPLATE_GID,
	TEMPLATE_LISTENER,
	TEMPLATE_BAD, /* a lone brace or an unknown placeholder at *at */
};

/* Takes the next part and moves *at past it (not past TEMPLATE_BAD). */
enum template_part template_next(
    const char **at, const char **text, size_t *len);

/* Does the template mean one and the same name for every caller? */
bool template_fixed(const char *name);

#endif
