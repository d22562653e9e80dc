/* The fields are read from the right, since a name may hold colons. */
#include "client-shim/rlctl_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-shim/rlctl.h"

/* Takes the last :NUMBER off the first *len bytes of text. */
static uint32_t
last_number(const char *option, const char *text, size_t *len, const char *form)
{
	char digits[16];
	size_t at = *len, n;

	while (at > 0 && text[at - 1] != ':')
		at--;
	n = *len - at;
	if (at < 2 || n == 0 || n >= sizeof(digits))
		exit(rlctl_fail(RLCTL_USAGE,
		    "%s: must be of the form %s, not \"%s\"", option, form,
		    text));
	memcpy(digits, text + at, n);
	digits[n] = '\0';
	*len = at - 1;
	return rlctl_number(option, digits, 0, UINT32_MAX);
}

static void
spec(const char *option, const char *text, size_t len, const char *form,
    struct rl_guard *out)
{
	out->min_samples = last_number(option, text, &len, form);
	out->buffer_size = last_number(option, text, &len, form);
	out->max_samples = last_number(option, text, &len, form);
	out->ttl_ms = last_number(option, text, &len, form);
	out->tracker = text;
	out->tracker_len = len;
}

void
rlctl_spec_guard(const char *option, const char *text, struct rl_guard *out)
{
	static const char form[] = "NAME:TTL:MAX:BUF:MIN:BELOW";
	size_t len = strlen(text);

	memset(out, 0, sizeof(*out));
	out->below_ms = last_number(option, text, &len, form);
	spec(option, text, len, form, out);
}

void
rlctl_spec_tracker(const char *option, const char *text, struct rl_guard *out)
{
	memset(out, 0, sizeof(*out));
	spec(option, text, strlen(text), "NAME:TTL:MAX:BUF:MIN", out);
	out->below_ms = 1; /* a report has none; any valid value */
}
