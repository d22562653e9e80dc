/*
 * Single values of the configuration, by kind. Numbers are read as 64 bits
 * and checked before they are narrowed; JSON's 2.0 and 1e3 are no integers.
 */
#include "daemon/config_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
walk_u32(
    struct walk *w, json_t *json, uint32_t min, uint32_t max, uint32_t *out)
{
	json_int_t value;

	if (!json_is_integer(json))
		return walk_fail(w, "must be an integer");
	value = json_integer_value(json);
	if (value < (json_int_t)min || value > (json_int_t)max)
		return walk_fail(w, "must be %u..%u, not %" JSON_INTEGER_FORMAT,
		    min, max, value);
	*out = (uint32_t)value;
	return 0;
}

/* JSON knows no NaN, and jansson refuses what does not fit a double. */
static int
walk_real(struct walk *w, json_t *json, const struct walk_key *key, double *out)
{
	double value = json_number_value(json);

	if (!json_is_number(json))
		return walk_fail(w, "must be a number");
	if (!(value >= key->low && value <= key->high))
		return walk_fail(w, "must be %.10g..%.10g, not %.15g", key->low,
		    key->high, value);
	*out = value;
	return 0;
}

int
walk_text(struct walk *w, json_t *json, uint32_t min, uint32_t max, char **out)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);
	char *copy;

	if (text == NULL)
		return walk_fail(w, "must be a string");
	if (len < min || len > max)
		return walk_fail(w, "must be %u..%u bytes long", min, max);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
			return walk_fail(w, "must not hold control characters");
	}
	copy = strdup(text);
	if (copy == NULL)
		return walk_nomem(w);
	free(*out);
	*out = copy;
	return 0;
}

static bool
is_file_path(const char *text)
{
	const char *last = strrchr(text, '/');

	return text[0] == '/' && last[1] != '\0' && strcmp(last, "/.") != 0 &&
	       strcmp(last, "/..") != 0;
}

/* In its place, less its empty and its "." parts. What ".." leads to is the
 * kernel's to say: there may be links. */
static void
path_shorten(char *path)
{
	const char *in = path;
	char *out = path;
	size_t len;

	for (; *in != '\0'; in += len) {
		in += strspn(in, "/");
		len = strcspn(in, "/");
		if (len == 0 || (len == 1 && *in == '.'))
			continue;
		*out++ = '/';
		memmove(out, in, len);
		out += len;
	}
	*out = '\0';
}

static int
walk_path(struct walk *w, json_t *json, char **out)
{
	const char *text = json_string_value(json);
	int rc;

	if (text != NULL && !is_file_path(text))
		return walk_fail(w, "must be the absolute path of a file");
	rc = walk_text(w, json, 2, WALK_SOCKET_MAX, out);
	if (rc == 0)
		path_shorten(*out);
	return rc;
}

static int
walk_mode(struct walk *w, json_t *json, mode_t *out)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);

	if (text == NULL || strspn(text, "01234567") != len || len < 3 ||
	    len > 4 || (len == 4 && text[0] != '0'))
		return walk_fail(
		    w, "must be a string of octal digits, as in \"0660\"");
	*out = (mode_t)strtoul(text, NULL, 8);
	return 0;
}

static int
walk_word(struct walk *w, json_t *json, const char *const *words, int *out)
{
	const char *text = json_string_value(json);
	char list[128] = "";
	size_t len = 0;

	for (int i = 0; words[i] != NULL; i++) {
		if (text != NULL && strcmp(text, words[i]) == 0) {
			*out = i;
			return 0;
		}
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len,
			    "%s\"%s\"", i > 0 ? ", " : "", words[i]);
	}
	return walk_fail(w, "must be one of %s", list);
}

static int
walk_bool(struct walk *w, json_t *json, bool *out)
{
	if (!json_is_boolean(json))
		return walk_fail(w, "must be true or false");
	*out = json_is_true(json);
	return 0;
}

static int
walk_tri(struct walk *w, json_t *json, int *out)
{
	if (!json_is_boolean(json) && !json_is_null(json))
		return walk_fail(w, "must be true, false or null");
	*out = json_is_null(json) ? -1 : json_is_true(json);
	return 0;
}

int
walk_value(
    struct walk *w, json_t *json, const struct walk_key *key, void *where)
{
	uint32_t number = 0;
	int rc;

	if (key->null_ok && json_is_null(json))
		return 0;
	switch (key->kind) {
	case WALK_BOOL:
		return walk_bool(w, json, where);
	case WALK_TRI:
		return walk_tri(w, json, where);
	case WALK_U16:
		rc = walk_u32(w, json, key->min, key->max, &number);
		if (rc == 0)
			*(uint16_t *)where = (uint16_t)number;
		return rc;
	case WALK_U32:
		return walk_u32(w, json, key->min, key->max, where);
	case WALK_REAL:
		return walk_real(w, json, key, where);
	case WALK_TEXT:
		return walk_text(w, json, key->min, key->max, where);
	case WALK_PATH:
		return walk_path(w, json, where);
	case WALK_MODE:
		return walk_mode(w, json, where);
	case WALK_WORD:
		return walk_word(w, json, key->words, where);
	case WALK_RAW:
		*(json_t **)where = json;
		return 0;
	case WALK_FUNC:
		return key->func(w, json, where);
	}
	return walk_fail(w, "cannot be read");
}
