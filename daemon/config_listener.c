/*
 * Listeners and the control socket. No two of them may want the same file,
 * groups are resolved here: a configuration that names an unknown group is
 * refused.
 */
#include "daemon/config_parse.h"

#include <errno.h>
#include <fnmatch.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/err.h"

#define DEFAULT_PATH    "/run/rl-agent/agent.sock"
#define CONTROL_FILE    "control.sock"
#define GROUP_NAME_MAX  255
#define GROUP_BYTES_MAX 1048576          /* members included */
#define ID_MAX          (UINT32_MAX - 1) /* -1 means "no change" to chown */

static int
parse_pattern(struct walk *w, json_t *json, void *row)
{
	return walk_text(w, json, 1, CONFIG_NAME_MAX, row);
}

int
config_parse_patterns(struct walk *w, json_t *json, void *where)
{
	struct config_patterns *p = where;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, CONFIG_MAX_PATTERNS, &count);
	if (rc != 0)
		return rc;
	config_patterns_fini(p);
	if (count == 0)
		return 0;
	p->list = calloc(count, sizeof(*p->list));
	if (p->list == NULL)
		return walk_nomem(w);
	return walk_items(
	    w, json, p->list, sizeof(*p->list), &p->count, parse_pattern);
}

int
config_default_patterns(struct walk *w, struct config_patterns *p)
{
	p->list = calloc(1, sizeof(*p->list));
	if (p->list == NULL)
		return walk_nomem(w);
	p->count = 1;
	p->list[0] = strdup("*");
	return p->list[0] == NULL ? walk_nomem(w) : 0;
}

/* uid_t and gid_t are 32 bits wide here, so one reader does for both. */
_Static_assert(sizeof(uid_t) == sizeof(uint32_t), "uid_t");
_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "gid_t");

static int
parse_id(struct walk *w, json_t *json, void *row)
{
	return walk_u32(w, json, 0, ID_MAX, row);
}

static int
parse_ids(struct walk *w, json_t *json, uint32_t **ids, size_t *done)
{
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_ARRAY, 0, CONFIG_MAX_IDS, &count);
	if (rc != 0 || count == 0)
		return rc;
	*ids = calloc(count, sizeof(**ids));
	if (*ids == NULL)
		return walk_nomem(w);
	return walk_items(w, json, *ids, sizeof(**ids), done, parse_id);
}

/* where is the struct config_listener, here and below. */
static int
parse_uids(struct walk *w, json_t *json, void *where)
{
	struct config_listener *l = where;

	return parse_ids(w, json, &l->uids, &l->uid_count);
}

static int
parse_gids(struct walk *w, json_t *json, void *where)
{
	struct config_listener *l = where;

	return parse_ids(w, json, &l->gids, &l->gid_count);
}

/* getgrnam_r() wants room for every member of the group: let it grow. */
static int
find_group(const char *name, gid_t *gid)
{
	struct group entry, *found = NULL;
	size_t size = 1024;
	char *room = NULL, *more;
	int rc;

	do {
		size *= 2;
		more = realloc(room, size);
		if (more == NULL) {
			free(room);
			return RLA_ENOMEM;
		}
		room = more;
		rc = getgrnam_r(name, &entry, room, size, &found);
	} while (rc == ERANGE && size < GROUP_BYTES_MAX);
	if (found != NULL)
		*gid = entry.gr_gid;
	free(room);
	return found != NULL ? 0 : RLA_ENOENT;
}

int
config_parse_group(struct walk *w, json_t *json, char **group, gid_t *gid)
{
	int rc = walk_text(w, json, 1, GROUP_NAME_MAX, group);

	if (rc != 0)
		return rc;
	rc = find_group(*group, gid);
	if (rc == RLA_ENOMEM)
		return walk_nomem(w);
	return rc == 0 ? 0 : walk_fail(w, "no group has this name");
}

static int
parse_group(struct walk *w, json_t *json, void *where)
{
	struct config_listener *l = where;

	return config_parse_group(w, json, &l->group, &l->gid);
}

