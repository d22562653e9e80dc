/*
 * Reads API keys. The text lives in one buffer on the stack that is wiped on
 * every way out; messages name the file, credential or variable and what is
 * wrong with it, never what it holds.
 */
#include "daemon/config_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/credential.h"
#include "proto/err.h"

/* A key, its newline, and one byte more that tells a longer file. */
#define KEY_READ_MAX (CREDENTIAL_TEXT_MAX + 3)

struct key_place {
	char *file;
	char *credential;
	char *env;
};

static const struct walk_key place_keys[] = {
    {.name = "file",
	.kind = WALK_TEXT,
	.offset = offsetof(struct key_place, file),
	.min = 1,
	.max = PATH_MAX - 1},
    {.name = "credential",
	.kind = WALK_TEXT,
	.offset = offsetof(struct key_place, credential),
	.min = 1,
	.max = NAME_MAX},
    {.name = "env",
	.kind = WALK_TEXT,
	.offset = offsetof(struct key_place, env),
	.min = 1,
	.max = CONFIG_NAME_MAX},
    {.name = NULL},
};

/* kind and name are for messages: "file /etc/x", "variable X". */
static int
accept_text(struct walk *w, const char *kind, const char *name,
    const char *text, size_t len, struct credential *out)
{
	int rc;

	if (len > 0 && text[len - 1] == '\n') {
		len--;
		if (len > 0 && text[len - 1] == '\r')
			len--;
	}
	if (len == 0)
		return walk_fail(w, "%s %s: is empty", kind, name);
	if (len > CREDENTIAL_TEXT_MAX)
		return walk_fail(w, "%s %s: is longer than %d bytes", kind,
		    name, CREDENTIAL_TEXT_MAX);
	rc = credential_parse(text, len, out);
	if (rc != 0)
		return walk_fail(
		    w, "%s %s: %s", kind, name, err_str((enum rla_err)rc));
	return 0;
}

/* Reads up to KEY_READ_MAX bytes; -1 with errno. */
static ssize_t
read_all(int fd, char *text)
{
	size_t len = 0;
	ssize_t n;

	while (len < KEY_READ_MAX) {
		n = read(fd, text + len, KEY_READ_MAX - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Not blocking, so that a pipe in the place of a file cannot hang a start. */
static int
from_file(struct walk *w, const char *kind, const char *name, const char *path,
    bool warn, struct credential *out)
{
	char text[KEY_READ_MAX];
	struct stat st;
	ssize_t len;
	int fd, rc;

	if (walk_add_file(w, path) != 0)
		return RLA_ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return walk_fail(w, "%s %s: %s", kind, name, strerror(errno));
	if (fstat(fd, &st) < 0) {
		rc = walk_fail(w, "%s %s: %s", kind, name, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		rc = walk_fail(w, "%s %s: is not a file", kind, name);
		goto out;
	}
	len = read_all(fd, text);
	if (len < 0)
		rc = walk_fail(w, "%s %s: %s", kind, name, strerror(errno));
	else
		rc = accept_text(w, kind, name, text, (size_t)len, out);
	explicit_bzero(text, sizeof(text));
	if (rc == 0 && warn && (st.st_mode & (S_IRGRP | S_IROTH)) != 0)
		rc = walk_warn(w,
		    "%s %s: can be read by its group or others (mode %04o)",
		    kind, name, (unsigned)st.st_mode & 07777);
out:
	close(fd);
	return rc;
}

static int
from_credential(struct walk *w, const char *name, struct credential *out)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	char path[PATH_MAX];
	int len;

	if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return walk_fail_at(
		    w, "credential", "must be a name, not a path");
	if (dir == NULL || dir[0] != '/')
		return walk_fail(w,
		    "credential %s: CREDENTIALS_DIRECTORY is not set, see "
		    "LoadCredential= in systemd.exec(5)",
		    name);
	len = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return walk_fail(
		    w, "credential %s: %s", name, strerror(ENAMETOOLONG));
	return from_file(w, "credential", name, path, false, out);
}

/* A relative path starts at the folder of the configuration. */
static int
from_named_file(struct walk *w, const char *name, struct credential *out)
{
	const char *slash = strrchr(w->source, '/');
	int dir = slash != NULL ? (int)(slash - w->source + 1) : 0;
	char path[PATH_MAX];
	int len;

	if (name[0] == '/')
		dir = 0;
	len = snprintf(path, sizeof(path), "%.*s%s", dir, w->source, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return walk_fail(
		    w, "file %s: %s", name, strerror(ENAMETOOLONG));
	return from_file(w, "file", path, path, true, out);
}

static int
from_env(struct walk *w, const char *name, struct credential *out)
{
	const char *text;

	if (name[strspn(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_")] != '\0' ||
	    (name[0] >= '0' && name[0] <= '9'))
		return walk_fail_at(
		    w, "env", "must be the name of an environment variable");
	text = getenv(name);
	if (text == NULL)
		return walk_fail(w, "variable %s: is not set", name);
	return accept_text(w, "variable", name, text, strlen(text), out);
}

static int
from_place(
    struct walk *w, const struct key_place *place, struct credential *out)
{
	if ((place->file != NULL) + (place->credential != NULL) +
		(place->env != NULL) !=
	    1)
		return walk_fail(
		    w, "must hold exactly one of file, credential and env");
	if (place->credential != NULL)
		return from_credential(w, place->credential, out);
	if (place->env != NULL)
		return from_env(w, place->env, out);
	return from_named_file(w, place->file, out);
}

int
config_key_parse(struct walk *w, json_t *json, void *where)
{
	struct key_place place = {NULL, NULL, NULL};
	int rc;

	rc = walk_object(w, json, place_keys, &place);
	if (rc == 0)
		rc = from_place(w, &place, where);
	free(place.file);
	free(place.credential);
	free(place.env);
	return rc;
}
