/*
 * The walker of the configuration parser: the path under the cursor, errors,
 * objects and lists. A key that no table knows is an error. The path buffer
 * is bounded: a longer path is shown without its end.
 */
#include "daemon/config_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/message.h"
#include "proto/err.h"

#define REASON_MAX 512

static void
path_add(struct walk *w, const char *bytes, size_t len)
{
	if (len >= sizeof(w->path) - w->path_len)
		return;
	memcpy(w->path + w->path_len, bytes, len);
	w->path_len += len;
	w->path[w->path_len] = '\0';
}

static bool
key_is_plain(const char *key)
{
	return *key != '\0' &&
	       key[strspn(key,
		   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		   "0123456789_-")] == '\0';
}

/* Bytes of the UTF-8 character at text; jansson has checked the encoding. */
static size_t
char_len(const char *text)
{
	unsigned char c = (unsigned char)*text;

	return c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
}

/* ["na.me"], escaped as in JSON. */
static void
path_add_quoted(struct walk *w, const char *key)
{
	char hex[8];
	size_t len;

	path_add(w, "[\"", 2);
	for (; *key != '\0'; key += len) {
		len = char_len(key);
		if (*key == '"' || *key == '\\')
			path_add(w, "\\", 1);
		if ((unsigned char)*key < 0x20 || *key == 0x7F) {
			snprintf(
			    hex, sizeof(hex), "\\u%04x", (unsigned char)*key);
			path_add(w, hex, strlen(hex));
		} else {
			path_add(w, key, len);
		}
	}
	path_add(w, "\"]", 2);
}

size_t
walk_enter(struct walk *w, const char *key)
{
	size_t mark = w->path_len;

	if (key_is_plain(key)) {
		if (mark > 0)
			path_add(w, ".", 1);
		path_add(w, key, strlen(key));
	} else {
		path_add_quoted(w, key);
	}
	return mark;
}

size_t
walk_enter_item(struct walk *w, size_t index)
{
	size_t mark = w->path_len;
	char text[32];

	snprintf(text, sizeof(text), "[%zu]", index);
	path_add(w, text, strlen(text));
	return mark;
}

void
walk_leave(struct walk *w, size_t mark)
{
	w->path_len = mark;
	w->path[mark] = '\0';
}

/* SOURCE: PATH: REASON, with the path's alias when it has one. */
static void
compose(const struct walk *w, char *out, const char *fmt, va_list ap)
{
	char reason[REASON_MAX];
	const char *shown = "";
	const char *rest = w->path;
	size_t len;

	for (const struct walk_alias *a = w->aliases;
	     a != NULL && a->path != NULL; a++) {
		len = strlen(a->path);
		if (strncmp(w->path, a->path, len) == 0 &&
		    strchr(".[", w->path[len]) != NULL) {
			shown = a->shown;
			rest = w->path + len;
			break;
		}
	}
	vsnprintf(reason, sizeof(reason), fmt, ap);
	message_format(out, CONFIG_ERR_MAX, "%s: %s%s%s%s", w->source, shown,
	    rest, *shown != '\0' || *rest != '\0' ? ": " : "", reason);
}

int
walk_fail(struct walk *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	compose(w, w->err, fmt, ap);
	va_end(ap);
	return RLA_EINVAL;
}

int
walk_fail_at(struct walk *w, const char *key, const char *reason)
{
	size_t mark = walk_enter(w, key);
	int rc = walk_fail(w, "%s", reason);

	walk_leave(w, mark);
	return rc;
}

int
walk_nomem(struct walk *w)
{
	message_format(
	    w->err, CONFIG_ERR_MAX, "%s: %s", w->source, err_str(RLA_ENOMEM));
	return RLA_ENOMEM;
}

int
walk_warn(struct walk *w, const char *fmt, ...)
{
	struct config *c = w->config;
	char line[CONFIG_ERR_MAX];
	char **list;
	va_list ap;

	va_start(ap, fmt);
	compose(w, line, fmt, ap);
	va_end(ap);
	list = realloc(c->warnings, (c->warning_count + 1) * sizeof(*list));
	if (list == NULL)
		return walk_nomem(w);
	c->warnings = list;
	list[c->warning_count] = strdup(line);
	if (list[c->warning_count] == NULL)
		return walk_nomem(w);
	c->warning_count++;
	return 0;
}

