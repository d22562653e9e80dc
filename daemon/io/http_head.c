/*
 * Is the head of a request plain, so that everybody reads the same in it? The
 * library takes fields that RFC 9112 has refused: with a blank before the colon
 * (5.1) they are of another name, and what is folded (5.2) it appends to the
 * name, so that "Content-Len: 9", folded to "gth", becomes the length, and
 * "X-K", folded to "ey", a key that no proxy has seen.
 */
#include "daemon/io/http_private.h"

#include <string.h>

/* A token of RFC 9110. */
static bool
is_token(const char *name, size_t len)
{
	return len > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789!#$%&'*+-.^_`|~") == len;
}

/*
 * The value of a field that is not folded still stands where it came, after its
 * name, a NUL for the colon, and blanks. A name that was folded was moved.
 */
static bool
is_in_place(const char *name, size_t len, const char *value)
{
	const char *colon = name + len, *at = value;

	if (at <= colon)
		return false;
	do
		at--;
	while (at > colon && (*at == ' ' || *at == '\t'));
	return at == colon;
}

static enum MHD_Result
look(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
    const char *value, size_t len)
{
	bool *plain = arg;

	(void)kind;
	(void)len;
	*plain = is_token(name, name_len) && is_in_place(name, name_len, value);
	return *plain ? MHD_YES : MHD_NO;
}

bool
http_head_is_plain(struct MHD_Connection *mhd)
{
	bool plain = true;

	MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, look, &plain);
	return plain;
}
