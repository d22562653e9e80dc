/*
 * The file of a Unix listening socket, and its lock. Invariant: while the lock
 * is held no other agent touches the path, and what is unlinked is a socket
 * that nobody serves, or our own.
 */
#include "daemon/io/listener_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE_ALL 0777

/* By errno, of a file that goes with the path. */
static int
fail_at(const char *file, const char *what, char err[LISTENER_ERR_MAX])
{
	snprintf(err, LISTENER_ERR_MAX, "%.150s: cannot %s: %s", file, what,
	    strerror(errno));
	return -1;
}

static int
make_directory(const struct listener *l, char err[LISTENER_ERR_MAX])
{
	char dir[sizeof(l->addr.sun_path)];
	char *slash;
	mode_t old;
	int r;

	memcpy(dir, l->addr.sun_path, sizeof(dir));
	slash = strrchr(dir, '/');
	if (slash == NULL || slash == dir)
		return 0;
	*slash = '\0';
	if (access(dir, F_OK) == 0)
		return 0;
	old = umask(0);
	r = mkdir(dir, 0755);
	umask(old);
	if (r != 0 && errno != EEXIST)
		return fail_at(dir, "make the directory", err);
	return 0;
}

/* The file stays: two agents must never hold locks on two files. */
static int
take_lock(struct listener *l, char err[LISTENER_ERR_MAX])
{
	char path[sizeof(l->addr.sun_path) + sizeof(".lock")];
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

	snprintf(path, sizeof(path), "%s.lock", l->addr.sun_path);
	l->lock = open(path, flags, 0600);
	if (l->lock < 0)
		return fail_at(path, "open", err);
	if (flock(l->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return listener_fail(
		    l, err, "in use, another socket or process has its lock");
	return listener_fail(l, err, "cannot lock: %s", strerror(errno));
}

/* The errno of a connect; 0 and EAGAIN (a full backlog) mean alive. */
static int
probe(const struct sockaddr_un *at)
{
	int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd = socket(AF_UNIX, flags, 0);
	int error = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0)
		error = errno;
	close(fd);
	return error;
}

/* Leaves the path free, or fails and leaves it alone. */
static int
clear_path(const struct listener *l, char err[LISTENER_ERR_MAX])
{
	struct stat st;
	int error;

	if (lstat(l->addr.sun_path, &st) != 0)
		return errno == ENOENT
			   ? 0
			   : listener_fail(l, err, "%s", strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return listener_fail(l, err, "exists and is not a socket");
	error = probe(&l->addr);
	if (error == 0 || error == EAGAIN || error == EPROTOTYPE)
		return listener_fail(
		    l, err, "in use, another process serves it");
	if (error != ECONNREFUSED && error != ENOENT)
		return listener_fail(
		    l, err, "cannot probe: %s", strerror(error));
	if (unlink(l->addr.sun_path) != 0 && errno != ENOENT)
		return listener_fail(
		    l, err, "cannot remove: %s", strerror(errno));
	return 0;
}

static bool
same_file(const struct listener *l, const struct stat *st)
{
	return l->bound && S_ISSOCK(st->st_mode) && st->st_dev == l->dev &&
	       st->st_ino == l->ino;
}

static bool
is_ours(const struct listener *l, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && same_file(l, &st);
}

/*
 * Where the socket is until it listens: PATH.new, which the lock guards like
 * the path; the path itself when that leaves no room, or when PATH.new is a
 * listener of its own. A killed process may have left one behind.
 */
static void
choose_place(struct listener *l)
{
	struct stat st;
	int n;

	l->place = l->addr;
	n = snprintf(l->place.sun_path, sizeof(l->place.sun_path), "%s.new",
	    l->addr.sun_path);
	if (n < 0 || (size_t)n >= sizeof(l->place.sun_path))
		l->place = l->addr;
	else if (lstat(l->place.sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return;
	else if (probe(&l->place) == ECONNREFUSED)
		unlink(l->place.sun_path);
	else
		l->place = l->addr;
}

static int
bind_socket(struct listener *l, mode_t mode, char err[LISTENER_ERR_MAX])
{
	int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct stat st;
	mode_t old;
	int r;

	l->fd = socket(AF_UNIX, flags, 0);
	if (l->fd < 0)
		return listener_fail(l, err, "%s", strerror(errno));
	choose_place(l);
	old = umask(~mode & MODE_ALL); /* bind() makes 0777 less the umask */
	r = bind(l->fd, (const struct sockaddr *)&l->place, sizeof(l->place));
	umask(old);
	if (r != 0)
		return fail_at(l->place.sun_path, "bind", err);
	if (lstat(l->place.sun_path, &st) != 0)
		return listener_fail(l, err, "%s", strerror(errno));
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->usual = st.st_gid;
	l->bound = true;
	return 0;
}

/* Who is not root can give a file to groups of its own alone. */
static const char *
group_hint(int error)
{
	return error == EPERM ? "; the agent has to be a member" : "";
}

static int
give_group(const struct listener *l, gid_t gid, char err[LISTENER_ERR_MAX])
{
	int error;

	if (gid == (gid_t)-1 || lchown(l->place.sun_path, (uid_t)-1, gid) == 0)
		return 0;
	error = errno;
	return listener_fail(l, err, "cannot give it to group %u: %s%s",
	    (unsigned int)gid, strerror(error), group_hint(error));
}

int
listener_file_make(
    struct listener *l, mode_t mode, gid_t gid, char err[LISTENER_ERR_MAX])
{
	if (make_directory(l, err) != 0 || take_lock(l, err) != 0 ||
	    clear_path(l, err) != 0 || bind_socket(l, mode, err) != 0)
		return -1;
	return give_group(l, gid, err);
}

/* What has appeared at the path meanwhile is left alone. */
int
listener_file_show(const struct listener *l)
{
	const char *from = l->place.sun_path, *to = l->addr.sun_path;

	if (strcmp(from, to) == 0 ||
	    renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	return rename(from, to); /* a file system that knows no flags */
}

void
listener_file_remove(const struct listener *l)
{
	if (is_ours(l, l->addr.sun_path))
		unlink(l->addr.sun_path);
	if (is_ours(l, l->place.sun_path))
		unlink(l->place.sun_path);
}

/* An O_PATH descriptor stays with the file, whatever happens to its path, but
 * only by this name can the mode be changed through it. */
static int
set_mode(int fd, mode_t mode)
{
	char name[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return chmod(name, mode);
}

static int
set_group(int fd, gid_t gid)
{
	return fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH);
}

/* While the group is the wrong one, only what both modes allow. */
static int
change_file(const struct listener *l, int fd, const struct stat *was,
    mode_t mode, gid_t gid, char err[LISTENER_ERR_MAX])
{
	mode_t before = was->st_mode & MODE_ALL;
	int error;

	if (set_mode(fd, before & mode) == 0 &&
	    (gid == was->st_gid || set_group(fd, gid) == 0) &&
	    set_mode(fd, mode) == 0)
		return 0;
	error = errno;
	(void)set_group(fd, was->st_gid);
	(void)set_mode(fd, before);
	return listener_fail(l, err,
	    "cannot give it mode %04o and group %u: %s%s", (unsigned int)mode,
	    (unsigned int)gid, strerror(error),
	    gid == was->st_gid ? "" : group_hint(error));
}

int
listener_change(
    struct listener *l, mode_t mode, gid_t gid, char err[LISTENER_ERR_MAX])
{
	const struct sockaddr_un *at = l->started ? &l->addr : &l->place;
	struct stat st;
	int fd, r;

	if (l->adopted || l->tcp)
		return 0;
	fd = open(at->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return listener_fail(l, err, "%s", strerror(errno));
	if (fstat(fd, &st) != 0)
		r = listener_fail(l, err, "%s", strerror(errno));
	else if (!same_file(l, &st))
		r = listener_fail(l, err, "is no longer this agent's socket");
	else
		r = change_file(
		    l, fd, &st, mode, gid == (gid_t)-1 ? l->usual : gid, err);
	close(fd);
	return r;
}
