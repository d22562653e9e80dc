/*
 * The scanner of names with placeholders. A part is decided by looking at the
 * bytes at the cursor only; a template that was scanned to TEMPLATE_END once
 * never yields TEMPLATE_BAD again.
 */
#include "daemon/template.h"

#include <string.h>

static const struct {
	const char *text;
	enum template_part part;
} placeholders[] = {
    {"{key}", TEMPLATE_KEY},
    {"{uid}", TEMPLATE_UID},
    {"{gid}", TEMPLATE_GID},
    {"{listener}", TEMPLATE_LISTENER},
};

static enum template_part
placeholder(const char **at)
{
	size_t len;

	for (size_t i = 0; i < sizeof(placeholders) / sizeof(*placeholders);
	     i++) {
		len = strlen(placeholders[i].text);
		if (strncmp(*at, placeholders[i].text, len) == 0) {
			*at += len;
			return placeholders[i].part;
		}
	}
	return TEMPLATE_BAD;
}

enum template_part
template_next(const char **at, const char **text, size_t *len)
{
	char c = **at;

	if (c == '\0')
		return TEMPLATE_END;
	if (c != '{' && c != '}') {
		*text = *at;
		*len = strcspn(*at, "{}");
		*at += *len;
		return TEMPLATE_TEXT;
	}
	if ((*at)[1] == c) {
		*text = *at;
		*len = 1;
		*at += 2;
		return TEMPLATE_TEXT;
	}
	return placeholder(at);
}

bool
template_fixed(const char *name)
{
	const char *text;
	size_t len;
	enum template_part part;

	do
		part = template_next(&name, &text, &len);
	while (part == TEMPLATE_TEXT);
	return part == TEMPLATE_END;
}