int
walk_add_file(struct walk *w, const char *path)
{
	struct config *c = w->config;
	char **list;

	for (size_t i = 0; i < c->file_count; i++) {
		if (strcmp(c->files[i], path) == 0)
			return 0;
	}
	list = realloc(c->files, (c->file_count + 1) * sizeof(*list));
	if (list == NULL)
		return walk_nomem(w);
	c->files = list;
	list[c->file_count] = strdup(path);
	if (list[c->file_count] == NULL)
		return walk_nomem(w);
	c->file_count++;
	return 0;
}

bool
walk_is_comment(const char *key)
{
	return key[0] == '_';
}

/* Whatever is required is there. */
static int
walk_required(struct walk *w, json_t *json, const struct walk_key *keys)
{
	for (; keys->name != NULL; keys++) {
		if (keys->required &&
		    json_object_get(json, keys->name) == NULL) {
			walk_enter(w, keys->name);
			return walk_fail(w, "is missing");
		}
	}
	return 0;
}

int
walk_object(
    struct walk *w, json_t *json, const struct walk_key *keys, void *target)
{
	const struct walk_key *key;
	const char *name;
	json_t *value;
	size_t mark;
	int rc;

	if (!json_is_object(json))
		return walk_fail(w, "must be an object");
	json_object_foreach(json, name, value)
	{
		if (walk_is_comment(name))
			continue;
		mark = walk_enter(w, name);
		for (key = keys; key->name != NULL; key++) {
			if (strcmp(key->name, name) == 0)
				break;
		}
		rc = key->name == NULL ? walk_fail(w, "unknown key")
				       : walk_value(w, value, key,
					     (char *)target + key->offset);
		if (rc != 0)
			return rc;
		walk_leave(w, mark);
	}
	return walk_required(w, json, keys);
}

int
walk_count(struct walk *w, json_t *json, json_type type, size_t min, size_t max,
    size_t *count)
{
	const char *name;
	json_t *value;

	*count = 0;
	if (json_typeof(json) != type)
		return walk_fail(w, "must be an %s",
		    type == JSON_OBJECT ? "object" : "array");
	if (type == JSON_ARRAY)
		*count = json_array_size(json);
	json_object_foreach(json, name, value)
	{
		if (!walk_is_comment(name))
			++*count;
	}
	if (*count < min || *count > max)
		return walk_fail(
		    w, "must have %zu..%zu entries, not %zu", min, max, *count);
	return 0;
}

/* One entry of an object; its row starts with its name. */
static int
fill_row(struct walk *w, const char *name, json_t *value, char *row,
    int (*func)(struct walk *w, json_t *value, void *row))
{
	size_t mark = walk_enter(w, name);
	json_t *text = json_string(name);
	int rc;

	if (text == NULL)
		return walk_nomem(w);
	rc = walk_text(w, text, 1, CONFIG_NAME_MAX, (char **)row);
	json_decref(text);
	if (rc == 0)
		rc = func(w, value, row);
	if (rc == 0)
		walk_leave(w, mark);
	return rc;
}

int
walk_rows(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row))
{
	const char *name;
	json_t *value;
	int rc;

	json_object_foreach(json, name, value)
	{
		if (walk_is_comment(name))
			continue;
		rc = fill_row(
		    w, name, value, (char *)rows + row_size * (*done)++, func);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of an object, comments left out, in order; NULL without memory. */
static const char **
sorted_names(json_t *json, size_t *count)
{
	const char **names = calloc(json_object_size(json) + 1, sizeof(*names));
	const char *name;
	json_t *value;

	*count = 0;
	if (names == NULL)
		return NULL;
	json_object_foreach(json, name, value)
	{
		if (!walk_is_comment(name))
			names[(*count)++] = name;
	}
	qsort(names, *count, sizeof(*names), by_name);
	return names;
}

int
walk_table(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row))
{
	size_t count;
	const char **names = sorted_names(json, &count);
	int rc = names != NULL ? 0 : walk_nomem(w);

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = fill_row(w, names[i], json_object_get(json, names[i]),
		    (char *)rows + row_size * (*done)++, func);
	free(names);
	return rc;
}

int
walk_items(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row))
{
	size_t i, mark;
	json_t *value;
	int rc;

	json_array_foreach(json, i, value)
	{
		mark = walk_enter_item(w, i);
		rc = func(w, value, (char *)rows + row_size * (*done)++);
		if (rc != 0)
			return rc;
		walk_leave(w, mark);
	}
	return 0;
}
