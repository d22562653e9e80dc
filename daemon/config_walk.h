/*
 * The walker that the parts of the configuration parser share: an object is
 * read by a table of its keys, each with its kind, its range and where the
 * value goes. Keeps the path of the value under the cursor, so that every
 * error names it. Inside the configuration only: jansson types stop here.
 */
#ifndef DAEMON_CONFIG_WALK_H
#define DAEMON_CONFIG_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "daemon/config.h"

#define WALK_PATH_MAX   512
#define WALK_SOCKET_MAX 107 /* bytes in sockaddr_un.sun_path, less the NUL */

/* Shown instead of a path and what is under it; "" hides the path itself. */
struct walk_alias {
	const char *path; /* NULL ends the list */
	const char *shown;
};

struct walk {
	struct config *config; /* being built; owned by the caller */
	const char *source;
	const struct walk_alias *aliases; /* NULL: none */
	char *err;                        /* CONFIG_ERR_MAX bytes */
	size_t path_len;
	char path[WALK_PATH_MAX];
};

enum walk_kind {
	WALK_BOOL, /* bool */
	WALK_TRI,  /* int: 0, 1, or -1 for null */
	WALK_U16,
	WALK_U32,  /* min..max, JSON integers only */
	WALK_REAL, /* double: low..high, any JSON number */
	WALK_TEXT, /* char *: min..max bytes, no control characters */
	WALK_PATH, /* char *: an absolute path that fits sockaddr_un,
		    * shortened: no empty and no "." parts */
	WALK_MODE, /* mode_t, from an octal string */
	WALK_WORD, /* int or enum: the index in words */
	WALK_RAW,  /* json_t *, borrowed, any type */
	WALK_FUNC, /* func(walk, value, where) */
};

struct walk_key {
	const char *name; /* NULL ends the table */
	enum walk_kind kind;
	size_t offset; /* into the target */
	uint32_t min;
	uint32_t max;
	double low;
	double high;
	bool required;
	bool null_ok; /* null leaves the target as it is */
	const char *const *words;
	int (*func)(struct walk *w, json_t *value, void *where);
};

/* Both write one line; walk_fail returns RLA_EINVAL, the other RLA_ENOMEM. */
int walk_fail(struct walk *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int walk_nomem(struct walk *w);
/* The value of this key of the object under the cursor is at fault. */
int walk_fail_at(struct walk *w, const char *key, const char *reason);
/* Adds a warning about the value under the cursor. 0 or RLA_ENOMEM. */
int walk_warn(struct walk *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A file whose change makes another configuration. 0 or RLA_ENOMEM. */
int walk_add_file(struct walk *w, const char *path);

/* Move the cursor down; what they return, walk_leave() goes back to. */
size_t walk_enter(struct walk *w, const char *key);
size_t walk_enter_item(struct walk *w, size_t index);
void walk_leave(struct walk *w, size_t mark);

/* Keys that start with '_' are comments. */
bool walk_is_comment(const char *key);

/*
 * All of these return 0, or a negative number with the error written.
 *
 * walk_object reads by a table; defaults are the caller's, set before.
 * walk_count counts an object's entries (comments left out) or an array's and
 * holds them to min..max; walk_rows then fills that many rows of an object of
 * named entries, each row starting with a char *name, and walk_items those of
 * an array. *done counts the rows begun, so that a failure frees them all.
 * walk_table is walk_rows in the order of the names, so that the rows are
 * sorted as they are filled: no row is moved with a secret in it.
 */
int walk_object(
    struct walk *w, json_t *json, const struct walk_key *keys, void *target);
int walk_count(struct walk *w, json_t *json, json_type type, size_t min,
    size_t max, size_t *count);
int walk_rows(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row));
int walk_table(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row));
int walk_items(struct walk *w, json_t *json, void *rows, size_t row_size,
    size_t *done, int (*func)(struct walk *w, json_t *value, void *row));

/* One value (config_value.c); where is the target plus the key's offset. */
int walk_value(
    struct walk *w, json_t *json, const struct walk_key *key, void *where);
/* The same for WALK_FUNC functions. walk_text replaces *out. */
int walk_u32(
    struct walk *w, json_t *json, uint32_t min, uint32_t max, uint32_t *out);
int walk_text(
    struct walk *w, json_t *json, uint32_t min, uint32_t max, char **out);

#endif