static const struct walk_key listener_keys[] = {
    {.name = "path",
	.kind = WALK_PATH,
	.offset = offsetof(struct config_listener, path)},
    {.name = "mode",
	.kind = WALK_MODE,
	.offset = offsetof(struct config_listener, mode)},
    {.name = "group",
	.kind = WALK_FUNC,
	.offset = 0,
	.null_ok = true,
	.func = parse_group},
    {.name = "rules",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_listener, rules),
	.func = config_parse_patterns},
    {.name = "limiters",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_listener, limiters),
	.func = config_parse_patterns},
    {.name = "error_controls",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_listener, error_controls),
	.func = config_parse_patterns},
    {.name = "trackers",
	.kind = WALK_FUNC,
	.offset = offsetof(struct config_listener, trackers),
	.func = config_parse_patterns},
    {.name = "adhoc",
	.kind = WALK_BOOL,
	.offset = offsetof(struct config_listener, adhoc)},
    {.name = "uids", .kind = WALK_FUNC, .offset = 0, .func = parse_uids},
    {.name = "gids", .kind = WALK_FUNC, .offset = 0, .func = parse_gids},
    {.name = "max_connections",
	.kind = WALK_U32,
	.offset = offsetof(struct config_listener, max_connections),
	.min = 1,
	.max = CONFIG_MAX_CONNS},
    {.name = "max_inflight",
	.kind = WALK_U32,
	.offset = offsetof(struct config_listener, max_inflight),
	.min = 1,
	.max = CONFIG_MAX_INFLIGHT},
    {.name = NULL},
};

static bool
find_folder(const char *path, struct stat *out)
{
	char folder[WALK_SOCKET_MAX + sizeof("/.")];

	snprintf(folder, sizeof(folder), "%.*s/.",
	    (int)(strrchr(path, '/') - path), path);
	return stat(folder, out) == 0;
}

/* By one name or another: links may lead to the same folder. Of a folder that
 * is not there yet only the text tells. */
