/*
 * What will keep a socket from being made at a path, as far as it can be known
 * without making it, and whoever asks: rights are another user's, and who
 * serves the path now may be the agent that is to be replaced. The words are
 * those of listener.c.
 */
#include "daemon/io/listener.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int
fail(const char *file, const char *what, int error, char err[LISTENER_ERR_MAX])
{
	snprintf(err, LISTENER_ERR_MAX, "%.150s: cannot %s: %s", file, what,
	    strerror(error));
	return -1;
}

/* What is before the last slash of a path that fits. */
static void
parent(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash == NULL ? 1 : (size_t)(slash - path);

	snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)len,
	    slash != NULL ? path : ".");
}

/* The errno that writing into a folder meets, whatever the rights; else 0. */
static int
folder_error(const char *dir)
{
	struct stat st;

	if (stat(dir, &st) != 0)
		return errno == EACCES ? 0 : errno;
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	return access(dir, W_OK) != 0 && errno == EROFS ? EROFS : 0;
}

/* Only the last one is made. */
static int
check_folder(const char *path, char err[LISTENER_ERR_MAX])
{
	char dir[PATH_MAX], above[PATH_MAX], lock[PATH_MAX];
	struct stat st;
	int error;

	parent(path, dir);
	error = folder_error(dir);
	if (error == 0)
		return 0;
	if (stat(dir, &st) != 0) {
		parent(dir, above);
		if (error == ENOENT)
			error = folder_error(above);
		return error == 0 ? 0
				  : fail(dir, "make the directory", error, err);
	}
	snprintf(lock, sizeof(lock), "%s.lock", path);
	return fail(lock, "open", error, err);
}

static int
check_lock(const char *path, char err[LISTENER_ERR_MAX])
{
	char lock[PATH_MAX];
	struct stat st;
	int error;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	if (lstat(lock, &st) != 0)
		return 0;
	error = S_ISDIR(st.st_mode) ? EISDIR : S_ISLNK(st.st_mode) ? ELOOP : 0;
	return error == 0 ? 0 : fail(lock, "open", error, err);
}

/* What stands in the way is no socket, so nothing of an agent's. */
static int
check_place(const char *path, char err[LISTENER_ERR_MAX])
{
	char place[PATH_MAX];
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		snprintf(err, LISTENER_ERR_MAX,
		    "%s: exists and is not a socket", path);
		return -1;
	}
	snprintf(place, sizeof(place), "%s.new", path);
	if (strlen(place) < sizeof(((struct sockaddr_un *)0)->sun_path) &&
	    lstat(place, &st) == 0 && !S_ISSOCK(st.st_mode))
		return fail(place, "bind", EADDRINUSE, err);
	return 0;
}

int
listener_check(const char *path, char err[LISTENER_ERR_MAX])
{
	if (check_folder(path, err) != 0 || check_lock(path, err) != 0)
		return -1;
	return check_place(path, err);
}
