/*
 * See rules_name.h. A name that is the same for every caller is filled in
 * when it is cut.
 */
#include "daemon/rules_name.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/rules_block.h"
#include "proto/err.h"

#define NUMBER_MAX 10 /* digits of a uid_t or gid_t */

/* How many parts; they are put into parts unless that is NULL. */
static size_t
cut(const char *source, struct rules_part *parts)
{
	struct rules_part part = {.text = NULL};
	size_t count = 0;

	for (;;) {
		part.is = template_next(&source, &part.text, &part.len);
		if (part.is == TEMPLATE_END || part.is == TEMPLATE_BAD)
			return count;
		if (parts != NULL)
			parts[count] = part;
		count++;
	}
}

int
rules_name_init(struct rules_name *n, const char *kind, const char *source)
{
	memset(n, 0, sizeof(*n));
	n->kind = kind;
	n->source = source;
	n->count = cut(source, NULL);
	n->parts = calloc(n->count + 1, sizeof(*n->parts));
	if (n->parts == NULL)
		return RLA_ENOMEM;
	cut(source, n->parts);
	if (!template_fixed(source))
		return 0;
	n->fixed_room = malloc(CONFIG_NAME_MAX);
	if (n->fixed_room == NULL)
		return RLA_ENOMEM;
	if (rules_expand(n, NULL, n->fixed_room, &n->fixed, NULL) != 0)
		return RLA_EINVAL;
	n->is_fixed = true;
	return 0;
}

void
rules_name_fini(struct rules_name *n)
{
	free(n->parts);
	free(n->fixed_room);
}

/* In decimal, at the end of room; returns its start. */
static const uint8_t *
number(uint32_t value, uint8_t room[NUMBER_MAX], size_t *len)
{
	size_t at = NUMBER_MAX;

	do
		room[--at] = (uint8_t)('0' + value % 10);
	while ((value /= 10) != 0);
	*len = NUMBER_MAX - at;
	return room + at;
}

/* What a part stands for; NULL when that is not there. */
static const uint8_t *
value_of(const struct rules_part *part, const struct rules_caller *caller,
    uint8_t room[NUMBER_MAX], size_t *len)
{
	switch (part->is) {
	case TEMPLATE_TEXT:
		*len = part->len;
		return (const uint8_t *)part->text;
	case TEMPLATE_KEY:
		*len = caller->key_len;
		return caller->key;
	case TEMPLATE_UID:
		return caller->uid == (uid_t)-1
			   ? NULL
			   : number(caller->uid, room, len);
	case TEMPLATE_GID:
		return caller->gid == (gid_t)-1
			   ? NULL
			   : number(caller->gid, room, len);
	case TEMPLATE_LISTENER:
		*len = strlen(caller->listener);
		return (const uint8_t *)caller->listener;
	case TEMPLATE_END:
	case TEMPLATE_BAD:
		break;
	}
	return NULL;
}

_Static_assert(
    sizeof(uid_t) <= sizeof(uint32_t) && sizeof(gid_t) <= sizeof(uint32_t),
    "numbers");

int
rules_expand(const struct rules_name *n, const struct rules_caller *caller,
    uint8_t room[CONFIG_NAME_MAX], struct ipc_str *out,
    char text[RULES_TEXT_MAX])
{
	uint8_t digits[NUMBER_MAX];
	const uint8_t *value;
	size_t len = 0, used = 0;

	if (n->is_fixed) {
		*out = n->fixed;
		return 0;
	}
	for (size_t i = 0; i < n->count; i++) {
		value = value_of(&n->parts[i], caller, digits, &len);
		if (value == NULL)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" needs %s", n->kind, n->source,
			    n->parts[i].is == TEMPLATE_KEY
				? "a key"
				: "a caller whom the kernel knows: over TCP "
				  "there is no {uid} and no {gid}");
		if (len > CONFIG_NAME_MAX - used)
			return rules_fail(RLA_EINVAL, text,
			    "%s \"%s\" is longer than %d bytes with its "
			    "placeholders filled in",
			    n->kind, n->source, CONFIG_NAME_MAX);
		memcpy(room + used, value, len);
		used += len;
	}
	if (used == 0)
		return rules_fail(RLA_EINVAL, text,
		    "%s \"%s\" is empty with its placeholders filled in",
		    n->kind, n->source);
	*out = (struct ipc_str){room, (uint16_t)used};
	return 0;
}

uint8_t
rules_name_varies(const struct rules_name *n)
{
	uint8_t set = 0;

	for (size_t i = 0; i < n->count; i++) {
		if (n->parts[i].is != TEMPLATE_TEXT)
			set |= (uint8_t)(1U << n->parts[i].is);
	}
	return set;
}