static bool
same_folder(const char *a, const char *b)
{
	const long len = strrchr(a, '/') - a;
	struct stat sa, sb;

	if (strrchr(b, '/') - b == len && strncmp(a, b, (size_t)len) == 0)
		return true;
	return find_folder(a, &sa) && find_folder(b, &sb) &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

bool
config_same_path(const char *a, const char *b)
{
	return strcmp(strrchr(a, '/'), strrchr(b, '/')) == 0 &&
	       same_folder(a, b);
}

/* Is b the name of a, or one that a needs beside it (daemon/io/listener.h)? */
static bool
takes_name(const char *a, const char *b)
{
	size_t len = strlen(a);

	return strncmp(a, b, len) == 0 &&
	       (b[len] == '\0' || strcmp(b + len, ".lock") == 0 ||
		   strcmp(b + len, ".new") == 0);
}

int
config_check_path(struct walk *w, const char *path, const char *other,
    const char *kind, const char *whose)
{
	const char *a = strrchr(path, '/'), *b = strrchr(other, '/');

	if (!(takes_name(a, b) || takes_name(b, a)) ||
	    !same_folder(path, other))
		return 0;
	if (strcmp(a, b) == 0)
		return walk_fail(w, "is the path of %s%s, too", kind, whose);
	return walk_fail(w,
	    "is too near to that of %s%s: PATH.lock and PATH.new are taken, "
	    "too",
	    kind, whose);
}

/* The value under the cursor against the listeners before this one. */
static int
check_path(struct walk *w, const char *path, const struct config_listener *end)
{
	const struct config_listener *l = w->config->listeners;
	int rc = 0;

	for (; l < end && rc == 0; l++)
		rc = config_check_path(w, path, l->path, "listener ", l->name);
	return rc;
}

/* Rows start with their name. */
static bool
matches(const char *pattern, const void *rows, size_t count, size_t size)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const char *name =
		    *(char *const *)((const char *)rows + i * size);

		if (fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return strcmp(pattern, "*") == 0;
}

/* A pattern that allows nothing is a slip of the pen, or of tomorrow. */
int
config_warn_of_patterns(struct walk *w, const char *key,
    const struct config_patterns *p, const void *rows, size_t count,
    size_t size)
{
	size_t list = walk_enter(w, key), mark, i;
	int rc = 0;

	for (i = 0; i < p->count && rc == 0; i++) {
		if (matches(p->list[i], rows, count, size))
			continue;
		mark = walk_enter_item(w, i);
		rc = walk_warn(w, "matches none of the %s", key);
		walk_leave(w, mark);
	}
	walk_leave(w, list);
	return rc;
}

static int
warn_of_listener(struct walk *w, const struct config_listener *l)
{
	const struct config *c = w->config;
	int rc = config_warn_of_patterns(
	    w, "rules", &l->rules, c->rules, c->rule_count, sizeof(*c->rules));

	if (rc == 0)
		rc = config_warn_of_patterns(w, "trackers", &l->trackers,
		    c->trackers, c->tracker_count, sizeof(*c->trackers));
	if (rc == 0)
		rc = config_warn_of_patterns(w, "limiters", &l->limiters,
		    c->limiters, c->limiter_count, sizeof(*c->limiters));
	if (rc == 0)
		rc = config_warn_of_patterns(w, "error_controls",
		    &l->error_controls, c->error_controls,
		    c->error_control_count, sizeof(*c->error_controls));
	return rc;
}

static int
default_listener(struct walk *w, struct config_listener *l)
{
	int rc = config_default_patterns(w, &l->rules);

	l->mode = 0660;
	l->gid = (gid_t)-1;
	l->adhoc = true;
	l->max_connections = 1024;
	l->max_inflight = 16384;
	if (rc == 0)
		rc = config_default_patterns(w, &l->trackers);
	if (rc == 0)
		rc = config_default_patterns(w, &l->limiters);
	if (rc == 0)
		rc = config_default_patterns(w, &l->error_controls);
	return rc;
}

static int
parse_listener(struct walk *w, json_t *json, void *row)
{
	struct config_listener *l = row;
	int rc = default_listener(w, l);
	size_t mark;

	if (rc == 0)
		rc = walk_object(w, json, listener_keys, l);
	if (rc == 0 && l->path == NULL) {
		l->path = strdup(DEFAULT_PATH);
		if (l->path == NULL)
			rc = walk_nomem(w);
	}
	if (rc != 0)
		return rc;
	mark = walk_enter(w, "path");
	rc = check_path(w, l->path, l);
	walk_leave(w, mark);
	return rc != 0 ? rc : warn_of_listener(w, l);
}

int
config_parse_listeners(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t count;
	int rc;

	rc = walk_count(w, json, JSON_OBJECT, 1, CONFIG_MAX_LISTENERS, &count);
	if (rc != 0)
		return rc;
	c->listeners = calloc(count, sizeof(*c->listeners));
	if (c->listeners == NULL)
		return walk_nomem(w);
	return walk_rows(w, json, c->listeners, sizeof(*c->listeners),
	    &c->listener_count, parse_listener);
}

static const struct walk_key control_keys[] = {
    {.name = "path",
	.kind = WALK_PATH,
	.offset = offsetof(struct config_control, path),
	.null_ok = true},
    {.name = "mode",
	.kind = WALK_MODE,
	.offset = offsetof(struct config_control, mode)},
    {.name = NULL},
};

/* Beside the first listener, where rlctl looks for it. */
static int
resolve_control_path(struct walk *w, struct config_control *control)
{
	const char *first = w->config->listeners[0].path;
	int dir = (int)(strrchr(first, '/') + 1 - first);

	if (control->path == NULL &&
	    asprintf(&control->path, "%.*s%s", dir, first, CONTROL_FILE) < 0) {
		control->path = NULL;
		return walk_nomem(w);
	}
	if (strlen(control->path) > WALK_SOCKET_MAX)
		return walk_fail(w,
		    "the default, beside the first listener, is longer than "
		    "%d bytes",
		    WALK_SOCKET_MAX);
	return 0;
}

int
config_parse_control(struct walk *w, json_t *json)
{
	struct config *c = w->config;
	size_t mark = walk_enter(w, "control");
	int rc;

	c->control.mode = 0600;
	rc = json == NULL ? 0 : walk_object(w, json, control_keys, &c->control);
	if (rc != 0)
		return rc;
	walk_enter(w, "path");
	rc = resolve_control_path(w, &c->control);
	if (rc == 0)
		rc = check_path(
		    w, c->control.path, c->listeners + c->listener_count);
	walk_leave(w, mark);
	return rc;
}
